//! `nqueens`: counts all solutions of the N-Queens problem, on one machine or on a cluster.
//!
//! Thin by intent: arguments in, calls into the other crates, text out.

#![forbid(unsafe_code)]

mod authority;
mod build;
mod client;
mod command;
mod console;
mod engines;
mod exit;
mod memory;
mod output;
mod progress;
mod runtime;
mod settings;
mod signals;
mod tls;
mod token;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = command::parse();
    arguments.start_logging();
    let log_format = arguments.log_format;
    match command::execute(arguments) {
        Ok(code) => code,
        Err(error) => console::complain(&error, log_format),
    }
}
