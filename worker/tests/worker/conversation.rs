//! A worker and its coordinator over a real socket: what it does when the other refuses, sends it away, is late, or
//! is gone for a while.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nqueens_coordinator::{Access, Coordinator, Door, Policy, RunRow, Timing, listen};
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::engine::{Control, Engine, Kernel, Stopped, Tally, cpu};
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_kernel::random::Random;
use nqueens_kernel::subproblem::Subproblem;
use nqueens_model::operator::{Event, EventKind, RunState};
use nqueens_proto::v1::worker_service_server::{WorkerService, WorkerServiceServer};
use nqueens_proto::{Token, v1};
use nqueens_worker::{
    CallError, Client, Config, Crew, EndReason, MemoryMax, Spool, Summary, WorkerError, prove, work,
};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

fn config(spool: Option<&Path>, drain: Duration) -> Config {
    let engine = prove(&cpu, Kernel::best()).expect("a good engine");
    Config {
        name: "test".to_owned(),
        build: "test".to_owned(),
        crews: vec![Crew::of_cpu(engine, NonZeroUsize::MIN)],
        factory: Arc::new(cpu),
        offered: Vec::new(),
        memory: MemoryMax { tables: 0, all: u64::MAX },
        spool: spool.map(|dir| Spool::open(dir).expect("a spool")),
        drain,
        time_max: None,
        idle_max: None,
    }
}

fn client(address: SocketAddr) -> Client {
    Client::new(&format!("http://{address}"), None, None).expect("an address")
}

/// A coordinator that says what a test wants it to, and remembers what it was told.
struct Scripted {
    register: Result<(), Status>,
    /// Answers in this order; the last one for good.
    syncs: Mutex<Vec<v1::SyncResponse>>,
    heard: Arc<Mutex<Heard>>,
}

#[derive(Default)]
struct Heard {
    syncs: Vec<v1::SyncRequest>,
    authorizations: Vec<String>,
    request_ids: Vec<String>,
}

impl Scripted {
    fn new(syncs: Vec<v1::SyncResponse>) -> Self {
        Self { register: Ok(()), syncs: Mutex::new(syncs), heard: Arc::default() }
    }

    fn hear<T>(&self, request: &Request<T>) {
        let field = |name: &str| {
            let value = request.metadata().get(name).map(|value| value.to_str().expect("ASCII").to_owned());
            value.unwrap_or_default()
        };
        let mut heard = self.heard.lock().expect("no panics");
        heard.authorizations.push(field("authorization"));
        heard.request_ids.push(field("x-request-id"));
    }

    /// Serves on a port of its own.
    async fn serve(self) -> (SocketAddr, Arc<Mutex<Heard>>) {
        let (listener, address) = listen("127.0.0.1:0").await.expect("a port");
        let heard = Arc::clone(&self.heard);
        let server = tonic::transport::Server::builder().add_service(WorkerServiceServer::new(self));
        tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
        (address, heard)
    }
}

#[tonic::async_trait]
impl WorkerService for Scripted {
    async fn register(
        &self,
        request: Request<v1::RegisterRequest>,
    ) -> Result<Response<v1::RegisterResponse>, Status> {
        self.hear(&request);
        self.register
            .clone()
            .map(|()| Response::new(v1::RegisterResponse { worker_id: 1, secret: vec![1; 16] }))
    }

    async fn sync(&self, request: Request<v1::SyncRequest>) -> Result<Response<v1::SyncResponse>, Status> {
        self.hear(&request);
        let sync = request.into_inner();
        let mut syncs = self.syncs.lock().expect("no panics");
        let mut answer = if syncs.len() > 1 { syncs.remove(0) } else { syncs[0].clone() };
        let accepted = |result: &v1::JobResult| v1::ResultAck {
            token: result.token,
            verdict: v1::Verdict::Accepted.into(),
            reason: String::new(),
        };
        answer.acks = sync.results.iter().map(accepted).collect();
        self.heard.lock().expect("no panics").syncs.push(sync);
        Ok(Response::new(answer))
    }
}

fn answer(leases: Vec<v1::Lease>, drain: bool) -> v1::SyncResponse {
    v1::SyncResponse { leases, drain, next_sync_ms: 100, ..v1::SyncResponse::default() }
}

