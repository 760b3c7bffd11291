//! The ledger in memory, in place of SQLite: a transaction's changes are there after its commit and gone after its end by
//! any other way, and what the schema forbids fails.

mod persist;
mod restore;
mod table;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use nqueens_kernel::counts::{Counts, Totals};
use nqueens_kernel::random::Random;
use nqueens_model::id::{Incarnation, JobId, RunId, WorkerId};
use nqueens_model::message::{JobResult, Registration, Session, Verdict};
use nqueens_model::operator::{Blamed, Checked, Outcome, RunState};
use nqueens_scheduler::{
    Accepted, Change, CheckOutcome, InDoubt, JobState, JobStatus, Loaded, Machine, MachineReputation, Needs,
    RunSettings, StoredJob,
};

use self::table::Table;

#[derive(Clone, Debug)]
pub(crate) struct RunRow {
    pub(crate) settings: RunSettings,
    pub(crate) jobs: u32,
    /// `None` while it is being planned.
    pub(crate) state: Option<RunState>,
    pub(crate) outcome: Option<Outcome>,
    /// Recounts that agreed, when the run was done.
    pub(crate) agreed: u32,
    pub(crate) recounts_us: u64,
    /// Wrong results that they found.
    pub(crate) differing: u32,
}

impl RunRow {
    fn planned(settings: &RunSettings) -> Self {
        Self {
            settings: *settings,
            jobs: 0,
            state: None,
            outcome: None,
            agreed: 0,
            recounts_us: 0,
            differing: 0,
        }
    }
}

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
    pub(crate) lease: Option<WorkerId>,
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

    /// Processor time of all its results, in microseconds.
    pub(crate) fn cpu_us(&self) -> u128 {
        self.results.iter().map(|row| u128::from(row.result.processor_us())).sum()
    }

    /// Recounts that agree with its result.
    pub(crate) fn recounts(&self) -> u32 {
        match self.slot.recounted {
            254 => 0,
            255 => 1,
            parts => u32::from(parts),
        }
    }

    /// The second counts of the result that stands.
    pub(crate) fn seconds(&self) -> impl Iterator<Item = &ResultRow> {
        let accepted = self.accepted().map_or(0, |(place, _)| place);
        let is_second = |verdict| matches!(verdict, Some(Verdict::Duplicate | Verdict::Conflict));
        self.results[accepted..].iter().filter(move |row| is_second(row.verdict))
    }

    /// The second count that differs, while nobody has decided.
    pub(crate) fn conflict(&self) -> Option<&ResultRow> {
        let is_open = self.slot.state == JobState::Quarantined && self.is_checked_now();
        self.results.iter().rev().find(|row| is_open && row.verdict == Some(Verdict::Conflict))
    }

    pub(crate) fn is_checked_now(&self) -> bool {
        self.checks.last() == Some(&None)
    }

    pub(crate) fn is_unmade(&self) -> bool {
        self.checks.last() == Some(&Some(CheckOutcome::Unmade))
    }

    /// A check begins, or the latest one ends.
    fn store_check(&mut self, outcome: Option<CheckOutcome>) {
        match (self.checks.last_mut(), outcome) {
            (Some(last), Some(_)) => *last = outcome,
            _ => self.checks.push(None),
        }
    }
}

#[derive(Clone, Debug)]
struct WorkerRow {
    registration: Registration,
    machine: Machine,
    session: Session,
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

#[derive(Clone, Debug)]
pub enum Record {
    Life(Incarnation),
    /// Runs whose planning was given up half-way are removed.
    Discard,
    Transaction(Vec<Change>),
}

#[derive(Debug, Default)]
pub struct Ledger {
    tables: Tables,
    key: Option<[u8; 32]>,
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
    pub(crate) fn begin(&mut self, incarnation: Incarnation, random: &mut Random) {
        self.drop_unplanned();
        self.key.get_or_insert_with(|| std::array::from_fn(|_| random.bits().to_le_bytes()[0]));
        self.records.iter_mut().for_each(|records| records.push(Record::Life(incarnation)));
    }

