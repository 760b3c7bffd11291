//! A coordinator that does not answer: when to try again, and when to say so.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::Instant;
use tracing::{debug, info, warn};

use crate::client::WorkerError;

/// The log repeats itself after this long at first, then after twice as long each time.
const WARN_AGAIN: Duration = Duration::from_mins(1);

/// But at least so often.
const WARN_AT_LEAST: Duration = Duration::from_hours(1);

/// From the first call that failed to the next that succeeds.
pub(crate) struct Outage {
    began: Instant,
    pauses: ExponentialBackoff,
    warn_at: Instant,
    warn_again: Duration,
}

impl Outage {
    /// Begins now.
    pub(crate) fn begin() -> Self {
        let now = Instant::now();
        let pauses = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(100))
            .with_max_delay(Duration::from_secs(10))
            .with_jitter()
            .without_max_times()
            .build();
        Self { began: now, pauses, warn_at: now, warn_again: WARN_AGAIN }
    }

    /// A call failed: how long to wait before the next. It grows, with jitter, and never ends.
    pub(crate) fn pause(&mut self, error: &WorkerError, url: &str) -> Duration {
        let now = Instant::now();
        let pause = self.pauses.next().expect("it never gives up");
        let (for_s, pause_ms) = ((now - self.began).as_secs(), pause.as_millis());
        if now >= self.warn_at {
            warn!(
                %error, coordinator = url, for_s,
                "no coordinator: see that it runs and that the address is right; trying again until it answers"
            );
            self.warn_at = now + self.warn_again;
            self.warn_again = (2 * self.warn_again).min(WARN_AT_LEAST);
        } else {
            debug!(%error, coordinator = url, for_s, pause_ms, "trying again");
        }
        pause
    }

    /// The coordinator answers.
    pub(crate) fn end(self) {
        let for_s = self.began.elapsed().as_secs();
        info!(for_s, "the coordinator answers again");
    }
}
