//! The placements of a block of row sets, as a tree that is walked once for every group of column sets.

use std::ops::Range;

use super::lists::{CellClass, ColumnSets, Placed};
use crate::board::take_lowest;
use crate::engine::{Control, Stopped};

/// Placements on the rows of one class, for several row sets at once.
///
/// A **branch** is a placement on the first rows of some row sets, which have these in common; it filters the lists of the
/// other class. What is left of them is tabled, and the queens of the other rows, the **leaves**, ask the tables.
#[derive(Debug, Default)]
pub(super) struct Trie {
    /// The branches, and the partial placements that lead to them, in the order of a depth-first walk.
    pub(super) steps: Vec<Step>,
    /// Queens in a branch.
    pub(super) depth: usize,
    /// Queens of a leaf and the node above it. Without any the tree is empty, and stands for the placement of no queen.
    pub(super) rest: usize,
    /// Rows of the matrix, at least: all leaves have theirs among these.
    pub(super) rows: usize,
    /// The columns of the queens of a leaf and its branch, by the leaf's column set among those that are wanted.
    columns: Vec<u32>,
    /// The numbers of both diagonals of the queens that branches ask for, [`NO_DIAGONAL`] where no list has placements on them. A
    /// branch knows queens by their place among its own.
    pub(super) asked: Vec<[u8; 2]>,
    pub(super) program: Vec<u32>,
    /// Nodes of a branch by their number of leaves.
    nodes: [Vec<u32>; LEAVES_MAX + 1],
    /// How often it was filled.
    pub(super) version: u64,
}

/// Leaves of a node at most: a row has at most 16 columns of a parity.
const LEAVES_MAX: usize = 16;

/// A queen of a branch.
#[derive(Clone, Debug, Default)]
pub(super) struct Step {
    /// Queens before it.
    pub(super) level: usize,
    pub(super) queen: u64,
    /// The columns of the queen and of those before it.
    columns: u32,
    /// Leaves below it, if the branch is complete.
    pub(super) leaves: u64,
    pub(super) asked: Range<usize>,
    pub(super) program: Range<usize>,
}

/// Branches one after the other, with the steps that lead to them.
#[derive(Debug)]
pub(super) struct Stretch {
    pub(super) steps: Range<usize>,
    pub(super) branches: usize,
    pub(super) leaves: u64,
}

/// Leaf rows at most: their queens but one are the bytes of a word.
pub(super) const REST_MAX: usize = 5;

/// Words for the queens of a node.
pub(super) const fn words(queens: usize) -> usize {
    queens.div_ceil(4)
}

/// The rows of a set in the order in which they are filled, and the set's place in the matrix.
pub(super) type Set = (Vec<u32>, u32);

/// The row sets of a block, and what is wanted of them.
#[derive(Debug)]
pub(super) struct TrieSpec<'a> {
    pub(super) class: CellClass<'a>,
    /// Sorted, so that those with the same first rows stand together. There is at least one, and all have as many rows.
    pub(super) sets: &'a [Set],
    /// How many of them a branch fills.
    pub(super) depth: usize,
    pub(super) columns: &'a ColumnSets,
    /// The column sets that are wanted, by their places.
    pub(super) places: Range<usize>,
    pub(super) control: &'a Control,
}

impl Trie {
    /// The tree of a block. Its leaves are rows of a matrix: by row set, then by column set wanted.
    pub(super) fn fill(&mut self, wanted: &TrieSpec<'_>) -> Result<(), Stopped> {
        let rest = wanted.sets[0].0.len() - wanted.depth;
        assert!(rest <= REST_MAX, "{rest} leaf rows");
        self.version += 1;
        self.steps.clear();
        self.asked.clear();
        self.program.clear();
        (self.depth, self.rest) = (wanted.depth.max(1), rest);
        self.columns.clear();
        self.columns
            .extend(wanted.places.clone().map(|place| wanted.columns.used(wanted.class.colour, place)));
        let sets = wanted.sets.iter().map(|(_, place)| *place as usize + 1).max().unwrap_or(0);
        self.rows = sets * self.columns.len();
        assert!(self.rows <= 1 << 24, "rows of a matrix");
        if rest == 0 {
            return Ok(());
        }
        if wanted.depth == 0 {
            // One branch, which attacks nothing.
            self.steps.push(Step::default());
        }
        self.branch(wanted, wanted.sets, 0, Placed::default())?;
        Ok(())
    }

