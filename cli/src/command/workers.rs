//! `nqueens workers`: lists and drains workers.

use std::process::ExitCode;

use clap::Args;
use nqueens_coordinator::WorkerRow;
use nqueens_model::credential::Credential;
use nqueens_model::kernel::KernelName;
use nqueens_model::message::Registration;
use nqueens_model::operator::WorkerStatus;
use serde_json::{Value, json};

use crate::client::OperatorClient;
use crate::names::WorkerChoice;
use crate::output::{Json, print_line, print_table, span, speed, thousands};
use crate::runtime::block_on;
use crate::target::{OperatorTarget, read};

/// Lists the workers of a coordinator that are present or untrusted, or all workers in a database; drains one of them.
///
/// A worker is present until it ends, or until its last two heartbeats are missing (--sync-seconds of the coordinator). PACE is
/// the states per second of all its threads while they count; the speed of a run has their waiting in it, too.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens workers --coordinator http://head:7327")]
pub(crate) struct WorkersCommand {
    #[command(flatten)]
    target: OperatorTarget,

    /// List the workers that are gone, too: all that were seen since the coordinator started
    #[arg(long)]
    all: bool,

    /// Drain this worker, by its number or name: it gets no more jobs, finishes or returns those it holds, and stops
    #[arg(long, value_name = "WORKER", conflicts_with_all = ["db", "all"])]
    drain: Option<WorkerChoice>,

    #[command(flatten)]
    json: Json,
}

impl WorkersCommand {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        block_on(async {
            match self.target.place()? {
                Ok(mut client) => {
                    let mut workers = client.workers().await?;
                    if let Some(worker) = &self.drain {
                        return self.drain(worker, client, workers).await;
                    }
                    workers.retain(|worker| self.all || worker.is_listed());
                    self.print(&workers, &LIVE_HEADS, live_row, |worker| json!(worker))
                }
                Err(db) => {
                    let workers = read(db, async |reader| Ok(reader.workers().await?)).await?;
                    self.print(&workers, &STORED_HEADS, stored_row, stored_json)
                }
            }
        })
    }

    async fn drain(
        &self,
        worker: &WorkerChoice,
        mut client: OperatorClient,
        mut known: Vec<WorkerStatus>,
    ) -> anyhow::Result<ExitCode> {
        let present = known.iter().filter(|worker| worker.present);
        let id = worker.choose(present.map(|worker| (worker.id, &*worker.name)))?;
        client.drain(id).await?;
        known.retain(|known| known.id == id);
        let worker = known.pop().map(|worker| WorkerStatus { draining: true, ..worker });
        self.json.print(json!(worker), format_args!("worker {id} is draining"))?;
        Ok(ExitCode::SUCCESS)
    }

    fn print<Worker>(
        &self,
        workers: &[Worker],
        heads: &[&str],
        row: fn(&Worker) -> Vec<String>,
        in_json: fn(&Worker) -> Value,
    ) -> anyhow::Result<ExitCode> {
        if self.json.json {
            print_line(json!({ "workers": workers.iter().map(in_json).collect::<Vec<_>>() }))?;
        } else {
            print_table(heads, workers.iter().map(row))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

const LIVE_HEADS: [&str; 11] = [
    ">WORKER", "NAME", ">THREADS", "KERNEL", ">LEASES", ">RESULTS", ">PACE", ">SILENT", ">CHECKS", "STATE",
    "DEVICE",
];

fn live_row(worker: &WorkerStatus) -> Vec<String> {
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let silent = span(worker.silent_ms as f64 / 1e3);
    let state = match &worker.distrusted {
        Some(reason) => format!("untrusted: {reason}"),
        None if !worker.present => "gone".to_owned(),
        None if worker.draining => "draining".to_owned(),
        None => "-".to_owned(),
    };
    let (passed, failed) = (thousands(worker.checks_passed), thousands(worker.checks_failed));
    vec![
        worker.id.to_string(),
        named(&worker.name, &worker.credential),
        worker.threads.to_string(),
        worker.kernels.first().cloned().unwrap_or_default(),
        worker.leases.to_string(),
        thousands(worker.accepted),
        worker.states_per_s.map_or_else(|| "-".to_owned(), speed),
        silent,
        if worker.checks_failed > 0 { format!("{passed}, {failed} failed") } else { passed },
        state,
        worker.device.clone(),
    ]
}

/// Its name; where workers have credentials of their own, that too.
fn named(name: &str, credential: &Credential) -> String {
    if credential.is_shared() { name.to_owned() } else { format!("{name} of {credential}") }
}

const STORED_HEADS: [&str; 6] = [">WORKER", "NAME", ">THREADS", "KERNEL", "BUILD", "DEVICE"];

fn stored_row(row: &WorkerRow) -> Vec<String> {
    let Registration { name, build, kernels, threads, .. } = &row.registration;
    let (name, kernel) = (named(name, &row.credential), kernels[0].to_string());
    vec![row.id.to_string(), name, threads.to_string(), kernel, build.clone(), device(row).to_owned()]
}

fn device(row: &WorkerRow) -> &str {
    row.registration.capability.as_ref().map_or("", |capability| &capability.device)
}

fn stored_json(row: &WorkerRow) -> Value {
    let Registration { name, build, kernels, threads, .. } = &row.registration;
    json!({
        "id": row.id,
        "name": name,
        "credential": row.credential,
        "build": build,
        "kernels": kernels.iter().map(KernelName::as_str).collect::<Vec<_>>(),
        "device": device(row),
        "threads": threads,
        "registered_at_ms": row.registered_at,
    })
}
