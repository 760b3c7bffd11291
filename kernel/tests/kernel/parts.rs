//! The parts of a job have its solutions, each once, whoever counts them.

use std::slice;

use nqueens_kernel::colours::RowSets;
use nqueens_kernel::counts::Counts;
use nqueens_kernel::engine::{Control, Kernel};
use nqueens_kernel::job::Job;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_kernel::solver::Solver;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::{board, count, solver};

/// Estimated states of a part.
const PART: u64 = 1_000_000_000;

/// A job of this plan; there is one.
fn job(n: u32, kind: PlanKind, states_per_job: u64, number: usize) -> Job {
    let plan = Plan::with_states_per_job(board(n), kind, states_per_job);
    let jobs: Vec<_> = plan.jobs().collect();
    jobs[number % jobs.len()].clone()
}

/// What each part of a range of row sets has, told while all of it is counted.
fn told(job: &Job, parts: &[Job], solver: &mut Solver) -> Vec<Counts> {
    let ranges: Vec<_> = parts.iter().map(|part| part.row_sets().unwrap()).collect();
    let mut told = vec![0_u64; parts.len()];
    let mut found = |_, orbit, solutions| {
        told[ranges.iter().position(|range| range.contains(&orbit)).expect("an orbit of a part")] +=
            solutions;
    };
    solver.count_each(&job.units(solver.leaf_test()), &mut found, &Control::default()).unwrap();
    told.into_iter().map(Counts::plain).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(15), failure_persistence: None, ..ProptestConfig::with_cases(150)
    })]

    #[test]
    fn parts_add_up_to_their_job(
        n in 8_u32..13, kind in 0_usize..3, states_per_job in 10_u64..200_000, number in any::<usize>(),
        parts in 1_u64..100, mirrored: bool,
    ) {
        let job = job(n, PlanKind::ALL[kind], states_per_job, number);
        let parts = job.parts(parts * PART);
        prop_assert!((1..=Job::PARTS_MAX).contains(&(parts.len() as u64)), "{}", parts.len());
        for part in &parts {
            let read = Job::decode(job.n(), job.class(), job.bound1(), &part.encode());
            prop_assert_eq!(read.as_ref(), Ok(part));
        }
        for kernel in [Kernel::Reference, Kernel::best()] {
            let mut solver = solver(kernel);
            solver.mirror(mirrored);
            let whole = count(&job, &mut solver);
            let each: Vec<_> = parts.iter().map(|part| count(part, &mut solver)).collect();
            let sum = each.iter().fold(Counts::ZERO, |sum, part| sum.checked_add(*part).unwrap());
            prop_assert_eq!(sum, whole, "{}", kernel);
            if job.row_sets().is_some() {
                prop_assert_eq!(told(&job, &parts, &mut solver), each, "{}", kernel);
            }
        }
    }
}

#[test]
fn ranges_tell_what_their_row_sets_have_by_every_engine() {
    for kernel in Kernel::ALL.into_iter().filter(|kernel| kernel.is_available()) {
        let job = job(if kernel.multiplies() { 16 } else { 13 }, PlanKind::Colours, 20_000_000, 3);
        let (mut solver, parts) = (solver(kernel), job.parts(17 * PART));
        assert_eq!(parts.len(), 17);
        let each: Vec<_> = parts.iter().map(|part| count(part, &mut solver)).collect();
        assert_eq!(told(&job, &parts, &mut solver), each, "{kernel}");
    }
}

#[test]
fn small_jobs_are_one_part_and_large_ones_as_many_as_they_are_worth() {
    for kind in PlanKind::ALL {
        let first = Plan::new(board(24), kind).jobs().next().unwrap();
        assert_eq!(first.parts(1), slice::from_ref(&first));
        assert_eq!(first.parts(2 * PART - 1), slice::from_ref(&first));
        assert_eq!(first.parts(2 * PART).len(), 2, "{kind}");
        assert!((32..=64).contains(&first.parts(u64::MAX).len()), "{kind} {}", first.parts(u64::MAX).len());
    }
}

#[test]
fn no_part_of_a_large_job_takes_long() {
    for n in [22, 26] {
        for kind in PlanKind::ALL {
            for (job, weight) in Plan::new(board(n), kind).weighed_jobs().take(10) {
                let fair = weight.states / (weight.states / PART).clamp(1, Job::PARTS_MAX);
                for part in job.parts(weight.states) {
                    let one_set = part.row_sets().is_some_and(|range| range.end - range.start == 1);
                    let states = part.weight().states;
                    assert!(states <= 4 * fair || one_set, "{n} {kind}: {states} of {}", weight.states);
                }
            }
        }
    }
}

#[test]
fn of_the_rows_own_set_and_its_mirror_image_one_counts() {
    for n in board(4).up_to(board(13)) {
        let sets = RowSets::new(n).unwrap();
        for set in (0..sets.len()).map(|number| sets.get(number)) {
            let mirrored = set.rows.reverse_bits() >> (u32::BITS - n.get());
            assert!([set.rows, mirrored].iter().any(|columns| set.columns_weight(*columns) > 0), "{set:?}");
        }
    }
}
