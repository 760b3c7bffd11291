//! The coordinator: plans runs into jobs, stores them, leases them to workers, keeps the ledger of their results, and
//! adds up the totals.
//!
//! ```text
//! service, operator_service --requests--> writer (dispatch + SQLite) --commit--> answers
//!                          |
//!                          +--> snapshot --> progress, and total once all jobs are done
//! ```

#![forbid(unsafe_code)]

mod access;
mod backup;
mod canary;
mod coordinator;
mod database;
mod disk;
pub mod dispatch;
mod door;
mod error;
mod events;
mod journal;
mod operator;
mod operator_service;
pub mod progress;
mod reader;
mod rules;
mod service;
mod speed;
mod store;
mod total;
mod trust;
mod writer;

pub use access::Access;
pub use backup::backup;
pub use coordinator::{Coordinator, listen, random_bits};
pub use disk::Room;
pub use door::{Limits, Rate};
pub use error::Error;
pub use events::Events;
pub use operator::Operator;
pub use reader::Reader;
pub use rules::RULES;
pub use store::{LedgerResult, LedgerRow, OtherResult, RunRow, WorkerRow, wall_time};
pub use writer::Pace;
