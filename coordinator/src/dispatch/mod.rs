//! Who counts which job: leases, reports and returns, as a pure state machine.
//!
//! No clock, no I/O: time comes in with each call as [`Millis`], what changed goes out as a list of jobs to store.
//! The `writer` owns the one [`Dispatch`] of a process, and lets nobody see a change before it is on
//! disk.
//!
//! ```text
//!          grant                    report
//!  ready --------> leased ------------------------> done
//!    ^               |  return, expiry                |
//!    +---------------+                                | a second result that differs
//!                    |  too many failures or lapses   v
//!                    +--------------------------> quarantined
//! ```
//!
//! A result is welcome as long as its job is open, whoever holds the lease by then: late work is not thrown away.
//! What a lease's token fences is the lease: renewing it, failing it, giving it back.

mod run;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroU32;

use nqueens_kernel::counts::Counts;
use nqueens_proto::id::{Incarnation, JobId, LeaseToken, RunId, WorkerId};
use nqueens_proto::message::{HeldLease, JobResult, ReturnedLease, Verdict};

pub use run::{JobState, Run, RunState, Slot, Sums};

/// Milliseconds on a clock that never goes back; only differences mean anything.
pub type Millis = u64;

/// The numbers that rule leases.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// A lease ends so long after its holder was last heard of.
    pub lease_ms: Millis,
    /// Leases found in the database at start end so long after it, unless renewed.
    pub grace_ms: Millis,
    /// A job with so many failed attempts is quarantined.
    pub failures_max: u32,
    /// A job with so many leases run out is quarantined.
    pub lapses_max: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Self { lease_ms: 60_000, grace_ms: 120_000, failures_max: 3, lapses_max: 20 }
    }
}

/// One holder's claim on one job.
#[derive(Clone, Copy, Debug)]
struct Lease {
    epoch: NonZeroU32,
    incarnation: Incarnation,
    worker: WorkerId,
    expires: Millis,
}

impl Lease {
    fn answers_to(&self, worker: WorkerId, token: &LeaseToken) -> bool {
        self.worker == worker && self.epoch == token.epoch && self.incarnation == token.incarnation
    }

    fn token(&self, job: JobId) -> LeaseToken {
        LeaseToken { job, epoch: self.epoch, incarnation: self.incarnation }
    }
}

/// The result that stands for a job, as the database has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Who counted.
    pub worker: WorkerId,
    /// Under which lease.
    pub epoch: NonZeroU32,
    /// And whose.
    pub incarnation: Incarnation,
    /// What came out.
    pub counts: Counts,
}

/// What [`Dispatch::report`] made of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// What became of it.
    pub verdict: Verdict,
    /// Whether it is news that belongs into the ledger.
    pub keep: bool,
    /// Why it was not accepted; empty if it was.
    pub reason: String,
}

impl Judgement {
    fn kept(verdict: Verdict, reason: impl Into<String>) -> Self {
        Self { verdict, keep: true, reason: reason.into() }
    }

    fn passing(verdict: Verdict, reason: impl Into<String>) -> Self {
        Self { verdict, keep: false, reason: reason.into() }
    }
}

/// A worker's leases, as its heartbeat found them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Its leases that it did not name: their grant got lost on the way.
    pub lost: Vec<LeaseToken>,
    /// Tokens that it named and that hold nothing any more.
    pub revoked: Vec<LeaseToken>,
}

/// All runs with their jobs, and all leases.
#[derive(Debug)]
pub struct Dispatch {
    policy: Policy,
    incarnation: Incarnation,
    runs: BTreeMap<RunId, Run>,
    leases: BTreeMap<JobId, Lease>,
    workers: HashMap<WorkerId, BTreeSet<JobId>>,
    /// Jobs whose slots differ from the database.
    dirty: BTreeSet<JobId>,
}

impl Dispatch {
    /// No runs, no workers yet.
    pub fn new(policy: Policy, incarnation: Incarnation) -> Self {
        Self {
            policy,
            incarnation,
            runs: BTreeMap::new(),
            leases: BTreeMap::new(),
            workers: HashMap::new(),
            dirty: BTreeSet::new(),
        }
    }

    /// Adds a run that the database has.
    pub fn add_run(&mut self, run: Run) {
        let earlier = self.runs.insert(run.id(), run);
        assert!(earlier.is_none(), "a run is added once");
    }

    /// Adds a worker that the database has.
    pub fn add_worker(&mut self, worker: WorkerId) {
        self.workers.entry(worker).or_default();
    }

