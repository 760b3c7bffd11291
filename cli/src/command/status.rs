//! `nqueens status`: the state of the runs.

use std::time::Duration;

use bytesize::ByteSize;
use clap::Args;
use nqueens_evidence::confidence::share_met;
use nqueens_model::operator::{DiskRoom, Interval, Progress, Recounts, RunStatus, Standing};
use serde_json::json;

use crate::names::RunPrefix;
use crate::output::{
    Json, counted, duration, harmless, percent, print_json, print_line, print_table, span, thousands,
};
use crate::runtime::block_on;
use crate::target::OperatorTarget;

/// Lists the runs of a coordinator or a database, with progress and results.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens status --db nqueens-16.db --json")]
pub(crate) struct StatusCommand {
    /// Show only this run: its id, or the first digits
    run: Option<RunPrefix>,

    #[command(flatten)]
    target: OperatorTarget,

    #[command(flatten)]
    json: Json,
}

impl StatusCommand {
    pub(crate) fn execute(self) -> anyhow::Result<()> {
        let (runs, disk) = block_on(async {
            let mut target = self.target.open()?;
            let runs = match &self.run {
                Some(run) => {
                    let id = target.find(Some(run)).await?;
                    vec![target.run(id).await?]
                }
                None => target.runs().await?,
            };
            Ok((runs, target.disk().await?))
        })?;
        if self.json.json {
            let runs: Vec<_> = runs.into_iter().map(RunStatus::view).collect();
            print_json(json!({ "runs": runs, "disk": disk }))?;
        } else {
            let heads = ["RUN", ">N", "PLAN", "STATE", ">JOBS DONE", ">TIME LEFT", "TOTAL"];
            print_table(&heads, runs.iter().map(row))?;
            for run in &runs {
                let id = run.progress.run;
                remarks(run).into_iter().try_for_each(|remark| print_line(format_args!("{id}: {remark}")))?;
            }
            if let Some(disk) = disk.filter(|disk| disk.is_short) {
                print_line(describe_disk(&disk))?;
            }
        }
        Ok(())
    }
}

/// What lists tell of a run: its id, N, plan, state, jobs, time left and total.
pub(super) fn row(run: &RunStatus) -> Vec<String> {
    let progress = &run.progress;
    let jobs = thousands(progress.jobs);
    let done = match progress.planned {
        Some(planned) => format!("{} of ~{jobs} planned", thousands(planned)),
        None => format!("{} of {jobs} ({})", thousands(progress.done), percent(progress.share_done)),
    };
    let about = |total: Interval| format!("about {}", total.describe_count());
    let total =
        run.outcome.map(|outcome| thousands(outcome.total)).or_else(|| run.reason.as_deref().map(harmless));
    let total = total.or_else(|| progress.estimated_total.map(about));
    let left = progress.time_left_s.map(|left| span(left.value));
    let unknown = || "-".to_owned();
    vec![
        progress.run.to_string(),
        progress.plan.n().to_string(),
        progress.plan.kind().to_string(),
        progress.state.name().to_owned(),
        done,
        left.or_else(|| progress.waits_for.clone()).unwrap_or_else(unknown),
        total.unwrap_or_else(unknown),
    ]
}

fn remarks(run: &RunStatus) -> Vec<String> {
    let progress = &run.progress;
    let subject = progress.plan.cells().map(|_| progress.plan.subject());
    let left = progress.time_left_s.map(|left| format!("{} left", left.describe_time()));
    let standing = run.standing().filter(|standing| *standing != Standing::Published);
    let standing = standing.map(|standing| standing.to_string());
    subject.into_iter().chain(left).chain(concerns(run)).chain(standing).collect()
}

/// What became of jobs that were counted more than once, or failed.
pub(super) fn concerns(run: &RunStatus) -> impl Iterator<Item = String> {
    let progress = &run.progress;
    let recounts = run.recounts != Recounts::default();
    let concerns = [
        (progress.quarantined > 0).then(|| describe_quarantine(progress)),
        progress.checks.told().map(|told| format!("second counts: {told}")),
        recounts.then(|| describe_recounts(run.recounts, run.parts_estimate())),
    ];
    concerns.into_iter().flatten()
}

/// Jobs in quarantine, and what opens them again.
fn describe_quarantine(progress: &Progress) -> String {
    let (run, jobs) = (progress.run, counted(progress.quarantined, "job"));
    let what = if progress.state.is_open() {
        format!("'nqueens resume {run} --quarantined' counts them again")
    } else {
        format!("the run is {}, so they are not counted again", progress.state.name())
    };
    format!("{jobs} in quarantine; {what}")
}

/// How much room there is, and what follows from it.
pub(super) fn describe_disk(disk: &DiskRoom) -> String {
    let [free, reserve] = [disk.free_bytes, disk.reserve_bytes].map(ByteSize);
    if disk.is_short {
        format!(
            "no jobs are leased: the coordinator's disk has {free} free, less than the reserve of {reserve}; free some space"
        )
    } else {
        format!("its disk has {free} free; the reserve is {reserve}")
    }
}

/// Below this many recounts wrong results could hide easily.
const RECOUNTS_TOLD: u32 = 30;

/// What the coordinator has counted itself, of about so many parts, and what that shows, in words.
pub(crate) fn describe_recounts(Recounts { agreed, differing, elapsed_us }: Recounts, parts: u64) -> String {
    let (recounted, parts) = (thousands(agreed + differing), thousands(parts));
    let time = duration(Duration::from_micros(elapsed_us));
    let outcome = match differing {
        0 if agreed < RECOUNTS_TOLD => "none differs".to_owned(),
        0 => format!(
            "none differs; if {:.2} % of the parts were wrong, this would have found it with 95 % probability",
            100.0 * share_met(agreed)
        ),
        some => format!("differing: {}", thousands(some)),
    };
    format!(
        "counted by the coordinator itself: {recounted} of about {parts} parts in {time} of processor time, {outcome}"
    )
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    #[test]
    fn recounts_say_what_they_show() {
        let elapsed_us = 3_723_450_000;
        let told = describe_recounts(Recounts { agreed: 300, differing: 0, elapsed_us }, 64_000);
        assert_snapshot!(told, @"counted by the coordinator itself: 300 of about 64,000 parts in 1 h 2 min of processor time, none differs; if 0.99 % of the parts were wrong, this would have found it with 95 % probability");
        let told = describe_recounts(Recounts { agreed: 2, differing: 1, elapsed_us }, 64_000);
        assert_snapshot!(told, @"counted by the coordinator itself: 3 of about 64,000 parts in 1 h 2 min of processor time, differing: 1");
    }
}
