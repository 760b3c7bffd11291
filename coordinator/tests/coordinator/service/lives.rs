//! Restarts of a coordinator: what survives its end, a failed transaction, a second process.

use nqueens_coordinator::{Coordinator, Error, Events, Policy, Timing};
use nqueens_model::operator::{EventKind, RunState};
use nqueens_proto::v1::{self, Verdict};
use sqlx::{AssertSqlSafe, Connection, Executor};
use tonic::Code;

use super::{ids, nothing, returned};
use crate::common::{House, Ledger, falsified, honest, rows_8};

#[tokio::test]
async fn everything_acknowledged_outlives_the_coordinator() {
    let (ledger, house) = House::fresh().await;
    let run = house.submit(rows_8(), 1_000_000).await;
    let (mut one, mut two) = (house.worker(1).await, house.worker(2).await);
    let leases = one.take(5).await;
    let results: Vec<_> = leases.iter().map(honest).collect();
    one.report(&results[..3]).await;
    let second = two.take(1).await;
    assert_eq!(two.report(&[falsified(&honest(&second[0]))]).await, [v1::Verdict::Conflict]);
    one.sync(v1::SyncRequest { returned: vec![returned(&leases[3], "no luck")], ..nothing() }).await.unwrap();
    let (before, progress) = (ledger.everything().await, house.progress(run.id));
    house.close().await;
    assert_eq!(ledger.everything().await, before, "closing stores nothing that was not stored");
    let house = House::open(&ledger.path, Policy::default()).await;
    assert_eq!(ledger.everything().await, before, "opening changes nothing");
    let after = house.progress(run.id);
    assert_eq!((after.state, after.sums), (progress.state, progress.sums));
    let sums = after.sums;
    assert_eq!((sums.done, sums.leased, sums.quarantined), (2, 1, 1));
    house.end(&ledger).await;
}

#[tokio::test]
async fn events_outlive_the_coordinator() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy { lease_ms: 250, ..Policy::default() }).await;
    let operator = house.coordinator.operator().clone();
    let run = operator.submit(rows_8(), 0).await.unwrap();
    house.worker(1).await.take_once(2).await;
    let lost = |events: &Events| events.iter().any(|event| event.kind == EventKind::WorkerLost);
    let before = operator.events().wait_for(lost).await.unwrap().clone();
    house.close().await;
    assert!(before.iter().zip(1..).all(|(event, number)| event.number == number), "{before:?}");

    let house = House::open(&ledger.path, Policy::default()).await;
    let operator = house.coordinator.operator().clone();
    assert_eq!(operator.events().borrow()[..before.len()], before[..]);
    assert!(operator.history(run.id).await.unwrap().is_empty(), "no result came in");
    house.worker(2).await.count_all().await;
    let done = |events: &Events| events.iter().any(|event| event.kind == EventKind::RunDone);
    let after = operator.events().wait_for(done).await.unwrap().clone();
    assert_eq!(after.last().unwrap().number, before.len() as u64 + 1, "numbers go on");
    assert_eq!(operator.reader().events().await.unwrap(), *after);
    let last = *operator.reader().history(run.id).await.unwrap().last().unwrap();
    assert!((last.share_done - 1.0).abs() < 1e-9 && last.states_per_s > 0.0, "{last:?}");
    house.end(&ledger).await;
}

#[tokio::test]
async fn workers_go_on_over_a_restart_with_the_leases_they_have() {
    let (ledger, house) = House::fresh().await;
    let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    let mut worker = house.worker(1).await;
    let leases = worker.take(6).await;
    let results: Vec<_> = leases.iter().map(honest).collect();
    house.close().await;

    // Second life: it knows the worker, and the leases are good.
    let house = House::open(&ledger.path, Policy::default()).await;
    let mut worker = house.known_worker(&worker).await;
    assert_eq!(worker.hold(&leases).await, (vec![], vec![]));
    assert_eq!(worker.report(&results[..2]).await, [Verdict::Accepted; 2]);
    let others = house.worker(2).await.take(8).await;
    assert_eq!(others.len(), 2, "what is leased is not handed out again");
    assert!(others.iter().all(|lease| lease.token.unwrap().ticket != leases[0].token.unwrap().ticket));
    house.close().await;

    // Third life, without grace: the leases end, the work under them is welcome all the same.
    let house = House::open(&ledger.path, Policy { grace_ms: 0, ..Policy::default() }).await;
    house.wait_for(run.id, |run| run.sums.leased == 0).await;
    let mut worker = house.known_worker(&worker).await;
    assert_eq!(worker.report(&results[..1]).await, [Verdict::Accepted], "acknowledged in an earlier life");
    assert_eq!(worker.report(&results[2..4]).await, [Verdict::Accepted; 2]);
    let held = worker.hold(&leases[4..]).await;
    assert_eq!(
        held.0.into_iter().map(Some).collect::<Vec<_>>(),
        ids(&leases[4..]),
        "an old life's, and over"
    );
    house.worker(2).await.count_all().await;
    house.wait_for(run.id, |run| run.state == RunState::Done).await;
    assert_eq!(worker.report(&results[4..]).await, [Verdict::Duplicate; 2]);
    assert_eq!(ledger.ask("SELECT total FROM run").await, ["92"]);
    assert_eq!(ledger.ask("SELECT count(*) FROM coordinator").await, ["3"]);
    house.end(&ledger).await;
}

