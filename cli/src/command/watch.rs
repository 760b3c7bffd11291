//! `nqueens watch`: how far the runs are, line by line, until they are over.

use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use nqueens_proto::id::{InvalidRunId, RunId};
use nqueens_proto::operator::{Progress, RunState};

use super::Json;
use super::desk::Contact;
use crate::client::{Client, Lost};
use crate::console::{INTERRUPTED, interrupted};
use crate::output::{block_on, print_line, thousands};
use crate::progress::describe;

/// Between two tries to reach a coordinator that went away.
const RETRY: Duration = Duration::from_secs(2);

/// Shows how far a run is, a line at a time, until it is over; then its total.
///
/// It waits for a coordinator that goes away meanwhile.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens watch all --interval 60")]
pub(crate) struct Watch {
    /// The run, as 'nqueens status' lists it, or all
    #[arg(value_name = "RUN|all")]
    subject: Subject,

    /// Seconds between two lines, 0.2 to 3600
    #[arg(long, value_name = "S", value_parser = interval, default_value = "5")]
    interval: Duration,

    #[command(flatten)]
    contact: Contact,

    #[command(flatten)]
    json: Json,
}

#[derive(Clone, Copy, Debug)]
enum Subject {
    All,
    Run(RunId),
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
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        block_on(async {
            tokio::select! {
                outcome = self.watch() => outcome,
                () = interrupted() => Ok(ExitCode::from(INTERRUPTED)),
            }
        })
    }

    async fn watch(&self) -> anyhow::Result<ExitCode> {
        let run = if let Subject::Run(run) = self.subject { Some(run) } else { None };
        let mut client = self.contact.client()?;
        let mut was_there = false;
        loop {
            match client.watch(run, self.interval).await {
                Ok(mut pictures) => {
                    was_there = true;
                    while let Some((runs, busy)) = pictures.next().await? {
                        if runs.iter().all(|run| !run.state.is_open()) {
                            return self.conclude(&mut client, &runs).await;
                        }
                        for run in runs.iter().filter(|run| run.state.is_open()) {
                            self.show(run, busy)?;
                        }
                    }
                    eprintln!("nqueens: the coordinator went away; waiting for it");
                }
                Err(Lost { passing, .. }) if was_there && passing => {}
                Err(Lost { error, .. }) => return Err(error),
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    fn show(&self, run: &Progress, busy_workers: u32) -> std::io::Result<()> {
        if self.json.json {
            let mut line = nqueens_desk::json::progress(run);
            line["busy_workers"] = busy_workers.into();
            return print_line(line);
        }
        let state = if run.state == RunState::Paused { "paused, " } else { "" };
        print_line(format_args!(
            "{}  N = {}: {state}{}, {busy_workers} worker(s)",
            run.run,
            run.n,
            describe(run)
        ))
    }

    /// All that was watched is over: says how it ended.
    async fn conclude(&self, client: &mut Client, runs: &[Progress]) -> anyhow::Result<ExitCode> {
        let mut all_done = true;
        for run in runs {
            let run = client.run(run.run).await?;
            all_done &= run.outcome.is_some();
            if self.json.json {
                print_line(nqueens_desk::json::run(&run))?;
                continue;
            }
            let (id, n) = (run.progress.run, run.progress.n);
            match (&run.outcome, &run.reason) {
                (Some(outcome), _) => {
                    let (total, check) = (thousands(outcome.total), outcome.checked.describe());
                    print_line(format_args!("{id}  N = {n}: done, TOTAL {total}, {check}"))?;
                }
                (None, Some(reason)) => print_line(format_args!("{id}  N = {n}: failed: {reason}"))?,
                (None, None) => print_line(format_args!("{id}  N = {n}: {}", run.progress.state.name()))?,
            }
        }
        // Of one run, the caller wants its total; of all, some may have been cancelled long ago.
        let alright = all_done || matches!(self.subject, Subject::All);
        Ok(if alright { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
