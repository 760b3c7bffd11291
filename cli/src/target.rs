//! The target of an operator's command: a running coordinator, or a database that no coordinator serves.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;
use nqueens_coordinator::request::{Requeue, RetryQuarantined, SetTrust};
use nqueens_coordinator::{Coordinator, Operator, Reader, Refusal, Timing, UnplannedRun};
use nqueens_model::id::{RunId, WorkerId};
use nqueens_model::operator::{Blamed, DiskRoom, RunState, RunStatus, TrustChange};

use crate::build::BUILD;
use crate::client::{OperatorClient, TOKEN_VARIABLE};
use crate::headings::CONNECTION;
use crate::names::{RunChoice, RunPrefix, WorkerChoice};
use crate::tls::CallerTls;
use crate::token;

/// Which coordinator to ask.
#[derive(Clone, Debug, Args)]
pub(crate) struct Contact {
    /// Address of the coordinator
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7327", help_heading = CONNECTION)]
    coordinator: String,

    /// File with the operator token, if the coordinator requires one; alternatively, set the variable
    /// `NQUEENS_OPERATOR_TOKEN`
    #[arg(long, value_name = "FILE", help_heading = CONNECTION)]
    operator_token_file: Option<PathBuf>,

    #[command(flatten)]
    tls: CallerTls,
}

impl Contact {
    pub(crate) fn client(&self) -> anyhow::Result<OperatorClient> {
        let token = token::read(self.operator_token_file.as_deref(), TOKEN_VARIABLE)?;
        Ok(OperatorClient::new(&self.coordinator, token, self.tls.read()?.as_ref()).patient())
    }
}

/// Which coordinator to ask, or which database to open instead.
#[derive(Clone, Debug, Args)]
pub(crate) struct OperatorTarget {
    #[command(flatten)]
    contact: Contact,

    /// Open this database file instead of asking a coordinator
    #[arg(long, value_name = "PATH")]
    db: Option<PathBuf>,
}

impl OperatorTarget {
    pub(crate) async fn runs(&self) -> anyhow::Result<Vec<RunStatus>> {
        match self.place()? {
            Ok(mut client) => client.runs().await,
            Err(db) => read(db, async |reader| all_runs(reader).await).await,
        }
    }

    /// The room on the coordinator's disk, if it watches it.
    pub(crate) async fn disk(&self) -> anyhow::Result<Option<DiskRoom>> {
        match self.place()? {
            Ok(mut client) => Ok(client.coordinator().await?.disk),
            Err(_) => Ok(None),
        }
    }

    pub(crate) async fn run(&self, id: RunId) -> anyhow::Result<RunStatus> {
        match self.place()? {
            Ok(mut client) => client.run(id).await,
            Err(db) => read(db, async |reader| status(reader, id).await).await,
        }
    }

    /// The run that was chosen; without a choice the only open run, or the only run.
    pub(crate) async fn find(&self, choice: &RunChoice) -> anyhow::Result<RunId> {
        if let Some(run) = choice.run.as_ref().and_then(RunPrefix::whole) {
            return Ok(run);
        }
        let runs = self.runs().await?;
        let (all, open): (Vec<_>, Vec<_>) = (
            runs.iter().map(|run| run.progress.run).collect(),
            runs.iter().filter(|run| run.progress.state.is_open()).map(|run| run.progress.run).collect(),
        );
        match (&choice.run, &open[..], &all[..]) {
            (Some(prefix), ..) => prefix.choose(all.into_iter()),
            (None, [run], _) | (None, [], [run]) => Ok(*run),
            (None, [], []) => bail!("there is no run here"),
            (None, [], all) => {
                bail!("none of {} runs is open: name one of those listed by 'nqueens status'", all.len())
            }
            (None, open, _) => {
                bail!("{} runs are open: name one of those listed by 'nqueens status'", open.len())
            }
        }
    }

    /// The worker that was chosen by its number or name.
    pub(crate) async fn find_worker(&self, choice: &WorkerChoice) -> anyhow::Result<WorkerId> {
        if let WorkerChoice::Id(worker) = choice {
            return Ok(*worker);
        }
        match self.place()? {
            Ok(mut client) => {
                let workers = client.workers().await?;
                choice.choose(workers.iter().map(|worker| (worker.id, &*worker.name)))
            }
            Err(db) => {
                let workers = read(db, async |reader| Ok(reader.workers().await?)).await?;
                choice.choose(workers.iter().map(|worker| (worker.id, &*worker.registration.name)))
            }
        }
    }

