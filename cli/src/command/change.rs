//! `nqueens pause`, `resume` and `cancel`: an operator's word on a run.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::Args;
use nqueens_model::id::RunId;
use nqueens_model::operator::{RunState, RunStatus};

use super::desk::Desk;
use crate::exit::misuse;
use crate::output::{Json, print_line};
use crate::runtime::block_on;

/// Hands out no more jobs of a run; what workers hold they may finish.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens pause 0123456789ab")]
pub(crate) struct Pause {
    /// The run, as 'nqueens status' lists it
    run: RunId,

    #[command(flatten)]
    desk: Desk,

    #[command(flatten)]
    json: Json,
}

impl Pause {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        report(&block_on(self.desk.change(self.run, RunState::Paused, false))?, self.json)
    }
}

/// Hands out jobs of a paused run again.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens resume 0123456789ab --quarantined")]
pub(crate) struct Resume {
    /// The run, as 'nqueens status' lists it
    run: RunId,

    /// Count its quarantined jobs anew, whatever was reported for them
    #[arg(long)]
    quarantined: bool,

    #[command(flatten)]
    desk: Desk,

    #[command(flatten)]
    json: Json,
}

impl Resume {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        report(&block_on(self.desk.change(self.run, RunState::Active, self.quarantined))?, self.json)
    }
}

/// Gives a run up for good.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens cancel 0123456789ab --yes")]
pub(crate) struct Cancel {
    /// The run, as 'nqueens status' lists it
    run: RunId,

    /// Do not ask
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    desk: Desk,

    #[command(flatten)]
    json: Json,
}

impl Cancel {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        if !self.yes && !self.confirmed()? {
            eprintln!("nothing was changed");
            return Ok(ExitCode::FAILURE);
        }
        report(&block_on(self.desk.change(self.run, RunState::Cancelled, false))?, self.json)
    }

    /// Asks somebody at a terminal.
    fn confirmed(&self) -> anyhow::Result<bool> {
        if !std::io::stdin().is_terminal() {
            misuse("a cancelled run can't be taken up again; give --yes if that is what you want").exit();
        }
        let run = block_on(self.desk.run(self.run))?.progress;
        eprint!(
            "run {}, N = {}, {:.1} % done, can't be taken up again once it is cancelled. Cancel it? [y/N] ",
            run.run,
            run.n,
            100.0 * run.share_done
        );
        std::io::stderr().flush()?;
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer)?;
        Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
    }
}

fn report(run: &RunStatus, json: Json) -> anyhow::Result<ExitCode> {
    if json.json {
        print_line(nqueens_desk::json::run(run))?;
    } else {
        print_line(format_args!("run {} is {}", run.progress.run, run.progress.state.name()))?;
    }
    Ok(ExitCode::SUCCESS)
}
