//! Fetches pictures from a coordinator or a database, and carries out commands.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nqueens_coordinator::{Reader, Refusal, wall_time};
use nqueens_model::id::{RunId, WorkerId};
use nqueens_model::operator::{RunDetail, RunState, WorkerStatus};
use tokio::sync::mpsc;

use super::picture::{ClusterView, WorkerView};
use super::{RETRY, WatchCommand};
use crate::client::OperatorClient;
use crate::command::checkup::describe_disk;
use crate::command::target::{read, runs_with_cost};

/// Runs whose details are asked for with one picture.
const DETAILS: usize = 8;

/// What an operator wants done, having confirmed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Pause(RunId),
    Resume(RunId),
    Drain(WorkerId),
}

/// What comes from the other side.
#[derive(Clone, Debug)]
pub(super) enum FeedMessage {
    Picture(ClusterView),
    /// There is no picture, for this reason; the next try is under way.
    Lost(String),
    /// How an order ended.
    Answer(Result<String, String>),
}

/// Takes pictures of a coordinator, or of a database that is only read.
pub(super) struct Feed {
    place: Result<OperatorClient, PathBuf>,
    /// Runs whose details were asked for in this state: they change while jobs are leased, and with the state.
    followed: HashSet<(RunId, RunState)>,
    only: Option<RunId>,
    every: Duration,
}

impl Feed {
    /// Connects at the first picture.
    pub(super) fn new(watch: &WatchCommand) -> anyhow::Result<Self> {
        let place = watch.target.place()?.map_err(Path::to_owned);
        let every = Duration::from_secs(if place.is_ok() { 1 } else { 5 });
        Ok(Self {
            place,
            followed: HashSet::new(),
            only: watch.subject.0,
            every: watch.interval.unwrap_or(every),
        })
    }

    /// Who takes orders; nobody does for a database.
    pub(super) fn client(&self) -> Option<OperatorClient> {
        self.place.as_ref().ok().cloned()
    }

    /// A picture of this moment.
    pub(super) async fn picture(&mut self) -> anyhow::Result<ClusterView> {
        let mut picture = match &mut self.place {
            Ok(client) => {
                let mut picture = of_coordinator(client).await?;
                picture.details = details(client, &picture, &mut self.followed).await?;
                picture
            }
            Err(db) => of_database(db).await?,
        };
        if let Some(only) = self.only {
            picture.runs.retain(|run| run.progress.run == only);
            anyhow::ensure!(!picture.runs.is_empty(), Refusal::NoRun(only));
        }
        Ok(picture)
    }

    /// Takes one picture after the other, whatever happens to the other side.
    pub(super) async fn keep_taking(mut self, news: mpsc::Sender<FeedMessage>) -> Infallible {
        loop {
            tokio::time::sleep(self.every).await;
            // Nobody takes it when the screen is about to close.
            match self.picture().await {
                Ok(picture) => drop(news.send(FeedMessage::Picture(picture)).await),
                Err(error) => {
                    drop(news.send(FeedMessage::Lost(format!("{error:#}"))).await);
                    tokio::time::sleep(RETRY.saturating_sub(self.every)).await;
                }
            }
        }
    }
}

async fn of_coordinator(client: &mut OperatorClient) -> anyhow::Result<ClusterView> {
    let disk = client.coordinator().await?.disk.filter(|disk| disk.is_short);
    Ok(ClusterView {
        runs: client.runs().await?,
        workers: client
            .workers()
            .await?
            .into_iter()
            .filter(WorkerStatus::is_listed)
            .map(WorkerView::from)
            .collect(),
        events: client.events().await?,
        details: HashMap::new(),
        disk: disk.as_ref().map(describe_disk),
        at: wall_time(),
    })
}

/// Some details: first of runs that are counted, then of those that are not known yet.
async fn details(
    client: &mut OperatorClient,
    picture: &ClusterView,
    followed: &mut HashSet<(RunId, RunState)>,
) -> anyhow::Result<HashMap<RunId, RunDetail>> {
    let runs = picture.runs.iter().map(|run| &run.progress);
    let counted = runs.clone().filter(|run| run.is_counted());
    let others = runs.rev().filter(|run| !run.is_counted() && !followed.contains(&(run.run, run.state)));
    let wanted: Vec<_> = counted.chain(others).map(|run| (run.run, run.state)).take(DETAILS).collect();
    let mut details = HashMap::new();
    for (run, _) in &wanted {
        details.insert(*run, client.detail(*run).await?);
    }
    followed.extend(wanted);
    Ok(details)
}

async fn of_database(db: &Path) -> anyhow::Result<ClusterView> {
    let look = async |reader: &Reader| {
        let (mut runs, mut details) = (Vec::new(), HashMap::new());
        for (run, cpu_us) in runs_with_cost(reader).await? {
            let moments = reader.history(run.progress.run).await?;
            let detail = RunDetail { moments, being_counted: None, cpu_us: cpu_us.try_into().ok() };
            details.insert(run.progress.run, detail);
            runs.push(run);
        }
        let workers = reader.workers().await?.into_iter().map(WorkerView::from).collect();
        let events = reader.events().await?;
        Ok(ClusterView { at: wall_time(), runs, workers, events, details, disk: None })
    };
    read(db, look).await
}

/// Carries out orders, one after the other.
pub(super) async fn obey(
    mut client: OperatorClient,
    mut orders: mpsc::Receiver<Order>,
    news: mpsc::Sender<FeedMessage>,
) {
    while let Some(order) = orders.recv().await {
        let answer = match order {
            Order::Pause(run) => set(&mut client, run, RunState::Paused).await,
            Order::Resume(run) => set(&mut client, run, RunState::Active).await,
            Order::Drain(worker) => {
                client.drain(worker).await.map(|()| format!("worker {worker} is draining"))
            }
        };
        drop(news.send(FeedMessage::Answer(answer.map_err(|error| format!("{error:#}")))).await);
    }
}

async fn set(client: &mut OperatorClient, run: RunId, state: RunState) -> anyhow::Result<String> {
    let run = client.set_state(run, state).await?.progress;
    Ok(format!("run {} is {}", run.run, run.state.name()))
}
