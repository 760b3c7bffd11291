//! The independent pieces of a job, each counted by one thread.

mod leaves;
mod symmetric;

use std::ops::Range;

pub use leaves::Leaves;
pub use symmetric::Symmetric;

use crate::board::BoardSize;
use crate::colours::RowSets;
use crate::counts::{Counts, Overflow};
use crate::engine::Tally;
use crate::estimate;
use crate::subproblem::Subproblem;

/// A piece of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Every completion is an orbit of 8 of its own.
    Count(Subproblem),
    /// Solutions of an edge class, tested one by one.
    Leaves(Leaves),
    /// Solutions of a border configuration that rotations map to itself.
    Symmetric(Symmetric),
    /// Row sets of colours, by their numbers: their solutions are counted as such.
    RowSets(BoardSize, Range<u64>),
    /// Every completion is a solution, counted as such.
    Plain(Subproblem),
}

/// What counting a unit gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitTally {
    /// What was found.
    pub counts: Counts,
    /// Partial boards visited on the way.
    pub states: u64,
}

impl UnitTally {
    /// The sum of both, or [`Overflow`].
    pub fn checked_add(self, other: Self) -> Result<Self, Overflow> {
        let counts = self.counts.checked_add(other.counts)?;
        Ok(Self { counts, states: self.states.checked_add(other.states).ok_or(Overflow)? })
    }

    /// Of completions that are counted as such.
    pub(crate) fn plain(tally: Tally) -> Self {
        Self { counts: Counts::plain(tally.completions), states: tally.states }
    }
}

impl From<Tally> for UnitTally {
    /// Of a board whose completions are orbits of 8.
    fn from(tally: Tally) -> Self {
        Self { counts: Counts::only8(tally.completions), states: tally.states }
    }
}

impl Unit {
    /// The board whose completions an engine counts, if it is the engine that does most of the work.
    pub fn board(&self) -> Option<&Subproblem> {
        match self {
            Self::Count(board) | Self::Plain(board) => Some(board),
            Self::Symmetric(symmetric) => Some(symmetric.board()),
            Self::Leaves(_) | Self::RowSets(..) => None,
        }
    }

    /// The row sets of colours that it is, and their board.
    pub fn row_sets(&self) -> Option<(BoardSize, Range<u64>)> {
        if let Self::RowSets(n, range) = self { Some((*n, range.clone())) } else { None }
    }

    /// Smaller units that together have the same solutions, none if there are no solutions; the unit alone where
    /// there is nothing to split by.
    #[must_use]
    pub fn split(self) -> Vec<Self> {
        match self {
            Self::Count(board) => board.children().into_iter().map(Self::Count).collect(),
            Self::Leaves(leaves) => leaves.split().into_iter().map(Self::Leaves).collect(),
            Self::Symmetric(symmetric) => symmetric.split(),
            Self::RowSets(n, range) => {
                row_sets(n).pieces(&range).into_iter().map(|piece| Self::RowSets(n, piece)).collect()
            }
            Self::Plain(board) => board.children().into_iter().map(Self::Plain).collect(),
        }
    }

    /// Bytes that a thread needs for row sets, however few its solver is given, and beside those.
    pub fn memory_least(&self) -> Option<u64> {
        match self {
            Self::RowSets(n, range) => Some(row_sets(*n).memory_least(range)),
            Self::Count(_) | Self::Plain(_) | Self::Symmetric(_) | Self::Leaves(_) => None,
        }
    }

    /// A guess at the states that the reference search visits.
    pub fn states_estimate(&self) -> u64 {
        match self {
            Self::Count(board) | Self::Plain(board) => estimate::states(board),
            Self::Leaves(leaves) => estimate::states(leaves.board()),
            Self::Symmetric(symmetric) => estimate::states(symmetric.board()),
            Self::RowSets(n, range) => row_sets(*n).weight(range).states,
        }
    }
}

/// Those of a board that has some.
fn row_sets(n: BoardSize) -> &'static RowSets {
    RowSets::shared(n).expect("checked when the job was made")
}
