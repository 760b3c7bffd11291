//! Jobs come from wires and databases, and their results from strangers: nothing is believed.

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::Counts;
use nqueens_kernel::engine::{Control, Kernel};
use nqueens_kernel::job::{Class, InvalidJob, Job};
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_kernel::solver::Solver;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::board;

fn fixed(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(8),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

#[test]
fn jobs_are_read_as_they_are_written() {
    for n in board(4).up_to(board(20)) {
        for kind in PlanKind::ALL {
            for job in
                Plan::new(n, kind).jobs().chain(Plan::with_states_per_job(n, kind, 10).jobs().take(2_000))
            {
                assert_eq!(Job::decode(n, job.class(), job.bound1(), &job.encode()), Ok(job));
            }
        }
    }
}

#[test]
fn wrong_jobs_are_refused_and_told_why() {
    let refused =
        |class, bound1, bytes: &[u8]| Job::decode(board(8), class, bound1, bytes).unwrap_err().to_string();
    let cases = [
        (refused(Class::Edge, 1, &[]), "a job has at least one prefix, not none"),
        (refused(Class::Edge, 4, &[1, 4]), "class edge of N = 8 has no BOUND1 = 4"),
        (refused(Class::Edge, 0, &[1, 0]), "class edge of N = 8 has no BOUND1 = 0"),
        (refused(Class::Corner, 7, &[2, 0, 7]), "class corner of N = 8 has no BOUND1 = 7"),
        (refused(Class::Border, 4, &[4, 4, 4, 4, 4]), "class border of N = 8 has no BOUND1 = 4"),
        (refused(Class::Corner, 2, &[1, 0]), "prefixes of class corner have 2 queens or more, not 1"),
        (refused(Class::Border, 2, &[0]), "prefixes of class border have 4 queens or more, not 0"),
        (refused(Class::Edge, 1, &[2, 1, 3, 1]), "3 bytes are no whole number of prefixes of 2"),
        (refused(Class::Edge, 1, &[1]), "0 bytes are no whole number of prefixes of 1"),
        // attacked, off the board, of another class, of another BOUND1
        (refused(Class::Edge, 1, &[2, 1, 2]), "[1, 2] is no prefix of class edge of N = 8 with BOUND1 = 1"),
        (refused(Class::Edge, 1, &[2, 1, 8]), "[1, 8] is no prefix of class edge of N = 8 with BOUND1 = 1"),
        (refused(Class::Edge, 1, &[2, 1, 33]), "[1, 33] is no prefix of class edge of N = 8 with BOUND1 = 1"),
        (refused(Class::Edge, 2, &[2, 2, 0]), "[2, 0] is no prefix of class edge of N = 8 with BOUND1 = 2"),
        (refused(Class::Edge, 1, &[1, 2]), "[2] is no prefix of class edge of N = 8 with BOUND1 = 1"),
        (
            refused(Class::Corner, 4, &[3, 0, 4, 1]),
            "[0, 4, 1] is no prefix of class corner of N = 8 with BOUND1 = 4",
        ),
        (
            refused(Class::Border, 1, &[4, 2, 3, 5, 4]),
            "[2, 3, 5, 4] is no prefix of class border of N = 8 with BOUND1 = 1",
        ),
        (
            refused(Class::Border, 0, &[4, 0, 3, 5, 4]),
            "[0, 3, 5, 4] is no prefix of class border of N = 8 with BOUND1 = 0",
        ),
        (refused(Class::Colours, 0, &[]), "a job has at least one prefix, not none"),
        // of another length, empty, backwards, beyond the last
        (
            refused(Class::Colours, 0, &[8, 0, 0]),
            "[8, 0, 0] is no range of the 25 orbits of row sets of N = 8",
        ),
        (
            refused(Class::Colours, 0, &[8, 0, 0, 0, 1, 0, 0, 0, 1]),
            "[8, 0, 0, 0, 1, 0, 0, 0, 1] is no range of the 25 orbits of row sets of N = 8",
        ),
        (
            refused(Class::Colours, 0, &[8, 0, 0, 0, 2, 0, 0, 0, 1]),
            "[8, 0, 0, 0, 2, 0, 0, 0, 1] is no range of the 25 orbits of row sets of N = 8",
        ),
        (
            refused(Class::Colours, 1, &[8, 0, 0, 0, 0, 0, 0, 0, 1]),
            "class colours of N = 8 has no BOUND1 = 1",
        ),
        (
            refused(Class::Colours, 0, &[8, 0, 0, 0, 0, 0, 0, 0, 26]),
            "[8, 0, 0, 0, 0, 0, 0, 0, 26] is no range of the 25 orbits of row sets of N = 8",
        ),
        (refused(Class::Edge, 1, &[2, 1, 4, 1, 3]), "prefix 1 is not larger than the one before it"),
        (refused(Class::Edge, 1, &[2, 1, 4, 1, 4]), "prefix 1 is not larger than the one before it"),
    ];
    for (said, expected) in cases {
        assert_eq!(said, expected);
    }
    assert_eq!(
        Job::decode(BoardSize::MIN, Class::Border, 0, &[4, 0, 0, 0, 0]),
        Err(InvalidJob::Bound1 { n: BoardSize::MIN, class: Class::Border, bound1: 0 })
    );
}

#[test]
fn true_counts_are_plausible_and_impossible_ones_are_not() {
    let mut solver = Solver::recounting(Kernel::Scalar.engine().unwrap());
    for n in [5, 8, 10, 12] {
        for kind in PlanKind::ALL {
            for (job, weight) in Plan::with_states_per_job(board(n), kind, 1_000).weighed_jobs() {
                assert_eq!(job.weight(), weight);
                let plausible = |counts: Counts| counts.within(weight.counts_max);
                let counts = solver.count_job(&job, &Control::default()).unwrap().unwrap().counts;
                assert!(plausible(counts), "{job:?} {counts:?}");
                assert!(!plausible(Counts { count8: u64::MAX, ..counts }));
                assert!(n != 10 || !plausible(Counts { count2: 1, ..counts }), "10 has no quarter turns");
                let plain = Counts { solutions: counts.solutions + 1, ..counts };
                assert!(!plausible(Counts { solutions: u64::MAX, ..counts }));
                assert!(job.class().counts_plainly() || !plausible(plain), "{job:?}");
                if job.class() == Class::Corner
                    || job.class().counts_plainly()
                    || kind == PlanKind::Border && job.bound1() == 0
                {
                    assert!(!plausible(Counts { count4: 1, ..counts }), "{job:?}");
                    assert!(!plausible(Counts { count2: 1, ..counts }), "{job:?}");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(fixed(5_000))]

    #[test]
    fn bytes_from_anywhere_are_a_job_or_an_error(
        n in 1u32..=31,
        class in prop::sample::select(&Class::ALL[..]),
        bound1 in 0u8..=32,
        bytes in prop::collection::vec(prop_oneof![0u8..12, any::<u8>()], 0..12),
    ) {
        if let Ok(job) = Job::decode(board(n), class, bound1, &bytes) {
            prop_assert_eq!(job.encode(), bytes);
            prop_assert!(!job.units(false).is_empty() && job.weight().states > 0);
        }
    }

    #[test]
    fn damaged_jobs_are_a_job_or_an_error(
        n in 4u32..=12,
        kind in prop::sample::select(&PlanKind::ALL[..]),
        nth in 0usize..100,
        at in any::<prop::sample::Index>(),
        byte in prop_oneof![0u8..16, any::<u8>()],
    ) {
        let job = Plan::with_states_per_job(board(n), kind, 300).jobs().nth(nth % 10).unwrap_or_else(|| {
            Plan::new(board(n), kind).jobs().next().expect("a job")
        });
        let mut bytes = job.encode();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(job) = Job::decode(board(n), job.class(), job.bound1(), &bytes) {
            prop_assert_eq!(job.encode(), bytes);
            prop_assert!(job.weight().states > 0);
        }
    }
}
