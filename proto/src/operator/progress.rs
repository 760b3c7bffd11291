//! How far a run is.

use nqueens_kernel::board::BoardSize;

use super::{Interval, RunState, decimal, run_id};
use crate::convert::{InvalidMessage, invalid};
use crate::id::RunId;
use crate::v1;

/// How far a run is.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Its name.
    pub run: RunId,
    /// The board that it counts.
    pub n: BoardSize,
    /// What it is doing.
    pub state: RunState,
    /// Number of jobs.
    pub jobs: u32,
    /// Jobs with an accepted result.
    pub done: u32,
    /// Jobs that somebody counts.
    pub leased: u32,
    /// Jobs in quarantine.
    pub quarantined: u32,
    /// Share of the estimated work that is done, `0.0..=1.0`.
    pub share_done: f64,
    /// States visited for the jobs that are done.
    pub states: u128,
    /// Estimated work of all jobs, in states.
    pub estimated_states: u128,
    /// All solutions of the board, estimated from the jobs that are done; `None` while they are too few to say, and once
    /// all are done.
    pub estimated_total: Option<Interval>,
    /// How fast it goes; `None` while nobody counts, or too little is known.
    pub speed: Option<Speed>,
    /// Until all jobs are done, in seconds, if as many threads go on counting; `None` if that can't be said.
    pub time_left_s: Option<Interval>,
    /// Results that a second machine is to count.
    pub checks: CheckCounts,
}

/// What became of results that a second machine was to count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckCounts {
    /// Not ended yet: without their end there is no total.
    pub open: u32,
    /// Both counted the same.
    pub agreed: u32,
    /// They differed, and a third machine agreed with one of them.
    pub settled: u32,
    /// There was no other machine to ask.
    pub waived: u32,
}

impl From<CheckCounts> for v1::CheckCounts {
    fn from(CheckCounts { open, agreed, settled, waived }: CheckCounts) -> Self {
        Self { open, agreed, settled, waived }
    }
}

impl From<v1::CheckCounts> for CheckCounts {
    fn from(v1::CheckCounts { open, agreed, settled, waived }: v1::CheckCounts) -> Self {
        Self { open, agreed, settled, waived }
    }
}

impl Progress {
    /// Whether nothing is left but jobs in quarantine, which wait for somebody's eye.
    pub fn is_stuck(&self) -> bool {
        self.state.is_open() && self.quarantined > 0 && self.done + self.quarantined == self.jobs
    }
}

impl From<Progress> for v1::RunProgress {
    fn from(progress: Progress) -> Self {
        Self {
            run: progress.run.get(),
            n: progress.n.get(),
            state: v1::RunState::from(progress.state).into(),
            jobs: progress.jobs,
            done: progress.done,
            leased: progress.leased,
            quarantined: progress.quarantined,
            share_done: progress.share_done,
            states: progress.states.to_string(),
            estimated_states: progress.estimated_states.to_string(),
            estimated_total: progress.estimated_total.map(Into::into),
            speed: progress.speed.map(Into::into),
            time_left_s: progress.time_left_s.map(Into::into),
            checks: Some(progress.checks.into()),
        }
    }
}

impl TryFrom<v1::RunProgress> for Progress {
    type Error = InvalidMessage;

    fn try_from(wire: v1::RunProgress) -> Result<Self, Self::Error> {
        let accounted = u64::from(wire.done) + u64::from(wire.leased) + u64::from(wire.quarantined);
        if accounted > u64::from(wire.jobs) {
            return Err(invalid("jobs", "is less than those done, leased and in quarantine"));
        }
        if !(0.0..=1.0).contains(&wire.share_done) {
            return Err(invalid("share_done", "must be in 0..1"));
        }
        let estimate =
            |field, wire: Option<v1::Estimate>| wire.map(|wire| Interval::parse(field, wire)).transpose();
        Ok(Self {
            run: run_id(wire.run)?,
            n: BoardSize::new(wire.n).map_err(|error| invalid("n", error))?,
            state: wire.state().try_into()?,
            jobs: wire.jobs,
            done: wire.done,
            leased: wire.leased,
            quarantined: wire.quarantined,
            share_done: wire.share_done,
            states: decimal("states", &wire.states)?,
            estimated_states: decimal("estimated_states", &wire.estimated_states)?,
            estimated_total: estimate("estimated_total", wire.estimated_total)?,
            speed: wire.speed.map(Speed::try_from).transpose()?,
            time_left_s: estimate("time_left_s", wire.time_left_s)?,
            checks: wire.checks.map(Into::into).unwrap_or_default(),
        })
    }
}

/// How fast a run goes: an average over its latest results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// Threads at work on it.
    pub threads: f64,
    /// States that they visit in a second, all together.
    pub states_per_s: f64,
}

impl From<Speed> for v1::Speed {
    fn from(speed: Speed) -> Self {
        Self { threads: speed.threads, states_per_s: speed.states_per_s }
    }
}

impl TryFrom<v1::Speed> for Speed {
    type Error = InvalidMessage;

    fn try_from(wire: v1::Speed) -> Result<Self, Self::Error> {
        let is_speed = |number: f64| number.is_finite() && number >= 0.0;
        if !is_speed(wire.threads) || !is_speed(wire.states_per_s) {
            return Err(invalid("speed", "must be made of finite numbers that are not negative"));
        }
        Ok(Self { threads: wire.threads, states_per_s: wire.states_per_s })
    }
}
