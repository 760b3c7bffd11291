//! A worker's side of the conversation with its coordinator, without I/O: [`Conversation::on`] takes an event and its
//! time, and returns actions. It decides when to register and to sync, how much work to ask for, what to spool and
//! what to drop, how to wait out an outage, and how to stop.
//!
//! It syncs when threads are about to run out of work, when results wait, and at the heartbeat interval (`pace`).
//! Results are on disk before they are reported, with one fsync for many (`outbox`). The spool is emptied when
//! everything in it is acknowledged. `outage` paces the attempts to reach the coordinator. A worker that is drained
//! or stopped returns jobs that have not started at once, and the others at a deadline.
//!
//! Time and randomness come in with the events, so the same events always lead to the same actions.

#![forbid(unsafe_code)]

mod conversation;
mod outage;
mod outbox;
mod pace;
#[cfg(test)]
mod tests;

use std::time::Duration;

use nqueens_model::id::LeaseToken;
use nqueens_model::message::{
    HeldLease, JobResult, Lease, Registration, ReturnedLease, Session, SyncRequest, SyncResponse,
};

pub use conversation::Conversation;

/// Time since a moment of the caller's choosing, the same for a whole conversation.
pub type Moment = Duration;

#[derive(Clone, Debug)]
pub struct Setup {
    /// How the worker introduces itself.
    pub registration: Registration,
    /// Speed of all threads together in estimated states a second: a guess, replaced by what the first jobs show.
    pub states_per_s: f64,
    /// Time for running jobs to finish after a stop.
    pub drain: Duration,
    /// When the worker must be gone. Until then it takes only jobs that it expects to finish.
    pub deadline: Option<Moment>,
    /// The worker goes when it had nothing to count for this time.
    pub idle_max: Option<Duration>,
    /// The coordinator's address, for the log.
    pub coordinator: String,
    /// `None`: results die with the process.
    pub spool: Option<SpoolContents>,
}

/// A spool as the worker finds it at its start.
#[derive(Clone, Debug)]
pub struct SpoolContents {
    /// Its name in the log.
    pub name: String,
    /// What an earlier process left in it.
    pub results: Vec<JobResult>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ProtocolEvent {
    /// The threads got on, gave up what they were told to, or [`Conversation::wake_at`] has come.
    Looked(Look),
    /// The worker's owner tells it to go.
    Stop,
    Registered(Session),
    Answered(SyncResponse),
    Failed {
        error: CallError,
        /// Random, in `0.0..1.0`: the next pause is longer by this part of it, so that workers do not come back together.
        jitter: f64,
    },
    /// An [`Action::Write`] has ended; if it failed, nothing was written. The error is in the system's words.
    Written(Write, Result<(), String>),
}

/// An action. The caller carries actions out in their order, before it passes the next event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Call the coordinator. A call that is still on its way is given up: its answer is no longer wanted.
    Register(Registration),
    /// The same, for the regular word.
    Sync(SyncRequest),
    /// Count these jobs, in this order.
    Count(Vec<Lease>),
    /// Stop counting these jobs, and forget them.
    Revoke(Vec<LeaseToken>),
    /// Give up jobs, and tell the next [`Look`] that has them among the finished ones at once.
    GiveUp {
        /// Those that have begun, too.
        begun: bool,
    },
    /// Change the spool, and tell [`ProtocolEvent::Written`].
    Write(Write),
    /// The conversation is over: give up all counting.
    End(Result<Summary, CallError>),
}

/// A change of the spool: done as a whole and safe from a power cut, or not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    Append(Vec<JobResult>),
    Clear,
    Rewrite(Vec<JobResult>),
    /// Set these aside for somebody to look at; they stay among the others for now.
    Reject(Vec<JobResult>),
}

/// What the threads have done since the last look, and where they stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Jobs that were counted, failed or were given up.
    pub finished: Vec<Result<JobResult, ReturnedLease>>,
    /// Jobs that have begun.
    pub begun: Vec<JobProgress>,
    /// Engines that have failed since the start, see [`SyncRequest::faults`].
    pub faults: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobProgress {
    /// The lease, with the states visited so far.
    pub lease: HeldLease,
    /// Estimated states of the pieces that no thread has taken yet.
    pub left: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub accepted: u64,
    pub refused: u64,
    /// Results that could not be reported before the end; a spool has them.
    pub unreported: usize,
    /// Leases that could not be handed back; they will run out.
    pub unreturned: usize,
    pub reason: EndReason,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EndReason {
    /// Its owner told it to go.
    #[default]
    Stopped,
    /// An operator did.
    Dismissed,
    /// There was nothing to count for [`Setup::idle_max`].
    Idle,
    /// [`Setup::deadline`] came.
    TimeUp,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The coordinator will never take this worker's calls as they are.
    #[error("the coordinator refused: {0}")]
    Refused(String),
    /// The coordinator can't be reached, or can't store anything, for now.
    #[error("the coordinator did not answer: {0}")]
    Unavailable(String),
    #[error("the coordinator does not know this worker")]
    Unregistered,
    #[error("the coordinator's answer is wrong: {0}")]
    Answer(String),
}

impl CallError {
    /// Whether the same call may go through later.
    fn is_passing(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Unregistered)
    }
}
