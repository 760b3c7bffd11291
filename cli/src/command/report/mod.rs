//! `nqueens report`: a report on a run.

mod facts;
mod tables;

use std::process::ExitCode;

use clap::Args;
use nqueens_coordinator::{Reader, RunRow};
use nqueens_web::saved;
use serde_json::json;

use crate::ledger_source::LedgerSource;
use crate::output::OutputFile;
use crate::runtime::block_on;
use facts::Facts;
use tables::{Report, Table};

/// Writes a report on a run: counts, checks, machines, times, and how to verify it.
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

    #[command(flatten)]
    output: OutputFile,
}

/// The report of a run as a page, for readers who have the exported ledger and not the database.
pub(super) async fn html(reader: &Reader, run: &RunRow) -> anyhow::Result<String> {
    Ok(page(&Facts::gather(reader, run).await?))
}

impl ReportCommand {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let mut facts = block_on(self.source.read(async |reader, run| Facts::gather(reader, &run).await))?;
        facts.db = Some(self.source.db);
        let text = if self.html { page(&facts) } else { markdown(&Report::new(&facts)) };
        self.output.write(&text)?;
        Ok(if facts.is_in_doubt() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

/// The coordinator's page with the run and its report inside, as one file.
fn page(facts: &Facts) -> String {
    let Facts { run, sums, groups, moments, .. } = facts;
    saved(run, sums, groups, moments, json!(Report::new(facts)))
}

fn markdown(report: &Report) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let text = format!("## {}\n\n{}\n", plain(&report.title), plain(&report.reputation));
    let table = |table: &Table| {
        let head = line(table.columns.iter().map(ToString::to_string).collect());
        let rows = table.rows.iter().map(|row| line(row.iter().map(|cell| plain(cell)).collect()));
        let rule = "---|".repeat(table.columns.len());
        format!("\n### {}\n\n{head}|{rule}\n{}", table.heading, rows.collect::<String>())
    };
    let tables: String = report.tables.iter().map(table).collect();
    let commands = report.commands.iter().map(|(command, does)| format!("# {does}\n{command}\n"));
    text + &tables + "\nTo verify it:\n\n```sh\n" + &commands.collect::<String>() + "```\n"
}

/// Text that Markdown shows as it is.
fn plain(text: &str) -> String {
    let escaped = |letter| {
        let slash = r"\`*_{}[]<>#|&!~$".contains(letter).then_some('\\');
        slash.into_iter().chain([letter])
    };
    text.chars().flat_map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        assert_eq!(plain("<b>*a*|`b` [c](d) & #1"), r"\<b\>\*a\*\|\`b\` \[c\](d) \& \#1");
        assert_eq!(plain("14,772,512 (border)"), "14,772,512 (border)");
    }
}
