//! All requests, each with the type of its answer.

mod operator;
mod recount;
mod run;
#[cfg(test)]
mod tests;
mod worker;

pub use operator::{Requeue, drain, expire, release_all, retry_quarantined, set_run_state, set_trust};
pub use recount::{Recounted, give_up};
pub use run::{activate_run, finish_run, plan_jobs, plan_run, plan_small_run};
pub use worker::{Granted, Sync, Synced, give_back, register};

use crate::refusal::Refusal;
use crate::transaction::{Needs, Transaction};

/// Something that a transaction can be asked for.
pub trait Request: Send + 'static {
    type Answer: Send + 'static;

    /// Says what has to be loaded before it is applied.
    fn needs(&self, _needs: &mut Needs) {}

    fn apply(self, transaction: &mut Transaction<'_>) -> Result<Self::Answer, Refusal>;
}

/// What needs nothing to be loaded.
impl<A, F> Request for F
where
    A: Send + 'static,
    F: FnOnce(&mut Transaction<'_>) -> Result<A, Refusal> + Send + 'static,
{
    type Answer = A;

    fn apply(self, transaction: &mut Transaction<'_>) -> Result<A, Refusal> {
        self(transaction)
    }
}

impl Transaction<'_> {
    pub fn apply<R: Request>(&mut self, request: R) -> Result<R::Answer, Refusal> {
        request.apply(self)
    }
}
