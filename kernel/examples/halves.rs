//! Times the half-board join on one thread, in full or on a sample of its orbits:
//! `halves N [--isa avx512|avx2|portable] [--orbits K] [--from ORBIT] [--tables BYTES] [--lists BYTES]`.
//!
//! A sample is scaled up, with the standard error of its mean.

use std::time::{Duration, Instant};

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::engine::Control;
use nqueens_kernel::halves::{Join, JoinTally, Tables};
use nqueens_kernel::isa::Isa;

/// A sample is taken in so many parts, to see how they differ.
const PARTS: u64 = 40;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let n: BoardSize = arguments.next().expect("N first").parse().expect("N is from 6 to 31");
    let mut isa = Isa::best();
    let [mut orbits_max, mut tables_max, mut lists_max] = [u64::MAX, u64::MAX, 1 << 30];
    let mut from = 0;
    while let Some(name) = arguments.next() {
        let mut value = || arguments.next().expect("a value follows");
        match name.as_str() {
            "--isa" => isa = value().parse().expect("a known instruction set"),
            "--orbits" => orbits_max = value().parse().expect("a number"),
            "--from" => from = value().parse().expect("a number"),
            "--tables" => tables_max = value().parse().expect("a number of bytes"),
            "--lists" => lists_max = value().parse().expect("a number of bytes"),
            _ => panic!("unknown option {name}"),
        }
    }
    let control = Control::default();
    let start = Instant::now();
    let tables = Tables::new(n, tables_max, &control).expect("N is from 6 to 31").expect("nobody stops it");
    let tables_time = start.elapsed();
    let mut join = Join::new(isa, lists_max).expect("this machine has the instructions");

    let all = tables.orbits().len();
    let orbits = orbits_max.min(all - from);
    let parts = PARTS.min(orbits);
    let mut samples = Vec::new();
    let cpu_before = cpu_seconds();
    for part in 0..parts {
        let range = from + orbits * part / parts..from + orbits * (part + 1) / parts;
        let start = Instant::now();
        let tally = join.count(&tables, range, &control).expect("nobody stops it");
        samples.push((tally, start.elapsed()));
    }
    let cpu = cpu_before.zip(cpu_seconds()).map(|(before, after)| after - before);
    let scale = real(all) / real(orbits);
    let (total, total_error) = scaled(&samples, scale, |(tally, _)| real(tally.weighted_solutions));
    let (time, time_error) = scaled(&samples, scale, |(_, time)| time.as_secs_f64());
    let (pairs, _) = scaled(&samples, scale, |(tally, _)| real(tally.states));
    let counted: Duration = samples.iter().map(|(_, time)| *time).sum();
    println!(
        "n {n} isa {isa} orbits {orbits}/{all} tables {:.3} s {} MB elapsed {:.3} s",
        tables_time.as_secs_f64(),
        tables.bytes() >> 20,
        counted.as_secs_f64(),
    );
    if orbits == all {
        println!("total {}", samples.iter().map(|(tally, _)| tally.weighted_solutions).sum::<u64>());
    } else {
        println!("total {total:.4e} +- {total_error:.1} %, time {time:.1} s +- {time_error:.1} %");
    }
    println!("pairs {pairs:.3e}");
    if let Some(cpu) = cpu {
        println!("cpu {cpu:.3} s");
    }
}

/// Time that this thread has run, which other programs on the machine disturb less than the clock on the wall; known on
/// Linux.
fn cpu_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: u64 = text.split(' ').next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds).as_secs_f64())
}

/// The sum of a figure over all parts, scaled up, and the standard error of it in per cent.
fn scaled(
    samples: &[(JoinTally, Duration)],
    scale: f64,
    figure: impl Fn(&(JoinTally, Duration)) -> f64,
) -> (f64, f64) {
    let parts = real(samples.len() as u64);
    let sum: f64 = samples.iter().map(&figure).sum();
    let mean = sum / parts;
    let variance = samples.iter().map(|sample| (figure(sample) - mean).powi(2)).sum::<f64>() / parts;
    (sum * scale, 100.0 * (variance / parts).sqrt() / mean)
}

#[expect(clippy::cast_precision_loss, reason = "for print")]
fn real(count: u64) -> f64 {
    count as f64
}
