//! Answers stay well below the largest message, whatever jobs take.

use std::collections::BTreeSet;

use crate::common::{ALL, House, Ledger, board, rows_8};
use nqueens_coordinator::Policy;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_proto::{MESSAGE_BYTES_MAX, v1};
use sqlx::{AssertSqlSafe, Connection, Executor};

/// A ledger with a run whose jobs' prefixes take so many bytes each; they mean nothing.
async fn bulky(plan: Plan, bytes: usize) -> (Ledger, usize) {
    let (ledger, house) = House::fresh().await;
    let run = house.coordinator.operator().submit(plan, 0).await.unwrap();
    house.close().await;
    let mut connection = ledger.connect().await;
    let swell = format!("UPDATE job SET prefixes = zeroblob({bytes})");
    connection.execute(AssertSqlSafe(swell)).await.unwrap();
    connection.close().await.unwrap();
    (ledger, run.jobs as usize)
}

#[tokio::test]
async fn leases_that_do_not_fit_wait_for_the_next_answer() {
    let bytes = 200_000;
    let plan = Plan::with_states_per_job(board(12), PlanKind::Rows, 2_000);
    let (ledger, jobs) = bulky(plan, bytes).await;
    assert!(jobs * bytes > 2 * MESSAGE_BYTES_MAX, "{jobs} jobs");
    let house = House::open(&ledger.path, Policy::default()).await;
    let mut worker = house.worker(1).await;
    let mut held = Vec::new();
    let mut answers = Vec::new();
    while held.len() < jobs {
        let sync = v1::SyncRequest {
            held: held.clone(),
            wanted_states: ALL,
            wanted_jobs: 1_000,
            ..v1::SyncRequest::default()
        };
        let answer = worker.sync(sync).await.unwrap();
        assert_eq!(answer.revoked, []);
        held.extend(answer.leases.iter().map(|lease| v1::HeldLease { token: lease.token, states: 1 }));
        answers.push(answer.leases.iter().map(|lease| lease.prefixes.len()).sum::<usize>());
    }
    answers.pop();
    let room = MESSAGE_BYTES_MAX / 4..=MESSAGE_BYTES_MAX / 2;
    assert!(answers.iter().all(|bytes| room.contains(bytes)), "each takes what fits: {answers:?}");
    let numbers: BTreeSet<_> = held.iter().filter_map(|held| Some(held.token?.job)).collect();
    assert_eq!(numbers.len(), jobs, "each job once");
    assert_eq!(ledger.ask("SELECT count(*) FROM job WHERE failures + lapses > 0").await, ["0"], "at no cost");
    house.end(&ledger).await;
}

#[tokio::test]
async fn a_job_that_is_larger_than_it_should_be_goes_alone() {
    let (ledger, _) = bulky(rows_8(), MESSAGE_BYTES_MAX / 2 + 1).await;
    let house = House::open(&ledger.path, Policy::default()).await;
    let mut worker = house.worker(1).await;
    let sync = v1::SyncRequest { wanted_states: ALL, wanted_jobs: 3, ..v1::SyncRequest::default() };
    assert_eq!(worker.sync(sync).await.unwrap().leases.len(), 1);
    house.end(&ledger).await;
}
