//! `nqueens generate`: completion scripts and manual pages.

use std::io::Write;
use std::path::PathBuf;

use clap::{Command, Subcommand};
use clap_complete::Shell;

use crate::manual;
use crate::output::{print_line, stdout};

/// Writes shell completions and manual pages.
#[derive(Clone, Debug, Subcommand)]
#[command(
    after_help = "Example: nqueens generate completions bash > ~/.local/share/bash-completion/completions/nqueens"
)]
pub(crate) enum GenerateCommand {
    /// Prints a completion script
    #[command(after_help = "Example: nqueens generate completions fish")]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Writes manual pages, one for each command
    #[command(after_help = "Example: nqueens generate man ~/.local/share/man/man1")]
    Man {
        /// Directory for the pages, created if it does not exist; existing pages are replaced
        dir: PathBuf,
    },
}

impl GenerateCommand {
    pub(crate) fn execute(self, mut commands: Command) -> anyhow::Result<()> {
        match self {
            Self::Completions { shell } => {
                // The generator panics where it can't write, so it writes to memory.
                let mut script = Vec::new();
                clap_complete::generate(shell, &mut commands, "nqueens", &mut script);
                stdout().write_all(&script)?;
            }
            Self::Man { dir } => {
                manual::write(commands, &dir)?;
                print_line(format_args!("{0}: read them with 'man -l {0}/nqueens.1'", dir.display()))?;
            }
        }
        Ok(())
    }
}
