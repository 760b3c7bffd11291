//! Estimates of a board's solutions and states, from a sample of a plan's search.
//!
//! D. E. Knuth's estimator ("Estimating the efficiency of backtrack programs", Mathematics of Computation 29, 1975):
//! descend a search tree at random, and multiply what is found below by the inverse of the probability of the path.
//! The mean of these values is the truth. Three changes reduce the variance:
//! * A descent begins at one of the plan's prefixes, and takes each step with a probability in proportion to the
//!   estimated work below, not with equal probabilities (importance sampling).
//! * It ends where an engine counts the rest in a moment.
//! * The descents are spread evenly over the prefixes, two per **stratum** (stratified sampling). Only the difference
//!   of these two enters the interval.
//!
//! It uses only sums, products and quotients of IEEE numbers in a fixed order: a seed gives the same estimate on
//! every machine, except for the states of another engine.

use crate::board::BoardSize;
use crate::counts::{Totals, to_f64};
use crate::engine::{Control, Stopped};
use crate::plan::{Plan, PlanKind};
use crate::random::Random;
use crate::solver::Solver;
use crate::unit::Unit;

/// A descent for an estimate of all solutions ends where so many states are left: more cost more time than they bring
/// certainty.
pub const STATES_LEFT: u64 = 30_000;

/// What can be drawn from: the search that a plan cuts into jobs.
#[derive(Clone, Debug)]
pub struct Sampler {
    /// Solutions that no root has.
    lone: f64,
    roots: Vec<Unit>,
    /// Sum of the guesses at the work of each root and of all before it.
    ends: Vec<f64>,
}

/// What a descent stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Draw {
    /// As many solutions as the whole board has, on average over all descents.
    pub solutions: f64,
    /// As many states as the engine visits on the whole board, on average over all descents.
    pub states: f64,
}

/// Where a descent ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Descent {
    /// What was chosen.
    pub unit: Unit,
    /// The inverse of the chance that it had.
    pub weight: f64,
    /// The states on the way, each with the inverse of its own chance.
    pub passed: f64,
}

impl Sampler {
    /// Of a plan of this kind.
    pub fn new(n: BoardSize, kind: PlanKind) -> Self {
        Self::of(&Plan::with_states_per_job(n, kind, 1))
    }

    /// Of a plan. Row sets have nothing to descend: `colours` is sampled as `border`, whose solutions are the same.
    pub fn of(plan: &Plan) -> Self {
        let roots: Vec<_> = plan.sound_prefixes().flat_map(|prefix| prefix.units(false)).collect();
        let grow = |sum: &mut f64, unit: &Unit| {
            *sum += guess(unit);
            Some(*sum)
        };
        let ends = roots.iter().scan(0.0, grow).collect();
        let lone = to_f64(plan.total(Totals::default()).expect("0 or 1"));
        Self { lone, roots, ends }
    }

    /// A descent from the root at `place`, in `0..1`, of all work until no more than `states_max` states are guessed to
    /// be left. `None` if it came where nothing is left.
    pub fn descend(&self, place: f64, states_max: u64, random: &mut Random) -> Option<Descent> {
        let all = self.ends.last()?;
        let at = self.ends.partition_point(|end| *end <= place * all).min(self.roots.len() - 1);
        let mut unit = self.roots[at].clone();
        let (mut weight, mut passed) = (all / guess(&unit), 0.0);
        while unit.states_estimate() > states_max {
            let parts = unit.clone().split();
            if parts.first() == Some(&unit) {
                break;
            }
            passed += weight;
            let work: f64 = parts.iter().map(guess).sum();
            let mut left = random.fraction() * work;
            let chosen = parts.iter().position(|part| {
                left -= guess(part);
                left < 0.0
            });
            // Rounding may leave a little beyond the last one.
            let at = chosen.or(parts.len().checked_sub(1))?;
            unit = parts.into_iter().nth(at)?;
            weight *= work / guess(&unit);
        }
        Some(Descent { unit, weight, passed })
    }

    /// A guess at the states of it all.
    pub fn work(&self) -> f64 {
        self.ends.last().copied().unwrap_or(0.0)
    }