    /// Takes up a lease that an earlier life of the coordinator gave; it ends after the grace time unless renewed.
    pub fn add_lease(&mut self, now: Millis, worker: WorkerId, token: LeaseToken) {
        let slot = self.runs[&token.job.run].slot(token.job.number);
        assert_eq!((slot.state, slot.epoch), (JobState::Leased, token.epoch.get()), "job {}", token.job);
        let expires = now.saturating_add(self.policy.grace_ms);
        let lease = Lease { epoch: token.epoch, incarnation: token.incarnation, worker, expires };
        self.insert_lease(token.job, lease);
    }

    /// The runs, by id.
    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.values()
    }

    /// One run.
    pub fn run(&self, id: RunId) -> Option<&Run> {
        self.runs.get(&id)
    }

    /// One run, to change its state.
    pub fn run_mut(&mut self, id: RunId) -> Option<&mut Run> {
        self.runs.get_mut(&id)
    }

    /// Whether this worker has registered.
    pub fn knows(&self, worker: WorkerId) -> bool {
        self.workers.contains_key(&worker)
    }

    /// Workers that hold a lease.
    pub fn busy_workers(&self) -> usize {
        self.workers.values().filter(|jobs| !jobs.is_empty()).count()
    }

    /// Estimated work of a job that exists, in states.
    pub fn estimate(&self, job: JobId) -> u64 {
        self.runs[&job.run].slot(job.number).estimate
    }

    /// A job that exists as the database is to have it: its slot, and the lease on it.
    pub fn changed(&self, job: JobId) -> (JobId, Slot, Option<(WorkerId, Incarnation)>) {
        let slot = self.runs[&job.run].slot(job.number);
        let lease = self.leases.get(&job).map(|lease| (lease.worker, lease.incarnation));
        assert_eq!(
            slot.state == JobState::Leased,
            lease.is_some(),
            "job {job} is leased if somebody has a lease on it"
        );
        (job, slot, lease)
    }

    /// The jobs that changed since the last call: their slots belong into the database.
    pub fn take_dirty(&mut self) -> BTreeSet<JobId> {
        std::mem::take(&mut self.dirty)
    }

    /// Judges a result. `accepted` is the result that stands for the job already, if one does; `plausible` says
    /// whether the counts can be right for the job.
    pub fn report(
        &mut self,
        worker: WorkerId,
        result: &JobResult,
        accepted: Option<&Accepted>,
        plausible: bool,
    ) -> Judgement {
        let LeaseToken { job, epoch, incarnation } = result.token;
        let Some(run) = self.runs.get_mut(&job.run).filter(|run| run.contains(job.number)) else {
            return Judgement::passing(Verdict::Unknown, "no such run or job here");
        };
        let slot = run.slot(job.number);
        assert_eq!(slot.state == JobState::Done, accepted.is_some() && slot.state != JobState::Quarantined);
        if incarnation == self.incarnation && epoch.get() > slot.epoch {
            return Judgement::passing(Verdict::Unknown, "this lease was never given out");
        }
        if let Some(accepted) = accepted {
            if accepted.counts != result.counts {
                return self.dispute(worker, result, accepted);
            }
            let again =
                (accepted.worker, accepted.epoch, accepted.incarnation) == (worker, epoch, incarnation);
            return if again {
                Judgement::passing(Verdict::Accepted, "")
            } else {
                Judgement::kept(Verdict::Duplicate, "the job was done already, with the same counts")
            };
        }
        if slot.state == JobState::Quarantined || run.state() == RunState::Cancelled {
            return Judgement::kept(Verdict::SetAside, "the job is quarantined or its run is cancelled");
        }
        if !plausible {
            if self.drop_lease(worker, &result.token) {
                self.reopen(job, Outcome::Failed);
            }
            return Judgement::kept(Verdict::Implausible, "these counts can't be right for the job");
        }
        run.accept(job.number, result);
        self.remove_lease(job);
        self.dirty.insert(job);
        Judgement::kept(Verdict::Accepted, "")
    }

    /// A second result differs from the accepted one: nobody knows which is right, so the job counts for nothing
    /// until somebody has looked.
    fn dispute(&mut self, worker: WorkerId, result: &JobResult, accepted: &Accepted) -> Judgement {
        let job = result.token.job;
        let run = self.runs.get_mut(&job.run).expect("looked up before");
        if run.slot(job.number).state == JobState::Done {
            run.withdraw(job.number, accepted.counts);
            self.dirty.insert(job);
        }
        let reason = format!(
            "worker {} counted {:?} for job {job}, worker {worker} with {} counted {:?}",
            accepted.worker, accepted.counts, result.kernel, result.counts
        );
        Judgement::kept(Verdict::Conflict, reason)
    }

    /// A worker gives a lease back. A token that holds nothing is passed over.
    pub fn give_back(&mut self, worker: WorkerId, returned: &ReturnedLease) {
        if self.drop_lease(worker, &returned.token) {
            let outcome = if returned.failure.is_some() { Outcome::Failed } else { Outcome::Unneeded };
            self.reopen(returned.token.job, outcome);
        }
    }

    /// A worker names all the leases that it holds: they are renewed.
    ///
    /// A lease that has ended meanwhile is given again as it was if nobody else has had its job since.
    pub fn heartbeat(&mut self, now: Millis, worker: WorkerId, held: &[HeldLease]) -> Held {
        let mut lost = self.workers.get(&worker).cloned().unwrap_or_default();
        let mut revoked = Vec::new();
        for HeldLease { token, .. } in held {
            if self.renew(now, worker, token) {
                lost.remove(&token.job);
            } else {
                revoked.push(*token);
            }
        }
        Held { lost: lost.iter().map(|job| self.leases[job].token(*job)).collect(), revoked }
    }

    fn renew(&mut self, now: Millis, worker: WorkerId, token: &LeaseToken) -> bool {
        let expires = now + self.policy.lease_ms;
        if let Some(lease) = self.leases.get_mut(&token.job) {
            if lease.answers_to(worker, token) {
                lease.expires = lease.expires.max(expires);
                return true;
            }
            return false;
        }
        let Some(run) = self.runs.get_mut(&token.job.run) else { return false };
        let latest = token.incarnation == self.incarnation
            && run.contains(token.job.number)
            && run.slot(token.job.number).epoch == token.epoch.get();
        let revived = latest && run.state() == RunState::Active && run.revive(token.job.number);
        if revived {
            let lease = Lease { epoch: token.epoch, incarnation: token.incarnation, worker, expires };
            self.insert_lease(token.job, lease);
            self.dirty.insert(token.job);
        }
        revived
    }

    /// Leases ready jobs of the active runs to a worker, in their runs' random order, until they come to `states`
    /// states of estimated work or to `jobs_max` jobs.
    pub fn grant(&mut self, now: Millis, worker: WorkerId, states: u64, jobs_max: usize) -> Vec<LeaseToken> {
        let mut granted = Vec::new();
        let mut open = states;
        while open > 0 && granted.len() < jobs_max {
            let mut runs = self.runs.values_mut();
            let next = runs.find_map(|run| run.lease_next().map(|leased| (run, leased)));
            let Some((run, (number, epoch))) = next else { break };
            let job = JobId { run: run.id(), number };
            open = open.saturating_sub(run.estimate(number));
            let expires = now + self.policy.lease_ms;
            let lease = Lease { epoch, incarnation: self.incarnation, worker, expires };
            self.insert_lease(job, lease);
            self.dirty.insert(job);
            granted.push(lease.token(job));
        }
        granted
    }

    /// Ends the leases whose holders were not heard of in time; returns what ended.
    pub fn expire(&mut self, now: Millis) -> Vec<(WorkerId, LeaseToken)> {
        let ended = self.leases.iter().filter(|(_, lease)| lease.expires <= now);
        let ended: Vec<_> = ended.map(|(job, lease)| (lease.worker, lease.token(*job))).collect();
        for (_, token) in &ended {
            self.remove_lease(token.job);
            self.reopen(token.job, Outcome::Lapsed);
        }
        ended
    }

    /// Takes all leases back at once, at no cost to their jobs; for a coordinator that knows all its workers gone.
    pub fn release_all(&mut self) {
        for job in self.leases.keys().copied().collect::<Vec<_>>() {
            self.remove_lease(job);
            self.reopen(job, Outcome::Unneeded);
        }
    }

    fn insert_lease(&mut self, job: JobId, lease: Lease) {
        self.workers.entry(lease.worker).or_default().insert(job);
        let earlier = self.leases.insert(job, lease);
        assert!(earlier.is_none(), "job {job} is leased once at a time");
    }

    fn remove_lease(&mut self, job: JobId) {
        if let Some(lease) = self.leases.remove(&job) {
            self.workers.entry(lease.worker).or_default().remove(&job);
        }
    }

    fn drop_lease(&mut self, worker: WorkerId, token: &LeaseToken) -> bool {
        let live = self.leases.get(&token.job).is_some_and(|lease| lease.answers_to(worker, token));
        if live {
            self.remove_lease(token.job);
        }
        live
    }

    fn reopen(&mut self, job: JobId, outcome: Outcome) {
        let run = self.runs.get_mut(&job.run).expect("a leased job has a run");
        run.reopen(job.number, outcome, &self.policy);
        self.dirty.insert(job);
    }
}

/// How a lease ended without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Given back by a worker that has no use for it.
    Unneeded,
    /// The attempt failed.
    Failed,
    /// Its holder was not heard of in time.
    Lapsed,
}