    /// Which it is, for people: an address or a file.
    pub(crate) fn describe(&self) -> String {
        self.db.as_ref().map_or_else(|| self.contact.coordinator.clone(), |db| db.display().to_string())
    }

    pub(crate) fn place(&self) -> anyhow::Result<Result<OperatorClient, &Path>> {
        match &self.db {
            Some(db) => Ok(Err(db)),
            None => self.contact.client().map(Ok),
        }
    }

    /// Opens quarantined jobs again if asked to, then pauses, resumes or cancels a run.
    pub(crate) async fn change(&self, id: RunId, state: RunState, retry: bool) -> anyhow::Result<RunStatus> {
        match self.place()? {
            Ok(mut client) => {
                if retry {
                    client.retry_quarantined(id).await?;
                }
                client.set_state(id, state).await
            }
            Err(db) => {
                let change = async |operator: &Operator| {
                    if retry {
                        operator.ask(RetryQuarantined(id)).await?;
                    }
                    Ok(operator.set_run_state(id, state).await?)
                };
                operate(db, change).await
            }
        }
    }

    /// Voids results; returns the run after that, and how many they are.
    pub(crate) async fn requeue(&self, id: RunId, of: Blamed) -> anyhow::Result<(RunStatus, u64)> {
        match self.place()? {
            Ok(mut client) => client.requeue(id, of).await,
            Err(db) => {
                let requeue = async |operator: &Operator| {
                    let jobs = operator.ask(Requeue { run: id, of }).await?;
                    Ok((status(operator.reader(), id).await?, jobs as u64))
                };
                operate(db, requeue).await
            }
        }
    }

    pub(crate) async fn set_trust(&self, change: TrustChange) -> anyhow::Result<()> {
        match self.place()? {
            Ok(mut client) => client.set_trust(&change).await,
            Err(db) => {
                let TrustChange { machines, trusted } = change;
                let request = SetTrust { machines, trusted };
                operate(db, async |operator: &Operator| Ok(operator.ask(request).await?)).await
            }
        }
    }
}

/// Reads a database, which a coordinator may be using.
pub(crate) async fn read<T>(
    db: &Path,
    look: impl AsyncFnOnce(&Reader) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let reader = Reader::open(db).await?;
    let outcome = look(&reader).await;
    reader.close().await;
    outcome
}

/// Changes a database that exists and that no coordinator uses.
async fn operate<T>(
    db: &Path,
    change: impl AsyncFnOnce(&Operator) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    Reader::open(db).await?.close().await;
    let coordinator = Coordinator::open(db, Timing::default(), BUILD).await?;
    coordinator.warn_of_cut_plans();
    let outcome = change(coordinator.operator()).await;
    coordinator.close().await;
    outcome
}

/// All runs of a database, oldest first; those that are being planned come last.
pub(crate) async fn all_runs(reader: &Reader) -> anyhow::Result<Vec<RunStatus>> {
    Ok(runs_with_cost(reader).await?.into_iter().map(|(run, _)| run).collect())
}

/// The same, each with the processor time of all its results, in microseconds.
pub(crate) async fn runs_with_cost(reader: &Reader) -> anyhow::Result<Vec<(RunStatus, u128)>> {
    // In this order: what has been planned meanwhile is seen at least once.
    let unplanned: Vec<_> = reader.unplanned_runs().await?.iter().map(UnplannedRun::status).collect();
    let mut runs = Vec::<(RunStatus, u128)>::new();
    for run in reader.runs().await? {
        let progress = reader.progress(&run).await?;
        runs.push((progress.status(run), progress.sums.cpu_us));
    }
    let is_new = |run: &RunStatus| runs.iter().all(|(planned, _)| planned.progress.run != run.progress.run);
    let unplanned: Vec<_> = unplanned.into_iter().filter(is_new).map(|run| (run, 0)).collect();
    Ok(runs.into_iter().chain(unplanned).collect())
}

async fn status(reader: &Reader, id: RunId) -> anyhow::Result<RunStatus> {
    // In this order: what has been planned meanwhile is seen at least once.
    let unplanned: Vec<_> = reader.unplanned_runs().await?.iter().map(UnplannedRun::status).collect();
    let Some(run) = reader.runs().await?.into_iter().find(|run| run.id == id) else {
        let run = unplanned.into_iter().find(|run| run.progress.run == id);
        return run.ok_or_else(|| Refusal::NoRun(id).into());
    };
    let progress = reader.progress(&run).await?;
    Ok(progress.status(run))
}
