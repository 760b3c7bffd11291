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
//! A result is accepted while its job is open, whoever holds the lease by then, if its token was given to its credential:
//! late work is not lost, and nothing is made up. Once it is accepted no worker takes it back.
//!
//! A share of the results is counted a second time by another machine, or by the coordinator. `docs/trust.md` has the rules.
//!
//! | module | decides |
//! |---|---|
//! | `grant` | which worker gets which job; `worker_summary` is the summary of workers that it uses |
//! | `share` | how much each credential may take up |
//! | `ticket` | which tokens are ours, and what falls to which lot |
//! | `lease` | how long a lease lasts, and how it ends |
//! | `report` | what a result is worth |
//! | `checks` | which second counts are open |
//! | `review` | what follows when results agree, or somebody was wrong |
//! | `recounts` | what the coordinator counts itself |
//! | `trust` | which machines are out |

mod checks;
mod grant;
mod job;
mod lease;
mod order;
mod recounts;
mod report;
mod review;
mod run;
mod share;
mod sums;
#[cfg(test)]
mod tests;
mod ticket;
mod trust;
mod worker;
mod worker_summary;

use std::collections::{BTreeMap, BTreeSet};

use nqueens_kernel::counts::Counts;
use nqueens_kernel::known::published;
use nqueens_model::credential::Credential;
use nqueens_model::id::{JobId, LeaseToken, RunId, WorkerId};
use nqueens_model::message::Registration;
use nqueens_model::operator::RunState;

pub use checks::{CheckOutcome, Differing};
pub use job::{JobState, JobStatus};
pub use lease::Held;
pub(crate) use recounts::Finding;
pub use recounts::{Task, Why};
pub use report::{Accepted, Judgement};
pub use review::{InDoubt, Outcast};
pub use run::{Basis, Run, RunSettings};
pub use sums::{AcceptedSums, Moments, Sums};
pub use trust::{Machine, MachineReputation};
pub use worker::{Busy, Crew, Pace, Worker, shared_work};

use checks::Checks;
use lease::{ActiveLease, LeaseEnd};
use share::Shares;
use ticket::{Key, Lot};
use trust::Trust;
use worker_summary::WorkerSummary;

/// Milliseconds on a clock that never goes back; only differences mean anything.
pub type Millis = u64;

/// A job as the database is to have it: its slot, and who has the lease on it.
pub type ChangedJob = (JobId, JobStatus, Option<WorkerId>);

#[derive(Clone, Copy, Debug)]
pub struct Policy {
    pub beat_ms: u32,
    /// Time from the holder's last heartbeat to the end of its lease.
    pub lease_ms: Millis,
    /// A lease also ends when its holder sends heartbeats but its counting makes no progress: for 10 times the
    /// expected time of all its jobs at its measured speed, and at least for this time.
    pub stall_ms: Millis,
    /// When there is nothing else to do, a job whose lease is older than this may be leased a second time, after twice the
    /// time a third time, and so on; while its holder sends heartbeats, not before it is late by its own speed.
    pub second_lease_ms: Millis,
    /// No lease lasts longer, whatever its holder says of its progress, but for time in which the coordinator was away.
    pub lease_age_ms: Millis,
    /// Grace period for leases found in the database at the start.
    pub grace_ms: Millis,
    /// A job with this many failed attempts is quarantined.
    pub failures_max: u32,
    /// A job with this many expired leases is quarantined, or counted by the coordinator.
    pub lapses_max: u32,
    /// Workers of one credential that may be registered and alive at a time, and that may register in an hour.
    pub workers_max: usize,
    /// Whether the coordinator counts jobs itself. Then its counts decide where results differ, and where a job fails.
    pub arbiter: bool,
    /// Jobs, or parts of jobs, of a run that it recounts before there is a total.
    pub recounts_min: u32,
    /// Whether it believes published counts: then it recounts nothing of a board that has one, unless there are second counts.
    pub published: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            beat_ms: 5_000,
            lease_ms: 60_000,
            stall_ms: 600_000,
            second_lease_ms: 5_000,
            lease_age_ms: 6 * 3_600_000,
            grace_ms: 120_000,
            failures_max: 3,
            lapses_max: 20,
            workers_max: 10_000,
            arbiter: false,
            recounts_min: 60,
            published: true,
        }
    }
}

/// Leases of a run that [`Dispatch::is_counted`] looks at: a look at all would cost too much.
const LEASES_LOOKED_AT: usize = 64;

