//! `nqueens workers`: lists and drains workers.

use anyhow::ensure;
use clap::Args;
use nqueens_model::operator::{Worker, WorkerStatus};
use serde_json::json;

use crate::client::OperatorClient;
use crate::names::WorkerChoice;
use crate::output::{Json, print_line, print_table, span, speed, thousands};
use crate::runtime::block_on;
use crate::target::{OperatorTarget, Target, read};

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
    pub(crate) fn execute(self) -> anyhow::Result<()> {
        block_on(self.list_or_drain())
    }

    async fn list_or_drain(&self) -> anyhow::Result<()> {
        let (json, heads, rows) = match (self.target.open()?, &self.drain) {
            (Target::Coordinator(client), Some(worker)) => return self.drain(worker, client).await,
            (Target::Coordinator(mut client), None) => {
                let mut workers = client.workers().await?;
                workers.retain(|worker| self.all || worker.is_listed());
                (json!(workers), HEADS.to_vec(), workers.iter().map(row).collect::<Vec<_>>())
            }
            (Target::Database(db), _) => {
                let workers = read(&db, async |reader| Ok(reader.workers().await?)).await?;
                let rows = workers.iter().map(|worker| about(worker, "").to_vec()).collect();
                (json!(workers), [&HEADS[..4], &HEADS[9..]].concat(), rows)
            }
        };
        if self.json.json {
            Ok(print_line(json!({ "workers": json }))?)
        } else {
            Ok(print_table(&heads, rows.into_iter())?)
        }
    }

    async fn drain(&self, worker: &WorkerChoice, mut client: OperatorClient) -> anyhow::Result<()> {
        let known = client.workers().await?;
        let (present, gone): (Vec<_>, Vec<_>) = known.into_iter().partition(|worker| worker.present);
        let among = |workers: &[WorkerStatus]| {
            worker.choose(workers.iter().map(|worker| (worker.about.id, &*worker.about.name)))
        };
        let id = among(&present).or_else(|error| among(&gone).map_err(|_| error))?;
        ensure!(gone.iter().all(|worker| worker.about.id != id), "worker {id} is gone");
        client.drain(id).await?;
        let worker = present.into_iter().find(|known| known.about.id == id);
        let worker = worker.map(|worker| WorkerStatus { draining: true, ..worker });
        Ok(self.json.print(json!(worker), format_args!("worker {id} is draining"))?)
    }
}

const HEADS: [&str; 11] = [
    ">WORKER", "NAME", ">THREADS", "KERNEL", ">LEASES", ">RESULTS", ">PACE", ">SILENT", ">CHECKS", "STATE",
    "DEVICE",
];

/// What is known of a worker that is not there, too: its number, name, threads, kernel, state and device. Unless it is untrusted, it is
/// in this state.
fn about(worker: &Worker, state: &str) -> [String; 6] {
    let Worker { id, name, credential, kernels, device, threads, distrusted, .. } = worker;
    // Where workers have credentials of their own, that too.
    let name = if credential.is_shared() { name.clone() } else { format!("{name} of {credential}") };
    let kernel = kernels.first().cloned().unwrap_or_default();
    let state = distrusted.as_ref().map_or_else(|| state.to_owned(), |reason| format!("untrusted: {reason}"));
    [id.to_string(), name, threads.to_string(), kernel, state, device.clone()]
}

/// What lists tell of a worker, under [`HEADS`].
pub(super) fn row(worker: &WorkerStatus) -> Vec<String> {
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let silent = span(worker.silent_ms as f64 / 1e3);
    let state = match worker {
        WorkerStatus { present: false, .. } => "gone",
        WorkerStatus { draining: true, .. } => "draining",
        WorkerStatus { leases: 0, .. } => "idle",
        _ => "counting",
    };
    let (passed, failed) = (thousands(worker.checks_passed), thousands(worker.checks_failed));
    let [id, name, threads, kernel, state, device] = about(&worker.about, state);
    vec![
        id,
        name,
        threads,
        kernel,
        worker.leases.to_string(),
        thousands(worker.accepted),
        worker.states_per_s.map_or_else(|| "-".to_owned(), speed),
        silent,
        if worker.checks_failed > 0 { format!("{passed}, {failed} failed") } else { passed },
        state,
        device,
    ]
}
