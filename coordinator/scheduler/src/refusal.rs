//! Requests that can't be granted. The other requests in the transaction go on.

use nqueens_model::credential::Credential;
use nqueens_model::id::{RunId, WorkerId};
use nqueens_model::operator::MachineName;

use crate::dispatch::Machine;

/// Why a request is refused. It has changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A plan would take the room that results need.
    #[error(
        "the coordinator's disk has less free space than its --disk-reserve; free some space and submit again"
    )]
    DiskShort,
    /// Nothing of this name.
    #[error("there is no run {0} here; 'nqueens status' lists the runs")]
    NoRun(RunId),
    /// Nobody of this name.
    #[error("no worker {0} has registered here; 'nqueens workers' lists them")]
    NoWorker(WorkerId),
    /// It was wrong too often.
    #[error(
        "{machine:#} is untrusted, and its results are refused: {reason}; examine it, then trust it again with \
         'nqueens distrust --undo {}'",
        .machine.arguments()
    )]
    Distrusted {
        /// What is untrusted.
        machine: Machine,
        /// What it did.
        reason: String,
    },
    /// The process is known under another credential.
    #[error("this process has registered under another token; start the worker again")]
    OtherCredential,
    /// Too many workers of one credential are there.
    #[error("{0} workers of credential {1} are registered and alive, and no more may be (--workers-max)")]
    TooManyWorkers(usize, Credential),
    /// The coordinator itself has this name.
    #[error("no worker may be called {0}; choose another --name")]
    ReservedName(String),
    /// The coordinator itself is this process.
    #[error("no worker's instance may be all zeros; draw 16 random bytes")]
    ReservedInstance,
    /// No machine to do that with.
    #[error("no {} of the name {machines} is here; 'nqueens workers' lists them", if *.trusted { "untrusted machine" } else { "machine" })]
    NoMachine {
        /// As asked for.
        machines: MachineName,
        /// What it was to be.
        trusted: bool,
    },
    /// It can't be paused, resumed or cancelled any more.
    #[error("run {run} is {state}; only active and paused runs can be changed")]
    RunIsOver {
        /// The run.
        run: RunId,
        /// What it is.
        state: &'static str,
    },
}
