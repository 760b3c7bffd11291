//! Stores what a transaction has changed. What the schema forbids fails.

use nqueens_model::id::JobId;
use nqueens_model::message::Verdict;
use nqueens_model::operator::RunState;
use nqueens_scheduler::{Change, JobState, JobStatus, Machine};

use super::{JobRow, Ledger, ResultRow, RunRow, Tables, WorkerRow, numbers};

impl Ledger {
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
                Change::RunPlanned(settings) => runs.insert(settings.id, RunRow::planned(settings)),
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
                    let agreed = jobs.rows.range(numbers(*run)).map(|(_, job)| job.recounts()).sum();
                    let row = runs.change(run);
                    assert!(row.state.is_some_and(RunState::is_open), "the run was open");
                    (row.state, row.outcome, row.agreed) = (Some(RunState::Done), Some(*outcome), agreed);
                }
                Change::Results(results) => {
                    for (worker, result, verdict) in results {
                        assert!(workers.rows.contains_key(worker), "a result names its worker");
                        let kept = [Verdict::Accepted, Verdict::Duplicate, Verdict::Conflict];
                        assert!(kept.contains(verdict), "nothing is kept of it");
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
                        assert!(lease.is_none_or(|worker| workers.rows.contains_key(&worker)));
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
                Change::Recounted(recount) => {
                    assert!(jobs.rows[&recount.job].accepted().is_some());
                    runs.change(&recount.job.run).differing += u32::from(!recount.agrees);
                }
                Change::RecountTime(run, elapsed_us) => runs.change(run).recounts_us += elapsed_us,
                Change::Reputations(reputations) => {
                    for (machine, reputation) in reputations {
                        machines.put(machine.clone(), reputation.clone());
                    }
                }
            }
        }
    }
}