/// Leases on some jobs of a board.
fn leases(n: u32, jobs: std::ops::Range<u32>) -> Vec<v1::Lease> {
    let n = BoardSize::new(n).expect("a board");
    let plan = Plan::new(n, PlanKind::Border).weighed_jobs();
    let lease = |((job, weight), number): ((nqueens_kernel::job::Job, nqueens_kernel::job::Weight), u32)| {
        let token = v1::LeaseToken { run: 1, job: number, epoch: 1, ticket: 1 };
        v1::Lease {
            token: Some(token),
            n: n.get(),
            class: job.class().name().to_owned(),
            bound1: job.bound1().into(),
            prefixes: job.encode(),
            states: weight.states,
            mirrored: false,
        }
    };
    plan.zip(jobs).map(lease).collect()
}

#[tokio::test]
async fn a_coordinator_of_another_protocol_ends_it() {
    let refusal = Status::failed_precondition("this coordinator speaks protocol 7");
    let (address, _) = Scripted { register: Err(refusal), ..Scripted::new(Vec::new()) }.serve().await;
    let outcome = work(config(None, Duration::ZERO), client(address), std::future::pending()).await;
    assert!(matches!(outcome, Err(WorkerError::Call(CallError::Refused(why))) if why.contains("protocol 7")));
}

#[tokio::test]
async fn every_call_carries_the_token_and_a_name_of_its_own() {
    let script = vec![answer(Vec::new(), false), answer(Vec::new(), true)];
    let (address, heard) = Scripted::new(script).serve().await;
    let token: Token = "correct-horse-battery".parse().expect("a token");
    let client = Client::new(&format!("http://{address}"), Some(token), None).expect("an address");
    work(config(None, Duration::ZERO), client, std::future::pending()).await.expect("dismissed");
    let mut heard = heard.lock().expect("no panics");
    assert!(heard.request_ids.len() >= 3, "a registration and two syncs");
    assert!(heard.authorizations.iter().all(|value| value == "Bearer correct-horse-battery"));
    let calls = heard.request_ids.len();
    heard.request_ids.sort();
    heard.request_ids.dedup();
    assert!(heard.request_ids.len() == calls && heard.request_ids.iter().all(|id| id.len() == 16));
}

