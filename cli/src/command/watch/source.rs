//! Takes snapshots of a coordinator or a database, and executes an operator's commands.

use anyhow::bail;
use nqueens_coordinator::wall_time;
use nqueens_model::id::{RunId, WorkerId};
use nqueens_model::operator::{Event, RunState, RunStatus, WallTime, WorkerStatus};

use crate::command::status::describe_disk;
use crate::target::{Target, read};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Pause(RunId),
    Resume(RunId),
    Drain(WorkerId),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    /// By this machine's clock.
    pub(super) at: WallTime,
    /// Oldest first.
    pub(super) runs: Vec<RunStatus>,
    /// None of a database: it does not know who is there.
    pub(super) workers: Vec<WorkerStatus>,
    pub(super) events: Vec<Event>,
    /// A warning of the coordinator's disk.
    pub(super) disk: Option<String>,
}

/// A coordinator, or a database that is only read.
pub(super) struct Source {
    pub(super) target: Target,
    pub(super) only: Option<RunId>,
}

impl Source {
    pub(super) fn is_database(&self) -> bool {
        matches!(self.target, Target::Database(_))
    }

    pub(super) async fn runs(&mut self) -> anyhow::Result<Vec<RunStatus>> {
        match self.only {
            Some(run) => Ok(vec![self.target.run(run).await?]),
            None => self.target.runs().await,
        }
    }

    pub(super) async fn snapshot(&mut self) -> anyhow::Result<Snapshot> {
        let disk = self.target.disk().await?.filter(|disk| disk.is_short);
        let runs = self.runs().await?;
        let (workers, events) = match &mut self.target {
            Target::Coordinator(client) => (client.workers().await?, client.events().await?),
            Target::Database(db) => (Vec::new(), read(db, async |reader| Ok(reader.events().await?)).await?),
        };
        let workers = workers.into_iter().filter(|worker| worker.is_listed() || worker.leases > 0).collect();
        Ok(Snapshot { at: wall_time(), runs, workers, events, disk: disk.as_ref().map(describe_disk) })
    }

    pub(super) async fn execute(&mut self, command: Command) -> anyhow::Result<String> {
        let Target::Coordinator(client) = &mut self.target else { bail!("a database is read-only here") };
        let run = match command {
            Command::Pause(run) => client.set_state(run, RunState::Paused).await?.progress,
            Command::Resume(run) => client.set_state(run, RunState::Active).await?.progress,
            Command::Drain(worker) => {
                client.drain(worker).await?;
                return Ok(format!("worker {worker} is draining"));
            }
        };
        Ok(format!("run {} is {}", run.run, run.state.name()))
    }
}
