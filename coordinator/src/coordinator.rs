//! One coordinator: its ledger, its listener, and its background tasks.

#[cfg(test)]
mod tests;

use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use nqueens_ledger::database::Database;
use nqueens_model::id::{Incarnation, RunId};
use nqueens_model::operator::RunState;
use nqueens_proto::v1::worker_service_server::WorkerServiceServer;
use nqueens_proto::{MESSAGE_BYTES_MAX, random_bytes};
use nqueens_scheduler::request::{self, finish_run};
use nqueens_scheduler::{Dispatch, Run, RunSettings};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tonic::service::Routes;
use tonic::service::interceptor::InterceptedService;
use tracing::{info, warn};

use crate::access::guard;
use crate::api::{Api, routes};
use crate::disk::Disk;
use crate::door::{App, Door};
use crate::error::Error;
use crate::faults::Faults;
use crate::history::Histories;
use crate::journal;
use crate::limits::CountLimits;
use crate::operator::Operator;
use crate::plans::Plans;
use crate::reader::Reader;
use crate::recounting;
use crate::service::{WorkerServer, Workers};
use crate::total::{References, conclude};
use crate::writer::{Handle, Timing, Writer};

/// How often leases are looked through for those that have run out.
const EXPIRE_EVERY: Duration = Duration::from_secs(1);

/// A coordinator at work on one database.
pub struct Coordinator {
    operator: Operator,
    limits: Arc<CountLimits>,
    pace: Timing,
    cut_short: Vec<RunSettings>,
    writing: JoinHandle<()>,
    chores: Vec<JoinHandle<()>>,
    faults: Faults,
}

impl Coordinator {
    /// Opens a database, creates it if need be, and sets to work. `build` names the program for the record.
    pub async fn open(path: &Path, pace: Timing, build: &str) -> Result<Self, Error> {
        let database = Database::open(path, pace.sync_every).await?;
        let incarnation = Incarnation::from_random(u64::from_ne_bytes(random_bytes()));
        let reader = Reader::new(path, database.readers.clone());
        let disk = Disk::new(path, reader.clone(), pace.disk_reserve).await;
        let plans = Plans::default();
        let writer =
            Writer::new(database, disk.room(), pace.policy, incarnation, build, plans.clone()).await?;
        let (snapshot, events, committed, faults) = (
            writer.snapshot.subscribe(),
            writer.events.subscribe(),
            writer.committed.subscribe(),
            writer.faults.clone(),
        );
        let limits = Arc::clone(&writer.limits);
        let cut_short = writer.cut_short.clone();
        let (writer, work) = writer.spawn();
        let writing = tokio::spawn(watch_writer(work, faults.clone()));
        let (build, jobs_max) = (build.into(), pace.jobs_max);
        let operator = Operator {
            writer,
            reader,
            snapshot,
            events,
            histories: Histories::default(),
            committed,
            build,
            plans,
            jobs_max,
        };
        let mut chores = vec![
            faults.spawn(expire(operator.writer.clone(), disk)),
            faults.spawn(conclude_runs(
                operator.clone(),
                References::new(pace.checks_min, pace.policy),
                faults.clone(),
            )),
        ];
        if pace.policy.arbiter {
            chores.push(faults.spawn(recounting::count(operator.clone())));
        }
        Ok(Self { operator, limits, pace, cut_short, writing, chores, faults })
    }

    /// Logs the progress of every active run at this interval, and the [faults](Self::faults). Without this journal,
    /// the caller has to report those.
    pub fn keep_journal(&mut self, every: Duration) {
        self.warn_of_cut_plans();
        self.chores.push(self.faults.spawn(journal::keep(self.operator.watch(), self.faults(), every)));
    }

    /// Warns of runs whose planning was cut short before the start: nothing of them is kept. Who plans his run again himself
    /// need not say so.
    pub fn warn_of_cut_plans(&self) {
        for run in &self.cut_short {
            warn!(run = %run.id, n = run.plan.n().get(), "the planning of this run was cut short: submit it again");
        }
    }

    /// An operator's hands and eyes.
    pub fn operator(&self) -> &Operator {
        &self.operator
    }

    /// How the database failed last: a transaction of which nothing was stored, or rows that could not be read, which is
    /// tried again; or the writer itself, after which nothing goes on.
    pub fn faults(&self) -> watch::Receiver<Option<Arc<Error>>> {
        self.faults.subscribe()
    }

    /// Answers workers in this process.
    pub fn workers(&self) -> Workers {
        Workers {
            writer: self.operator.writer.clone(),
            reader: self.operator.reader.clone(),
            limits: Arc::clone(&self.limits),
            next_sync_ms: self.pace.policy.beat_ms,
            snapshot: self.operator.watch(),
            faults: self.faults.clone(),
            stopping: watch::channel(false).1,
        }
    }

