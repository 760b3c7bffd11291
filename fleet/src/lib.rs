//! A fleet: workers that a batch system runs for the open runs of a coordinator.
//!
//! An *allocation* is one job of the batch system with one worker in it. [`decide`](decide::decide) has no I/O, no clock
//! and no randomness. [`look`](look::look) carries its actions out. `tests/simulation/main.rs` runs both against
//! thousands of simulated clusters.

#![forbid(unsafe_code)]

pub mod backend;
pub mod decide;
pub mod folder;
pub mod look;
pub mod process;
pub mod script;
pub mod state;

/// Seconds since 1970 by the clock of this machine. What the fleet waits for takes seconds to hours.
pub type UnixSeconds = u64;
