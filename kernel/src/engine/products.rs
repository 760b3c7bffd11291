//! Multiplication of colours by somebody else than a thread: a device.

use std::fmt::Debug;
use std::ops::Range;

use super::{Control, Stopped};

/// Placements of one colour in some rows, as masks of diagonals: those with the same columns stand together.
#[derive(Clone, Copy, Debug)]
pub struct MaskLists<'a> {
    /// The first of each column set, and the end of the last.
    pub starts: &'a [u32],
    /// All of them, and maybe others.
    pub masks: &'a [u64],
}

impl<'a> MaskLists<'a> {
    /// The placements of a column set.
    pub fn list(&self, at: usize) -> &'a [u64] {
        &self.masks[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

/// A queen of a branch of a [`Tree`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct TreeStep {
    /// Its diagonals.
    pub queen: u64,
    /// Queens of the branch before it.
    pub level: u32,
    /// Placements below the branch, if the queen is its last.
    pub leaves: u32,
    /// The queens that these ask for, among all that are asked for: the first, and the end.
    pub asked: [u32; 2],
    /// Their program: its first word, and the end.
    pub program: [u32; 2],
}

/// The placements of one colour in the minor rows of some row sets. They are grouped by their first queens, a **branch**,
/// which filters lists of other placements.
///
/// A branch's program consists of runs of nodes. A run's first word has their number above the lowest byte, and the leaves of
/// each in it. A node has all queens of its placements but the last, by their numbers among those that the branch asks for:
/// a byte each, the lowest of a word first, in whole words. A word for each leaf follows: the last queen's number in the
/// highest byte, and below it the matrix row that the placement counts for. If placements have no queens after their branch,
/// there is no program: each matrix row has one.
///
/// A matrix has a row for each row set and, within that, for each column set of a placement.
#[derive(Clone, Copy, Debug)]
pub struct Tree<'a> {
    /// Trees with the same number are the same.
    pub version: u64,
    /// Queens in a branch, at least 1; the queen of a branch that has none attacks nothing.
    pub depth: usize,
    /// Queens of a placement after its branch.
    pub rest: usize,
    /// Column sets.
    pub height: usize,
    /// Placements of a matrix row, at most.
    pub most: u32,
    /// Branches, and the partial ones that lead to them, in the order of a depth-first walk.
    pub steps: &'a [TreeStep],
    /// The numbers of both diagonals of the queens that are asked for, 64 where no list has placements on them.
    pub asked: &'a [[u8; 2]],
    /// All programs.
    pub program: &'a [u32],
}

/// Products that have their minor rows in common: what is wanted of each row set of each part is the sum, over all pairs
/// of column sets p and l, of the fitting pairs of the first colour (a leaf of l, a lane of p), times those of the second
/// (a leaf of p, a lane of l), times `factors[0][p][0] * factors[1][l][0] + factors[0][p][1] * factors[1][l][1]`. Two
/// placements fit if their masks have no bit in common.
#[derive(Clone, Copy)]
pub struct ProductWork<'a> {
    /// The placements in minor rows of the first colour, by l, and of the second one, by p.
    pub trees: [Tree<'a>; 2],
    /// Row sets of the trees.
    pub row_sets: usize,
    /// At least one.
    pub parts: &'a [ProductPart<'a>],
    /// For the first or the second colour and a matrix row the placements that count for it, as masks of diagonals: found
    /// by a search of their own, which knows nothing of the tree.
    pub placements: &'a dyn Fn(usize, usize) -> Vec<u64>,
}

/// Row sets of a [`ProductWork`] that have their major rows in common.
#[derive(Clone, Debug)]
pub struct ProductPart<'a> {
    /// The placements in major rows of the first colour, by p, and of the second one, by l.
    pub lists: [MaskLists<'a>; 2],
    /// How often the column sets p, and l, count.
    pub factors: [Vec<[u32; 2]>; 2],
    /// Which row sets are wanted.
    pub row_sets: Range<usize>,
}

/// Somebody who multiplies colours.
pub trait ProductCounter: Debug + Send {
    /// Bytes for matrices: four for each pair of column sets of each row set, part and colour.
    fn matrices_max(&self) -> u64;

    /// Threads that make lists and trees for it, at least 1.
    fn threads(&self) -> usize;

    /// For each part the sum of each of its row sets; exactly, or not at all when stopped. And how many pairs of placements
    /// were compared, which `control` was told as well.
    fn count(&mut self, work: &ProductWork<'_>, control: &Control) -> Result<(Vec<Vec<u64>>, u64), Stopped>;

    /// Why it can't count any more, see [`Engine::fault`](super::Engine::fault).
    fn fault(&self) -> Option<&str> {
        None
    }
}
