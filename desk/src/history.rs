//! Speeds and estimates of the runs over time, a few hundred points each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nqueens_coordinator::progress::{RunProgress, Snapshot};
use nqueens_coordinator::wall_time;
use nqueens_model::id::RunId;
use nqueens_model::operator::{Interval, RunState};
use serde_json::{Value, json};
use tokio::sync::watch;

/// Time between two looks.
const EVERY: Duration = Duration::from_secs(1);

/// Points kept of a run. When there are more, every second one goes, and points are taken half as often.
const POINTS_MAX: usize = 240;

/// Runs that are followed; of more, the first to be seen are.
const RUNS_MAX: usize = 64;

/// One moment of a run.
#[derive(Clone, Copy, Debug)]
struct Point {
    at_ms: u64,
    share: f64,
    states_per_s: Option<f64>,
    total: Option<Interval>,
    left_s: Option<Interval>,
}

/// The moments of one run.
#[derive(Clone, Debug)]
struct Line {
    points: Vec<Point>,
    /// Looks between two points, and since the last.
    stride: u32,
    passed: u32,
}

impl Default for Line {
    fn default() -> Self {
        // The first look is a point.
        Self { points: Vec::new(), stride: 1, passed: 0 }
    }
}

impl Line {
    fn add(&mut self, point: Point) {
        self.passed += 1;
        if self.passed < self.stride {
            return;
        }
        self.passed = 0;
        self.points.push(point);
        if self.points.len() > POINTS_MAX {
            let mut even = [true, false].into_iter().cycle();
            self.points.retain(|_| even.next().unwrap_or(true));
            self.stride *= 2;
        }
    }
}

/// The moments of all runs that were active while somebody kept this; cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Histories(Arc<Mutex<HashMap<RunId, Line>>>);

impl Histories {
    /// Looks at the runs again and again, until the coordinator has gone.
    pub(crate) async fn keep(self, snapshots: watch::Receiver<Arc<Snapshot>>) {
        let mut ticks = tokio::time::interval(EVERY);
        while snapshots.has_changed().is_ok() {
            ticks.tick().await;
            self.note(u64::try_from(wall_time()).unwrap_or(0), &snapshots.borrow().clone());
        }
    }

    fn note(&self, at_ms: u64, snapshot: &Snapshot) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for run in snapshot.runs.iter().filter(|run| run.state == RunState::Active) {
            if lines.len() < RUNS_MAX || lines.contains_key(&run.id) {
                lines.entry(run.id).or_default().add(Point::of(at_ms, run));
            }
        }
    }

    /// One run's moments in columns; empty ones if it was not followed.
    pub(crate) fn of(&self, run: RunId) -> Value {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let points = lines.get(&run).map_or(&[][..], |line| &line.points);
        let bounds = |interval: Option<Interval>| interval.map(|found| [found.low, found.value, found.high]);
        json!({
            "at_ms": points.iter().map(|point| point.at_ms).collect::<Vec<_>>(),
            "share": points.iter().map(|point| point.share).collect::<Vec<_>>(),
            "states_per_s": points.iter().map(|point| point.states_per_s).collect::<Vec<_>>(),
            "total": points.iter().map(|point| bounds(point.total)).collect::<Vec<_>>(),
            "time_left_s": points.iter().map(|point| bounds(point.left_s)).collect::<Vec<_>>(),
        })
    }
}

impl Point {
    fn of(at_ms: u64, run: &RunProgress) -> Self {
        Self {
            at_ms,
            share: run.share_done(),
            states_per_s: run.measured.map(|measured| measured.speed.states_per_s),
            total: run.estimated_total(),
            left_s: run.time_left_s(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_keeps_few_points_evenly_spread() {
        let mut line = Line::default();
        for at_ms in 0..100_000 {
            line.add(Point { at_ms, share: 0.0, states_per_s: None, total: None, left_s: None });
            assert!(line.points.len() <= POINTS_MAX);
        }
        let gaps: Vec<_> = line.points.windows(2).map(|pair| pair[1].at_ms - pair[0].at_ms).collect();
        assert!(line.points.len() >= POINTS_MAX / 2 && gaps.iter().all(|gap| *gap == gaps[0]), "{gaps:?}");
        assert_eq!(line.points[0].at_ms, 0);
    }
}
