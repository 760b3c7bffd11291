//! How a run went over time.

use serde::{Deserialize, Serialize};

use super::{Interval, WallTime};

/// A span of a run's time, and how far the run was at its end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    #[serde(rename = "at_ms")]
    pub at: WallTime,
    /// Share of the estimated work that was done, `0.0..=1.0`.
    pub share_done: f64,
    pub states_per_s: f64,
    pub total: Option<Interval>,
}

/// What a coordinator tells of one run alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunDetail {
    pub moments: Vec<Moment>,
    /// How many of its leased jobs are being counted, the others wait in their workers' queues; `None` if nobody can say.
    pub being_counted: Option<u32>,
}
