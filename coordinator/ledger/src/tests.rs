//! The ledger in memory that simulations use has the same as this one, whatever is stored.

use std::collections::BTreeMap;
use std::time::Duration;

use nqueens_model::id::Incarnation;
use nqueens_scheduler::{Dispatch, Needs, Policy, Scheduler};
use nqueens_simulation::{Record, Scenario, record};
use sqlx::{Connection, query_scalar};

use super::*;
use crate::database::Database;

/// The ledger of simulations has submitted all runs so long ago, in milliseconds.
const AGE_MS: i64 = 1_000_000_000;

/// Lives of the coordinator and transactions of each history.
const RECORDS: usize = 150;

fn nobody() -> Dispatch {
    Dispatch::new(Policy::default(), &[0; 32])
}

/// All that a state machine knows, less sums of products, which depend on the order of their summands.
fn text(scheduler: &Scheduler) -> String {
    let text = format!("{:#?}", scheduler.dispatch());
    let is_sum =
        |line: &&str| ["xx: ", "xy: ", "yy: ", "xt: ", "tt: "].iter().any(|sum| line.trim().starts_with(sum));
    text.lines().filter(|line| !is_sum(line)).collect::<Vec<_>>().join("\n")
}

async fn holds_the_same(scenario: &Scenario) {
    let memory = record(scenario, RECORDS);
    let folder = tempfile::tempdir().expect("a folder");
    let mut database =
        Database::open(&folder.path().join("ledger.db"), Duration::ZERO).await.expect("a database");
    for stored in memory.records() {
        match stored {
            Record::Life(incarnation) => {
                let db = &mut database.writer;
                insert_incarnation(db, *incarnation, "test", 0).await.expect("a life");
                assert!(delete_unplanned(db).await.expect("nothing is planned half-way"));
            }
            Record::Discard => {
                let db = &mut database.writer;
                assert!(delete_unplanned(db).await.expect("nothing is planned half-way"));
            }
            Record::Transaction(changes) => {
                let mut db = database.writer.begin().await.expect("a transaction");
                persist(&mut db, changes, 0).await.expect("changes");
                db.commit().await.expect("a commit");
            }
        }
    }
    let restored = restore(&database.readers, nobody(), None, (0, AGE_MS)).await.expect("a ledger");
    let (has, expected) = (text(&restored), text(&memory.restore(nobody(), None, 0)));
    let differs = has.lines().zip(expected.lines()).position(|(has, expected)| has != expected);
    assert!(has == expected, "{scenario}: line {differs:?} of\n{has}\ninstead of\n{expected}");

    let needs = Needs { reported: memory.job_ids().collect(), ..Needs::default() };
    let loaded = load(&mut database.writer, &needs).await.expect("jobs");
    let sorted =
        |loaded: nqueens_scheduler::Loaded| format!("{:?}", loaded.into_iter().collect::<BTreeMap<_, _>>());
    assert_eq!(sorted(loaded), sorted(memory.load(&needs)), "{scenario}");
    for machine in memory.machines() {
        let mut has = in_doubt(&mut database.writer, &machine).await.expect("results");
        has.counted.sort_by_key(|(job, _)| *job);
        has.confirmed.sort_by_key(|(job, _)| *job);
        let expected = memory.in_doubt(&machine);
        assert_eq!(
            (has.counted, has.confirmed),
            (expected.counted, expected.confirmed),
            "{scenario}: {machine}"
        );
    }
}

/// Backups are not among these histories, for this ledger restores them as files.
#[tokio::test]
async fn the_ledger_of_simulations_has_the_same() {
    for seed in 0..4 {
        let text = format!(
            "{seed} workers=9 runs=2 jobs=20 replicate=1000000 seconds=600 \
             faults=death,failure,hang,lie,crash,refusal,operator,duplicate,loss,freeze"
        );
        holds_the_same(&text.parse().expect("a scenario")).await;
    }
}

#[tokio::test]
async fn commits_are_on_the_disk_at_once_unless_a_later_one_takes_them_there() {
    // SQLite's names of NORMAL and FULL.
    for (sync_every, synchronous) in [(Duration::ZERO, 2), (Duration::from_hours(1), 1)] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut database =
            Database::open(&folder.path().join("ledger.db"), sync_every).await.expect("a database");
        for _ in 0..2 {
            let mut db = database.begin().await.expect("a transaction");
            let set: i64 = query_scalar("PRAGMA synchronous").fetch_one(&mut *db).await.expect("a number");
            assert_eq!(set, synchronous, "{sync_every:?}");
        }
        database.reconnect().await.expect("a connection");
        drop(database.begin().await.expect("a transaction"));
        let db = &mut database.writer;
        let set: i64 = query_scalar("PRAGMA synchronous").fetch_one(db).await.expect("a number");
        assert_eq!(set, synchronous, "{sync_every:?}");
    }
}

#[tokio::test]
async fn what_is_committed_goes_to_the_disk_when_that_is_due_even_if_nothing_follows_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = async |name: &str, sync_every| {
        Database::open(&folder.path().join(name), sync_every).await.expect("a database")
    };
    let commit = async |database: &mut Database, life| {
        let mut db = database.begin().await.expect("a transaction");
        if let Some(life) = life {
            let life = Incarnation::new(life).expect("a life");
            insert_incarnation(&mut db, life, "test", 0).await.expect("a life");
        }
        db.commit().await.expect("a commit");
    };
    let mut due = open("due.db", Duration::from_nanos(1)).await;
    commit(&mut due, Some(1)).await;
    assert!(due.sync().await.expect("a disk"));
    commit(&mut due, Some(2)).await;
    // Nothing was due then, say. What comes next has nothing to store.
    commit(&mut due, None).await;
    assert!(due.sync().await.expect("a disk"), "what came before it");
    commit(&mut due, None).await;
    assert!(!due.sync().await.expect("a disk"), "it is there");
    due.reconnect().await.expect("a connection");
    assert!(due.sync().await.expect("a disk"), "nobody knows what the other connection left");

    let mut later = open("later.db", Duration::from_hours(1)).await;
    let mut at_once = open("at_once.db", Duration::ZERO).await;
    for database in [&mut later, &mut at_once] {
        commit(database, Some(1)).await;
        assert!(!database.sync().await.expect("a disk"), "it is not due, or was done by the commit");
    }
}
