//! Fault injection as a command.

#![forbid(unsafe_code)]

use clap::Parser;
use nqueens_faults::Campaign;

fn main() {
    Campaign::parse().lead();
}
