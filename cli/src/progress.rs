//! How far a run is, on stderr: a bar on a terminal, a line now and then elsewhere.

use std::convert::Infallible;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use nqueens_coordinator::progress::Snapshot;
use nqueens_proto::id::RunId;
use nqueens_proto::operator::Progress;
use tokio::sync::watch;

use crate::output::thousands;

/// Between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Between two pictures on a terminal.
const PICTURE_EVERY: Duration = Duration::from_millis(200);

/// Steps of the bar: it shows tenths of a percent.
const STEPS: u64 = 1_000;

/// Shows one run's progress until it is dropped.
pub(crate) struct Bar {
    run: RunId,
    snapshots: watch::Receiver<Arc<Snapshot>>,
    start: Start,
    terminal: Option<ProgressBar>,
}

/// Where a run stood when this process first saw it: speed and time left are reckoned from there.
pub(crate) struct Start {
    at: Instant,
    share: f64,
    states: u128,
}

impl Bar {
    pub(crate) fn new(run: RunId, snapshots: watch::Receiver<Arc<Snapshot>>) -> Self {
        let start = snapshots.borrow().run(run).map(|run| Start::at(&run.into()));
        let start = start.unwrap_or_else(Start::from_nothing);
        let style = ProgressStyle::with_template("{bar:32} {msg}").expect("a valid template");
        let terminal = std::io::stderr().is_terminal();
        let terminal = terminal.then(|| ProgressBar::new(STEPS).with_style(style));
        Self { run, snapshots, start, terminal }
    }

    /// Keeps showing.
    pub(crate) async fn show(&self) -> Infallible {
        let every = if self.terminal.is_some() { PICTURE_EVERY } else { LINE_EVERY };
        let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + every, every);
        loop {
            ticks.tick().await;
            let snapshot = self.snapshots.borrow().clone();
            let Some(run) = snapshot.run(self.run) else { continue };
            let run = Progress::from(run);
            let text = self.start.describe(&run);
            match &self.terminal {
                Some(bar) => {
                    #[expect(
                        clippy::cast_possible_truncation,
                        clippy::cast_sign_loss,
                        reason = "a share of 1,000"
                    )]
                    bar.set_position((run.share_done * 1e3) as u64);
                    bar.set_message(text);
                }
                None => eprintln!("{text}"),
            }
        }
    }
}

impl Start {
    /// Now.
    pub(crate) fn at(run: &Progress) -> Self {
        Self { at: Instant::now(), share: run.share_done, states: run.states }
    }

    fn from_nothing() -> Self {
        Self { at: Instant::now(), share: 0.0, states: 0 }
    }

    /// How far a run is, how fast it goes, and what time it will take, in one line.
    #[expect(clippy::cast_precision_loss, reason = "speeds and shares, for people")]
    pub(crate) fn describe(&self, run: &Progress) -> String {
        let (share, elapsed) = (run.share_done, self.at.elapsed().as_secs_f64());
        // A job that is counted anew takes its states back.
        let speed = run.states.saturating_sub(self.states) as f64 / elapsed;
        let gained = share - self.share;
        let left = if gained > 0.0 {
            let seconds = (1.0 - share) / gained * elapsed;
            HumanDuration(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)).to_string()
        } else {
            "?".to_owned()
        };
        let (done, jobs) = (thousands(run.done), thousands(run.jobs));
        let quarantined = match run.quarantined {
            0 => String::new(),
            count => format!(", {count} in quarantine"),
        };
        format!(
            "{:.1} %, {done} of {jobs} jobs{quarantined}, {speed:.2e} states/s, {left} left",
            share * 100.0
        )
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.terminal {
            bar.finish_and_clear();
        }
    }
}
