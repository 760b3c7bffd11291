//! What a coordinator reads when it starts.

use nqueens_model::message::JobResult;
use nqueens_model::operator::DiskRoom;
use nqueens_scheduler::{Accepted, CheckOutcome, Dispatch, JobState, Run, Scheduler, Sums};

use super::Ledger;

/// All runs were submitted so long ago, in milliseconds.
const AGE_MS: i64 = 1_000_000_000;

impl Ledger {
    /// Has a state machine that knows nothing yet take up all that the ledger has.
    pub fn restore(&self, mut dispatch: Dispatch, room: Option<DiskRoom>, now: u64) -> Scheduler {
        for run in self.runs() {
            let (mut slots, recounts_us) = (Vec::new(), run.recounts_us.into());
            let mut sums = Sums { recounts_us, differing: run.differing, ..Sums::default() };
            for (_, job) in self.jobs_of(run.settings.id) {
                slots.push(job.slot);
                for check in &job.checks {
                    match check {
                        None => sums.checks.open += 1,
                        Some(CheckOutcome::Unmade) => {}
                        Some(outcome) => outcome.add_to(&mut sums.checks, 1),
                    }
                }
                sums.checks.unmade += u32::from(job.is_unmade());
                sums.cpu_us += job.cpu_us();
                if let Some((_, row)) = job.accepted().filter(|_| job.slot.state == JobState::Done) {
                    let JobResult { counts, states, elapsed_us, .. } = row.result;
                    let cpu_us = row.result.processor_us();
                    let added = sums.accepted.add(job.slot.estimate, counts, states, elapsed_us, cpu_us);
                    added.expect("small");
                }
            }
            let state = run.state.expect("it is planned");
            let unmade = self.jobs_of(run.settings.id).filter(|(_, row)| row.is_unmade());
            let unmade = unmade.map(|(job, _)| job.number).collect();
            let run = Run::new(&run.settings, state, slots, sums)
                .begun_at(now.cast_signed() - AGE_MS)
                .with_unmade(unmade);
            assert_eq!(sums.accepted.results, u64::from(run.sums().done), "done jobs and accepted results");
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
            let differing = row.conflict().map(|row| (row.worker, row.result.counts));
            dispatch.add_check(job, Accepted::new(accepted.worker, &accepted.result), differing);
        }
        for (job, row) in self.jobs() {
            if let Some(worker) = row.lease {
                dispatch.add_lease(now, worker, job);
            }
        }
        let processes = workers.values().map(|row| (row.registration.instance, row.session));
        Scheduler::new(dispatch, processes, room)
    }
}
