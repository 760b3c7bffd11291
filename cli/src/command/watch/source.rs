//! Takes snapshots of a coordinator or a database, and executes an operator's commands.

use std::path::{Path, PathBuf};

use nqueens_coordinator::{Reader, Refusal, wall_time};
use nqueens_model::id::{RunId, WorkerId};
use nqueens_model::operator::{Event, RunDetail, RunState, RunStatus, WallTime, WorkerStatus};

use crate::checkup::describe_disk;
use crate::client::OperatorClient;
use crate::target::{OperatorTarget, read, runs_with_cost};

/// A change that an operator has confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Pause(RunId),
    Resume(RunId),
    Drain(WorkerId),
}

/// Everything that is shown at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    /// By this machine's clock.
    pub(super) at: WallTime,
    /// Oldest first.
    pub(super) runs: Vec<RunStatus>,
    /// None of a database: it does not know who is there.
    pub(super) workers: Vec<WorkerStatus>,
    pub(super) events: Vec<Event>,
    /// Of the run that is shown.
    pub(super) detail: Option<(RunId, RunDetail)>,
    /// A warning of the coordinator's disk.
    pub(super) disk: Option<String>,
}

/// A coordinator, or a database that is only read.
pub(super) struct Source {
    place: Result<OperatorClient, PathBuf>,
    only: Option<RunId>,
}

impl Source {
    pub(super) fn new(target: &OperatorTarget, only: Option<RunId>) -> anyhow::Result<Self> {
        Ok(Self { place: target.place()?.map_err(Path::to_owned), only })
    }

    pub(super) fn is_database(&self) -> bool {
        self.place.is_err()
    }

    pub(super) async fn runs(&mut self) -> anyhow::Result<Vec<RunStatus>> {
        match (&mut self.place, self.only) {
            (Ok(client), Some(run)) => Ok(vec![client.run(run).await?]),
            (Ok(client), None) => client.runs().await,
            (Err(db), only) => self::only(
                read(db, async |reader| {
                    Ok(runs_with_cost(reader).await?.into_iter().map(|(run, _)| run).collect())
                })
                .await?,
                only,
            ),
        }
    }

    /// All there is to see, with the details of one run.
    pub(super) async fn snapshot(&mut self, shown: Option<RunId>) -> anyhow::Result<Snapshot> {
        let mut snapshot = match &mut self.place {
            Ok(client) => of_coordinator(client, shown).await?,
            Err(db) => read(db, async |reader| of_database(reader, shown).await).await?,
        };
        snapshot.runs = only(snapshot.runs, self.only)?;
        Ok(snapshot)
    }

    /// Executes a command; returns what to tell of it.
    pub(super) async fn execute(&mut self, command: Command) -> Result<String, String> {
        let Ok(client) = &mut self.place else { return Err("a database is read-only here".to_owned()) };
        let done = match command {
            Command::Pause(run) => set(client, run, RunState::Paused).await,
            Command::Resume(run) => set(client, run, RunState::Active).await,
            Command::Drain(worker) => {
                client.drain(worker).await.map(|()| format!("worker {worker} is draining"))
            }
        };
        done.map_err(|error| format!("{error:#}"))
    }
}

fn only(mut runs: Vec<RunStatus>, only: Option<RunId>) -> anyhow::Result<Vec<RunStatus>> {
    if let Some(only) = only {
        runs.retain(|run| run.progress.run == only);
        anyhow::ensure!(!runs.is_empty(), Refusal::NoRun(only));
    }
    Ok(runs)
}

async fn of_coordinator(client: &mut OperatorClient, shown: Option<RunId>) -> anyhow::Result<Snapshot> {
    let disk = client.coordinator().await?.disk.filter(|disk| disk.is_short);
    let runs = client.runs().await?;
    let detail = match shown.filter(|shown| runs.iter().any(|run| run.progress.run == *shown)) {
        Some(run) => Some((run, client.detail(run).await?)),
        None => None,
    };
    let mut workers = client.workers().await?;
    workers.retain(|worker| worker.is_listed() || worker.leases > 0);
    let events = client.events().await?;
    Ok(Snapshot { at: wall_time(), runs, workers, events, detail, disk: disk.as_ref().map(describe_disk) })
}

async fn of_database(reader: &Reader, shown: Option<RunId>) -> anyhow::Result<Snapshot> {
    let (mut runs, mut detail) = (Vec::new(), None);
    for (run, cpu_us) in runs_with_cost(reader).await? {
        let id = run.progress.run;
        if shown == Some(id) {
            let (moments, cpu_us) = (reader.history(id).await?, cpu_us.try_into().ok());
            detail = Some((id, RunDetail { moments, being_counted: None, cpu_us }));
        }
        runs.push(run);
    }
    let events = reader.events().await?;
    Ok(Snapshot { at: wall_time(), runs, workers: Vec::new(), events, detail, disk: None })
}

async fn set(client: &mut OperatorClient, run: RunId, state: RunState) -> anyhow::Result<String> {
    let run = client.set_state(run, state).await?.progress;
    Ok(format!("run {} is {}", run.run, run.state.name()))
}
