//! The worker: tests its engines, leases jobs, counts them on OS threads, and reports until everything is
//! acknowledged. With a [`Spool`], its results survive its process.
//!
//! [`nqueens_worker_protocol`] decides what to send and when. Here are the network, the threads, the disk and the
//! clock: `runtime` carries out actions, `client` calls the coordinator, where that is another process, `spool` writes to disk, `pool` runs the
//! engines. A thread takes a job, or helps with a job that another thread has begun. A panic costs the job and no
//! thread. `selftest` has each engine count small boards before the worker offers it.
//!
//! Counting never runs on the async runtime, and the conversation with the coordinator never waits for counting.

#![forbid(unsafe_code)]

mod client;
mod crew;
mod panics;
mod pool;
mod runtime;
mod selftest;
mod spool;

pub use client::{Client, Coordinator, WorkerError};
pub use crew::Crew;
pub use nqueens_worker_protocol::{CallError, EndReason, Summary};
pub use pool::MemoryMax;
pub use runtime::{Config, work};
pub use selftest::{Proof, prove, prove_device, proven_kernels};
pub use spool::{Spool, SpoolError};
