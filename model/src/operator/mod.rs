//! Messages between operator and coordinator. `proto/nqueens/v1/operator.proto` documents each field.

mod estimate;
mod event;
mod history;
mod outcome;
mod progress;
mod run;
mod worker;

pub use estimate::Interval;
pub use event::{Event, EventKind};
pub use history::{Moment, RunDetail};
pub use outcome::{Checked, Grounds, Missing, Outcome, Standing, TotalEstimate};
pub use progress::{CheckCounts, Progress, Speed};
pub use run::{Blamed, Recounts, RunState, RunStatus, Submission, foremost};
pub use worker::{MachineName, WorkerStatus};

/// Milliseconds since 1970, UTC.
pub type WallTime = i64;
