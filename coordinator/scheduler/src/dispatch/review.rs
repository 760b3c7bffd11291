//! Opens and ends second counts, and applies their outcome to the machines.

use std::collections::BTreeSet;

use nqueens_kernel::counts::Counts;
use nqueens_model::credential::Credential;
use nqueens_model::id::{JobId, LeaseToken, RunId, WorkerId};
use nqueens_model::message::JobResult;

use super::checks::{CheckOutcome, CheckVote, OpenCheck};
use super::lease::LeaseEnd;
use super::{Accepted, Dispatch, JobState, Lot, Machine, MachineReputation, Millis, RunState};

/// A change of trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustEvent {
    /// A machine gets no more jobs. Some of its past results must be counted again.
    Distrusted {
        /// The machine.
        machine: Machine,
        /// Why.
        reason: String,
    },
    /// An untrusted machine was wrong once more: all its past results must be counted again.
    WrongAgain {
        /// The machine.
        machine: Machine,
    },
    /// A machine failed to count so many jobs in a row, and gets none for this time.
    Rests {
        /// The machine.
        machine: Machine,
        /// Jobs.
        failures: u32,
        /// Time.
        seconds: u64,
    },
    /// There is no other machine to check results of a run that is otherwise complete.
    Waived {
        /// The run.
        run: RunId,
        /// So many results stay unchecked.
        jobs: u32,
    },
}

impl Dispatch {
    /// Asks for a second count of a result that was just accepted, if the lot falls on it.
    pub(super) fn maybe_check(&mut self, job: JobId, accepted: CheckVote) {
        let base = self.runs[&job.run].replicate();
        if base == 0.0 {
            return;
        }
        let share = self.trust.of(&accepted.machine).share(base);
        #[expect(clippy::cast_precision_loss, reason = "a lot")]
        let lot = self.draw(Lot::Check, job, accepted.epoch.get()) as f64 / u64::MAX as f64;
        if lot < share {
            self.open_check(job, accepted);
        }
    }

    /// Asks for a count of a result by another machine; does nothing if it has been asked for.
    pub(super) fn open_check(&mut self, job: JobId, accepted: CheckVote) {
        let machine = accepted.machine.clone();
        if self.checks.open(job, accepted, self.estimate(job)) {
            self.trust.count_open(&machine, 1);
            self.note_check(job, None);
        }
    }

    /// Ends a job's check, if one is open.
    pub(super) fn close_check(&mut self, job: JobId, outcome: CheckOutcome) -> Option<OpenCheck> {
        let check = self.checks.close(job, outcome)?;
        self.trust.count_open(&check.votes[0].machine, -1);
        self.note_check(job, Some(outcome));
        if self.runs[&job.run].slot(job.number).state != JobState::Leased {
            self.remove_leases(job);
        }
        Some(check)
    }

    fn note_check(&mut self, job: JobId, outcome: Option<CheckOutcome>) {
        self.runs.get_mut(&job.run).expect("a checked job has a run").note_check(outcome);
    }

    /// Two machines agree on a job, or the coordinator has counted it: who counted the same has passed a check, and a machine
    /// with another result has failed one.
    pub(super) fn conclude_check(&mut self, job: JobId, outcome: CheckOutcome, last: CheckVote) {
        let Some(mut check) = self.close_check(job, outcome) else { return };
        let counts = last.counts;
        check.votes.push(last);
        let (right, wrong): (Vec<_>, Vec<_>) =
            check.votes.into_iter().partition(|vote| vote.counts == counts);
        let wrong_machines: BTreeSet<_> = wrong.iter().map(|vote| vote.machine.clone()).collect();
        let credentials: BTreeSet<_> = right.iter().map(|vote| vote.machine.credential.clone()).collect();
        let is_confirmed = credentials.len() > 1 || credentials.iter().any(Credential::is_own);
        let by = if right.iter().any(|vote| vote.machine.is_own()) {
            "the coordinator"
        } else {
            "two other machines"
        };
        for vote in right.iter().filter(|vote| !vote.machine.is_own()) {
            if !wrong_machines.contains(&vote.machine) {
                let reputation = self.trust.change(&vote.machine);
                reputation.passed += 1;
                reputation.confirmed += u64::from(is_confirmed);
            }
        }
        if is_confirmed {
            self.confirm(job);
        }
        for vote in wrong {
            self.fail_against(job, &vote, counts, by);
        }
    }

    /// A job's result was counted alike by somebody who has nothing to do with its worker.
    pub(super) fn confirm(&mut self, job: JobId) {
        self.runs.get_mut(&job.run).expect("a confirmed job has a run").confirm(job.number);
        self.dirty.insert(job);
    }

    /// Counts that can't be right are a proof by themselves, in runs that look for such.
    pub(super) fn fail_implausible(&mut self, worker: WorkerId, result: &JobResult) {
        let JobResult { token: LeaseToken { job, .. }, counts, kernel, .. } = *result;
        if self.runs[&job.run].is_replicated() {
            let reason = format!(
                "its worker {worker} counted {counts:?} for job {job} with {kernel}, which is more than there can be"
            );
            self.fail(&self.machine(worker), reason);
        }
    }

    /// Somebody counted otherwise than those who are right.
    pub(super) fn fail_against(&mut self, job: JobId, vote: &CheckVote, right: Counts, by: &str) {
        let CheckVote { worker, machine, kernel, counts, .. } = vote;
        let reason =
            format!("its worker {worker} counted {counts:?} for job {job} with {kernel}, and {by} {right:?}");
        self.fail(machine, reason);
    }

