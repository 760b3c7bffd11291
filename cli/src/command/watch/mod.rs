//! `nqueens watch`: the progress of runs, full-screen or as plain lines.
//!
//! `source` takes snapshots of a coordinator or a database, `view` is the state that keys and snapshots change, `draw` draws
//! it, and `screen` connects the three on one task.

mod draw;
mod plain;
mod screen;
mod source;
#[cfg(test)]
mod tests;
mod view;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use self::source::Source;
use crate::exit::INTERRUPTED;
use crate::names::RunPrefix;
use crate::output::Json;
use crate::runtime::block_on;
use crate::signals::{signals, stopped};
use crate::target::OperatorTarget;
use clap::Args;

/// Between two tries to reach a coordinator that went away.
const RETRY: Duration = Duration::from_secs(2);

/// Shows the progress of runs until they end.
///
/// A terminal shows runs, workers and events full-screen, what needs attention first; keys pause and resume runs and drain
/// workers. Without a terminal, or with --plain, it prints one line per interval and run, then the totals. It reconnects when
/// the coordinator goes away.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens watch --plain --interval 60")]
pub(crate) struct WatchCommand {
    /// Run id, as listed by 'nqueens status', or its first digits [default: all]
    subject: Option<RunPrefix>,

    /// Seconds between two updates, 0.2 to 3600 [default: 1 for a coordinator full-screen, otherwise 5]
    #[arg(long, value_name = "S", value_parser = interval)]
    interval: Option<Duration>,

    /// Print lines even on a terminal
    #[arg(long)]
    plain: bool,

    #[command(flatten)]
    target: OperatorTarget,

    #[command(flatten)]
    json: Json,
}

fn interval(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| (0.2..=3_600.0).contains(seconds));
    let seconds = seconds.ok_or_else(|| format!("an interval is 0.2 to 3600 seconds, not '{text}'"))?;
    Ok(Duration::from_secs_f64(seconds))
}

impl WatchCommand {
    pub(crate) fn takes_terminal(&self) -> bool {
        let able = std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
        let wanted = !self.plain && !self.json.json;
        wanted && able && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
    }

    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let told = signals(None)?;
        block_on(async {
            let watching = async {
                let mut target = self.target.open()?;
                let only = match &self.subject {
                    Some(run) => Some(target.find(Some(run)).await?),
                    None => None,
                };
                let source = Source { target, only };
                if self.takes_terminal() {
                    self.show_screen(source).await
                } else {
                    self.print_lines(source).await
                }
            };
            tokio::select! {
                outcome = watching => outcome,
                () = stopped(told) => Ok(ExitCode::from(INTERRUPTED)),
            }
        })
    }
}
