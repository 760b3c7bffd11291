//! Jobs that cost nothing to count, through the real wire and the real database: what the coordinator itself can do.
//!
//! `cargo bench -p nqueens-coordinator --bench noop [-- WORKERS [BATCH]]`

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use nqueens_coordinator::{Access, Coordinator, Door, Timing, listen};
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_proto::v1;
use nqueens_proto::v1::worker_service_client::WorkerServiceClient;
use tonic::transport::Endpoint;

/// Gives some 300,000 jobs.
const STATES_PER_JOB: u64 = 1_500_000;

/// Jobs that a worker asks for at once: all that one answer carries, as real workers do whose jobs are over in no time.
const BATCH: u32 = 1_000;

#[tokio::main]
async fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|text| text.parse().ok());
    let (workers, batch) = (numbers.next().unwrap_or(64), numbers.next().unwrap_or(BATCH));
    let folder = tempfile::tempdir_in(".").expect("a temporary folder");
    let path = folder.path().join("noop.db");
    let coordinator = Coordinator::open(&path, Timing::default(), "benchmark").await.expect("a new database");
    let plan =
        Plan::with_states_per_job(BoardSize::new(20).expect("a board"), PlanKind::Border, STATES_PER_JOB);
    let run = coordinator.operator().submit(plan, 0).await.expect("a plan");
    let (listener, address) = listen("127.0.0.1:0").await.expect("a port");
    let door = Door::open(listener, &Access::default());
    let server = coordinator.serve(door, None, std::future::pending());

    let accepted = Arc::new(AtomicU64::new(0));
    let begun = Instant::now();
    let clients: Vec<_> = (0..workers)
        .map(|number| tokio::spawn(work(format!("http://{address}"), number, batch, Arc::clone(&accepted))))
        .collect();
    for client in clients {
        client.await.expect("a worker");
    }
    let elapsed = begun.elapsed().as_secs_f64();
    let accepted = accepted.load(Ordering::Relaxed);
    assert_eq!(accepted, u64::from(run.jobs), "every job is accepted once");
    #[expect(clippy::cast_precision_loss, reason = "a speed")]
    let speed = accepted as f64 / elapsed;
    println!(
        "{workers} workers, {batch} jobs a call, {accepted} results accepted in {elapsed:.2} s: {speed:.0} a second"
    );
    server.abort();
    coordinator.close().await;

    let begun = Instant::now();
    let coordinator = Coordinator::open(&path, Timing::default(), "benchmark").await.expect("the database");
    println!("opened again with all results: {:.2} s", begun.elapsed().as_secs_f64());
    coordinator.close().await;
}

/// Leases jobs and reports them at once, until there are none.
async fn work(url: String, number: u32, batch: u32, accepted: Arc<AtomicU64>) {
    let channel = Endpoint::from_shared(url).expect("a URL").tcp_nodelay(true).connect().await;
    let mut client = WorkerServiceClient::new(channel.expect("the coordinator"));
    let registration = v1::RegisterRequest {
        protocol_version: nqueens_proto::PROTOCOL_VERSION,
        plans: nqueens_proto::PLANS.0.to_vec(),
        instance: [[1; 12].to_vec(), number.to_le_bytes().to_vec()].concat(),
        name: format!("noop {number}"),
        build: "benchmark".to_owned(),
        kernels: vec!["reference".to_owned()],
        threads: 1,
        capability: None,
    };
    let session = client.register(registration).await.expect("a registration").into_inner();
    let mut results = Vec::new();
    loop {
        let wanted = v1::SyncRequest {
            worker_id: session.worker_id,
            secret: session.secret.clone(),
            results: std::mem::take(&mut results),
            wanted_states: u64::MAX,
            wanted_jobs: batch,
            ..Default::default()
        };
        let answer = client.sync(wanted).await.expect("an answer").into_inner();
        let news = answer.acks.iter().filter(|ack| ack.verdict() == v1::Verdict::Accepted).count();
        accepted.fetch_add(news as u64, Ordering::Relaxed);
        let counted = |lease: v1::Lease| v1::JobResult {
            token: lease.token,
            kernel: "reference".to_owned(),
            states: 1,
            elapsed_us: 1,
            ..v1::JobResult::default()
        };
        results = answer.leases.into_iter().map(counted).collect();
        if results.is_empty() {
            return;
        }
    }
}
