//! The sums over a run's done jobs.

use nqueens_kernel::counts::{Counts, Overflow, Totals};
use nqueens_model::operator::CheckCounts;

use super::{Accepted, JobState, JobStatus};

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    pub done: u32,
    pub leased: u32,
    pub quarantined: u32,
    pub estimate: u128,
    pub estimate_done: u128,
    pub estimate_leased: u128,
    pub estimate_quarantined: u128,
    pub accepted: AcceptedSums,
    /// Processor time of all stored results in microseconds, also of second counts and of results that do not stand; thread time
    /// of those whose processor time was not measured.
    pub cpu_us: u128,
    pub checks: CheckCounts,
    /// Processor time of the coordinator's recounts, in microseconds.
    pub recounts_us: u128,
    /// Wrong results that they found.
    pub differing: u32,
}

/// The sums over the accepted results of one run, without jobs in quarantine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AcceptedSums {
    pub results: u64,
    pub found: Totals,
    pub states: u128,
    /// Thread time, in microseconds.
    pub elapsed_us: u128,
    /// Processor time; thread time of the results whose processor time was not measured.
    pub cpu_us: u128,
    pub moments: Moments,
}

impl AcceptedSums {
    pub fn add(
        &mut self,
        estimate: u64,
        counts: Counts,
        states: u64,
        elapsed_us: u64,
        cpu_us: u64,
    ) -> Result<(), Overflow> {
        self.results += 1;
        self.found = self.found.checked_add(counts)?;
        self.states += u128::from(states);
        self.elapsed_us += u128::from(elapsed_us);
        self.cpu_us += u128::from(cpu_us);
        self.moments.add(1.0, estimate, counts);
        Ok(())
    }

    pub(super) fn subtract(&mut self, estimate: u64, accepted: &Accepted) {
        let Accepted { counts, states, elapsed_us, cpu_us, .. } = *accepted;
        self.results -= 1;
        self.found = self.found.less(counts);
        self.states -= u128::from(states);
        self.elapsed_us -= u128::from(elapsed_us);
        self.cpu_us -= u128::from(cpu_us);
        self.moments.add(-1.0, estimate, counts);
    }
}

/// Second moments over the done jobs, of estimated work x and solutions y. Only estimates for people are made from them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    pub xx: f64,
    pub xy: f64,
    pub yy: f64,
}

impl Moments {
    /// Adds a job, or with `sign` -1 takes it out again.
    #[expect(clippy::cast_precision_loss, reason = "statistics")]
    fn add(&mut self, sign: f64, estimate: u64, counts: Counts) {
        let (x, y) = (estimate as f64, counts.total() as f64);
        self.xx += sign * x * x;
        self.xy += sign * x * y;
        self.yy += sign * y * y;
    }
}

impl Sums {
    /// The number of jobs in a state and their estimated work; ready ones are what is left over.
    fn of(&mut self, state: JobState) -> Option<(&mut u32, &mut u128)> {
        match state {
            JobState::Ready => None,
            JobState::Leased => Some((&mut self.leased, &mut self.estimate_leased)),
            JobState::Done => Some((&mut self.done, &mut self.estimate_done)),
            JobState::Quarantined => Some((&mut self.quarantined, &mut self.estimate_quarantined)),
        }
    }

    pub(super) fn enter(&mut self, slot: &JobStatus) {
        self.checks.confirmed += u32::from(slot.confirmed);
        self.checks.recounted += slot.recounts();
        if let Some((jobs, estimate)) = self.of(slot.state) {
            *jobs += 1;
            *estimate += u128::from(slot.estimate);
        }
    }

    pub(super) fn leave(&mut self, slot: &JobStatus) {
        self.checks.confirmed -= u32::from(slot.confirmed);
        self.checks.recounted -= slot.recounts();
        if let Some((jobs, estimate)) = self.of(slot.state) {
            *jobs -= 1;
            *estimate -= u128::from(slot.estimate);
        }
    }
}
