//! Samples and measures on this machine's threads.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::colours::RowSets;
use nqueens_kernel::engine::{Control, Kernel};
use nqueens_kernel::halves::{Orbits, SharedTables};
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_kernel::random::Random;
use nqueens_kernel::sampling::{Estimate, Estimates, STATES_LEFT, Sampler};
use nqueens_kernel::solver::Solver;
use nqueens_kernel::unit::Unit;
use nqueens_model::operator::Interval;
use strum::IntoStaticStr;

use super::super::measuring::{BOARD, TIME, count_pieces, timed};
use super::progress::SamplingProgress;
use crate::engines::ENGINES;

pub(super) struct Sampling {
    pub(super) n: BoardSize,
    pub(super) kernel: Kernel,
    pub(super) threads: NonZeroUsize,
    pub(super) strata: u32,
    pub(super) seed: u64,
    pub(super) memory_max: u64,
    pub(super) progress: SamplingProgress,
}

/// What there is to do, and how fast it is done.
pub(super) struct WorkEstimate {
    /// What the plan's jobs visit, by the engine's own count.
    pub(super) states: Interval,
    /// Of one thread.
    pub(super) states_per_s: f64,
    /// Seconds of one thread.
    pub(super) core_seconds: Interval,
    pub(super) source: SpeedSource,
    /// The smaller board that was measured in place of this one.
    pub(super) scaled_from: Option<BoardSize>,
}

/// Where a speed comes from.
#[derive(Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(super) enum SpeedSource {
    Given,
    Measured,
}

/// Boards of less work than this are counted.
const WORK_COUNTED: f64 = 1e8;
/// For the speed of a board that is not counted.
const TIME_MEASURED: Duration = Duration::from_secs(2);
/// Ranges of column sets that are measured.
const RANGES: usize = 128;
/// Half boards that are scaled up may be wrong by this factor.
pub(super) const SCALED_WITHIN: f64 = 2.0;
/// Half boards beyond take too much time and memory to be measured.
const HALVES_MEASURED: u32 = 22;

impl Sampling {
    fn joins(&self, kind: PlanKind) -> bool {
        kind == PlanKind::Halves && self.n.get() >= Orbits::N_MIN
    }

    fn multiplies(&self, kind: PlanKind) -> bool {
        kind == PlanKind::Colours && self.n.get() >= RowSets::N_MIN
    }

    /// An error if the engine can't count this kind of plan as a run would.
    pub(super) fn check(&self, kind: PlanKind) -> anyhow::Result<()> {
        let missing = if self.joins(kind) { "half-board join" } else { "multiplication" };
        ensure!(
            !(self.joins(kind) || self.multiplies(kind)) || self.kernel >= Kernel::Portable,
            "the {} kernel has no {missing}, so its speed can't be estimated; choose --plan border or another kernel",
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
            sampler.count(&mut self.solver(&self.tables())?, &Control::default())?
        } else {
            self.descend(&sampler)?
        };
        if self.joins(kind) {
            return Ok((sampled.solutions, None, self.halves(speed)?));
        }
        if self.multiplies(kind) {
            let (by_row_sets, work) = self.colours(speed)?;
            return Ok((sampled.solutions, by_row_sets, work));
        }
        let (states_per_s, source) = match speed {
            Some(given) => (given, SpeedSource::Given),
            // It is counted before the engine gets going: that tells no speed.
            None if is_small => {
                let large = Sampler::new(BoardSize::new(BOARD)?, kind);
                (self.measure(&large, TIME)?, SpeedSource::Measured)
            }
            None => (self.measure(&sampler, TIME_MEASURED)?, SpeedSource::Measured),
        };
        let states = interval(sampled.states);
        let core_seconds = states.map(|states| states / states_per_s);
        let work = WorkEstimate { states, states_per_s, core_seconds, source, scaled_from: None };
        Ok((sampled.solutions, None, work))
    }

    fn tables(&self) -> Arc<SharedTables> {
        Arc::new(SharedTables::new(self.memory_max, self.threads.get()))
    }

    fn solver(&self, tables: &Arc<SharedTables>) -> anyhow::Result<Solver> {
        let missing = || format!("this machine can't run the {} kernel", self.kernel);
        Ok(Solver::new(ENGINES(self.kernel.name()).with_context(missing)?, tables))
    }

    /// What each thread makes of its number and its solver.
    pub(super) fn on_threads<T: Send>(
        &self,
        work: impl Fn(usize, &mut Solver) -> anyhow::Result<T> + Sync,
    ) -> anyhow::Result<Vec<T>> {
        let (tables, work) = (&self.tables(), &work);
        thread::scope(|scope| {
            let thread = |number| scope.spawn(move || work(number, &mut self.solver(tables)?));
            let started: Vec<_> = (0..self.threads.get()).map(thread).collect();
            started.into_iter().map(|thread| thread.join().expect("a sampling thread panicked")).collect()
        })
    }

    /// The pieces that a thread takes.
    pub(super) fn share<T>(&self, thread: usize, pieces: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
        pieces.skip(thread).step_by(self.threads.get())
    }

