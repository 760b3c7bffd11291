//! The one source of time.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nqueens_model::operator::WallTime;
use rustix::time::{ClockId, clock_gettime};

/// The present by this machine's clock, in milliseconds since 1970.
pub fn wall_time() -> WallTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    WallTime::try_from(since.as_millis()).unwrap_or(WallTime::MAX)
}

/// Tells how long ago it was started, with the time that this machine slept: workers on others count meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant, Duration);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(Instant::now(), uptime())
    }

    pub(crate) fn elapsed(self) -> Duration {
        // What moves clocks for tests does not reach the second one.
        self.0.elapsed().max(uptime().saturating_sub(self.1))
    }
}

fn uptime() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Boottime)).expect("a time since the machine's start")
}
