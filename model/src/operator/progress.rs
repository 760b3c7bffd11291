//! The progress of a run.

use nqueens_kernel::plan::Plan;
use serde::{Deserialize, Serialize};

use super::{Interval, RunState};
use crate::id::RunId;
use crate::json;
use crate::numbers::{self, counted, percent, thousands};

/// How far a run is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    pub run: RunId,
    /// What it counts, and how that is cut into jobs.
    #[serde(flatten, with = "json::plan")]
    pub plan: Plan,
    pub state: RunState,
    /// Number of jobs; while it is being planned, the number that is expected.
    pub jobs: u32,
    /// Jobs stored so far, while it is being planned.
    pub planned: Option<u32>,
    /// Jobs with an accepted result.
    pub done: u32,
    pub leased: u32,
    pub quarantined: u32,
    /// Share of the estimated work that is done, `0.0..=1.0`.
    #[serde(rename = "share")]
    pub share_done: f64,
    /// States visited by the jobs that are done.
    #[serde(with = "json::text")]
    pub states: u128,
    /// Estimated work of all jobs, in states.
    #[serde(with = "json::text")]
    pub estimated_states: u128,
    /// All solutions of the board, estimated from the jobs that are done; `None` while they are too few to say, and once
    /// all are done.
    pub estimated_total: Option<Interval>,
    /// How fast it goes; `None` while nobody counts, or too little is known.
    #[serde(flatten)]
    pub speed: Option<Speed>,
    /// Until all jobs are done, in seconds, if those who count go on as they do; `None` if that can't be said.
    pub time_left_s: Option<Interval>,
    /// Why no time is left to be told, for people; `None` while there is one, and of a run that is not active.
    pub waits_for: Option<String>,
    /// Results that a second machine is to count.
    pub checks: CheckCounts,
    /// Present workers that hold jobs of it; `None` if there are none, as of a run that waits.
    #[serde(rename = "busy_workers")]
    pub workers: Option<u32>,
}

impl Progress {
    /// A line for people: `N=22 40.8 %  455/1,110 jobs  112 G states/s  2 workers  1 min 31 s left (1 min 25 s..1 min 36 s)`.
    pub fn line(&self) -> String {
        let (n, jobs) = (self.plan.n(), thousands(self.jobs));
        if let Some(planned) = self.planned {
            return format!("N={n} planning: {} of about {jobs} jobs stored", thousands(planned));
        }
        let left = self.time_left_s.map(|left| {
            format!(
                "{} left ({}..{})",
                numbers::span(left.value),
                numbers::span(left.low),
                numbers::span(left.high)
            )
        });
        let parts = [
            Some(format!("N={n} {}", percent(self.share_done))),
            Some(format!("{}/{jobs} jobs", thousands(self.done))),
            (self.quarantined > 0).then(|| format!("{} in quarantine", thousands(self.quarantined))),
            self.speed.map(|speed| numbers::speed(speed.states_per_s)),
            self.workers.map(|workers| counted(workers, "worker")),
            self.waits_for.clone().or(left),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join("  ")
    }

    /// Whether somebody has jobs of it.
    pub fn is_counted(&self) -> bool {
        self.state == RunState::Active && self.leased > 0
    }

    /// Whether nothing is left but jobs in quarantine, which wait for somebody's eye.
    pub fn is_stuck(&self) -> bool {
        self.state.is_open() && self.quarantined > 0 && self.done + self.quarantined == self.jobs
    }
}

/// What became of results that a second machine was to count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckCounts {
    /// Not ended yet: without their end there is no total.
    pub open: u32,
    /// Both counted the same.
    pub agreed: u32,
    /// They differed, and the coordinator counted the job.
    pub settled: u32,
    /// The run ended, and nobody had made them.
    pub unmade: u32,
    /// Done jobs whose result was counted alike under another credential.
    pub confirmed: u32,
    /// Done jobs, or parts of them, that the coordinator has recounted to the same.
    pub recounted: u32,
}

impl CheckCounts {
    /// What became of them, for people; `None` if there were none.
    pub fn told(self) -> Option<String> {
        let parts = [
            (self.agreed, "agree"),
            (self.settled, "settled by a third count"),
            (self.open, "pending"),
            (self.unmade, "not made"),
            (self.confirmed, "under another credential or by the coordinator"),
        ];
        let parts = parts.iter().filter(|(jobs, _)| *jobs > 0);
        let parts: Vec<_> = parts.map(|(jobs, what)| format!("{} {what}", thousands(*jobs))).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// How fast a run goes: an average over its latest results.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Speed {
    /// Threads at work on it.
    pub threads: f64,
    /// States that they visit in a second, all together.
    pub states_per_s: f64,
}
