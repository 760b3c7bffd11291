//! Stand-in for the estimates of work.

use std::ops::Range;

use super::row_sets::RowSets;

impl RowSets {
    /// A guess at the states of a range, at least 1.
    pub fn work(&self, range: &Range<u64>) -> u64 {
        (range.end - range.start).max(1) * self.work_each()
    }

    /// The end of the range that begins at `from` and has about `states` of work: after `from`, not after the last.
    pub fn cut(&self, from: u64, states: u64) -> u64 {
        (from + (states / self.work_each()).max(1)).min(self.len())
    }

    fn work_each(&self) -> u64 {
        1 << self.n().get()
    }
}
