//! Jobs that are too large to be counted twice: their results tell what each part has, and the coordinator counts parts.

use crate::common::{House, Ledger, Worker, board, honest};
use nqueens_coordinator::{Coordinator, Policy, Timing};
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_model::id::RunId;
use nqueens_model::operator::{RunStatus, Submission};
use nqueens_proto::v1;
use sqlx::{Connection, Executor};

/// A run of small jobs that are taken for jobs of three parts, by a coordinator that counts parts itself.
async fn large_jobs(ledger: &Ledger) -> (House, RunId) {
    let house = House::open(&ledger.path, Policy::default()).await;
    let plan = Plan::with_states_per_job(board(10), PlanKind::Rows, 100_000);
    // As few second counts by others as there can be.
    let submission = Submission { request: [7; 16], plan, priority: 0, replicate_ppm: 1 };
    let run = house.coordinator.operator().submit_once(submission).await.unwrap();
    house.close().await;
    let mut connection = ledger.connect().await;
    connection.execute("UPDATE job SET states = 3000000000").await.unwrap();
    connection.close().await.unwrap();
    let policy = Policy { arbiter: true, ..Policy::default() };
    let pace = Timing { policy, ..Timing::default() };
    let coordinator = Coordinator::open(&ledger.path, pace, "test 1.0").await.unwrap();
    (House::on(coordinator).await, run.id)
}

/// Has a worker count all jobs but one, for which the run waits, and say what `tell` makes of the right results.
async fn report(worker: &mut Worker, tell: impl Fn(v1::JobResult) -> v1::JobResult) {
    let leases = worker.take(1_000).await;
    let results: Vec<_> = leases.iter().map(|lease| tell(honest(lease))).collect();
    assert!(results.iter().all(|result| result.parts.len() > 4), "each job has several parts");
    worker.report(&results[1..]).await;
}

async fn status(house: &House, run: RunId) -> RunStatus {
    let runs = house.coordinator.operator().runs().await.unwrap();
    runs.into_iter().find(|status| status.progress.run == run).unwrap()
}

#[tokio::test]
async fn a_lie_in_one_part_of_a_large_job_is_found() {
    let ledger = Ledger::new();
    let (house, run) = large_jobs(&ledger).await;
    let mut liar = house.worker(1).await;
    report(&mut liar, |mut right| {
        // One orbit more or less in the first part, and so in the sum.
        let was = right.parts[2];
        right.parts[2] = if was > 0 { was - 1 } else { 1 };
        right.count8 = right.count8 + right.parts[2] - was;
        right
    })
    .await;
    let all = status(&house, run).await.progress.jobs;
    house.wait_for(run, |run| run.sums.done < all - 1).await;
    assert_ne!(ledger.ask("SELECT count(*) FROM result WHERE verdict = 'voided'").await, ["0"]);
    assert_eq!(ledger.ask("SELECT name FROM machine WHERE distrusted IS NOT NULL").await, ["worker 1"]);
    house.end(&ledger).await;
}

#[tokio::test]
async fn honest_parts_are_confirmed_and_shown() {
    let ledger = Ledger::new();
    let (house, run) = large_jobs(&ledger).await;
    report(&mut house.worker(1).await, |right| right).await;
    let mut snapshots = house.coordinator.operator().watch();
    let found = loop {
        drop(snapshots.borrow_and_update());
        let found = status(&house, run).await;
        if found.progress.checks.recounted >= 3 {
            break found;
        }
        // Each of them is a transaction.
        snapshots.changed().await.unwrap();
    };
    assert_eq!((found.recounts.differing, found.progress.quarantined), (0, 0));
    assert!(found.recounts.elapsed_us > 0);
    let parts = ledger.ask("SELECT count(*) FROM recount WHERE part BETWEEN 0 AND 2 AND agrees").await;
    assert!(parts[0].parse::<u32>().unwrap() >= 3);
    let mut connection = ledger.connect().await;
    for statement in
        ["UPDATE recount SET agrees = 0", "DELETE FROM recount", "UPDATE result SET parts = NULL"]
    {
        let error = connection.execute(statement).await.unwrap_err().to_string();
        assert!(error.contains("append-only"), "{statement}: {error}");
    }
    connection.close().await.unwrap();
    house.end(&ledger).await;
}

#[tokio::test]
async fn results_that_do_not_tell_their_parts_are_counted_by_another_machine() {
    let ledger = Ledger::new();
    let (house, run) = large_jobs(&ledger).await;
    let mut silent = house.worker(1).await;
    let leases = silent.take(1_000).await;
    let [one, other] = [&leases[0], &leases[1]].map(honest);
    // None, or fewer than there are.
    let all = [other.count2, other.count4, other.count8, other.solutions];
    let untold = [
        v1::JobResult { parts: Vec::new(), ..one },
        v1::JobResult { parts: [[0; 4], all].concat(), ..other },
    ];
    silent.report(&untold).await;
    house.wait_for(run, |run| run.sums.checks.open == 2).await;
    house.end(&ledger).await;
}
