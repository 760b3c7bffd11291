//! The ledger in memory, in place of SQLite: a transaction's changes are there after its commit and gone after its end by
//! any other way, and what the schema forbids fails.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::ops::RangeInclusive;

use nqueens_kernel::counts::{Counts, Totals};
use nqueens_model::id::{Incarnation, JobId, LeaseToken, RunId, WorkerId};
use nqueens_model::message::{JobResult, Registration, Session, Verdict};
use nqueens_model::operator::{Blamed, CheckCounts, Checked, Outcome, RunState};
use nqueens_scheduler::{
    Accepted, AcceptedSums, Change, CheckOutcome, CheckVote, Dispatch, JobState, JobStatus, Loaded, Machine,
    MachineReputation, Needs, Room, Run, RunSettings, Scheduler, StoredJob,
};

/// A row of the table `run`.
#[derive(Clone, Debug)]
pub(crate) struct RunRow {
    pub(crate) settings: RunSettings,
    pub(crate) jobs: u32,
    /// `None` while it is being planned.
    pub(crate) state: Option<RunState>,
    pub(crate) outcome: Option<Outcome>,
}

/// A row of the table `result`.
#[derive(Clone, Debug)]
pub(crate) struct ResultRow {
    pub(crate) worker: WorkerId,
    pub(crate) result: JobResult,
    /// `None`: it was accepted, and stands no longer.
    pub(crate) verdict: Option<Verdict>,
}

/// A row of the table `job`, with the rows of `result` and `recheck` that are about it.
#[derive(Clone, Debug)]
pub(crate) struct JobRow {
    pub(crate) slot: JobStatus,
    pub(crate) lease: Option<(WorkerId, Incarnation)>,
    pub(crate) counts_max: Counts,
    /// In the order of their arrival.
    pub(crate) results: Vec<ResultRow>,
    /// How each check ended, the latest last; `None` is open.
    pub(crate) checks: Vec<Option<CheckOutcome>>,
}

impl JobRow {
    /// The result that stands, with its place among all.
    pub(crate) fn accepted(&self) -> Option<(usize, &ResultRow)> {
        self.results.iter().enumerate().find(|(_, row)| row.verdict == Some(Verdict::Accepted))
    }

    /// The first result after the accepted one that differs.
    pub(crate) fn conflict(&self) -> Option<&ResultRow> {
        let (at, _) = self.accepted()?;
        self.results[at..].iter().find(|row| row.verdict == Some(Verdict::Conflict))
    }

    pub(crate) fn is_checked_now(&self) -> bool {
        self.checks.last() == Some(&None)
    }

    /// A check begins, or the latest one ends.
    fn store_check(&mut self, outcome: Option<CheckOutcome>) {
        match (self.checks.last_mut(), outcome) {
            (Some(last), Some(_)) => *last = outcome,
            _ => self.checks.push(None),
        }
    }
}

/// A worker's process.
#[derive(Clone, Debug)]
struct WorkerRow {
    registration: Registration,
    machine: Machine,
    session: Session,
}

/// A table that remembers how it was when the transaction began.
#[derive(Clone, Debug)]
struct Table<K, V> {
    rows: BTreeMap<K, V>,
    before: Vec<(K, Option<V>)>,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self { rows: BTreeMap::new(), before: Vec::new() }
    }
}

impl<K: Ord + Clone, V: Clone> Table<K, V> {
    fn put(&mut self, key: K, row: V) {
        let before = self.rows.insert(key.clone(), row);
        self.before.push((key, before));
    }

    fn insert(&mut self, key: K, row: V) {
        assert!(!self.rows.contains_key(&key), "a key is unique");
        self.put(key, row);
    }

    /// The row, to change it; the key must be there.
    fn change(&mut self, key: &K) -> &mut V {
        let row = self.rows.get_mut(key).expect("what changes is there");
        self.before.push((key.clone(), Some(row.clone())));
        row
    }

    fn remove(&mut self, key: &K) {
        let before = self.rows.remove(key);
        self.before.push((key.clone(), before));
    }

    fn roll_back(&mut self) {
        for (key, before) in self.before.drain(..).rev() {
            match before {
                Some(row) => drop(self.rows.insert(key, row)),
                None => drop(self.rows.remove(&key)),
            }
        }
    }
}

/// All jobs that a run may have.
fn numbers(run: RunId) -> RangeInclusive<JobId> {
    JobId { run, number: 0 }..=JobId { run, number: u32::MAX }
}

#[derive(Clone, Debug, Default)]
struct Tables {
    runs: Table<RunId, RunRow>,
    jobs: Table<JobId, JobRow>,
    workers: Table<WorkerId, WorkerRow>,
    machines: Table<Machine, MachineReputation>,
}