    pub fn key(&self) -> &[u8; 32] {
        self.key.as_ref().expect("its first life has drawn it")
    }

    /// Removes the runs whose planning was given up half-way.
    pub(crate) fn discard(&mut self) {
        self.drop_unplanned();
        self.records.iter_mut().for_each(|records| records.push(Record::Discard));
    }

    fn drop_unplanned(&mut self) {
        assert!(self.tables.jobs.before.is_empty(), "no transaction is on its way");
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

    pub(crate) fn runs(&self) -> impl Iterator<Item = &RunRow> {
        self.tables.runs.rows.values().filter(|run| run.state.is_some())
    }

    pub(crate) fn run(&self, id: RunId) -> Option<&RunRow> {
        self.tables.runs.rows.get(&id).filter(|run| run.state.is_some())
    }

    pub(crate) fn job(&self, id: JobId) -> Option<&JobRow> {
        self.tables.jobs.rows.get(&id)
    }

    pub fn job_ids(&self) -> impl Iterator<Item = JobId> {
        self.jobs().map(|(job, _)| job)
    }

    /// All machines, and each credential with all of its machines.
    pub fn machines(&self) -> BTreeSet<Machine> {
        let machines = self.tables.workers.rows.values().map(|row| &row.machine);
        machines.flat_map(|machine| [machine.clone(), Machine::all_of(machine.credential.clone())]).collect()
    }

    pub(crate) fn jobs(&self) -> impl Iterator<Item = (JobId, &JobRow)> {
        self.tables.jobs.rows.iter().map(|(id, row)| (*id, row))
    }

    pub(crate) fn jobs_of(&self, run: RunId) -> impl Iterator<Item = (JobId, &JobRow)> {
        self.tables.jobs.rows.range(numbers(run)).map(|(id, row)| (*id, row))
    }

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

    pub fn load(&self, needs: &Needs) -> Loaded {
        let blamed = needs.blamed.iter().flat_map(|(run, of)| {
            let is_blamed = move |job: &JobId, row: &JobRow| match of {
                Blamed::Job(number) => job.number == *number,
                Blamed::Worker(worker) => row.accepted().is_some_and(|(_, row)| row.worker == *worker),
                Blamed::Unmade => row.is_unmade(),
            };
            self.jobs_of(*run).filter(move |(job, row)| is_blamed(job, row)).map(|(job, _)| job)
        });
        let jobs = needs.reported.iter().copied().chain(blamed);
        let stored = jobs.filter_map(|job| {
            let row = self.job(job)?;
            let accepted = row.accepted().map(|(_, row)| Accepted::new(row.worker, &row.result));
            Some((job, StoredJob { counts_max: row.counts_max, accepted }))
        });
        stored.collect()
    }

    /// What nobody but an outcast has counted, in runs that are open.
    pub fn in_doubt(&self, machine: &Machine) -> InDoubt {
        let goes_on =
            |job: &JobId| self.run(job.run).is_some_and(|run| run.state.is_some_and(RunState::is_open));
        let is_own = |row: &ResultRow| {
            let counted_on = self.machine(row.worker);
            counted_on == machine || machine.name.is_empty() && counted_on.credential == machine.credential
        };
        let mut in_doubt = InDoubt::default();
        for (job, row) in self.jobs().filter(|(job, _)| goes_on(job)) {
            let Some((_, accepted)) = row.accepted() else { continue };
            let result = (job, Accepted::new(accepted.worker, &accepted.result));
            let is_second = |row: &&ResultRow| row.verdict == Some(Verdict::Duplicate) && is_own(row);
            if !row.slot.confirmed && !row.slot.is_recounted() && is_own(accepted) {
                in_doubt.counted.push(result);
            }
            let seconds = row.results.iter().filter(is_second).filter(|_| row.slot.confirmed);
            in_doubt.confirmed.extend(seconds.map(|_| result));
        }
        in_doubt
    }
}