    /// Makes the branches of some row sets from a placement on the rows that these have in common on; `false` if they
    /// have no leaves.
    fn branch(
        &mut self,
        wanted: &TrieSpec<'_>,
        sets: &[Set],
        level: usize,
        placed: Placed,
    ) -> Result<bool, Stopped> {
        if level == wanted.depth {
            return self.finish(wanted, sets, placed);
        }
        let mut some = false;
        for sets in sets.chunk_by(|(one, _), (other, _)| one[level] == other[level]) {
            let row = sets[0].0[level];
            let mut free = wanted.class.free(placed, row);
            while let Some(bit) = take_lowest(&mut free) {
                let at = self.steps.len();
                let (queen, columns) = (wanted.class.cell(row, bit), placed.columns | bit);
                self.steps.push(Step { level, queen, columns, ..Step::default() });
                if self.branch(wanted, sets, level + 1, CellClass::place(placed, row, bit))? {
                    some = true;
                } else {
                    self.steps.truncate(at);
                }
            }
        }
        Ok(some)
    }

    /// Writes the program of the latest branch; `false` if it has no leaves.
    fn finish(&mut self, wanted: &TrieSpec<'_>, sets: &[Set], placed: Placed) -> Result<bool, Stopped> {
        wanted.control.advance(0)?;
        let (program, first_asked) = (self.program.len(), self.asked.len());
        let mut below = BranchSearch {
            wanted,
            nodes: &mut self.nodes,
            queens: self.rest - 1,
            asked: &mut self.asked,
            first_asked,
            numbers: [NONE; 256],
            first: 0,
        };
        let height = u32::try_from(self.columns.len()).expect("at most 12,870 column sets");
        for (rows, place) in sets {
            below.first = place * height;
            below.search(&rows[wanted.depth..], placed, 0);
        }
        let mut leaves = 0;
        for (count, nodes) in self.nodes.iter_mut().enumerate().filter(|(_, nodes)| !nodes.is_empty()) {
            let nodes_len = nodes.len() / (words(self.rest - 1) + count);
            leaves += (nodes_len * count) as u64;
            self.program.push(u32::try_from(nodes_len << 8 | count).expect("fewer than 2^24 nodes"));
            self.program.append(nodes);
        }
        let step = self.steps.last_mut().expect("a branch has a queen");
        step.asked = first_asked..self.asked.len();
        step.program = program..self.program.len();
        step.leaves = leaves;
        Ok(leaves > 0)
    }

    /// The branches from step `start` on that have `leaves_max` leaves together, or the next one if it has more; and the places
    /// of the column sets that their leaves may have.
    pub(super) fn stretch(&self, start: usize, leaves_max: u64, places: &mut Vec<usize>) -> Stretch {
        let mut found = Stretch { steps: start..start, branches: 0, leaves: 0 };
        let mut columns = u32::MAX;
        for (at, step) in self.steps.iter().enumerate().skip(start) {
            if step.level + 1 < self.depth {
                continue;
            }
            if found.branches > 0 && found.leaves + step.leaves > leaves_max {
                break;
            }
            found.steps.end = at + 1;
            found.branches += 1;
            found.leaves += step.leaves;
            columns &= step.columns;
        }
        places.clear();
        places.extend((0..self.columns.len()).filter(|place| columns & !self.columns[*place] == 0));
        found
    }

    /// The steps that lead to this one, the last one first.
    pub(super) fn before(&self, step: usize) -> impl Iterator<Item = usize> {
        let mut level = self.steps[step].level;
        (0..step).rev().filter(move |&at| {
            let leads = self.steps[at].level < level;
            level = level.min(self.steps[at].level);
            leads
        })
    }

    /// The number of column sets that leaves may have.
    pub(super) fn height(&self) -> usize {
        self.columns.len()
    }

    /// The diagonals of the queens that a branch asks for, by number.
    #[inline]
    pub(super) fn asked(&self, step: &Step) -> impl Iterator<Item = [u8; 2]> {
        self.asked[step.asked.clone()].iter().copied()
    }

    /// A branch's nodes in runs: a word with the number of nodes above the lowest byte and the leaves of a node in it,
    /// then the nodes: their queens' numbers, a byte each, in whole words, then for each leaf its queen's number in
    /// the highest byte and its row of the matrix below.
    #[inline]
    pub(super) fn program(&self, step: &Step) -> &[u32] {
        &self.program[step.program.clone()]
    }

