//! `nqueens status`: what the runs are doing.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use nqueens_coordinator::progress::RunProgress;
use nqueens_coordinator::{Reader, RunRow};
use serde_json::json;

use super::Json;
use crate::output::{block_on, print_line, thousands};

/// Lists the runs of a database with their progress and results.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens status --db nqueens-16.db --json")]
pub(crate) struct Status {
    /// Database file
    #[arg(long, value_name = "PATH")]
    db: PathBuf,

    #[command(flatten)]
    json: Json,
}

impl Status {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let runs = block_on(self.read())?;
        if self.json.json {
            let runs: Vec<_> = runs.iter().map(|(run, progress)| in_json(run, progress)).collect();
            print_line(json!({ "runs": runs }))?;
        } else {
            let head = format!(
                "{:<12}  {:>2}  {:<6}  {:<9}  {:>24}  TOTAL",
                "RUN", "N", "PLAN", "STATE", "JOBS DONE"
            );
            print_line(head)?;
            for (run, progress) in &runs {
                print_line(in_line(run, progress))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn read(&self) -> anyhow::Result<Vec<(RunRow, RunProgress)>> {
        let reader = Reader::open(&self.db).await?;
        let mut runs = Vec::new();
        for run in reader.runs().await? {
            let progress = reader.progress(&run).await?;
            runs.push((run, progress));
        }
        Ok(runs)
    }
}

fn in_line(run: &RunRow, progress: &RunProgress) -> String {
    let done = format!(
        "{} of {} ({:.1} %)",
        thousands(progress.sums.done),
        thousands(progress.jobs),
        100.0 * progress.share_done()
    );
    let total = match (&run.outcome, &run.reason) {
        (Some(outcome), _) => thousands(outcome.total),
        (None, Some(reason)) => reason.clone(),
        (None, None) => "-".to_owned(),
    };
    let (n, plan, state) = (run.plan.n(), run.plan.kind(), run.state.name());
    format!("{:<12}  {n:>2}  {plan:<6}  {state:<9}  {done:>24}  {total}", run.id)
}

fn in_json(run: &RunRow, progress: &RunProgress) -> serde_json::Value {
    let outcome = run.outcome.as_ref();
    let sums = &progress.sums;
    json!({
        "id": run.id.to_string(),
        "n": run.plan.n().get(),
        "plan": run.plan.kind().name(),
        "state": run.state.name(),
        "jobs": run.jobs,
        "done": sums.done,
        "leased": sums.leased,
        "quarantined": sums.quarantined,
        "share": progress.share_done(),
        "total_estimate": progress.estimated_total().map(|total| json!({
            "estimate": total.value, "low": total.low, "high": total.high,
        })),
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
