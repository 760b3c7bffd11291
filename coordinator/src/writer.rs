//! The one task that changes the ledger. It owns the writing connection and the [`Scheduler`].
//!
//! Requests queue up while a commit is on its way to the disk. The next transaction takes all that have arrived, in
//! three steps:
//!
//! | step | by | what |
//! |---|---|---|
//! | load | `nqueens_ledger::load` | what the requests need: how much the reported jobs can count, and their current results |
//! | apply | `scheduler::Transaction` | each request gives its own type of answer, or a `Refusal`; together they give a list of `Change`s |
//! | persist | `nqueens_ledger::persist` | the changes in their order: withdrawn results are stored before new ones |
//!
//! Each transaction holds only while this life of the coordinator is the newest: a coordinator that another has taken
//! the place of ends.
//!
//! Each request is answered after the commit, so every answer survives a power cut, but for drains: those last as long as the
//! coordinator. When a transaction fails, nothing
//! of it has happened: the state is read again from the database, and all its requests get the error.
//!
//! When a machine turns out to be wrong, the same transaction reads the ledger a second time: for what nobody but that machine
//! has counted.
//!
//! Jobs of a run that was not planned to its end are removed in transactions of their own, some in each. Questions do not
//! enter a transaction: `Handle::look` shows them the committed state.

mod request;

use std::sync::Arc;
use std::time::{Duration, Instant};

use nqueens_evidence::verify::CHECKS_MIN;
use nqueens_ledger as ledger;
use nqueens_ledger::database::Database;
use nqueens_model::id::Incarnation;
use nqueens_model::operator::{DiskRoom, WallTime};
use nqueens_proto::random_bytes;
use nqueens_scheduler::{Change, Dispatch, Millis, Needs, NewEvent, Policy, RunSettings, Scheduler, Stalls};
use sqlx::{Executor, Sqlite, Transaction};
use tokio::sync::{mpsc, watch};
use tracing::{debug, error, warn};

use crate::clock::{Stopwatch, wall_time};
use crate::error::Error;
use crate::faults::Faults;
use crate::history::Events;
use crate::limits::CountLimits;
use crate::plans::{Plans, UnplannedRun};
use crate::progress::Snapshot;
use crate::speed::Speeds;

pub(crate) use self::request::Handle;
use self::request::{Message, Pending};

/// Requests in one transaction.
const GROUP_MAX: usize = 256;

/// Default of [`Timing::jobs_max`].
const JOBS_MAX: u32 = 20_000_000;

/// How workers are told to behave.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// The numbers that rule leases.
    pub policy: Policy,
    /// With fewer free bytes on the database's disk, no more jobs are leased; 0 for no limit.
    pub disk_reserve: u64,
    /// A plan of more jobs is refused: a coordinator keeps each in memory.
    pub jobs_max: u32,
    /// Second counts under another credential and recounts that must agree, for a total that is not compared with a published
    /// count.
    pub checks_min: u32,
    /// Commits of this time go to the disk together, and a power cut may cost them. Zero where workers of other processes
    /// rely on what is acknowledged.
    pub sync_every: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            disk_reserve: 0,
            jobs_max: JOBS_MAX,
            checks_min: CHECKS_MIN,
            sync_every: Duration::ZERO,
        }
    }
}

/// The writer, before it is set to work.
pub(crate) struct Writer {
    pub(crate) database: Database,
    scheduler: Scheduler,
    incarnation: Incarnation,
    key: [u8; 32],
    policy: Policy,
    started: Stopwatch,
    /// What the ledger's clock showed then.
    began_at: WallTime,
    plans: Plans,
    speeds: Speeds,
    stalls: Stalls,
    pub(crate) events: watch::Sender<Events>,
    /// Runs whose planning was cut short; they are gone.
    pub(crate) cut_short: Vec<RunSettings>,
    /// Events that the next transaction stores.
    untold: Vec<NewEvent>,
    /// The most that leased jobs can count.
    pub(crate) limits: Arc<CountLimits>,
    /// The state as it changes, for whoever shows it.
    pub(crate) snapshot: watch::Sender<Arc<Snapshot>>,
    /// When a transaction was committed last.
    pub(crate) committed: watch::Sender<Instant>,
    /// How the database failed last.
    pub(crate) faults: Faults,
}

