//! Errors of a coordinator, each with advice.

use std::path::PathBuf;

use nqueens_kernel::board::BoardSize;
use nqueens_model::id::RunId;
use nqueens_scheduler::Refusal;

/// A failure of the coordinator. Nothing was changed unless the text says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such file.
    #[error("there is no database at {0}; check the path, or start a run to create one")]
    NoDatabase(PathBuf),
    /// The file can't be opened or created.
    #[error("can't open the database {0}: {1}; check that the directory exists and is writable")]
    CantOpen(PathBuf, String),
    /// A directory, FIFO, socket or device.
    #[error("{0} is {1}, not a database file; choose another --db")]
    NotAFile(PathBuf, &'static str),
    /// The file is of another kind.
    #[error("{0} is not an SQLite database; it was left as it is, choose another --db")]
    NotADatabase(PathBuf),
    /// Some other program's tables.
    #[error("{0} is not a database of this program; it was left as it is, choose another --db")]
    ForeignDatabase(PathBuf),
    /// Made by a later version.
    #[error(
        "{path} has schema {found}, newer than this program's {known}; use the nqueens that made it, or a later one"
    )]
    NewerSchema {
        /// The database.
        path: PathBuf,
        /// Its schema version.
        found: i64,
        /// The latest that this program knows.
        known: i64,
    },
    /// Made by an earlier version, or not made to the end.
    #[error(
        "{path} has schema {found}, older than this program's {known}; 'nqueens run' brings it up to date"
    )]
    OlderSchema {
        /// The database.
        path: PathBuf,
        /// Its schema version; 0 before there are any tables.
        found: i64,
        /// The latest that this program knows.
        known: i64,
    },
    /// Another process has it.
    #[error("another nqueens process is using {0}; wait for it or stop it, or choose another --db")]
    InUse(PathBuf),
    /// A newer life of a coordinator has written to the database.
    #[error(
        "another nqueens process has taken over {0}, so this one stores nothing more and ends; everything acknowledged so \
         far is safe; run one coordinator on a database"
    )]
    Superseded(PathBuf),
    /// The path leads to no file any more, or to another one.
    #[error(
        "{0} was moved, removed or replaced while in use, so this process stores nothing more and ends; stop a \
         coordinator before you move or restore its database"
    )]
    Replaced(PathBuf),
    /// Something is where a backup should go.
    #[error("{0} exists; a backup replaces nothing, choose another name for it")]
    BackupExists(PathBuf),
    /// Nothing more can be stored.
    #[error(
        "the disk with {0} is full; free some space and start again, everything acknowledged so far is safe"
    )]
    DiskFull(PathBuf),
    /// Reading or writing failed below SQLite: a broken disk, a quota, a limit on the size of files.
    #[error(
        "{0} can't be read or written ({1}); check the disk and its quota and start again, everything acknowledged so \
         far is safe"
    )]
    DiskFailed(PathBuf, String),
    /// The database holds a run of another board.
    #[error("{path} holds a run of N = {found}, not of N = {wanted}; choose another --db")]
    OtherRun {
        /// The database.
        path: PathBuf,
        /// What it counts.
        found: BoardSize,
        /// What was asked for.
        wanted: BoardSize,
    },
    /// The database holds a run of the same board, made by another plan.
    #[error(
        "{path} holds a run with plan '{found}', not '{wanted}'; leave --plan out to resume it, or choose another --db"
    )]
    OtherPlan {
        /// The database.
        path: PathBuf,
        /// Its run's plan.
        found: String,
        /// What was asked for.
        wanted: String,
    },
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
    /// Each run waits for those before it.
    #[error("{0} runs are being planned or wait for it; submit again later, or cancel one of them")]
    TooManyPlans(usize),
    /// Only one thing can be done to it.
    #[error("run {0} is being planned; wait for its end, or cancel it")]
    BeingPlanned(RunId),
    /// An operator did not want it any more.
    #[error("run {0} was cancelled while it was being planned; nothing of it is kept")]
    PlanCancelled(RunId),
    /// Workers could do what operators do, or pass for each other.
    #[error("two tokens are the same; operators, and workers of each name, need their own")]
    SameTokens,
    /// The certificates or keys of a setting can't be used. The reason has nothing of the key.
    #[error("{0} can't be used: {1}")]
    Tls(&'static str, String),
    /// The request can't be granted.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Rows that no version of this program writes.
    #[error("the database is damaged: {0}; restore it from a backup")]
    Damaged(String),
    /// SQLite said no.
    #[error("the database failed: {0}")]
    Database(sqlx::Error),
    /// The writer met something that can't be, and broke off.
    #[error(
        "the coordinator failed ({0}); everything acknowledged so far is safe; 'nqueens doctor' tells whether the \
         database is damaged"
    )]
    WriterFailed(String),
    /// The writer has stopped.
    #[error("the coordinator is shutting down")]
    ShuttingDown,
    /// The listening address can't be had.
    #[error("can't listen on {0}: {1}; choose another address, or stop what uses this one")]
    CantListen(String, String),
    /// Serving broke off.
    #[error("serving failed: {0}")]
    Serve(#[from] tonic::transport::Error),
}

impl Error {
    /// Whether the coordinator that met this one stores nothing any more.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Superseded(_) | Self::Replaced(_) | Self::WriterFailed(_))
    }
}

/// Not its source, for it is told in full: a chain of causes would say it twice.
impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

/// Rows that no version of this program writes.
pub(crate) fn damaged(what: impl ToString) -> Error {
    Error::Damaged(what.to_string())
}
