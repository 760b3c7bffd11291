//! `nqueens fleet`: workers by way of a batch system.

mod demand;
mod lead;
mod pause;
mod settings;
mod start;
mod status;
mod stop;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use nqueens_fleet::UnixSeconds;
use nqueens_fleet::folder::{FleetFolder, FolderError};

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
    Pause(pause::PauseFleetCommand),
    Resume(pause::ResumeFleetCommand),
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
}

/// The time of day.
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
            FleetVerb::Pause(pause) => pause.execute(),
            FleetVerb::Resume(resume) => resume.execute(),
            FleetVerb::Stop(stop) => stop.execute(),
        }
    }
}
