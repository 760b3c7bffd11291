//! The progress log: one line per open run and interval, and failures of the database.

use std::sync::Arc;
use std::time::Duration;

use nqueens_model::PROGRESS;
use nqueens_model::operator::{Progress, RunState};
use tokio::sync::watch;
use tokio::time::{Instant, interval_at};
use tracing::{error, info};

use crate::error::Error;
use crate::progress::{RunProgress, Snapshot};

/// Writes the progress of every active run at each interval, and every failure of the database.
pub(crate) async fn keep(
    snapshots: watch::Receiver<Arc<Snapshot>>,
    mut faults: watch::Receiver<Option<Arc<Error>>>,
    every: Duration,
) {
    let mut ticks = interval_at(Instant::now() + every, every);
    loop {
        tokio::select! {
            _ = ticks.tick() => {
                let snapshot = snapshots.borrow().clone();
                for run in snapshot.runs.iter().filter(|run| run.state == RunState::Active) {
                    write(run);
                }
            }
            Ok(()) = faults.changed() => {
                if let Some(cause) = &*faults.borrow_and_update() {
                    error!(error = %cause, "the database failed; nothing acknowledged is lost");
                }
            }
        }
    }
}

/// People read the message, programs the fields.
fn write(run: &RunProgress) {
    let progress = Progress::from(run);
    let (speed, left, total) = (progress.speed, progress.time_left_s, progress.estimated_total);
    info!(
        target: PROGRESS,
        run = %run.id,
        n = run.plan.n().get(),
        done = progress.done,
        jobs = progress.jobs,
        quarantined = progress.quarantined,
        share = (1e6 * progress.share_done).round() / 1e6,
        workers = progress.workers,
        threads = speed.map(|speed| (10.0 * speed.threads).round() / 10.0),
        states_per_s = speed.map(|speed| whole(speed.states_per_s)),
        time_left_s = left.map(|left| whole(left.value)),
        time_left_low_s = left.map(|left| whole(left.low)),
        time_left_high_s = left.map(|left| whole(left.high)),
        estimated_total = total.map(|total| tracing::field::display(total.value.round())),
        estimated_total_low = total.map(|total| tracing::field::display(total.low.round())),
        estimated_total_high = total.map(|total| tracing::field::display(total.high.round())),
        "{}",
        progress.line(),
    );
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn whole(number: f64) -> u64 {
    number.round() as u64
}
