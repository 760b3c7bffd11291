//! The one source of time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nqueens_model::operator::WallTime;
use rustix::time::{ClockId, clock_gettime};

/// The present by this machine's clock, in milliseconds since 1970.
pub fn wall_time() -> WallTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    WallTime::try_from(since.as_millis()).unwrap_or(WallTime::MAX)
}

/// A steady clock, which goes on while this machine sleeps: workers on others count meanwhile.
pub(crate) fn uptime() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Boottime)).expect("a time since the machine's start")
}
