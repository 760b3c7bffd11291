//! Samples and measures row sets, for plan `colours`.

use std::ops::Range;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::colours::RowSets;
use nqueens_kernel::counts::to_f64;
use nqueens_kernel::engine::{Control, Kernel};
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_kernel::random::Random;
use nqueens_kernel::sampling::{Estimate, stratified};
use nqueens_kernel::unit::Unit;

use super::sample::{Sampling, SpeedSource, WorkEstimate, interval};
use crate::measuring::timed;
use crate::progress::begin;

/// Boards of no more work than this are counted, in seconds of a core.
const SECONDS_COUNTED: u64 = 2;
/// What the usual number of samples stands for: an answer within a minute on two threads.
const SECONDS_SAMPLED: u64 = 30;
/// The same of a smaller board in place of the wanted one: scaling it up is less exact than any sample.
const SECONDS_SCALED: u64 = 4;
const SAMPLES: u64 = 20_000;
/// Parts of the work that two pieces each are drawn from, at most and at least.
const STRATA_MAX: u64 = 64;
const STRATA_MIN: u64 = 8;
/// Orbits of a piece, at least: fewer share so little that they take far longer than in a job.
const ORBITS_MIN: u64 = 40;
/// When another board is scaled up: additional half-width of the interval, as a share of the value, for every two
/// rows between.
const REACH_SCALED: f64 = 0.25;

/// What a piece of a stratum stands for, as if all strata were alike.
#[derive(Clone, Copy, Default)]
struct PieceFigures {
    solutions: f64,
    states: f64,
    seconds: f64,
}

/// Estimated states that a core multiplies in a second, roughly: how much is sampled is to depend on nothing that differs
/// from run to run.
const fn states_per_s(kernel: Kernel) -> u64 {
    match kernel {
        Kernel::Reference | Kernel::Scalar | Kernel::Portable => 500_000_000,
        Kernel::Avx2 => 1_000_000_000,
        Kernel::Avx512 => 2_000_000_000,
    }
}

impl Sampling {
    fn states_sampled(&self, n: BoardSize) -> u64 {
        let seconds = if n == self.n { SECONDS_SAMPLED } else { SECONDS_SCALED };
        states_per_s(self.kernel) * seconds * (2 * u64::from(self.strata)).min(100 * SAMPLES) / SAMPLES
    }

    /// The work of the multiplication and, if this very board is measured, its solutions: by some row sets of the board
    /// or, where one takes too long, of a smaller one of the same parity.
    pub(super) fn colours(&self, speed: Option<f64>) -> anyhow::Result<(Option<Estimate>, WorkEstimate)> {
        let (board, sets) = self.measured_board()?;
        let all = sets.work(&(0..sets.len()));
        let (solutions, states, seconds) = if all <= states_per_s(self.kernel) * SECONDS_COUNTED {
            self.count_row_sets(board)?
        } else {
            self.sample_row_sets(&sets, all)?
        };
        let wanted = RowSets::new(self.n).expect("a larger board");
        let scale = to_f64(wanted.work_of_all()) / to_f64(all);
        let unsure = REACH_SCALED * f64::from((self.n.get() - board.get()) / 2);
        let times = |Estimate { value, reach }| Estimate {
            value: value * scale,
            reach: (reach + unsure * value) * scale,
        };
        let states_per_s = speed.unwrap_or(states.value / seconds.value);
        let work = WorkEstimate {
            states: interval(times(states)),
            states_per_s,
            // States of lopsided row sets take other times than those of balanced ones: seconds are estimated for
            // themselves.
            core_hours: interval(speed.map_or(times(seconds), |speed| times(states).per(speed)))
                .map(|seconds| seconds / 3_600.0),
            speed_from: if speed.is_some() { SpeedSource::Given } else { SpeedSource::Measured },
            scaled_from_n: (board != self.n).then_some(board.get()),
        };
        Ok(((board == self.n).then_some(solutions), work))
    }

    /// The largest board of the same parity, up to this one, of which enough row sets can be counted.
    fn measured_board(&self) -> anyhow::Result<(BoardSize, RowSets)> {
        let mut n = self.n;
        loop {
            let sets = RowSets::new(n).expect("checked when the plan was chosen");
            let each = sets.work(&(0..sets.len())) / sets.len();
            let least = each.saturating_mul(2 * STRATA_MIN * ORBITS_MIN);
            if least <= states_per_s(self.kernel) * SECONDS_SAMPLED {
                return Ok((n, sets));
            }
            n = BoardSize::new(n.get() - 2)?;
        }
    }

