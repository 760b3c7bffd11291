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

/// Errors that differ are logged at once, up to this number an outage: the first is not always the one that helps.
const REASONS_MAX: usize = 4;

/// From the first call that failed to the next that succeeds.
pub(crate) struct Outage {
    pub(crate) began: Moment,
    pub(crate) again_at: Moment,
    pause: Duration,
    warn_at: Moment,
    warn_again: Duration,
    warned_of: Vec<CallError>,
}

impl Outage {
    pub(crate) fn begin(now: Moment) -> Self {
        Self {
            began: now,
            again_at: now,
            pause: PAUSE_MIN,
            warn_at: now + WARN_AGAIN,
            warn_again: WARN_AGAIN,
            warned_of: Vec::new(),
        }
    }

    /// A call failed: sets when to try again. The pauses grow, and never end.
    pub(crate) fn prolong(&mut self, now: Moment, error: &CallError, jitter: f64, coordinator: &str) {
        let pause = self.pause + self.pause.mul_f64(jitter);
        self.again_at = now + pause;
        self.pause = (2 * self.pause).min(PAUSE_MAX);
        let (for_s, pause_ms) = (now.saturating_sub(self.began).as_secs(), pause.as_millis());
        if self.is_to_be_warned_of(now, error) {
            warn!(
                %error, coordinator, for_s,
                "no coordinator: check that it runs and that the address is right; trying again until it answers"
            );
        } else {
            debug!(%error, coordinator, for_s, pause_ms, "trying again");
        }
    }

    pub(crate) fn is_to_be_warned_of(&mut self, now: Moment, error: &CallError) -> bool {
        let new = self.warned_of.len() < REASONS_MAX && !self.warned_of.contains(error);
        if new {
            self.warned_of.push(error.clone());
        }
        let due = now >= self.warn_at;
        if due {
            self.warn_again = (2 * self.warn_again).min(WARN_AT_LEAST);
            self.warn_at = now + self.warn_again;
        }
        new || due
    }

    pub(crate) fn end(self, now: Moment) {
        info!(for_s = now.saturating_sub(self.began).as_secs(), "the coordinator answers again");
    }
}
