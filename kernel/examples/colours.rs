//! Times the plan `colours` on one thread.
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::colours::*;
use nqueens_kernel::engine::Control;
use nqueens_kernel::halves::Isa;

fn main() {
    let a: Vec<String> = std::env::args().collect();
    let n: BoardSize = a[1].parse().unwrap();
    let isa: Isa = a[2].parse().unwrap();
    let sets = RowSets::new(n).unwrap();
    let get = |k: &str, d: usize| std::env::var(k).ok().and_then(|v| v.parse().ok()).unwrap_or(d);
    let mut m = Multiplier::new(isa, (get("MB", 1024) as u64) << 20).unwrap();
    let samples = get("SAMPLES", 0) as u64;
    let (mut total, mut time) = (0.0, 0.0);
    let mut exact = 0;
    for (white, range) in sets.strata() {
        if get("A", white as usize) != white as usize { continue; }
        let t = std::time::Instant::now();
        let len = range.end - range.start;
        let size = get("SIZE", 40) as u64;
        let mut sums = vec![];
        if samples == 0 || samples * size >= len {
            let tally = m.count(&sets, range, &Control::default()).unwrap();
            sums.push((tally.weighted_solutions as f64, t.elapsed().as_secs_f64(), len));
            exact += tally.weighted_solutions;
        } else {
            for s in 0..samples {
                let from = range.start + (len - size) * (2 * s + 1) / (2 * samples);
                let t = std::time::Instant::now();
                let tally = m.count(&sets, from..from + size, &Control::default()).unwrap();
                sums.push((tally.weighted_solutions as f64, t.elapsed().as_secs_f64(), size));
            }
        }
        let n: u64 = sums.iter().map(|s| s.2).sum();
        let scale = len as f64 / n as f64;
        let (q, t): (f64, f64) = (sums.iter().map(|s| s.0).sum(), sums.iter().map(|s| s.1).sum());
        total += q * scale;
        time += t * scale;
        println!("a {white} orbits {len} sum {:.5e} time {:.3} each {:.3} ms", q * scale, t * scale, t / n as f64 * 1e3);
    }
    println!("{n} orbits {} total {exact} {total:.6e} time {time:.3}", sets.len());
}
