//! `nqueens man`: manual pages, made from the help.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Command};

use crate::output::print_line;

/// Writes manual pages, one for each command.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens man --dir ~/.local/share/man/man1")]
pub(crate) struct ManCommand {
    /// Directory for the pages, created if it does not exist; existing pages are replaced
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

impl ManCommand {
    pub(crate) fn execute(self, commands: Command) -> anyhow::Result<ExitCode> {
        let dir = &self.dir;
        fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(commands, dir)).with_context(
            || format!("writing manual pages to {}; --dir must be a writable directory", dir.display()),
        )?;
        print_line(format_args!("{0}: read them with 'man -l {0}/nqueens.1'", dir.display()))?;
        Ok(ExitCode::SUCCESS)
    }
}
