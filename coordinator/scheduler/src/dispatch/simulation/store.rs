//! The database, as far as the coordinator relies on it: what a transaction did is there after its commit and gone
//! after its end by any other way, and the schema's rules hold at every moment.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use nqueens_kernel::counts::Counts;
use nqueens_model::id::{Incarnation, JobId, LeaseToken, RunId, WorkerId};
use nqueens_model::message::{JobResult, Verdict};
use nqueens_model::operator::{CheckCounts, RunState};

use crate::dispatch::tests::registration;
use crate::dispatch::{
    Accepted, AcceptedSums, ChangedJob, Dispatch, JobState, Machine, Millis, Policy, Run, RunSettings, Slot,
};

/// A job's row, and the one result that stands for it.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) slot: Slot,
    lease: Option<(WorkerId, Incarnation)>,
    pub(super) accepted: Option<Accepted>,
    pub(super) counts_max: Counts,
}

/// A run's own row.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunRow {
    pub(super) settings: RunSettings,
    pub(super) jobs: u32,
    pub(super) state: RunState,
}

/// The tables.
#[derive(Clone, Debug, Default)]
struct Tables {
    runs: BTreeMap<RunId, RunRow>,
    jobs: BTreeMap<JobId, Row>,
    /// The process that has each id, and its threads.
    workers: BTreeMap<WorkerId, (u64, u32)>,
    results: u64,
}

/// How to undo a change.
#[derive(Debug)]
enum Undo {
    Run(RunId, Option<RunRow>),
    Job(JobId, Option<Box<Row>>),
    Worker(WorkerId),
    Results(u64),
}

#[derive(Debug, Default)]
pub(super) struct Store {
    tables: Tables,
    /// Of the transaction that is open, the latest change last.
    undo: Vec<Undo>,
    backup: Option<Tables>,
}

impl Store {
    pub(super) fn commit(&mut self) {
        self.undo.clear();
    }

    pub(super) fn roll_back(&mut self) {
        let tables = &mut self.tables;
        for undo in self.undo.drain(..).rev() {
            match undo {
                Undo::Run(id, Some(row)) => drop(tables.runs.insert(id, row)),
                Undo::Run(id, None) => drop(tables.runs.remove(&id)),
                Undo::Job(id, Some(row)) => drop(tables.jobs.insert(id, *row)),
                Undo::Job(id, None) => drop(tables.jobs.remove(&id)),
                Undo::Worker(id) => drop(tables.workers.remove(&id)),
                Undo::Results(results) => tables.results = results,
            }
        }
    }

    pub(super) fn back_up(&mut self) {
        assert!(self.undo.is_empty(), "a copy has whole transactions");
        self.backup = Some(self.tables.clone());
    }

    /// Takes the latest backup in place of the database; false if there is none.
    pub(super) fn restore(&mut self) -> bool {
        assert!(self.undo.is_empty(), "nobody has it open");
        self.backup.clone().map(|tables| self.tables = tables).is_some()
    }

    pub(super) fn runs(&self) -> impl Iterator<Item = &RunRow> {
        self.tables.runs.values()
    }

    pub(super) fn job(&self, id: JobId) -> Option<&Row> {
        self.tables.jobs.get(&id)
    }

    pub(super) fn jobs(&self) -> impl Iterator<Item = (JobId, &Row)> {
        self.tables.jobs.iter().map(|(id, row)| (*id, row))
    }

    /// The process that registered under this name.
    pub(super) fn instance(&self, worker: WorkerId) -> Option<u64> {
        self.tables.workers.get(&worker).map(|(instance, _)| *instance)
    }

    /// Results kept.
    pub(super) fn results(&self) -> u64 {
        self.tables.results
    }

    pub(super) fn insert_run(&mut self, row: &RunRow, jobs: &[(u64, Counts)]) {
        let run = row.settings.id;
        self.undo.push(Undo::Run(run, None));
        self.tables.runs.insert(run, *row);
        for (number, (estimate, counts_max)) in (0..).zip(jobs) {
            let id = JobId { run, number };
            let slot = Slot { state: JobState::Ready, epoch: 0, failures: 0, lapses: 0, estimate: *estimate };
            let row = Row { slot, lease: None, accepted: None, counts_max: *counts_max };
            self.undo.push(Undo::Job(id, None));
            self.tables.jobs.insert(id, row);
        }
    }

