//! Opens and ends second counts, and puts out who was wrong.

use nqueens_model::id::{JobId, RunId, WorkerId};

use super::checks::{CheckOutcome, OpenCheck};
use super::lease::LeaseEnd;
use super::ticket::Lot;
use super::{Accepted, Dispatch, JobState, Machine, MachineReputation, Millis, Run, RunState};

/// Once its jobs are done, a run waits so many leases' time before the coordinator makes second counts, too, ...
pub(super) const LEASES_LATE: Millis = 1;

/// ... so many before machines of the same credential may make them, though another is there, ...
pub(super) const LEASES_RESERVED: Millis = 60;

/// ... and so many before they stay unmade. If its count is published they do when they are late.
const LEASES_WAITED: Millis = 120;

/// A machine, or a credential, gets no more jobs: what it counted and confirmed is in doubt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcast {
    pub machine: Machine,
    pub reason: String,
}

/// What nobody but an outcast has counted, in runs that are open.
#[derive(Clone, Debug, Default)]
pub struct InDoubt {
    /// Jobs whose accepted result is its, neither recounted nor confirmed by another credential.
    pub counted: Vec<(JobId, Accepted)>,
    /// Jobs of others that it has confirmed.
    pub confirmed: Vec<(JobId, Accepted)>,
}

impl Dispatch {
    /// Asks for a second count of a result that was just accepted, if the lot falls on it.
    pub(super) fn maybe_check(&mut self, job: JobId, accepted: Accepted, machine: Machine) {
        let share = self.runs[&job.run].settings.replicate_ppm;
        if share > 0 && self.key.lot(Lot::Second, job) % 1_000_000 < share.into() {
            self.open_check(job, accepted, machine);
        }
    }

    /// Asks for a count of a result by another machine; does nothing if it has been asked for.
    pub(super) fn open_check(&mut self, job: JobId, accepted: Accepted, machine: Machine) {
        if self.checks.open(job, (accepted, machine), self.estimate(job)) {
            self.note_check(job, None);
        }
    }

    /// Asks again for second counts of a run that stayed unmade: of those of these results. Returns how many.
    pub fn ask_again(&mut self, run: RunId, results: &[(JobId, Accepted)]) -> usize {
        let unmade = |job: JobId| job.run == run && self.runs[&run].is_unmade(job.number);
        let asked: Vec<_> = results.iter().filter(|(job, _)| unmade(*job)).collect();
        for (job, accepted) in &asked {
            self.open_check(*job, *accepted, self.machine(accepted.worker));
        }
        asked.len()
    }

    /// Ends a job's second count, if one is open.
    pub(super) fn close_check(&mut self, job: JobId, outcome: CheckOutcome) -> Option<OpenCheck> {
        let check = self.checks.close(job, outcome)?;
        self.note_check(job, Some(outcome));
        if self.runs[&job.run].slot(job.number).state != JobState::Leased {
            self.remove_leases(job);
        }
        Some(check)
    }

    fn note_check(&mut self, job: JobId, outcome: Option<CheckOutcome>) {
        self.runs.get_mut(&job.run).expect("a checked job has a run").note_check(job.number, outcome);
    }

    pub(super) fn agree(&mut self, job: JobId, by: &Machine) {
        let Some(check) = self.close_check(job, CheckOutcome::Agreed) else { return };
        for machine in [by, &check.machine] {
            self.trust.change(machine).passed += 1;
        }
        if by.credential != check.machine.credential {
            self.runs.get_mut(&job.run).expect("looked up before").confirm(job.number, true);
        }
        self.dirty.insert(job);
    }

