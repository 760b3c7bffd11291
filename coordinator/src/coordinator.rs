//! One coordinator: its ledger, its door, and the chores between them.

use std::collections::HashSet;
use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nqueens_kernel::job::{Job, Weight};
use nqueens_kernel::plan::{Fingerprinter, Plan};
use nqueens_proto::id::{Incarnation, RunId};
use nqueens_proto::v1::worker_service_server::WorkerServiceServer;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tonic::transport::server::TcpIncoming;
use tracing::error;

use crate::database::Database;
use crate::dispatch::RunState;
use crate::error::Error;
use crate::progress::Snapshot;
use crate::reader::Reader;
use crate::service::Workers;
use crate::store::RunRow;
use crate::total::conclude;
use crate::writer::{Handle, Pace, Request, Writer, wall_time};

/// Jobs stored by one transaction while a run is being planned.
const PLAN_BATCH: usize = 5_000;

/// How often leases are looked through for those that have run out.
const EXPIRE_EVERY: Duration = Duration::from_secs(1);

/// A coordinator at work on one database.
pub struct Coordinator {
    writer: Handle,
    writing: JoinHandle<()>,
    chores: Vec<JoinHandle<()>>,
    reader: Reader,
    snapshot: watch::Receiver<Arc<Snapshot>>,
    faults: watch::Receiver<Option<Arc<Error>>>,
}

impl Coordinator {
    /// Opens a database, creates it if need be, and sets to work. `build` names the program for the record.
    pub async fn open(path: &Path, pace: Pace, build: &str) -> Result<Self, Error> {
        let database = Database::open(path).await?;
        let incarnation = Incarnation::from_random(random_bits());
        let writer = Writer::new(database, pace, incarnation, build).await?;
        let reader = Reader::new(writer.readers());
        let (snapshot, faults) = (writer.watch(), writer.faults());
        let (writer, writing) = writer.spawn();
        let chores = vec![
            tokio::spawn(expire(writer.clone())),
            tokio::spawn(conclude_runs(writer.clone(), reader.clone(), snapshot.clone())),
        ];
        Ok(Self { writer, writing, chores, reader, snapshot, faults })
    }

    /// For looking at the ledger.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// The state as it changes.
    pub fn watch(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.snapshot.clone()
    }

    /// Why the latest transaction that failed did so; nothing of it was stored.
    pub fn faults(&self) -> watch::Receiver<Option<Arc<Error>>> {
        self.faults.clone()
    }

    /// Takes back every lease, for one who knows that all workers are gone.
    pub async fn release_all(&self) -> Result<(), Arc<Error>> {
        self.writer.ask(Request::ReleaseAll).await.map(drop)
    }

    /// Plans a run and stores its jobs; they are handed out once all are stored.
    pub async fn submit(&self, plan: Plan) -> Result<RunRow, Arc<Error>> {
        let (id, seed) = (RunId::from_random(random_bits()), random_bits());
        self.writer.ask(Request::PlanRun { id, plan, seed }).await?;
        let (batches, mut planned) = mpsc::channel::<Vec<(Job, Weight)>>(2);
        let planning = tokio::task::spawn_blocking(move || plan_jobs(&plan, &batches));
        let mut estimates = Vec::new();
        while let Some(jobs) = planned.recv().await {
            let first = u32::try_from(estimates.len()).expect("a plan stays under a few million jobs");
            estimates.extend(jobs.iter().map(|(_, weight)| weight.states));
            self.writer.ask(Request::PlanJobs { run: id, first, jobs }).await?;
        }
        let row = RunRow {
            id,
            plan,
            jobs: u32::try_from(estimates.len()).expect("a plan stays under a few million jobs"),
            fingerprint: planning.await.expect("planning does not panic").finish(),
            seed,
            state: RunState::Active,
            reason: None,
            created_at: wall_time(),
            finished_at: None,
            outcome: None,
        };
        self.writer.ask(Request::ActivateRun { row: row.clone(), estimates }).await?;
        Ok(row)
    }

    /// Serves workers on `listener` until `stop`.
    pub fn serve(
        &self,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> JoinHandle<Result<(), Error>> {
        let workers = WorkerServiceServer::new(Workers { writer: self.writer.clone() });
        tokio::spawn(async move {
            let (reporter, health) = tonic_health::server::health_reporter();
            reporter.set_serving::<WorkerServiceServer<Workers>>().await;
            tonic::transport::Server::builder()
                .http2_keepalive_interval(Some(Duration::from_secs(20)))
                .http2_keepalive_timeout(Some(Duration::from_secs(20)))
                .add_service(health)
                .add_service(workers)
                .serve_with_incoming_shutdown(TcpIncoming::from(listener).with_nodelay(Some(true)), stop)
                .await?;
            Ok(())
        })
    }

    /// Ends the chores, stores what has been asked for, and closes the database.
    pub async fn close(self) {
        for chore in &self.chores {
            chore.abort();
        }
        drop(self.writer);
        if let Err(error) = self.writing.await {
            error!(%error, "the writer failed");
        }
    }
}

/// Listens on an address.
pub async fn listen(address: &str) -> Result<(TcpListener, SocketAddr), Error> {
    let cant_listen =
        |error: std::io::Error| Error::CantListen { address: address.to_owned(), reason: error.to_string() };
    let listener = TcpListener::bind(address).await.map_err(cant_listen)?;
    let bound = listener.local_addr().map_err(cant_listen)?;
    Ok((listener, bound))
}

/// Random bits from the operating system.
pub fn random_bits() -> u64 {
    getrandom::u64().expect("the operating system has random bits")
}

/// Makes a plan's jobs on a thread of its own, in batches; whoever takes them may stop early.
fn plan_jobs(plan: &Plan, batches: &mpsc::Sender<Vec<(Job, Weight)>>) -> Fingerprinter {
    let mut fingerprint = Fingerprinter::new(plan);
    let mut jobs = plan.weighed_jobs();
    loop {
        let batch: Vec<_> = jobs.by_ref().take(PLAN_BATCH).collect();
        for (job, _) in &batch {
            fingerprint.add(job);
        }
        if batch.is_empty() || batches.blocking_send(batch).is_err() {
            return fingerprint;
        }
    }
}

/// Has the writer look for leases that have run out, regularly.
async fn expire(writer: Handle) {
    let mut ticks = tokio::time::interval(EXPIRE_EVERY);
    loop {
        ticks.tick().await;
        // A failed transaction has been logged; the next tick tries again.
        let _ = writer.ask(Request::Expire).await;
    }
}

/// Adds up every run whose jobs are all done, once.
async fn conclude_runs(writer: Handle, reader: Reader, mut snapshot: watch::Receiver<Arc<Snapshot>>) {
    let mut concluded = HashSet::new();
    loop {
        let complete = snapshot.borrow_and_update().complete();
        concluded.retain(|run| complete.contains(run));
        for run in complete {
            if concluded.insert(run)
                && let Err(error) = conclude_run(&writer, &reader, run).await
            {
                error!(%run, %error, "adding up failed; it is tried again at the next change");
                concluded.remove(&run);
            }
        }
        if snapshot.changed().await.is_err() {
            return;
        }
    }
}

async fn conclude_run(writer: &Handle, reader: &Reader, id: RunId) -> Result<(), Arc<Error>> {
    let run = reader.run(id).await?;
    let outcome = conclude(reader.pool(), &run).await?;
    writer.ask(Request::FinishRun { run: id, outcome }).await.map(drop)
}
