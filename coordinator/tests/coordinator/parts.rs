//! Jobs that are too large to be counted twice: their results tell what each part has, and the coordinator counts parts.

use crate::common::{ALL, House, Ledger, Worker, access_of, board, falsified, honest, registration, token};
use nqueens_coordinator::{Policy, RunRow, Timing};
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_model::id::RunId;
use nqueens_model::operator::{RunState, RunStatus};
use nqueens_proto::v1;
use sqlx::{Connection, Executor};

/// A run of small jobs that are taken for jobs of three parts, by a coordinator that counts parts itself.
async fn large_jobs(ledger: &Ledger) -> (House, RunId) {
    let run = store_large_jobs(ledger).await;
    (House::open(&ledger.path, Policy { arbiter: true, ..Policy::default() }).await, run.id)
}

async fn store_large_jobs(ledger: &Ledger) -> RunRow {
    let house = House::open(&ledger.path, Policy::default()).await;
    let plan = Plan::with_states_per_job(board(10), PlanKind::Rows, 100_000);
    // As few second counts by others as there can be.
    let run = house.submit(plan, 1).await;
    house.close().await;
    let mut connection = ledger.connect().await;
    connection.execute("UPDATE job SET states = 3000000000").await.unwrap();
    connection.close().await.unwrap();
    run
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

/// Whoever left parts out was not recounted: an accomplice confirmed the lie, and others were recounted in its place.
#[tokio::test]
async fn owners_who_leave_parts_out_are_recounted_all_the_same() {
    let ledger = Ledger::new();
    let RunRow { id, jobs, .. } = store_large_jobs(&ledger).await;
    // As many recounts as there are jobs; the others have enough parts for that.
    let policy =
        Policy { beat_ms: 100, arbiter: true, published: false, recounts_min: jobs, ..Policy::default() };
    let pace = Timing { policy, checks_min: 1, ..Timing::default() };
    let house = House::timed(&ledger.path, pace, &access_of(&["lab", "club"])).await;
    let mut owners = Vec::new();
    for (number, name) in [(1, "lab"), (2, "club")] {
        owners.push(house.register_by(Some(&token(name)), registration(number)).await.unwrap());
    }
    // The same lie of both, small enough for the estimate of the total. Some tell parts that are not the job's.
    let tell = |lease: &v1::Lease| match lease.token.unwrap().job {
        0 => v1::JobResult { parts: Vec::new(), ..falsified(&honest(lease)) },
        1 => {
            let v1::JobResult { count2, count4, count8, solutions, .. } = honest(lease);
            v1::JobResult { parts: [[0; 4], [count2, count4, count8, solutions]].concat(), ..honest(lease) }
        }
        _ => honest(lease),
    };
    while house.progress(id).state == RunState::Active {
        for owner in &mut owners {
            let sync =
                v1::SyncRequest { wanted_states: ALL, wanted_jobs: 1_000, ..v1::SyncRequest::default() };
            // Once it is found out it is let in no more.
            let Ok(answer) = owner.sync(sync).await else { continue };
            let results = answer.leases.iter().map(tell).collect();
            let _ = owner.sync(v1::SyncRequest { results, ..v1::SyncRequest::default() }).await;
        }
    }
    let found = status(&house, id).await;
    assert_eq!(found.outcome.unwrap().total, 724, "{}", found.standing().unwrap());
    assert_eq!(found.recounts.differing, 1);
    assert_eq!(ledger.ask("SELECT credential FROM machine WHERE distrusted IS NOT NULL").await.len(), 1);
    assert_eq!(ledger.ask("SELECT count(*) FROM recount WHERE job = 1 AND part IS NULL").await, ["1"]);
    house.end(&ledger).await;
}
