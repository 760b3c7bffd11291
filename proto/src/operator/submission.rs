//! A request for a run.

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::plan::Plan;

use super::plan;
use crate::convert::{InvalidMessage, invalid};
use crate::id::RunId;
use crate::v1;

/// A request for a run. The same one again is the same run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submission {
    /// Drawn by whoever asks; the run's name and the order of its jobs follow from it.
    pub request: [u8; 16],
    /// How N is to be cut into jobs.
    pub plan: Plan,
    /// Among active runs, higher goes first.
    pub priority: i32,
    /// At least this share of its results is counted by a second machine, in millionths; 0 for none.
    pub replicate_ppm: u32,
}

impl Submission {
    /// The name of the run.
    pub fn run(&self) -> RunId {
        RunId::from_random(self.bits(0))
    }

    /// Fixes the order of the run's jobs.
    pub fn seed(&self) -> u64 {
        self.bits(8)
    }

    fn bits(&self, from: usize) -> u64 {
        u64::from_be_bytes(self.request[from..from + 8].try_into().expect("8 bytes"))
    }
}

impl From<Submission> for v1::SubmitRequest {
    fn from(submission: Submission) -> Self {
        Self {
            request_id: submission.request.to_vec(),
            n: submission.plan.n().get(),
            plan: submission.plan.kind().name().to_owned(),
            states_per_job: submission.plan.states_per_job(),
            priority: submission.priority,
            replicate_ppm: submission.replicate_ppm,
        }
    }
}

impl TryFrom<v1::SubmitRequest> for Submission {
    type Error = InvalidMessage;

    fn try_from(wire: v1::SubmitRequest) -> Result<Self, Self::Error> {
        let n = BoardSize::new(wire.n).map_err(|error| invalid("n", error))?;
        Ok(Self {
            request: wire.request_id.try_into().map_err(|_| invalid("request_id", "must be 16 bytes"))?,
            plan: plan(n, &wire.plan, wire.states_per_job)?,
            priority: wire.priority,
            replicate_ppm: (wire.replicate_ppm <= 1_000_000)
                .then_some(wire.replicate_ppm)
                .ok_or_else(|| invalid("replicate_ppm", "must be in 0..1000000"))?,
        })
    }
}
