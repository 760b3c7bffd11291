//! Samples and measures on this machine's threads.

use std::num::NonZeroUsize;
use std::time::Duration;

use anyhow::ensure;
use indicatif::ProgressBar;
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::colours::RowSets;
use nqueens_kernel::engine::{Control, Kernel};
use nqueens_kernel::plan::PlanKind;
use nqueens_kernel::random::Random;
use nqueens_kernel::sampling::{Estimate, Estimates, STATES_LEFT, Sampler};
use nqueens_kernel::solver::Solver;
use nqueens_model::operator::Interval;
use serde::Serialize;

use crate::engines::{on_threads, solver};
use crate::measuring::{BOARD, TIME, count_pieces};
use crate::progress::begin;

pub(super) struct Sampling {
    pub(super) n: BoardSize,
    pub(super) kernel: Kernel,
    pub(super) threads: NonZeroUsize,
    pub(super) strata: u32,
    pub(super) seed: u64,
    pub(super) memory_max: u64,
    pub(super) progress: ProgressBar,
}

/// What there is to do, and how fast it is done.
pub(super) struct WorkEstimate {
    /// What the plan's jobs visit, by the engine's own count.
    pub(super) states: Interval,
    /// Of one thread.
    pub(super) states_per_s: f64,
    pub(super) speed_from: SpeedSource,
    /// The smaller board that was measured in place of this one.
    pub(super) scaled_from_n: Option<u32>,
    /// Of one thread.
    pub(super) core_hours: Interval,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SpeedSource {
    Given,
    Measured,
}

/// Boards of less work than this are counted.
const WORK_COUNTED: f64 = 1e8;
/// For the speed of a board that is not counted.
const TIME_MEASURED: Duration = Duration::from_secs(2);

impl Sampling {
    fn multiplies(&self, kind: PlanKind) -> bool {
        kind == PlanKind::Colours && self.n.get() >= RowSets::N_MIN
    }

    /// An error if the engine can't count this kind of plan as a run would.
    pub(super) fn check(&self, kind: PlanKind) -> anyhow::Result<()> {
        ensure!(
            !self.multiplies(kind) || self.kernel.multiplies(),
            "the {} kernel has no multiplication, so its speed can't be estimated; choose --plan border or another kernel",
            self.kernel
        );
        Ok(())
    }

    /// The solutions of the board, those that a sample of row sets comes to (if the plan has such), and the work of a plan
    /// of this kind.
    pub(super) fn board(
        &self,
        kind: PlanKind,
        speed: Option<f64>,
    ) -> anyhow::Result<(Estimate, Option<Estimate>, WorkEstimate)> {
        let sampler = Sampler::new(self.n, kind);
        let is_small = sampler.work() < WORK_COUNTED;
        let sampled = if is_small {
            sampler.count(&mut self.solver()?, &Control::default())?
        } else {
            self.descend(&sampler)?
        };
        if self.multiplies(kind) {
            let (by_row_sets, work) = self.colours(speed)?;
            return Ok((sampled.solutions, by_row_sets, work));
        }
        let (states_per_s, speed_from) = match speed {
            Some(given) => (given, SpeedSource::Given),
            // It is counted before the engine gets going: that tells no speed.
            None if is_small => {
                let large = Sampler::new(BoardSize::new(BOARD)?, kind);
                (self.measure(&large, TIME)?, SpeedSource::Measured)
            }
            None => (self.measure(&sampler, TIME_MEASURED)?, SpeedSource::Measured),
        };
        let states = interval(sampled.states);
        let core_hours = states.map(|states| states / states_per_s / 3_600.0);
        let work = WorkEstimate { states, states_per_s, speed_from, scaled_from_n: None, core_hours };
        Ok((sampled.solutions, None, work))
    }

    fn solver(&self) -> anyhow::Result<Solver> {
        solver(self.kernel.name(), self.memory_max / self.threads.get() as u64)
    }

    /// What each thread makes of its number and its solver.
    pub(super) fn on_threads<T: Send>(
        &self,
        work: impl Fn(usize, &mut Solver) -> anyhow::Result<T> + Sync,
    ) -> anyhow::Result<Vec<T>> {
        on_threads(0..self.threads.get(), |number| work(number, &mut self.solver()?))
    }

    /// The pieces that a thread takes.
    pub(super) fn share<T>(&self, thread: usize, pieces: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
        pieces.skip(thread).step_by(self.threads.get())
    }

    fn descend(&self, sampler: &Sampler) -> anyhow::Result<Estimates> {
        begin(&self.progress, "random descents", self.strata.into());
        let parts = self.on_threads(|thread, solver| {
            let control = Control::default();
            let draw = |number| {
                let draws = sampler.draw((number, self.strata), self.seed, STATES_LEFT, solver, &control)?;
                self.progress.inc(1);
                Ok((number, draws))
            };
            self.share(thread, 0..self.strata).map(draw).collect::<anyhow::Result<Vec<_>>>()
        })?;
        // In their order, so that rounding is the same for any number of threads.
        let mut strata = parts.concat();
        strata.sort_unstable_by_key(|(number, _)| *number);
        Ok(sampler.estimate(&strata.into_iter().map(|(_, draws)| draws).collect::<Vec<_>>()))
    }

    /// States that a thread counts in a second while all count: the mean over the board's work, by large pieces.
    fn measure(&self, sampler: &Sampler, time: Duration) -> anyhow::Result<f64> {
        begin(&self.progress, "measuring the speed", 0);
        let parts = self.on_threads(|thread, solver| {
            let random = Random::series(self.seed, u32::MAX - u32::try_from(thread)?);
            count_pieces(sampler, solver, random, time)
        })?;
        let (states, seconds) = parts.iter().fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
        Ok(states / seconds)
    }
}

pub(super) fn interval(sampled: Estimate) -> Interval {
    Interval { value: sampled.value, low: sampled.low(), high: sampled.high() }
}
