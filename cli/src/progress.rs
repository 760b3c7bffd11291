//! The progress of a run on stderr: a bar on a terminal, otherwise a line per interval.

use std::convert::Infallible;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use nqueens_coordinator::progress::Snapshot;
use nqueens_model::id::RunId;
use nqueens_model::numbers;
use nqueens_model::operator::{Interval, Progress};
use tokio::sync::watch;

use crate::output::{percent, thousands};

/// Between two lines where there is no terminal.
pub(crate) const LINE_EVERY: Duration = Duration::from_secs(10);

/// Between two pictures on a terminal.
pub(crate) const PICTURE_EVERY: Duration = Duration::from_millis(200);

/// Steps of the bar: it shows tenths of a percent.
const STEPS: u64 = 1_000;

/// A bar with a line of text, on a terminal, cut off at its width; it goes when this is dropped.
pub(crate) struct Bar(Option<ProgressBar>);

impl Bar {
    pub(crate) fn new() -> Self {
        let style = ProgressStyle::with_template("{bar:16} {wide_msg}").expect("a valid template");
        let terminal = std::io::stderr().is_terminal();
        Self(terminal.then(|| ProgressBar::new(STEPS).with_style(style)))
    }

    /// Draws a run; false where there is no terminal.
    pub(crate) fn draw(&self, run: &Progress) -> bool {
        let Some(bar) = &self.0 else { return false };
        let planned = run.planned.map(|planned| f64::from(planned) / f64::from(run.jobs.max(1)));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of 1,000")]
        bar.set_position((planned.unwrap_or(run.share_done) * 1e3) as u64);
        bar.set_message(describe(run));
        true
    }

    /// Shows a run until this is dropped: where there is no terminal, by a line per interval.
    pub(crate) async fn show(&self, run: RunId, snapshots: watch::Receiver<Arc<Snapshot>>) -> Infallible {
        let every = if self.0.is_some() { PICTURE_EVERY } else { LINE_EVERY };
        let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + every, every);
        loop {
            ticks.tick().await;
            let snapshot = snapshots.borrow().clone();
            let Some(run) = snapshot.run(run) else { continue };
            let run = Progress::from(run);
            if !self.draw(&run) {
                eprintln!("{}", describe(&run));
            }
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// Steps of something else than a run: a bar on a terminal, which goes when this is dropped.
pub(crate) struct StepBar(ProgressBar);

impl StepBar {
    pub(crate) fn new(template: &str) -> Self {
        let style = ProgressStyle::with_template(template).expect("a valid template");
        let bar = if io::stderr().is_terminal() { ProgressBar::new(0) } else { ProgressBar::hidden() };
        bar.enable_steady_tick(PICTURE_EVERY);
        Self(bar.with_style(style))
    }

    /// Something else begins, which takes so many steps.
    pub(crate) fn phase(&self, what: &'static str, steps: u64) {
        self.0.reset();
        self.0.set_length(steps);
        self.0.set_message(what);
    }

    pub(crate) fn step(&self) {
        self.0.inc(1);
    }

    /// Prints a line above the bar.
    pub(crate) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.0.suspend(print)
    }

    pub(crate) fn is_hidden(&self) -> bool {
        self.0.is_hidden()
    }
}

impl Drop for StepBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// How far a run is that is being planned.
pub(crate) fn describe_planning(run: &Progress) -> String {
    let (planned, jobs) = (thousands(run.planned.unwrap_or(run.jobs)), thousands(run.jobs));
    format!("{planned} of about {jobs} jobs stored")
}

/// Progress, time left, speed and estimated total of a run, in one line; what matters most comes first.
pub(crate) fn describe(run: &Progress) -> String {
    if run.planned.is_some() {
        return format!("planning, {}", describe_planning(run));
    }
    let (share, done, jobs) = (percent(run.share_done), thousands(run.done), thousands(run.jobs));
    let left = run.time_left_s.map_or_else(|| "?".to_owned(), Interval::describe_time);
    let parts = [
        Some(format!("{share}, {left} left, {done} of {jobs} jobs")),
        (run.quarantined > 0).then(|| format!("{} in quarantine", thousands(run.quarantined))),
        (run.checks.open > 0).then(|| format!("{} to check", thousands(run.checks.open))),
        run.speed.map(|speed| numbers::speed(speed.states_per_s)),
        run.estimated_total.map(|total| format!("TOTAL about {}", total.describe_count())),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
