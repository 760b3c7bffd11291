//! One coordinator: its ledger, its listener, and its background tasks.

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nqueens_ledger::database::Database;
use nqueens_model::id::{Incarnation, RunId};
use nqueens_model::operator::RunState;
use nqueens_proto::v1::operator_service_server::OperatorServiceServer;
use nqueens_proto::v1::worker_service_server::WorkerServiceServer;
use nqueens_proto::{MESSAGE_BYTES_MAX, random_bytes, request_id};
use nqueens_scheduler::request::{Expire, FinishRun};
use nqueens_scheduler::{Dispatch, Policy, Run};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tonic::codegen::http;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;
use tower::layer::layer_fn;
use tracing::{Span, debug, error_span, field, warn};

use crate::access::Access;
use crate::disk::Disk;
use crate::error::Error;
use crate::history::Histories;
use crate::journal;
use crate::limits::CountLimits;
use crate::listener::{self, Watching};
use crate::operator::Operator;
use crate::operator_service::Operators;
use crate::plans::Plans;
use crate::reader::Reader;
use crate::recounting;
use crate::service::Workers;
use crate::total::{Confirming, References, conclude};
use crate::writer::{Handle, Timing, Writer};

/// How often leases are looked through for those that have run out.
const EXPIRE_EVERY: Duration = Duration::from_secs(1);

/// A call is answered within this time, or refused. Watching counts from its first answer.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Keep-alive interval of silent connections, and the time to answer.
const KEEPALIVE: Duration = Duration::from_secs(20);

/// Time for calls in progress to end, when the coordinator stops.
const DRAIN: Duration = Duration::from_secs(3);

/// Calls at once on one connection.
const CALLS_MAX: u32 = 64;

/// Bytes of metadata that come with a call.
const HEADER_BYTES_MAX: u32 = 16 << 10;

/// A coordinator at work on one database.
pub struct Coordinator {
    operator: Operator,
    limits: Arc<CountLimits>,
    pace: Timing,
    writing: JoinHandle<()>,
    chores: Vec<JoinHandle<()>>,
    faults: watch::Sender<Option<Arc<Error>>>,
}

