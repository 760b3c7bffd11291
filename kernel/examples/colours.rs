//! Times the plan `colours` on one thread, in full or on a sample of its orbits:
//! `colours N [--isa avx512|avx2|portable] [--samples K] [--piece ORBITS] [--white QUEENS] [--seed S] [--memory BYTES]`.
//!
//! A sample is K pieces of each stratum, drawn at random and scaled up, with the standard errors of their means. A piece is
//! the orbits that are counted together with the one that was drawn, or about so many of them, as a job has them.

use std::time::{Duration, Instant};

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::colours::{Multiplier, RowSets};
use nqueens_kernel::engine::{Control, Kernel};
use nqueens_kernel::random::Random;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let n: BoardSize = arguments.next().expect("N first").parse().expect("N is from 4 to 31");
    let mut isa = Kernel::best();
    let [mut samples, mut piece, mut seed, mut memory_max] = [0, u64::MAX, 1, 1 << 30];
    let mut only = None;
    while let Some(name) = arguments.next() {
        let value = arguments.next().expect("a value follows");
        let number = || value.parse().expect("a number");
        match name.as_str() {
            "--isa" => isa = value.parse().expect("a known instruction set"),
            "--samples" => samples = number(),
            "--piece" => piece = number(),
            "--white" => only = Some(number()),
            "--seed" => seed = number(),
            "--memory" => memory_max = number(),
            _ => panic!("unknown option {name}"),
        }
    }
    let sets = RowSets::new(n).expect("N is from 4 to 31");
    let mut multiplier = Multiplier::new(isa, memory_max).expect("this machine has the instructions");
    let mut random = Random::new(seed);
    println!("n {n} isa {isa} orbits {}", sets.len());
    let mut sums = [Sum::default(); 3];
    for (white, range) in sets.strata().filter(|(white, _)| only.is_none_or(|only| only == u64::from(*white)))
    {
        let orbits = range.end - range.start;
        let pieces = if samples == 0 {
            vec![range]
        } else {
            let draw = |at| {
                let drawn = range.start + (orbits * at + random.bits() % orbits) / samples;
                sets.piece(drawn, piece.saturating_mul(sets.work(&(drawn..drawn + 1))))
            };
            (0..samples).map(draw).collect()
        };
        let mut figures = [const { Vec::new() }; 3];
        for piece in pieces {
            let (length, start) = (real(piece.end - piece.start), cpu_time());
            let tally = multiplier.count_each(&sets, piece, &mut |_, _| {}, &Control::default());
            let tally = tally.expect("nobody stops it");
            let seconds = cpu_time().saturating_sub(start).as_secs_f64();
            for (figure, value) in
                figures.iter_mut().zip([real(tally.weighted_solutions), real(tally.states), seconds])
            {
                figure.push(value / length * real(orbits));
            }
        }
        let figures = figures.map(|values| Sum::of(&values));
        println!(
            "white {white} orbits {orbits} solutions {} states {} cpu {} s",
            figures[0], figures[1], figures[2]
        );
        for (sum, figure) in sums.iter_mut().zip(figures) {
            *sum = Sum { value: sum.value + figure.value, variance: sum.variance + figure.variance };
        }
    }
    println!("solutions {} states {} cpu {} s", sums[0], sums[1], sums[2]);
    // What a worker's memory floor is fitted to (cli/src/memory.rs): with --samples 1 --piece 1 --memory 1 and one --white a process.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(peak) = status.lines().find(|line| line.starts_with("VmHWM")) {
        println!("{peak}");
    }
}

/// A figure and the variance of it.
#[derive(Clone, Copy, Default)]
struct Sum {
    value: f64,
    variance: f64,
}

impl Sum {
    /// The mean of several estimates.
    fn of(estimates: &[f64]) -> Self {
        let count = real(estimates.len() as u64);
        let value = estimates.iter().sum::<f64>() / count;
        let squares: f64 = estimates.iter().map(|estimate| (estimate - value).powi(2)).sum();
        let variance = if estimates.len() > 1 { squares / (count * (count - 1.0)) } else { 0.0 };
        Self { value, variance }
    }
}

impl std::fmt::Display for Sum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.variance == 0.0 {
            write!(f, "{}", self.value)
        } else {
            write!(f, "{:.4e} +- {:.1e}", self.value, self.variance.sqrt())
        }
    }
}

/// Time that this thread has run, which other programs on the machine disturb less than the clock on the wall; that clock
/// where it is not known.
fn cpu_time() -> Duration {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let known = || {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
    };
    known().unwrap_or_else(|| START.get_or_init(Instant::now).elapsed())
}

#[expect(clippy::cast_precision_loss, reason = "for print")]
fn real(count: u64) -> f64 {
    count as f64
}
