//! How many lanes of a GPU are busy? Real boards of plan `border`, cut into tasks and launched by the engine, on a simulated
//! H200:
//!
//! `cargo bench -p nqueens-gpu -- [N BOARDS SHARE]`
//!
//! takes BOARDS boards in a row from the middle of the plan, and a device and batches that are smaller by SHARE. Without
//! arguments: all of N = 18, and some 500,000 tasks of N = 20 on a small part. Minutes, as the CPU counts all tasks.

use nqueens_gpu::lanes::simulate;
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_kernel::unit::Unit;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let sizes: Vec<usize> = arguments.iter().map(|argument| argument.parse().expect("a number")).collect();
    println!(
        "{:>3} {:>7} {:>6} {:>9} {:>9} {:>12} {:>10} {:>10} {:>15}",
        "N",
        "boards",
        "share",
        "launches",
        "tasks",
        "mean steps",
        "max steps",
        "lanes busy",
        "if memory waits"
    );
    match sizes[..] {
        [] => {
            print(18, usize::MAX, 1);
            print(20, 128, 32);
        }
        [n, boards, share] => print(n, boards, share),
        _ => panic!("N, BOARDS and SHARE"),
    }
}

fn print(n: usize, count: usize, share: usize) {
    let n = BoardSize::new(u32::try_from(n).expect("a board size")).expect("a board size");
    let units: Vec<_> = Plan::new(n, PlanKind::Border).jobs().flat_map(|job| job.units(false)).collect();
    let mut boards: Vec<_> = units.iter().filter_map(Unit::board).cloned().collect();
    let count = count.min(boards.len());
    boards.drain(..(boards.len() - count) / 2);
    boards.truncate(count);
    let report = simulate(&boards, share);
    let [busy, waiting] = report.busy;
    println!(
        "{n:>3} {count:>7} {share:>6} {:>9} {:>9} {:>12} {:>10} {busy:>10.3} {waiting:>15.3}",
        report.launches,
        report.tasks,
        report.steps / report.tasks as u64,
        report.steps_max
    );
}
