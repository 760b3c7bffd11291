//! The coordinator: plans runs into jobs, stores them, leases them to workers, keeps the ledger of their results, and
//! adds up the totals.
//!
//! ```text
//! service, operator_service --requests--> writer: load (ledger), apply (scheduler), persist (ledger) --commit--> answers
//!                          |
//!                          +--> snapshot --> progress, and total once all jobs are done
//! ```

#![forbid(unsafe_code)]

mod access;
mod backup;
mod canary;
mod clock;
mod coordinator;
mod database;
mod disk;
mod door;
mod error;
mod events;
mod journal;
mod ledger;
mod operator;
mod operator_service;
pub mod progress;
mod reader;
mod rules;
mod service;
mod speed;
mod total;
mod writer;

pub use access::Access;
pub use backup::backup;
pub use clock::wall_time;
pub use coordinator::{Coordinator, listen};
pub use door::{Limits, Rate};
pub use error::Error;
pub use events::Events;
pub use ledger::{LedgerResult, LedgerRow, OtherResult, RunRow, WorkerRow};
pub use nqueens_scheduler::{JobState, Policy, Refusal, Room, Sums, request};
pub use operator::Operator;
pub use reader::Reader;
pub use rules::RULES;
pub use writer::Pace;
