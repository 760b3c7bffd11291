//! Colours on a device: all pairs of placements compared, and the counts multiplied.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use nqueens_kernel::engine::{Control, PairCounter, PairWork, Stopped};

use crate::runner::{Fault, Interruption};

/// Pieces that the column sets p of a row set are counted in.
pub(crate) const STRIPES: usize = 32;

/// Pairs in the first launch; the next ones follow the time that it takes.
const PAIRS_FIRST: u64 = 1 << 24;

/// Pairs in a launch, at most: about as many as a large GPU compares in a launch's time.
const PAIRS_MAX: u64 = 1 << 42;

/// Time between two looks at the device and at the control.
const LOOK: Duration = Duration::from_micros(200);

/// Runs launches of some row sets, one after the other.
pub(crate) trait PairRunner: Send {
    /// Column sets l in a piece.
    fn width(&self) -> usize;

    /// Longest time of a launch in seconds.
    fn launch_s(&self) -> f64;

    /// Makes the lists known.
    fn set(&mut self, work: &PairWork<'_>) -> Result<(), Fault>;

    /// Begins to count these row sets.
    fn start(&mut self, work: &PairWork<'_>, first: usize, row_sets: usize) -> Result<(), Fault>;

    /// Whether that has ended.
    fn is_done(&mut self) -> Result<bool, Fault>;

    /// What it came to: by row set, stripe, and piece of the column sets l; each as its low and its high 64 bits.
    fn sums(&mut self) -> Result<Vec<[u64; 2]>, Fault>;
}

/// Compares pairs on a device.
pub(crate) struct DevicePairs<R> {
    runner: R,
    /// Pairs in a launch.
    load: u64,
    launches: usize,
    fault: Option<String>,
}

impl<R> fmt::Debug for DevicePairs<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DevicePairs").field("load", &self.load).finish_non_exhaustive()
    }
}

impl<R: PairRunner> DevicePairs<R> {
    pub(crate) fn new(runner: R) -> Self {
        Self { runner, load: PAIRS_FIRST, launches: 0, fault: None }
    }

    fn count_all(&mut self, work: &PairWork<'_>, control: &Control) -> Result<Vec<u64>, Interruption> {
        let (mut next, end) = work.row_sets;
        let mut all = Vec::with_capacity(end - next);
        self.runner.set(work)?;
        while next < end {
            let (mut row_sets, mut pairs) = (0, 0_u64);
            while next + row_sets < end && (row_sets == 0 || pairs < self.load) {
                pairs = pairs.saturating_add(work.pairs(next + row_sets));
                row_sets += 1;
            }
            let begun = Instant::now();
            self.runner.start(work, next, row_sets)?;
            let mut stopped = Ok(());
            while !self.runner.is_done()? {
                // A launch that has begun is waited for: it reads what the next call replaces.
                stopped = stopped.and(control.advance(0));
                thread::sleep(LOOK);
            }
            stopped?;
            let sums = self.runner.sums()?;
            self.check(work, next, row_sets, &sums)?;
            for sums in sums.chunks(sums.len() / row_sets) {
                let sum: u128 =
                    sums.iter().map(|&[low, high]| u128::from(high) << 64 | u128::from(low)).sum();
                let sum = u64::try_from(sum);
                all.push(sum.map_err(|_| Fault::Wrong("2^64 solutions or more of a row set".to_owned()))?);
            }
            control.advance(pairs)?;
            let elapsed = begun.elapsed().as_secs_f64().max(1e-6);
            #[expect(
                clippy::cast_precision_loss,
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a guess"
            )]
            let load = (pairs as f64 * self.runner.launch_s() / elapsed) as u64;
            self.load = load.clamp(self.load / 4, self.load.saturating_mul(4)).clamp(1, PAIRS_MAX);
            next += row_sets;
        }
        Ok(all)
    }

    /// Counts one of the launch's sums again, each time another.
    fn check(
        &mut self,
        work: &PairWork<'_>,
        first: usize,
        row_sets: usize,
        sums: &[[u64; 2]],
    ) -> Result<(), Fault> {
        let [_, ls] = work.sets();
        let pieces = ls.div_ceil(self.runner.width());
        if sums.len() != row_sets * STRIPES * pieces {
            return Err(Fault::Wrong(format!("{} sums of {row_sets} row sets", sums.len())));
        }
        // A prime: all are met.
        self.launches = self.launches.wrapping_add(1_000_003);
        let at = self.launches % sums.len();
        let (row_set, stripe, piece) = (at / (STRIPES * pieces), at / pieces % STRIPES, at % pieces);
        let expected =
            sum_of(work, first + row_set, stripe, piece * self.runner.width(), self.runner.width());
        let [low, high] = sums[at];
        if u128::from(high) << 64 | u128::from(low) == expected {
            Ok(())
        } else {
            Err(Fault::Wrong(format!("{low} and {high} * 2^64 for a sum of {expected}")))
        }
    }
}

impl<R: PairRunner> PairCounter for DevicePairs<R> {
    fn count(&mut self, work: &PairWork<'_>, control: &Control) -> Result<Vec<u64>, Stopped> {
        self.count_all(work, control).map_err(|interruption| {
            if let Interruption::Fault(fault) = interruption {
                self.fault = Some(fault.to_string());
            }
            Stopped
        })
    }

    fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }
}

/// The sum of a stripe and some column sets l of a row set, by plain loops: the obvious twin of `multiply.cl`.
fn sum_of(work: &PairWork<'_>, row_set: usize, stripe: usize, from: usize, width: usize) -> u128 {
    let [ps, ls] = work.sets();
    let mut sum = 0;
    for p in (stripe..ps).step_by(STRIPES) {
        for l in from..ls.min(from + width) {
            let leaf = |colour: usize, at| list(work.leaves[colour].masks, work.starts(colour, row_set), at);
            let lane = |colour: usize, at| list(work.lanes[colour].masks, work.lanes[colour].starts, at);
            let [one, other] = [work.factors[0][p], work.factors[1][l]].map(|pair| pair.map(u128::from));
            let factor = one[0] * other[0] + one[1] * other[1];
            let first = fits(leaf(0, p), lane(0, l));
            if first > 0 {
                sum += first * fits(leaf(1, l), lane(1, p)) * factor;
            }
        }
    }
    sum
}

fn list<'a>(masks: &'a [u64], starts: &[u32], at: usize) -> &'a [u64] {
    &masks[starts[at] as usize..starts[at + 1] as usize]
}

fn fits(one: &[u64], other: &[u64]) -> u128 {
    let count: usize = one.iter().map(|mask| other.iter().filter(|other| **other & mask == 0).count()).sum();
    count as u128
}

#[cfg(test)]
mod tests;
