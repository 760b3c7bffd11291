//! What the coordinator's writer can be asked, by whom, and what it answers.

use nqueens_model::id::RunId;
use nqueens_model::message::Session;
use nqueens_scheduler::request::{
    ActivateRun, CheckWhole, Drain, Expire, FinishRun, GiveBack, GiveUp, PlanJobs, PlanRun, Recounted,
    Register, Requeue, RetryQuarantined, SetRunState, SetTrust, Sync, Synced,
};
use nqueens_scheduler::{Needs, Refusal, Request, Transaction};

use crate::worker::Caller;

#[derive(Clone, Debug)]
pub(crate) enum Ask {
    Register(Register),
    Sync(Sync),
    GiveBack(GiveBack),
    Recounted(Recounted),
    GiveUp(GiveUp),
    CheckWhole(CheckWhole),
    PlanRun(PlanRun),
    PlanJobs(PlanJobs),
    ActivateRun(ActivateRun),
    FinishRun(FinishRun),
    SetRunState(SetRunState),
    RetryQuarantined(RetryQuarantined),
    Requeue(Requeue),
    SetTrust(SetTrust),
    Drain(Drain),
    Expire(Expire),
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
            Self::CheckWhole(check) => check.needs(needs),
            Self::Requeue(requeue) => requeue.needs(needs),
            _ => {}
        }
    }

    pub(crate) fn apply(self, transaction: &mut Transaction<'_>) -> Result<Answer, Refusal> {
        let done = |()| Answer::Done;
        match self {
            Self::Register(request) => transaction.apply(request).map(Answer::Registered),
            Self::Sync(sync) => transaction.apply(sync).map(Answer::Synced),
            Self::FinishRun(finish) => transaction.apply(finish).map(Answer::Finished),
            Self::Requeue(requeue) => transaction.apply(requeue).map(|_| Answer::Done),
            Self::GiveBack(request) => transaction.apply(request).map(done),
            Self::Recounted(request) => transaction.apply(request).map(done),
            Self::GiveUp(request) => transaction.apply(request).map(done),
            Self::CheckWhole(request) => transaction.apply(request).map(done),
            Self::PlanRun(request) => transaction.apply(request).map(done),
            Self::PlanJobs(request) => transaction.apply(request).map(done),
            Self::ActivateRun(request) => transaction.apply(request).map(done),
            Self::SetRunState(request) => transaction.apply(request).map(done),
            Self::RetryQuarantined(request) => transaction.apply(request).map(done),
            Self::SetTrust(request) => transaction.apply(request).map(done),
            Self::Drain(request) => transaction.apply(request).map(done),
            Self::Expire(request) => transaction.apply(request).map(done),
        }
    }
}

/// The secret that the coordinator draws when a process registers.
pub(crate) fn secret(instance: [u8; 16]) -> [u8; 16] {
    instance.map(|byte| !byte)
}
