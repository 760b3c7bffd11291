//! Requests of workers.

use nqueens_model::credential::Credential;
use nqueens_model::id::{LeaseToken, WorkerId};
use nqueens_model::message::{Registration, ResultAck, ReturnedLease, Session, SyncRequest, Wanted};
use tracing::{info, warn};

use super::Request;
use crate::dispatch::{Machine, Worker};
use crate::new_event::NewEvent;
use crate::refusal::Refusal;
use crate::transaction::{Needs, Transaction};

/// The process that the coordinator counts as; no worker may be it.
pub(super) const OWN_INSTANCE: [u8; 16] = [0; 16];

/// A worker's process introduces itself, once or again. The answer proves its later calls.
///
/// `secret` is random: the session's, unless the process has one.
pub fn register(
    worker: Registration,
    credential: Credential,
    secret: [u8; 16],
) -> impl Request<Answer = Session> {
    move |transaction: &mut Transaction<'_>| {
        if worker.name == Credential::OWN {
            return Err(Refusal::ReservedName(worker.name));
        }
        if worker.instance == OWN_INSTANCE {
            return Err(Refusal::ReservedInstance);
        }
        // Who has registered is who it was, whatever name it gives now.
        let known = transaction.registered(&worker.instance).map(|known| known.machine.clone());
        let is_new = known.is_none();
        let machine = known.unwrap_or_else(|| Machine::new(credential.clone(), &worker.name));
        if machine.credential != credential {
            return Err(Refusal::OtherCredential);
        }
        transaction.scheduler.admit(&machine)?;
        if is_new {
            transaction.has_place(&machine)?;
        }
        let session = transaction.enroll(&worker, &credential, secret);
        transaction.scheduler.dispatch.greet(transaction.now, session.worker);
        let Registration { name, threads, build, .. } = worker;
        if transaction.scheduler.dispatch.may_tell(transaction.now, &machine) {
            info!(worker = %session.worker, name, %credential, threads, build, "worker registered");
        }
        Ok(session)
    }
}

/// A worker's regular word. The answer is `None` if it is not of a session here.
#[derive(Clone, Debug)]
pub struct Sync {
    pub sync: SyncRequest,
    pub credential: Credential,
}

/// The answer to a worker. The content of its jobs is in the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synced {
    /// One for each result, in the same order.
    pub acks: Vec<ResultAck>,
    /// Its new leases, and those that it did not name.
    pub granted: Vec<Granted>,
    /// Held leases that no longer are the worker's.
    pub revoked: Vec<LeaseToken>,
    pub drain: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    pub token: LeaseToken,
    /// Estimated work in states.
    pub states: u64,
    /// The worker must count the mirror image of each board.
    pub mirrored: bool,
}

impl Request for Sync {
    type Answer = Option<Synced>;

    fn needs(&self, needs: &mut Needs) {
        needs.reported.extend(self.sync.results.iter().map(|result| result.token.job));
    }

    /// Results come first, so that what the worker still holds and what it wants are told apart from them.
    fn apply(self, transaction: &mut Transaction<'_>) -> Result<Option<Synced>, Refusal> {
        let SyncRequest { session, results, held, returned, wanted, leaving, faults } = self.sync;
        let proven = transaction.scheduler.proven(session, &self.credential);
        let Some(Worker { draining: drain, machine, .. }) = proven else { return Ok(None) };
        let (worker, drain, machine) = (session.worker, *drain, machine.clone());
        transaction.scheduler.admit(&machine)?;
        let acks = transaction.report(worker, &results);
        let (now, is_short) = (transaction.now, transaction.scheduler.is_short());
        let dispatch = &mut transaction.scheduler.dispatch;
        for returned in &returned {
            if let Some(failure) = returned.failure.as_ref().filter(|_| dispatch.may_tell(now, &machine)) {
                warn!(%worker, job = %returned.token.job, failure, "a worker failed to count a job");
            }
            dispatch.give_back(worker, returned);
        }
        let held = dispatch.heartbeat(now, worker, &held);
        let mut tokens = held.lost;
        let lost_states =
            tokens.iter().map(|token| dispatch.estimate(token.job)).fold(0, u64::saturating_add);
        let wanted = Wanted {
            states: wanted.states.saturating_sub(lost_states),
            jobs: wanted.jobs.saturating_sub(tokens.len()),
            ..wanted
        };
        if !is_short {
            tokens.extend(dispatch.grant(now, worker, wanted));
        }
        if leaving {
            dispatch.part(worker);
        }
        let faults = dispatch.new_faults(worker, &faults).to_vec();
        let told: Vec<_> = faults.iter().filter(|_| dispatch.may_tell(now, &machine)).collect();
        let grant = |token: LeaseToken| {
            let (states, mirrored) = (dispatch.estimate(token.job), dispatch.is_mirrored(token.job));
            Granted { token, states, mirrored }
        };
        let granted = tokens.into_iter().map(grant).collect();
        transaction.tell(told.into_iter().map(|fault| NewEvent::engine_failed(worker, &machine, fault)));
        Ok(Some(Synced { acks, granted, revoked: held.revoked, drain }))
    }
}

/// Returns leases that did not fit into the response; their jobs are leased again.
pub fn give_back(worker: WorkerId, tokens: Vec<LeaseToken>) -> impl Request<Answer = ()> {
    move |transaction: &mut Transaction<'_>| {
        for token in tokens {
            let returned = ReturnedLease { token, failure: None };
            transaction.scheduler.dispatch.give_back(worker, &returned);
        }
        Ok(())
    }
}
