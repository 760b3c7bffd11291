//! `nqueens fleet`: workers by way of a batch system.

mod demand;
mod lead;
mod start;
mod status;
mod stop;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use nqueens_fleet::UnixSeconds;
use nqueens_fleet::folder::{FleetFolder, FolderError};

use crate::output::print_line;

/// Starts and keeps workers by way of a batch system, for the open runs of a coordinator.
///
/// 'fleet slurm' and 'fleet command' ask the coordinator how many threads its open runs can use, and submit
/// allocations: jobs of the batch system with one worker each. Ctrl-C ends the command, and its allocations go on; the
/// same command again goes on with them. 'fleet stop' ends them.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens fleet slurm --join cluster.join --workers-max 50 -- -p short -c 16")]
pub(crate) struct FleetCommand {
    #[command(subcommand)]
    verb: FleetVerb,
}

#[derive(Clone, Debug, Subcommand)]
enum FleetVerb {
    Slurm(start::SlurmCommand),
    Command(start::CommandCommand),
    Status(status::FleetStatusCommand),
    /// Pauses a fleet: it submits nothing, and its allocations go on
    #[command(after_help = "Example: nqueens fleet pause")]
    Pause(FleetDir),
    /// Resumes a fleet that an operator paused or that paused itself, and forgets what it held against the batch system
    #[command(after_help = "Example: nqueens fleet resume")]
    Resume(FleetDir),
    Stop(stop::StopFleetCommand),
}

/// Which fleet.
#[derive(Clone, Debug, Args)]
struct FleetDir {
    /// Folder of the fleet, on storage that all nodes share: state, logs and spools
    #[arg(long, value_name = "DIR", default_value = "nqueens-fleet")]
    dir: PathBuf,
}

impl FleetDir {
    fn open(&self) -> Result<FleetFolder, FolderError> {
        FleetFolder::open(&self.dir)
    }

    fn pause(&self) -> anyhow::Result<ExitCode> {
        self.open()?.change(|file| file.state.pause(now(), "an operator paused it".to_owned()))?;
        print_line("the fleet is paused: it submits nothing until 'nqueens fleet resume'")?;
        Ok(ExitCode::SUCCESS)
    }

    fn resume(&self) -> anyhow::Result<ExitCode> {
        let was_paused = self.open()?.change(|file| {
            let was_paused = file.state.pause.is_some();
            file.state.resume();
            was_paused
        })?;
        print_line(if was_paused { "the fleet submits again" } else { "the fleet was not paused" })?;
        Ok(ExitCode::SUCCESS)
    }
}

fn now() -> UnixSeconds {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap_or_default().as_secs()
}

impl FleetCommand {
    /// Whether its log is what there is to see of it.
    pub(crate) fn is_service(&self) -> bool {
        matches!(self.verb, FleetVerb::Slurm(_) | FleetVerb::Command(_) | FleetVerb::Stop(_))
    }

    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        match self.verb {
            FleetVerb::Slurm(slurm) => slurm.execute(),
            FleetVerb::Command(command) => command.execute(),
            FleetVerb::Status(status) => status.execute(),
            FleetVerb::Pause(dir) => dir.pause(),
            FleetVerb::Resume(dir) => dir.resume(),
            FleetVerb::Stop(stop) => stop.execute(),
        }
    }
}
