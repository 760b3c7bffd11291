//! The independent pieces of a job, each counted by one thread.

mod leaves;
mod symmetric;

pub use leaves::Leaves;
pub use symmetric::Symmetric;

use crate::counts::Counts;
use crate::engine::{Control, Engine, Stopped};
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
}

/// What counting a unit gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitTally {
    /// Orbits found.
    pub counts: Counts,
    /// Partial boards visited on the way.
    pub states: u64,
}

impl Unit {
    /// Counts the unit's orbits; exactly, or not at all when stopped.
    pub fn solve(&self, engine: &mut dyn Engine, control: &Control) -> Result<UnitTally, Stopped> {
        match self {
            Self::Count(board) => {
                let tally = engine.count(board, control)?;
                Ok(UnitTally { counts: Counts::only8(tally.completions), states: tally.states })
            }
            Self::Leaves(leaves) => leaves.solve(control),
            Self::Symmetric(symmetric) => symmetric.solve(engine, control),
        }
    }

    /// Smaller units with the same orbits, none if there are no orbits; the unit alone where it has no open row
    /// to split by.
    #[must_use]
    pub fn split(self) -> Vec<Self> {
        match self {
            Self::Count(board) => board.children().into_iter().map(Self::Count).collect(),
            Self::Leaves(leaves) => leaves.split().into_iter().map(Self::Leaves).collect(),
            Self::Symmetric(symmetric) => symmetric.split(),
        }
    }

    /// A guess at the states that the reference search visits.
    pub fn states_estimate(&self) -> u64 {
        let board = match self {
            Self::Count(board) => board,
            Self::Leaves(leaves) => leaves.board(),
            Self::Symmetric(symmetric) => symmetric.board(),
        };
        estimate::states(board)
    }
}