    /// A branch's nodes: their queens, four a word, and their leaves.
    pub(super) fn nodes(&self, step: &Step) -> impl Iterator<Item = (&[u32], &[u32])> {
        nodes(self.program(step), self.rest - 1)
    }
}

/// The nodes of a [program](Trie::program) with so many queens each.
pub(super) fn nodes(mut program: &[u32], queens: usize) -> impl Iterator<Item = (&[u32], &[u32])> {
    std::iter::from_fn(move || {
        let (&head, runs) = program.split_first()?;
        let length = words(queens) + (head & 255) as usize;
        let (run, rest) = runs.split_at((head >> 8) as usize * length);
        program = rest;
        Some(run.chunks_exact(length).map(move |node| node.split_at(words(queens))))
    })
    .flatten()
}

/// The search for the nodes below a branch.
struct BranchSearch<'a> {
    wanted: &'a TrieSpec<'a>,
    nodes: &'a mut [Vec<u32>; LEAVES_MAX + 1],
    /// Queens of a node.
    queens: usize,
    asked: &'a mut Vec<[u8; 2]>,
    first_asked: usize,
    /// The numbers of the queens that are asked for, by row (the upper four bits) and column.
    numbers: [u8; 256],
    /// The first row of the matrix for the present row set.
    first: u32,
}

/// Of a queen that nobody has asked for. Numbers are less: a branch leaves 15 rows and 15 columns at most.
const NONE: u8 = u8::MAX;

impl BranchSearch<'_> {
    /// Finds all placements on the rows; `queens` has row and column of each queen of a node in a byte, the latest in the
    /// lowest one.
    fn search(&mut self, rows: &[u32], placed: Placed, queens: u32) {
        let class = &self.wanted.class;
        let (row, rest) = (rows[0], &rows[1..]);
        let mut free = class.free(placed, row);
        if rest.is_empty() {
            self.node(row, free, placed, queens);
            return;
        }
        while let Some(bit) = take_lowest(&mut free) {
            let queens = queens << 8 | u32::from(queen(row, bit));
            self.search(rest, CellClass::place(placed, row, bit), queens);
        }
    }

    fn node(&mut self, row: u32, mut free: u32, placed: Placed, queens: u32) {
        let TrieSpec { class, columns, places, .. } = self.wanted;
        let (mut node, first) = ([0; 1 + LEAVES_MAX], words(self.queens));
        let mut end = first;
        while let Some(bit) = take_lowest(&mut free) {
            let place =
                usize::from(columns.place(class.colour, placed.columns | bit)).wrapping_sub(places.start);
            if place < places.len() {
                #[expect(clippy::cast_possible_truncation, reason = "at most 12,870 column sets")]
                let matrix_row = self.first + place as u32;
                node[end] = self.number(queen(row, bit)) << 24 | matrix_row;
                end += 1;
            }
        }
        if end == first {
            return;
        }
        for (at, &queen) in queens.to_le_bytes()[..self.queens].iter().enumerate() {
            node[0] |= self.number(queen) << (8 * at);
        }
        self.nodes[end - first].extend_from_slice(&node[..end]);
    }

    /// The number of a queen that is asked for.
    #[inline]
    fn number(&mut self, queen: u8) -> u32 {
        let number = &mut self.numbers[usize::from(queen)];
        if *number == NONE {
            *number = u8::try_from(self.asked.len() - self.first_asked).expect("at most 225 queens");
            self.asked.push(diagonals(self.wanted.class.cell(u32::from(queen >> 4), 1 << (queen & 15))));
        }
        (*number).into()
    }
}

/// What stands for a diagonal without placements.
pub(super) const NO_DIAGONAL: u8 = 64;

#[expect(clippy::cast_possible_truncation, reason = "64 at most")]
fn diagonals(queen: u64) -> [u8; 2] {
    [queen.trailing_zeros() as u8, queen.checked_ilog2().map_or(NO_DIAGONAL, |number| number as u8)]
}

/// Row and column of a queen in a byte.
#[expect(clippy::cast_possible_truncation, reason = "rows and columns of a parity are below 16")]
fn queen(row: u32, bit: u32) -> u8 {
    (row << 4 | bit.trailing_zeros()) as u8
}
