//! Conversations at made-up times: what the worker says when, to coordinators that are idle, gone, forgetful or in the way.

#![expect(clippy::unchecked_time_subtraction, reason = "a test's time only goes on")]

mod leaving;
mod outages;
mod pacing;
mod spool;
mod stage;
