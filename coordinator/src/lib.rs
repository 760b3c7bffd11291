//! The coordinator: plans runs into jobs, stores them, leases them to workers, keeps the ledger of their results, and
//! adds up the totals.
//!
//! ```text
//! service --requests--> writer (dispatch + SQLite) --commit--> answers
//!                          |
//!                          +--> snapshot --> progress, and total once all jobs are done
//! ```

#![forbid(unsafe_code)]

mod coordinator;
mod database;
pub mod dispatch;
mod error;
mod journal;
mod operator;
pub mod progress;
mod reader;
mod service;
mod store;
mod total;
mod writer;

pub use coordinator::{Coordinator, listen, random_bits};
pub use error::Error;
pub use operator::Operator;
pub use reader::Reader;
pub use store::{Checked, LedgerResult, LedgerRow, Outcome, RunRow, WallTime, WorkerRow};
pub use writer::{LiveWorker, Pace};