    /// Serves workers and operators, and pages beside their calls, until `stop`; then answers what has begun, for a few seconds at most.
    pub fn serve(
        &self,
        door: Door,
        pages: Option<Router>,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> JoinHandle<()> {
        let workers = WorkerServer(Workers { stopping: door.stopping(), ..self.workers() });
        let workers = WorkerServiceServer::new(workers).max_decoding_message_size(MESSAGE_BYTES_MAX);
        let workers = InterceptedService::new(workers, door.access.workers());
        let (operator, stopping) = (self.operator.clone(), door.stopping());
        let api = Api { operator, stopping, fleets: Arc::default() };
        let api = routes(api).layer(from_fn_with_state(door.operators(), guard));
        // A caller over gRPC reads that as a call that is not known.
        let routes = Routes::new(workers)
            .into_axum_router()
            .merge(api)
            .merge(pages.unwrap_or_default())
            .fallback(StatusCode::NOT_FOUND);
        door.app.send_replace(Some(App { operator: self.operator.clone(), routes }));
        tokio::spawn(async move {
            stop.await;
            // Streams end when they see it, which whoever waits for the last call would wait for.
            door.stopping.send_replace(true);
            door.serving.await.expect("it only accepts");
        })
    }

    /// Ends the chores, stores what has been asked for, and closes the database.
    pub async fn close(self) {
        for chore in &self.chores {
            chore.abort();
        }
        // A connection that was cut off may keep its handle for a while.
        self.operator.writer.close().await;
        self.writing.await.expect("it only waits");
    }
}

/// Waits for the writer to end; if it breaks off, that is a fault.
async fn watch_writer(work: JoinHandle<Result<(), Arc<Error>>>, faults: Faults) {
    let end = work.await.unwrap_or_else(|panic| Err(Arc::new(Error::WriterFailed(panic.to_string()))));
    if let Err(error) = end {
        faults.tell(error);
    }
}

/// Listens on an address.
pub async fn listen(address: &str) -> Result<(TcpListener, SocketAddr), Error> {
    let cant_listen = |error: std::io::Error| Error::CantListen(address.to_owned(), error.to_string());
    let listener = TcpListener::bind(address).await.map_err(cant_listen)?;
    let bound = listener.local_addr().map_err(cant_listen)?;
    Ok((listener, bound))
}

/// Has the writer look for leases that have run out, and tells it how much room the disk has, regularly.
async fn expire(writer: Handle, mut disk: Disk) {
    let mut ticks = tokio::time::interval(EXPIRE_EVERY);
    loop {
        ticks.tick().await;
        // A failed transaction has been logged; the next tick tries again.
        let _ = writer.ask(request::expire(disk.look().await)).await;
    }
}

/// Adds up every run whose jobs are all done, once. What it takes to check the sum is counted beside the jobs.
async fn conclude_runs(mut operator: Operator, mut references: References, faults: Faults) {
    loop {
        let snapshot = operator.snapshot.borrow_and_update().clone();
        for run in snapshot.runs.iter().filter(|run| run.state == RunState::Active) {
            references.of(&run.plan);
        }
        for run in snapshot.complete() {
            // If a result was withdrawn meanwhile, that changed the snapshot.
            if let Err(error) = conclude_run(&operator, run, &mut references).await {
                faults.tell(error);
            }
        }
        if operator.snapshot.changed().await.is_err() {
            return;
        }
    }
}

async fn conclude_run(operator: &Operator, id: RunId, references: &mut References) -> Result<(), Arc<Error>> {
    let basis = move |dispatch: &Dispatch, now| {
        dispatch.run(id).filter(|run| dispatch.is_over(now, run)).map(Run::basis)
    };
    let Some(basis) = operator.writer.look(basis).await? else { return Ok(()) };
    let concluding = async {
        let run = operator.reader.run(id).await?;
        conclude(operator.reader.pool(), &run, references).await
    };
    let outcome = match concluding.await.map_err(|error| operator.reader.explain(error)) {
        // Reading it again would not mend it.
        Err(error) if error.is_damage() => Err(error.to_string()),
        outcome => outcome?,
    };
    let is_over = operator.writer.ask(finish_run(id, basis, outcome)).await?;
    if is_over
        && let Ok(run) = operator.run(id).await
        && let Some(standing) = run.standing()
    {
        info!(run = %id, confirmed = standing.is_confirmed(), "the total is {standing}");
    }
    Ok(())
}
