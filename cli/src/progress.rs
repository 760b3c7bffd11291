//! The progress of a run on stderr: a bar on a terminal, otherwise a line per interval.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use nqueens_coordinator::progress::Snapshot;
use nqueens_model::id::RunId;
use nqueens_model::operator::{Progress, RunStatus};
use tokio::sync::watch;

use crate::output::{harmless, thousands};

/// Between two lines where there is no terminal.
pub(crate) const LINE_EVERY: Duration = Duration::from_secs(10);

/// Between two pictures on a terminal.
pub(crate) const PICTURE_EVERY: Duration = Duration::from_millis(200);

/// Steps of the bar: it shows tenths of a percent.
const STEPS: u64 = 1_000;

/// A bar on a terminal, which goes when it is dropped; hidden where there is none.
pub(crate) fn bar(template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).expect("a valid template");
    ProgressBar::new(STEPS).with_style(style).with_finish(ProgressFinish::AndClear)
}

/// A bar with a line of text, cut off at the terminal's width.
pub(crate) fn text_bar() -> ProgressBar {
    bar("{bar:8} {wide_msg}")
}

/// Something else begins, which takes so many steps.
pub(crate) fn begin(bar: &ProgressBar, what: &'static str, steps: u64) {
    bar.reset();
    bar.set_length(steps);
    bar.set_message(what);
}

pub(crate) fn draw(bar: &ProgressBar, run: &Progress) {
    let planned = run.planned.map(|planned| f64::from(planned) / f64::from(run.jobs.max(1)));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of 1,000")]
    bar.set_position((planned.unwrap_or(run.share_done) * 1e3) as u64);
    bar.set_message(describe(run));
}

/// Shows a run until this is dropped: where there is no terminal, by a line per interval.
pub(crate) async fn show(run: RunId, snapshots: watch::Receiver<Arc<Snapshot>>) -> Infallible {
    let bar = text_bar();
    let every = if bar.is_hidden() { LINE_EVERY } else { PICTURE_EVERY };
    let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + every, every);
    loop {
        ticks.tick().await;
        let snapshot = snapshots.borrow().clone();
        let Some(run) = snapshot.run(run).map(Progress::from) else { continue };
        draw(&bar, &run);
        if bar.is_hidden() {
            eprintln!("{}", describe(&run));
        }
    }
}

/// A run in one line, with its estimated total at the end.
pub(crate) fn describe(run: &Progress) -> String {
    let total = run.estimated_total.map(|total| format!("  TOTAL about {}", total.describe_count()));
    run.line() + &total.unwrap_or_default()
}

/// How a run ended; `None` of one that is open.
pub(crate) fn conclusion(run: &RunStatus) -> Option<String> {
    let state = run.progress.state;
    let conclusion = || match (run.outcome.as_ref().zip(run.standing()), &run.reason) {
        (Some((outcome, standing)), _) => format!("done, TOTAL {}, {standing}", thousands(outcome.total)),
        (None, Some(reason)) => format!("failed: {}", harmless(reason)),
        (None, None) => state.name().to_owned(),
    };
    (!state.is_open()).then(conclusion)
}
