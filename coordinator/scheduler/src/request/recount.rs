//! What the coordinator has counted itself, and what it could not.

use nqueens_model::id::{JobId, LeaseToken};
use nqueens_model::kernel::KernelName;

use super::{Compare, Request};
use crate::change::Change;
use crate::dispatch::Accepted;
use crate::refusal::Refusal;
use crate::transaction::{Needs, Transaction};

/// The coordinator has counted a job, or a part of one, itself. For the record: what follows if the counts differ is up to
/// [`Compare`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recounted {
    /// The job.
    pub job: JobId,
    /// Number of the part; `None` if all of the job was counted.
    pub part: Option<u8>,
    /// The engine that counted.
    pub kernel: KernelName,
    /// Whether the accepted result has the same counts.
    pub agrees: bool,
    /// Time of one thread, in microseconds.
    pub elapsed_us: u64,
}

impl Request for Recounted {
    type Answer = ();

    fn apply(self, transaction: &mut Transaction<'_>) -> Result<(), Refusal> {
        transaction.change(Change::Recounted(self));
        Ok(())
    }
}

/// [`Compare`]s a count that follows from one of a part: the other parts are taken from the accepted result. Nothing happens
/// if that result stands no longer.
#[derive(Clone, Debug)]
pub struct Refute(pub Compare);

impl Request for Refute {
    type Answer = ();

    fn needs(&self, needs: &mut Needs) {
        self.0.needs(needs);
    }

    fn apply(self, transaction: &mut Transaction<'_>) -> Result<(), Refusal> {
        if standing(transaction, self.0.result.token).is_some() { self.0.apply(transaction) } else { Ok(()) }
    }
}

/// Has a job counted by another machine whose accepted result does not tell what each part of the job has, so that no part
/// can be checked. Nothing happens if the result of this lease stands no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckWhole(pub LeaseToken);

impl Request for CheckWhole {
    type Answer = ();

    fn needs(&self, needs: &mut Needs) {
        needs.reported.push(self.0.job);
    }

    fn apply(self, transaction: &mut Transaction<'_>) -> Result<(), Refusal> {
        if let Some(accepted) = standing(transaction, self.0) {
            transaction.scheduler.dispatch.check_again(self.0.job, &accepted);
        }
        Ok(())
    }
}

/// The accepted result of a job, if it is the one of this lease.
fn standing(
    transaction: &Transaction<'_>,
    LeaseToken { job, epoch, incarnation }: LeaseToken,
) -> Option<Accepted> {
    let accepted = transaction.loaded.get(&job)?.accepted?;
    ((accepted.epoch, accepted.incarnation) == (epoch, incarnation)).then_some(accepted)
}
