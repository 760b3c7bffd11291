//! `nqueens status`: what the runs are doing.

use std::process::ExitCode;

use clap::Args;
use nqueens_proto::id::RunId;
use nqueens_proto::operator::{CheckCounts, Interval, Progress, RunStatus};
use nqueens_proto::v1;
use serde_json::{Value, json};

use super::Json;
use super::checkup::describe_disk;
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
        let (runs, disk) = block_on(async {
            let runs = match self.run {
                Some(run) => vec![self.desk.run(run).await?],
                None => self.desk.runs().await?,
            };
            Ok((runs, self.desk.disk().await?))
        })?;
        if self.json.json {
            let runs: Vec<_> = runs.iter().map(in_json).collect();
            let mut all = json!({ "runs": runs });
            if let Some(disk) = disk {
                all["disk"] = disk_in_json(&disk);
            }
            print_line(all)?;
        } else {
            let head = format!(
                "{:<12}  {:>2}  {:<6}  {:<9}  {:>24}  {:>22}  TOTAL",
                "RUN", "N", "PLAN", "STATE", "JOBS DONE", "TIME LEFT"
            );
            print_line(head)?;
            for run in &runs {
                print_line(in_line(run))?;
            }
            for run in runs.iter().filter(|run| run.progress.checks != CheckCounts::default()) {
                print_line(format_args!("{}: {}", run.progress.run, describe_checks(run.progress.checks)))?;
            }
            if let Some(disk) = disk.filter(|disk| disk.is_short) {
                print_line(describe_disk(&disk))?;
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
        (None, None) => progress
            .estimated_total
            .map_or_else(|| "-".to_owned(), |total| format!("about {}", total.describe_count())),
    };
    let left = progress.time_left_s.map_or_else(|| "-".to_owned(), Interval::describe_time);
    let (n, plan, state) = (progress.n, run.plan.kind(), progress.state.name());
    format!("{:<12}  {n:>2}  {plan:<6}  {state:<9}  {done:>24}  {left:>22}  {total}", progress.run)
}

/// What became of results that a second machine was to count, in words.
fn describe_checks(CheckCounts { open, agreed, settled, waived }: CheckCounts) -> String {
    let parts = [
        (agreed, "agree"),
        (settled, "settled by a third machine"),
        (open, "to be counted a second time"),
        (waived, "not checked, for there was no other machine"),
    ];
    let parts = parts.iter().filter(|(jobs, _)| *jobs > 0);
    let parts: Vec<_> = parts.map(|(jobs, what)| format!("{} {what}", thousands(*jobs))).collect();
    format!("of the results to be checked, {}", parts.join(", "))
}

fn disk_in_json(disk: &v1::DiskRoom) -> Value {
    json!({ "free_bytes": disk.free_bytes, "reserve_bytes": disk.reserve_bytes, "is_short": disk.is_short })
}

/// A run as scripts read it.
pub(crate) fn in_json(run: &RunStatus) -> Value {
    let outcome = run.outcome.as_ref();
    let mut json = progress_in_json(&run.progress);
    let more = json!({
        "plan": run.plan.kind().name(),
        "priority": run.priority,
        "replicate": f64::from(run.replicate_ppm) / 1e4,
        "fingerprint": run.fingerprint.to_string(),
        "total": outcome.map(|outcome| outcome.total.to_string()),
        "count2": outcome.map(|outcome| outcome.totals.count2.to_string()),
        "count4": outcome.map(|outcome| outcome.totals.count4.to_string()),
        "count8": outcome.map(|outcome| outcome.totals.count8.to_string()),
        "check": outcome.map(|outcome| outcome.checked.name()),
        "reason": run.reason,
        "created_at_ms": run.created_at,
        "finished_at_ms": run.finished_at,
    });
    let (Value::Object(all), Value::Object(more)) = (&mut json, more) else {
        unreachable!("both are objects")
    };
    all.extend(more);
    json
}

/// How far a run is, as scripts read it.
pub(crate) fn progress_in_json(progress: &Progress) -> Value {
    let in_numbers = |Interval { value, low, high }| json!({ "value": value, "low": low, "high": high });
    let in_decimals = |Interval { value, low, high }| {
        let [value, low, high] = [value, low, high].map(|number: f64| format!("{number:.0}"));
        json!({ "value": value, "low": low, "high": high })
    };
    let checks = progress.checks;
    json!({
        "id": progress.run.to_string(),
        "n": progress.n.get(),
        "state": progress.state.name(),
        "jobs": progress.jobs,
        "done": progress.done,
        "leased": progress.leased,
        "quarantined": progress.quarantined,
        "share": progress.share_done,
        "states": progress.states.to_string(),
        "estimated_states": progress.estimated_states.to_string(),
        "estimated_total": progress.estimated_total.map(in_decimals),
        "threads": progress.speed.map(|speed| speed.threads),
        "states_per_s": progress.speed.map(|speed| speed.states_per_s),
        "time_left_s": progress.time_left_s.map(in_numbers),
        "checks": {
            "open": checks.open, "agreed": checks.agreed, "settled": checks.settled, "waived": checks.waived,
        },
    })
}
