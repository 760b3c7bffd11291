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
        let [a, b] = [self, other].map(|weight| <[u64; 4]>::from(weight.counts_max));
        let counts_max = std::array::from_fn(|which| add(a[which], b[which])).into();
        Self { states: add(self.states, other.states).max(1), counts_max }
    }
}
