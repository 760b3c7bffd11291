//! Requests of workers, and of the coordinator where it counts like one.

use nqueens_model::id::{LeaseToken, WorkerId};
use nqueens_model::message::{JobResult, Registration, ResultAck, ReturnedLease, SyncRequest};
use tracing::{info, warn};

use super::Request;
use crate::dispatch::{Machine, Worker};
use crate::refusal::Refusal;
use crate::transaction::{Needs, Transaction};

/// The machine that the coordinator counts as; no worker may take this name.
pub const OWN_MACHINE: &str = "(the coordinator)";

/// A worker's process introduces itself, once or again. The answer is its name in the ledger.
#[derive(Clone, Debug)]
pub struct Register(pub Registration);

impl Request for Register {
    type Answer = WorkerId;

    fn apply(self, transaction: &mut Transaction<'_>) -> Result<WorkerId, Refusal> {
        let Self(worker) = self;
        if worker.name == OWN_MACHINE {
            return Err(Refusal::ReservedName(worker.name));
        }
        transaction.scheduler.admit(&worker.name)?;
        let id = transaction.enroll(&worker);
        info!(worker = %id, name = worker.name, threads = worker.threads, build = worker.build, "worker registered");
        Ok(id)
    }
}

/// A worker's regular word. The answer is `None` if it is not registered here.
#[derive(Clone, Debug)]
pub struct Sync(pub SyncRequest);

/// The answer to a worker. The content of its jobs is in the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synced {
    /// One for each result, in the same order.
    pub acks: Vec<ResultAck>,
    /// Its new leases, and those that it did not name.
    pub granted: Vec<Granted>,
    /// Held leases that no longer are the worker's.
    pub revoked: Vec<LeaseToken>,
    /// An operator asks the worker to go.
    pub drain: bool,
}

/// A lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// Names it.
    pub token: LeaseToken,
    /// Estimated work in states.
    pub states: u64,
    /// The worker must count the mirror image of each board.
    pub mirrored: bool,
}

impl Request for Sync {
    type Answer = Option<Synced>;

    fn needs(&self, needs: &mut Needs) {
        needs.reported.extend(self.0.results.iter().map(|result| result.token.job));
    }

    /// Results come first, so that what the worker still holds and what it wants are told apart from them.
    fn apply(self, transaction: &mut Transaction<'_>) -> Result<Option<Synced>, Refusal> {
        let SyncRequest { worker, instance, results, held, returned, wanted_states, wanted_jobs } = self.0;
        let is_own = transaction.scheduler.is_own(worker, instance);
        let known = transaction.scheduler.dispatch.worker(worker).filter(|_| is_own);
        let Some(Worker { draining: drain, machine, .. }) = known else { return Ok(None) };
        let drain = *drain;
        transaction.scheduler.admit(&Machine::clone(machine))?;
        let acks = transaction.report(worker, &results);
        let (now, is_short) = (transaction.now, transaction.scheduler.is_short());
        let dispatch = &mut transaction.scheduler.dispatch;
        for returned in &returned {
            if let Some(failure) = &returned.failure {
                warn!(%worker, job = %returned.token.job, failure, "a worker failed to count a job");
            }
            dispatch.give_back(worker, returned);
        }
        let held = dispatch.heartbeat(now, worker, &held);
        let mut tokens = held.lost;
        let lost_states =
            tokens.iter().map(|token| dispatch.estimate(token.job)).fold(0, u64::saturating_add);
        let wanted_states = wanted_states.saturating_sub(lost_states);
        let wanted_jobs = wanted_jobs.saturating_sub(tokens.len());
        if !is_short {
            tokens.extend(dispatch.grant(now, worker, wanted_states, wanted_jobs));
        }
        let grant = |token: LeaseToken| {
            let (states, mirrored) = (dispatch.estimate(token.job), dispatch.is_mirrored(&token));
            Granted { token, states, mirrored }
        };
        let granted = tokens.into_iter().map(grant).collect();
        Ok(Some(Synced { acks, granted, revoked: held.revoked, drain }))
    }
}

/// Returns leases that did not fit into the response; their jobs are leased again.
#[derive(Clone, Debug)]
pub struct GiveBack {
    /// Who was to have them.
    pub worker: WorkerId,
    /// Which they are.
    pub tokens: Vec<LeaseToken>,
}

impl Request for GiveBack {
    type Answer = ();

    fn apply(self, transaction: &mut Transaction<'_>) -> Result<(), Refusal> {
        for token in self.tokens {
            let returned = ReturnedLease { token, failure: None };
            transaction.scheduler.dispatch.give_back(self.worker, &returned);
        }
        Ok(())
    }
}

/// Compares the coordinator's own count with the accepted result.
#[derive(Clone, Debug)]
pub struct Compare {
    /// As what it counts.
    pub own: Registration,
    /// What came out.
    pub result: JobResult,
}

impl Request for Compare {
    type Answer = ();

    fn needs(&self, needs: &mut Needs) {
        needs.reported.push(self.result.token.job);
    }

    fn apply(self, transaction: &mut Transaction<'_>) -> Result<(), Refusal> {
        transaction.scheduler.admit(OWN_MACHINE)?;
        let id = transaction.enroll(&self.own);
        transaction.scheduler.dispatch.set_draining(id);
        transaction.report(id, &[self.result]);
        Ok(())
    }
}
