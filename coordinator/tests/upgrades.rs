//! Databases of earlier versions of this program, as those left them: with one run that is done, and one in the middle,
//! whose worker was killed. `tests/data/schema_0001.sqlite` was made by the last version before migration 2, and so on.
//!
//! Before a migration is added: `cargo test -p nqueens-coordinator --test upgrades -- --ignored` makes the next of them.

mod common;

use std::collections::BTreeSet;

use common::{House, Ledger, board, honest};
use nqueens_coordinator::{Error, Policy, Reader};
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_model::operator::RunState;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
const MIGRATIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../migrations");

/// The numbers that stand in the names of a folder's files.
fn numbers(folder: &str, prefix: &str) -> BTreeSet<u32> {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap());
    names.filter_map(|name| name.strip_prefix(prefix)?.get(..4)?.parse().ok()).collect()
}

#[test]
fn there_is_a_database_of_every_earlier_schema() {
    let mut earlier = numbers(MIGRATIONS, "");
    earlier.pop_last();
    let missing: Vec<_> = earlier.difference(&numbers(DATA, "schema_")).copied().collect();
    assert!(
        missing.is_empty(),
        "keep a database that a version before the new migration has made: {missing:?}"
    );
}

#[tokio::test]
async fn databases_of_earlier_versions_are_finished_by_this_one() {
    for schema in numbers(DATA, "schema_") {
        let ledger = Ledger::new();
        std::fs::copy(format!("{DATA}/schema_{schema:04}.sqlite"), &ledger.path).unwrap();
        check(schema, &ledger).await;
    }
}

#[tokio::test]
#[ignore = "makes a database of the newest schema, for the versions to come"]
async fn leaves_a_database_of_the_newest_schema() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy::default()).await;
    let operator = house.coordinator.operator();
    let done = operator.submit(Plan::new(board(8), PlanKind::Halves), 0).await.unwrap();
    let mut worker = house.worker(1).await;
    worker.count_all().await;
    house.wait_for(done.id, |run| run.state == RunState::Done).await;
    operator.submit(Plan::with_states_per_job(board(14), PlanKind::Border, 60_000), 0).await.unwrap();
    let leases = worker.take(40).await;
    let results: Vec<_> = leases.iter().take(20).map(honest).collect();
    worker.report(&results).await;
    house.close().await;
    let newest = *numbers(MIGRATIONS, "").last().unwrap();
    std::fs::copy(&ledger.path, format!("{DATA}/schema_{newest:04}.sqlite")).unwrap();
}

async fn check(schema: u32, ledger: &Ledger) {
    let newest = *numbers(MIGRATIONS, "").last().unwrap();
    if schema < newest {
        // To look at it is no reason to change it.
        let refused = Reader::open(&ledger.path).await.expect_err("of an earlier version");
        assert!(matches!(refused, Error::Ledger(nqueens_ledger::Error::OlderSchema { .. })), "{refused}");
    }
    let before = ledger.ask("SELECT json_array(run, job, verdict, count8) FROM result ORDER BY id").await;
    let done = ledger.ask("SELECT count(*) FROM job WHERE state = 2").await;
    let leased = ledger.ask("SELECT count(*) FROM job WHERE state = 1").await;
    assert!(leased != ["0"] && done != ["0"], "schema {schema}: {leased:?} leased, {done:?} done");

    // Whoever held the leases is gone.
    let house = House::open(&ledger.path, Policy { grace_ms: 0, ..Policy::default() }).await;
    let totals = ledger.ask("SELECT n || ' ' || total FROM run WHERE state = 'done' ORDER BY n").await;
    assert_eq!(totals, ["8 92"], "schema {schema}: what was done is done");
    let runs = house.coordinator.operator().reader().runs().await.unwrap();
    let open: Vec<_> = runs.iter().filter(|run| run.state == RunState::Active).map(|run| run.id).collect();
    for run in &open {
        house.wait_for(*run, |run| run.sums.leased == 0).await;
    }
    house.worker(1).await.count_all().await;
    for run in open {
        house.wait_for(run, |run| run.state == RunState::Done).await;
    }
    house.close().await;
    let totals = ledger.ask("SELECT n || ' ' || total FROM run ORDER BY n").await;
    assert_eq!(totals, EXPECTED, "schema {schema}");
    let after = ledger.ask("SELECT json_array(run, job, verdict, count8) FROM result ORDER BY id").await;
    assert_eq!(after[..before.len()], before, "schema {schema}: results are only ever added");
    assert_eq!(ledger.ask("SELECT max(version) FROM _sqlx_migrations").await, [newest.to_string()]);
    ledger.audit().await;
    let reader = Reader::open(&ledger.path).await.unwrap();
    reader.examine().await.unwrap();
    reader.close().await;
}

/// N and TOTAL of the runs in each of them.
const EXPECTED: [&str; 2] = ["8 92", "14 365596"];
