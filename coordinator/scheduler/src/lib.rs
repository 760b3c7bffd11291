//! Who counts which job, and what becomes of the results: the coordinator's decisions, without its clock, its disk and its
//! network.
//!
//! ```text
//! request --needs--> (ledger loads) --Loaded--> Transaction::apply --> answer
//!                                                       |
//!                                                       +--> changes --> (ledger persists, in their order)
//! ```
//!
//! Time, random bits and what the ledger has stored come in with the calls. What is to be stored comes out as a list of
//! [`Change`]s, which has to be persisted in its order: a result that is withdrawn must be in the ledger before the one that
//! takes its place. Nobody may see an answer before its transaction is on disk.

#![forbid(unsafe_code)]

mod change;
mod dispatch;
mod news;
mod refusal;
pub mod request;
mod transaction;

pub use change::{Change, JudgedResult};
pub use dispatch::{
    Accepted, AcceptedSums, Basis, ChangedJob, CheckOutcome, Dispatch, Held, JobState, Judgement, Machine,
    Millis, Moments, Opinion, Policy, Run, RunSettings, Slot, Standing, Sums, TrustEvent, Worker,
};
pub use news::{News, Stalls};
pub use refusal::Refusal;
pub use request::Request;
pub use transaction::{Loaded, Needs, Room, Scheduler, StoredJob, Suspicion, Transaction};