    fn descend(&self, sampler: &Sampler) -> anyhow::Result<Estimates> {
        self.progress.phase("random descents", self.strata.into());
        let parts = self.on_threads(|thread, solver| {
            let control = Control::default();
            let draw = |number| {
                let draws = sampler.draw((number, self.strata), self.seed, STATES_LEFT, solver, &control)?;
                self.progress.step();
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
        self.progress.phase("measuring the speed", 0);
        let parts = self.on_threads(|thread, solver| {
            let random = Random::series(self.seed, u32::MAX - u32::try_from(thread)?);
            count_pieces(sampler, solver, random, time)
        })?;
        let (states, seconds) = parts.iter().fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
        Ok(states / seconds)
    }

    /// The work of the half-board join, by some ranges of column sets: of this board or, where that would take too
    /// long, of a smaller one of the same parity.
    fn halves(&self, speed: Option<f64>) -> anyhow::Result<WorkEstimate> {
        let beyond = self.n.get().saturating_sub(HALVES_MEASURED);
        let board = BoardSize::new(self.n.get() - beyond.next_multiple_of(2))?;
        let mut ranges: Vec<_> = short_ranges(board).collect();
        let (all, mut random) = (real(ranges.len() as u64), Random::series(self.seed, 0));
        let chosen: Vec<_> =
            (0..RANGES.min(ranges.len())).map(|_| ranges.swap_remove(random.index(ranges.len()))).collect();
        self.progress.phase("column sets", chosen.len() as u64);
        let parts = self.on_threads(|thread, solver| {
            let control = Control::default();
            // Whoever comes first builds the tables: that is not the speed of the counting.
            solver.count_unit(&chosen[0], &control)?;
            let mut measured = Vec::new();
            for range in self.share(thread, chosen.iter()) {
                let (tally, seconds) = timed(|| solver.count_unit(range, &control))?;
                measured.push((real(tally.states), seconds));
                self.progress.step();
            }
            Ok(measured)
        })?;
        let found = parts.concat();
        let number = real(found.len() as u64);
        let (states, seconds) = found.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let mean = states / number;
        let squares: f64 = found.iter().map(|(states, _)| (states - mean) * (states - mean)).sum();
        let freedom = (number - 1.0).max(1.0);
        // Only what was not drawn is in doubt.
        let variance = squares / freedom / number * (1.0 - number / all);
        let scale = all * forecast(self.n) / forecast(board);
        let states_per_s = speed.unwrap_or(states / seconds);
        let states = interval(Estimate::new(mean * scale, variance.sqrt() * scale, freedom));
        let states = if beyond > 0 { within_factor(states, SCALED_WITHIN) } else { states };
        Ok(WorkEstimate {
            states,
            states_per_s,
            core_seconds: states.map(|states| states / states_per_s),
            source: if speed.is_some() { SpeedSource::Given } else { SpeedSource::Measured },
            scaled_from: (beyond > 0).then_some(board),
        })
    }
}

/// All column sets in ranges of a few, which take milliseconds each: many scattered ones say more than some long ones.
fn short_ranges(n: BoardSize) -> impl Iterator<Item = Unit> {
    let length = if n.get() > 20 { 3 } else { 12 };
    let (job, weight) = Plan::new(n, PlanKind::Halves).weighed_jobs().next().expect("there is a column set");
    let orbits = job.orbits().expect("of half boards");
    let states = (weight.states / (orbits.end - orbits.start)).max(1) * length;
    Plan::with_states_per_job(n, PlanKind::Halves, states).jobs().flat_map(|job| job.units(false))
}

/// An estimate with its interval.
pub(super) fn interval(sampled: Estimate) -> Interval {
    Interval { value: sampled.value, low: sampled.low(), high: sampled.high() }
}

/// The same where the value itself is only known within a factor.
fn within_factor(Interval { value, low, high }: Interval, factor: f64) -> Interval {
    Interval { value, low: low / factor, high: high * factor }
}

/// Core-seconds of a board by the half-board join with AVX-512, as docs/halves.md has them from N = 21 to 28; below,
/// where nothing is scaled, and beyond, as if nine times as much for each row more.
fn forecast(n: BoardSize) -> f64 {
    const SECONDS: [f64; 8] = [195.0, 1_300.0, 12_700.0, 80_000.0, 1.08e6, 5.4e6, 7.2e7, 4.7e8];
    let rows = n.get().saturating_sub(21) as usize;
    let known = rows.min(SECONDS.len() - 1);
    (known..rows).fold(SECONDS[known], |seconds, _| seconds * 9.0)
}

#[expect(clippy::cast_precision_loss, reason = "statistics")]
pub(super) fn real(number: impl Into<u128>) -> f64 {
    number.into() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_of_two_is_in_the_interval() {
        let sampled = interval(Estimate { value: 100.0, reach: 10.0 });
        assert_eq!(within_factor(sampled, SCALED_WITHIN), Interval { value: 100.0, low: 45.0, high: 220.0 });
    }
}
