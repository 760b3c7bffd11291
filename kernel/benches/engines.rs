//! Counts all solutions of one N on one thread, engine by engine:
//!
//! `cargo bench -p nqueens-kernel -- [N [KERNEL ...]] [--plan PLAN] [--every K] [--runs R]`
//!
//! With `--every K` only each K-th job of the plan is counted, a sample for larger N. The time is that of the
//! fastest run, without the planning; the machine should have nothing else to do.

use std::time::{Duration, Instant};

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::engine::{Control, Kernel};
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_kernel::solver::Solver;

fn main() {
    let mut n: BoardSize = "14".parse().expect("a board size");
    let (mut kernels, mut kind, mut every, mut runs) = (Vec::<Kernel>::new(), PlanKind::Border, 1, 3);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().expect("a value");
        match argument.as_str() {
            "--bench" => {}
            "--plan" => kind = value().parse().expect("a plan"),
            "--every" => every = value().parse().expect("a number"),
            "--runs" => runs = value().parse().expect("a number"),
            text if text.starts_with(|first: char| first.is_ascii_digit()) => {
                n = text.parse().expect("a board size");
            }
            text => kernels.push(text.parse().expect("an engine")),
        }
    }
    if kernels.is_empty() {
        kernels = Kernel::ALL.into_iter().filter(|kernel| kernel.is_available()).collect();
    }

    let jobs: Vec<_> = Plan::new(n, kind).jobs().step_by(every).collect();
    println!(
        "{:>3} {:>10} {:>10} {:>8} {:>22} {:>16}",
        "N", "kernel", "seconds", "jobs", "solutions", "states"
    );
    for kernel in kernels {
        let mut solver = Solver::new(kernel.engine().expect("an engine that this machine can run"), 1 << 33);
        let (mut fastest, mut solutions, mut states) = (Duration::MAX, 0, 0);
        for _ in 0..runs {
            let (jobs, start) = (jobs.iter().cloned(), Instant::now());
            let (totals, visited) = solver.count_jobs(jobs, &Control::default()).expect("nobody stops it");
            fastest = fastest.min(start.elapsed());
            solutions = totals.total(n).expect("a total of 128 bits");
            states = visited;
        }
        let seconds = fastest.as_secs_f64();
        println!("{n:>3} {kernel:>10} {seconds:>10.4} {:>8} {solutions:>22} {states:>16}", jobs.len());
    }
}
