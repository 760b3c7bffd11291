//! Jobs that are to be counted once more, by another machine than those that have counted them.
//!
//! A check is open until two machines agree, until nobody is left to ask (then it is waived), or until the job's result
//! is taken back. Leases for it are leases of the job like any other, and live in memory alone: after a restart
//! somebody else is asked.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use nqueens_kernel::counts::Counts;
use nqueens_model::credential::Credential;
use nqueens_model::id::{JobId, LeaseToken, WorkerId};
use nqueens_model::kernel::KernelName;
use nqueens_model::message::JobResult;
use nqueens_model::operator::CheckCounts;
use strum::{EnumString, IntoStaticStr};

use super::{Accepted, Machine};

/// Leases remembered for one check: results of earlier ones settle nothing.
const ASKED_MAX: usize = 8;

/// What one worker counted for a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckVote {
    /// Who counted.
    pub worker: WorkerId,
    /// On which machine.
    pub machine: Machine,
    /// By which engine.
    pub kernel: KernelName,
    /// Under which lease.
    pub epoch: NonZeroU32,
    /// What came out.
    pub counts: Counts,
}

impl CheckVote {
    pub(super) fn accepted(accepted: &Accepted, machine: Machine) -> Self {
        let Accepted { worker, kernel, epoch, counts, .. } = *accepted;
        Self { worker, machine, kernel, epoch, counts }
    }

    pub(super) fn reported(worker: WorkerId, result: &JobResult, machine: Machine) -> Self {
        let JobResult { kernel, counts, token, .. } = *result;
        Self { worker, machine, kernel, epoch: token.epoch, counts }
    }
}

/// How a check ended; the names are the database's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum CheckOutcome {
    /// Another machine counted the same.
    Agreed,
    /// Two machines differed; another one agreed with one of them, or the coordinator counted the job.
    Settled,
    /// There was no other machine to ask.
    Waived,
    /// The result in question was taken back.
    Dropped,
}

impl CheckOutcome {
    /// Its name in the database.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Adds so many checks that ended so.
    pub fn add_to(self, counts: &mut CheckCounts, checks: u32) {
        match self {
            Self::Agreed => counts.agreed += checks,
            Self::Settled => counts.settled += checks,
            Self::Waived => counts.waived += checks,
            Self::Dropped => {}
        }
    }
}

/// A job that somebody else is to count, too.
#[derive(Clone, Debug)]
pub(super) struct OpenCheck {
    /// What has been counted so far; the first is the accepted result.
    pub(super) votes: Vec<CheckVote>,
    /// The leases given for it in this life of the coordinator. A result of nobody who was asked settles nothing, or
    /// a liar under a second name could confirm itself.
    asked: Vec<(WorkerId, NonZeroU32)>,
    estimate: u64,
}

impl OpenCheck {
    /// Whether its votes differ.
    pub(super) fn is_dispute(&self) -> bool {
        self.votes.len() > 1
    }

    pub(super) fn was_asked(&self, worker: WorkerId, token: &LeaseToken) -> bool {
        self.asked.contains(&(worker, token.epoch))
    }

    /// Whether a machine has not counted the job yet.
    pub(super) fn is_new_to(&self, machine: &Machine) -> bool {
        self.votes.iter().all(|vote| vote.machine != *machine)
    }

    /// Whether nobody of a credential has counted the job yet.
    pub(super) fn is_new_under(&self, credential: &Credential) -> bool {
        self.votes.iter().all(|vote| vote.machine.credential != *credential)
    }

    pub(super) fn ask(&mut self, worker: WorkerId, epoch: NonZeroU32) {
        if self.asked.len() == ASKED_MAX {
            self.asked.remove(0);
        }
        self.asked.push((worker, epoch));
    }
}

/// All open checks.
#[derive(Debug, Default)]
pub(super) struct Checks {
    open: BTreeMap<JobId, OpenCheck>,
    /// Those that nobody counts now, by the machine whose result is in question.
    waiting: BTreeMap<Machine, BTreeSet<JobId>>,
    /// Estimated work of those, in states.
    estimate_waiting: u128,
    /// What changed since it was last stored: opened, or ended how.
    changes: Vec<(JobId, Option<CheckOutcome>)>,
}

impl Checks {
    /// Takes up a check that the database has.
    pub(super) fn add(&mut self, job: JobId, votes: Vec<CheckVote>, estimate: u64) {
        self.open.insert(job, OpenCheck { votes, asked: Vec::new(), estimate });
        self.wait(job);
    }

    /// Asks for a check of an accepted result. Does nothing if one is open.
    pub(super) fn open(&mut self, job: JobId, accepted: CheckVote, estimate: u64) -> bool {
        if self.open.contains_key(&job) {
            return false;
        }
        self.add(job, vec![accepted], estimate);
        self.changes.push((job, None));
        true
    }

    /// The first job whose check is like this.
    pub(super) fn find(&self, is: impl Fn(&JobId, &OpenCheck) -> bool) -> Option<JobId> {
        self.open.iter().find(|(job, check)| is(job, check)).map(|(job, _)| *job)
    }

    pub(super) fn get(&self, job: JobId) -> Option<&OpenCheck> {
        self.open.get(&job)
    }

    pub(super) fn get_mut(&mut self, job: JobId) -> Option<&mut OpenCheck> {
        self.open.get_mut(&job)
    }

    /// Ends a check.
    pub(super) fn close(&mut self, job: JobId, outcome: CheckOutcome) -> Option<OpenCheck> {
        self.begin(job);
        let check = self.open.remove(&job)?;
        self.changes.push((job, Some(outcome)));
        Some(check)
    }

    /// Somebody counts it.
    pub(super) fn begin(&mut self, job: JobId) {
        let Some(check) = self.open.get(&job) else { return };
        let machine = &check.votes[0].machine;
        let Some(waiting) = self.waiting.get_mut(machine) else { return };
        if waiting.remove(&job) {
            self.estimate_waiting -= u128::from(check.estimate);
        }
        if waiting.is_empty() {
            self.waiting.remove(machine);
        }
    }

    /// Nobody counts it any more.
    pub(super) fn wait(&mut self, job: JobId) {
        let Some(check) = self.open.get(&job) else { return };
        let machine = check.votes[0].machine.clone();
        if self.waiting.entry(machine).or_default().insert(job) {
            self.estimate_waiting += u128::from(check.estimate);
        }
    }

    /// Those that nobody counts now, by the machine whose result is in question.
    pub(super) fn waiting(&self) -> &BTreeMap<Machine, BTreeSet<JobId>> {
        &self.waiting
    }

    /// How many there are, and their estimated work in states.
    pub(super) fn waiting_work(&self) -> (usize, u128) {
        (self.waiting.values().map(BTreeSet::len).sum(), self.estimate_waiting)
    }

    pub(super) fn take_changes(&mut self) -> Vec<(JobId, Option<CheckOutcome>)> {
        std::mem::take(&mut self.changes)
    }
}