/// Something that was stored.
#[derive(Clone, Debug)]
pub enum Record {
    /// A life of the coordinator begins.
    Life(Incarnation),
    /// Runs whose planning was given up half-way are removed.
    Discard,
    /// A transaction is committed.
    Transaction(Vec<Change>),
}

/// The ledger in memory.
#[derive(Debug, Default)]
pub struct Ledger {
    tables: Tables,
    backup: Option<Tables>,
    /// All that was stored, if somebody wants to know.
    records: Option<Vec<Record>>,
    /// What the open transaction has changed, for the records.
    changes: Vec<Change>,
}

impl Ledger {
    /// An empty one that remembers all that is stored.
    pub(crate) fn recording() -> Self {
        Self { records: Some(Vec::new()), ..Self::default() }
    }

    /// All that was stored, of one that remembers it.
    pub fn records(&self) -> &[Record] {
        self.records.as_deref().unwrap_or_default()
    }

    /// A life of the coordinator begins: runs whose planning was given up half-way are gone.
    pub(crate) fn begin(&mut self, incarnation: Incarnation) {
        self.drop_unplanned();
        self.records.iter_mut().for_each(|records| records.push(Record::Life(incarnation)));
    }

    /// Removes the runs whose planning was given up half-way.
    pub(crate) fn discard(&mut self) {
        self.drop_unplanned();
        self.records.iter_mut().for_each(|records| records.push(Record::Discard));
    }

    fn drop_unplanned(&mut self) {
        let Tables { runs, jobs, .. } = &mut self.tables;
        let unplanned = runs.rows.values().filter(|run| run.state.is_none());
        for run in unplanned.map(|run| run.settings.id).collect::<Vec<_>>() {
            runs.remove(&run);
            for job in jobs.rows.range(numbers(run)).map(|(job, _)| *job).collect::<Vec<_>>() {
                jobs.remove(&job);
            }
        }
        self.commit();
    }

    pub(crate) fn commit(&mut self) {
        if let Some(records) = self.records.as_mut().filter(|_| !self.changes.is_empty()) {
            records.push(Record::Transaction(std::mem::take(&mut self.changes)));
        }
        let Tables { runs, jobs, workers, machines } = &mut self.tables;
        runs.before.clear();
        jobs.before.clear();
        workers.before.clear();
        machines.before.clear();
    }

    pub(crate) fn roll_back(&mut self) {
        self.changes.clear();
        let Tables { runs, jobs, workers, machines } = &mut self.tables;
        runs.roll_back();
        jobs.roll_back();
        workers.roll_back();
        machines.roll_back();
    }

    /// Copies all tables; no transaction may be open.
    pub(crate) fn back_up(&mut self) {
        assert!(self.tables.jobs.before.is_empty(), "a copy has whole transactions");
        self.backup = Some(self.tables.clone());
    }

    /// Takes the latest copy in place of the ledger; false if there is none.
    pub(crate) fn take_backup(&mut self) -> bool {
        self.backup.clone().map(|tables| self.tables = tables).is_some()
    }

