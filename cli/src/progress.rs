//! How far a run is, on stderr: a bar on a terminal, a line now and then elsewhere.

use std::convert::Infallible;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use nqueens_coordinator::progress::{RunProgress, Snapshot};
use nqueens_proto::id::RunId;
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
    begun: Instant,
    /// Share done when this process took the run up.
    share: f64,
    /// States visited by then.
    states: u128,
    terminal: Option<ProgressBar>,
}

impl Bar {
    pub(crate) fn new(run: RunId, snapshots: watch::Receiver<Arc<Snapshot>>) -> Self {
        let (share, states) =
            snapshots.borrow().run(run).map_or((0.0, 0), |run| (run.share_done(), run.sums.states));
        let style = ProgressStyle::with_template("{bar:32} {msg}").expect("a valid template");
        let terminal = std::io::stderr().is_terminal();
        let terminal = terminal.then(|| ProgressBar::new(STEPS).with_style(style));
        Self { run, snapshots, begun: Instant::now(), share, states, terminal }
    }

    /// Keeps showing.
    pub(crate) async fn show(&self) -> Infallible {
        let every = if self.terminal.is_some() { PICTURE_EVERY } else { LINE_EVERY };
        let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + every, every);
        loop {
            ticks.tick().await;
            let snapshot = self.snapshots.borrow().clone();
            let Some(run) = snapshot.run(self.run) else { continue };
            let text = self.text(run);
            match &self.terminal {
                Some(bar) => {
                    #[expect(
                        clippy::cast_possible_truncation,
                        clippy::cast_sign_loss,
                        reason = "a share of 1,000"
                    )]
                    bar.set_position((run.share_done() * 1e3) as u64);
                    bar.set_message(text);
                }
                None => eprintln!("{text}"),
            }
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "speeds and shares, for people")]
    fn text(&self, run: &RunProgress) -> String {
        let (share, elapsed) = (run.share_done(), self.begun.elapsed().as_secs_f64());
        // A disputed result takes its states with it.
        let speed = run.sums.states.saturating_sub(self.states) as f64 / elapsed;
        let gained = share - self.share;
        let left = if gained > 0.0 {
            let seconds = (1.0 - share) / gained * elapsed;
            HumanDuration(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)).to_string()
        } else {
            "?".to_owned()
        };
        let (done, jobs) = (thousands(run.sums.done), thousands(run.jobs));
        let quarantined = match run.sums.quarantined {
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
