//! Second counts: jobs that another machine is to count, too.
//!
//! One is open until it agrees, or the coordinator has decided what differs, or the job's result is taken back. Leases for it
//! are leases of the job like any other, and live in memory alone: after a restart somebody else is asked.

use std::collections::{BTreeMap, BTreeSet};

use nqueens_kernel::counts::Counts;
use nqueens_model::id::{JobId, RunId, WorkerId};
use nqueens_model::operator::CheckCounts;
use strum::{EnumString, IntoStaticStr};

use super::{Accepted, Machine};

/// How a second count ended; the names are the database's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum CheckOutcome {
    /// Another machine, or the coordinator, counted the same.
    Agreed,
    /// Two machines differed, and the coordinator counted the job.
    Settled,
    /// The run ended, and nobody had made it.
    Unmade,
    /// The result in question was taken back, or the run cancelled.
    Dropped,
}

impl CheckOutcome {
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Adds so many second counts that ended so.
    pub fn add_to(self, counts: &mut CheckCounts, checks: u32) {
        match self {
            Self::Agreed => counts.agreed += checks,
            Self::Settled => counts.settled += checks,
            Self::Unmade => counts.unmade += checks,
            Self::Dropped => {}
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differing {
    pub worker: WorkerId,
    pub machine: Machine,
    pub counts: Counts,
}

/// A job that somebody else is to count, too.
#[derive(Clone, Debug)]
pub(super) struct OpenCheck {
    pub(super) accepted: Accepted,
    pub(super) machine: Machine,
    /// The coordinator is to decide.
    pub(super) differing: Option<Differing>,
    estimate: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Checks {
    open: BTreeMap<JobId, OpenCheck>,
    pub(super) waiting: BTreeMap<Machine, BTreeSet<JobId>>,
    /// Estimated work of those, in states.
    estimate_waiting: u128,
    disputed: BTreeSet<JobId>,
    /// What changed since it was last stored: opened, or ended how.
    changes: Vec<(JobId, Option<CheckOutcome>)>,
}

impl Checks {
    /// Takes up one that the database has.
    pub(super) fn add(
        &mut self,
        job: JobId,
        (accepted, machine): (Accepted, Machine),
        differing: Option<Differing>,
        estimate: u64,
    ) {
        if differing.is_some() {
            self.disputed.insert(job);
        }
        self.open.insert(job, OpenCheck { accepted, machine, differing, estimate });
        self.wait(job);
    }

    /// Asks for a second count of an accepted result. Does nothing if one is open.
    pub(super) fn open(&mut self, job: JobId, accepted: (Accepted, Machine), estimate: u64) -> bool {
        if self.open.contains_key(&job) {
            return false;
        }
        self.add(job, accepted, None, estimate);
        self.changes.push((job, None));
        true
    }

    pub(super) fn get(&self, job: JobId) -> Option<&OpenCheck> {
        self.open.get(&job)
    }

    pub(super) fn set_differing(&mut self, job: JobId, differing: Option<Differing>) {
        self.begin(job);
        let Some(check) = self.open.get_mut(&job) else { return };
        if differing.is_some() {
            self.disputed.insert(job)
        } else {
            self.disputed.remove(&job)
        };
        check.differing = differing;
        self.wait(job);
    }

    pub(super) fn disputed(&self) -> impl Iterator<Item = (JobId, &OpenCheck)> {
        self.disputed.iter().map(|job| (*job, &self.open[job]))
    }

    pub(super) fn of(&self, run: RunId) -> impl DoubleEndedIterator<Item = (JobId, &OpenCheck)> {
        let job = |number| JobId { run, number };
        self.open.range(job(0)..=job(u32::MAX)).map(|(job, check)| (*job, check))
    }

    pub(super) fn close(&mut self, job: JobId, outcome: CheckOutcome) -> Option<OpenCheck> {
        self.begin(job);
        self.disputed.remove(&job);
        let check = self.open.remove(&job)?;
        self.changes.push((job, Some(outcome)));
        Some(check)
    }

    pub(super) fn begin(&mut self, job: JobId) {
        let Some(OpenCheck { machine, estimate, .. }) = self.open.get(&job) else { return };
        let Some(waiting) = self.waiting.get_mut(machine) else { return };
        if waiting.remove(&job) {
            self.estimate_waiting -= u128::from(*estimate);
        }
        if waiting.is_empty() {
            self.waiting.remove(machine);
        }
    }

    /// Nobody counts it any more. Those that the coordinator is to decide wait for nobody else.
    pub(super) fn wait(&mut self, job: JobId) {
        let Some(check) = self.open.get(&job).filter(|check| check.differing.is_none()) else { return };
        if self.waiting.entry(check.machine.clone()).or_default().insert(job) {
            self.estimate_waiting += u128::from(check.estimate);
        }
    }

    /// How many there are, and their estimated work in states.
    pub(super) fn waiting_work(&self) -> (usize, u128) {
        (self.waiting.values().map(BTreeSet::len).sum(), self.estimate_waiting)
    }

    pub(crate) fn take_changes(&mut self) -> Vec<(JobId, Option<CheckOutcome>)> {
        std::mem::take(&mut self.changes)
    }
}
