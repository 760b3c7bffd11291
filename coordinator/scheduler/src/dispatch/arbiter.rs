//! What the coordinator has to count itself, where it counts, and what follows: no votes outweigh its count.
//!
//! | what | why |
//! |---|---|
//! | disputes | two results differ, and votes of one credential decide nothing |
//! | jobs that failed [`failures_max`](super::Policy::failures_max) times under one credential | it may be the job or the worker |
//! | jobs whose leases ran out [`lapses_max`](super::Policy::lapses_max) times | the same |
//! | checks in runs that wait for nothing else | nobody is there who could make them, or who could does not |

use std::collections::HashSet;
use std::num::NonZeroU32;

use nqueens_model::credential::Credential;
use nqueens_model::id::{JobId, LeaseToken, WorkerId};

use super::checks::{CheckVote, OpenCheck};
use super::{Accepted, Dispatch, JobState, Millis, Run, RunState, TrustEvent};

impl Dispatch {
    /// The next job that the coordinator has to count and has not tried in vain, as the token of its latest lease, and whether
    /// it has a result.
    pub fn undecided(&self, now: Millis, given_up: &HashSet<JobId>) -> Option<(LeaseToken, bool)> {
        let goes_on = |job: &JobId| {
            !given_up.contains(job) && {
                let state = self.runs.get(&job.run).map(Run::state);
                matches!(state, Some(RunState::Active | RunState::Paused))
            }
        };
        // Those who could make a check have time for that, until it would be waived and as long again.
        let is_late = |job: &JobId| self.is_late(now.saturating_sub(self.policy.lease_ms), job.run);
        let able = self.able(now);
        let is_nobodys = |job: &JobId, check: &OpenCheck| {
            self.counted_since.contains_key(&job.run)
                && (is_late(job) || !able.iter().any(|machine| check.is_new_to(machine)))
        };
        let check =
            self.checks.find(|job, check| (check.is_dispute() || is_nobodys(job, check)) && goes_on(job));
        let failing = || self.failed_by.keys().copied().find(|job| goes_on(job) && self.is_hopeless(*job));
        let (job, has_result) = check.map(|job| (job, true)).or_else(|| Some((failing()?, false)))?;
        let epoch = NonZeroU32::new(self.runs[&job.run].slot(job.number).epoch)?;
        Some((LeaseToken { job, epoch, incarnation: self.incarnation }, has_result))
    }

    /// Whether a job is open and has failed or run out so often that the coordinator has to try it.
    fn is_hopeless(&self, job: JobId) -> bool {
        let slot = self.runs[&job.run].slot(job.number);
        let is_open = matches!(slot.state, JobState::Ready | JobState::Leased);
        let has_failed = u32::from(slot.failures) >= self.policy.failures_max
            || u32::from(slot.lapses) >= self.policy.lapses_max;
        is_open && self.policy.arbiter && has_failed
    }

    /// The coordinator could not count a job either, which has failed elsewhere: it is quarantined. Does nothing if it has a
    /// result by now.
    pub fn give_up(&mut self, job: JobId) {
        let Some(run) = self.runs.get_mut(&job.run).filter(|run| run.contains(job.number)) else { return };
        if matches!(run.slot(job.number).state, JobState::Ready | JobState::Leased) {
            run.quarantine(job.number);
            self.remove_leases(job);
            self.failed_by.remove(&job);
            self.dirty.insert(job);
        }
    }

    /// Asks for a second count of the accepted result of a job, unless its run has ended, one is asked for, or the coordinator
    /// has counted it.
    pub(crate) fn check_again(&mut self, job: JobId, accepted: &Accepted) {
        let is_open = |run: &Run| run.state().is_open() && run.slot(job.number).state == JobState::Done;
        let machine = self.machine(accepted.worker);
        if self.runs.get(&job.run).is_some_and(is_open) && !machine.is_own() {
            self.open_check(job, CheckVote::accepted(accepted, machine));
        }
    }

    /// The accepted result of a job is wrong in part: whoever counted it has failed a check, and the job is open again.
    pub(crate) fn refute(&mut self, job: JobId, accepted: &Accepted, reason: &str) {
        let Accepted { worker, kernel, .. } = *accepted;
        let reason = format!("its worker {worker} counted job {job} with {kernel}: {reason}");
        self.take_back(&[(job, *accepted)]);
        self.fail(&self.machine(worker), reason);
    }

    /// A worker failed to count a job: its machine gets fewer jobs. Whether the job is to be quarantined: failures under
    /// one credential alone are no proof against it where the coordinator can try it.
    pub(super) fn note_failure(&mut self, now: Millis, worker: WorkerId, job: JobId) {
        let machine = self.machine(worker);
        self.failed_by.entry(job).or_default().insert(machine.credential.clone());
        if let Some((failures, seconds)) = self.trust.set_back(now, &machine) {
            self.trust_events.push(TrustEvent::Rests { machine, failures, seconds });
        }
    }

    /// Whether failures of a job are proof against it.
    pub(super) fn is_proven_bad(&self, job: JobId) -> bool {
        !self.policy.arbiter || self.failed_by.get(&job).is_some_and(|by| by.len() > 1)
    }

    /// Whether equal votes of two credentials decide a dispute: where the coordinator counts itself both need standing, and two
    /// of one credential decide nothing.
    pub(super) fn has_weight(&self, one: &Credential, other: &Credential) -> bool {
        let has_standing = |credential| self.trust.has_standing(credential);
        !self.policy.arbiter || one != other && has_standing(one) && has_standing(other)
    }
}
