//! The crate from the outside.

mod boards;
mod cells;
mod colours;
mod engines;
mod jobs;
mod ladder;
mod parts;
mod plans;
mod sampling;
mod sequences;
mod sizes;
mod solution;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::Counts;
use nqueens_kernel::engine::{Control, Kernel};
use nqueens_kernel::job::Job;
use nqueens_kernel::solver::Solver;

fn board(n: u32) -> BoardSize {
    BoardSize::new(n).unwrap()
}

fn solver(kernel: Kernel) -> Solver {
    Solver::new(kernel.engine().unwrap(), 1 << 30)
}

fn count(job: &Job, solver: &mut Solver) -> Counts {
    solver.count_job(job, &Control::default()).unwrap().unwrap().counts
}
