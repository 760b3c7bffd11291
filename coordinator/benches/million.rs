//! Plans and stores a run of a million jobs, opens it again, serves a thousand workers, and prints what that cost.
//!
//! `cargo bench -p nqueens-coordinator --bench million`

use std::time::Instant;

use nqueens_coordinator::{Access, Coordinator, Door, Timing, listen};
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_proto::v1;
use nqueens_proto::v1::worker_service_client::WorkerServiceClient;
use tonic::transport::{Channel, Endpoint};

/// Gives 1,000,000 jobs, near enough, at N = 22.
const STATES_PER_JOB: u64 = 58_000_000;

/// Workers connected at once.
const WORKERS: u32 = 1_000;

#[tokio::main]
async fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("million.db");
    let plan =
        Plan::with_states_per_job(BoardSize::new(22).expect("a board"), PlanKind::Border, STATES_PER_JOB);

    let begun = Instant::now();
    let jobs = plan.jobs().count();
    println!("planned alone:        {:6.2} s, {jobs} jobs", begun.elapsed().as_secs_f64());

    let begun = Instant::now();
    let coordinator = Coordinator::open(&path, Timing::default(), "benchmark").await.expect("a new database");
    let run = coordinator.operator().submit(plan, 0).await.expect("a plan");
    println!("planned and stored:   {:6.2} s, {} jobs", begun.elapsed().as_secs_f64(), run.jobs);
    coordinator.close().await;
    println!("peak memory so far:   {:6} MB", peak_memory_mb());

    let bytes = path.metadata().expect("the database").len();
    println!("database:             {:6} MB, {} bytes a job", bytes / 1_000_000, bytes / u64::from(run.jobs));

    let begun = Instant::now();
    let coordinator = Coordinator::open(&path, Timing::default(), "benchmark").await.expect("the database");
    println!("opened again:         {:6.2} s", begun.elapsed().as_secs_f64());
    let (listener, address) = listen("127.0.0.1:0").await.expect("a port");
    let door = Door::open(listener, &Access::default());
    let server = coordinator.serve(door, None, std::future::pending());
    println!("serving again:        {:6.2} s", begun.elapsed().as_secs_f64());

    let mut workers = Vec::new();
    for number in 0..WORKERS {
        workers.push(connect(format!("http://{address}"), number).await);
    }
    println!("{WORKERS} workers, {} leases", workers.len() * LEASES as usize);
    println!("peak memory:          {:6} MB, the workers' ends of the wire included", peak_memory_mb());
    server.abort();
    coordinator.close().await;
}

/// Jobs that each worker holds.
const LEASES: u32 = 20;

/// Connects a worker, which takes some leases.
async fn connect(url: String, number: u32) -> WorkerServiceClient<Channel> {
    let channel = Endpoint::from_shared(url).expect("a URL").connect().await.expect("the coordinator");
    let mut client = WorkerServiceClient::new(channel);
    let registration = v1::RegisterRequest {
        protocol_version: nqueens_proto::PROTOCOL_VERSION,
        plans: nqueens_proto::PLANS.0.to_vec(),
        instance: [[1; 12].to_vec(), number.to_be_bytes().to_vec()].concat(),
        name: format!("worker {number}"),
        build: "benchmark".to_owned(),
        kernels: vec!["reference".to_owned()],
        threads: 16,
        capability: None,
    };
    let v1::RegisterResponse { worker_id, secret } =
        client.register(registration).await.expect("a registration").into_inner();
    let wanted = v1::SyncRequest {
        worker_id,
        secret,
        wanted_states: u64::MAX,
        wanted_jobs: LEASES,
        ..Default::default()
    };
    let answer = client.sync(wanted).await.expect("an answer").into_inner();
    assert_eq!(answer.leases.len(), LEASES as usize, "there is work for everybody");
    client
}

fn peak_memory_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) / 1_000
}
