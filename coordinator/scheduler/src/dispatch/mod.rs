//! Which worker counts which job: leases, reports and returns, as a pure state machine.
//!
//! No clock, no I/O: time comes in with each call as [`Millis`], and the changed jobs go out as a list to store. A
//! [`Transaction`](crate::Transaction) applies requests to it.
//!
//! ```text
//!          grant                    report
//!  ready --------> leased ------------------------> done
//!    ^               |  return, expiry                |
//!    +---------------+                                | a second result that differs
//!                    |  too many failures or expiries v
//!                    +--------------------------> quarantined
//! ```
//!
//! A result is accepted while its job is open, whoever holds the lease by then: late work is not lost. The lease
//! token protects the lease only: its renewal, its failure and its return.
//!
//! A share of the results is counted a second time, by another machine. `docs/trust.md` has the rules.
//!
//! | module | decides |
//! |---|---|
//! | `grant` | which worker gets which job; `worker_summary` is the summary of workers that it uses, `engines` tells by what each counts |
//! | `lease` | how long a lease lasts, and how it ends |
//! | `report` | what a result is worth |
//! | `checks` | which second counts are open |
//! | `review` | what follows when results agree or differ |
//! | `arbiter` | what the coordinator has to count itself |
//! | `trust` | which machines are checked, how often, and which are untrusted |

mod arbiter;
mod checks;
mod engines;
mod grant;
mod lease;
mod report;
mod review;
mod run;
mod sums;
#[cfg(test)]
mod tests;
mod trust;
mod worker;
mod worker_summary;

use std::collections::{BTreeMap, BTreeSet};

use nqueens_model::credential::Credential;
use nqueens_model::id::{Incarnation, JobId, LeaseToken, RunId, WorkerId};
use nqueens_model::message::{JobResult, Registration};
use nqueens_model::operator::RunState;
use sha2::{Digest, Sha256};

pub use checks::{CheckOutcome, CheckVote};
pub use lease::Held;
pub use report::{Accepted, Judgement};
pub use review::TrustEvent;
pub use run::{Basis, JobState, JobStatus, Run, RunSettings};
pub use sums::{AcceptedSums, Moments, Sums};
pub use trust::{Machine, MachineReputation};
pub use worker::{Busy, Worker};

use checks::Checks;
use lease::{ActiveLease, LeaseEnd};
use trust::Trust;
use worker_summary::WorkerSummary;

/// Milliseconds on a clock that never goes back; only differences mean anything.
pub type Millis = u64;

/// A job as the database is to have it: its slot, and the lease on it with the life of the coordinator that gave it.
pub type ChangedJob = (JobId, JobStatus, Option<(WorkerId, Incarnation)>);

/// The numbers that rule leases.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// Time between two heartbeats of a worker.
    pub beat_ms: u32,
    /// Time from the holder's last heartbeat to the end of its lease.
    pub lease_ms: Millis,
    /// A lease also ends when its holder sends heartbeats but its counting makes no progress: for 10 times the
    /// expected time of all its jobs at its measured speed, and at least for this time.
    pub stall_ms: Millis,
    /// When there is nothing else to do, a job whose lease is older than this may be leased a second time.
    pub second_lease_ms: Millis,
    /// Grace period for leases found in the database at the start.
    pub grace_ms: Millis,
    /// A job with this many failed attempts is quarantined.
    pub failures_max: u32,
    /// A job with this many expired leases is quarantined, or counted by the coordinator.
    pub lapses_max: u32,
    /// Workers of one credential that may be registered and alive at a time.
    pub workers_max: usize,
    /// Whether the coordinator counts jobs itself. Then its counts decide where results differ, and where a job fails.
    pub arbiter: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            beat_ms: 5_000,
            lease_ms: 60_000,
            stall_ms: 600_000,
            second_lease_ms: 5_000,
            grace_ms: 120_000,
            failures_max: 3,
            lapses_max: 20,
            workers_max: 10_000,
            arbiter: false,
        }
    }
}

/// Leases of a run that [`Dispatch::is_counted`] looks at: a look at all would cost too much.
const LEASES_LOOKED_AT: usize = 64;

/// All runs with their jobs, and all leases.
#[derive(Debug)]
pub struct Dispatch {
    policy: Policy,
    incarnation: Incarnation,
    runs: BTreeMap<RunId, Run>,
    /// The leases of each leased job: one, or two for a straggler.
    leases: BTreeMap<JobId, Vec<ActiveLease>>,
    workers: BTreeMap<WorkerId, Worker>,
    worker_summary: Option<WorkerSummary>,
    /// Jobs whose slots differ from the database.
    dirty: BTreeSet<JobId>,
    checks: Checks,
    trust: Trust,
    trust_events: Vec<TrustEvent>,
    /// The credentials that failed to count jobs which are not done.
    failed_by: BTreeMap<JobId, BTreeSet<Credential>>,
    /// Runs that wait for their checks alone, and since when.
    counted_since: BTreeMap<RunId, Millis>,
    /// Workers known from before the coordinator's restart may still hold leases.
    expects_earlier: bool,
    /// What nobody outside can foresee follows from it.
    secret: [u8; 32],
    /// Times that all was read from the database in this life of the coordinator, less one.
    rereads: u64,
}

