//! Fault injection as a command.

#![forbid(unsafe_code)]

use clap::{Parser, Subcommand};
use nqueens_faults::{Campaign, Mob};

#[derive(Parser)]
#[command(
    name = "nqueens-faults",
    args_conflicts_with_subcommands = true,
    after_help = "Example: cargo build --release && cargo run --release -p nqueens-faults -- --seed 1 --rounds 200"
)]
struct Arguments {
    #[command(subcommand)]
    other: Option<Other>,

    #[command(flatten)]
    campaign: Campaign,
}

/// What it can do beside breaking things.
#[derive(Subcommand)]
enum Other {
    Mob(Mob),
}

fn main() {
    let Arguments { other, campaign } = Arguments::parse();
    match other {
        Some(Other::Mob(mob)) => mob.lead(),
        None => campaign.lead(),
    }
}
