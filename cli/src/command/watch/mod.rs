//! `nqueens watch`: the runs as they go on, as a picture that fills the terminal, or line by line.
//!
//! `feed` fetches pictures, `app` is the state that keys and pictures change, `draw` puts it on the screen, and `screen`
//! has the three talk to each other.

mod app;
mod draw;
mod feed;
mod keys;
mod picture;
mod plain;
mod screen;
mod table;
#[cfg(test)]
mod tests;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use nqueens_model::id::{InvalidRunId, RunId};

use super::desk::Desk;
use crate::exit::INTERRUPTED;
use crate::output::Json;
use crate::runtime::block_on;
use crate::signals::interrupted;

/// Between two tries to reach a coordinator that went away.
const RETRY: Duration = Duration::from_secs(2);

/// Shows the runs as they go on: on a terminal a picture of runs, workers and events, with keys to pause runs and to drain
/// workers; elsewhere a line at a time until they are over, then their totals.
///
/// It waits for a coordinator that goes away meanwhile. In the picture, ? tells the keys and q leaves.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens watch all --plain --interval 60")]
pub(crate) struct Watch {
    /// The run, as 'nqueens status' lists it, or all
    #[arg(value_name = "RUN|all", default_value = "all")]
    subject: Subject,

    /// Seconds between two pictures or lines, 0.2 to 3600 [default: 1 for pictures of a coordinator, else 5]
    #[arg(long, value_name = "S", value_parser = interval)]
    interval: Option<Duration>,

    /// Print lines on a terminal too
    #[arg(long)]
    plain: bool,

    #[command(flatten)]
    desk: Desk,

    #[command(flatten)]
    json: Json,
}

#[derive(Clone, Copy, Debug)]
enum Subject {
    All,
    Run(RunId),
}

impl Subject {
    /// The only run to look at, unless it is all.
    fn run(self) -> Option<RunId> {
        match self {
            Self::All => None,
            Self::Run(run) => Some(run),
        }
    }
}

impl FromStr for Subject {
    type Err = InvalidRunId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "all" { Ok(Self::All) } else { text.parse().map(Self::Run) }
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| (0.2..=3_600.0).contains(seconds));
    let seconds = seconds.ok_or_else(|| format!("an interval is 0.2 to 3600 seconds, not '{text}'"))?;
    Ok(Duration::from_secs_f64(seconds))
}

impl Watch {
    /// Whether it draws pictures, for there is somebody at a terminal that can show them.
    pub(crate) fn takes_terminal(&self) -> bool {
        let able = std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
        let wanted = !self.plain && !self.json.json;
        wanted && able && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
    }

    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        block_on(async {
            let watching = async {
                if self.takes_terminal() { self.show_pictures().await } else { self.print_lines().await }
            };
            tokio::select! {
                outcome = watching => outcome,
                () = interrupted() => Ok(ExitCode::from(INTERRUPTED)),
            }
        })
    }
}
