//! Stand-in for the multiplication.

use std::ops::Range;

use super::recount::{self, Part};
use super::{ColourTally, RowSets};
use crate::engine::{Control, Stopped};
use crate::halves::Isa;

/// Counts orbits of row sets; one a thread.
#[derive(Debug)]
pub struct Multiplier {
    isa: Isa,
}

impl Multiplier {
    /// `None` if this machine can't run it.
    pub fn new(isa: Isa, _memory_max: u64) -> Option<Self> {
        Some(Self { isa })
    }

    /// The instruction set in use.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Counts the solutions of the orbits `range`, each with its weights; exactly, or not at all when stopped.
    pub fn count(
        &mut self,
        sets: &RowSets,
        range: Range<u64>,
        control: &Control,
    ) -> Result<ColourTally, Stopped> {
        recount::recount(sets, range, control)
    }

    /// Counts a part of an orbit, as [`recount_part`](recount::recount_part) has to come to.
    pub fn count_part(
        &mut self,
        sets: &RowSets,
        part: Part,
        control: &Control,
    ) -> Result<ColourTally, Stopped> {
        recount::recount_part(sets, part, control)
    }
}
