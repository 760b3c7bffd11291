//! `nqueens generate`: completion scripts and manual pages.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Command, Subcommand};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::build::BUILD;
use crate::exit::statuses;
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
                write_manual(commands, &dir)?;
                print_line(format_args!("{0}: read them with 'man -l {0}/nqueens.1'", dir.display()))?;
            }
        }
        Ok(())
    }
}

/// Writes manual pages, made from the help, with what the help leaves out: exit status, examples.
fn write_manual(commands: Command, dir: &Path) -> anyhow::Result<()> {
    let mut commands = commands.disable_help_subcommand(true).long_version(BUILD);
    commands.build();
    fs::create_dir_all(dir).and_then(|()| write_page(&commands, dir)).with_context(|| {
        format!("writing manual pages to {}, which must be a writable directory", dir.display())
    })
}

/// Writes the page of a command and those of the commands below it.
fn write_page(command: &Command, dir: &Path) -> io::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write_page(below, dir)?;
    }
    let page = Man::new(command.clone().after_help(None::<&str>));
    let mut file = File::create(dir.join(page.get_filename()))?;
    page.render(&mut file)?;
    // As in `nqueens-fleet-slurm`.
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let name = name.strip_prefix("nqueens-").unwrap_or_default();
    let mut roff = Roff::new();
    roff.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in statuses(name) {
        roff.control("TP", []);
        roff.text([bold(code.to_string())]);
        roff.text([roman(meaning)]);
    }
    if let Some(help) = command.get_after_help() {
        let example = help.to_string();
        roff.control("SH", ["EXAMPLES"]);
        roff.text([roman(example.trim_start_matches("Example: "))]);
    }
    roff.to_writer(&mut file)
}
