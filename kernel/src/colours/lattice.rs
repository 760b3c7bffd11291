//! The placements of a block of row sets, as families whose row sets have all rows but two in common.

use std::collections::BTreeMap;
use std::ops::Range;

use super::lists::ColumnSets;
use super::trie::TrieSpec;

/// Row sets of a block, in families, and what is wanted of them.
#[derive(Debug, Default)]
pub(super) struct Lattice {
    /// Columns of the class.
    pub(super) columns: u32,
    /// The diagonals of a queen, by row and column.
    pub(super) queens: [[u64; 16]; 16],
    /// By the columns that queens use their place among those that are wanted, or [`ColumnSets::NONE`].
    pub(super) places: Vec<u16>,
    /// The number of places.
    pub(super) height: usize,
    /// By column set its number among those of its size.
    pub(super) numbers: Vec<u16>,
    /// The column sets by size, ascending.
    pub(super) sets: Vec<Vec<u32>>,
    /// Sorted, so that those with the same first rows stand together.
    pub(super) families: Vec<Family>,
}

/// Row sets that have all rows but two in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Family {
    /// The rows in common, as they are filled.
    pub(super) rows: Vec<u32>,
    /// All rows that some row set has beyond.
    pub(super) outer: Vec<u32>,
    pub(super) pairs: Vec<Pair>,
}

/// The two rows that a row set has beyond those of its family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pair {
    /// Their places among the outer rows.
    pub(super) at: [usize; 2],
    /// How far they are from each other.
    pub(super) distance: u32,
    /// The row set's place in the matrix.
    pub(super) set: u32,
}

/// Rows that a row set has, at least.
pub(super) const ROWS_MIN: usize = 3;

impl Lattice {
    /// Of these row sets, each of [`ROWS_MIN`] rows at least.
    pub(super) fn fill(&mut self, wanted: &TrieSpec<'_>) {
        let TrieSpec { class, sets, columns, ref places, .. } = *wanted;
        self.columns = class.columns();
        let all = 1_u32 << self.columns;
        for row in 0..16 {
            for column in 0..self.columns {
                self.queens[row as usize][column as usize] = class.cell(row, 1 << column);
            }
        }
        self.height = places.len();
        self.places.clear();
        self.places.extend((0..all).map(|used| place(columns, class.colour, used, places)));
        self.sets = vec![Vec::new(); self.columns as usize + 1];
        self.numbers.clear();
        for set in 0..all {
            let sets = &mut self.sets[set.count_ones() as usize];
            self.numbers.push(u16::try_from(sets.len()).expect("at most 12,870 sets"));
            sets.push(set);
        }
        self.families = families(sets);
    }
}

fn place(
    columns: &ColumnSets,
    colour: super::diagonals::Colour,
    used: u32,
    places: &Range<usize>,
) -> u16 {
    let place = columns.place(colour, used);
    if place != ColumnSets::NONE && places.contains(&usize::from(place)) {
        place - u16::try_from(places.start).expect("places are words")
    } else {
        ColumnSets::NONE
    }
}

/// Families that have all row sets among them: again and again the one that has most of those that are left.
fn families(sets: &[super::trie::Set]) -> Vec<Family> {
    let mut left: Vec<&super::trie::Set> = sets.iter().collect();
    let mut all = Vec::new();
    while !left.is_empty() {
        let mut found: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
        for (rows, _) in &left {
            for j in 1..rows.len() {
                for i in 0..j {
                    let common: Vec<u32> =
                        (0..rows.len()).filter(|at| *at != i && *at != j).map(|at| rows[at]).collect();
                    *found.entry(common).or_default() += 1;
                }
            }
        }
        let (rows, _) = found.into_iter().max_by_key(|(_, count)| *count).expect("some are left");
        let has = |set: &[u32]| rows.iter().all(|row| set.contains(row));
        let beyond = |set: &[u32]| set.iter().copied().filter(|row| !rows.contains(row)).collect::<Vec<_>>();
        let (own, others): (Vec<_>, Vec<_>) = left.into_iter().partition(|(set, _)| has(set));
        left = others;
        let mut outer: Vec<u32> = own.iter().flat_map(|(set, _)| beyond(set)).collect();
        outer.sort_unstable();
        outer.dedup();
        let at = |row: u32| outer.binary_search(&row).expect("an outer row");
        let pairs = own
            .iter()
            .map(|(set, place)| {
                let two = beyond(set);
                Pair { at: [at(two[0]), at(two[1])], distance: two[0].abs_diff(two[1]), set: *place }
            })
            .collect();
        all.push(Family { rows, outer, pairs });
    }
    all.sort_unstable();
    all
}
