//! The worker: proves its engines, pulls leases, counts them on OS threads, and reports until everything is
//! acknowledged.
//!
//! Counting never runs on the async runtime, and the conversation with the coordinator never waits for the counting.

#![forbid(unsafe_code)]

mod client;
mod pool;
mod selftest;
mod worker;

pub use client::{Client, WorkerError};
pub use selftest::{Proof, prove, proven_kernels};
pub use worker::{Config, Summary, work};
