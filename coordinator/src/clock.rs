//! The one source of wall time.

use std::time::{SystemTime, UNIX_EPOCH};

use nqueens_model::operator::WallTime;

/// The present by this machine's clock, in milliseconds since 1970.
pub fn wall_time() -> WallTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    WallTime::try_from(since.as_millis()).unwrap_or(WallTime::MAX)
}
