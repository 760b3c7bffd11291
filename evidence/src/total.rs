//! From a sum to a total: the checks that must pass.

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::{Overflow, SymmetricCounts, Totals, Unsortable};
use nqueens_kernel::known::published;
use nqueens_kernel::plan::Plan;
use nqueens_model::operator::{Checked, Grounds, Outcome};

/// The check that a sum did not pass, in the order in which they are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Doubt {
    #[error(transparent)]
    Unsortable(#[from] Unsortable),
    #[error(transparent)]
    Overflow(#[from] Overflow),
    #[error(
        "COUNT2 = {} and COUNT4 = {} differ from the separately counted symmetric solutions, {} and {}",
        orbits.count2, orbits.count4, symmetric.count2(), symmetric.count4()
    )]
    Symmetry {
        orbits: Totals,
        /// Counted apart.
        symmetric: SymmetricCounts,
    },
    #[error("the total {total} differs from the published count {published}")]
    Published {
        total: u128,
        /// In the OEIS.
        published: u128,
    },
}

/// Makes every check there is on the sum of a run's jobs: whole orbits, the symmetric ones among them, and the published
/// count, or else there are [grounds](Grounds) by which it is confirmed.
///
/// The solutions of a board with blocked cells make no orbits, and no count of them is published.
pub fn conclude(
    plan: &Plan,
    found: Totals,
    symmetric: SymmetricCounts,
    grounds: Option<Grounds>,
) -> Result<Outcome, Doubt> {
    if plan.cells().is_some() {
        if found != (Totals { solutions: found.solutions, ..Totals::default() }) {
            return Err(Unsortable::Mixed.into());
        }
        return Ok(of_cells(plan.total(found)?, grounds));
    }
    let (n, orbits) = (plan.n(), found.sorted(symmetric)?);
    // N = 1 has one solution, an orbit of its own that stands in none of the three counts.
    let expected = (u128::from(symmetric.count2()), u128::from(symmetric.count4()));
    if n > BoardSize::MIN && (orbits.count2, orbits.count4) != expected {
        return Err(Doubt::Symmetry { orbits, symmetric });
    }
    outcome(n, orbits, grounds)
}

pub fn of_cells(total: u128, grounds: Option<Grounds>) -> Outcome {
    Outcome { totals: Totals::default(), total, checked: Checked::None, grounds }
}

/// The total of the orbits, compared with the published count unless there are other grounds. A stored outcome that differs
/// has changed since it was stored.
pub fn outcome(n: BoardSize, orbits: Totals, grounds: Option<Grounds>) -> Result<Outcome, Doubt> {
    let total = orbits.total(n)?;
    let checked = match published(n).filter(|_| grounds.is_none()) {
        None => Checked::Symmetric,
        Some(known) if known.total == total && known.orbits == orbits => Checked::Published,
        Some(known) => return Err(Doubt::Published { total, published: known.total }),
    };
    Ok(Outcome { totals: orbits, total, checked, grounds })
}

#[cfg(test)]
mod tests {
    use nqueens_kernel::engine::Control;
    use nqueens_kernel::plan::PlanKind;
    use nqueens_kernel::symmetric::symmetric_counts;

    use super::*;

    #[test]
    fn a_sum_that_fails_a_check_is_no_total() {
        let n = BoardSize::new(8).unwrap();
        let plan = Plan::new(n, PlanKind::Border);
        let symmetric = symmetric_counts(n, &Control::default()).unwrap();
        let right = Totals { count4: 1, count8: 11, ..Totals::default() };
        assert_eq!(
            conclude(&plan, right, symmetric, None),
            Ok(Outcome { totals: right, total: 92, checked: Checked::Published, grounds: None })
        );
        let plain = |solutions| Totals { solutions, ..Totals::default() };
        assert_eq!(conclude(&plan, plain(92), symmetric, None).unwrap().totals, right);
        let errors = [
            (
                plain(91),
                "91 solutions less the symmetric ones, COUNT2 = 0 and COUNT4 = 1, are no multiple of 8",
            ),
            (plain(84), "the total 84 differs from the published count 92"),
            (Totals { count8: 1, ..plain(84) }, "some jobs found orbits and others plain solutions"),
            (Totals { count8: 10, ..right }, "the total 84 differs from the published count 92"),
            (Totals { count4: 2, ..right }, "COUNT2 = 0 and COUNT4 = 2 differ from the separately counted"),
            (Totals { count2: 1, ..right }, "COUNT2 = 1 and COUNT4 = 1 differ from the separately counted"),
            (Totals { count8: u128::MAX / 8 + 1, ..right }, "a count overflowed its integer width"),
        ];
        for (orbits, expected) in errors {
            let error = conclude(&plan, orbits, symmetric, None).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
