//! `nqueens workers` and `nqueens drain`: who counts, and who is to stop.

use std::process::ExitCode;

use clap::Args;
use nqueens_coordinator::{Reader, WorkerRow};
use nqueens_model::id::WorkerId;
use nqueens_model::operator::WorkerStatus;
use serde_json::{Value, json};

use super::desk::{Contact, Desk};
use crate::output::{Json, print_line, thousands};
use crate::runtime::block_on;

/// Lists the workers heard of since the coordinator started, or those that a database knows.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens workers --coordinator http://head:7327")]
pub(crate) struct Workers {
    #[command(flatten)]
    desk: Desk,

    #[command(flatten)]
    json: Json,
}

impl Workers {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let (head, workers): (_, Vec<(String, Value)>) = block_on(async {
            Ok(match self.desk.place()? {
                Ok(mut client) => {
                    let workers = client.workers().await?;
                    (
                        live_head(),
                        workers
                            .iter()
                            .map(|worker| (live_line(worker), nqueens_desk::json::worker(worker)))
                            .collect(),
                    )
                }
                Err(db) => {
                    let reader = Reader::open(db).await?;
                    let workers = reader.workers().await?;
                    reader.close().await;
                    (row_head(), workers.iter().map(|row| (row_line(row), row_json(row))).collect())
                }
            })
        })?;
        if self.json.json {
            let workers: Vec<_> = workers.into_iter().map(|(_, json)| json).collect();
            print_line(json!({ "workers": workers }))?;
        } else {
            print_line(head)?;
            for (line, _) in workers {
                print_line(line)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn live_head() -> String {
    format!(
        "{:>6}  {:<20}  {:>7}  {:<10}  {:>6}  {:>9}  {:>9}  {:>9}  {:>13}  STATE",
        "WORKER", "NAME", "THREADS", "KERNEL", "LEASES", "RESULTS", "STATES/S", "SILENT", "CHECKS"
    )
}

fn live_line(worker: &WorkerStatus) -> String {
    let speed = worker.states_per_s.map_or_else(|| "-".to_owned(), |speed| format!("{speed:.2e}"));
    let silent = format!("{} s", thousands(worker.silent_ms / 1_000));
    let state = match &worker.distrusted {
        Some(reason) => format!("distrusted: {reason}"),
        None if worker.draining => "draining".to_owned(),
        None => "-".to_owned(),
    };
    let (passed, failed) = (thousands(worker.checks_passed), thousands(worker.checks_failed));
    let checks = if worker.checks_failed > 0 { format!("{passed}, {failed} failed") } else { passed };
    format!(
        "{:>6}  {:<20}  {:>7}  {:<10}  {:>6}  {:>9}  {speed:>9}  {silent:>9}  {checks:>13}  {state}",
        worker.id.get(),
        worker.name,
        worker.threads,
        worker.kernels.first().map_or("-", String::as_str),
        worker.leases,
        thousands(worker.accepted),
    )
}

fn row_head() -> String {
    format!("{:>6}  {:<20}  {:>7}  {:<10}  BUILD", "WORKER", "NAME", "THREADS", "KERNEL")
}

fn row_line(row: &WorkerRow) -> String {
    let kernel = row.kernels.split(',').next().unwrap_or("-");
    format!("{:>6}  {:<20}  {:>7}  {kernel:<10}  {}", row.id.get(), row.name, row.threads, row.build)
}

fn row_json(row: &WorkerRow) -> Value {
    json!({
        "id": row.id.get(),
        "name": row.name,
        "build": row.build,
        "kernels": row.kernels.split(',').collect::<Vec<_>>(),
        "threads": row.threads,
        "registered_at_ms": row.registered_at,
    })
}

/// Asks a worker to finish what is short, hand back the rest, and stop.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens drain 7")]
pub(crate) struct Drain {
    /// The worker, as 'nqueens workers' lists it
    #[arg(value_parser = worker)]
    worker: WorkerId,

    #[command(flatten)]
    contact: Contact,

    #[command(flatten)]
    json: Json,
}

pub(crate) fn worker(text: &str) -> Result<WorkerId, String> {
    let id = text.parse().ok().and_then(WorkerId::new);
    id.ok_or_else(|| format!("a worker is named by a number, as 'nqueens workers' shows it, not '{text}'"))
}

impl Drain {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        block_on(async { self.contact.client()?.drain(self.worker).await })?;
        if self.json.json {
            print_line(json!({ "id": self.worker.get(), "draining": true }))?;
        } else {
            print_line(format_args!("worker {} is asked to go", self.worker))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
