//! What operator and coordinator tell each other, in domain types, and the conversions from and to the wire.
//! `nqueens/v1/operator.proto` has the full story of each field.

mod estimate;
mod event;
mod outcome;
mod progress;
mod request;
mod run;
mod state;
mod submission;
#[cfg(test)]
mod tests;
mod worker;

use std::str::FromStr;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::plan::{Plan, PlanKind};

use crate::convert::{InvalidMessage, invalid, stored};
use crate::id::{RunId, WorkerId};

pub use estimate::{Interval, span};
pub use event::{Event, EventKind};
pub use outcome::{Checked, Outcome};
pub use progress::{CheckCounts, Progress, Speed};
pub use request::Blamed;
pub use run::RunStatus;
pub use state::RunState;
pub use submission::Submission;
pub use worker::WorkerStatus;

/// Milliseconds since 1970, UTC.
pub type WallTime = i64;

fn decimal(field: &'static str, text: &str) -> Result<u128, InvalidMessage> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits
        .then(|| text.parse().ok())
        .flatten()
        .ok_or_else(|| invalid(field, "must be a decimal number below 2^128"))
}

fn run_id(number: u64) -> Result<RunId, InvalidMessage> {
    RunId::new(number).ok_or_else(|| invalid("run", "must be in 1..2^48"))
}

fn worker_id(field: &'static str, number: u64) -> Result<WorkerId, InvalidMessage> {
    WorkerId::new(number).ok_or_else(|| invalid(field, "must be in 1..2^63"))
}

fn plan(n: BoardSize, kind: &str, states_per_job: u64) -> Result<Plan, InvalidMessage> {
    let kind = PlanKind::from_str(kind).map_err(|error| invalid("plan", error))?;
    if stored("states_per_job", states_per_job)? == 0 {
        return Err(invalid("states_per_job", "must be at least 1"));
    }
    Ok(Plan::with_states_per_job(n, kind, states_per_job))
}