    pub(super) fn update_run_state(&mut self, id: RunId, state: RunState) {
        let row = self.tables.runs.get_mut(&id).expect("the run exists");
        self.undo.push(Undo::Run(id, Some(*row)));
        row.state = state;
    }

    /// As SQLite does: the greatest id that is there, and one more.
    pub(super) fn upsert_worker(&mut self, instance: u64, threads: u32) -> WorkerId {
        let known = self.tables.workers.iter().find(|(_, worker)| worker.0 == instance);
        if let Some((id, _)) = known {
            return *id;
        }
        let greatest = self.tables.workers.last_key_value().map_or(0, |(id, _)| id.get());
        let id = WorkerId::new(greatest + 1).expect("small");
        self.undo.push(Undo::Worker(id));
        self.tables.workers.insert(id, (instance, threads));
        id
    }

    fn change(&mut self, id: JobId, change: impl FnOnce(&mut Row)) {
        let row = self.tables.jobs.get_mut(&id).expect("the job exists");
        self.undo.push(Undo::Job(id, Some(Box::new(row.clone()))));
        change(row);
    }

    pub(super) fn insert_results(&mut self, results: &[(WorkerId, JobResult, Verdict)]) {
        self.undo.push(Undo::Results(self.tables.results));
        for (worker, result, verdict) in results {
            self.tables.results += 1;
            assert!(self.tables.workers.contains_key(worker), "results name their workers");
            assert!(self.tables.jobs.contains_key(&result.token.job), "results name their jobs");
            if *verdict == Verdict::Accepted {
                self.change(result.token.job, |row| {
                    assert!(row.accepted.is_none(), "{} is accepted twice", result.token.job);
                    row.accepted = Some(accepted(*worker, result));
                });
            }
        }
    }

    pub(super) fn void_results(&mut self, jobs: &[JobId]) {
        for job in jobs {
            self.change(*job, |row| row.accepted = None);
        }
    }

    pub(super) fn update_jobs(&mut self, changes: &[ChangedJob]) {
        for (id, slot, lease) in changes {
            assert!(lease.is_none_or(|(worker, _)| self.tables.workers.contains_key(&worker)));
            assert_eq!(slot.state == JobState::Leased, lease.is_some(), "job {id}");
            self.change(*id, |row| {
                assert!(row.slot.epoch <= slot.epoch, "the epoch of job {id} goes back");
                (row.slot, row.lease) = (*slot, *lease);
            });
        }
    }

    /// As the writer reads a database at its start.
    pub(super) fn load(&self, policy: Policy, incarnation: Incarnation, now: Millis) -> Dispatch {
        let mut dispatch = Dispatch::new(policy, incarnation, [0; 32]);
        for row in self.tables.runs.values() {
            let first = JobId { run: row.settings.id, number: 0 };
            let jobs = self.tables.jobs.range(first..JobId { number: u32::MAX, ..first });
            let (mut slots, mut sums) = (Vec::new(), AcceptedSums::default());
            for (id, job) in jobs {
                let Row { slot, accepted, .. } = job;
                assert!(
                    slot.state == JobState::Quarantined
                        || (slot.state == JobState::Done) == accepted.is_some(),
                    "job {id} is {slot:?} with {accepted:?}"
                );
                slots.push(*slot);
                if let Some(one) = accepted.filter(|_| slot.state == JobState::Done) {
                    sums.add(slot.estimate, one.counts, one.states, one.elapsed_us).expect("small");
                }
            }
            dispatch.add_run(Run::new(&row.settings, row.state, slots, sums, CheckCounts::default()));
        }
        for (id, (_, threads)) in &self.tables.workers {
            dispatch.add_worker(*id, &registration(&machine(*id), "scalar", *threads));
        }
        for (id, job) in &self.tables.jobs {
            if let Some((worker, incarnation)) = job.lease {
                let epoch = NonZeroU32::new(job.slot.epoch).expect("a leased job has had a lease");
                dispatch.add_lease(now, worker, LeaseToken { job: *id, epoch, incarnation });
            }
        }
        dispatch
    }
}

/// A result as it stands for its job.
pub(super) fn accepted(worker: WorkerId, result: &JobResult) -> Accepted {
    let LeaseToken { epoch, incarnation, .. } = result.token;
    let JobResult { counts, kernel, states, elapsed_us, .. } = *result;
    Accepted { worker, epoch, incarnation, kernel, counts, states, elapsed_us }
}

/// Each process has a machine of its own here.
pub(super) fn machine(worker: WorkerId) -> Machine {
    worker.to_string().into()
}
