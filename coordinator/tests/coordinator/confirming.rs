//! Totals that no published count confirms: what the coordinator holds them against, and what it says of them.

use crate::common::{House, Ledger, Worker, access_of, honest, registration, rows_8, token};
use nqueens_coordinator::{Policy, Timing};
use nqueens_model::operator::{Grounds, Missing, RunState, RunStatus, Standing};
use nqueens_proto::v1;

/// Of a run with eight jobs.
const CHECKS_MIN: u32 = 5;
const RECOUNTS_MIN: u32 = 2;

/// Has workers of these owners count a run of eight jobs, and tell `tell` of the right results: so much of it twice. What the
/// coordinator says of its total, to which it knows no published count.
async fn count(
    ledger: &Ledger,
    owners: &[&str],
    (replicate_ppm, arbiter): (u32, bool),
    tell: impl Fn(v1::JobResult) -> v1::JobResult,
) -> RunStatus {
    let policy = Policy { arbiter, recounts_min: RECOUNTS_MIN, published: false, ..Policy::default() };
    let pace = Timing { policy, checks_min: CHECKS_MIN, ..Timing::default() };
    let house = House::timed(&ledger.path, pace, &access_of(&["lab", "club", "school"])).await;
    let run = house.submit(rows_8(), replicate_ppm).await;
    let mut workers: Vec<Worker> = Vec::new();
    for (number, owner) in (1..).zip(owners) {
        workers.push(house.register_by(Some(&token(owner)), registration(number)).await.unwrap());
    }
    while house.progress(run.id).sums.done < 8 || house.progress(run.id).sums.checks.open > 0 {
        for worker in &mut workers {
            let leases = worker.take_once(2).await;
            worker.report(&leases.iter().map(|lease| tell(honest(lease))).collect::<Vec<_>>()).await;
        }
    }
    house.wait_for(run.id, |run| run.state == RunState::Done).await;
    let live = house.coordinator.operator().run(run.id).await.unwrap();
    house.end(ledger).await;

    // The next life says the same of it, and so does whoever reads the file.
    let house = House::open(&ledger.path, nqueens_coordinator::Policy::default()).await;
    let later = house.coordinator.operator().run(run.id).await.unwrap();
    assert_eq!(later.outcome, live.outcome);
    assert_eq!(later.standing(), live.standing());
    house.close().await;
    live
}

/// Three names made up all 86 jobs of N = 28: the run was done, and its file in order.
#[tokio::test]
async fn a_total_made_up_by_all_is_not_confirmed() {
    let ledger = Ledger::new();
    let nothing = |right| v1::JobResult { count8: 0, ..right };
    let run = count(&ledger, &["lab", "club", "school"], (1_000_000, false), nothing).await;
    let outcome = run.outcome.unwrap();
    assert_eq!(outcome.total, 4, "the symmetric ones alone, as symmetric searches find them");
    assert_eq!(run.progress.checks.confirmed, 8, "they confirm each other");
    let estimate = outcome.grounds.unwrap().estimate;
    assert!(estimate.holds(92));
    let recounts = Missing::Recounts { made: 0, wanted: RECOUNTS_MIN };
    assert_eq!(run.standing(), Some(Standing::Counted(vec![Missing::Agreement(estimate), recounts])));
    let kept = ledger.ask("SELECT outcome -> '$.estimate' FROM run").await.concat();
    assert_eq!(serde_json::from_str::<Grounds>(&kept).unwrap(), outcome.grounds.unwrap());
}

#[tokio::test]
async fn a_total_that_two_credentials_checked_is_confirmed() {
    let ledger = Ledger::new();
    let run = count(&ledger, &["lab", "club"], (1_000_000, true), |right| right).await;
    assert_eq!(run.outcome.unwrap().total, 92);
    let standing = run.standing().unwrap();
    assert!(
        matches!(standing, Standing::Confirmed { estimate, recounts, .. } if estimate.holds(92) && recounts >= 2),
        "{standing:?}"
    );
}

/// Machines of one owner find accidents, not lies.
#[tokio::test]
async fn a_total_that_one_credential_checked_is_counted_only() {
    let ledger = Ledger::new();
    let run = count(&ledger, &["lab", "lab"], (1_000_000, false), |right| right).await;
    assert_eq!(run.outcome.unwrap().total, 92);
    assert_eq!(run.progress.checks.agreed, 8);
    let checks = Missing::Checks { made: 0, wanted: CHECKS_MIN };
    let recounts = Missing::Recounts { made: 0, wanted: RECOUNTS_MIN };
    assert_eq!(run.standing(), Some(Standing::Counted(vec![checks, recounts])));
}

#[tokio::test]
async fn a_total_without_checks_is_counted_only() {
    let ledger = Ledger::new();
    let run = count(&ledger, &["lab"], (0, false), |right| right).await;
    let standing = run.standing().unwrap();
    assert!(!standing.is_confirmed());
    assert!(
        standing
            .to_string()
            .starts_with("counted, not confirmed: 0 of 5 second counts under another credential")
    );
}
