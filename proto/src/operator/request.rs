//! What the smaller requests are about.

use super::{RunState, run_id, worker_id};
use crate::convert::{InvalidMessage, invalid};
use crate::id::{RunId, WorkerId};
use crate::v1;

impl v1::GetRunRequest {
    /// The run asked for.
    pub fn id(&self) -> Result<RunId, InvalidMessage> {
        run_id(self.run)
    }
}

impl v1::SetRunStateRequest {
    /// The run, and what it is to be: active, paused or cancelled.
    pub fn change(&self) -> Result<(RunId, RunState), InvalidMessage> {
        match RunState::try_from(self.state())? {
            RunState::Done | RunState::Failed => Err(invalid("state", "must be active, paused or cancelled")),
            state => Ok((run_id(self.run)?, state)),
        }
    }
}

impl v1::RetryQuarantinedRequest {
    /// The run asked for.
    pub fn id(&self) -> Result<RunId, InvalidMessage> {
        run_id(self.run)
    }
}

/// Whose results are taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blamed {
    /// That of the job of this number.
    Job(u32),
    /// Those of this worker.
    Worker(WorkerId),
}

impl v1::RequeueRequest {
    /// The run, and whose results are taken back.
    pub fn subject(&self) -> Result<(RunId, Blamed), InvalidMessage> {
        let blamed = match (self.job, self.worker_id) {
            (Some(job), 0) => Blamed::Job(job),
            (None, worker) => Blamed::Worker(worker_id("worker_id", worker)?),
            (Some(_), _) => return Err(invalid("job", "and worker_id exclude each other")),
        };
        Ok((run_id(self.run)?, blamed))
    }
}

impl From<(RunId, Blamed)> for v1::RequeueRequest {
    fn from((run, blamed): (RunId, Blamed)) -> Self {
        let (job, worker_id) = match blamed {
            Blamed::Job(job) => (Some(job), 0),
            Blamed::Worker(worker) => (None, worker.get()),
        };
        Self { run: run.get(), job, worker_id }
    }
}

impl v1::DrainWorkerRequest {
    /// The worker asked for.
    pub fn id(&self) -> Result<WorkerId, InvalidMessage> {
        worker_id("worker_id", self.worker_id)
    }
}

impl v1::WatchProgressRequest {
    /// The run to watch, or `None` for all, and the milliseconds between two messages, `200..=3_600_000`.
    pub fn subject(&self) -> Result<(Option<RunId>, u32), InvalidMessage> {
        if !(200..=3_600_000).contains(&self.interval_ms) {
            return Err(invalid("interval_ms", "must be in 200..3600000"));
        }
        let run = (self.run != 0).then(|| run_id(self.run)).transpose()?;
        Ok((run, self.interval_ms))
    }
}
