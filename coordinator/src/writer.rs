//! The one task that changes anything: it owns the writing connection and the [`Scheduler`].
//!
//! Requests queue up while a commit is on its way to the disk; the next transaction takes all that have come by then: it
//! loads what they need, applies them, and persists what that changes. Each is answered after the commit, so whatever
//! somebody was told survives a power cut. When a transaction fails, nothing of it has happened: the state is read again
//! from the database, and everyone in it gets the error.

mod request;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Instant;

use nqueens_model::id::Incarnation;
use nqueens_scheduler::{Dispatch, Millis, Needs, News, Policy, Room, Scheduler, Stalls};
use sqlx::Connection;
use sqlx::sqlite::SqlitePool;
use tokio::sync::{mpsc, watch};
use tracing::{debug, error};

use crate::coordinator::random_bits;
use crate::database::Database;
use crate::error::Error;
use crate::events::{Board, Events};
use crate::ledger::{self, wall_time};
use crate::progress::Snapshot;
use crate::speed::Speeds;

pub(crate) use self::request::Handle;
use self::request::{Message, Pending};

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
    scheduler: Scheduler,
    incarnation: Incarnation,
    secret: [u8; 32],
    policy: Policy,
    started: Instant,
    speeds: Speeds,
    stalls: Stalls,
    events: Board,
    snapshot: watch::Sender<Arc<Snapshot>>,
    fault: watch::Sender<Option<Arc<Error>>>,
}

impl Writer {
    /// Reads the whole state of a database.
    pub(crate) async fn new(
        mut database: Database,
        room: Option<Room>,
        policy: Policy,
        incarnation: Incarnation,
        build: &str,
    ) -> Result<Self, Error> {
        let secret = std::array::from_fn(|_| random_bits().to_le_bytes()[0]);
        let started = Instant::now();
        let begun = async {
            ledger::insert_incarnation(&mut database.writer, incarnation, build, wall_time()).await?;
            ledger::delete_unplanned(&mut database.writer).await?;
            ledger::restore(&database.readers, Dispatch::new(policy, incarnation, secret), room, 0).await
        };
        let scheduler = begun.await.map_err(|error| database.explain(error))?;
        let speeds = Speeds::default();
        let snapshot = watch::Sender::new(Arc::new(Snapshot::of(&scheduler, &speeds)));
        let (fault, stalls, events) = (watch::Sender::new(None), Stalls::default(), Board::default());
        Ok(Self {
            database,
            scheduler,
            incarnation,
            secret,
            policy,
            started,
            speeds,
            stalls,
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

    async fn work(mut self, mut queue: mpsc::Receiver<Message>) {
        let mut waiting = Vec::with_capacity(GROUP_MAX);
        while queue.recv_many(&mut waiting, GROUP_MAX).await > 0 {
            let (mut requests, mut questions) = (Vec::new(), Vec::new());
            for message in waiting.drain(..) {
                match message {
                    Message::Request(request) => requests.push(request),
                    Message::Question(question) => questions.push(question),
                    Message::Close => queue.close(),
                }
            }
            if !requests.is_empty() {
                self.group(requests).await;
            }
            for question in questions {
                question(self.scheduler.dispatch(), self.now());
            }
        }
        self.database.readers.close().await;
        if let Err(error) = self.database.writer.close().await {
            error!(%error, "closing the database");
        }
    }

    /// Does what all the requests ask for in one transaction, shows the state that it leaves, and answers.
    async fn group(&mut self, mut requests: Vec<Box<dyn Pending>>) {
        let failure = match self.transact(&mut requests).await {
            Ok(news) => {
                self.events.post(news);
                None
            }
            Err(error) => Some(self.recover(error).await),
        };
        let now = self.now();
        self.speeds.note(now, self.scheduler.dispatch());
        self.events.post(self.stalls.look(now, self.policy.stall_ms, self.scheduler.dispatch()));
        self.snapshot.send_replace(Arc::new(Snapshot::of(&self.scheduler, &self.speeds)));
        for request in requests {
            request.answer(failure.as_ref());
        }
    }

    /// Loads, applies, persists and commits; returns what is worth an event.
    async fn transact(&mut self, requests: &mut [Box<dyn Pending>]) -> Result<Vec<News>, Error> {
        let (now, begun) = (self.now(), Instant::now());
        let mut db = self.database.writer.begin_with("BEGIN IMMEDIATE").await?;
        let mut needs = Needs::default();
        for request in &*requests {
            request.needs(&mut needs);
        }
        let loaded = ledger::load(&mut db, &needs).await?;
        let mut transaction = self.scheduler.begin(now, loaded);
        for request in &mut *requests {
            request.apply(&mut transaction);
        }
        ledger::persist(&mut db, &transaction.settle()).await?;
        for suspicion in transaction.take_suspicions() {
            let results = ledger::unconfirmed(&mut db, &suspicion.machine).await?;
            transaction.suspect(suspicion, results);
        }
        ledger::persist(&mut db, &transaction.take_changes()).await?;
        let news = transaction.into_news();
        db.commit().await?;
        debug!(requests = requests.len(), elapsed_us = begun.elapsed().as_micros(), "committed");
        Ok(news)
    }

    /// A transaction failed: what is in memory may be ahead of the disk, so it is read again.
    async fn recover(&mut self, error: Error) -> Arc<Error> {
        let cause = Arc::new(self.database.explain(error));
        self.fault.send_replace(Some(Arc::clone(&cause)));
        if let Err(error) = self.database.reconnect().await {
            error!(%error, "connecting to the database again; it is tried again at the next transaction");
        }
        let dispatch = Dispatch::new(self.policy, self.incarnation, self.secret);
        let dispatch = dispatch.in_place_of(self.scheduler.dispatch());
        self.scheduler = match ledger::restore(
            &self.database.readers,
            dispatch,
            self.scheduler.room(),
            self.now(),
        )
        .await
        {
            Ok(scheduler) => scheduler,
            // Rather no coordinator than one that does not know its own ledger.
            Err(error) => panic!("the database can't be read any more: {error}"),
        };
        cause
    }

    fn now(&self) -> Millis {
        Millis::try_from(self.started.elapsed().as_millis()).expect("shorter than 500 million years")
    }
}