    /// A machine was wrong: it is out, and all of its credential if that was wrong under two names.
    pub(super) fn fail(&mut self, machine: &Machine, reason: String) {
        if machine.credential.is_own() {
            return;
        }
        self.trust.change(machine).failed += 1;
        if self.trust.distrusts(machine).is_none() {
            self.distrust(machine, reason);
        }
        let all = Machine::all_of(machine.credential.clone());
        if self.trust.distrusts(&all).is_none() && self.trust.is_wrong(&machine.credential) {
            self.distrust(&all, "two of its machines were wrong".to_owned());
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
        self.outcasts.push(Outcast { machine: machine.clone(), reason });
    }

    /// Forgets what a machine has shown, and gives it jobs again; false if nobody of that name was distrusted.
    pub fn readmit(&mut self, machine: &Machine) -> bool {
        self.worker_summary = None;
        let known = self.trust.of(machine).distrusted.is_some();
        if known {
            *self.trust.change(machine) = MachineReputation::default();
        }
        known
    }

    /// Takes back what nobody but an outcast has counted: their jobs are counted again. What it has confirmed is confirmed no
    /// more, and what differs only by its word stands again. Returns the jobs whose results are void.
    pub fn doubt(&mut self, machine: &Machine, in_doubt: InDoubt) -> Vec<JobId> {
        let dismissed: Vec<_> = self
            .checks
            .disputed()
            .filter(|(_, check)| {
                check.differing.as_ref().is_some_and(|differing| machine.covers(&differing.machine))
            })
            .map(|(job, check)| (job, check.accepted))
            .collect();
        for (job, accepted) in dismissed {
            self.uphold(job, &accepted);
        }
        let mut void = in_doubt.counted;
        for (job, accepted) in in_doubt.confirmed {
            let Some(run) = self.runs.get_mut(&job.run).filter(|run| run.state().is_open()) else { continue };
            let slot = run.slot(job.number);
            if slot.state != JobState::Done || !slot.confirmed {
                continue;
            }
            run.confirm(job.number, false);
            let is_recounted = run.slot(job.number).is_recounted();
            self.dirty.insert(job);
            let counted_on = self.machine(accepted.worker);
            if self.trust.distrusts(&counted_on).is_none() {
                self.open_check(job, accepted, counted_on);
            } else if !is_recounted {
                void.push((job, accepted));
            }
        }
        void.retain(|(job, _)| self.runs.get(&job.run).is_some_and(|run| run.state().is_open()));
        self.take_back(&void)
    }

    /// The accepted result of a disputed job stands again.
    pub(super) fn uphold(&mut self, job: JobId, accepted: &Accepted) {
        let run = self.runs.get_mut(&job.run).expect("a disputed job has a run");
        if run.slot(job.number).state == JobState::Quarantined {
            run.accept(job.number, accepted);
            self.dirty.insert(job);
        }
        self.checks.set_differing(job, None);
    }

    /// Remembers since when runs wait for their second counts and recounts alone.
    pub fn note_counted(&mut self, now: Millis) {
        let waits = |run: &Run| run.state() == RunState::Active && run.is_counted();
        self.counted_since.retain(|run, _| self.runs.get(run).is_some_and(waits));
        for run in self.runs.values().filter(|run| waits(run)) {
            self.counted_since.entry(run.id()).or_insert(now);
        }
    }

    /// Whether an active run has waited for nothing but second counts and recounts for longer than so many leases.
    pub(super) fn has_waited(&self, now: Millis, run: RunId, leases: Millis) -> bool {
        let time = self.policy.lease_ms.saturating_mul(leases);
        self.counted_since.get(&run).is_some_and(|since| now.saturating_sub(*since) > time)
    }

    /// Whether a run waits no longer for second counts.
    pub(super) fn has_given_up(&self, now: Millis, run: &Run) -> bool {
        let leases = if self.is_published(run) { LEASES_LATE } else { LEASES_WAITED };
        self.has_waited(now, run.id(), leases)
    }

    /// Whether a run waits for its second counts, and nobody is there who could make them.
    pub(super) fn is_deserted(&self, now: Millis, run: RunId) -> bool {
        if !self.counted_since.contains_key(&run) {
            return false;
        }
        let able = self.workers.values().filter(|worker| self.may_count(now, worker));
        let mut able = able.map(|worker| &worker.machine);
        // Two machines are enough to make any.
        let one = able.next();
        let has_two = able.any(|other| Some(other) != one);
        !has_two && self.checks.of(run).all(|(_, check)| one.is_none_or(|one| *one == check.machine))
    }

    /// Voids accepted results: their jobs are counted again. Jobs without one are ignored; returns the others.
    pub fn take_back(&mut self, results: &[(JobId, Accepted)]) -> Vec<JobId> {
        let mut taken = Vec::new();
        for (job, accepted) in results {
            let Some(run) = self.runs.get_mut(&job.run) else { continue };
            if !matches!(run.slot(job.number).state, JobState::Done | JobState::Quarantined) {
                continue;
            }
            let is_unmade = run.is_unmade(job.number);
            run.take_back(job.number, accepted);
            if is_unmade {
                // It is about a result that stands no longer.
                self.open_check(*job, *accepted, self.machine(accepted.worker));
            }
            self.close_check(*job, CheckOutcome::Dropped);
            self.remove_leases(*job);
            self.given_up.remove(job);
            self.undrawn.remove(job);
            self.unhelped.remove(job);
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