    /// The solutions of the whole board, the states and the seconds of a thread.
    fn count_row_sets(&self, n: BoardSize) -> anyhow::Result<(Estimate, Estimate, Estimate)> {
        let jobs: Vec<_> = Plan::new(n, PlanKind::Colours).jobs().collect();
        begin(&self.progress, "row sets", 0);
        let parts = self.on_threads(|thread, solver| {
            let (control, mut sum) = (Control::default(), PieceFigures::default());
            // The first count fills buffers and caches: that is not the speed of the counting.
            if let Some(unit) = jobs.iter().flat_map(|job| job.units(false)).next() {
                solver.count_unit(&unit, &control)?;
            }
            for unit in self.share(thread, jobs.iter()).flat_map(|job| job.units(false)) {
                let (tally, seconds) = timed(|| solver.count_unit(&unit, &control))?;
                sum.solutions += to_f64(tally.counts.solutions);
                sum.states += to_f64(tally.states);
                sum.seconds += seconds;
            }
            Ok(sum)
        })?;
        let sum = |what: fn(&PieceFigures) -> f64| Estimate::exact(parts.iter().map(what).sum());
        Ok((sum(|part| part.solutions), sum(|part| part.states), sum(|part| part.seconds)))
    }

    /// The same from two pieces of each stratum.
    fn sample_row_sets(&self, sets: &RowSets, all: u64) -> anyhow::Result<(Estimate, Estimate, Estimate)> {
        let sampled = self.states_sampled(sets.n()).min(all / 2);
        // Orbits that are counted together are best sampled together.
        let together = sets.work(&sets.together(sets.len() / 2));
        let number = (sampled / (2 * together)).clamp(STRATA_MIN, STRATA_MAX);
        // Orbits of about the same work, in pieces of which two are drawn. Row sets with as many white queens in even rows stand
        // together, so the strata part those.
        let mut strata = Vec::<Range<u64>>::new();
        let mut from = 0;
        while from < sets.len() {
            let end = sets.cut(from, all.div_ceil(number));
            strata.push(from..end);
            from = end;
        }
        let each = to_f64(strata.len() as u64);
        begin(&self.progress, "row sets", strata.len() as u64);
        let parts = self.on_threads(|thread, solver| {
            let control = Control::default();
            // The first count fills buffers and caches: that is not the speed of the counting.
            solver.count_unit(&Unit::RowSets(sets.n(), 0..1), &control)?;
            let mut draws = Vec::new();
            for (at, stratum) in self.share(thread, strata.iter().enumerate()) {
                let mut random = Random::series(self.seed, u32::try_from(at)?);
                let mut pair = [PieceFigures::default(); 2];
                for draw in &mut pair {
                    // With an orbit that is drawn.
                    let orbit = stratum.start + random.below(stratum.end - stratum.start);
                    let piece = sets.piece(orbit, sampled / (2 * number));
                    let piece = piece.start.max(stratum.start)..piece.end.min(stratum.end);
                    let unit = Unit::RowSets(sets.n(), piece.clone());
                    let (tally, seconds) = timed(|| solver.count_unit(&unit, &control))?;
                    let share = to_f64(sets.work(stratum)) / to_f64(sets.work(&piece));
                    *draw = PieceFigures {
                        // A piece is drawn as often as it has orbits.
                        solutions: each * to_f64(stratum.end - stratum.start)
                            / to_f64(piece.end - piece.start)
                            * to_f64(tally.counts.solutions),
                        states: each * share * to_f64(tally.states),
                        seconds: each * share * seconds,
                    };
                }
                draws.push((at, pair));
                self.progress.inc(1);
            }
            Ok(draws)
        })?;
        // In their order, so that rounding is the same for any number of threads.
        let mut draws = parts.concat();
        draws.sort_unstable_by_key(|(at, _)| *at);
        let of = |what: fn(&PieceFigures) -> f64| {
            stratified(draws.iter().map(|(_, pair)| pair.each_ref().map(what)))
        };
        Ok((of(|draw| draw.solutions), of(|draw| draw.states), of(|draw| draw.seconds)))
    }
}
