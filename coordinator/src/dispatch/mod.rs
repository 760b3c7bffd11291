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
mod simulation;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use nqueens_kernel::counts::Counts;
use nqueens_proto::id::{Incarnation, JobId, LeaseToken, RunId, WorkerId};
use nqueens_proto::message::{HeldLease, JobResult, ReturnedLease, Verdict};

pub use nqueens_proto::operator::RunState;
pub use run::{JobState, Moments, Run, Slot, Sums};

/// Milliseconds on a clock that never goes back; only differences mean anything.
pub type Millis = u64;

/// The numbers that rule leases.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// A lease ends so long after its holder was last heard of.
    pub lease_ms: Millis,
    /// It also ends when its holder sends heartbeats but its counting has not moved for ten times as long as all that
    /// the holder has should take at its measured speed, and at least for so long.
    pub stall_ms: Millis,
    /// When there is nothing else to do, a job whose lease is older than this may be leased a second time.
    pub second_lease_ms: Millis,
    /// Leases found in the database at start end so long after it, unless renewed.
    pub grace_ms: Millis,
    /// A job with so many failed attempts is quarantined.
    pub failures_max: u32,
    /// A job with so many leases run out is quarantined.
    pub lapses_max: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            lease_ms: 60_000,
            stall_ms: 600_000,
            second_lease_ms: 5_000,
            grace_ms: 120_000,
            failures_max: 3,
            lapses_max: 20,
        }
    }
}

/// One holder's claim on one job.
#[derive(Clone, Copy, Debug)]
struct Lease {
    epoch: NonZeroU32,
    incarnation: Incarnation,
    worker: WorkerId,
    granted: Millis,
    /// Ends then unless its holder is heard of.
    expires: Millis,
    /// Ends then unless its counting moves.
    stalls: Millis,
    /// How far its counting was when last heard of, in states.
    states: u64,
    /// Taken up from the database, which has the number of the job's latest lease alone: this one's may be an earlier.
    inherited: bool,
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
    /// States visited.
    pub states: u64,
    /// Thread time, in microseconds.
    pub elapsed_us: u64,
}

/// A worker's process, as far as leases go.
#[derive(Clone, Debug)]
pub struct Worker {
    /// Its counting threads.
    pub threads: u32,
    /// When it was last heard of.
    pub seen: Option<Millis>,
    /// Measured speed of one thread, in estimated states a second.
    pub states_per_s: Option<f64>,
    /// Results accepted from it since the coordinator started.
    pub accepted: u64,
    /// An operator wants it to go.
    pub draining: bool,
    jobs: BTreeSet<JobId>,
    /// Estimated work of its jobs, in states.
    estimate: u128,
}

impl Worker {
    fn new(threads: u32) -> Self {
        Self {
            threads,
            seen: None,
            states_per_s: None,
            accepted: 0,
            draining: false,
            jobs: BTreeSet::new(),
            estimate: 0,
        }
    }

    /// Jobs leased to it.
    pub fn leases(&self) -> usize {
        self.jobs.len()
    }

