//! The number of jobs that a plan is said to have, held against the jobs that it makes.

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::plan::{Plan, PlanKind, PlanSize};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Jobs that are made to be counted; what has more of them is not counted to the end.
const MADE_MAX: usize = 300_000;

fn plan(n: u32, kind: PlanKind, states: u64) -> Plan {
    Plan::with_states_per_job(BoardSize::new(n).unwrap(), kind, states)
}

/// Holds the size of a plan against its jobs.
fn check(plan: Plan) -> Result<(), TestCaseError> {
    let PlanSize { at_least, about } = plan.size();
    prop_assert!(at_least <= about);
    let made = plan.jobs().take(MADE_MAX).count() as u128;
    // Each BOUND1 has a job for each width of its prefixes, however light.
    let few = 4 * u128::from(plan.n().get());
    prop_assert!(2 * made <= 3 * about + few, "{plan:?}: about {about}, but {made}");
    if made < MADE_MAX as u128 {
        prop_assert!(at_least <= made, "{plan:?}: at least {at_least}, but {made}");
        let most = if plan.states_per_job() < 1_000 { 16 * made } else { 2 * made + 4 };
        prop_assert!(about <= most, "{plan:?}: about {about}, but {made}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::with_cases(200)
    })]

    #[test]
    fn sizes_are_those_of_the_jobs_made(
        n in 1_u32..=16, kind in prop::sample::select(PlanKind::ALL.to_vec()), digits in 0_u32..8, digit in 1_u64..10,
    ) {
        check(plan(n, kind, digit * 10_u64.pow(digits)))?;
    }
}

/// The jobs are the leaves of the search, of which the guess knows least.
#[test]
fn sizes_of_plans_of_the_smallest_jobs_hold() {
    for n in 1..=13 {
        for kind in PlanKind::ALL {
            check(plan(n, kind, 1)).unwrap();
        }
    }
}

#[test]
fn a_plan_of_more_jobs_than_can_be_counted_has_a_size() {
    let of = |kind, states| plan(31, kind, states).size();
    for kind in [PlanKind::Rows, PlanKind::Border] {
        assert!(of(kind, 1).at_least > 1 << 64, "{kind}");
        assert!(of(kind, 1 << 62).about < 1_000_000, "{kind}");
    }
    // A job has one row set at least, of which there are fewer than 2^32.
    let all = of(PlanKind::Colours, 1);
    assert!(all.at_least > 1_000_000 && all.about < 1 << 32, "{all:?}");
    assert!(of(PlanKind::Colours, u64::MAX).about < all.at_least);
}
