//! `nqueens fleet`: workers by way of a batch system.

mod lead;
mod start;
mod status;

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::bail;
use clap::{Args, Subcommand};
use nqueens_fleet::UnixSeconds;
use nqueens_fleet::folder::FleetFolder;

use crate::output::print_line;

/// Time for a worker that drains to return what it could not finish, beyond its own time to drain.
const RETURN_S: u64 = 15;

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
    /// Stops a fleet: workers drain, then what is left is cancelled.
    ///
    /// Queued allocations are cancelled at once. Running ones get SIGTERM: their workers finish or return their jobs. What is
    /// left after the time to drain is cancelled. The command waits for all that; after Ctrl-C the same command again goes on.
    #[command(after_help = "Example: nqueens fleet stop")]
    Stop {
        #[command(flatten)]
        dir: FleetDir,

        /// Time until what is left is cancelled [default: --drain-seconds of the fleet and 15 seconds]
        #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(0..=86_400))]
        drain_seconds: Option<u64>,
    },
}

/// Which fleet.
#[derive(Clone, Debug, Args)]
struct FleetDir {
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
        matches!(self.verb, FleetVerb::Slurm(_) | FleetVerb::Command(_) | FleetVerb::Stop { .. })
    }

    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        match self.verb {
            FleetVerb::Slurm(slurm) => return slurm.execute(),
            FleetVerb::Command(command) => return command.execute(),
            FleetVerb::Status(status) => status.execute()?,
            FleetVerb::Pause(FleetDir { dir }) => {
                FleetFolder::open(&dir)?
                    .change(|state| state.pause = Some("an operator paused it".to_owned()))?;
                print_line("the fleet is paused: it submits nothing until 'nqueens fleet resume'")?;
            }
            FleetVerb::Resume(FleetDir { dir }) => {
                let was_paused = FleetFolder::open(&dir)?.change(|state| {
                    let pause = state.pause.take();
                    state.resume();
                    pause.is_some()
                })?;
                print_line(if was_paused { "the fleet submits again" } else { "the fleet was not paused" })?;
            }
            FleetVerb::Stop { dir, drain_seconds } => {
                return stop(&FleetFolder::open(&dir.dir)?, drain_seconds);
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn stop(folder: &FleetFolder, drain_seconds: Option<u64>) -> anyhow::Result<ExitCode> {
    let mut settings = folder.settings()?;
    let drain_s = drain_seconds.unwrap_or(settings.drain_seconds + RETURN_S);
    folder.change(|state| state.stop(now(), drain_s))?;
    settings.limits.interval = 1;
    loop {
        let before = folder.state()?;
        if let Some(lock) = folder.lead()? {
            return lead::lead(folder, settings, &lock, None);
        }
        // Its own process stops it, or ends before it has.
        match before.stop_by {
            Some(_) if before.has_stopped => return Ok(ExitCode::SUCCESS),
            Some(_) => thread::sleep(Duration::from_secs(1)),
            None => bail!("the fleet was started again while it stopped"),
        }
    }
}
