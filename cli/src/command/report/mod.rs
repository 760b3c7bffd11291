//! `nqueens report`: a report on a run.

mod facts;
mod markdown;
mod page;
mod summary;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use nqueens_coordinator::{Reader, RunRow};

use crate::choices::amount;
use crate::ledger_source::LedgerSource;
use crate::output::{create, stdout};
use crate::runtime::block_on;
use facts::Facts;

/// Writes a report on a run: what was counted, why it can be believed, by what machines, in how long, and how to verify it.
///
/// The report is Markdown. It repeats all checks of 'nqueens verify'. For a run that is not done, it shows the progress. The exit
/// code is 1 if a check failed.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens report --db nqueens-16.db --html --output nqueens-16.html")]
pub(crate) struct ReportCommand {
    #[command(flatten)]
    source: LedgerSource,

    /// Write the coordinator's page with this run and its report inside: one file, with charts, that loads nothing
    #[arg(long)]
    html: bool,

    /// Output file; an existing file is an error [default: stdout]
    #[arg(short, long, value_name = "FILE")]
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

impl ReportCommand {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let mut facts = block_on(self.source.read(async |reader, run| Facts::gather(reader, &run).await))?;
        facts.db = Some(self.source.path().to_owned());
        facts.watts = self.watts_per_core;
        let text = if self.html { page::write(&facts) } else { markdown::write(&facts) };
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
