//! `nqueens fleet pause` and `fleet resume`.

use std::process::ExitCode;

use clap::Args;
use nqueens_fleet::folder::FleetFile;

use super::settings::FleetSettings;
use super::{FleetDir, now};
use crate::output::print_line;

/// Pauses a fleet: it submits nothing, and its allocations go on.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens fleet pause")]
pub(super) struct PauseFleetCommand {
    #[command(flatten)]
    dir: FleetDir,
}

impl PauseFleetCommand {
    pub(super) fn execute(self) -> anyhow::Result<ExitCode> {
        self.dir.open()?.change(|file: &mut FleetFile<FleetSettings>| {
            file.state.pause(now(), "an operator paused it".to_owned());
        })?;
        print_line("the fleet is paused: it submits nothing until 'nqueens fleet resume'")?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Resumes a fleet that an operator paused or that paused itself, and forgets what it held against the batch system.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens fleet resume")]
pub(super) struct ResumeFleetCommand {
    #[command(flatten)]
    dir: FleetDir,
}

impl ResumeFleetCommand {
    pub(super) fn execute(self) -> anyhow::Result<ExitCode> {
        let was_paused = self.dir.open()?.change(|file: &mut FleetFile<FleetSettings>| {
            let was_paused = file.state.pause.is_some();
            file.state.resume();
            was_paused
        })?;
        print_line(if was_paused { "the fleet submits again" } else { "the fleet was not paused" })?;
        Ok(ExitCode::SUCCESS)
    }
}
