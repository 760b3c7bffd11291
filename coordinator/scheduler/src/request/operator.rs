//! Requests of operators, and the coordinator's periodic tasks.

use std::collections::{BTreeMap, BTreeSet};

use nqueens_model::id::{RunId, WorkerId};
use nqueens_model::operator::{Blamed, DiskRoom, EventKind, MachineName, RunState};
use tracing::{debug, info};

use super::Request;
use crate::new_event::NewEvent;
use crate::refusal::Refusal;
use crate::transaction::{Needs, Transaction};

/// Pauses, resumes or cancels a run that is not over.
pub fn set_run_state(run: RunId, state: RunState) -> impl Request<Answer = ()> {
    move |transaction: &mut Transaction<'_>| {
        let from = transaction.run_state(run)?;
        if from == state {
            return Ok(());
        }
        if !from.is_open() {
            return Err(Refusal::RunIsOver { run, state: from.name() });
        }
        transaction.set_run_state(run, state);
        let news = transaction
            .scheduler
            .dispatch
            .run(run)
            .map(|run| NewEvent::of(run, EventKind::RunChanged, format_args!("now {}.", state.name())));
        transaction.tell(news);
        info!(%run, from = from.name(), to = state.name(), "run changed its state");
        Ok(())
    }
}

/// Opens the quarantined jobs of a run again.
pub fn retry_quarantined(run: RunId) -> impl Request<Answer = ()> {
    move |transaction: &mut Transaction<'_>| {
        transaction.run_state(run)?;
        let jobs = transaction.scheduler.dispatch.retry_quarantined(run);
        info!(%run, jobs = jobs.len(), "quarantined jobs are ready again");
        transaction.void(jobs);
        Ok(())
    }
}

/// Voids the accepted results of one job of a run, or of one worker: their jobs are counted again. Or asks again for the
/// second counts that nobody made. The answer is their number.
#[derive(Clone, Copy, Debug)]
pub struct Requeue {
    pub run: RunId,
    pub of: Blamed,
}

impl Request for Requeue {
    type Answer = usize;

    fn needs(&self, needs: &mut Needs) {
        needs.blamed.push((self.run, self.of));
    }

    fn apply(self, transaction: &mut Transaction<'_>) -> Result<usize, Refusal> {
        let Self { run, of } = self;
        let from = transaction.run_state(run)?;
        if from == RunState::Cancelled {
            return Err(Refusal::RunIsOver { run, state: from.name() });
        }
        let accepted = transaction.loaded.iter().filter(|(job, _)| job.run == run);
        let accepted = accepted.filter_map(|(job, stored)| Some((*job, stored.accepted?)));
        let mut blamed: Vec<_> = accepted
            .filter(|(job, accepted)| match of {
                Blamed::Job(number) => job.number == number,
                Blamed::Worker(worker) => accepted.worker == worker,
                Blamed::Unmade => true,
            })
            .collect();
        blamed.sort_unstable_by_key(|(job, _)| *job);
        let dispatch = &mut transaction.scheduler.dispatch;
        let count = if of == Blamed::Unmade {
            dispatch.ask_again(run, &blamed)
        } else {
            let jobs = dispatch.take_back(&blamed);
            let count = jobs.len();
            transaction.void(jobs);
            count
        };
        if count > 0 && matches!(from, RunState::Done | RunState::Failed) {
            transaction.set_run_state(run, RunState::Active);
        }
        info!(%run, ?of, jobs = count, "jobs are to be counted again");
        Ok(count)
    }
}

/// Marks machines untrusted, or trusted again.
pub fn set_trust(machines: MachineName, trusted: bool) -> impl Request<Answer = ()> {
    move |transaction: &mut Transaction<'_>| {
        let dispatch = &mut transaction.scheduler.dispatch;
        let workers = dispatch.workers().map(|(_, worker)| &worker.machine);
        let named: BTreeSet<_> = workers.filter_map(|machine| machine.named(&machines)).collect();
        let changed: Vec<_> = named
            .into_iter()
            .filter(|machine| !trusted || dispatch.reputation(machine).distrusted.is_some())
            .collect();
        if changed.is_empty() {
            return Err(Refusal::NoMachine { machines, trusted });
        }
        for machine in &changed {
            if trusted {
                dispatch.readmit(machine);
                info!(%machine, "trusted again");
            } else if dispatch.reputation(machine).distrusted.is_none() {
                dispatch.distrust(machine, "an operator said so".to_owned());
            }
        }
        Ok(())
    }
}

/// Asks a worker to go.
pub fn drain(worker: WorkerId) -> impl Request<Answer = ()> {
    move |transaction: &mut Transaction<'_>| {
        if !transaction.scheduler.dispatch.set_draining(worker) {
            return Err(Refusal::NoWorker(worker));
        }
        info!(%worker, "worker is drained");
        Ok(())
    }
}

/// Takes back every lease: all workers are known to be gone.
pub fn release_all() -> impl Request<Answer = ()> {
    move |transaction: &mut Transaction<'_>| {
        transaction.scheduler.dispatch.release_all();
        Ok(())
    }
}

/// Ends leases that have run out. `room` is what the disk has now; `None` if nobody watches it.
pub fn expire(room: Option<DiskRoom>) -> impl Request<Answer = ()> {
    move |transaction: &mut Transaction<'_>| {
        let was_short = transaction.scheduler.is_short();
        transaction.scheduler.room = room;
        let is_short = transaction.scheduler.is_short();
        transaction.tell((was_short != is_short).then(|| NewEvent::disk(is_short)));
        let (now, dispatch) = (transaction.now, &mut transaction.scheduler.dispatch);
        let ended = dispatch.expire(now);
        for (worker, token) in &ended {
            debug!(%worker, job = %token.job, "lease ended: no heartbeat in time, or no progress");
        }
        let holders: BTreeSet<_> = ended.iter().map(|(worker, _)| *worker).collect();
        let told = holders.into_iter().filter_map(|worker| {
            let machine = dispatch.worker(worker)?.machine.clone();
            dispatch.may_tell(now, &machine).then_some((worker, machine))
        });
        let told: BTreeMap<_, _> = told.collect();
        let told = ended.iter().filter_map(|(worker, _)| {
            Some((*worker, told.get(worker)?.clone(), dispatch.is_live(now, *worker)))
        });
        let lease_ms = dispatch.policy().lease_ms;
        let news = NewEvent::lapses(told, lease_ms, |worker| dispatch.vanished(now, worker));
        transaction.tell(news);
        Ok(())
    }
}
