//! Random draws from a seed.

use std::ops::RangeInclusive;
use std::time::Duration;

use nqueens_kernel::random::SplitMix64;

/// A series of draws, the same for its seed.
pub(crate) struct Random(SplitMix64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// An independent series.
    pub(crate) fn fork(&mut self) -> Self {
        Self::new(self.0.next())
    }

    /// A number in a range.
    pub(crate) fn number(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (low, high) = range.into_inner();
        low + self.0.next() % (high - low + 1)
    }

    /// A place in a list of this length.
    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.number(0..=length as u64 - 1)).expect("below a length")
    }

    /// True with this probability, in thousandths.
    pub(crate) fn permille(&mut self, share: u64) -> bool {
        self.number(0..=999) < share
    }

    pub(crate) fn millis(&mut self, range: RangeInclusive<u64>) -> Duration {
        Duration::from_millis(self.number(range))
    }

    /// Some of the numbers below `length`, one at least.
    pub(crate) fn some(&mut self, length: usize) -> Vec<usize> {
        let sure = self.index(length);
        (0..length).filter(|at| *at == sure || self.permille(400)).collect()
    }
}