impl Dispatch {
    /// No runs, no workers yet. `secret` is drawn at random by each coordinator.
    pub fn new(policy: Policy, incarnation: Incarnation, secret: [u8; 32]) -> Self {
        Self {
            policy,
            incarnation,
            runs: BTreeMap::new(),
            leases: BTreeMap::new(),
            workers: BTreeMap::new(),
            worker_summary: None,
            dirty: BTreeSet::new(),
            checks: Checks::default(),
            trust: Trust::default(),
            trust_events: Vec::new(),
            failed_by: BTreeMap::new(),
            counted_since: BTreeMap::new(),
            expects_earlier: true,
            secret,
            rereads: 0,
        }
    }

    /// The same, to be read again in place of an earlier one in the same life of the coordinator: what was asked of that one
    /// is not taken for an answer by this one.
    #[must_use]
    pub fn in_place_of(self, earlier: &Self) -> Self {
        Self { rereads: earlier.rereads + 1, ..self }
    }

    /// Adds a run that the database has.
    pub fn add_run(&mut self, mut run: Run) {
        run.set_rereads(self.rereads);
        let earlier = self.runs.insert(run.id(), run);
        assert!(earlier.is_none(), "a run is added once");
    }

    /// Adds a worker that the database has, or is to have, as it registered.
    pub fn add_worker(&mut self, id: WorkerId, worker: &Registration, credential: Credential) {
        self.workers.entry(id).or_insert_with(|| Worker::new(worker, credential));
        self.worker_summary = None;
    }

    /// Adds what the database knows of a machine.
    pub fn add_reputation(&mut self, machine: Machine, reputation: MachineReputation) {
        self.trust.add(machine, reputation);
    }

    /// Takes up an open check that the database has; the first vote is the accepted result.
    pub fn add_check(&mut self, job: JobId, votes: Vec<CheckVote>) {
        self.trust.count_open(&votes[0].machine, 1);
        self.checks.add(job, votes, self.estimate(job));
    }

