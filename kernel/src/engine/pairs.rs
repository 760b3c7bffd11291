//! Multiplication of colours by comparing all pairs of placements: the way of devices.

use std::fmt::Debug;

use super::{Control, Stopped};

/// Placements of one colour in some rows, as masks of diagonals: those with the same columns stand together.
#[derive(Clone, Copy, Debug)]
pub struct MaskLists<'a> {
    /// The first of each column set, and the end of the last.
    pub starts: &'a [u32],
    /// All of them.
    pub masks: &'a [u64],
}

/// Row sets that have their major rows in common. What is wanted of each is the sum, over all pairs of column sets p and l,
/// of the fitting pairs of the first colour (a leaf of p, a lane of l), times those of the second (a leaf of l, a lane of p),
/// times `factors[0][p][0] * factors[1][l][0] + factors[0][p][1] * factors[1][l][1]`. Two placements fit if their masks
/// have no bit in common.
#[derive(Clone, Copy, Debug)]
pub struct PairWork<'a> {
    /// Of each colour the placements in major rows: of the first by l, of the second by p.
    pub lanes: [MaskLists<'a>; 2],
    /// Of each colour the placements in minor rows: of the first by p, of the second by l. The starts of a row set, with the
    /// end of its last list, stand behind those of the one before.
    pub leaves: [MaskLists<'a>; 2],
    /// The leaves are those of the call before if this has not changed.
    pub leaves_version: u64,
    /// The row sets that are counted, among those that have leaves.
    pub row_sets: (usize, usize),
    /// How often column sets count.
    pub factors: [&'a [[u32; 2]]; 2],
}

impl PairWork<'_> {
    /// Number of the column sets p, and l.
    pub fn sets(&self) -> [usize; 2] {
        self.factors.map(<[_]>::len)
    }

    /// The starts of a colour's leaves of a row set.
    pub fn starts(&self, colour: usize, row_set: usize) -> &[u32] {
        let width = self.sets()[colour] + 1;
        &self.leaves[colour].starts[row_set * width..(row_set + 1) * width]
    }

    /// Pairs that are compared for a row set.
    pub fn pairs(&self, row_set: usize) -> u64 {
        let of = |colour: usize| {
            let starts = self.starts(colour, row_set);
            u64::from(starts[starts.len() - 1] - starts[0]) * self.lanes[colour].masks.len() as u64
        };
        of(0) + of(1)
    }
}

/// Somebody who compares pairs.
pub trait PairCounter: Debug + Send {
    /// The sum of each of the row sets; exactly, or not at all when stopped.
    fn count(&mut self, work: &PairWork<'_>, control: &Control) -> Result<Vec<u64>, Stopped>;

    /// Why it can't count any more, see [`Engine::fault`](super::Engine::fault).
    fn fault(&self) -> Option<&str> {
        None
    }
}
