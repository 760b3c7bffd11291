//! Leases: who holds which job, when a lease expires, and what happens then.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use nqueens_model::id::{JobId, LeaseToken, WorkerId};
use nqueens_model::message::{HeldLease, ReturnedLease};

use super::ticket::Purpose;
use super::{Dispatch, JobState, Millis, Policy, RunState};

/// The coordinator begins a transaction each second at least. With a short pause it was not away, however short leases are.
const ABSENCE_MIN_MS: Millis = 10_000;

#[derive(Clone, Copy, Debug)]
pub(super) struct ActiveLease {
    pub(super) epoch: NonZeroU32,
    pub(super) ticket: u64,
    pub(super) worker: WorkerId,
    pub(super) granted: Millis,
    /// Estimated states that its holder had to count before it when it was granted.
    pub(super) ahead: u128,
    pub(super) expires: Millis,
    /// Ends at this time unless its counting makes progress.
    pub(super) stalls: Millis,
    /// Ends at this time, whatever its holder says.
    pub(super) ends: Millis,
    /// States visited at the last heartbeat.
    pub(super) states: u64,
    /// Taken up from the database, which has the number of the job's latest lease alone: this one's may be an earlier.
    pub(super) inherited: bool,
}

impl ActiveLease {
    pub(super) fn answers_to(&self, worker: WorkerId, token: &LeaseToken) -> bool {
        self.worker == worker && self.epoch == token.epoch && self.ticket == token.ticket
    }

    pub(super) fn token(&self, job: JobId) -> LeaseToken {
        LeaseToken { job, epoch: self.epoch, ticket: self.ticket }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Its leases that it did not name: their grant got lost on the way.
    pub lost: Vec<LeaseToken>,
    /// Tokens that it named and that hold nothing any more.
    pub revoked: Vec<LeaseToken>,
}

/// How a lease ended without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeaseEnd {
    /// Given back by a worker that has no use for it.
    Unneeded,
    Failed,
    /// It expired, and its holder may have begun it.
    Lapsed,
    Aged,
}

impl Dispatch {
    /// Restores a lease from before a restart of the coordinator; it ends after the grace period unless renewed.
    pub fn add_lease(&mut self, now: Millis, worker: WorkerId, job: JobId) {
        let slot = self.runs[&job.run].slot(job.number);
        assert_eq!(slot.state, JobState::Leased, "job {job}");
        let epoch = NonZeroU32::new(slot.epoch).expect("a leased job has had a lease");
        let token = self.key.token(Purpose::First, job, epoch, &self.workers[&worker].machine.credential);
        let lease = ActiveLease {
            epoch,
            ticket: token.ticket,
            worker,
            granted: now,
            ahead: 0,
            expires: now.saturating_add(self.policy.grace_ms),
            stalls: now.saturating_add(self.policy.grace_ms.max(self.policy.stall_ms)),
            ends: now.saturating_add(self.policy.lease_age_ms),
            states: 0,
            inherited: true,
        };
        self.insert_lease(job, lease);
        // It was earned before: without that a credential with many leases would have none to come.
        let machine = self.machine(worker);
        self.share(&machine).accepted += 1;
    }

    /// A worker returns a lease. A token without a lease is ignored.
    pub fn give_back(&mut self, worker: WorkerId, returned: &ReturnedLease) {
        let outcome = if returned.failure.is_some() { LeaseEnd::Failed } else { LeaseEnd::Unneeded };
        self.end_lease(worker, &returned.token, outcome);
    }

    /// A worker names all the leases that it holds: they are renewed.
    ///
    /// A lease that has ended meanwhile is given again as it was if nobody else has had its job since, and its holder's
    /// machine is trusted.
    pub fn heartbeat(&mut self, now: Millis, worker: WorkerId, held: &[HeldLease]) -> Held {
        self.hear(now, worker);
        let Some(known) = self.workers.get(&worker) else { return Held::default() };
        let mut lost = known.jobs.clone();
        let mut revoked = Vec::new();
        for held in held {
            if self.renew(now, worker, held) {
                lost.remove(&held.token.job);
            } else {
                revoked.push(held.token);
            }
        }
        Held { lost: lost.into_iter().map(|job| self.give_again(worker, job)).collect(), revoked }
    }

    /// The token of a lease whose holder does not know of it. One from the database gets a new number: the one that it
    /// has there may have been another worker's, whose second lease has ended.
    fn give_again(&mut self, worker: WorkerId, job: JobId) -> LeaseToken {
        let leases = self.leases.get_mut(&job).expect("leased to it");
        let at = leases.iter().position(|lease| lease.worker == worker).expect("leased to it");
        if leases[at].inherited {
            let run = self.runs.get_mut(&job.run).expect("a leased job has a run");
            let epoch = run.next_epoch(job.number, 0);
            let credential = &self.workers[&worker].machine.credential;
            let token = self.key.token(Purpose::First, job, epoch, credential);
            let lease = leases.remove(at);
            leases.push(ActiveLease { epoch, ticket: token.ticket, inherited: false, ..lease });
            self.dirty.insert(job);
            return token;
        }
        leases[at].token(job)
    }

