//! What the coordinator's writer can be asked, by whom, and what it answers.

use nqueens_kernel::job::{Job, Weight};
use nqueens_kernel::plan::Fingerprint;
use nqueens_model::credential::Credential;
use nqueens_model::id::{JobId, LeaseToken, RunId, WorkerId};
use nqueens_model::message::{Registration, Session};
use nqueens_model::operator::{DiskRoom, MachineName, Outcome, RunState};
use nqueens_scheduler::request::{self, Recounted, Requeue, Sync, Synced};
use nqueens_scheduler::{Basis, Needs, Refusal, Request, RunSettings, Transaction, Why};

use crate::worker::Caller;

#[derive(Clone, Debug)]
pub(crate) enum Ask {
    Register { worker: Registration, credential: Credential, secret: [u8; 16] },
    Sync(Sync),
    GiveBack { worker: WorkerId, tokens: Vec<LeaseToken> },
    Recounted(Recounted),
    GiveUp { job: JobId, why: Why },
    PlanRun(RunSettings),
    PlanJobs { run: RunId, first: u32, jobs: Vec<(Job, Weight)> },
    ActivateRun { settings: RunSettings, fingerprint: Fingerprint, estimates: Vec<u64> },
    FinishRun { run: RunId, basis: Basis, outcome: Result<Outcome, String> },
    SetRunState { run: RunId, state: RunState },
    RetryQuarantined(RunId),
    Requeue(Requeue),
    SetTrust { machines: MachineName, trusted: bool },
    Drain(WorkerId),
    Expire { room: Option<DiskRoom> },
}

#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Registered(Session),
    Synced(Option<Synced>),
    /// Whether the run came to an end.
    Finished(bool),
    Done,
}

#[derive(Clone, Debug)]
pub(crate) enum Failure {
    Refused(Refusal),
    Unavailable,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Asker {
    Worker(Caller),
    /// The same, after it was kept waiting for work.
    Parked(Caller),
    /// A plan is stored in steps.
    Planner {
        submission: usize,
        step: usize,
    },
    Concluder(RunId),
    /// Somebody who does not wait for the answer.
    Nobody,
}

impl Ask {
    pub(crate) fn needs(&self, needs: &mut Needs) {
        match self {
            Self::Sync(sync) => sync.needs(needs),
            Self::Recounted(recounted) => recounted.needs(needs),
            Self::Requeue(requeue) => requeue.needs(needs),
            _ => {}
        }
    }

    pub(crate) fn apply(self, transaction: &mut Transaction<'_>) -> Result<Answer, Refusal> {
        let done = |()| Answer::Done;
        match self {
            Self::Register { worker, credential, secret } => {
                transaction.apply(request::register(worker, credential, secret)).map(Answer::Registered)
            }
            Self::Sync(sync) => transaction.apply(sync).map(Answer::Synced),
            Self::FinishRun { run, basis, outcome } => {
                transaction.apply(request::finish_run(run, basis, outcome)).map(Answer::Finished)
            }
            Self::Requeue(requeue) => transaction.apply(requeue).map(|_| Answer::Done),
            Self::GiveBack { worker, tokens } => {
                transaction.apply(request::give_back(worker, tokens)).map(done)
            }
            Self::Recounted(request) => transaction.apply(request).map(done),
            Self::GiveUp { job, why } => {
                transaction.apply(request::give_up(job, why, "told to".to_owned())).map(done)
            }
            Self::PlanRun(settings) => transaction.apply(request::plan_run(settings)).map(done),
            Self::PlanJobs { run, first, jobs } => {
                transaction.apply(request::plan_jobs(run, first, jobs)).map(done)
            }
            Self::ActivateRun { settings, fingerprint, estimates } => {
                transaction.apply(request::activate_run(settings, fingerprint, estimates)).map(done)
            }
            Self::SetRunState { run, state } => {
                transaction.apply(request::set_run_state(run, state)).map(done)
            }
            Self::RetryQuarantined(run) => transaction.apply(request::retry_quarantined(run)).map(done),
            Self::SetTrust { machines, trusted } => {
                transaction.apply(request::set_trust(machines, trusted)).map(done)
            }
            Self::Drain(worker) => transaction.apply(request::drain(worker)).map(done),
            Self::Expire { room } => transaction.apply(request::expire(room)).map(done),
        }
    }
}

/// The secret that the coordinator draws when a process registers.
pub(crate) fn secret(instance: [u8; 16]) -> [u8; 16] {
    instance.map(|byte| !byte)
}
