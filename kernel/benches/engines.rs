//! Counts all solutions of one N by way of the border configurations on one thread, engine by engine:
//!
//! `cargo bench -p nqueens-kernel -- [N [ENGINE ...]] [--every K] [--runs R]`
//!
//! With `--every K` only each K-th configuration is counted, a sample for larger N. The time is that of the
//! fastest run; the machine should have nothing else to do.

#[path = "../tests/common/mod.rs"]
mod common;

use std::time::{Duration, Instant};

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::engine::{Control, Kernel};

fn main() {
    let mut n: BoardSize = "14".parse().expect("a board size");
    let (mut kernels, mut every, mut runs) = (Vec::<Kernel>::new(), 1, 3);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.parse().ok()).expect("a number");
        match argument.as_str() {
            "--bench" => {}
            "--every" => every = number(),
            "--runs" => runs = number(),
            text if text.starts_with(|first: char| first.is_ascii_digit()) => {
                n = text.parse().expect("a board size");
            }
            text => kernels.push(text.parse().expect("an engine")),
        }
    }
    if kernels.is_empty() {
        kernels = Kernel::ALL.into_iter().filter(|kernel| kernel.is_available()).collect();
    }

    let jobs: Vec<_> = common::border_configurations(n).into_iter().step_by(every).collect();
    println!(
        "{:>3} {:>10} {:>10} {:>8} {:>22} {:>16}",
        "N", "kernel", "seconds", "jobs", "solutions", "states"
    );
    for kernel in kernels {
        let mut engine = kernel.engine().expect("an engine that this machine can run");
        let (mut fastest, mut total, mut states) = (Duration::MAX, 0_u128, 0);
        for _ in 0..runs {
            let control = Control::default();
            let start = Instant::now();
            let counts = jobs.iter().map(|(images, board)| {
                let tally = engine.count(board, &control).expect("nobody stops it");
                u128::from(*images) * u128::from(tally.completions)
            });
            total = counts.sum();
            fastest = fastest.min(start.elapsed());
            states = control.states();
        }
        let seconds = fastest.as_secs_f64();
        println!("{n:>3} {kernel:>10} {seconds:>10.4} {:>8} {total:>22} {states:>16}", jobs.len());
    }
}
