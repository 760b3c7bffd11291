//! What the page shows, as JSON.

use std::sync::Arc;

use nqueens_coordinator::{Error, Operator, Sums, wall_time};
use nqueens_kernel::counts::to_f64;
use nqueens_kernel::known::published;
use nqueens_model::id::RunId;
use nqueens_model::operator::{Event, Moment, RunStatus, RunView, WallTime, WorkerStatus, foremost};
use serde::Serialize;
use serde_json::{Value, json};

use crate::words;

/// Runs that are over and still shown, the latest ones; and workers in the table, those with most jobs.
const OVER_MAX: usize = 30;
const WORKERS_MAX: usize = 300;

/// Events that are shown, the latest ones; problems are counted for an hour.
const EVENTS_SHOWN: usize = 60;
const HOUR_MS: WallTime = 3_600_000;

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
    let pace = workers.iter().filter(|worker| worker.leases > 0).filter_map(|worker| worker.states_per_s);
    let pace: f64 = pace.sum();
    workers.sort_by_key(|worker| (std::cmp::Reverse(worker.leases), worker.silent_ms));
    workers.truncate(WORKERS_MAX);
    workers.sort_by(|one, other| {
        (&one.about.name, one.about.id.get()).cmp(&(&other.about.name, other.about.id.get()))
    });
    let snapshot = operator.watch().borrow().clone();
    let events = operator.events().borrow().clone();
    let sums_of = |run: &RunStatus| snapshot.run(run.progress.run).map(|run| run.sums).unwrap_or_default();
    let runs: Vec<_> = runs.into_iter().map(|run| ShownRun::new(&sums_of(&run), run)).collect();
    let (now, surplus) = (wall_time(), events.len().saturating_sub(EVENTS_SHOWN));
    let is_sent =
        |&(at, event): &(usize, &Event)| at >= surplus || event.kind.is_problem() && now - event.at < HOUR_MS;
    let events = events.iter().enumerate().filter(is_sent).map(|(_, event)| event.clone().view());
    let picture = json!({
        "at_ms": now,
        "documents": has_documents,
        "build": operator.build(),
        "disk": snapshot.room,
        "busy_workers": snapshot.busy_workers,
        "workers_seen": seen,
        "workers_listed": listed,
        "states_per_s": pace,
        "runs": runs,
        "workers": workers,
        "events": events.collect::<Vec<_>>(),
    });
    Ok(Overview { text: picture.to_string().into(), foremost })
}

/// A run, with what only the page shows.
#[derive(Serialize)]
pub(crate) struct ShownRun {
    /// Processor time of all its results, and of those that stand.
    core_hours: f64,
    core_hours_standing: f64,
    published: Option<String>,
    stuck: bool,
    file_stem: String,
    plan_words: &'static str,
    /// What came of its checks, and more about it.
    checked: (&'static str, String),
    #[serde(flatten)]
    run: RunView,
}

impl ShownRun {
    pub(crate) fn new(sums: &Sums, run: RunStatus) -> Self {
        let hours = |us: u128| to_f64(us) / 3.6e9;
        let plan = run.progress.plan;
        let known = published(plan.n()).filter(|_| plan.cells().is_none());
        Self {
            core_hours: hours(sums.cpu_us),
            core_hours_standing: hours(sums.accepted.cpu_us),
            published: known.map(|counts| counts.total.to_string()),
            stuck: run.progress.is_stuck(),
            file_stem: plan.file_stem(),
            plan_words: words::plan(plan.kind()),
            checked: words::checks(&run),
            run: run.view(),
        }
    }
}

/// What concerns one run only: the map of its jobs and how it went so far.
pub(crate) async fn detail(operator: &Operator, run: RunId) -> Result<Arc<str>, Arc<Error>> {
    let groups = operator.job_state_histogram(run, MAP_CELLS).await?;
    let told = operator.detail(run).await?;
    Ok(detail_of(run, &groups, told.being_counted, &told.moments).to_string().into())
}

/// The same as JSON, with each cell of the map in a letter.
pub(crate) fn detail_of(run: RunId, groups: &[[u32; 4]], counting: Option<u32>, history: &[Moment]) -> Value {
    let cells: String = groups.iter().copied().map(cell).collect();
    let jobs_per_cell: u32 = groups.first().map_or(0, |group| group.iter().sum());
    let map = json!({ "jobs_per_cell": jobs_per_cell, "cells": cells });
    json!({ "run": run, "map": map, "counting": counting, "history": history })
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