impl Writer {
    /// Reads the whole state of a database.
    pub(crate) async fn new(
        mut database: Database,
        room: Option<DiskRoom>,
        policy: Policy,
        incarnation: Incarnation,
        build: &str,
        plans: Plans,
    ) -> Result<Self, Error> {
        let started = Stopwatch::start();
        let begun = async {
            let mut db = database.begin().await?;
            let began_at = wall_time().max(ledger::latest_time(&mut db).await?);
            ledger::insert_incarnation(&mut db, incarnation, build, began_at).await?;
            let key = ledger::key(&mut db, random_bytes()).await?;
            db.commit().await?;
            let unplanned = ledger::unplanned_runs(&mut database.writer).await?;
            while !discard(&mut database, incarnation).await? {}
            let dispatch = Dispatch::new(policy, &key);
            let events = Events::from(ledger::events(&database.readers).await?);
            let times = (0, began_at);
            let scheduler = ledger::restore(&database.readers, dispatch, room, times).await?;
            Ok((began_at, key, events, scheduler, unplanned))
        };
        let (began_at, key, events, scheduler, unplanned) =
            begun.await.map_err(|error: Error| error.explain(&database.path))?;
        let speeds = Speeds::default();
        let snapshot = watch::Sender::new(Arc::new(Snapshot::of(&scheduler, 0, &speeds, Vec::new())));
        let events = watch::Sender::new(events);
        Ok(Self {
            database,
            scheduler,
            incarnation,
            key,
            policy,
            started,
            began_at,
            plans,
            speeds,
            stalls: Stalls::default(),
            events,
            cut_short: unplanned.into_iter().map(|(run, ..)| run).collect(),
            untold: Vec::new(),
            limits: Arc::default(),
            snapshot,
            committed: watch::Sender::new(Instant::now()),
            faults: Faults::default(),
        })
    }

    /// Runs it on a task of its own, until it is closed, the last handle is gone, or an error is
    /// [final](Error::is_final).
    pub(crate) fn spawn(self) -> (Handle, tokio::task::JoinHandle<Result<(), Arc<Error>>>) {
        let (handle, requests) = Handle::new();
        (handle, tokio::spawn(self.work(requests)))
    }

    async fn work(mut self, mut queue: mpsc::Receiver<Message>) -> Result<(), Arc<Error>> {
        let mut waiting = Vec::with_capacity(GROUP_MAX);
        let mut end = Ok(());
        while end.is_ok() && queue.recv_many(&mut waiting, GROUP_MAX).await > 0 {
            let (mut requests, mut questions, mut discards) = (Vec::new(), Vec::new(), Vec::new());
            for message in waiting.drain(..) {
                match message {
                    Message::Request(request) => requests.push(request),
                    Message::Question(question) => questions.push(question),
                    Message::Discard(asker) => discards.push(asker),
                    Message::Close => queue.close(),
                }
            }
            if !requests.is_empty() {
                end = self.group(requests).await;
            }
            for asker in discards {
                if end.is_ok() {
                    let outcome = self.discard().await;
                    end =
                        outcome.as_ref().err().filter(|error| error.is_final()).cloned().map_or(Ok(()), Err);
                    // Whoever asked may have gone.
                    drop(asker.send(outcome));
                }
            }
            // What is in memory may be ahead of the disk: nobody is shown that.
            for question in questions.into_iter().filter(|_| end.is_ok()) {
                question(self.scheduler.dispatch(), self.now());
            }
        }
        if let Err(error) = self.database.close().await {
            error!(%error, "closing the database");
        }
        end
    }

    /// Does what all the requests ask for in one transaction, shows the state that it leaves, and answers. An error means
    /// that no other transaction can follow.
    async fn group(&mut self, mut requests: Vec<Box<dyn Pending>>) -> Result<(), Arc<Error>> {
        let failure = match self.transact(&mut requests).await {
            Ok(()) => None,
            Err(error) => Some(self.recover(error).await),
        };
        if let Some(end) = failure.as_ref().filter(|failure| failure.is_final()) {
            for request in requests {
                request.answer(Some(end));
            }
            return Err(Arc::clone(end));
        }
        let now = self.now();
        self.speeds.note(now, self.scheduler.dispatch());
        self.untold.extend(self.stalls.look(now, self.policy.stall_ms, self.scheduler.dispatch()));
        self.show();
        for request in requests {
            request.answer(failure.as_ref());
        }
        Ok(())
    }

