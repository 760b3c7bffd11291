//! Where allocations come from.

pub mod local;
pub mod pbs;
pub mod slurm;

use crate::process::CommandError;
use crate::state::{AllocationId, AllocationState};

/// An allocation as the batch system shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueEntry {
    /// Its name there.
    pub id: AllocationId,
    /// What it does.
    pub state: AllocationState,
    /// Where it runs or ran; empty if that is not known.
    pub node: String,
}

/// Why a submit got no names of allocations.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The batch system refused it: nothing was submitted.
    #[error("{0}")]
    Refused(String),
    /// It may have been submitted: the answer did not come, or makes no sense.
    #[error("{0}")]
    Uncertain(String),
}

/// A batch system. Calls return within [`SETTLE_S`](crate::decide::SETTLE_S) seconds.
pub trait Backend {
    /// Submits so many allocations, each with one worker. They carry the mark of this fleet.
    fn submit(&mut self, count: u32) -> Result<Vec<AllocationId>, SubmitError>;

    /// Lists the allocations with the mark of this fleet, those of earlier lives included, and those that ended lately.
    fn list(&mut self) -> Result<Vec<QueueEntry>, CommandError>;

    /// Sends the processes of these, which run, SIGTERM, and nothing after it. Those that have ended are no error.
    fn terminate(&mut self, ids: &[AllocationId]) -> Result<(), CommandError>;

    /// Removes these, whatever they are at. Those that have ended are no error.
    fn end(&mut self, ids: &[AllocationId]) -> Result<(), CommandError>;
}
