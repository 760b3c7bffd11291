//! `nqueens`: counts all solutions of the N-Queens problem, on one machine or on a cluster.
//!
//! Thin by intent: arguments in, calls into the other crates, text out. Each command is one file of `command`: its options, a
//! call, an answer. What commands share is here: `target` is where an operator's command goes, a coordinator or a database.

#![forbid(unsafe_code)]

mod board;
mod build;
mod choices;
mod client;
mod command;
mod confirm;
mod console;
mod counting;
mod engine_options;
mod engines;
mod exit;
mod headings;
mod ledger_file;
mod ledger_source;
mod machine;
mod measuring;
mod memory;
mod names;
mod output;
mod permissions;
mod progress;
mod runtime;
mod signals;
mod target;
mod time;
mod tls;
mod token;
mod variables;

use std::process::ExitCode;

/// The allocator of musl serves all threads under one lock. This one takes its place in C code, too: in SQLite.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = command::parse();
    arguments.start_logging();
    let log_format = arguments.log_format;
    match command::execute(arguments) {
        Ok(code) => code,
        Err(error) => console::complain(&error, log_format),
    }
}
