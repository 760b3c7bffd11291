//! What a fleet was started with: `fleet stop` needs it too.

use std::path::PathBuf;

use nqueens_fleet::backend::Backend;
use nqueens_fleet::backend::local::Local;
use nqueens_fleet::backend::pbs::Pbs;
use nqueens_fleet::backend::slurm::Slurm;
use nqueens_fleet::decide::FleetLimits;
use nqueens_fleet::script::WorkerScript;
use serde::{Deserialize, Serialize};

/// Where allocations come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum BatchSystem {
    /// `sbatch`, `squeue`, `scancel`.
    Slurm,
    /// `qsub`, `qstat`, `qdel`.
    Pbs,
    /// Processes of this machine.
    Local,
}

impl BatchSystem {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Slurm => "Slurm",
            Self::Pbs => "PBS",
            Self::Local => "this machine",
        }
    }
}

/// Part of the fleet's state file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FleetSettings {
    pub(super) system: BatchSystem,
    /// Name of its jobs in the batch system.
    pub(super) name: String,
    pub(super) workers_max: u64,
    pub(super) backlog: u64,
    /// Threads of an allocation.
    pub(super) threads: u64,
    /// Of an allocation, in seconds.
    pub(super) time_limit: Option<u64>,
    /// Time for running jobs to finish when a worker is told to go, in seconds.
    pub(super) drain_seconds: u64,
    /// The program `nqueens` on the nodes.
    pub(super) program: PathBuf,
    /// Of `nqueens worker`, without its spool.
    pub(super) arguments: Vec<String>,
    /// Of the batch system's submit command.
    pub(super) options: Vec<String>,
}

impl FleetSettings {
    pub(super) fn limits(&self) -> FleetLimits {
        let Self { workers_max, backlog, threads, .. } = *self;
        FleetLimits { workers_max, backlog, threads }
    }

    fn worker(&self, folder: PathBuf) -> WorkerScript {
        WorkerScript { program: self.program.clone(), folder, arguments: self.arguments.clone() }
    }

    pub(super) fn slurm(&self, folder: PathBuf) -> Result<Slurm, String> {
        Slurm::new(self.worker(folder), self.name.clone(), self.time_limit, self.options.clone())
    }

    pub(super) fn pbs(&self, folder: PathBuf) -> Result<Pbs, String> {
        Pbs::new(self.worker(folder), self.name.clone(), self.time_limit, self.options.clone())
    }

    /// The way to its allocations.
    pub(super) fn backend(&self, folder: PathBuf) -> Result<Box<dyn Backend + Send>, String> {
        Ok(match self.system {
            BatchSystem::Slurm => Box::new(self.slurm(folder)?),
            BatchSystem::Pbs => Box::new(self.pbs(folder)?),
            BatchSystem::Local => Box::new(Local::new(self.worker(folder))),
        })
    }
}