    /// Learns from a result how fast it is.
    #[expect(clippy::cast_precision_loss, reason = "a speed")]
    fn measure(&mut self, estimate: u64, elapsed_us: u64) {
        self.accepted += 1;
        let sample = estimate as f64 / (elapsed_us.max(1) as f64 / 1e6);
        let known = self.states_per_s.unwrap_or(sample);
        // A moving mean over some ten results.
        self.states_per_s = Some(known + 0.1 * (sample - known));
    }
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
    /// The leases of each leased job: one, or two for a straggler.
    leases: BTreeMap<JobId, Vec<Lease>>,
    workers: BTreeMap<WorkerId, Worker>,
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
            workers: BTreeMap::new(),
            dirty: BTreeSet::new(),
        }
    }

    /// Adds a run that the database has.
    pub fn add_run(&mut self, run: Run) {
        let earlier = self.runs.insert(run.id(), run);
        assert!(earlier.is_none(), "a run is added once");
    }

    /// Adds a worker that the database has.
    pub fn add_worker(&mut self, worker: WorkerId, threads: u32) {
        self.workers.entry(worker).or_insert_with(|| Worker::new(threads));
    }

    /// Takes up a lease that an earlier life of the coordinator gave; it ends after the grace time unless renewed.
    pub fn add_lease(&mut self, now: Millis, worker: WorkerId, token: LeaseToken) {
        let slot = self.runs[&token.job.run].slot(token.job.number);
        assert_eq!((slot.state, slot.epoch), (JobState::Leased, token.epoch.get()), "job {}", token.job);
        let lease = Lease {
            epoch: token.epoch,
            incarnation: token.incarnation,
            worker,
            granted: now,
            expires: now.saturating_add(self.policy.grace_ms),
            stalls: now.saturating_add(self.policy.grace_ms.max(self.policy.stall_ms)),
            states: 0,
            inherited: true,
        };
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

    /// A worker that has registered.
    pub fn worker(&self, worker: WorkerId) -> Option<&Worker> {
        self.workers.get(&worker)
    }

    /// All workers that have registered.
    pub fn workers(&self) -> impl Iterator<Item = (WorkerId, &Worker)> {
        self.workers.iter().map(|(id, worker)| (*id, worker))
    }

    /// Asks a worker to go; false if it has not registered.
    pub fn set_draining(&mut self, worker: WorkerId) -> bool {
        self.workers.get_mut(&worker).map(|worker| worker.draining = true).is_some()
    }

    /// Workers that hold a lease.
    pub fn busy_workers(&self) -> usize {
        self.workers.values().filter(|worker| !worker.jobs.is_empty()).count()
    }

    /// Estimated work of a job that exists, in states.
    pub fn estimate(&self, job: JobId) -> u64 {
        self.runs[&job.run].slot(job.number).estimate
    }

    /// A job that exists as the database is to have it: its slot, and the lease on it.
    pub fn changed(&self, job: JobId) -> (JobId, Slot, Option<(WorkerId, Incarnation)>) {
        let slot = self.runs[&job.run].slot(job.number);
        // The latest that is alive.
        let lease = self.leases.get(&job).and_then(|leases| leases.last());
        let lease = lease.map(|lease| (lease.worker, lease.incarnation));
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
            self.end_lease(worker, &result.token, Outcome::Failed);
            return Judgement::kept(Verdict::Implausible, "these counts can't be right for the job");
        }
        run.accept(job.number, result);
        if let Some(worker) = self.workers.get_mut(&worker) {
            worker.measure(slot.estimate, result.elapsed_us);
        }
        self.remove_leases(job);
        self.dirty.insert(job);
        Judgement::kept(Verdict::Accepted, "")
    }

    /// A second result differs from the accepted one: nobody knows which is right, so the job counts for nothing
    /// until somebody has looked.
    fn dispute(&mut self, worker: WorkerId, result: &JobResult, accepted: &Accepted) -> Judgement {
        let job = result.token.job;
        let run = self.runs.get_mut(&job.run).expect("looked up before");
        if run.slot(job.number).state == JobState::Done {
            run.withdraw(job.number, accepted);
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
        let outcome = if returned.failure.is_some() { Outcome::Failed } else { Outcome::Unneeded };
        self.end_lease(worker, &returned.token, outcome);
    }

    /// A worker names all the leases that it holds: they are renewed.
    ///
    /// A lease that has ended meanwhile is given again as it was if nobody else has had its job since.
    pub fn heartbeat(&mut self, now: Millis, worker: WorkerId, held: &[HeldLease]) -> Held {
        let Some(known) = self.workers.get_mut(&worker) else { return Held::default() };
        known.seen = Some(now);
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
            let (epoch, incarnation) = (run.lease_again(job.number), self.incarnation);
            let lease = leases.remove(at);
            leases.push(Lease { epoch, incarnation, inherited: false, ..lease });
            self.dirty.insert(job);
            return LeaseToken { job, epoch, incarnation };
        }
        leases[at].token(job)
    }

    fn renew(&mut self, now: Millis, worker: WorkerId, held: &HeldLease) -> bool {
        let token = &held.token;
        let (expires, stalls) = self.deadlines(now, worker);
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
        let Some(run) = self.runs.get_mut(&token.job.run) else { return false };
        let latest = token.incarnation == self.incarnation
            && run.contains(token.job.number)
            && run.slot(token.job.number).epoch == token.epoch.get();
        let revived = latest && run.state() == RunState::Active && run.revive(token.job.number);
        if revived {
            let LeaseToken { epoch, incarnation, .. } = *token;
            let states = held.states;
            let inherited = false;
            let lease =
                Lease { epoch, incarnation, worker, granted: now, expires, stalls, states, inherited };
            self.insert_lease(token.job, lease);
            self.dirty.insert(token.job);
        }
        revived
    }

    /// When a lease that a worker has ends: unless it is heard of, and unless its counting moves.
    fn deadlines(&self, now: Millis, worker: WorkerId) -> (Millis, Millis) {
        let patience = self.time_for_all(worker).saturating_mul(10).max(self.policy.stall_ms);
        (now.saturating_add(self.policy.lease_ms), now.saturating_add(patience))
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
        let Some(speed) = worker.states_per_s else { return 0 };
        (1e3 * worker.estimate as f64 / (speed * f64::from(worker.threads))) as Millis
    }

    /// Leases jobs of the active runs to a worker, in their runs' random order, until they come to `states` states of
    /// estimated work or to `jobs_max` jobs.
    ///
    /// Runs of higher priority come first; among equals the one with the least work out. A worker never has more than
    /// half of its share of what is left, so that all end together; and when nothing is ready, a worker without a job
    /// helps with the oldest job that is out.
    pub fn grant(&mut self, now: Millis, worker: WorkerId, states: u64, jobs_max: usize) -> Vec<LeaseToken> {
        let mut granted = Vec::new();
        if self.workers.get(&worker).is_none_or(|worker| worker.draining) {
            return granted;
        }
        let mut open = states.min(self.fair_share(now, worker));
        while open > 0 && granted.len() < jobs_max {
            let Some(token) = self.lease_ready(now, worker) else { break };
            open = open.saturating_sub(self.estimate(token.job));
            granted.push(token);
        }
        if granted.is_empty() && states > 0 && jobs_max > 0 && self.workers[&worker].jobs.is_empty() {
            granted.extend(self.lease_straggler(now, worker));
        }
        granted
    }

    /// Whether a worker was heard of in time.
    pub fn is_live(&self, now: Millis, worker: WorkerId) -> bool {
        let seen = self.workers.get(&worker).and_then(|worker| worker.seen);
        seen.is_some_and(|seen| now.saturating_sub(seen) < self.policy.lease_ms)
    }

    /// What a worker may take so that all end together: half of its threads' share of the work that is ready or out,
    /// less what it has. At least one job as long as it has fewer jobs than threads; everything if it is alone.
    fn fair_share(&self, now: Millis, id: WorkerId) -> u64 {
        let worker = &self.workers[&id];
        let live = |(other, worker): &(&WorkerId, &Worker)| {
            **other == id || worker.seen.is_some_and(|seen| now.saturating_sub(seen) <= self.policy.lease_ms)
        };
        let threads: u128 =
            self.workers.iter().filter(live).map(|(_, worker)| u128::from(worker.threads)).sum();
        let own = u128::from(worker.threads);
        if threads == own {
            return u64::MAX;
        }
        let active = self.runs.values().filter(|run| run.state() == RunState::Active);
        let open: u128 = active.map(|run| run.estimate_ready() + run.sums().estimate_leased).sum();
        let share = (open * own / (2 * threads)).saturating_sub(worker.estimate);
        let at_least = u64::from(worker.jobs.len() < worker.threads as usize);
        u64::try_from(share).unwrap_or(u64::MAX).max(at_least)
    }

    fn lease_ready(&mut self, now: Millis, worker: WorkerId) -> Option<LeaseToken> {
        let ready = self.runs.values_mut().filter(|run| run.estimate_ready() > 0);
        let run = ready.min_by_key(|run| (std::cmp::Reverse(run.priority()), run.sums().estimate_leased))?;
        let (number, epoch) = run.lease_next()?;
        let job = JobId { run: run.id(), number };
        Some(self.lease(now, worker, job, epoch))
    }

    fn lease_straggler(&mut self, now: Millis, worker: WorkerId) -> Option<LeaseToken> {
        let active = |job: &JobId| self.runs[&job.run].state() == RunState::Active;
        let old = self.leases.iter().filter_map(|(job, leases)| match leases[..] {
            [only] if only.worker != worker && active(job) => Some((only.granted, *job)),
            _ => None,
        });
        let (granted, job) = old.min()?;
        if now.saturating_sub(granted) < self.policy.second_lease_ms {
            return None;
        }
        let epoch = self.runs.get_mut(&job.run)?.lease_again(job.number);
        Some(self.lease(now, worker, job, epoch))
    }

    fn lease(&mut self, now: Millis, worker: WorkerId, job: JobId, epoch: NonZeroU32) -> LeaseToken {
        let incarnation = self.incarnation;
        let (expires, stalls) = self.deadlines(now, worker);
        let (states, inherited) = (0, false);
        let lease = Lease { epoch, incarnation, worker, granted: now, expires, stalls, states, inherited };
        self.insert_lease(job, lease);
        self.dirty.insert(job);
        lease.token(job)
    }

    /// Ends the leases whose holders were not heard of in time, or whose counting does not move; returns what ended.
    pub fn expire(&mut self, now: Millis) -> Vec<(WorkerId, LeaseToken)> {
        let all = self.leases.iter().flat_map(|(job, leases)| leases.iter().map(|lease| (*job, lease)));
        let ended = all.filter(|(_, lease)| lease.expires.min(lease.stalls) <= now);
        let ended: Vec<_> = ended.map(|(job, lease)| (lease.worker, lease.token(job))).collect();
        for (worker, token) in &ended {
            self.end_lease(*worker, token, Outcome::Lapsed);
        }
        ended
    }

    /// Takes all leases back at once, at no cost to their jobs; for a coordinator that knows all its workers gone.
    pub fn release_all(&mut self) {
        for job in self.leases.keys().copied().collect::<Vec<_>>() {
            self.remove_leases(job);
            self.reopen(job, Outcome::Unneeded);
        }
    }

    /// Changes what a run is doing; false if there is no such run. Leases of a cancelled run are taken back.
    pub fn set_run_state(&mut self, id: RunId, state: RunState) -> bool {
        let Some(run) = self.runs.get_mut(&id) else { return false };
        run.set_state(state);
        if state == RunState::Cancelled {
            let out: Vec<_> = self.leases.keys().filter(|job| job.run == id).copied().collect();
            for job in out {
                self.remove_leases(job);
                self.reopen(job, Outcome::Unneeded);
            }
        }
        true
    }

    /// Opens the quarantined jobs of a run again, their failures forgotten; returns them. Results that stood for them
    /// stand no longer.
    pub fn retry_quarantined(&mut self, id: RunId) -> Vec<JobId> {
        let Some(run) = self.runs.get_mut(&id) else { return Vec::new() };
        let jobs: Vec<_> =
            run.retry_quarantined().into_iter().map(|number| JobId { run: id, number }).collect();
        self.dirty.extend(&jobs);
        jobs
    }

    fn insert_lease(&mut self, job: JobId, lease: Lease) {
        let estimate = u128::from(self.estimate(job));
        let worker = self.workers.entry(lease.worker).or_insert_with(|| Worker::new(1));
        worker.jobs.insert(job);
        worker.estimate += estimate;
        let leases = self.leases.entry(job).or_default();
        assert!(
            leases.iter().all(|other| other.worker != lease.worker),
            "job {job} is leased to a worker once"
        );
        leases.push(lease);
    }

    fn remove_leases(&mut self, job: JobId) {
        for lease in self.leases.remove(&job).unwrap_or_default() {
            self.unload(lease.worker, job);
        }
    }

    fn unload(&mut self, worker: WorkerId, job: JobId) {
        let estimate = u128::from(self.estimate(job));
        let worker = self.workers.get_mut(&worker).expect("holders are known");
        assert!(worker.jobs.remove(&job), "job {job} was leased to it");
        worker.estimate -= estimate;
    }

    /// Ends one lease, if it is alive. The job stays leased if somebody else has it too.
    fn end_lease(&mut self, worker: WorkerId, token: &LeaseToken, outcome: Outcome) {
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
