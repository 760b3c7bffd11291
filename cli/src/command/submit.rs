//! `nqueens submit`: plans a run on a coordinator.

use std::process::ExitCode;

use clap::Args;
use nqueens_kernel::board::BoardSize;

use super::Json;
use super::choices::PlanChoice;
use super::desk::Contact;
use super::status::in_json;
use crate::output::{block_on, print_line};

/// Plans a run on a coordinator, and prints the run's id.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens submit 18 --coordinator http://head:7327")]
pub(crate) struct Submit {
    /// Board size, 1..31
    #[arg(allow_negative_numbers = true)]
    n: BoardSize,

    /// How the board is cut into jobs
    #[arg(long, default_value_t = PlanChoice::Auto)]
    plan: PlanChoice,

    /// Estimated states a job; smaller jobs mean less work lost to a dead worker [default: by board size]
    #[arg(long, value_name = "STATES", value_parser = clap::value_parser!(u64).range(1..=1 << 62))]
    job_states: Option<u64>,

    /// Among active runs, higher goes first
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    priority: i32,

    #[command(flatten)]
    contact: Contact,

    #[command(flatten)]
    json: Json,
}

impl Submit {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let plan = self.plan.cut(self.n, self.job_states);
        let run = block_on(async { self.contact.client()?.submit(plan, self.priority).await })?;
        if self.json.json {
            print_line(in_json(&run))?;
        } else {
            print_line(run.progress.run)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
