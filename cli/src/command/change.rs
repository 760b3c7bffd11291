//! `nqueens pause`, `resume` and `cancel`.

use std::io;
use std::process::ExitCode;

use clap::Args;
use nqueens_model::operator::{RunState, RunStatus};

use crate::confirm::Confirmation;
use crate::output::{Json, counted, percent};
use crate::runtime::block_on;
use crate::target::RunTarget;

/// Resumes a paused run.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens resume 0123456789ab --quarantined")]
pub(crate) struct ResumeCommand {
    /// Also count its quarantined jobs again
    #[arg(long)]
    quarantined: bool,

    #[command(flatten)]
    change: RunStateChange,
}

impl ResumeCommand {
    pub(crate) fn execute(self) -> anyhow::Result<()> {
        self.change.to(RunState::Active, self.quarantined)
    }
}

/// Cancels a run; it can't be resumed.
///
/// Of a run that is being planned, nothing is kept.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens cancel 0123456789ab --yes")]
pub(crate) struct CancelCommand {
    #[command(flatten)]
    confirmation: Confirmation,

    #[command(flatten)]
    change: RunStateChange,
}

impl CancelCommand {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let cancel = async {
            // The run that is asked about, whatever other runs there are when the answer comes.
            let (mut target, id) = self.change.run.open().await?;
            let question = question(&target.run(id).await?);
            if !self.confirmation.given("a cancelled run can't be resumed", &question).await? {
                return Ok(None);
            }
            target.change(id, RunState::Cancelled, false).await.map(Some)
        };
        let Some(run) = block_on(cancel)? else { return Ok(ExitCode::FAILURE) };
        self.change.tell(run)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// A run whose state is to change.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunStateChange {
    #[command(flatten)]
    run: RunTarget,

    #[command(flatten)]
    json: Json,
}

impl RunStateChange {
    pub(crate) fn to(self, state: RunState, retry_quarantined: bool) -> anyhow::Result<()> {
        let run = block_on(async {
            let (mut target, run) = self.run.open().await?;
            target.change(run, state, retry_quarantined).await
        })?;
        Ok(self.tell(run)?)
    }

    fn tell(&self, run: RunStatus) -> io::Result<()> {
        let (id, state) = (run.progress.run, run.progress.state.name());
        self.json.print(run.view(), format_args!("run {id} is {state}"))
    }
}

fn question(RunStatus { progress: run, .. }: &RunStatus) -> String {
    let (id, n) = (run.run, run.plan.n());
    let done = match run.planned {
        Some(planned) => format!("is being planned, {} stored", counted(planned, "job")),
        None => format!("is {} done", percent(run.share_done)),
    };
    format!("run {id}, N = {n}, {done}. A cancelled run can't be resumed. Cancel it?")
}
