//! The progress log: a line for each open run now and then, to be read after three weeks.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nqueens_proto::id::RunId;
use tokio::sync::watch;
use tracing::info;

use crate::dispatch::RunState;
use crate::progress::{Interval, RunProgress, Snapshot};

/// Lines that a speed is measured over.
const WINDOW: usize = 10;

/// A run's progress at one moment: when, thread time in microseconds, states.
type Mark = (Instant, u128, u128);

/// Writes the progress of every active run at each interval, until the snapshots end.
pub(crate) async fn keep(snapshots: watch::Receiver<Arc<Snapshot>>, every: Duration) {
    let mut marks = HashMap::<RunId, VecDeque<Mark>>::new();
    let mut ticks = tokio::time::interval(every);
    loop {
        ticks.tick().await;
        if snapshots.has_changed().is_err() {
            return;
        }
        let snapshot = snapshots.borrow().clone();
        marks.retain(|id, _| snapshot.run(*id).is_some());
        for run in snapshot.runs.iter().filter(|run| run.state == RunState::Active) {
            let marks = marks.entry(run.id).or_default();
            let now = (Instant::now(), run.sums.elapsed_us, run.sums.states);
            if let Some(first) = marks.front() {
                write(run, &snapshot, *first, now);
            }
            marks.push_back(now);
            if marks.len() > WINDOW {
                marks.pop_front();
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "speeds, for people")]
fn write(run: &RunProgress, snapshot: &Snapshot, first: Mark, now: Mark) {
    let wall_s = now.0.duration_since(first.0).as_secs_f64();
    // Threads at work on average; a result may be withdrawn meanwhile.
    let threads = now.1.saturating_sub(first.1) as f64 / 1e6 / wall_s;
    let states_per_s = now.2.saturating_sub(first.2) as f64 / wall_s;
    let eta = run.estimated_time_left().filter(|_| threads > 0.0).map(|left| left.divided_by(threads));
    info!(
        run = %run.id,
        n = %run.n,
        done = run.sums.done,
        jobs = run.jobs,
        quarantined = run.sums.quarantined,
        share = format_args!("{:.3}%", 100.0 * run.share_done()),
        states_per_s = format_args!("{states_per_s:.2e}"),
        threads = format_args!("{threads:.1}"),
        workers = snapshot.busy_workers,
        eta = %eta.map_or_else(|| "?".to_owned(), spans),
        total = %run.estimated_total().map_or_else(|| "?".to_owned(), numbers),
        "progress"
    );
}

/// `3h20m (2h50m..3h55m)`.
fn spans(seconds: Interval) -> String {
    format!("{} ({}..{})", span(seconds.value), span(seconds.low), span(seconds.high))
}

/// A time span in its two largest units.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn span(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m{:02}s", seconds % 60),
        (0, ..) => format!("{hours}h{minutes:02}m"),
        _ => format!("{days}d{hours:02}h"),
    }
}

/// `2.69e12 (2.65e12..2.73e12)`.
fn numbers(interval: Interval) -> String {
    format!("{:.4e} ({:.4e}..{:.4e})", interval.value, interval.low, interval.high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_short_and_readable() {
        let seconds = [0.2, 59.0, 61.0, 3_599.0, 3_600.0, 86_399.0, 86_400.0, 1e6];
        let texts = ["0s", "59s", "1m01s", "59m59s", "1h00m", "23h59m", "1d00h", "11d13h"];
        assert_eq!(seconds.map(span), texts);
    }
}
