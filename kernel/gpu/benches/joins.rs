//! How long would a GPU take for plan `colours`? Real orbits, on a simulated H200:
//!
//! `cargo bench -p nqueens-gpu --bench joins -- N RANGES ORBITS`
//!
//! takes RANGES ranges of ORBITS orbits, evenly spaced. Without arguments: N = 18 and 20, seconds.

#![expect(clippy::cast_precision_loss, reason = "estimates")]

use std::sync::Arc;
use std::time::Instant;

use nqueens_gpu::joins;
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::colours::RowSets;
use nqueens_kernel::engine::Control;
use nqueens_kernel::halves::SharedTables;
use nqueens_kernel::solver::Solver;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let numbers: Vec<u64> = arguments.iter().map(|argument| argument.parse().expect("a number")).collect();
    let all = if numbers.is_empty() { vec![[18, 8, 256], [20, 8, 256]] } else { vec![] };
    let all: Vec<[u64; 3]> =
        if all.is_empty() { vec![numbers.try_into().expect("N RANGES ORBITS")] } else { all };
    println!(
        "{:>3} {:>9} {:>8} {:>10} {:>10} {:>10} {:>10} {:>10} {:>6} {:>10} {:>9} {:>9}",
        "N",
        "orbits",
        "sampled",
        "filters s",
        "tables s",
        "leaves s",
        "products s",
        "total s",
        "fill",
        "pairs",
        "bytes",
        "host s"
    );
    for [n, ranges, length] in all {
        let sets = RowSets::new(BoardSize::new(u32::try_from(n).expect("a board")).expect("a board"))
            .expect("a board");
        let (engine, joined) = joins::engine();
        let mut solver = Solver::new(engine, &Arc::new(SharedTables::new(0, 1)));
        let begun = Instant::now();
        let mut sampled = 0;
        for range in 0..ranges {
            let start = (2 * range + 1) * sets.len() / (2 * ranges) - length / 2;
            let range = start..sets.len().min(start + length);
            sampled += range.end - range.start;
            solver.count_colours(&sets, range, &Control::default()).expect("nobody stops it");
        }
        let host = begun.elapsed().as_secs_f64();
        let joined = joined.lock().expect("no panic").clone();
        let scale = sets.len() as f64 / sampled as f64;
        let [filters, tables, leaves, products] = joined.seconds().map(|seconds| seconds * scale);
        println!(
            "{n:>3} {:>9} {sampled:>8} {filters:>10.3} {tables:>10.3} {leaves:>10.3} {products:>10.3} {:>10.3} {:>6.2} {:>10.2e} {:>9.2e} {:>9.2}",
            sets.len(),
            filters + tables + leaves + products,
            joined.pairs as f64 / joined.slots as f64,
            joined.pairs as f64 * scale,
            joined.bytes as f64 * scale,
            (host - joined.simulated) * scale,
        );
    }
}
