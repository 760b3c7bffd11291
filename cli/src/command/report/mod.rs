//! `nqueens report`: a report on a run.

mod facts;
mod markdown;
mod page;
mod pictures;
mod summary;
mod timeline;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, ValueEnum};
use nqueens_coordinator::{Reader, RunRow};

use super::choices::amount;
use super::source::LedgerSource;
use crate::output::{create, stdout};
use crate::runtime::block_on;
use facts::Facts;

/// Writes a report on a run: what was counted, why it can be believed, by what machines, in how long, and how to verify it.
///
/// The report repeats all checks of 'nqueens verify'. The HTML page is self-contained and can be printed. For a run that is
/// not done, the report shows its progress. The exit code is 1 if a check failed.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens report --db nqueens-16.db --output nqueens-16.html")]
pub(crate) struct ReportCommand {
    #[command(flatten)]
    source: LedgerSource,

    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Html)]
    format: ReportFormat,

    /// Output file; an existing file is an error [default: stdout]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Replace an existing output file
    #[arg(long, requires = "output")]
    force: bool,

    /// Power of one counting thread, to report the energy
    #[arg(long, value_name = "WATTS", value_parser = amount, allow_negative_numbers = true)]
    watts_per_core: Option<f64>,
}

/// The report of a run as a page, for readers who have the exported ledger and not the database.
pub(super) async fn html(reader: &Reader, run: &RunRow) -> anyhow::Result<String> {
    Ok(page::write(&Facts::gather(reader, run).await?))
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ReportFormat {
    /// One page with tables and pictures
    Html,
    /// The short form, for a README
    Markdown,
}

impl ReportCommand {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let mut facts = block_on(self.source.read(async |reader, run| Facts::gather(reader, &run).await))?;
        facts.db = Some(self.source.path().to_owned());
        facts.watts = self.watts_per_core;
        let text = match self.format {
            ReportFormat::Html => page::write(&facts),
            ReportFormat::Markdown => markdown::write(&facts),
        };
        match &self.output {
            Some(path) => {
                let mut file = create(path, self.force)?;
                file.write_all(text.as_bytes()).with_context(|| path.display().to_string())?;
            }
            None => stdout().write_all(text.as_bytes())?,
        }
        Ok(if facts.is_in_doubt() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}
