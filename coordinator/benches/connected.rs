//! What workers cost that are connected and count: a coordinator in a process of its own, and as many workers as asked for
//! that hold jobs and sync every 30 seconds. Prints the coordinator's memory and its share of a core.
//!
//! `cargo bench -p nqueens-coordinator --bench connected [-- WORKERS]`

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nqueens_coordinator::{Access, Coordinator, Door, Timing, listen};
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_proto::v1;
use nqueens_proto::v1::worker_service_client::WorkerServiceClient;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::time::{Instant, sleep, sleep_until};
use tonic::transport::{Channel, Endpoint};

/// Names the database, for the process that serves it.
const DATABASE: &str = "NQUEENS_BENCH_DATABASE";

/// Gives some 450,000 jobs.
const STATES_PER_JOB: u64 = 1_500_000;

/// Jobs that each worker holds.
const LEASES: u32 = 20;

/// Between two syncs of a worker.
const BEAT: Duration = Duration::from_secs(30);

/// Every worker syncs so often while the coordinator is watched.
const BEATS: u32 = 3;

/// Connections that are made at once.
const AT_ONCE: u32 = 100;

#[tokio::main]
async fn main() {
    let open_files = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: open_files.maximum, ..open_files }).expect("allowed");
    if let Some(path) = std::env::var_os(DATABASE) {
        return serve(Path::new(&path)).await;
    }
    let workers = std::env::args().skip(1).find_map(|text| text.parse().ok()).unwrap_or(10_000);
    let folder = tempfile::tempdir_in(".").expect("a temporary folder");
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command.env(DATABASE, folder.path().join("connected.db")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut coordinator = command.spawn().expect("a process");
    let mut url = String::new();
    let out = coordinator.stdout.take().expect("piped");
    BufReader::new(out).read_line(&mut url).expect("its address");
    let id = coordinator.id();
    println!("alone:        {:5} MB", resident_mb(id));

    let mut all = Vec::new();
    let begun = Instant::now();
    for first in (0..workers).step_by(AT_ONCE as usize) {
        let numbers = first..workers.min(first + AT_ONCE);
        let some: Vec<_> =
            numbers.map(|number| tokio::spawn(connect(url.trim().to_owned(), number))).collect();
        for worker in some {
            all.push(worker.await.expect("a worker"));
        }
    }
    let (mb, s) = (resident_mb(id), begun.elapsed().as_secs_f64());
    println!("{workers} workers:  {mb:5} MB, connected with {LEASES} leases each in {s:.1} s");

    let (before, begun) = (cpu_s(id), Instant::now());
    let beats = all.into_iter().enumerate().map(|(place, worker)| {
        let offset = BEAT * u32::try_from(place).expect("few") / workers;
        tokio::spawn(beat(worker, begun + offset))
    });
    for beating in beats.collect::<Vec<_>>() {
        beating.await.expect("a worker");
    }
    let (cpu, elapsed) = (cpu_s(id) - before, begun.elapsed().as_secs_f64());
    let syncs = f64::from(workers * BEATS);
    println!(
        "a sync every {} s: {:5} MB, {:.1} % of a core, {:.0} us a sync",
        BEAT.as_secs(),
        resident_mb(id),
        100.0 * cpu / elapsed,
        1e6 * cpu / syncs
    );
    end(coordinator);
}

/// A coordinator with a run, until nobody holds the other end of its standard input any more.
async fn serve(path: &Path) {
    let coordinator = Coordinator::open(path, Timing::default(), "benchmark").await.expect("a new database");
    let n = BoardSize::new(20).expect("a board");
    let plan = Plan::with_states_per_job(n, PlanKind::Border, STATES_PER_JOB);
    coordinator.operator().submit(plan, 0).await.expect("a plan");
    let (listener, address) = listen("127.0.0.1:0").await.expect("a port");
    let door = Door::open(listener, &Access::default());
    let server = coordinator.serve(door, None, std::future::pending());
    println!("http://{address}");
    let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
    ended.await.expect("reads").expect("reads");
    server.abort();
    coordinator.close().await;
}

fn end(mut coordinator: Child) {
    drop(coordinator.stdin.take());
    coordinator.wait().expect("it ends");
}

struct Worker {
    client: WorkerServiceClient<Channel>,
    sync: v1::SyncRequest,
}

async fn connect(url: String, number: u32) -> Worker {
    let channel = Endpoint::from_shared(url).expect("a URL").tcp_nodelay(true).connect().await;
    let mut client = WorkerServiceClient::new(channel.expect("the coordinator"));
    let instance = [[1; 12].to_vec(), number.to_be_bytes().to_vec()].concat();
    let registration = v1::RegisterRequest {
        protocol_version: nqueens_proto::PROTOCOL_VERSION,
        plans: nqueens_proto::PLANS.0.to_vec(),
        instance,
        name: format!("worker {number}"),
        build: "benchmark".to_owned(),
        kernels: vec!["reference".to_owned()],
        threads: 16,
        capability: None,
    };
    let v1::RegisterResponse { worker_id, secret } =
        client.register(registration).await.expect("a registration").into_inner();
    let sync = v1::SyncRequest { worker_id, secret, ..Default::default() };
    let wanted = v1::SyncRequest { wanted_states: u64::MAX, wanted_jobs: LEASES, ..sync.clone() };
    let leases = client.sync(wanted).await.expect("an answer").into_inner().leases;
    let held = leases.into_iter().map(|lease| v1::HeldLease { token: lease.token, states: 0 }).collect();
    Worker { client, sync: v1::SyncRequest { held, ..sync } }
}

async fn beat(mut worker: Worker, first: Instant) {
    for beat in 0..BEATS {
        sleep_until(first + BEAT * beat).await;
        worker.sync.held.iter_mut().for_each(|held| held.states += 1);
        let answer = worker.client.sync(worker.sync.clone()).await.expect("an answer").into_inner();
        assert!(answer.revoked.is_empty(), "what a worker names stays its own");
    }
    // Those that are done stay connected as long as the others.
    sleep(BEAT.saturating_sub(Duration::from_secs(1))).await;
}

fn resident_mb(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it lives");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1_000
}

/// CPU time of a process so far: fields 14 and 15 of its `stat`, in hundredths of a second.
fn cpu_s(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("it lives");
    let (_, fields) = stat.rsplit_once(')').expect("its name stands in brackets");
    let ticks =
        fields.split_whitespace().skip(11).take(2).map(|field| field.parse::<f64>().expect("a number"));
    ticks.sum::<f64>() / 100.0
}
