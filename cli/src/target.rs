//! The target of an operator's command: a running coordinator, or a database that no coordinator serves.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;
use nqueens_coordinator::request::{Requeue, retry_quarantined, set_trust};
use nqueens_coordinator::{Coordinator, Operator, Reader, Refusal, Timing, UnplannedRun};
use nqueens_model::id::{RunId, WorkerId};
use nqueens_model::operator::{Blamed, DiskRoom, RunState, RunStatus, TrustChange};
use nqueens_proto::Token;

use crate::build::BUILD;
use crate::client::OperatorClient;
use crate::headings::CONNECTION;
use crate::names::{RunPrefix, WorkerChoice};
use crate::tls::CallerTls;
use crate::token;

/// How an operator is known to a coordinator, and it to them.
#[derive(Clone, Debug, Args)]
pub(crate) struct Login {
    /// File with the operator token, if the coordinator requires one; alternatively, set the variable
    /// `NQUEENS_OPERATOR_TOKEN`
    #[arg(long, value_name = "FILE", help_heading = CONNECTION)]
    operator_token_file: Option<PathBuf>,

    #[command(flatten)]
    tls: CallerTls,
}

impl Login {
    pub(crate) fn token(&self) -> anyhow::Result<Option<Token>> {
        token::read(self.operator_token_file.as_deref(), token::OF_OPERATOR)
    }

    pub(crate) fn client(&self, url: &str, token: Option<Token>) -> anyhow::Result<OperatorClient> {
        Ok(OperatorClient::new(url, token, self.tls.read()?.as_ref()))
    }
}

/// Which coordinator to ask.
#[derive(Clone, Debug, Args)]
pub(crate) struct Contact {
    /// Address of the coordinator
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7327", help_heading = CONNECTION)]
    coordinator: String,

    #[command(flatten)]
    login: Login,
}

impl Contact {
    pub(crate) fn client(&self) -> anyhow::Result<OperatorClient> {
        Ok(self.login.client(&self.coordinator, self.login.token()?)?.patient())
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
    pub(crate) fn open(&self) -> anyhow::Result<Target> {
        match &self.db {
            Some(db) => Ok(Target::Database(db.clone())),
            None => self.contact.client().map(Target::Coordinator),
        }
    }

    /// Which it is, for people: an address or a file.
    pub(crate) fn describe(&self) -> String {
        self.db.as_ref().map_or_else(|| self.contact.coordinator.clone(), |db| db.display().to_string())
    }
}

/// Which run, and where it is.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunTarget {
    /// Run id, as listed by 'nqueens status', or its first digits [default: the only open run]
    run: Option<RunPrefix>,

    #[command(flatten)]
    target: OperatorTarget,
}

impl RunTarget {
    pub(crate) async fn open(&self) -> anyhow::Result<(Target, RunId)> {
        let mut target = self.target.open()?;
        let run = target.find(self.run.as_ref()).await?;
        Ok((target, run))
    }
}

/// A coordinator, or a database that no coordinator serves.
pub(crate) enum Target {
    Coordinator(OperatorClient),
    Database(PathBuf),
}

impl Target {
    pub(crate) async fn runs(&mut self) -> anyhow::Result<Vec<RunStatus>> {
        match self {
            Self::Coordinator(client) => client.runs().await,
            Self::Database(db) => read(db, all_runs).await,
        }
    }

    pub(crate) async fn run(&mut self, id: RunId) -> anyhow::Result<RunStatus> {
        match self {
            Self::Coordinator(client) => client.run(id).await,
            Self::Database(db) => read(db, async |reader| one_run(reader, id).await).await,
        }
    }

    /// The room on the coordinator's disk, if it watches it.
    pub(crate) async fn disk(&mut self) -> anyhow::Result<Option<DiskRoom>> {
        match self {
            Self::Coordinator(client) => Ok(client.coordinator().await?.disk),
            Self::Database(_) => Ok(None),
        }
    }

    /// The run whose id begins so; without that the only open run, or the only run.
    pub(crate) async fn find(&mut self, prefix: Option<&RunPrefix>) -> anyhow::Result<RunId> {
        if let Some(run) = prefix.and_then(RunPrefix::whole) {
            return Ok(run);
        }
        let runs = self.runs().await?;
        let all: Vec<_> = runs.iter().map(|run| run.progress.run).collect();
        let open = runs.iter().filter(|run| run.progress.state.is_open());
        let open: Vec<_> = open.map(|run| run.progress.run).collect();
        match (prefix, &open[..], &all[..]) {
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

    pub(crate) async fn find_worker(&mut self, choice: &WorkerChoice) -> anyhow::Result<WorkerId> {
        if let WorkerChoice::Id(worker) = choice {
            return Ok(*worker);
        }
        let workers: Vec<_> = match self {
            Self::Coordinator(client) => {
                client.workers().await?.into_iter().map(|worker| worker.about).collect()
            }
            Self::Database(db) => read(db, async |reader| Ok(reader.workers().await?)).await?,
        };
        choice.choose(workers.iter().map(|worker| (worker.id, &*worker.name)))
    }

    /// Opens quarantined jobs again if asked to, then pauses, resumes or cancels a run.
    pub(crate) async fn change(
        &mut self,
        id: RunId,
        state: RunState,
        retry: bool,
    ) -> anyhow::Result<RunStatus> {
        match self {
            Self::Coordinator(client) => {
                if retry {
                    client.retry_quarantined(id).await?;
                }
                client.set_state(id, state).await
            }
            Self::Database(db) => {
                let change = async |operator: &Operator| {
                    if retry {
                        operator.ask(retry_quarantined(id)).await?;
                    }
                    Ok(operator.set_run_state(id, state).await?)
                };
                operate(db, change).await
            }
        }
    }

    /// Voids results; returns the run after that, and how many they are.
    pub(crate) async fn requeue(&mut self, id: RunId, of: Blamed) -> anyhow::Result<(RunStatus, u64)> {
        match self {
            Self::Coordinator(client) => client.requeue(id, of).await,
            Self::Database(db) => {
                let requeue = async |operator: &Operator| {
                    let jobs = operator.ask(Requeue { run: id, of }).await?;
                    Ok((one_run(operator.reader(), id).await?, jobs as u64))
                };
                operate(db, requeue).await
            }
        }
    }

    pub(crate) async fn set_trust(&mut self, change: TrustChange) -> anyhow::Result<()> {
        match self {
            Self::Coordinator(client) => client.set_trust(&change).await,
            Self::Database(db) => {
                let TrustChange { machines, trusted } = change;
                let request = set_trust(machines, trusted);
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
    // In this order: what has been planned meanwhile is seen at least once.
    let unplanned = reader.unplanned_runs().await?;
    let rows = reader.runs().await?;
    let unplanned = unplanned.iter().map(UnplannedRun::status);
    let unplanned: Vec<_> =
        unplanned.filter(|run| rows.iter().all(|row| row.id != run.progress.run)).collect();
    let progress = reader.progress(&rows).await?;
    let runs = progress.into_iter().zip(rows).map(|(progress, row)| progress.status(row));
    Ok(runs.chain(unplanned).collect())
}

async fn one_run(reader: &Reader, id: RunId) -> anyhow::Result<RunStatus> {
    let run = all_runs(reader).await?.into_iter().find(|run| run.progress.run == id);
    run.ok_or_else(|| Refusal::NoRun(id).into())
}