    /// The numbers that rule it.
    pub fn policy(&self) -> &Policy {
        &self.policy
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
    pub fn workers(&self) -> impl DoubleEndedIterator<Item = (WorkerId, &Worker)> {
        self.workers.iter().map(|(id, worker)| (*id, worker))
    }

    /// Whether a worker's last heartbeat is recent enough.
    pub fn is_live(&self, now: Millis, worker: WorkerId) -> bool {
        let seen = self.workers.get(&worker).and_then(|worker| worker.seen);
        seen.is_some_and(|seen| now.saturating_sub(seen) < self.policy.lease_ms)
    }

    /// Asks a worker to go; false if it has not registered.
    pub fn set_draining(&mut self, worker: WorkerId) -> bool {
        self.worker_summary = None;
        self.workers.get_mut(&worker).map(|worker| worker.draining = true).is_some()
    }

    /// The leases on a job, each with its holder: one, or two for a straggler.
    pub fn leases(&self, job: JobId) -> impl Iterator<Item = (WorkerId, LeaseToken)> {
        let leases = self.leases.get(&job).into_iter().flatten();
        leases.map(move |lease| (lease.worker, lease.token(job)))
    }

    /// Whether a worker has not ended, as far as is known: it has not said that it does, and its last two heartbeats are not
    /// missing.
    pub fn is_present(&self, now: Millis, worker: &Worker) -> bool {
        let silence_max = 2 * Millis::from(self.policy.beat_ms);
        !worker.left && worker.seen.is_some_and(|seen| now.saturating_sub(seen) <= silence_max)
    }

    /// Whether a machine gets no jobs for now because it failed to count several in a row.
    pub fn is_resting(&self, now: Millis, machine: &Machine) -> bool {
        self.trust.jobs_max(now, machine, 1) == 0
    }

    /// The present workers that hold leases. Looks at every worker.
    pub fn busy(&self, now: Millis) -> Busy {
        let mut busy = Busy::default();
        let holders = self.workers.values().filter(|worker| worker.leases() > 0);
        for worker in holders.filter(|worker| self.is_present(now, worker)) {
            busy.workers += 1;
            busy.threads += u64::from(worker.threads);
            for run in worker.runs() {
                *busy.of_run.entry(run).or_default() += 1;
            }
        }
        busy
    }

    /// Whether somebody is counting a job of a run, as far as can be told: its leases may all wait behind others that their
    /// holders got before. Looks at some of the holders.
    pub fn is_counted(&self, run: RunId) -> bool {
        let job = |number| JobId { run, number };
        let leases = self.leases.range(job(0)..=job(u32::MAX)).flat_map(|(_, leases)| leases);
        let holders: BTreeSet<_> = leases.take(LEASES_LOOKED_AT).map(|lease| lease.worker).collect();
        holders.into_iter().any(|worker| self.begun(worker).any(|(_, job)| job.run == run))
    }

    /// How many jobs of a run present workers count, as far as can be told: their other leases wait behind them. Looks at all
    /// holders.
    pub fn being_counted(&self, now: Millis, run: RunId) -> usize {
        let job = |number| JobId { run, number };
        let leases = self.leases.range(job(0)..=job(u32::MAX)).flat_map(|(_, leases)| leases);
        let mut holders: BTreeSet<_> = leases.map(|lease| lease.worker).collect();
        holders.retain(|worker| self.workers.get(worker).is_some_and(|worker| self.is_present(now, worker)));
        let begun = holders.into_iter().flat_map(|worker| self.begun(worker)).map(|(_, job)| job);
        begun.filter(|job| job.run == run).collect::<BTreeSet<_>>().len()
    }

    /// A result is stored, whatever became of it.
    pub fn spend(&mut self, result: &JobResult) {
        if let Some(run) = self.runs.get_mut(&result.token.job.run) {
            run.spend(result);
        }
    }

    /// A worker has said that it ends.
    pub fn part(&mut self, worker: WorkerId) {
        self.worker_summary = None;
        if let Some(worker) = self.workers.get_mut(&worker) {
            worker.left = true;
        }
    }

    /// Of all faults of a worker's engines, those that it did not tell before. It can't change what it has told.
    pub fn new_faults<'a>(&mut self, worker: WorkerId, faults: &'a [String]) -> &'a [String] {
        let Some(worker) = self.workers.get_mut(&worker) else { return &[] };
        let told = worker.faults_told;
        worker.faults_told = told.max(faults.len());
        faults.get(told..).unwrap_or_default()
    }

    /// Estimated work of a job that exists, in states.
    pub fn estimate(&self, job: JobId) -> u64 {
        self.runs[&job.run].slot(job.number).estimate
    }

    /// Whether a lease asks for the mirror image. In runs whose jobs are counted twice the leap to an epoch is random,
    /// and so is this; the ledger keeps it with the result.
    pub fn is_mirrored(&self, token: &LeaseToken) -> bool {
        self.runs[&token.job.run].is_replicated() && token.epoch.get().is_multiple_of(2)
    }

    /// What is known of a machine.
    pub fn reputation(&self, machine: &Machine) -> MachineReputation {
        self.trust.of(machine)
    }

    /// Why a machine gets no more jobs; `None` while it is trusted.
    pub fn distrusts(&self, machine: &Machine) -> Option<&str> {
        self.trust.distrusts(machine)
    }

    /// Open checks that nobody counts now.
    pub fn checks_waiting(&self) -> usize {
        self.checks.waiting_work().0
    }

    /// A job that exists, as the database is to have it.
    pub fn changed(&self, job: JobId) -> ChangedJob {
        let slot = self.runs[&job.run].slot(job.number);
        // The latest that is alive.
        let lease = self.leases.get(&job).and_then(|leases| leases.last());
        // Leases of checks live in memory alone.
        let lease = lease.filter(|_| !matches!(slot.state, JobState::Done | JobState::Quarantined));
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

    /// Checks that were opened, or ended so, since the last call, in that order.
    pub fn take_checks(&mut self) -> Vec<(JobId, Option<CheckOutcome>)> {
        self.checks.take_changes()
    }

    /// Reputations that changed since the last call.
    pub fn take_standings(&mut self) -> Vec<(Machine, MachineReputation)> {
        self.trust.take_dirty()
    }

    /// What became of trust since the last call.
    pub fn take_trust_events(&mut self) -> Vec<TrustEvent> {
        std::mem::take(&mut self.trust_events)
    }

    /// Changes the state of a run; false if there is no such run. Leases of a cancelled run are revoked.
    pub fn set_run_state(&mut self, id: RunId, state: RunState) -> bool {
        let Some(run) = self.runs.get_mut(&id) else { return false };
        run.set_state(state);
        if state == RunState::Cancelled {
            let out: Vec<_> = self.leases.keys().filter(|job| job.run == id).copied().collect();
            for job in out {
                self.remove_leases(job);
                self.reopen(job, LeaseEnd::Unneeded);
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
        for job in &jobs {
            self.failed_by.remove(job);
            self.close_check(*job, CheckOutcome::Dropped);
        }
        jobs
    }

    /// A number that nobody can predict without the secret; the same for the same question.
    fn draw(&self, what: Lot, job: JobId, epoch: u32) -> u64 {
        let hash = Sha256::new()
            .chain_update(self.secret)
            .chain_update([what as u8])
            .chain_update(job.run.get().to_be_bytes())
            .chain_update(job.number.to_be_bytes())
            .chain_update(epoch.to_be_bytes())
            .finalize();
        u64::from_be_bytes(hash[..8].try_into().expect("8 bytes"))
    }
}

#[derive(Clone, Copy, Debug)]
enum Lot {
    /// Whether a result is checked.
    Check,
    /// How far a job's next epoch is.
    Leap,
    /// The order of leases in an answer.
    Order,
    /// Which past results are counted again.
    Suspect,
}
