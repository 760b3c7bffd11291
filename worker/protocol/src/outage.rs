//! A coordinator that does not answer: when to try again, and when to log it.

use std::time::Duration;

use tracing::{debug, info, warn};

use crate::{CallError, Moment};

/// The first pause; each following one is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// Longest pause, without its jitter.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// The log repeats itself after this long at first, then after twice as long each time.
const WARN_AGAIN: Duration = Duration::from_mins(1);

/// Longest time between two warnings.
const WARN_AT_LEAST: Duration = Duration::from_hours(1);

/// From the first call that failed to the next that succeeds.
pub(crate) struct Outage {
    began: Moment,
    pub(crate) again_at: Moment,
    pause: Duration,
    warn_at: Moment,
    warn_again: Duration,
}

impl Outage {
    pub(crate) fn begin(now: Moment) -> Self {
        Self { began: now, again_at: now, pause: PAUSE_MIN, warn_at: now, warn_again: WARN_AGAIN }
    }

    /// A call failed: sets when to try again. The pauses grow, and never end.
    pub(crate) fn prolong(&mut self, now: Moment, error: &CallError, jitter: f64, coordinator: &str) {
        let pause = self.pause + self.pause.mul_f64(jitter);
        self.again_at = now + pause;
        self.pause = (2 * self.pause).min(PAUSE_MAX);
        let (for_s, pause_ms) = (now.saturating_sub(self.began).as_secs(), pause.as_millis());
        if now >= self.warn_at {
            warn!(
                %error, coordinator, for_s,
                "no coordinator: check that it runs and that the address is right; trying again until it answers"
            );
            self.warn_at = now + self.warn_again;
            self.warn_again = (2 * self.warn_again).min(WARN_AT_LEAST);
        } else {
            debug!(%error, coordinator, for_s, pause_ms, "trying again");
        }
    }

    pub(crate) fn end(self, now: Moment) {
        info!(for_s = now.saturating_sub(self.began).as_secs(), "the coordinator answers again");
    }
}
