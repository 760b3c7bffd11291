//! The one task that changes anything: it owns the writing connection and the [`Dispatch`].
//!
//! Requests queue up while a commit is on its way to the disk; the next transaction takes all that have come by then.
//! Each is answered after its commit, so whatever somebody was told survives a power cut. When a transaction fails,
//! nothing of it has happened: the state is read again from the database, and everyone in it gets the error.

mod group;
mod request;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use nqueens_model::id::{Incarnation, JobId};
use sqlx::Connection;
use sqlx::sqlite::SqlitePool;
use tokio::sync::{mpsc, watch};
use tracing::{Instrument, Span, debug, error};

use crate::coordinator::random_bits;
use crate::database::Database;
use crate::disk::Disk;
use crate::dispatch::{Dispatch, Millis, Policy, Run};
use crate::error::{Error, damaged};
use crate::events::{Board, Events, News, Stalls};
use crate::progress::Snapshot;
use crate::speed::Speeds;
use crate::store::{self, wall_time};

pub(crate) use self::group::Group;
use self::group::{Instances, Limits};
use self::request::{Answer, Envelope};
pub(crate) use self::request::{Handle, LiveWorker, Request, Response};

/// Requests in one transaction.
const GROUP_MAX: usize = 256;

/// How workers are told to behave.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Time between two heartbeats of a worker.
    pub sync_ms: u32,
    /// The numbers that rule leases.
    pub policy: Policy,
    /// With less than so many bytes free on the database's disk no more jobs leave; 0 lets them leave in any case.
    pub disk_reserve: u64,
    /// Whether the coordinator counts a few jobs itself, to hold results of workers against them.
    pub canaries: bool,
}

impl Default for Pace {
    fn default() -> Self {
        Self { sync_ms: 5_000, policy: Policy::default(), disk_reserve: 0, canaries: false }
    }
}

/// The writer, before it is set to work.
pub(crate) struct Writer {
    database: Database,
    disk: Disk,
    dispatch: Dispatch,
    instances: Instances,
    limits: Limits,
    incarnation: Incarnation,
    secret: [u8; 32],
    pace: Pace,
    started: Instant,
    speeds: Speeds,
    stalls: Stalls,
    /// Jobs in quarantine that were told about.
    quarantined: BTreeSet<JobId>,
    events: Board,
    snapshot: watch::Sender<Arc<Snapshot>>,
    fault: watch::Sender<Option<Arc<Error>>>,
}

impl Writer {
    /// Reads the whole state of a database.
    pub(crate) async fn new(
        mut database: Database,
        pace: Pace,
        incarnation: Incarnation,
        build: &str,
    ) -> Result<Self, Error> {
        let begun = async {
            store::insert_incarnation(&mut database.writer, incarnation, build, wall_time()).await?;
            store::delete_unplanned(&mut database.writer).await
        };
        if let Err(error) = begun.await {
            return Err(database.explain(error));
        }
        let started = Instant::now();
        let secret = std::array::from_fn(|_| random_bits().to_le_bytes()[0]);
        let loaded = load(&database.readers, pace.policy, incarnation, secret, 0).await;
        let (dispatch, instances) = loaded.map_err(|error| database.explain(error))?;
        let (speeds, disk) = (Speeds::default(), Disk::new(database.path(), pace.disk_reserve));
        let snapshot = watch::Sender::new(Arc::new(Snapshot::of(&dispatch, &speeds, disk.room())));
        let (fault, stalls, events) = (watch::Sender::new(None), Stalls::default(), Board::default());
        let limits = Limits::new();
        Ok(Self {
            database,
            disk,
            dispatch,
            instances,
            limits,
            incarnation,
            secret,
            pace,
            started,
            speeds,
            stalls,
            quarantined: BTreeSet::new(),
            events,
            snapshot,
            fault,
        })
    }

    /// The state as it changes, for whoever shows it.
    pub(crate) fn watch(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.snapshot.subscribe()
    }

    /// Why the latest transaction that failed did so.
    pub(crate) fn faults(&self) -> watch::Receiver<Option<Arc<Error>>> {
        self.fault.subscribe()
    }

    /// What happens, of interest to operators.
    pub(crate) fn events(&self) -> watch::Receiver<Events> {
        self.events.watch()
    }

    /// The readers' pool.
    pub(crate) fn readers(&self) -> SqlitePool {
        self.database.readers.clone()
    }

    /// Sets it to work on a task of its own, until it is told to close or the last handle is gone.
    pub(crate) fn spawn(self) -> (Handle, tokio::task::JoinHandle<()>) {
        let (handle, requests) = Handle::new();
        (handle, tokio::spawn(self.work(requests)))
    }

