//! What the cluster's programs speak of: names of runs, workers and leases, jobs as they are stored and sent, results,
//! what becomes of them, and runs as operators see them.
//!
//! Plain data: no network, no database, no clock. The crate `nqueens-proto` turns messages into these types and back.

#![forbid(unsafe_code)]

pub mod id;
pub mod kernel;
pub mod message;
pub mod operator;