#[tokio::test]
async fn a_transaction_that_fails_leaves_nothing_and_the_next_goes_through() {
    // ROLLBACK is what SQLite does on a full disk: it ends the transaction under the writer's feet.
    for way in ["ABORT", "ROLLBACK", "FAIL"] {
        let ledger = Ledger::new();
        let house = House::open(&ledger.path, Policy::default()).await;
        let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
        let mut worker = house.worker(1).await;
        let leases = worker.take(2).await;
        let results: Vec<_> = leases.iter().map(honest).collect();
        let before = ledger.everything().await;
        let mut connection = ledger.connect().await;
        let trap = format!(
            "CREATE TRIGGER trap BEFORE INSERT ON result BEGIN SELECT RAISE({way}, 'no luck today'); END"
        );
        connection.execute(sqlx::AssertSqlSafe(trap)).await.unwrap();
        for _ in 0..2 {
            let sync = v1::SyncRequest { results: results.clone(), ..nothing() };
            let refusal = worker.sync(sync).await.unwrap_err();
            assert_eq!(refusal.code(), Code::Unavailable, "the worker keeps them and comes again");
            assert!(refusal.message().contains("no luck today"), "{refusal:?}");
        }
        assert_eq!(house.progress(run.id).sums.leased, 2);
        let fault = house.coordinator.faults().borrow().clone().unwrap();
        assert!(fault.to_string().contains("no luck today"), "{fault}");
        connection.execute("DROP TRIGGER trap").await.unwrap();
        connection.close().await.unwrap();
        assert_eq!(ledger.everything().await, before);
        assert_eq!(worker.hold(&leases).await, (vec![], vec![]), "the leases are what they were");
        assert_eq!(worker.report(&results).await, [Verdict::Accepted; 2]);
        worker.count_all().await;
        house.wait_for(run.id, |run| run.state == RunState::Done).await;
        house.end(&ledger).await;
    }
}

#[tokio::test]
async fn one_coordinator_a_database() {
    let (ledger, house) = House::fresh().await;
    let second = Coordinator::open(&ledger.path, Timing::default(), "test 1.0").await;
    assert!(
        matches!(second.err(), Some(Error::Ledger(nqueens_ledger::Error::InUse(path))) if path == ledger.path)
    );
    // The first goes on.
    let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    house.worker(1).await.count_all().await;
    house.wait_for(run.id, |run| run.state == RunState::Done).await;
    house.close().await;
    Coordinator::open(&ledger.path, Timing::default(), "test 1.0").await.unwrap().close().await;
    ledger.audit().await;
}

#[tokio::test]
async fn times_in_the_ledger_ascend_whatever_the_clock_shows() {
    let (ledger, house) = House::fresh().await;
    house.worker(1).await;
    house.close().await;
    let far = 9_000_000_000_000_u64;
    ledger
        .connect()
        .await
        .execute(AssertSqlSafe(format!("UPDATE worker SET registered_at = {far}")))
        .await
        .unwrap();
    let house = House::open(&ledger.path, Policy::default()).await;
    house.worker(2).await;
    let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    house.worker(2).await.count_all().await;
    house.wait_for(run.id, |run| run.state == RunState::Done).await;
    house.close().await;
    let times =
        "SELECT min(at) FROM (SELECT registered_at AS at FROM worker UNION ALL SELECT reported_at FROM result
                 UNION ALL SELECT created_at FROM run UNION ALL SELECT finished_at FROM run)";
    assert_eq!(ledger.ask(times).await, [far.to_string()]);
    let ordered = "SELECT count(*) FROM run WHERE created_at <= (SELECT min(reported_at) FROM result)
                   AND finished_at >= (SELECT max(reported_at) FROM result)";
    assert_eq!(ledger.ask(ordered).await, ["1"]);
}