    /// A worker has registered: who does no more than that takes a place.
    pub fn greet(&mut self, now: Millis, worker: WorkerId) {
        if let Some(known) = self.workers.get_mut(&worker) {
            known.left = false;
        }
        self.worker_summary = None;
        self.hear(now, worker);
    }

    /// A worker has shown that it is alive. One that has left stays away: this may be a call that it gave up before it left.
    fn hear(&mut self, now: Millis, worker: WorkerId) {
        let Some(known) = self.workers.get_mut(&worker) else { return };
        let earlier = known.seen.replace(now);
        if earlier.is_none_or(|seen| now.saturating_sub(seen) > self.policy.lease_ms) {
            self.worker_summary = None;
        }
    }

    fn renew(&mut self, now: Millis, worker: WorkerId, held: &HeldLease) -> bool {
        let token = &held.token;
        let (expires, stalls, ends) = self.deadlines(now, worker);
        if let Some(leases) = self.leases.get_mut(&token.job) {
            let lease = leases.iter_mut().find(|lease| lease.answers_to(worker, token));
            return lease
                .map(|lease| {
                    if held.states > lease.states {
                        (lease.states, lease.stalls) = (held.states, stalls);
                    }
                    lease.expires = lease.expires.max(expires);
                })
                .is_some();
        }
        let machine = &self.workers[&worker].machine;
        let is_own = self.distrusts(machine).is_none()
            && self.key.purpose(token, &machine.credential) == Some(Purpose::First)
            && !self.failing.contains(&token.job);
        let Some(run) = self.runs.get_mut(&token.job.run).filter(|_| is_own) else { return false };
        let latest = run.contains(token.job.number) && run.slot(token.job.number).epoch == token.epoch.get();
        let revived = latest && run.state() == RunState::Active && run.revive(token.job.number);
        if !revived {
            return false;
        }
        let LeaseToken { epoch, ticket, .. } = *token;
        let (granted, ahead, states, inherited) = (now, 0, held.states, true);
        let lease =
            ActiveLease { epoch, ticket, worker, granted, ahead, expires, stalls, ends, states, inherited };
        self.insert_lease(token.job, lease);
        self.dirty.insert(token.job);
        true
    }

    /// When a worker's lease ends without a heartbeat, when without progress, and when if it is granted now in any case.
    pub(super) fn deadlines(&self, now: Millis, worker: WorkerId) -> (Millis, Millis, Millis) {
        let Policy { lease_ms, stall_ms, lease_age_ms, .. } = self.policy;
        let patience = self.time_for_all(worker).saturating_mul(10).max(stall_ms);
        (now.saturating_add(lease_ms), now.saturating_add(patience), now.saturating_add(lease_age_ms))
    }

    /// A transaction begins. If the last was long ago the coordinator was away, stopped or on a machine that slept: nobody could
    /// be heard meanwhile, so no lease is the older for it, and all have the time that they have after a restart; nobody was
    /// silent, and no run has waited. When leases were granted stays as it is: their holders may have counted.
    pub(crate) fn note_absence(&mut self, now: Millis) {
        let away = now.saturating_sub(self.looked.replace(now).unwrap_or(now));
        if away <= self.policy.lease_ms.max(ABSENCE_MIN_MS) {
            return;
        }
        for lease in self.leases.values_mut().flatten() {
            lease.expires = lease.expires.max(now.saturating_add(self.policy.grace_ms));
            lease.stalls = lease.stalls.saturating_add(away);
            lease.ends = lease.ends.saturating_add(away);
        }
        let seen = self.workers.values_mut().filter_map(|worker| worker.seen.as_mut());
        for since in seen.chain(&mut self.earlier_seen).chain(self.counted_since.values_mut()) {
            *since = since.saturating_add(away);
        }
    }

