//! `nqueens completions`: completion scripts for shells.

use std::io::Write;
use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::output::stdout;

/// Prints a completion script for a shell.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Example: nqueens completions bash > ~/.local/share/bash-completion/completions/nqueens"
)]
pub(crate) struct CompletionsCommand {
    /// The shell
    shell: Shell,
}

impl CompletionsCommand {
    pub(crate) fn execute(self, mut commands: Command) -> anyhow::Result<ExitCode> {
        // The generator panics where it can't write, so it writes to memory.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut commands, "nqueens", &mut script);
        stdout().write_all(&script)?;
        Ok(ExitCode::SUCCESS)
    }
}
