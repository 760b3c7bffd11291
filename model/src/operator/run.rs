//! Runs: what is submitted, their states, and everything known about one.

use std::time::Duration;

use nqueens_kernel::job::Job;
use nqueens_kernel::plan::{Fingerprint, Plan};
use strum::{EnumString, IntoStaticStr, VariantArray};

use super::{Outcome, Progress, Standing, WallTime};
use crate::id::{RunId, WorkerId};

/// A request for a run. The same one again is the same run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submission {
    /// Drawn by the caller; it determines the run's id and the order of its jobs.
    pub request: [u8; 16],
    /// How N is split into jobs.
    pub plan: Plan,
    /// Among active runs, higher goes first.
    pub priority: i32,
    /// At least this share of its results is counted by a second machine, in millionths; 0 for none.
    pub replicate_ppm: u32,
}

impl Submission {
    /// The name of the run.
    pub fn run(&self) -> RunId {
        RunId::from_random(self.bits(0))
    }

    /// Fixes the order of the run's jobs.
    pub fn seed(&self) -> u64 {
        self.bits(8)
    }

    fn bits(&self, from: usize) -> u64 {
        u64::from_be_bytes(self.request[from..from + 8].try_into().expect("8 bytes"))
    }
}

/// What a run is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum RunState {
    /// Its jobs are being stored; none is handed out before all are.
    Planning,
    /// Hands out jobs.
    Active,
    /// Hands out nothing; takes results.
    Paused,
    /// Given up; results are set aside.
    Cancelled,
    /// All jobs done, all checks passed, has a total.
    Done,
    /// All jobs done, but a check did not pass: it has no total.
    Failed,
}

impl RunState {
    /// All states.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The state's name in the database and for people.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether there is still work: the run is neither done nor failed nor cancelled.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Planning | Self::Active | Self::Paused)
    }
}

/// A run in full.
#[derive(Clone, Debug, PartialEq)]
pub struct RunStatus {
    /// How far it is, with its name, board and state.
    pub progress: Progress,
    /// How N was cut into jobs.
    pub plan: Plan,
    /// Of the plan; `None` unless that was made to its end.
    pub fingerprint: Option<Fingerprint>,
    /// Among active runs, higher goes first.
    pub priority: i32,
    /// At least this share of its results is counted by a second machine, in millionths.
    pub replicate_ppm: u32,
    /// Which check it did not pass, if it failed.
    pub reason: Option<String>,
    /// When it was submitted.
    pub created_at: WallTime,
    /// When its first job was leased.
    pub started_at: Option<WallTime>,
    /// When it was done.
    pub finished_at: Option<WallTime>,
    /// The result, once it is done.
    pub outcome: Option<Outcome>,
    /// What the coordinator has counted itself.
    pub recounts: Recounts,
}

impl RunStatus {
    /// How far its total may be believed, once there is one.
    pub fn standing(&self) -> Option<Standing> {
        let checks = self.progress.checks;
        let (second_counts, open) = (checks.confirmed.into(), checks.open + checks.unmade);
        let outcome = self.outcome.as_ref();
        outcome.map(|outcome| Standing::new(outcome, second_counts, self.recounts.agreed.into(), open))
    }

    /// How long it waited for its first lease.
    pub fn waited(&self) -> Option<Duration> {
        Some(between(self.created_at, self.started_at?))
    }

    /// How long it was counted: from its first lease on. A board without jobs takes the time to plan it.
    pub fn took(&self) -> Option<Duration> {
        Some(between(self.started_at.unwrap_or(self.created_at), self.finished_at?))
    }

    /// About how many parts its jobs have; a small job is one part.
    pub fn parts_estimate(&self) -> u64 {
        u64::from(self.progress.jobs) * Job::parts_wanted(self.plan.states_per_job())
    }
}

/// The run that is shown to one who did not choose: one that is counted, or else one that is not over, or else the latest. The
/// oldest come first.
pub fn foremost(runs: &[RunStatus]) -> Option<RunId> {
    let counted = runs.iter().find(|run| run.progress.is_counted());
    let open = || runs.iter().find(|run| run.progress.state.is_open());
    counted.or_else(open).or(runs.last()).map(|run| run.progress.run)
}

fn between(from: WallTime, to: WallTime) -> Duration {
    Duration::from_millis(u64::try_from(to.saturating_sub(from)).unwrap_or(0))
}

/// What the coordinator has counted itself of a run, with an engine of another family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recounts {
    /// Parts that came to the same as in the accepted results; a small job is one part.
    pub agreed: u32,
    /// Parts that did not.
    pub differing: u32,
    /// Processor time for all of them, in microseconds.
    pub elapsed_us: u64,
}

/// Whose results are voided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blamed {
    /// That of the job of this number.
    Job(u32),
    /// Those of this worker.
    Worker(WorkerId),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_knows_the_states_by_these_names() {
        let names: Vec<_> = RunState::ALL.iter().map(|state| state.name()).collect();
        assert_eq!(names, ["planning", "active", "paused", "cancelled", "done", "failed"]);
        for state in RunState::ALL {
            assert_eq!(state.name().parse(), Ok(*state));
        }
    }
}