    /// How long a worker should take for all that it has, at its measured speed; 0 if that is not known yet.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates"
    )]
    fn time_for_all(&self, worker: WorkerId) -> Millis {
        let Some(worker) = self.workers.get(&worker) else { return 0 };
        let Some(speed) = worker.estimated_states_per_thread_second() else { return 0 };
        (1e3 * worker.estimate as f64 / (speed * f64::from(worker.threads))) as Millis
    }

    /// Ends the leases that have expired, and those whose counting makes no progress; returns them.
    ///
    /// An expiry counts only against jobs that the holder may have begun.
    pub fn expire(&mut self, now: Millis) -> Vec<(WorkerId, LeaseToken)> {
        let all = self.leases.iter().flat_map(|(job, leases)| leases.iter().map(|lease| (*job, lease)));
        let ended = all.filter(|(_, lease)| lease.expires.min(lease.stalls).min(lease.ends) <= now);
        let ended: Vec<_> =
            ended.map(|(job, lease)| (lease.worker, lease.token(job), lease.ends <= now)).collect();
        let holders: BTreeSet<_> = ended.iter().map(|(worker, ..)| *worker).collect();
        let begun: BTreeSet<_> = holders.into_iter().flat_map(|worker| self.begun(worker)).collect();
        for (worker, token, aged) in &ended {
            let outcome = match begun.contains(&(*worker, token.job)) {
                _ if *aged => LeaseEnd::Aged,
                true => LeaseEnd::Lapsed,
                false => LeaseEnd::Unneeded,
            };
            self.end_lease(*worker, token, outcome);
        }
        ended.into_iter().map(|(worker, token, _)| (worker, token)).collect()
    }

    /// Which of its jobs a worker may be counting: those of which it has said so, and otherwise the oldest, one a thread.
    pub(super) fn begun(&self, id: WorkerId) -> impl Iterator<Item = (WorkerId, JobId)> + use<> {
        let worker = &self.workers[&id];
        let place = |job: &JobId| {
            let lease = self.leases[job].iter().find(|lease| lease.worker == id).expect("leased to it");
            (lease.states == 0, lease.granted, lease.ahead, *job)
        };
        let mut queue: Vec<_> = worker.jobs.iter().map(place).collect();
        queue.sort_unstable();
        let counting = queue.iter().filter(|(is_idle, ..)| !is_idle).count();
        queue.into_iter().take(counting.max(worker.threads as usize)).map(move |(.., job)| (id, job))
    }

    /// Revokes all leases, at no cost to their jobs; for a coordinator whose workers are all gone.
    pub fn release_all(&mut self) {
        self.earlier_seen = None;
        for job in self.leases.keys().copied().collect::<Vec<_>>() {
            self.remove_leases(job);
            self.reopen(job, LeaseEnd::Unneeded);
        }
    }

    pub(super) fn insert_lease(&mut self, job: JobId, lease: ActiveLease) {
        let estimate = u128::from(self.estimate(job));
        let worker = self.workers.get_mut(&lease.worker).expect("holders have registered");
        worker.jobs.insert(job);
        let lease = ActiveLease { ahead: worker.estimate, ..lease };
        worker.estimate += estimate;
        let machine = worker.machine.clone();
        self.share(&machine).leases += 1;
        let leases = self.leases.entry(job).or_default();
        assert!(
            leases.iter().all(|other| other.worker != lease.worker),
            "job {job} is leased to a worker once"
        );
        leases.push(lease);
        self.checks.begin(job);
    }

    pub(super) fn remove_leases(&mut self, job: JobId) {
        for lease in self.leases.remove(&job).unwrap_or_default() {
            self.unload(lease.worker, job);
        }
    }

    fn unload(&mut self, worker: WorkerId, job: JobId) {
        let estimate = u128::from(self.estimate(job));
        let worker = self.workers.get_mut(&worker).expect("holders are known");
        assert!(worker.jobs.remove(&job), "job {job} was leased to it");
        worker.estimate -= estimate;
        let machine = worker.machine.clone();
        self.share(&machine).leases -= 1;
    }

    /// Ends one lease, if it is alive. The job stays leased if another worker holds it too.
    pub(super) fn end_lease(&mut self, worker: WorkerId, token: &LeaseToken, outcome: LeaseEnd) {
        let job = token.job;
        let Some(leases) = self.leases.get_mut(&job) else { return };
        let Some(at) = leases.iter().position(|lease| lease.answers_to(worker, token)) else { return };
        leases.remove(at);
        let last = leases.is_empty();
        self.unload(worker, job);
        if last {
            self.leases.remove(&job);
            self.reopen(job, outcome);
        } else {
            self.runs.get_mut(&job.run).expect("a leased job has a run").blame(job.number, outcome);
            self.dirty.insert(job);
        }
    }

    /// The last lease of a job ended: it waits for another, and if it is done already, its check does.
    pub(super) fn reopen(&mut self, job: JobId, outcome: LeaseEnd) {
        let run = self.runs.get_mut(&job.run).expect("a leased job has a run");
        if run.slot(job.number).state == JobState::Leased {
            if run.reopen(job.number, outcome, &self.policy) {
                self.failing.insert(job);
            }
        } else {
            run.blame(job.number, outcome);
            self.checks.wait(job);
        }
        self.dirty.insert(job);
    }
}
