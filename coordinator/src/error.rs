//! Errors of a coordinator, each with advice.

use std::path::Path;

use nqueens_model::id::RunId;
use nqueens_scheduler::Refusal;

/// A failure of the coordinator. Nothing was changed unless the text says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Ledger(#[from] nqueens_ledger::Error),
    /// A request's name was used before, for something else.
    #[error("run {0} exists and has another plan; draw a new request id")]
    OtherSubmission(RunId),
    /// More jobs than a coordinator is to keep.
    #[error(
        "the plan has about {jobs} jobs, more than --jobs-max {jobs_max} allows; give a larger --job-states, such as \
         {states_per_job}"
    )]
    PlanTooLarge {
        /// Its jobs, roughly.
        jobs: u128,
        /// The limit.
        jobs_max: u32,
        /// A size of jobs, in states, of which there are about half as many as the limit.
        states_per_job: u128,
    },
    #[error("{0} runs are being planned or wait for it; submit again later, or cancel one of them")]
    TooManyPlans(usize),
    /// Only one thing can be done to it.
    #[error("run {0} is being planned; wait for its end, or cancel it")]
    BeingPlanned(RunId),
    #[error("run {0} was cancelled while it was being planned; nothing of it is kept")]
    PlanCancelled(RunId),
    #[error("planning failed ({0}); nothing of the run is kept; please report this")]
    PlanFailed(String),
    /// Workers could do what operators do, or pass for each other.
    #[error("two tokens are the same; operators, and workers of each name, need their own")]
    SameTokens,
    /// The certificates or keys of a setting can't be used. The reason has nothing of the key.
    #[error("{0} can't be used: {1}")]
    Tls(&'static str, String),
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The writer met something that can't be, and broke off.
    #[error(
        "the coordinator failed ({0}); everything acknowledged so far is safe; 'nqueens doctor' tells whether the \
         database is damaged"
    )]
    WriterFailed(String),
    #[error("the coordinator is shutting down")]
    ShuttingDown,
    #[error("can't listen on {0}: {1}; choose another address, or stop what uses this one")]
    CantListen(String, String),
}

impl Error {
    /// Whether the coordinator that met this one stores nothing any more.
    pub fn is_final(&self) -> bool {
        use nqueens_ledger::Error::{Replaced, Superseded};
        matches!(self, Self::Ledger(Superseded(_) | Replaced(_)) | Self::WriterFailed(_))
    }

    /// Whether the database holds what no version of this program writes.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Ledger(nqueens_ledger::Error::Damaged(_)))
    }

    /// Gives an error of SQLite on this database the words that help.
    pub(crate) fn explain(self, path: &Path) -> Self {
        match self {
            Self::Ledger(error) => Self::Ledger(error.explain(path)),
            other => other,
        }
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        Self::Ledger(error.into())
    }
}
