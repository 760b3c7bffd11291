//! Exit codes other than plain success and failure.

use std::fmt::Display;

use clap::Error;
use clap::error::ErrorKind;

/// Exit code of an interrupted command whose state is kept; scripts rely on it.
pub(crate) const INTERRUPTED: u8 = 130;

/// The error of a program that was called the wrong way: one line, and the exit code 2.
pub(crate) fn misuse(what: impl Display) -> Error {
    Error::raw(ErrorKind::ValueValidation, format!("{what}\n"))
}
