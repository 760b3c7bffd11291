//! What operators see and say: the same structs are JSON over HTTP, in `--json` and on the page.

mod estimate;
mod event;
mod outcome;
mod progress;
mod run;
mod worker;

pub use estimate::Interval;
pub use event::{Event, EventKind, EventView};
pub use outcome::{Checked, Grounds, Missing, Outcome, Standing, TotalEstimate, recounts_wanted};
pub use progress::{CheckCounts, Progress, Speed};
pub use run::{
    Blamed, CoordinatorStatus, DiskRoom, Fleet, Moment, Recounts, RunDetail, RunState, RunStatus, RunView,
    Submission, TrustChange, foremost,
};
pub use worker::{MachineName, Worker, WorkerName, WorkerStatus};

/// Milliseconds since 1970, UTC.
pub type WallTime = i64;
