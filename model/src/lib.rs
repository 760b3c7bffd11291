//! The domain types of the cluster: ids of runs, workers and leases, encoded jobs, results, verdicts, and runs as
//! operators see them.
//!
//! Plain data: no network, no database, no clock. The crate `nqueens-proto` converts messages to these types and
//! back.

#![forbid(unsafe_code)]

pub mod credential;
pub mod id;
pub mod json;
pub mod kernel;
pub mod message;
pub mod name;
pub mod numbers;
pub mod operator;

/// Target of the log lines of a progress: for people these are sentences, and the fields are for programs.
pub const PROGRESS: &str = "nqueens::progress";
