//! Plans and stores a run of about a million jobs, opens it again, and prints what that cost.
//!
//! `cargo bench -p nqueens-coordinator --bench million`

use std::time::Instant;

use nqueens_coordinator::{Coordinator, Pace};
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::plan::{Plan, PlanKind};

/// Gives 1,000,000 jobs, near enough, at N = 22.
const STATES_PER_JOB: u64 = 70_000_000;

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
    let coordinator = Coordinator::open(&path, Pace::default(), "benchmark").await.expect("a new database");
    let run = coordinator.operator().submit(plan, 0).await.expect("a plan");
    println!("planned and stored:   {:6.2} s, {} jobs", begun.elapsed().as_secs_f64(), run.jobs);
    coordinator.close().await;
    println!("peak memory so far:   {:6} MB", peak_memory_mb());

    let bytes = path.metadata().expect("the database").len();
    println!("database:             {:6} MB, {} bytes a job", bytes / 1_000_000, bytes / u64::from(run.jobs));

    let begun = Instant::now();
    let coordinator = Coordinator::open(&path, Pace::default(), "benchmark").await.expect("the database");
    println!("opened again:         {:6.2} s", begun.elapsed().as_secs_f64());
    coordinator.close().await;
    println!("peak memory:          {:6} MB", peak_memory_mb());
}

fn peak_memory_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) / 1_000
}
