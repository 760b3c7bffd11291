//! All requests, each with the type of its answer.

mod operator;
mod recount;
mod run;
#[cfg(test)]
mod tests;
mod worker;

pub use operator::{Drain, Expire, ReleaseAll, Requeue, RetryQuarantined, SetRunState, SetTrust};
pub use recount::{CheckWhole, GiveUp, Recounted};
pub use run::{ActivateRun, FinishRun, PlanJobs, PlanRun, PlanSmallRun};
pub use worker::{GiveBack, Granted, Register, Sync, Synced};

use crate::refusal::Refusal;
use crate::transaction::{Needs, Transaction};

/// Something that a transaction can be asked for.
pub trait Request: Send + 'static {
    type Answer: Send + 'static;

    /// Says what has to be loaded before it is applied.
    fn needs(&self, _needs: &mut Needs) {}

    fn apply(self, transaction: &mut Transaction<'_>) -> Result<Self::Answer, Refusal>;
}

impl Transaction<'_> {
    pub fn apply<R: Request>(&mut self, request: R) -> Result<R::Answer, Refusal> {
        request.apply(self)
    }
}
