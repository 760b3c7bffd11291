//! The worker: proves its engines, pulls leases, counts them on OS threads, and reports until everything is
//! acknowledged. With a [`Spool`], what it has counted survives its process.
//!
//! Counting never runs on the async runtime, and the conversation with the coordinator never waits for the counting.

#![forbid(unsafe_code)]

mod client;
mod outage;
mod outbox;
mod pool;
mod selftest;
mod spool;
mod worker;

pub use client::{Client, WorkerError};
pub use selftest::{Proof, prove, proven_kernels};
pub use spool::{Spool, SpoolError};
pub use worker::{Config, Summary, work};
