//! `nqueens report`: what there is to show of a run.

mod facts;
mod markdown;
mod page;
mod pictures;
mod summary;
mod timeline;

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};

use super::choices::amount;
use super::source::Source;
use crate::runtime::block_on;
use facts::Facts;

/// Writes a report on a run: its result, its checks, who counted it, and how to verify it.
///
/// Every check that 'nqueens verify' makes of an exported ledger is made here anew. A page needs nothing but itself and
/// can be printed. Of a run that is not done it is told how far it is. The exit code is 1 if a check failed.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens report --db nqueens-16.db --output nqueens-16.html")]
pub(crate) struct Report {
    #[command(flatten)]
    source: Source,

    /// How it is written
    #[arg(long, value_enum, default_value_t = Format::Html)]
    format: Format,

    /// Where it goes [default: stdout]; a file that is there already is left alone
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Replace a file that is there already
    #[arg(long, requires = "output")]
    force: bool,

    /// Power that one counting thread drew: tells the energy
    #[arg(long, value_name = "WATTS", value_parser = amount, allow_negative_numbers = true)]
    watts_per_core: Option<f64>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// One page with tables and pictures
    Html,
    /// The short form, for a README
    Markdown,
}

impl Report {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let facts = block_on(async {
            let (reader, run) = self.source.open().await?;
            let facts = Facts::gather(&reader, &run, self.watts_per_core).await;
            reader.close().await;
            facts
        })?;
        let text = match self.format {
            Format::Html => page::write(&facts),
            Format::Markdown => markdown::write(&facts),
        };
        match &self.output {
            Some(path) => store(path, &text, self.force)?,
            None => io::stdout().lock().write_all(text.as_bytes())?,
        }
        Ok(if facts.is_in_doubt() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

fn store(path: &Path, text: &str, replace: bool) -> anyhow::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).truncate(replace).create(replace).create_new(!replace);
    let mut file = options.open(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            anyhow!("{} is there already; choose another name, or --force to replace it", path.display())
        }
        _ => anyhow!(error).context(path.display().to_string()),
    })?;
    file.write_all(text.as_bytes()).with_context(|| path.display().to_string())
}