    /// Counts it all: for boards where that takes no longer than sampling.
    pub fn count(&self, solver: &mut Solver, control: &Control) -> Result<Estimates, Stopped> {
        let (mut solutions, mut states) = (self.lone, 0.0);
        for tally in solver.count(&self.roots, control)? {
            solutions += to_f64(tally.counts.total());
            states += to_f64(tally.states);
        }
        Ok(Estimates { solutions: Estimate::exact(solutions), states: Estimate::exact(states) })
    }

    /// The two draws of stratum `number` of `strata`, the same for a seed.
    pub fn draw(
        &self,
        (number, strata): (u32, u32),
        seed: u64,
        states_max: u64,
        solver: &mut Solver,
        control: &Control,
    ) -> Result<[Draw; 2], Stopped> {
        let mut random = Random::series(seed, number);
        let mut draws = [Draw::default(); 2];
        for draw in &mut draws {
            let place = (f64::from(number) + random.fraction()) / f64::from(strata);
            if let Some(Descent { unit, weight, passed }) = self.descend(place, states_max, &mut random) {
                let tally = solver.count_unit(&unit, control)?;
                *draw = Draw {
                    solutions: weight * to_f64(tally.counts.total()),
                    states: passed + weight * to_f64(tally.states),
                };
            }
        }
        Ok(draws)
    }

    /// The estimates from the draws of all strata.
    pub fn estimate(&self, strata: &[[Draw; 2]]) -> Estimates {
        let of = |what: fn(&Draw) -> f64| stratified(strata.iter().map(|pair| pair.each_ref().map(what)));
        let mut solutions = of(|draw| draw.solutions);
        solutions.value += self.lone;
        Estimates { solutions, states: of(|draw| draw.states) }
    }
}

/// Two draws from each of some strata; each draw is scaled to the whole.
pub fn stratified(strata: impl Iterator<Item = [f64; 2]> + Clone) -> Estimate {
    let squares = || strata.clone().map(|[a, b]| (a - b) * (a - b));
    let (number, sum) = (to_f64(strata.clone().count() as u128), squares().sum::<f64>());
    let mean = strata.clone().map(|[a, b]| a + b).sum::<f64>() / (2.0 * number);
    let error = sum.sqrt() / (2.0 * number);
    // As many as there are strata, if all scatter alike: the fourth moment is three times the square of the second.
    let freedom = 3.0 * sum * sum / squares().map(|square| square * square).sum::<f64>();
    Estimate::new(mean, error, freedom)
}

/// What is known of a board after sampling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimates {
    /// All solutions.
    pub solutions: Estimate,
    /// States that the engine visits on its way to all of them.
    pub states: Estimate,
}

/// A number that is not known exactly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The best guess.
    pub value: f64,
    /// How far on either side of it the interval reaches that holds the truth 95 times of 100.
    pub reach: f64,
}

impl Estimate {
    /// A number that is known.
    pub fn exact(value: f64) -> Self {
        Self { value, reach: 0.0 }
    }

    /// The interval from a standard error that was itself estimated with this many degrees of freedom.
    pub fn new(value: f64, error: f64, freedom: f64) -> Self {
        Self { value, reach: if error > 0.0 { student(freedom) * error } else { 0.0 } }
    }

    /// A part of it, or something that is proportional to it.
    #[must_use]
    pub fn per(self, number: f64) -> Self {
        Self { value: self.value / number, reach: self.reach / number }
    }

    /// Lower end of the 95 % confidence interval.
    pub fn low(self) -> f64 {
        (self.value - self.reach).max(0.0)
    }

    /// Upper end of the 95 % confidence interval.
    pub fn high(self) -> f64 {
        self.value + self.reach
    }
}

/// Half-width of a 95 % confidence interval, in standard errors with this many degrees of freedom: Student's quantile
/// by the series of Cornish and Fisher, within 1 % of it from 5 degrees on.
fn student(freedom: f64) -> f64 {
    const Z: f64 = 1.96;
    let square = Z * Z;
    let first = Z * (square + 1.0) / 4.0;
    let second = Z * (5.0 * square * square + 16.0 * square + 3.0) / 96.0;
    Z + first / freedom + second / (freedom * freedom)
}

fn guess(unit: &Unit) -> f64 {
    to_f64(unit.states_estimate())
}
