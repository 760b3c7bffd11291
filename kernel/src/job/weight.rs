//! How heavy a job is.

use crate::counts::Counts;

/// What a job is expected to cost, and what it can find at most. It follows from the job, but takes about as long to
/// find out as to plan the job: plans give both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// A guess at the states that plain backtracking visits, the same on every machine: the job's share of progress
    /// and estimates. In `1..2^63` for a job.
    pub states: u64,
    /// No counts of the job can be right that exceed one of these. Each below 2^63.
    pub counts_max: Counts,
}

impl Weight {
    /// Both together, saturating.
    pub(crate) fn plus(self, other: Self) -> Self {
        let add = |a: u64, b: u64| a.saturating_add(b).min(i64::MAX.unsigned_abs());
        let (a, b) = (self.counts_max, other.counts_max);
        let counts_max = Counts {
            count2: add(a.count2, b.count2),
            count4: add(a.count4, b.count4),
            count8: add(a.count8, b.count8),
            solutions: add(a.solutions, b.solutions),
        };
        Self { states: add(self.states, other.states).max(1), counts_max }
    }
}