#[derive(Debug)]
pub struct Dispatch {
    pub(crate) policy: Policy,
    runs: BTreeMap<RunId, Run>,
    /// The leases of each leased job: one, or some for a straggler.
    leases: BTreeMap<JobId, Vec<ActiveLease>>,
    workers: BTreeMap<WorkerId, Worker>,
    worker_summary: Option<WorkerSummary>,
    /// Jobs whose slots differ from the database.
    pub(crate) dirty: BTreeSet<JobId>,
    pub(crate) checks: Checks,
    pub(crate) trust: Trust,
    /// Who was put out, and what that has in doubt is not taken back yet.
    pub(crate) outcasts: Vec<Outcast>,
    shares: Shares,
    /// Jobs that the coordinator is to try, because workers fail.
    failing: BTreeSet<JobId>,
    /// Jobs that it can't count.
    given_up: BTreeSet<JobId>,
    /// Jobs that were drawn and that it can't recount: it does so where results differ, and else not.
    undrawn: BTreeSet<JobId>,
    /// Jobs whose second counts it can't make in the place of others.
    unhelped: BTreeSet<JobId>,
    /// Runs that wait for their second counts and recounts alone, and since when.
    counted_since: BTreeMap<RunId, Millis>,
    /// Workers of which nothing was heard since all was read from the database may be there: they were heard of until then.
    earlier_seen: Option<Millis>,
    /// When the last transaction began.
    looked: Option<Millis>,
    /// Workers that are asked to go, which the database does not have.
    draining: BTreeSet<WorkerId>,
    key: Key,
    /// Times that all was read from the database in this life of the coordinator, less one.
    rereads: u64,
}

impl Dispatch {
    /// No runs, no workers yet. `key` is the database's.
    pub fn new(policy: Policy, key: &[u8; 32]) -> Self {
        Self {
            policy,
            runs: BTreeMap::new(),
            leases: BTreeMap::new(),
            workers: BTreeMap::new(),
            worker_summary: None,
            dirty: BTreeSet::new(),
            checks: Checks::default(),
            trust: Trust::default(),
            outcasts: Vec::new(),
            shares: Shares::new(),
            failing: BTreeSet::new(),
            given_up: BTreeSet::new(),
            undrawn: BTreeSet::new(),
            unhelped: BTreeSet::new(),
            counted_since: BTreeMap::new(),
            earlier_seen: Some(0),
            looked: None,
            draining: BTreeSet::new(),
            key: Key::new(key),
            rereads: 0,
        }
    }

    /// The same, to be read again in place of an earlier one in the same life of the coordinator: what was asked of that one
    /// is not taken for an answer by this one.
    #[must_use]
    pub fn in_place_of(self, now: Millis, earlier: &Self) -> Self {
        Self {
            rereads: earlier.rereads + 1,
            earlier_seen: Some(now),
            draining: earlier.draining.clone(),
            ..self
        }
    }

    pub fn add_run(&mut self, mut run: Run) {
        run.rereads = self.rereads;
        if self.policy.arbiter && (run.is_replicated() || !self.is_published(&run)) {
            run.set_order_of_recounts(self.key.order_of_recounts(run.id(), run.jobs()));
        }
        let failing = |number: &u32| self.policy.arbiter && run.is_failing(*number, &self.policy);
        self.failing.extend((0..run.jobs()).filter(failing).map(|number| JobId { run: run.id(), number }));
        let earlier = self.runs.insert(run.id(), run);
        assert!(earlier.is_none(), "a run is added once");
    }

    /// Whether the total of a run is held against a published count.
    fn is_published(&self, run: &Run) -> bool {
        let plan = run.plan();
        self.policy.published && plan.cells().is_none() && published(plan.n()).is_some()
    }

    /// Adds a worker that the database has, or is to have, as it registered.
    pub fn add_worker(&mut self, id: WorkerId, worker: &Registration, credential: Credential) {
        let known = self.workers.entry(id).or_insert_with(|| Worker::new(worker, credential));
        known.draining = self.draining.contains(&id);
        self.worker_summary = None;
    }

    pub fn add_reputation(&mut self, machine: Machine, reputation: MachineReputation) {
        self.trust.add(machine, reputation);
    }

