//! Exit codes other than plain success and failure.

use std::fmt::Display;
use std::process::ExitCode;

use clap::Error;
use clap::error::ErrorKind;
use nqueens_worker::{CallError, WorkerError};

/// Exit code of an interrupted command whose state is kept; scripts rely on it.
pub(crate) const INTERRUPTED: u8 = 130;

/// Of `verify`: nothing is wrong, and too little is known.
pub(crate) const NOT_CONFIRMED: u8 = 3;

/// Of a worker: the coordinator refused it.
const REFUSED: u8 = 5;

/// What the exit codes of a command mean.
pub(crate) fn statuses(command: &str) -> Vec<(u8, &'static str)> {
    let of_worker = (REFUSED, "refused by the coordinator: wrong token, another version, untrusted");
    let mut all = vec![(0, "success"), (1, "failure, or a check that failed"), (2, "wrong usage")];
    all.extend((command == "worker").then_some(of_worker));
    all.extend((command == "verify").then_some((NOT_CONFIRMED, "counted, not confirmed")));
    all.push((INTERRUPTED, "interrupted, with all state kept"));
    all
}

/// The exit code of a command that failed.
pub(crate) fn failure(error: &anyhow::Error) -> ExitCode {
    match error.downcast_ref() {
        Some(WorkerError::Call(CallError::Refused(_))) => ExitCode::from(REFUSED),
        _ => ExitCode::FAILURE,
    }
}

/// The error of a program that was called the wrong way: one line, and the exit code 2.
pub(crate) fn misuse(what: impl Display) -> Error {
    Error::raw(ErrorKind::ValueValidation, format!("{what}\n"))
}