impl Coordinator {
    /// Opens a database, creates it if need be, and sets to work. `build` names the program for the record.
    pub async fn open(path: &Path, pace: Timing, build: &str) -> Result<Self, Error> {
        let database = Database::open(path).await?;
        let incarnation = Incarnation::from_random(u64::from_ne_bytes(random_bytes()));
        let reader = Reader::new(path, database.readers.clone());
        let disk = Disk::new(path, reader.clone(), pace.disk_reserve).await;
        let plans = Plans::default();
        let Confirming { recounts_min, published, .. } = pace.confirming;
        let policy = Policy { arbiter: pace.canaries, recounts_min, published, ..pace.policy };
        let writer = Writer::new(database, disk.room(), policy, incarnation, build, plans.clone()).await?;
        let (snapshot, events, committed, faults) = (
            writer.snapshot.subscribe(),
            writer.events.subscribe(),
            writer.committed.subscribe(),
            writer.faults.clone(),
        );
        let limits = Arc::clone(&writer.limits);
        let (writer, work) = writer.spawn();
        let writing = tokio::spawn(watch_writer(work, faults.clone()));
        let (build, jobs_max, refused) = (build.into(), pace.jobs_max, Arc::default());
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
            refused,
        };
        let mut chores = vec![
            tokio::spawn(expire(operator.writer.clone(), disk)),
            tokio::spawn(conclude_runs(operator.clone(), pace.confirming, faults.clone())),
        ];
        if pace.canaries {
            chores.push(tokio::spawn(recounting::count(operator.clone())));
        }
        Ok(Self { operator, limits, pace, writing, chores, faults })
    }

    /// Logs the progress of every active run at this interval, and the [faults](Self::faults). Without this journal,
    /// the caller has to report those.
    pub fn keep_journal(&mut self, every: Duration) {
        self.chores.push(tokio::spawn(journal::keep(self.operator.watch(), self.faults(), every)));
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

    /// Serves workers and operators on `listener` until `stop`; then answers what has begun, for a few seconds at most.
    pub fn serve(
        &self,
        listener: TcpListener,
        access: &Access,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> JoinHandle<Result<(), Error>> {
        let (stopping, stopped) = watch::channel(false);
        let workers = Workers {
            writer: self.operator.writer.clone(),
            reader: self.operator.reader.clone(),
            limits: Arc::clone(&self.limits),
            next_sync_ms: self.pace.policy.beat_ms,
            snapshot: self.operator.watch(),
            faults: self.faults.clone(),
            stopping: stopped.clone(),
        };
        let workers = WorkerServiceServer::new(workers).max_decoding_message_size(MESSAGE_BYTES_MAX);
        let operators = Operators { operator: self.operator.clone(), stopping: stopped.clone() };
        let operators = OperatorServiceServer::new(operators).max_decoding_message_size(MESSAGE_BYTES_MAX);
        let workers = InterceptedService::new(workers, access.workers());
        let operators = InterceptedService::new(operators, access.operators());
        let (limits, tls, refused) = (access.limits, access.tls.clone(), Arc::clone(&self.operator.refused));
        tokio::spawn(async move {
            let (reporter, health) = tonic_health::server::health_reporter();
            reporter.set_serving::<WorkerServiceServer<Workers>>().await;
            reporter.set_serving::<OperatorServiceServer<Operators>>().await;
            let serving = Server::builder()
                .trace_fn(call_span)
                .timeout(CALL_TIMEOUT)
                .max_concurrent_streams(CALLS_MAX)
                .http2_max_header_list_size(HEADER_BYTES_MAX)
                .http2_keepalive_interval(Some(KEEPALIVE))
                .http2_keepalive_timeout(Some(KEEPALIVE))
                .layer(layer_fn(Watching))
                .add_service(health)
                .add_service(workers)
                .add_service(operators)
                .serve_with_incoming_shutdown(
                    listener::open(listener, limits, tls, refused),
                    // Streams end when they see it, which a server that drains would wait for.
                    async move {
                        stop.await;
                        stopping.send_replace(true);
                    },
                );
            tokio::select! {
                outcome = serving => outcome?,
                () = overdue(stopped) => warn!("some calls were still open and are aborted"),
            }
            Ok(())
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
async fn watch_writer(work: JoinHandle<Result<(), Arc<Error>>>, faults: watch::Sender<Option<Arc<Error>>>) {
    let end = work.await.unwrap_or_else(|panic| Err(Arc::new(Error::WriterFailed(panic.to_string()))));
    if let Err(error) = end {
        faults.send_replace(Some(error));
    }
}

/// What all log lines of one call have in common: the name that its caller's log has for it too.
fn call_span(request: &http::Request<()>) -> Span {
    // As high as any line in it, so that no filter that lets the line through drops the name.
    let span = error_span!("call", method = request.uri().path(), request = field::Empty);
    if let Some(id) = request_id::read(request.headers()) {
        span.record("request", field::display(id));
    }
    debug!(parent: &span, "called");
    span
}

/// Waits until draining has taken too long.
async fn overdue(mut stopped: watch::Receiver<bool>) {
    let is_told = stopped.wait_for(|stopped| *stopped).await.is_ok();
    if is_told { tokio::time::sleep(DRAIN).await } else { std::future::pending().await }
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
        let _ = writer.ask(Expire { room: disk.look().await }).await;
    }
}

/// Adds up every run whose jobs are all done, once. What it takes to check the sum is counted beside the jobs.
async fn conclude_runs(
    mut operator: Operator,
    confirming: Confirming,
    faults: watch::Sender<Option<Arc<Error>>>,
) {
    let (mut concluded, mut references) = (HashSet::new(), References::new(confirming));
    loop {
        let snapshot = operator.snapshot.borrow_and_update().clone();
        for run in snapshot.runs.iter().filter(|run| run.state == RunState::Active) {
            references.of(&run.plan);
        }
        let complete = snapshot.complete();
        concluded.retain(|run| complete.contains(run));
        for run in complete {
            if !concluded.insert(run) {
                continue;
            }
            match conclude_run(&operator, run, &mut references).await {
                Ok(true) => {}
                // A result was withdrawn meanwhile, which changed the snapshot.
                Ok(false) => drop(concluded.remove(&run)),
                Err(error) => {
                    faults.send_replace(Some(error));
                    concluded.remove(&run);
                }
            }
        }
        if operator.snapshot.changed().await.is_err() {
            return;
        }
    }
}

async fn conclude_run(
    operator: &Operator,
    id: RunId,
    references: &mut References,
) -> Result<bool, Arc<Error>> {
    let basis = move |dispatch: &Dispatch, now| {
        dispatch.run(id).filter(|run| dispatch.is_over(now, run)).map(Run::basis)
    };
    let Some(basis) = operator.writer.look(basis).await? else { return Ok(false) };
    let concluding = async {
        let run = operator.reader.run(id).await?;
        conclude(operator.reader.pool(), &run, references).await
    };
    let outcome = match concluding.await.map_err(|error| operator.reader.explain(error)) {
        // Reading it again would not mend it.
        Err(error) if error.is_damage() => Err(error.to_string()),
        outcome => outcome?,
    };
    operator.writer.ask(FinishRun { run: id, basis, outcome }).await
}
