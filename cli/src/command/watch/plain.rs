//! The runs as plain lines.

use std::process::ExitCode;
use std::time::Duration;

use nqueens_model::operator::{Progress, RunState, RunStatus};

use super::{RETRY, WatchCommand};
use crate::client::{Lost, OperatorClient};
use crate::output::{print_line, thousands};
use crate::progress::describe;

/// Default interval between two lines.
const INTERVAL: Duration = Duration::from_secs(5);

impl WatchCommand {
    /// Prints lines until all that is watched is over.
    pub(super) async fn print_lines(&self) -> anyhow::Result<ExitCode> {
        match self.target.place()? {
            Ok(client) => self.follow_coordinator(client).await,
            Err(_) => self.follow_database().await,
        }
    }

    async fn follow_database(&self) -> anyhow::Result<ExitCode> {
        loop {
            let runs = match self.subject.0 {
                Some(run) => vec![self.target.run(run).await?],
                None => self.target.runs().await?,
            };
            if runs.iter().all(|run| !run.progress.state.is_open()) {
                return self.conclude(&runs);
            }
            for run in runs.iter().filter(|run| run.progress.state.is_open()) {
                self.show(&run.progress)?;
            }
            tokio::time::sleep(self.interval.unwrap_or(INTERVAL)).await;
        }
    }

    async fn follow_coordinator(&self, mut client: OperatorClient) -> anyhow::Result<ExitCode> {
        let mut was_there = false;
        loop {
            match client.watch(self.subject.0, self.interval.unwrap_or(INTERVAL)).await {
                Ok(mut pictures) => {
                    was_there = true;
                    while let Some(runs) = pictures.next().await? {
                        if let Some(run) = self.subject.0.filter(|_| runs.is_empty()) {
                            // Its planning was cancelled or has failed: the error says so.
                            client.run(run).await?;
                        }
                        if runs.iter().all(|run| !run.state.is_open()) {
                            let mut ended = Vec::new();
                            for run in runs {
                                ended.push(client.run(run.run).await?);
                            }
                            return self.conclude(&ended);
                        }
                        for run in runs.iter().filter(|run| run.state.is_open()) {
                            self.show(run)?;
                        }
                    }
                    eprintln!("nqueens: the coordinator went away; reconnecting");
                }
                Err(Lost { passing, .. }) if was_there && passing => {}
                Err(Lost { error, .. }) => return Err(error),
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    fn show(&self, run: &Progress) -> std::io::Result<()> {
        if self.json.json {
            return print_line(nqueens_web::json::progress(run));
        }
        let state = if run.state == RunState::Paused { "paused, " } else { "" };
        let workers = run.workers.map_or_else(String::new, |busy| format!(", {busy} worker(s)"));
        print_line(format_args!("{}  N = {}: {state}{}{workers}", run.run, run.n, describe(run)))
    }

    /// All that was watched is over: says how it ended.
    fn conclude(&self, runs: &[RunStatus]) -> anyhow::Result<ExitCode> {
        for run in runs {
            if self.json.json {
                print_line(nqueens_web::json::run(run))?;
                continue;
            }
            let (id, subject) = (run.progress.run, run.plan.subject());
            match (run.outcome.zip(run.standing()), &run.reason) {
                (Some((outcome, standing)), _) => {
                    let total = thousands(outcome.total);
                    print_line(format_args!("{id}  {subject}: done, TOTAL {total}, {standing}"))?;
                }
                (None, Some(reason)) => print_line(format_args!("{id}  {subject}: failed: {reason}"))?,
                (None, None) => print_line(format_args!("{id}  {subject}: {}", run.progress.state.name()))?,
            }
        }
        // Of one run, the caller wants its total; of all, some may have been cancelled long ago.
        let alright = runs.iter().all(|run| run.outcome.is_some()) || self.subject.0.is_none();
        Ok(if alright { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
