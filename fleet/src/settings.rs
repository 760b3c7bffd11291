//! What a fleet was started with: `fleet stop` needs it too.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::backend::Backend;
use crate::backend::command::{CommandBackend, Templates};
use crate::backend::slurm::Slurm;
use crate::decide::FleetLimits;
use crate::script::WorkerScript;

/// Where allocations come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchSystem {
    /// With these options of `sbatch`.
    Slurm(Vec<String>),
    Command(Templates),
}

/// Part of the fleet's state file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetSettings {
    pub system: BatchSystem,
    pub workers_max: u64,
    pub backlog: u64,
    /// Threads of an allocation until its worker reports them.
    pub threads: u64,
    /// Of an allocation, in seconds.
    pub time_limit: Option<u64>,
    /// Time for running jobs to finish when a worker is told to go, in seconds.
    pub drain_seconds: u64,
    /// Time between two looks while something changes, in seconds.
    pub interval: u64,
    /// The program `nqueens` on the nodes.
    pub program: PathBuf,
    /// Of `nqueens worker`, without its spool.
    pub arguments: Vec<String>,
}

impl FleetSettings {
    pub fn limits(&self) -> FleetLimits {
        let Self { workers_max, backlog, threads, interval, .. } = *self;
        FleetLimits { workers_max, backlog, threads, interval_s: interval }
    }

    pub fn worker(&self, folder: PathBuf) -> WorkerScript {
        WorkerScript { program: self.program.clone(), folder, arguments: self.arguments.clone() }
    }

    pub fn slurm(&self, folder: PathBuf, options: &[String]) -> Result<Slurm, String> {
        Slurm::new(self.worker(folder), self.time_limit, options.to_vec())
    }

    pub fn backend(&self, folder: PathBuf) -> Result<Box<dyn Backend + Send>, String> {
        Ok(match &self.system {
            BatchSystem::Slurm(options) => Box::new(self.slurm(folder, options)?),
            BatchSystem::Command(templates) => {
                Box::new(CommandBackend::new(self.worker(folder), templates.clone()))
            }
        })
    }
}
