//! Ranges of numbered orbits.

use std::ops::Range;

use super::Unit;
use crate::board::BoardSize;
use crate::job::class::Class;
use crate::ranges::Numbered;

/// Some orbits of the column sets or of the row sets of an N, by their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrbitRange {
    /// Board size, large enough for the class.
    pub(crate) n: BoardSize,
    /// Which orbits are numbered.
    pub(crate) class: Class,
    /// Numbers of the orbits.
    pub(crate) range: Range<u64>,
}

impl OrbitRange {
    /// All orbits of the board.
    pub(crate) fn numbered(&self) -> Numbered {
        Numbered::of_class(self.n, self.class).expect("checked when the job was made")
    }

    pub(super) fn split(&self) -> Vec<Unit> {
        let pieces = self.numbered().pieces(self.range.clone()).into_iter();
        pieces.map(|range| Unit::Orbits(Self { range, ..*self })).collect()
    }
}
