//! What the page shows, as JSON.

use std::sync::Arc;

use nqueens_coordinator::{Error, Operator, Sums, json, wall_time};
use nqueens_kernel::counts::to_f64;
use nqueens_kernel::known::published;
use nqueens_model::id::RunId;
use nqueens_model::operator::{Moment, RunStatus, WorkerStatus, foremost};
use serde_json::{Value, json};

use crate::words;

/// Runs that are over and still shown, the latest ones; and workers in the table, those with most jobs.
const OVER_MAX: usize = 30;
const WORKERS_MAX: usize = 300;

/// Events that are shown, the latest ones.
const EVENTS_SHOWN: usize = 60;

/// Cells of a map, at most; a cell stands for some jobs that are neighbours in the plan.
pub const MAP_CELLS: usize = 2_000;

/// Everything but what concerns one run only.
#[derive(Clone)]
pub(crate) struct Overview {
    pub(crate) text: Arc<str>,
    /// The run that is shown to one who did not choose.
    pub(crate) foremost: Option<RunId>,
}

/// Looks at all runs, workers and events.
pub(crate) async fn paint(operator: &Operator, has_documents: bool) -> Result<Overview, Arc<Error>> {
    let mut runs = operator.runs().await?;
    let foremost = foremost(&runs);
    let over = runs.iter().filter(|run| !run.progress.state.is_open()).count();
    let mut surplus = over.saturating_sub(OVER_MAX);
    runs.retain(|run| {
        let kept = run.progress.state.is_open() || surplus == 0;
        surplus -= usize::from(!kept);
        kept
    });
    let mut workers = operator.workers().await?;
    let seen = workers.iter().filter(|worker| worker.present).count();
    workers.retain(WorkerStatus::is_listed);
    let listed = workers.len();
    workers.sort_by_key(|worker| (std::cmp::Reverse(worker.leases), worker.silent_ms));
    workers.truncate(WORKERS_MAX);
    workers.sort_by(|one, other| {
        (&one.about.name, one.about.id.get()).cmp(&(&other.about.name, other.about.id.get()))
    });
    let snapshot = operator.watch().borrow().clone();
    let events = operator.events().borrow().clone();
    let sums_of = |run: &RunStatus| snapshot.run(run.progress.run).map(|run| run.sums).unwrap_or_default();
    let picture = json!({
        "at_ms": wall_time(),
        "documents": has_documents,
        "build": operator.build(),
        "disk": snapshot.room,
        "busy_workers": snapshot.busy_workers,
        "workers_seen": seen,
        "workers_listed": listed,
        "runs": runs.iter().map(|run| shown(run, &sums_of(run))).collect::<Vec<_>>(),
        "workers": workers,
        "events": events.iter().skip(events.len().saturating_sub(EVENTS_SHOWN)).map(json::event).collect::<Vec<_>>(),
    });
    Ok(Overview { text: picture.to_string().into(), foremost })
}

/// A run, with the processor time of all its results and of those that stand.
pub(crate) fn shown(run: &RunStatus, sums: &Sums) -> Value {
    let hours = |us: u128| to_f64(us) / 3.6e9;
    let mut json = json::run(run);
    json["core_hours"] = hours(sums.cpu_us).into();
    json["core_hours_standing"] = hours(sums.accepted.cpu_us).into();
    let known = published(run.progress.plan.n()).filter(|_| run.progress.plan.cells().is_none());
    json["published"] = known.map(|counts| counts.total.to_string()).into();
    json["stuck"] = run.progress.is_stuck().into();
    json["file_stem"] = run.progress.plan.file_stem().into();
    json["plan_words"] = words::plan(run.progress.plan.kind()).into();
    json["checked"] = words::checks(run).map(|(outcome, more)| json!([outcome, more])).into();
    json
}

/// What concerns one run only: the map of its jobs and how it went so far.
pub(crate) async fn detail(operator: &Operator, run: RunId) -> Result<Arc<str>, Arc<Error>> {
    let groups = operator.job_state_histogram(run, MAP_CELLS).await?;
    let told = operator.detail(run).await?;
    Ok(detail_of(run, &groups, told.being_counted, &told.moments).to_string().into())
}

/// The same, of what is known of the run.
pub(crate) fn detail_of(run: RunId, groups: &[[u32; 4]], counting: Option<u32>, moments: &[Moment]) -> Value {
    let cells: String = groups.iter().copied().map(cell).collect();
    let group = groups.first().map_or(0, |group| group.iter().sum());
    json!({
        "run": run.to_string(),
        "map": { "jobs_per_cell": group, "cells": cells },
        "counting": counting,
        "history": moments,
    })
}

/// How a group of jobs stands, in a letter: `q` has one in quarantine; `0`..`4` tells how much is done, none to all; `a`..`d`
/// the same of a group that somebody is counting.
fn cell([ready, leased, done, quarantined]: [u32; 4]) -> char {
    if quarantined > 0 {
        return 'q';
    }
    let all = u64::from(ready) + u64::from(leased) + u64::from(done);
    let level = match (done, u64::from(done) == all) {
        (_, true) => 4,
        (0, _) => 0,
        _ => 1 + (3 * u64::from(done) / all).min(2),
    };
    let from = if leased > 0 { b'a' } else { b'0' };
    char::from(from + u8::try_from(level).expect("at most 4"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_tells_how_its_jobs_stand() {
        let cells = [
            ([5, 0, 0, 0], '0'),
            ([4, 0, 1, 0], '1'),
            ([3, 0, 3, 0], '2'),
            ([1, 0, 9, 0], '3'),
            ([0, 0, 5, 0], '4'),
            ([4, 1, 0, 0], 'a'),
            ([0, 1, 9, 0], 'd'),
            ([0, 1, 9, 1], 'q'),
        ];
        for (jobs, letter) in cells {
            assert_eq!(cell(jobs), letter, "{jobs:?}");
        }
    }
}
