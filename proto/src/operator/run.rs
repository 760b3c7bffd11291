//! A run in full.

use nqueens_kernel::plan::{Fingerprint, Plan};

use super::{Outcome, Progress, RunState, WallTime, plan};
use crate::convert::{InvalidMessage, invalid};
use crate::v1;

/// A run in full.
#[derive(Clone, Debug, PartialEq)]
pub struct RunStatus {
    /// How far it is, with its name, board and state.
    pub progress: Progress,
    /// How N was cut into jobs.
    pub plan: Plan,
    /// Of the plan.
    pub fingerprint: Fingerprint,
    /// Among active runs, higher goes first.
    pub priority: i32,
    /// At least this share of its results is counted by a second machine, in millionths.
    pub replicate_ppm: u32,
    /// Which check it did not pass, if it failed.
    pub reason: Option<String>,
    /// When it was submitted.
    pub created_at: WallTime,
    /// When it was done.
    pub finished_at: Option<WallTime>,
    /// The result, once it is done.
    pub outcome: Option<Outcome>,
}

impl From<RunStatus> for v1::Run {
    fn from(run: RunStatus) -> Self {
        Self {
            progress: Some(run.progress.into()),
            plan: run.plan.kind().name().to_owned(),
            states_per_job: run.plan.states_per_job(),
            fingerprint: run.fingerprint.0.to_vec(),
            priority: run.priority,
            replicate_ppm: run.replicate_ppm,
            reason: run.reason.unwrap_or_default(),
            created_at_ms: run.created_at,
            finished_at_ms: run.finished_at,
            result: run.outcome.map(Into::into),
        }
    }
}

impl TryFrom<v1::Run> for RunStatus {
    type Error = InvalidMessage;

    fn try_from(wire: v1::Run) -> Result<Self, Self::Error> {
        let progress: Progress =
            wire.progress.ok_or_else(|| invalid("progress", "is missing"))?.try_into()?;
        let outcome = wire.result.map(Outcome::try_from).transpose()?;
        if (progress.state == RunState::Done) != outcome.is_some() {
            return Err(invalid("result", "is there if and only if the run is done"));
        }
        let fingerprint =
            wire.fingerprint.try_into().map_err(|_| invalid("fingerprint", "must be 32 bytes"))?;
        Ok(Self {
            plan: plan(progress.n, &wire.plan, wire.states_per_job)?,
            fingerprint: Fingerprint(fingerprint),
            priority: wire.priority,
            replicate_ppm: wire.replicate_ppm,
            reason: Some(wire.reason).filter(|reason| !reason.is_empty()),
            created_at: wire.created_at_ms,
            finished_at: wire.finished_at_ms,
            outcome,
            progress,
        })
    }
}

impl TryFrom<Option<v1::Run>> for RunStatus {
    type Error = InvalidMessage;

    fn try_from(wire: Option<v1::Run>) -> Result<Self, Self::Error> {
        wire.ok_or_else(|| invalid("run", "is missing"))?.try_into()
    }
}
