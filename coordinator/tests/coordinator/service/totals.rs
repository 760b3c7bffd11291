//! Runs to their end: the right total, or none.

use nqueens_coordinator::Policy;
use nqueens_kernel::known::published;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_model::operator::{Checked, RunState};
use nqueens_proto::v1::{self, Verdict};
use sqlx::{Connection, Executor};

use crate::common::{House, Ledger, board, honest, rows_8};

#[tokio::test]
async fn a_run_driven_to_its_end_has_the_published_total() {
    let (ledger, house) = House::fresh().await;
    let (rows, border) = (rows_8(), Plan::with_states_per_job(board(8), PlanKind::Border, 20));
    for plan in [rows, border] {
        let run = house.coordinator.operator().submit(plan, 0).await.unwrap();
        assert_eq!((run.jobs as usize, run.fingerprint), (plan.jobs().count(), plan.fingerprint()));
        assert_eq!(run.started_at, None, "it waits for a worker");
        house.worker(1).await.count_all().await;
        house.wait_for(run.id, |run| run.state == RunState::Done).await;
        let row = house.coordinator.operator().reader().run(run.id).await.unwrap();
        let outcome = row.outcome.unwrap();
        assert_eq!((outcome.total, outcome.checked), (92, Checked::Published));
        assert_eq!(outcome.totals, published(board(8)).unwrap().orbits);
        let (started, finished) = (row.started_at.unwrap(), row.finished_at.unwrap());
        assert!(row.created_at <= started && started <= finished);
        let status = house.coordinator.operator().run(run.id).await.unwrap();
        let times =
            [status.waited(), status.took()].map(|time| i64::try_from(time.unwrap().as_millis()).unwrap());
        assert_eq!(times, [started - row.created_at, finished - started]);
    }
    house.end(&ledger).await;
}

#[tokio::test]
async fn several_runs_and_workers_share_a_coordinator() {
    let (ledger, house) = House::fresh().await;
    let mut runs = Vec::new();
    // The small boards have no job at all.
    for (n, states) in [(7, 10), (9, 100), (10, 300), (1, 1), (3, 1)] {
        for kind in PlanKind::ALL {
            let plan = Plan::with_states_per_job(board(n), kind, states);
            runs.push(house.coordinator.operator().submit(plan, 0).await.unwrap());
        }
    }
    let mut workers = Vec::new();
    for number in 1..=6 {
        let mut worker = house.worker(number).await;
        workers.push(tokio::spawn(async move { worker.count_all().await }));
    }
    for worker in workers {
        worker.await.unwrap();
    }
    for run in &runs {
        house.wait_for(run.id, |run| run.state == RunState::Done).await;
        let row = house.coordinator.operator().reader().run(run.id).await.unwrap();
        assert_eq!(row.outcome.unwrap().total, published(run.plan.n()).unwrap().total, "{:?}", run.plan);
    }
    assert_eq!(house.coordinator.operator().reader().runs().await.unwrap().len(), runs.len());
    let verdicts = ledger.verdicts().await;
    let jobs: u32 = runs.iter().map(|run| run.jobs).sum();
    assert_eq!(verdicts.len(), jobs as usize, "nothing is counted twice where nothing goes wrong");
    house.end(&ledger).await;
}

#[tokio::test]
async fn a_plausible_lie_leaves_a_run_without_a_total() {
    type Lie = fn(&mut v1::JobResult);
    let lies: [(&str, Lie); 2] = [
        ("the total 84 differs from the published count 92", |result| result.count8 -= 1),
        (
            "COUNT2 = 0 and COUNT4 = 0 differ from the separately counted symmetric solutions, 0 and 1",
            |result| result.count4 -= 1,
        ),
    ];
    for (reason, lie) in lies {
        let ledger = Ledger::new();
        let house = House::open(&ledger.path, Policy::default()).await;
        let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
        let mut worker = house.worker(1).await;
        let mut results: Vec<_> = worker.take(8).await.iter().map(honest).collect();
        // The edge class has both kinds of orbits in one of its jobs.
        let victim = results.iter_mut().find(|result| result.count4 > 0 && result.count8 > 0).unwrap();
        lie(victim);
        assert_eq!(worker.report(&results).await, [Verdict::Accepted; 8]);
        house.wait_for(run.id, |run| run.state == RunState::Failed).await;
        house.close().await;

        let house = House::open(&ledger.path, Policy::default()).await;
        let row = house.coordinator.operator().reader().run(run.id).await.unwrap();
        assert_eq!((row.state, row.reason.as_deref(), row.outcome), (RunState::Failed, Some(reason), None));
        assert_eq!(house.worker(1).await.take(8).await, []);
        house.end(&ledger).await;
    }
}

#[tokio::test]
async fn a_run_is_added_up_from_what_the_disk_has_not_from_memory() {
    let (ledger, house) = House::fresh().await;
    let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    let mut worker = house.worker(1).await;
    let leases = worker.take(8).await;
    let results: Vec<_> = leases.iter().map(honest).collect();
    worker.report(&results[1..]).await;
    // Somebody exchanges a job for another: the sum fits, the plan does not.
    let job = leases.iter().find(|lease| lease.class == "corner").unwrap().token.unwrap().job;
    let mut connection = ledger.connect().await;
    let update =
        format!("UPDATE job SET bound1 = 1, class = 'edge', prefixes = x'0101' WHERE number = {job}");
    connection.execute(sqlx::AssertSqlSafe(update)).await.unwrap();
    connection.close().await.unwrap();
    worker.report(&results[..1]).await;
    house.wait_for(run.id, |run| run.state == RunState::Failed).await;
    let reason = house.coordinator.operator().reader().run(run.id).await.unwrap().reason.unwrap();
    assert_eq!(reason, "the 8 stored jobs are not the plan that the run began with");
    house.close().await;
}
