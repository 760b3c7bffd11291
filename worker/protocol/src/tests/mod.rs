//! Conversations with simulated time: with a coordinator that is idle, unreachable, restarted or draining the worker.

#![expect(clippy::unchecked_time_subtraction, reason = "a test's time only goes on")]

mod leaving;
mod outages;
mod pacing;
mod spool;
mod stage;
