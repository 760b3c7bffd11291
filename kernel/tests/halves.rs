//! Jobs of half boards by two roads: the join, and block search with a mask a row.

use std::sync::Arc;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::Counts;
use nqueens_kernel::engine::{Control, Kernel};
use nqueens_kernel::halves::{Orbits, SharedTables};
use nqueens_kernel::job::{Class, Job};
use nqueens_kernel::solver::Solver;

/// The job of one orbit, as it comes over the wire.
fn job(n: BoardSize, orbit: u32) -> Job {
    let range = [orbit, orbit + 1].map(u32::to_be_bytes).concat();
    Job::decode(n, Class::Halves, 0, &[&[8], &range[..]].concat()).unwrap()
}

fn count(job: &Job, solver: &mut Solver) -> Counts {
    solver.count_job(job, &Control::default()).unwrap().unwrap().counts
}

/// Orbits drawn by a fixed rule.
fn compare(n: u32, orbits: u64, memory_max: u64) {
    let n = BoardSize::new(n).unwrap();
    let mut audit = Solver::recounting(Kernel::best().engine().unwrap());
    let mut joining =
        Solver::new(Kernel::best().engine().unwrap(), &Arc::new(SharedTables::new(memory_max, 1)));
    let all = Orbits::new(n).unwrap().len();
    for at in 1..=orbits {
        let job = job(n, u32::try_from(all * at / (orbits + 1)).unwrap());
        assert_eq!(count(&job, &mut joining), count(&job, &mut audit), "N = {n}, {job:?}");
    }
}

/// With little memory and much, so that tables and lists come in all layouts.
#[test]
fn orbits_of_large_boards_equal_their_recount() {
    for (n, orbits, memory_max) in
        [(18, 3, 1 << 20), (19, 3, 1 << 24), (20, 2, 1 << 28), (20, 1, 0), (21, 1, 1 << 26)]
    {
        compare(n, orbits, memory_max);
    }
}

#[test]
#[ignore = "takes minutes"]
fn orbits_of_larger_boards_equal_their_recount() {
    for n in 22..=24 {
        compare(n, 1, 1 << 31);
    }
}
