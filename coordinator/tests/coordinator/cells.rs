//! Given queens and blocked cells on a cluster: the right total, or none.

use std::future::pending;

use crate::common::{House, Ledger, honest};
use nqueens_coordinator::{Error, Policy, Reader};
use nqueens_kernel::cells::Cells;
use nqueens_kernel::plan::Plan;
use nqueens_kernel::random::Random;
use nqueens_model::operator::{Checked, Outcome, RunState, Submission};
use nqueens_proto::v1;

/// A board of up to N = 9 with up to two given queens and some blocked cells.
fn drawn(random: &mut Random) -> Cells {
    let mut below = |end: usize| usize::try_from(random.bits() % end as u64).unwrap();
    let n = 1 + below(9);
    let mut signs = vec!['.'; n * n];
    for _ in 0..n {
        signs[below(n * n)] = '#';
    }
    for _ in 0..below(3) {
        signs[below(n * n)] = 'Q';
    }
    let rows: Vec<String> = signs.chunks(n).map(|row| row.iter().collect()).collect();
    rows.join("\n").parse().unwrap()
}

async fn outcome(house: &House, plan: Plan) -> Outcome {
    let run = house.coordinator.operator().submit(plan, 0).await.unwrap();
    assert_eq!((run.plan, run.fingerprint), (plan, plan.fingerprint()));
    let mut worker = house.worker(1).await;
    let counting = async {
        worker.count_all().await;
        pending::<()>().await;
    };
    // A worker that finds nothing more waits for its next heartbeat, and the run is done before.
    tokio::select! {
        _ = house.wait_for(run.id, |run| run.state == RunState::Done) => {}
        () = counting => {}
    }
    house.coordinator.operator().reader().run(run.id).await.unwrap().outcome.unwrap()
}

#[tokio::test]
async fn random_boards_have_as_many_solutions_as_are_listed() {
    let (ledger, mut random) = (Ledger::new(), Random::new(7));
    let house = House::open(&ledger.path, Policy::default()).await;
    let mut found = 0;
    for states in [u64::MAX, 100, 1].into_iter().cycle().take(24) {
        let cells = drawn(&mut random);
        let plan = Plan::of_cells_with(cells, states);
        let Outcome { total, checked, grounds, .. } = outcome(&house, plan).await;
        let listed = cells.solutions().count() as u128;
        assert_eq!((total, checked), (listed, Checked::None), "{cells}");
        assert!(grounds.unwrap().estimate.holds(total), "{cells}");
        found += total;
    }
    assert!(found > 20, "not all of them are hopeless: {found}");
    house.end(&ledger).await;
    let reader = Reader::open(&ledger.path).await.unwrap();
    reader.examine().await.unwrap();
    reader.close().await;
}

fn submission(cells: &str) -> Submission {
    let plan = Plan::of_cells_with(cells.parse().unwrap(), 10);
    Submission { request: [3; 16], plan, priority: 0, replicate_ppm: 0 }
}

#[tokio::test]
async fn a_run_goes_on_where_its_coordinator_stopped() {
    let ledger = Ledger::new();
    let submission =
        submission("........\n.#......\n........\n........\n......Q.\n........\n........\n........");
    let house = House::open(&ledger.path, Policy::default()).await;
    let run = house.coordinator.operator().submit_once(submission).await.unwrap();
    let mut worker = house.worker(1).await;
    let leases = worker.take(4).await;
    let results: Vec<_> = leases.iter().take(3).map(honest).collect();
    assert_eq!(worker.report(&results).await, [v1::Verdict::Accepted; 3]);
    house.close().await;
    let house = House::open(&ledger.path, Policy { grace_ms: 0, ..Policy::default() }).await;
    let again = house.coordinator.operator().submit_once(submission).await.unwrap();
    assert_eq!((again.id, again.plan, house.progress(run.id).sums.done), (run.id, run.plan, 3));
    house.wait_for(run.id, |run| run.sums.leased == 0).await;
    house.worker(2).await.count_all().await;
    house.wait_for(run.id, |run| run.state == RunState::Done).await;
    let row = house.coordinator.operator().reader().run(run.id).await.unwrap();
    let listed = run.plan.cells().unwrap().solutions().count() as u128;
    assert_eq!(row.outcome.unwrap().total, listed);
    house.end(&ledger).await;
}

#[tokio::test]
async fn another_board_is_another_submission() {
    let (_ledger, house) = House::fresh().await;
    let operator = house.coordinator.operator();
    operator.submit_once(submission("....\n..#.\n....\n....")).await.unwrap();
    let other = operator.submit_once(submission("....\n.#..\n....\n....")).await.unwrap_err();
    assert!(matches!(*other, Error::OtherSubmission(_)), "{other}");
    house.close().await;
}