    /// The runs that are planned.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &RunRow> {
        self.tables.runs.rows.values().filter(|run| run.state.is_some())
    }

    pub(crate) fn run(&self, id: RunId) -> Option<&RunRow> {
        self.tables.runs.rows.get(&id).filter(|run| run.state.is_some())
    }

    pub(crate) fn job(&self, id: JobId) -> Option<&JobRow> {
        self.tables.jobs.rows.get(&id)
    }

    /// The names of all jobs.
    pub fn job_ids(&self) -> impl Iterator<Item = JobId> {
        self.jobs().map(|(job, _)| job)
    }

    /// All machines, and each credential with all of its machines.
    pub fn machines(&self) -> BTreeSet<Machine> {
        let machines = self.tables.workers.rows.values().map(|row| &row.machine);
        machines.flat_map(|machine| [machine.clone(), Machine::all_of(machine.credential.clone())]).collect()
    }

    /// All jobs, by run and number.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = (JobId, &JobRow)> {
        self.tables.jobs.rows.iter().map(|(id, row)| (*id, row))
    }

    pub(crate) fn jobs_of(&self, run: RunId) -> impl Iterator<Item = (JobId, &JobRow)> {
        self.tables.jobs.rows.range(numbers(run)).map(|(id, row)| (*id, row))
    }

    /// A registered worker's machine.
    pub(crate) fn machine(&self, worker: WorkerId) -> &Machine {
        &self.tables.workers.rows[&worker].machine
    }

    pub(crate) fn reputations(&self) -> impl Iterator<Item = (&Machine, &MachineReputation)> {
        self.tables.machines.rows.iter()
    }

    /// As the coordinator adds up a run of a board that nobody has published: the error says which job is not done.
    pub(crate) fn total(&self, run: RunId) -> Result<Outcome, String> {
        let mut totals = Totals::default();
        for (job, row) in self.jobs_of(run) {
            let accepted = row.accepted().filter(|_| row.slot.state == JobState::Done);
            let (_, accepted) = accepted.ok_or_else(|| format!("job {job} is not done"))?;
            totals = totals.checked_add(accepted.result.counts).expect("small");
        }
        let total = 4 * totals.count4 + 8 * totals.count8;
        Ok(Outcome { totals, total, checked: Checked::Symmetric, grounds: None })
    }

    /// Looks up what requests need.
    pub fn load(&self, needs: &Needs) -> Loaded {
        let blamed = needs.blamed.iter().flat_map(|(run, of)| {
            let is_blamed = move |job: &JobId, row: &JobRow| match of {
                Blamed::Job(number) => job.number == *number,
                Blamed::Worker(worker) => row.accepted().is_some_and(|(_, row)| row.worker == *worker),
            };
            self.jobs_of(*run).filter(move |(job, row)| is_blamed(job, row)).map(|(job, _)| job)
        });
        let jobs = needs.reported.iter().copied().chain(blamed);
        let stored = jobs.filter_map(|job| {
            let row = self.job(job)?;
            let accepted = row.accepted().map(|(_, row)| row.accepted_result());
            Some((job, StoredJob { counts_max: row.counts_max, accepted }))
        });
        stored.collect()
    }

    /// Stores changes in their order.
    pub(crate) fn persist(&mut self, changes: &[Change]) {
        if self.records.is_some() {
            self.changes.extend_from_slice(changes);
        }
        let Tables { runs, jobs, workers, machines } = &mut self.tables;
        for change in changes {
            match change {
                Change::Worker(session, worker, credential) => {
                    let is_other = |row: &WorkerRow| row.registration.instance != worker.instance;
                    assert!(workers.rows.values().all(is_other), "a process registers once");
                    let machine = Machine::new(credential.clone(), &worker.name);
                    let row = WorkerRow { registration: worker.clone(), machine, session: *session };
                    workers.insert(session.worker, row);
                }
                Change::RunPlanned(settings) => {
                    let row = RunRow { settings: *settings, jobs: 0, state: None, outcome: None };
                    runs.insert(settings.id, row);
                }
                Change::JobsPlanned { run, first, jobs: planned } => {
                    assert!(runs.rows[run].state.is_none(), "it is being planned");
                    for (number, (_, weight)) in (*first..).zip(planned) {
                        let slot = JobStatus::planned(weight.states);
                        let (results, checks) = (Vec::new(), Vec::new());
                        let row =
                            JobRow { slot, lease: None, counts_max: weight.counts_max, results, checks };
                        jobs.insert(JobId { run: *run, number }, row);
                    }
                }
                Change::RunActivated { run, jobs: count, .. } => {
                    assert_eq!(
                        jobs.rows.range(numbers(*run)).count(),
                        *count as usize,
                        "all its jobs are stored"
                    );
                    let row = runs.change(run);
                    assert!(row.state.is_none(), "it is being planned");
                    (row.state, row.jobs) = (Some(RunState::Active), *count);
                }
                Change::RunState { run, state, reason } => {
                    assert_ne!(*state, RunState::Done, "a run is done with its total");
                    assert_eq!(*state == RunState::Failed, reason.is_some(), "who fails has a reason");
                    let row = runs.change(run);
                    (row.state, row.outcome) = (Some(*state), None);
                }
                Change::RunDone(run, outcome) => {
                    let mut all = jobs.rows.range(numbers(*run)).map(|(_, job)| job);
                    let is_over = |job: &JobRow| job.slot.state == JobState::Done && !job.is_checked_now();
                    assert!(all.all(is_over), "no job and no check of run {run} is open");
                    let row = runs.change(run);
                    assert!(row.state.is_some_and(RunState::is_open), "the run was open");
                    (row.state, row.outcome) = (Some(RunState::Done), Some(*outcome));
                }
                Change::Results(results) => {
                    for (worker, result, verdict) in results {
                        assert!(workers.rows.contains_key(worker), "a result names its worker");
                        assert_ne!(*verdict, Verdict::Unknown, "nothing is kept of it");
                        let row = jobs.change(&result.token.job);
                        assert!(
                            *verdict != Verdict::Accepted || row.accepted().is_none(),
                            "job {} is accepted twice",
                            result.token.job
                        );
                        let verdict = Some(*verdict);
                        row.results.push(ResultRow { worker: *worker, result: result.clone(), verdict });
                    }
                }
                Change::Voided(voided) => {
                    for job in voided {
                        let row = jobs.change(job);
                        if let Some((at, _)) = row.accepted() {
                            row.results[at].verdict = None;
                        }
                    }
                }
                Change::Jobs(changed) => {
                    for (job, slot, lease) in changed {
                        let row = jobs.change(job);
                        assert!(row.slot.epoch <= slot.epoch, "the epoch of job {job} goes back");
                        assert_eq!(slot.state == JobState::Leased, lease.is_some(), "job {job}");
                        assert!(lease.is_none_or(|(worker, _)| workers.rows.contains_key(&worker)));
                        (row.slot, row.lease) = (*slot, *lease);
                    }
                }
                Change::Checks(checks) => {
                    for (job, outcome) in checks {
                        let row = jobs.change(job);
                        assert_eq!(row.is_checked_now(), outcome.is_some(), "job {job} and its check");
                        row.store_check(*outcome);
                    }
                }
                // Its coordinator's counts are simulated as comparisons alone.
                Change::Recounted(_) => {}
                Change::Reputations(reputations) => {
                    for (machine, reputation) in reputations {
                        let stored = MachineReputation { open: 0, ..reputation.clone() };
                        machines.put(machine.clone(), stored);
                    }
                }
            }
        }
    }

    /// The accepted results of a machine in runs that go on, less those that another machine has counted alike; or of all of
    /// a credential, less those that somebody else has.
    pub fn unconfirmed(&self, machine: &Machine) -> Vec<(JobId, CheckVote)> {
        let goes_on =
            |job: &JobId| self.run(job.run).is_some_and(|run| run.state.is_some_and(RunState::is_open));
        let accepted = self.jobs().filter_map(|(job, row)| Some((job, row, row.accepted()?.1)));
        let is_all = machine.name.is_empty();
        let own = accepted.filter(|(.., accepted)| {
            let counted_on = self.machine(accepted.worker);
            counted_on == machine || is_all && counted_on.credential == machine.credential
        });
        let is_counted_alike = |row: &JobRow| {
            if is_all { row.slot.confirmed } else { row.checks.contains(&Some(CheckOutcome::Agreed)) }
        };
        let unconfirmed = own.filter(|(job, row, _)| goes_on(job) && !is_counted_alike(row));
        unconfirmed.map(|(job, _, accepted)| (job, self.vote(accepted))).collect()
    }

    fn vote(&self, row: &ResultRow) -> CheckVote {
        let JobResult { token, counts, kernel, .. } = row.result;
        let machine = self.machine(row.worker).clone();
        CheckVote { worker: row.worker, machine, kernel, epoch: token.epoch, counts }
    }

    /// Has a state machine that knows nothing yet take up all that the ledger has.
    pub fn restore(&self, mut dispatch: Dispatch, room: Option<Room>, now: u64) -> Scheduler {
        for run in self.runs() {
            let (mut slots, mut sums, mut checks) =
                (Vec::new(), AcceptedSums::default(), CheckCounts::default());
            for (_, job) in self.jobs_of(run.settings.id) {
                slots.push(job.slot);
                for check in &job.checks {
                    match check {
                        None => checks.open += 1,
                        Some(outcome) => outcome.add_to(&mut checks, 1),
                    }
                }
                if let Some((_, row)) = job.accepted().filter(|_| job.slot.state == JobState::Done) {
                    let JobResult { counts, states, elapsed_us, .. } = row.result;
                    sums.add(job.slot.estimate, counts, states, elapsed_us).expect("small");
                }
            }
            let state = run.state.expect("it is planned");
            let run = Run::new(&run.settings, state, slots, sums, checks);
            assert_eq!(sums.results, u64::from(run.sums().done), "done jobs and accepted results");
            dispatch.add_run(run);
        }
        let workers = &self.tables.workers.rows;
        for (id, row) in workers {
            dispatch.add_worker(*id, &row.registration, row.machine.credential.clone());
        }
        for (machine, reputation) in self.reputations() {
            dispatch.add_reputation(machine.clone(), reputation.clone());
        }
        for (job, row) in self.jobs().filter(|(_, row)| row.is_checked_now()) {
            let (_, accepted) = row.accepted().expect("what is checked has a result");
            let votes = [Some(accepted), row.conflict()].into_iter().flatten();
            dispatch.add_check(job, votes.map(|row| self.vote(row)).collect());
        }
        for (job, row) in self.jobs() {
            if let Some((worker, incarnation)) = row.lease {
                let epoch = NonZeroU32::new(row.slot.epoch).expect("a leased job has had a lease");
                dispatch.add_lease(now, worker, LeaseToken { job, epoch, incarnation });
            }
        }
        let processes = workers.values().map(|row| (row.registration.instance, row.session));
        Scheduler::new(dispatch, processes, room)
    }
}

impl ResultRow {
    fn accepted_result(&self) -> Accepted {
        let LeaseToken { epoch, incarnation, .. } = self.result.token;
        let JobResult { counts, kernel, states, elapsed_us, .. } = self.result;
        Accepted { worker: self.worker, epoch, incarnation, kernel, counts, states, elapsed_us }
    }
}
