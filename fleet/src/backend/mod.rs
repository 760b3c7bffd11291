//! Where allocations come from.

pub mod command;
pub mod slurm;

use crate::process::CommandError;
use crate::state::{AllocationId, QueueEntry};

/// Why a submit got no names of allocations.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// So many at once are not allowed: nothing was submitted.
    #[error("{0}")]
    Limit(String),
    /// The batch system refused it for another reason: nothing was submitted.
    #[error("{0}")]
    Refused(String),
    /// It may have been submitted: the answer did not come, or makes no sense.
    #[error("{0}")]
    Uncertain(String),
}

/// Parts of what batch systems say of a submit limit of a user, an account, a queue or a partition, or of the size of an
/// array: Slurm, Grid Engine, PBS, LSF, `HTCondor`.
const LIMITS: [&str; 6] =
    ["limit", "policy", "exceed", "are allowed per", "maximum", "job array specification"];

/// Parts of what they say where the answer got lost, and the job may be in the queue.
const SILENCES: [&str; 2] = ["timed out", "zero bytes were transmitted"];

pub(crate) fn submit_error(error: CommandError) -> SubmitError {
    match error {
        CommandError::Failed { complaint, .. } => {
            let text = complaint.to_ascii_lowercase();
            let has = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
            if has(&SILENCES) {
                SubmitError::Uncertain(complaint)
            } else if has(&LIMITS) && !has(&["time limit is invalid"]) {
                SubmitError::Limit(complaint)
            } else {
                SubmitError::Refused(complaint)
            }
        }
        CommandError::Start { .. } => SubmitError::Refused(error.to_string()),
        other => SubmitError::Uncertain(other.to_string()),
    }
}

/// A batch system. Calls return within [`SETTLE_S`](crate::decide::SETTLE_S) seconds.
pub trait Backend {
    /// Submits so many allocations, or the first few of them, each with one worker. They carry the name of this fleet.
    fn submit(&mut self, count: u32) -> Result<Vec<AllocationId>, SubmitError>;

    /// Lists the allocations of this fleet, those of earlier lives included, and those that ended lately.
    fn list(&mut self) -> Result<Vec<QueueEntry>, CommandError>;

    /// Tells the workers of these, which run, to drain. Those that have ended are no error.
    fn terminate(&mut self, ids: &[AllocationId]) -> Result<(), CommandError>;

    /// Removes these, whatever they are at. Those that have ended are no error.
    fn end(&mut self, ids: &[AllocationId]) -> Result<(), CommandError>;

    /// Counting threads that the worker of a running allocation has reported; `None` until it has.
    fn threads(&mut self, id: &AllocationId) -> Option<u64>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_about_submits() {
        let kind = |complaint: &str| {
            let program = "qsub".to_owned();
            match submit_error(CommandError::Failed { program, complaint: complaint.to_owned() }) {
                SubmitError::Limit(_) => "limit",
                SubmitError::Refused(_) => "refused",
                SubmitError::Uncertain(_) => "uncertain",
            }
        };
        for limit in [
            "sbatch: error: AssocMaxSubmitJobLimit; sbatch: error: Batch job submission failed: Job violates \
             accounting/QOS policy (job submit limit, user's size and/or time limits)",
            "sbatch: error: QOSMaxSubmitJobPerUserLimit",
            "sbatch: error: Batch job submission failed: Invalid job array specification",
            "job rejected: Only 2 jobs are allowed per user (current job count: 2)",
            "qsub: would exceed complex's per-user limit of jobs in 'Q' state",
            "User's pending job slot limit reached. Job not submitted.",
            "ERROR: Number of submitted jobs would exceed MAX_JOBS_PER_OWNER",
        ] {
            assert_eq!(kind(limit), "limit", "{limit}");
        }
        for refused in [
            "sbatch: error: Batch job submission failed: Invalid partition name specified",
            "sbatch: error: Batch job submission failed: Requested time limit is invalid (missing or exceeds some limit)",
            "exit code 1",
        ] {
            assert_eq!(kind(refused), "refused", "{refused}");
        }
        let lost = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation";
        assert_eq!(kind(lost), "uncertain");
    }
}
