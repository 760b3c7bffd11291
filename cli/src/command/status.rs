//! `nqueens status`: what the runs are doing.

use std::process::ExitCode;

use clap::Args;
use nqueens_proto::id::RunId;
use nqueens_proto::operator::RunStatus;
use serde_json::json;

use super::Json;
use super::desk::Desk;
use crate::output::{block_on, print_line, thousands};

/// Lists the runs of a coordinator or a database with their progress and results.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens status --db nqueens-16.db --json")]
pub(crate) struct Status {
    /// Only this run
    run: Option<RunId>,

    #[command(flatten)]
    desk: Desk,

    #[command(flatten)]
    json: Json,
}

impl Status {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let runs = block_on(async {
            match self.run {
                Some(run) => Ok(vec![self.desk.run(run).await?]),
                None => self.desk.runs().await,
            }
        })?;
        if self.json.json {
            let runs: Vec<_> = runs.iter().map(in_json).collect();
            print_line(json!({ "runs": runs }))?;
        } else {
            let head = format!(
                "{:<12}  {:>2}  {:<6}  {:<9}  {:>24}  TOTAL",
                "RUN", "N", "PLAN", "STATE", "JOBS DONE"
            );
            print_line(head)?;
            for run in &runs {
                print_line(in_line(run))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn in_line(run: &RunStatus) -> String {
    let progress = &run.progress;
    let done = format!(
        "{} of {} ({:.1} %)",
        thousands(progress.done),
        thousands(progress.jobs),
        100.0 * progress.share_done
    );
    let total = match (&run.outcome, &run.reason) {
        (Some(outcome), _) => thousands(outcome.total),
        (None, Some(reason)) => reason.clone(),
        (None, None) => "-".to_owned(),
    };
    let (n, plan, state) = (progress.n, run.plan.kind(), progress.state.name());
    format!("{:<12}  {n:>2}  {plan:<6}  {state:<9}  {done:>24}  {total}", progress.run)
}

/// A run as scripts read it.
pub(crate) fn in_json(run: &RunStatus) -> serde_json::Value {
    let (progress, outcome) = (&run.progress, run.outcome.as_ref());
    json!({
        "id": progress.run.to_string(),
        "n": progress.n.get(),
        "plan": run.plan.kind().name(),
        "state": progress.state.name(),
        "priority": run.priority,
        "jobs": progress.jobs,
        "done": progress.done,
        "leased": progress.leased,
        "quarantined": progress.quarantined,
        "share": progress.share_done,
        "fingerprint": run.fingerprint.to_string(),
        "total": outcome.map(|outcome| outcome.total.to_string()),
        "count2": outcome.map(|outcome| outcome.totals.count2.to_string()),
        "count4": outcome.map(|outcome| outcome.totals.count4.to_string()),
        "count8": outcome.map(|outcome| outcome.totals.count8.to_string()),
        "check": outcome.map(|outcome| outcome.checked.name()),
        "reason": run.reason,
        "created_at_ms": run.created_at,
        "finished_at_ms": run.finished_at,
    })
}