    /// Takes up an open second count that the database has, of an accepted result; and the one that differs from it.
    pub fn add_check(&mut self, job: JobId, accepted: Accepted, differing: Option<(WorkerId, Counts)>) {
        let machine = self.machine(accepted.worker);
        let differing = differing.map(|(worker, counts)| {
            let machine = self.machine(worker);
            Differing { worker, machine, counts }
        });
        self.checks.add(job, (accepted, machine), differing, self.estimate(job));
    }

    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.values()
    }

    pub fn run(&self, id: RunId) -> Option<&Run> {
        self.runs.get(&id)
    }

    pub(crate) fn run_mut(&mut self, id: RunId) -> Option<&mut Run> {
        self.runs.get_mut(&id)
    }

    pub fn worker(&self, worker: WorkerId) -> Option<&Worker> {
        self.workers.get(&worker)
    }

    pub fn workers(&self) -> impl DoubleEndedIterator<Item = (WorkerId, &Worker)> {
        self.workers.iter().map(|(id, worker)| (*id, worker))
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Whether a worker's last heartbeat is recent enough.
    pub fn is_live(&self, now: Millis, worker: WorkerId) -> bool {
        let seen = self.workers.get(&worker).and_then(|worker| worker.seen);
        seen.is_some_and(|seen| now.saturating_sub(seen) < self.policy.lease_ms)
    }

    /// Asks a worker to go; false if it has not registered.
    pub fn set_draining(&mut self, worker: WorkerId) -> bool {
        self.worker_summary = None;
        let Some(known) = self.workers.get_mut(&worker) else { return false };
        known.draining = true;
        self.draining.insert(worker);
        true
    }

    /// The leases on a job, each with its holder: one, or two for a straggler.
    pub fn leases(&self, job: JobId) -> impl Iterator<Item = (WorkerId, LeaseToken)> {
        let leases = self.leases.get(&job).into_iter().flatten();
        leases.map(move |lease| (lease.worker, lease.token(job)))
    }

    /// Whether a worker has not ended, as far as is known: it has not said that it does, and its last two heartbeats are not
    /// missing.
    pub fn is_present(&self, now: Millis, worker: &Worker) -> bool {
        !worker.left && worker.seen.is_some_and(|seen| now.saturating_sub(seen) <= self.silence_max())
    }

    fn silence_max(&self) -> Millis {
        2 * Millis::from(self.policy.beat_ms)
    }

    /// Workers of the same machine as this one, itself included, that fell silent without a word.
    pub fn vanished(&self, now: Millis, worker: WorkerId) -> usize {
        let Some(of) = self.workers.get(&worker) else { return 0 };
        let is_one = |(id, other): &(&WorkerId, &Worker)| {
            other.machine == of.machine && !other.left && other.seen.is_some() && !self.is_live(now, **id)
        };
        self.workers.iter().filter(is_one).count()
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

    /// Whether whoever counts a job now is to count the mirror image: in runs with second counts the first is drawn, and the
    /// second is the other one.
    pub fn is_mirrored(&self, job: JobId) -> bool {
        let run = &self.runs[&job.run];
        let (is_second, is_drawn) =
            (run.slot(job.number).state != JobState::Leased, self.key.lot(Lot::Image, job).is_multiple_of(2));
        run.is_replicated() && is_second != is_drawn
    }

    pub fn reputation(&self, machine: &Machine) -> MachineReputation {
        self.trust.of(machine)
    }

    /// Why a machine gets no more jobs; `None` while it is trusted.
    pub fn distrusts(&self, machine: &Machine) -> Option<&str> {
        self.trust.distrusts(machine)
    }

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
        let lease = lease.map(|lease| lease.worker);
        assert_eq!(
            slot.state == JobState::Leased,
            lease.is_some(),
            "job {job} is leased if somebody has a lease on it"
        );
        (job, slot, lease)
    }

    /// Changes the state of a run; false if there is no such run. Leases of a cancelled run are revoked.
    pub fn set_run_state(&mut self, id: RunId, state: RunState) -> bool {
        let Some(run) = self.runs.get_mut(&id) else { return false };
        run.state = state;
        if state == RunState::Cancelled {
            let out: Vec<_> = self.leases.keys().filter(|job| job.run == id).copied().collect();
            for job in out {
                self.remove_leases(job);
                self.reopen(job, LeaseEnd::Unneeded);
            }
            self.end_checks(id, CheckOutcome::Dropped);
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
            self.failing.remove(job);
            self.given_up.remove(job);
            self.close_check(*job, CheckOutcome::Dropped);
        }
        jobs
    }

    /// A run is at its end: so are the second counts that it waits for. Results that differ still do.
    pub(crate) fn end_checks(&mut self, run: RunId, outcome: CheckOutcome) {
        let waiting = self.checks.of(run).filter(|(_, check)| check.differing.is_none());
        for job in waiting.map(|(job, _)| job).collect::<Vec<_>>() {
            self.close_check(job, outcome);
        }
    }
}
