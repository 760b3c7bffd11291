//! Manual pages, made from the help, with what the help leaves out: exit status, examples.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use anyhow::Context;
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::build::BUILD;
use crate::exit::statuses;

pub(crate) fn write(commands: Command, dir: &Path) -> anyhow::Result<()> {
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
