//! How a run went over time.

use nqueens_kernel::counts::to_f64;
use serde::{Deserialize, Serialize};

use super::{Interval, WallTime};

/// A span of a run's time, and how far the run was at its end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// The end of the span.
    #[serde(rename = "at_ms")]
    pub at: WallTime,
    /// Share of the estimated work that was done, `0.0..=1.0`.
    pub share_done: f64,
    /// How fast it went in the span.
    pub states_per_s: f64,
    /// The estimate of its total, if there was one.
    pub total: Option<Interval>,
}

/// What a coordinator tells of one run alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunDetail {
    /// How it went over time, oldest moment first.
    pub moments: Vec<Moment>,
    /// How many of its leased jobs are being counted, the others wait in their workers' queues; `None` if nobody can say.
    pub being_counted: Option<u32>,
    /// Processor time of all its results, also of second counts, in microseconds; `None` if it was not told.
    pub cpu_us: Option<u64>,
}

impl RunDetail {
    /// The processor time, for people.
    pub fn core_hours(&self) -> Option<f64> {
        self.cpu_us.map(|us| to_f64(us) / 3.6e9)
    }
}
