//! The coordinator's own counting takes no time from others: its threads have the lowest priority, and end with the run. They
//! are told by their name, so no other test runs in this process.

#[path = "coordinator/common.rs"]
mod common;

use std::fs;
use std::time::Duration;

use common::{FOR_EVER, House, Ledger, board};
use nqueens_coordinator::Policy;
use nqueens_coordinator::request::set_run_state;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_model::message::Lease;
use nqueens_model::operator::RunState;
use nqueens_proto::v1;
use tokio::time::{sleep, timeout};

/// The niceness of each thread that counts for the coordinator.
fn recounts() -> Vec<i32> {
    let threads = fs::read_dir("/proc/self/task").unwrap().map(|thread| thread.unwrap().path());
    // A thread may end while it is looked at.
    let stats = threads.filter_map(|thread| fs::read_to_string(thread.join("stat")).ok());
    let niceness = |stat: String| {
        let (name, numbers) = stat.split_once(") ")?;
        // The 19th field, and the third is the first of these.
        name.ends_with("(recount").then(|| numbers.split(' ').nth(16).unwrap().parse().unwrap())
    };
    stats.filter_map(niceness).collect()
}

async fn until(like: impl Fn(&[i32]) -> bool) {
    let looks = async {
        while !like(&recounts()) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(FOR_EVER, looks).await.unwrap_or_else(|_| panic!("{:?}", recounts()));
}

#[tokio::test]
async fn a_recount_is_modest_and_ends_with_its_run() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy { arbiter: true, ..Policy::default() }).await;
    let plan = Plan::with_states_per_job(board(20), PlanKind::Border, 100_000_000_000);
    let run = house.submit(plan, 1).await;
    let mut liar = house.worker(1).await;
    // Nobody has counted this: it would take a part of the job longer than any test may.
    let lease = liar.take(1).await.remove(0);
    let job = Lease::try_from(lease.clone()).unwrap().job.decode().unwrap();
    let parts = job.parts(lease.states).len();
    let invented = v1::JobResult {
        token: lease.token,
        count8: parts as u64,
        parts: [0, 0, 1, 0].repeat(parts),
        kernel: "avx2".to_owned(),
        states: 1,
        elapsed_us: 1,
        ..v1::JobResult::default()
    };
    assert_eq!(liar.report(&[invented]).await, [v1::Verdict::Accepted]);
    // Two threads: one waits for the other.
    until(|niceness| niceness == [19, 19]).await;
    let cancel = set_run_state(run.id, RunState::Cancelled);
    house.coordinator.operator().ask(cancel).await.unwrap();
    until(<[i32]>::is_empty).await;
    house.close().await;
    assert_eq!(ledger.ask("SELECT count(*) FROM recount").await, ["0"]);
}
