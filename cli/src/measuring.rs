//! The speed of an engine, measured in the same way wherever it is told: states per second of processor time, on large pieces of
//! a board that are drawn by their share of its work.

use std::time::{Duration, Instant};

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::engine::{Control, Kernel, Stopped};
use nqueens_kernel::plan::PlanKind;
use nqueens_kernel::random::Random;
use nqueens_kernel::sampling::{Descent, Sampler};
use nqueens_kernel::solver::Solver;
use rustix::time::{ClockId, clock_gettime};

use crate::engines::solver;

/// Large enough that engines are as fast on such pieces as on jobs.
const STATES_MEASURED: u64 = 100_000_000;

/// A board of many such pieces, and the time to count some.
pub(crate) const BOARD: u32 = 18;
pub(crate) const TIME: Duration = Duration::from_millis(300);

/// States that a thread counts in a second of processor time, as `nqueens estimate 18 --plan border` has it.
pub(crate) fn speed(kernel: Kernel) -> anyhow::Result<f64> {
    let mut solver = solver(kernel.name(), 0)?;
    let sampler = Sampler::new(BoardSize::new(BOARD)?, PlanKind::Border);
    let (states, seconds) = count_pieces(&sampler, &mut solver, Random::series(1, 0), TIME)?;
    Ok(states / seconds)
}

/// Counts pieces of a board for about this time; what they stand for, in states and in seconds of this thread.
pub(crate) fn count_pieces(
    sampler: &Sampler,
    solver: &mut Solver,
    mut random: Random,
    time: Duration,
) -> anyhow::Result<(f64, f64)> {
    let (begun, control) = (Instant::now(), Control::default());
    let (mut states, mut seconds) = (0.0, 0.0);
    while states == 0.0 || begun.elapsed() < time {
        let place = random.fraction();
        let Some(Descent { unit, weight, .. }) = sampler.descend(place, STATES_MEASURED, &mut random) else {
            continue;
        };
        let (tally, took) = timed(|| solver.count_unit(&unit, &control))?;
        #[expect(clippy::cast_precision_loss, reason = "statistics")]
        let counted = tally.states as f64;
        states += weight * counted;
        seconds += weight * took;
    }
    Ok((states, seconds))
}

/// What counting gave and the seconds that it took this thread, without those when others had its processor.
pub(crate) fn timed<T>(count: impl FnOnce() -> Result<T, Stopped>) -> anyhow::Result<(T, f64)> {
    let spent = || processor_time(ClockId::ThreadCPUTime);
    let begun = spent();
    let found = count()?;
    Ok((found, spent().saturating_sub(begun).as_secs_f64()))
}

/// Of this thread, or of this process, so far.
pub(crate) fn processor_time(whose: ClockId) -> Duration {
    clock_gettime(whose).try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_least_one_piece_is_counted() {
        let sampler = Sampler::new(BoardSize::new(14).unwrap(), PlanKind::Border);
        let mut solver = solver(Kernel::best().name(), 0).unwrap();
        let found = count_pieces(&sampler, &mut solver, Random::series(1, 0), Duration::ZERO).unwrap();
        assert!(found.0 > 0.0 && found.1 > 0.0, "{found:?}");
    }
}