    async fn work(mut self, mut queue: mpsc::Receiver<Envelope>) {
        let mut waiting = Vec::with_capacity(GROUP_MAX);
        while queue.recv_many(&mut waiting, GROUP_MAX).await > 0 {
            let (requests, askers): (Vec<_>, Vec<_>) =
                waiting.drain(..).map(|Envelope { request, span, answer }| ((request, span), answer)).unzip();
            if requests.iter().any(|(request, _)| matches!(request, Request::Close)) {
                queue.close();
            }
            let answers = match self.transact(requests).await {
                Ok((answers, news)) => {
                    self.events.post(news);
                    answers.into_iter().map(Ok).collect()
                }
                Err(error) => {
                    let cause = self.recover(error).await;
                    askers.iter().map(|_| Err(cause.clone())).collect::<Vec<Answer>>()
                }
            };
            self.speeds.note(self.now(), &self.dispatch);
            self.events.post(self.stalls.look(self.now(), self.pace.policy.stall_ms, &self.dispatch));
            self.snapshot.send_replace(Arc::new(Snapshot::of(
                &self.dispatch,
                &self.speeds,
                self.disk.room(),
            )));
            for (asker, answer) in askers.into_iter().zip(answers) {
                // Whoever asked may have gone; the commit stands all the same.
                drop(asker.send(answer));
            }
        }
        self.database.readers.close().await;
        if let Err(error) = self.database.writer.close().await {
            error!(%error, "closing the database");
        }
    }

    /// A transaction failed: what is in memory may be ahead of the disk, so it is read again.
    async fn recover(&mut self, error: Error) -> Arc<Error> {
        let cause = Arc::new(self.database.explain(error));
        self.fault.send_replace(Some(Arc::clone(&cause)));
        if let Err(error) = self.database.reconnect().await {
            error!(%error, "connecting to the database again; it is tried again at the next transaction");
        }
        match load(&self.database.readers, self.pace.policy, self.incarnation, self.secret, self.now()).await
        {
            Ok(loaded) => {
                (self.dispatch, self.instances) = loaded;
                self.quarantined.clear();
            }
            // Rather no coordinator than one that does not know its own ledger.
            Err(error) => panic!("the database can't be read any more: {error}"),
        }
        cause
    }

    fn now(&self) -> Millis {
        Millis::try_from(self.started.elapsed().as_millis()).expect("shorter than 500 million years")
    }

    /// Does what all the requests ask for in one transaction; returns the answers, and what is worth an event.
    async fn transact(
        &mut self,
        requests: Vec<(Request, Span)>,
    ) -> Result<(Vec<Response>, Vec<News>), Error> {
        let now = self.now();
        let mut transaction = self.database.writer.begin_with("BEGIN IMMEDIATE").await?;
        let mut group = Group {
            db: &mut transaction,
            disk: &mut self.disk,
            dispatch: &mut self.dispatch,
            instances: &mut self.instances,
            limits: &mut self.limits,
            quarantined: &mut self.quarantined,
            pace: self.pace,
            now,
            results: Vec::new(),
            accepted: HashMap::new(),
            news: Vec::new(),
        };
        let mut answers = Vec::with_capacity(requests.len());
        let begun = Instant::now();
        let length = requests.len();
        for (request, span) in requests {
            answers.push(group.handle(request).instrument(span).await?);
        }
        group.store().await?;
        let news = group.news;
        transaction.commit().await?;
        debug!(requests = length, elapsed_us = begun.elapsed().as_micros(), "committed");
        Ok((answers, news))
    }
}

/// Reads the whole state of a database.
async fn load(
    db: &SqlitePool,
    policy: Policy,
    incarnation: Incarnation,
    secret: [u8; 32],
    now: Millis,
) -> Result<(Dispatch, Instances), Error> {
    let mut instances = Instances::new();
    let mut dispatch = Dispatch::new(policy, incarnation, secret);
    let mut sums = store::accepted_sums(db).await?;
    for row in store::runs(db).await? {
        let slots = store::slots(db, row.id, row.jobs).await?;
        let accepted = sums.remove(&row.id).unwrap_or_default();
        let run = Run::new(&row, slots, &accepted);
        if accepted.results != u64::from(run.sums().done) {
            let (done, found) = (run.sums().done, accepted.results);
            return Err(damaged(format!("run {} has {done} jobs done but {found} accepted results", row.id)));
        }
        dispatch.add_run(run);
    }
    for row in store::worker_rows(db).await? {
        let kernel = row.kernel();
        instances.insert(row.id, row.instance);
        dispatch.add_worker(row.id, row.name.into(), kernel, row.threads);
    }
    for (machine, standing) in store::standings(db).await? {
        dispatch.add_standing(machine, standing);
    }
    for (job, opinions) in store::open_checks(db).await? {
        dispatch.add_check(job, opinions);
    }
    for (worker, token) in store::leases(db).await? {
        dispatch.add_lease(now, worker, token);
    }
    Ok((dispatch, instances))
}
