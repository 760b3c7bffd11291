//! The runs as plain lines.

use std::process::ExitCode;
use std::time::Duration;

use nqueens_model::operator::{RunState, RunStatus};

use super::source::Source;
use super::{RETRY, WatchCommand};
use crate::client::Unreachable;
use crate::output::{print_json, print_line};
use crate::progress::{conclusion, describe};

const INTERVAL: Duration = Duration::from_secs(5);

impl WatchCommand {
    /// Prints lines until all that is watched is over.
    pub(super) async fn print_lines(&self, mut source: Source) -> anyhow::Result<ExitCode> {
        let (mut was_there, mut is_there) = (false, false);
        loop {
            match source.runs().await {
                Ok(runs) if runs.iter().all(|run| !run.progress.state.is_open()) => {
                    return self.conclude(&runs);
                }
                Ok(runs) => {
                    (was_there, is_there) = (true, true);
                    let mut open = runs.iter().filter(|run| run.progress.state.is_open());
                    open.try_for_each(|run| self.show(run))?;
                }
                Err(error) if was_there && error.is::<Unreachable>() => {
                    if is_there {
                        eprintln!("nqueens: the coordinator went away; reconnecting");
                    }
                    is_there = false;
                }
                Err(error) => return Err(error),
            }
            let every = self.interval.unwrap_or(INTERVAL);
            tokio::time::sleep(if is_there { every } else { RETRY }).await;
        }
    }

    fn show(&self, run: &RunStatus) -> std::io::Result<()> {
        if self.json.json {
            return print_json(run.clone().view());
        }
        let run = &run.progress;
        let state = if run.state == RunState::Paused { "paused  " } else { "" };
        print_line(format_args!("{}  {state}{}", run.run, describe(run)))
    }

    /// Says how everything that was watched ended.
    fn conclude(&self, runs: &[RunStatus]) -> anyhow::Result<ExitCode> {
        for run in runs {
            if self.json.json {
                print_json(run.clone().view())?;
                continue;
            }
            let (id, subject) = (run.progress.run, run.progress.plan.subject());
            print_line(format_args!("{id}  {subject}: {}", conclusion(run).unwrap_or_default()))?;
        }
        // Of one run, the caller wants its total; of all, some may have been cancelled long ago.
        let alright = runs.iter().all(|run| run.outcome.is_some()) || self.subject.is_none();
        Ok(if alright { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
