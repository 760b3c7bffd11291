//! `nqueens fleet`: workers by way of a batch system.

mod lead;
mod start;
mod status;

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::ensure;
use clap::{Args, Subcommand};
use nqueens_fleet::UnixSeconds;
use nqueens_fleet::folder::FleetFolder;
use nqueens_fleet::look::StateStore;
use nqueens_fleet::state::FleetState;

/// Starts and keeps workers by way of a batch system, for the open runs of a coordinator.
///
/// 'fleet slurm' and 'fleet command' ask the coordinator how many threads its open runs can use, and submit
/// allocations: jobs of the batch system with one worker each. Ctrl-C ends the command, and its allocations go on; the
/// same command again goes on with them. 'fleet stop' ends them.
#[derive(Clone, Debug, Subcommand)]
#[command(after_help = "Example: nqueens fleet slurm --join cluster.join --workers-max 50 -- -p short -c 16")]
pub(crate) enum FleetCommand {
    Slurm(start::SlurmCommand),
    Command(start::CommandCommand),
    Status(status::FleetStatusCommand),
    /// Stops a fleet: its allocations are cancelled, and workers drain.
    ///
    /// Batch systems send SIGTERM first: workers finish their jobs within --drain-seconds, or return them. The command waits until
    /// nothing is left; after Ctrl-C the same command again goes on.
    #[command(after_help = "Example: nqueens fleet stop")]
    Stop(FleetDir),
}

/// Which fleet.
#[derive(Clone, Debug, Args)]
pub(crate) struct FleetDir {
    /// Folder of the fleet, on storage that all nodes share: state, logs and spools
    #[arg(long, value_name = "DIR", default_value = "nqueens-fleet")]
    dir: PathBuf,
}

fn now() -> UnixSeconds {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl FleetCommand {
    /// Whether its log is what there is to see of it.
    pub(crate) fn is_service(&self) -> bool {
        matches!(self, Self::Slurm(_) | Self::Command(_) | Self::Stop(_))
    }

    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Slurm(slurm) => slurm.execute(),
            Self::Command(command) => command.execute(),
            Self::Status(status) => status.execute(),
            Self::Stop(FleetDir { dir }) => stop(&FleetFolder::open(&dir)?),
        }
    }
}

fn stop(folder: &FleetFolder) -> anyhow::Result<ExitCode> {
    folder.change(FleetState::stop)?;
    loop {
        let before = folder.state()?;
        if let Some(_lock) = folder.lead()? {
            return lead::lead(folder, folder.settings()?, None);
        }
        if before.has_stopped {
            return Ok(ExitCode::SUCCESS);
        }
        ensure!(before.is_stopping, "the fleet was started again while it stopped");
        // Its own process stops it, or ends before it has.
        thread::sleep(Duration::from_secs(1));
    }
}
