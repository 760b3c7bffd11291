//! What a coordinator reads when it starts.

use std::num::NonZeroU32;

use nqueens_model::id::LeaseToken;
use nqueens_model::message::JobResult;
use nqueens_model::operator::DiskRoom;
use nqueens_scheduler::{Dispatch, JobState, Run, Scheduler, Sums};

use super::Ledger;

impl Ledger {
    /// Has a state machine that knows nothing yet take up all that the ledger has.
    pub fn restore(&self, mut dispatch: Dispatch, room: Option<DiskRoom>, now: u64) -> Scheduler {
        for run in self.runs() {
            let (mut slots, mut sums) = (Vec::new(), Sums::default());
            for (_, job) in self.jobs_of(run.settings.id) {
                slots.push(job.slot);
                for check in &job.checks {
                    match check {
                        None => sums.checks.open += 1,
                        Some(outcome) => outcome.add_to(&mut sums.checks, 1),
                    }
                }
                sums.cpu_us += job.cpu_us();
                if let Some((_, row)) = job.accepted().filter(|_| job.slot.state == JobState::Done) {
                    let JobResult { counts, states, elapsed_us, .. } = row.result;
                    let cpu_us = row.result.processor_us();
                    let added = sums.accepted.add(job.slot.estimate, counts, states, elapsed_us, cpu_us);
                    added.expect("small");
                }
            }
            let state = run.state.expect("it is planned");
            let run = Run::new(&run.settings, state, slots, sums);
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
