//! `nqueens fleet stop`.

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use nqueens_fleet::folder::FolderError;
use nqueens_fleet::settings::FleetSettings;
use tracing::info;

use super::lead::{Leader, lead};
use super::{FleetDir, now};

/// Time for a worker that drains to return what it could not finish, beyond its own time to drain.
const RETURN_S: u64 = 15;

/// Time between two looks, here or at what the fleet's own process does.
const INTERVAL: Duration = Duration::from_secs(1);

/// Stops a fleet: workers drain, then what is left is cancelled.
///
/// Queued allocations are cancelled at once. Running ones get SIGTERM: their workers finish or return their jobs. What is left
/// after the time to drain is cancelled. The command waits for all that; after Ctrl-C the same command again goes on.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens fleet stop")]
pub(super) struct StopFleetCommand {
    #[command(flatten)]
    dir: FleetDir,

    /// Time until what is left is cancelled [default: --drain-seconds of the fleet and 15 seconds]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(0..=86_400))]
    drain_seconds: Option<u64>,
}

impl StopFleetCommand {
    pub(super) fn execute(self) -> anyhow::Result<ExitCode> {
        let folder = self.dir.open()?;
        folder.change(|file| {
            let drain_s = self.drain_seconds.unwrap_or(file.settings.drain_seconds + RETURN_S);
            file.state.stop(now(), drain_s);
        })?;
        loop {
            let file = folder.read()?;
            match folder.lead() {
                Ok(held) => {
                    let settings = FleetSettings { interval: INTERVAL.as_secs(), ..file.settings };
                    let backend = settings.backend(folder.path().to_owned()).map_err(anyhow::Error::msg)?;
                    return lead(Leader::new(folder, backend, &settings, held), None);
                }
                // Its own process stops it, or ends before it has.
                Err(FolderError::InUse(_)) => {}
                Err(error) => bail!(error),
            }
            match file.state.stopping {
                Some(stopping) if !stopping.is_over => thread::sleep(INTERVAL),
                Some(_) => {
                    info!("the fleet has stopped: none of its allocations is left");
                    return Ok(ExitCode::SUCCESS);
                }
                None => bail!("the fleet was started again while it stopped"),
            }
        }
    }
}