    /// Loads, applies, persists and commits.
    async fn transact(&mut self, requests: &mut [Box<dyn Pending>]) -> Result<(), Error> {
        let (now, at, begun) = (self.now(), self.ledger_time(), Instant::now());
        let mut db = begin(&mut self.database, self.incarnation).await?;
        let mut needs = Needs::default();
        for request in &*requests {
            request.needs(&mut needs);
        }
        let mut loaded = self.limits.load(&mut needs, self.scheduler.dispatch());
        loaded.extend(ledger::load(&mut db, &needs).await?);
        let mut transaction = self.scheduler.begin(now, loaded);
        for request in &mut *requests {
            request.apply(&mut transaction);
        }
        let changes = transaction.settle();
        let is_planned = changes.iter().any(|change| matches!(change, Change::RunActivated { .. }));
        ledger::persist(&mut db, &changes, at).await?;
        for outcast in transaction.take_outcasts() {
            let in_doubt = ledger::in_doubt(&mut db, &outcast.machine).await?;
            transaction.doubt(&outcast, in_doubt);
        }
        ledger::persist(&mut db, &transaction.take_changes(), at).await?;
        let news: Vec<_> = self.untold.iter().cloned().chain(transaction.into_news()).collect();
        let events = if news.is_empty() {
            None
        } else {
            ledger::insert_events(&mut db, &news, at).await?;
            Some(ledger::events(&mut *db).await?)
        };
        db.commit().await?;
        self.database.sync().await?;
        self.untold.clear();
        if let Some(events) = events {
            self.events.send_replace(Arc::new(events));
        }
        self.committed.send_replace(Instant::now());
        if let Err(error) = self.database.checkpoint(is_planned).await {
            warn!(%error, "the log can't be moved into the database; nothing is lost");
        }
        debug!(requests = requests.len(), elapsed_us = begun.elapsed().as_micros(), "committed");
        Ok(())
    }

    /// Removes some jobs of a run that was not planned to its end; true once there are none.
    async fn discard(&mut self) -> Result<bool, Arc<Error>> {
        let discarded = discard(&mut self.database, self.incarnation).await;
        let outcome = match discarded {
            Ok(is_done) => Ok(is_done),
            Err(error) => Err(self.recover(error).await),
        };
        self.show();
        outcome
    }

    fn show(&self) {
        let unplanned = self.plans.runs().iter().map(UnplannedRun::progress).collect();
        self.snapshot.send_replace(Arc::new(Snapshot::of(
            &self.scheduler,
            self.now(),
            &self.speeds,
            unplanned,
        )));
    }

    /// A transaction failed: what is in memory may be ahead of the disk, so it is read again. Returns the cause; if the ledger
    /// can't be read any more that is the end: rather no coordinator than one that does not know its own ledger.
    async fn recover(&mut self, error: Error) -> Arc<Error> {
        if error.is_final() {
            return Arc::new(error);
        }
        let cause = Arc::new(error.explain(&self.database.path));
        self.faults.tell(Arc::clone(&cause));
        if let Err(error) = self.database.reconnect().await {
            error!(%error, "connecting to the database again; it is tried again at the next transaction");
        }
        let dispatch = Dispatch::new(self.policy, &self.key);
        let dispatch = dispatch.in_place_of(self.now(), self.scheduler.dispatch());
        let (readers, room) = (&self.database.readers, self.scheduler.room());
        match ledger::restore(readers, dispatch, room, (self.now(), self.ledger_time())).await {
            Ok(scheduler) => self.scheduler = scheduler,
            Err(error) => {
                let error = error.explain(&self.database.path);
                return Arc::new(Error::WriterFailed(format!(
                    "its database can't be read any more: {error}"
                )));
            }
        }
        cause
    }

    /// The time by the ledger's clock: this machine's at the start, or the ledger's latest if that is later, and steady from
    /// then on. So times in a ledger ascend, whatever is done to the machine's clock.
    fn ledger_time(&self) -> WallTime {
        self.began_at.saturating_add_unsigned(self.now())
    }

    fn now(&self) -> Millis {
        Millis::try_from(self.started.elapsed().as_millis()).expect("shorter than 500 million years")
    }
}

/// Begins a transaction, if this life of the coordinator is the newest.
async fn begin(database: &mut Database, life: Incarnation) -> Result<Transaction<'_, Sqlite>, Error> {
    let path = database.path.clone();
    let mut db = database.begin().await?;
    if ledger::newest_incarnation(&mut db).await? == Some(life) {
        Ok(db)
    } else {
        Err(nqueens_ledger::Error::Superseded(path).into())
    }
}

/// Removes some jobs of a run that was not planned to its end, or such a run without jobs; true once there is none.
///
/// Without foreign keys, for the ledger has no index by which SQLite could see that no result belongs to a job: it would
/// read all results for each. None does, because jobs are handed out after they are all planned.
async fn discard(database: &mut Database, life: Incarnation) -> Result<bool, Error> {
    database.writer.execute("PRAGMA foreign_keys = OFF").await?;
    let mut db = begin(database, life).await?;
    let is_done = ledger::delete_unplanned(&mut db).await?;
    db.commit().await?;
    database.writer.execute("PRAGMA foreign_keys = ON").await?;
    Ok(is_done)
}
