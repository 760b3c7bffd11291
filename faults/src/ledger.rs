//! The content of a database file, read without the program's own code.

use std::path::Path;
use std::time::Duration;

use nqueens_coordinator::RULES;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection, query, query_as};

use crate::recording_proxy::{Counts, Token};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) token: Token,
    pub(crate) counts: Counts,
    pub(crate) accepted: bool,
}

pub(crate) struct RunRow {
    pub(crate) id: u64,
    pub(crate) state: String,
    pub(crate) total: Option<String>,
}

/// Run, job and epoch; the four counts; the verdict.
type ResultRow = (i64, i64, i64, i64, i64, i64, i64, String);

/// A ledger at one moment, compared with its own rules.
pub(crate) struct Ledger {
    pub(crate) runs: Vec<RunRow>,
    /// In the order of their commits.
    pub(crate) results: Vec<Stored>,
    pub(crate) lapses: u64,
}

impl Ledger {
    /// Reads it and its faults, also while another process writes to it.
    pub(crate) async fn examine(path: &Path) -> Self {
        let mut db = open(path).await;
        // A transaction sees one moment.
        let mut moment = db.begin().await.expect("a transaction");
        for (rule, text) in RULES {
            let broken = query(AssertSqlSafe(text)).fetch_all(&mut *moment).await.expect("it can be read");
            assert!(broken.is_empty(), "{}: it does not hold that {rule}: {broken:?}", path.display());
        }
        let ledger = Self::at(&mut moment).await;
        drop(moment);
        db.close().await.expect("closed");
        ledger
    }

    pub(crate) async fn read(path: &Path) -> Self {
        let mut db = open(path).await;
        let ledger = Self::at(&mut db).await;
        db.close().await.expect("closed");
        ledger
    }

    async fn at(db: &mut SqliteConnection) -> Self {
        let runs: Vec<(i64, String, Option<String>)> =
            query_as("SELECT id, state, total FROM run").fetch_all(&mut *db).await.expect("runs");
        let results: Vec<ResultRow> = query_as(
            "SELECT run, job, epoch, count2, count4, count8, solutions, verdict FROM result ORDER BY id",
        )
        .fetch_all(&mut *db)
        .await
        .expect("results");
        let (lapses,): (i64,) =
            query_as("SELECT coalesce(sum(lapses), 0) FROM job").fetch_one(db).await.expect("jobs");
        let results = results.into_iter().map(|row| {
            let accepted = match row.7.as_str() {
                "accepted" => true,
                "duplicate" => false,
                other => panic!("nobody has lied, and a result is {other}: {row:?}"),
            };
            Stored {
                token: [row.0, row.1, row.2].map(natural),
                counts: [row.3, row.4, row.5, row.6].map(natural),
                accepted,
            }
        });
        Self {
            results: results.collect(),
            runs: runs
                .into_iter()
                .map(|(id, state, total)| RunRow { id: natural(id), state, total })
                .collect(),
            lapses: natural(lapses),
        }
    }
}

pub(crate) async fn open(path: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(path).read_only(true);
    let options = options.busy_timeout(Duration::from_mins(1));
    SqliteConnection::connect_with(&options).await.expect("a database")
}

/// The runs that are not done, each with the number of its jobs in quarantine.
pub(crate) async fn open_runs(path: &Path) -> Vec<(u64, u64)> {
    let mut db = open(path).await;
    let text = "SELECT id, (SELECT count(*) FROM job WHERE run = run.id AND state = 3) FROM run WHERE state <> 'done'";
    let runs: Vec<(i64, i64)> = query_as(text).fetch_all(&mut db).await.expect("runs");
    db.close().await.expect("closed");
    runs.into_iter().map(|(run, quarantined)| (natural(run), natural(quarantined))).collect()
}

pub(crate) fn natural(number: i64) -> u64 {
    u64::try_from(number).expect("the schema has no negative ones")
}