#[tokio::test]
async fn a_coordinator_without_work_is_asked_once_a_beat() {
    let idle = answer(Vec::new(), false);
    let (address, heard) =
        Scripted::new(vec![idle.clone(), idle.clone(), idle, answer(Vec::new(), true)]).serve().await;
    let begun = Instant::now();
    work(config(None, Duration::ZERO), client(address), std::future::pending()).await.expect("dismissed");
    let leaving: Vec<_> = heard.lock().expect("no panics").syncs.iter().map(|sync| sync.leaving).collect();
    assert_eq!(leaving, [false, false, false, false, true]);
    assert!(begun.elapsed() >= Duration::from_millis(3 * 100), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_worker_that_is_sent_away_reports_and_hands_back_everything() {
    // Four small jobs, of which a busy machine may not have begun all by its next sync; then thirty that never end, and the
    // word to go with them.
    let script =
        vec![answer(leases(10, 0..4), false), answer(leases(30, 10..40), true), answer(Vec::new(), true)];
    let (address, heard) = Scripted::new(script).serve().await;
    let working = work(config(None, Duration::from_millis(300)), client(address), std::future::pending());
    let summary = working.await.expect("it was sent away");
    let heard = heard.lock().expect("no panics");
    let returned =
        heard.syncs.iter().flat_map(|sync| &sync.returned).filter_map(|back| Some(back.token?.job));
    let counted =
        heard.syncs.iter().flat_map(|sync| &sync.results).filter_map(|result| Some(result.token?.job));
    let counted: Vec<_> = counted.collect();
    assert!(counted.iter().all(|job| *job < 4), "{counted:?}");
    let accepted = counted.len() as u64;
    assert_eq!(summary, Summary { accepted, reason: EndReason::Dismissed, ..Summary::default() });
    let mut jobs: Vec<_> = counted.into_iter().chain(returned).collect();
    jobs.sort_unstable();
    assert_eq!(jobs, (0..4).chain(10..40).collect::<Vec<_>>(), "each once");
    let first = heard.syncs.iter().position(|sync| !sync.returned.is_empty()).expect("it returned some");
    assert!(heard.syncs[first].returned.len() >= 29, "at once, but for the one that has begun");
    for sync in &heard.syncs[first..] {
        assert!(sync.wanted_jobs == 0 && sync.returned.iter().all(|returned| returned.failure.is_empty()));
    }
}

#[tokio::test]
async fn addresses_that_are_none_are_refused() {
    for url in ["", "localhost:7327", "https://localhost:7327", "ftp://localhost", "http://"] {
        let refused = Client::new(url, None, None).expect_err(url).to_string();
        assert!(refused.contains("write it like http://host:7327"), "{refused}");
    }
}

/// A coordinator that can be stopped.
struct Service {
    coordinator: Coordinator,
    stop: oneshot::Sender<()>,
    server: JoinHandle<()>,
}

impl Service {
    async fn start(db: &Path, address: &str) -> (Self, SocketAddr) {
        // Workers want the work of two beats: they hold some seconds' worth when the coordinator goes.
        let pace = Timing { policy: Policy { beat_ms: 2_000, ..Policy::default() }, ..Timing::default() };
        let coordinator = Coordinator::open(db, pace, "test").await.expect("a database");
        let (listener, address) = listen(address).await.expect("a port");
        let (stop, stopped) = oneshot::channel();
        let server =
            coordinator.serve(Door::open(listener, &Access::default()), None, async { drop(stopped.await) });
        (Self { coordinator, stop, server }, address)
    }

    async fn submit(&self, n: u32) -> RunRow {
        let n = BoardSize::new(n).expect("a board");
        let plan = Plan::with_states_per_job(n, PlanKind::Border, 1_000_000);
        self.coordinator.operator().submit(plan, 0).await.expect("planned")
    }

    /// Waits until its run has this many jobs done.
    async fn done(&self, jobs: u32) {
        let mut snapshots = self.coordinator.operator().watch();
        let there = snapshots.wait_for(|snapshot| snapshot.runs.iter().any(|run| run.sums.done >= jobs));
        drop(there.await.expect("the coordinator lives"));
    }

    /// Waits for a run's total.
    async fn total(&self, run: &RunRow) -> u128 {
        let mut snapshots = self.coordinator.operator().watch();
        let over = |state| matches!(state, RunState::Done | RunState::Failed);
        let end =
            snapshots.wait_for(|snapshot| snapshot.run(run.id).is_some_and(|run| over(run.state))).await;
        drop(end.expect("the coordinator lives"));
        let run = self.coordinator.operator().reader().run(run.id).await.expect("a run");
        run.outcome.expect("a total").total
    }

    async fn stop(self) {
        drop(self.stop);
        self.server.await.expect("no panic");
        self.coordinator.close().await;
    }
}

/// A worker with a spool that can be stopped.
struct Working {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<Summary, WorkerError>>,
}

impl Working {
    fn start(spool: &Path, address: SocketAddr) -> Self {
        let (stop, stopped) = oneshot::channel();
        let stopped = async { drop(stopped.await) };
        let task = tokio::spawn(work(config(Some(spool), Duration::ZERO), client(address), stopped));
        Self { stop, task }
    }

    async fn stop(self) -> Summary {
        drop(self.stop);
        self.task.await.expect("no panic").expect("it was told to stop")
    }
}

fn bytes_in(spool: &Path) -> u64 {
    std::fs::metadata(spool.join("results")).expect("a spool").len()
}

/// Waits until something lies in the spool.
async fn spooled(spool: &Path) {
    let mut looks = tokio::time::interval(Duration::from_millis(10));
    while bytes_in(spool) == 0 {
        looks.tick().await;
    }
}

#[tokio::test]
async fn a_coordinator_may_come_late_and_be_away_for_a_while() {
    let place = TempDir::new().expect("a directory");
    let (db, spool) = (place.path().join("runs.db"), place.path().join("spool"));
    let (listener, address) = listen("127.0.0.1:0").await.expect("a free port");
    let working = Working::start(&spool, address);
    // It has called, and nobody has answered.
    drop(listener.accept().await.expect("a call"));
    drop(listener);

    let (service, _) = Service::start(&db, &address.to_string()).await;
    let run = service.submit(16).await;
    service.done(1).await;
    service.stop().await;
    // It counts on and keeps the results.
    spooled(&spool).await;

    let (service, _) = Service::start(&db, &address.to_string()).await;
    assert_eq!(service.total(&run).await, 14_772_512);
    let summary = working.stop().await;
    assert_eq!((summary.accepted, summary.unreported, summary.unreturned), (run.jobs.into(), 0, 0));
    assert_eq!(bytes_in(&spool), 0, "all is acknowledged");
    service.stop().await;
}

#[tokio::test]
async fn results_of_another_database_are_set_aside() {
    let place = TempDir::new().expect("a directory");
    let spool = place.path().join("spool");
    let (service, address) = Service::start(&place.path().join("a.db"), "127.0.0.1:0").await;
    service.submit(16).await;
    let working = Working::start(&spool, address);
    service.done(1).await;
    service.stop().await;
    spooled(&spool).await;
    let first = working.stop().await;
    assert!(first.unreported > 0, "nobody was there to take them");
    let kept = std::fs::read(spool.join("results")).expect("a file");

    let (service, address) = Service::start(&place.path().join("b.db"), "127.0.0.1:0").await;
    let run = service.submit(10).await;
    let working = Working::start(&spool, address);
    service.done(run.jobs).await;
    let second = working.stop().await;
    assert_eq!((second.accepted, second.refused), (run.jobs.into(), first.unreported as u64));
    assert!(std::fs::read(spool.join("rejected")).expect("a file") == kept, "byte by byte");
    assert_eq!(bytes_in(&spool), 0);
    service.stop().await;
}

/// A device that is lost for good after so many boards.
struct FadingDevice {
    real: Box<dyn Engine>,
    boards_left: Arc<AtomicUsize>,
    lost: bool,
}

impl Engine for FadingDevice {
    fn count(&mut self, problem: &Subproblem, control: &Control) -> Result<Tally, Stopped> {
        let less = |left: usize| left.checked_sub(1);
        if self.boards_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_err() {
            self.lost = true;
            return Err(Stopped);
        }
        self.real.count(problem, control)
    }

    fn fault(&self) -> Option<&str> {
        self.lost.then_some("fell off the bus")
    }
}

/// A worker with nothing else to count by.
fn on_a_device_that_fades(boards: usize) -> Config {
    let boards_left = Arc::new(AtomicUsize::new(boards));
    let factory = move |_: &str| -> Option<Box<dyn Engine>> {
        let boards_left = Arc::clone(&boards_left);
        Some(Box::new(FadingDevice { real: cpu("scalar")?, boards_left, lost: false }))
    };
    let kernel = "abacus".parse().expect("a name");
    let crew = Crew {
        engine: "abacus-0".to_owned(),
        kernel,
        family: kernel,
        device: "beads".to_owned(),
        threads: NonZeroUsize::MIN,
        states_per_s: 1e8,
    };
    Config { crews: vec![crew], factory: Arc::new(factory), ..config(None, Duration::ZERO) }
}

#[tokio::test]
async fn a_device_that_is_lost_at_any_time_is_an_event_and_costs_no_job() {
    let mut random = Random::series(17, 0);
    for _ in 0..4 {
        let place = TempDir::new().expect("a directory");
        let (service, address) = Service::start(&place.path().join("runs.db"), "127.0.0.1:0").await;
        let run = service.submit(10).await;
        let boards = usize::try_from(random.below(40)).expect("few");
        let config = on_a_device_that_fades(boards);
        let outcome = work(config, client(address), std::future::pending()).await;
        assert!(matches!(outcome, Err(WorkerError::Abandoned)), "{boards}: {outcome:?}");
        let events = service.coordinator.operator().events();
        let is_told = |event: &&Event| event.kind == EventKind::EngineFailed;
        let told: Vec<_> = events.borrow().iter().filter(is_told).map(|event| event.text.clone()).collect();
        let expected = ["failed and is tried once more", "is left alone from now on"]
            .map(|what| format!("test reports: abacus-0 (beads) {what}: fell off the bus."));
        assert_eq!(told, expected, "{boards}");
        let working = Working::start(&place.path().join("spool"), address);
        assert_eq!(service.total(&run).await, 724, "{boards}");
        working.stop().await;
        service.stop().await;
    }
}
