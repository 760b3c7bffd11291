//! Counts a board by the half-board join, in full or by a sample of its orbits, and says how long it took:
//! `halves N [avx512|avx2|portable] [orbits]`.

use std::time::Instant;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::engine::Control;
use nqueens_kernel::halves::{Isa, Join, Tables};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let n: BoardSize = arguments.next().expect("N").parse().expect("a board size");
    let isa: Isa = arguments.next().map_or(Isa::best(), |name| name.parse().expect("an instruction set"));
    let control = Control::default();
    let start = Instant::now();
    let tables = Tables::new(n, u64::MAX, &control).expect("N is large enough").expect("nobody stops it");
    let built = start.elapsed();
    let len = tables.orbits().len();
    let orbits = arguments.next().map_or(len, |orbits| orbits.parse().expect("a number of orbits")).min(len);
    let mut join = Join::new(isa, 1 << 30).expect("the instruction set is there");
    let mut sum = 0;
    let counting = Instant::now();
    let tally = join.count(&tables, 0..orbits, &control).expect("nobody stops it");
    sum += tally.weighted_solutions;
    let counted = counting.elapsed();
    let scale = len as f64 / orbits as f64;
    println!(
        "n {n} isa {isa} orbits {orbits}/{len} total {sum} ({:.0}) tables {:.3} s {} MB, join {:.3} s => {:.2} s, pairs {:.3e}",
        sum as f64 * scale,
        built.as_secs_f64(),
        tables.bytes() >> 20,
        counted.as_secs_f64(),
        counted.as_secs_f64() * scale,
        tally.states as f64 * scale,
    );
}
