//! Requests that can't be granted. The other requests in the transaction go on.

use nqueens_model::credential::Credential;
use nqueens_model::id::{RunId, WorkerId};
use nqueens_model::operator::MachineName;

use crate::dispatch::Machine;

/// Why a request is refused. It has changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error(
        "the coordinator's disk has less free space than its --disk-reserve; free some space and submit again"
    )]
    DiskShort,
    #[error("there is no run {0} here; 'nqueens status' lists the runs")]
    NoRun(RunId),
    #[error("no worker {0} has registered here; 'nqueens workers' lists them")]
    NoWorker(WorkerId),
    #[error(
        "{machine:#} is untrusted, and its results are refused: {reason}; examine it, then trust it again with \
         'nqueens distrust --undo {}'",
        .machine.arguments()
    )]
    Distrusted { machine: Machine, reason: String },
    #[error("this process has registered under another token; start the worker again")]
    OtherCredential,
    #[error("{0} workers of credential {1} are registered and alive, and no more may be (--workers-max)")]
    TooManyWorkers(usize, Credential),
    #[error("no worker may be called {0}; choose another --name")]
    ReservedName(String),
    #[error("no worker's instance may be all zeros; draw 16 random bytes")]
    ReservedInstance,
    #[error("no {}machine {} is here; 'nqueens workers --all' lists them", if *.trusted { "untrusted " } else { "" }, of(machines))]
    NoMachine { machines: MachineName, trusted: bool },
    #[error("run {run} is {state}; only active and paused runs can be changed")]
    RunIsOver { run: RunId, state: &'static str },
}

fn of(machines: &MachineName) -> String {
    match machines {
        MachineName::One { .. } => format!("of the name {machines}"),
        MachineName::All { credential } => format!("of credential {credential}"),
    }
}
