//! The ledger: runs, jobs and results in one SQLite file. All SQL is here, checked against the schema at compile time.
//! [`restore`] reads the scheduler's state, [`load`] reads what a transaction needs beyond that, and [`persist`] stores its
//! changes.
//!
//! * [`database`] creates, recognises, locks and migrates the file; [`lock`] keeps other processes away from it.
//! * [`rules`] are queries for states that no ledger may have; `doctor` and the tests run them.
//!
//! Rows travel in batches as JSON arrays, which SQLite packs and unpacks: one statement for a thousand rows costs
//! little more than one for a single row.

#![forbid(unsafe_code)]

mod checks;
pub mod database;
mod effort;
mod error;
mod history;
mod jobs;
pub mod lock;
mod persist;
mod recounts;
mod restore;
mod results;
pub mod rules;
mod runs;
#[cfg(test)]
mod tests;
mod workers;

use std::str::FromStr;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::Counts;
use nqueens_model::credential::Credential;
use nqueens_model::id::{JobId, RunId, WorkerId};
use nqueens_model::message::EncodedJob;
use serde::{Deserialize, Serialize};
use sqlx::sqlite::SqliteQueryResult;

pub use checks::in_doubt;
pub use effort::{Effort, effort};
pub use error::{Error, damaged, storage_error};
pub use history::{SpanSums, events, insert_events, planned_work, spans};
pub use jobs::{PlannedJob, load, planned_jobs, slots};
pub use persist::persist;
pub use recounts::{SecondCount, Subject, subject};
pub use restore::restore;
pub use results::{LedgerRow, others, rows, stored_sums};
pub use runs::RunRow;
pub use runs::{delete_unplanned, runs, unplanned_runs};
pub use workers::WorkerRow;
pub use workers::{insert_incarnation, key, latest_time, newest_incarnation, worker_rows};

/// Rows read or written by one statement.
const ROWS_MAX: u32 = 10_000;

/// A statement wrote the rows that it was to write; if not, the transaction fails.
fn all_written(done: &SqliteQueryResult, rows: usize, rule: &str) -> Result<(), Error> {
    let written = done.rows_affected();
    if written == rows as u64 {
        return Ok(());
    }
    Err(damaged(format!("it does not hold that {rule}: {written} of {rows} rows could be written")))
}

/// A number from a column that the schema keeps within the range of its type.
fn within<Narrow: TryFrom<i64>>(column: &str, number: i64) -> Result<Narrow, Error> {
    Narrow::try_from(number).map_err(|_| damaged(format!("{column} is {number}")))
}

fn parsed<T: FromStr<Err: ToString>>(text: &str) -> Result<T, Error> {
    text.parse().map_err(damaged)
}

/// A number for a column: everything that comes here was checked to be below 2^63.
fn column(number: u64) -> i64 {
    i64::try_from(number).expect("checked to be below 2^63 where it arrived")
}

fn json(rows: &impl Serialize) -> String {
    serde_json::to_string(rows).expect("plain rows")
}

fn object<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(damaged)
}

fn rows_of<Row: for<'de> Deserialize<'de>>(text: &str) -> Result<Vec<Row>, Error> {
    object(text)
}

fn worker_id(number: i64) -> Result<WorkerId, Error> {
    WorkerId::new(within("worker", number)?).ok_or_else(|| damaged("a worker's id is zero"))
}

fn credential(name: &str) -> Result<Credential, Error> {
    Credential::stored(name).map_err(|error| damaged(format!("a worker's credential {error}")))
}

fn run_id(number: i64) -> Result<RunId, Error> {
    RunId::new(within("run", number)?).ok_or_else(|| damaged("a run's id is out of range"))
}

fn json_of_ids(ids: impl Iterator<Item = JobId>) -> String {
    json(&ids.map(|id| (id.run.get(), id.number)).collect::<Vec<_>>())
}

fn job_id(run: i64, number: i64) -> Result<JobId, Error> {
    Ok(JobId { run: run_id(run)?, number: within("job.number", number)? })
}

/// All of some numbers that an outer join gives together or not at all.
fn all<const K: usize>(numbers: [Option<i64>; K]) -> Option<[i64; K]> {
    numbers.iter().all(Option::is_some).then(|| numbers.map(Option::unwrap_or_default))
}

/// Counts, or bounds of counts, as the schema keeps them: not negative.
fn counts(numbers: [i64; 4]) -> Result<Counts, Error> {
    let [count2, count4, count8, solutions] = numbers.map(|number| within("a count", number));
    Ok([count2?, count4?, count8?, solutions?].into())
}

fn encoded_job(n: i64, class: &str, bound1: i64, prefixes: Vec<u8>) -> Result<EncodedJob, Error> {
    let n = BoardSize::new(within("run.n", n)?).map_err(damaged)?;
    Ok(EncodedJob { n, class: parsed(class)?, bound1: within("job.bound1", bound1)?, prefixes })
}
