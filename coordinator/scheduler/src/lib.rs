//! The coordinator's decisions: which worker counts which job, and what happens to the results. No clock, no disk, no
//! network.
//!
//! ```text
//! request --needs--> (ledger loads) --Loaded--> Transaction: apply --> answer
//!                                                       |
//!                                                       +--> changes --> (ledger persists, in their order)
//! ```
//!
//! Time, random bits, free disk space and stored data come in with the calls. What is to be stored comes out as a
//! list of [`Change`]s, which must be persisted in their order: a withdrawn result must be in the ledger before the
//! one that takes its place. An answer must not leave before its transaction is on disk.
//!
//! [`Dispatch`] is the state machine, [`request`] has the requests with their answers.

#![forbid(unsafe_code)]

mod change;
mod dispatch;
mod new_event;
mod refusal;
pub mod request;
mod transaction;

pub use change::{Change, JudgedResult, Recount};
pub use dispatch::{
    Accepted, AcceptedSums, Basis, Busy, ChangedJob, CheckOutcome, Crew, Differing, Dispatch, Held, InDoubt,
    JobState, JobStatus, Judgement, Machine, MachineReputation, Millis, Moments, Outcast, Pace, Policy, Run,
    RunSettings, Sums, Task, Why, Worker, shared_work,
};
pub use new_event::{NewEvent, Stalls};
pub use refusal::Refusal;
pub use request::Request;
pub use transaction::{Loaded, Needs, Scheduler, StoredJob, Transaction};
