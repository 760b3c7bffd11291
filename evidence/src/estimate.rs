//! A total, estimated without the workers: what a sum of their results has to agree with.

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::cells::Cells;
use nqueens_kernel::engine::{Control, Kernel, Stopped};
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_kernel::sampling::{STATES_LEFT, Sampler};
use nqueens_kernel::solver::Solver;
use nqueens_model::operator::TotalEstimate;

/// Two descents each: 20,000 come within 1 to 3 % of boards up to N = 31, in some seconds of one thread.
pub const STRATA: u32 = 10_000;

/// States of a board with blocked cells that are all visited: as many as the descents leave at most.
#[expect(clippy::cast_precision_loss, reason = "a round number")]
const COUNTED_MAX: f64 = 2.0 * STRATA as f64 * STATES_LEFT as f64;

/// Estimates the solutions of a board by random descents of the border search, or, with blocked cells, of its own search (Knuth 1975, see
/// [`sampling`](nqueens_kernel::sampling)). A seed gives the same numbers on every machine.
///
/// Of a small board with cells few prefixes may have all solutions, and no descent meets them. Where it takes no longer than
/// all descents, such a board is counted.
pub fn estimate_total(
    n: BoardSize,
    cells: Option<Cells>,
    (seed, strata): (u64, u32),
    control: &Control,
) -> Result<TotalEstimate, Stopped> {
    let mut solver = Solver::recounting(Kernel::best().engine().expect("the best is available"));
    let plan = match cells {
        None => Plan::with_states_per_job(n, PlanKind::Border, 1),
        Some(cells) => Plan::of_cells_with(cells, 1),
    };
    let sampler = Sampler::of(&plan);
    let found = if cells.is_some() && sampler.work() <= COUNTED_MAX {
        sampler.count(&mut solver, control)?.solutions
    } else {
        let draw = |number| sampler.draw((number, strata), seed, STATES_LEFT, &mut solver, control);
        let draws = (0..strata).map(draw).collect::<Result<Vec<_>, _>>()?;
        sampler.estimate(&draws).solutions
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, below 10^30")]
    let whole = |number: f64| number as u128;
    Ok(TotalEstimate { seed, strata, value: whole(found.value.round()), reach: whole(found.reach.ceil()) })
}

#[cfg(test)]
mod tests {
    use nqueens_kernel::known::published;

    use super::*;

    #[test]
    fn estimates_hold_the_published_counts_and_are_the_same_again() {
        for n in [1, 3, 4, 8, 13, 16, 20] {
            let n = BoardSize::new(n).unwrap();
            let estimate = estimate_total(n, None, (7, 500), &Control::default()).unwrap();
            assert!(estimate.holds(published(n).unwrap().total), "N = {n}: {estimate:?}");
            assert_eq!(estimate_total(n, None, (7, 500), &Control::default()), Ok(estimate));
        }
    }

    #[test]
    fn an_estimate_tells_a_total_from_another() {
        let n = BoardSize::new(18).unwrap();
        let estimate = estimate_total(n, None, (1, 2_000), &Control::default()).unwrap();
        let total = published(n).unwrap().total;
        assert!(estimate.holds(total) && !estimate.holds(total / 2) && !estimate.holds(total * 2));
        let pinned = TotalEstimate { seed: 1, strata: 2_000, value: 661_960_340, reach: 22_627_555 };
        assert_eq!(estimate, pinned, "no machine comes to another");
    }

    #[test]
    fn it_can_be_stopped() {
        let control = Control::default();
        control.stop();
        assert_eq!(estimate_total(BoardSize::new(20).unwrap(), None, (1, STRATA), &control), Err(Stopped));
    }
}
