//! The coordinator: plans runs into jobs, stores them, leases them to workers, stores their results and computes
//! totals.
//!
//! ```text
//! service, api --requests--> writer: load (ledger), apply (scheduler), persist (ledger) --commit--> answers
//!                  |
//!                  +--> snapshot --> progress, and total once all jobs are done
//! ```
//!
//! * `writer` is the only task that changes the ledger. The crate [`nqueens_ledger`] has all SQL.
//! * `plans` are the runs that are being planned, one at a time. `planner` makes the jobs of a plan on a thread of its own:
//!   to store them, or to compare stored ones.
//! * `total` adds up a complete ledger, or says which check failed. `recounting` counts jobs, or parts of
//!   them, in this process: those that are drawn, and what has to be decided.
//! * `reader` reads a ledger while another process may write to it. A coordinator stops if SQLite's `quick_check`, made
//!   after the start, finds damage.
//! * `backup` copies a ledger with `VACUUM INTO`, examines the copy, and then gives it its name.
//! * `disk` watches the free space. Below the reserve no more jobs are leased, so that results of leased jobs still
//!   fit.
//! * `speed` measures runs by their results. `progress` turns speeds and the sums of done jobs into time left and an
//!   estimate of TOTAL, each with a 95 % confidence interval. The done jobs are a random sample of all, because jobs
//!   leave in random order.
//! * `history` has the latest events, and tells from their results how the runs went over time. An event is published after its
//!   commit.
//! * `door` is the one port. `listener` accepts its connections, `access` decides which calls a caller may make, and `service`
//!   and `api` answer them.

#![forbid(unsafe_code)]

mod access;
mod api;
mod backup;
mod clock;
mod coordinator;
mod disk;
mod door;
mod error;
mod faults;
mod history;
mod journal;
mod limits;
mod listener;
mod operator;
mod planner;
mod plans;
pub mod progress;
mod reader;
mod recounting;
mod service;
mod speed;
mod total;
mod writer;

pub use access::{Access, Guard};
pub use backup::backup;
pub use clock::wall_time;
pub use coordinator::{Coordinator, listen};
pub use door::Door;
pub use error::Error;
pub use history::Events;
pub use listener::{Bucket, Caller, CallerLimits, Rate};
pub use nqueens_ledger::rules::RULES;
pub use nqueens_ledger::{Effort, LedgerRow, RunRow};
pub use nqueens_scheduler::{JobState, Policy, Refusal, Sums, request};
pub use operator::Operator;
pub use plans::UnplannedRun;
pub use reader::Reader;
pub use service::Workers;
pub use writer::Timing;