    pub(super) fn fail(&mut self, machine: &Machine, reason: String) {
        let reputation = self.trust.change(machine);
        reputation.failed += 1;
        let times = reputation.failed;
        if self.trust.distrusts(machine).is_none() {
            self.distrust(machine, reason);
            self.distrust_credential(&machine.credential);
        } else if times == 2 {
            self.trust_events.push(TrustEvent::WrongAgain { machine: machine.clone() });
        }
    }

    /// Several machines of a credential were wrong: so are the others, probably.
    fn distrust_credential(&mut self, credential: &Credential) {
        let all = Machine::all_of(credential.clone());
        let machines: BTreeSet<_> = self.workers.values().map(|worker| &worker.machine).collect();
        let machines = machines.into_iter().filter(|machine| machine.credential == *credential).count();
        if self.trust.distrusts(&all).is_none() && self.trust.is_rotten(credential, machines) {
            self.distrust(&all, "too many of its machines were wrong".to_owned());
        }
    }

    /// Hands out nothing more to a machine, or to all of a credential, and takes back what they have.
    pub fn distrust(&mut self, machine: &Machine, reason: String) {
        self.worker_summary = None;
        self.trust.change(machine).distrusted = Some(reason.clone());
        let own = self.workers.iter().filter(|(_, worker)| machine.covers(&worker.machine));
        let held: Vec<_> = own.flat_map(|(id, worker)| worker.jobs.iter().map(|job| (*id, *job))).collect();
        for (worker, job) in held {
            let lease = self.leases[&job].iter().find(|lease| lease.worker == worker);
            let token = lease.expect("a holder has a lease").token(job);
            self.end_lease(worker, &token, LeaseEnd::Unneeded);
        }
        self.trust_events.push(TrustEvent::Distrusted { machine: machine.clone(), reason });
    }

    /// Forgets what a machine has shown, and gives it jobs again; false if nobody of that name was distrusted.
    pub fn readmit(&mut self, machine: &Machine) -> bool {
        self.worker_summary = None;
        let known = self.trust.of(machine).distrusted.is_some();
        if known {
            let reputation = self.trust.change(machine);
            *reputation = MachineReputation { open: reputation.open, ..MachineReputation::default() };
        }
        known
    }

    /// Has results of a machine counted again by others: all, or a sample that nobody can foresee. Jobs that are not
    /// done any more are passed over. Returns how many are.
    pub fn suspect(&mut self, machine: &Machine, mut results: Vec<(JobId, CheckVote)>, all: bool) -> usize {
        let open = |job: &JobId| {
            let run = self.runs.get(&job.run);
            run.is_some_and(|run| {
                matches!(run.state(), RunState::Active | RunState::Paused)
                    && run.slot(job.number).state == JobState::Done
            })
        };
        results.retain(|(job, _)| open(job) && self.checks.get(*job).is_none());
        let size = self.trust.of(machine).suspects();
        if !all && results.len() > size {
            results.sort_by_cached_key(|(job, vote)| self.draw(Lot::Suspect, *job, vote.epoch.get()));
            results.truncate(size);
        }
        let suspects = results.len();
        for (job, accepted) in results {
            self.open_check(job, accepted);
        }
        suspects
    }

    /// Waives the checks that nobody can make, in runs that have waited for nothing else for a lease's duration.
    ///
    /// Every trusted machine with a heartbeat within the lease duration could make them. After a restart of the
    /// coordinator, known machines have that time from the start. Where all workers are known to be gone, nobody is waited
    /// for.
    pub fn waive(&mut self, now: Millis) {
        let waits = |run: &super::Run| run.is_counted() && run.sums().checks.open > 0;
        self.counted_since.retain(|run, _| self.runs.get(run).is_some_and(waits));
        for run in self.runs.values().filter(|run| waits(run)) {
            self.counted_since.entry(run.id()).or_insert(now);
        }
        let is_due = |run: &RunId| self.is_late(now, *run) || !self.expects_earlier;
        let runs: Vec<_> = self.counted_since.keys().copied().filter(is_due).collect();
        if runs.is_empty() {
            return;
        }
        let able = self.able(now);
        let waiting = self.checks.waiting().values().flatten().copied();
        let nobodys: Vec<_> = waiting
            .filter(|job| runs.contains(&job.run))
            .filter(|job| {
                self.checks
                    .get(*job)
                    .is_some_and(|check| !able.iter().any(|machine| check.is_new_to(machine)))
            })
            .collect();
        for run in runs {
            let mut jobs = 0;
            for job in nobodys.iter().filter(|job| job.run == run) {
                jobs += u32::from(self.close_check(*job, CheckOutcome::Waived).is_some());
            }
            if jobs > 0 {
                self.trust_events.push(TrustEvent::Waived { run, jobs });
            }
        }
    }

    /// The machines that could make a check, if any run waits for checks alone.
    pub(super) fn able(&self, now: Millis) -> BTreeSet<Machine> {
        let is_asked = !self.counted_since.is_empty();
        let able = self.workers.values().filter(|worker| is_asked && self.may_count(now, worker));
        able.map(|worker| worker.machine.clone()).collect()
    }

    /// Voids accepted results: their jobs are counted again. Jobs without one are ignored; returns the others.
    pub fn take_back(&mut self, results: &[(JobId, Accepted)]) -> Vec<JobId> {
        let mut taken = Vec::new();
        for (job, accepted) in results {
            let Some(run) = self.runs.get_mut(&job.run) else { continue };
            if !matches!(run.slot(job.number).state, JobState::Done | JobState::Quarantined) {
                continue;
            }
            run.take_back(job.number, accepted);
            self.close_check(*job, CheckOutcome::Dropped);
            self.remove_leases(*job);
            self.dirty.insert(*job);
            taken.push(*job);
        }
        taken
    }

    /// A worker's machine.
    pub(super) fn machine(&self, worker: WorkerId) -> Machine {
        self.workers[&worker].machine.clone()
    }
}
