//! What a fleet was started with: `fleet stop` needs it too.

use std::path::PathBuf;

use nqueens_fleet::backend::Backend;
use nqueens_fleet::backend::command::{CommandBackend, Templates};
use nqueens_fleet::backend::slurm::Slurm;
use nqueens_fleet::decide::FleetLimits;
use nqueens_fleet::script::WorkerScript;
use serde::{Deserialize, Serialize};

/// Where allocations come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum BatchSystem {
    /// With these options of `sbatch`.
    Slurm(Vec<String>),
    Command(Templates),
}

/// Part of the fleet's state file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FleetSettings {
    pub(super) system: BatchSystem,
    pub(super) workers_max: u64,
    pub(super) backlog: u64,
    /// Threads of an allocation until its worker reports them.
    pub(super) threads: u64,
    /// Of an allocation, in seconds.
    pub(super) time_limit: Option<u64>,
    /// Time for running jobs to finish when a worker is told to go, in seconds.
    pub(super) drain_seconds: u64,
    /// Time between two looks while something changes, in seconds.
    pub(super) interval: u64,
    /// The program `nqueens` on the nodes.
    pub(super) program: PathBuf,
    /// Of `nqueens worker`, without its spool.
    pub(super) arguments: Vec<String>,
}

impl FleetSettings {
    pub(super) fn limits(&self) -> FleetLimits {
        let Self { workers_max, backlog, threads, interval, .. } = *self;
        FleetLimits { workers_max, backlog, threads, interval_s: interval }
    }

    pub(super) fn worker(&self, folder: PathBuf) -> WorkerScript {
        WorkerScript { program: self.program.clone(), folder, arguments: self.arguments.clone() }
    }

    pub(super) fn slurm(&self, folder: PathBuf, options: &[String]) -> Result<Slurm, String> {
        Slurm::new(self.worker(folder), self.time_limit, options.to_vec())
    }

    /// The way to its allocations.
    pub(super) fn backend(&self, folder: PathBuf) -> Result<Box<dyn Backend + Send>, String> {
        Ok(match &self.system {
            BatchSystem::Slurm(options) => Box::new(self.slurm(folder, options)?),
            BatchSystem::Command(templates) => {
                Box::new(CommandBackend::new(self.worker(folder), templates.clone()))
            }
        })
    }
}
