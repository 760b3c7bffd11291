//! The worker: proves its engines, pulls leases, counts them on OS threads, and reports until everything is
//! acknowledged. With a [`Spool`], what it has counted survives its process.
//!
//! What it says and when, [`nqueens_worker_protocol`] decides; here are the network, the threads, the disk and the clock.
//! Counting never runs on the async runtime, and the conversation with the coordinator never waits for the counting.

#![forbid(unsafe_code)]

mod capability;
mod client;
mod pool;
mod runtime;
mod selftest;
mod spool;

pub use client::{Client, WorkerError};
pub use nqueens_worker_protocol::{CallError, Summary};
pub use runtime::{Config, work};
pub use selftest::{Proof, prove, proven_kernels};
pub use spool::{Spool, SpoolError};
