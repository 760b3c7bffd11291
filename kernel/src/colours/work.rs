//! Estimates of work.

use std::ops::Range;

use super::row_sets::RowSets;
use crate::board::BoardSize;

/// A guess at the time that an orbit takes on average, in nanoseconds of a core of today: the states of the plan.
///
/// By AVX2 on a Zen 3 core: whole boards to N = 22, samples of all strata to N = 28 (`docs/colours.md`), beyond as two rows
/// more take up to then. The same in all strata within a factor of 3 or so, but for the smallest ones.
pub(super) fn mean(n: BoardSize) -> u128 {
    /// In microseconds, for N = 20 to 31.
    const MEANS: [u128; 12] = [
        270, 490, 2_100, 4_500, 15_000, 45_000, 190_000, 430_000, 1_600_000, 4_100_000, 16_000_000,
        40_000_000,
    ];
    const N: u32 = 20;
    match n.get().checked_sub(N) {
        Some(more) => 1_000 * MEANS[more as usize],
        // 2.8 times as long for each row more.
        None => 1_000 * MEANS[0] * 5_u128.pow(N - n.get()) / 14_u128.pow(N - n.get()),
    }
}

/// The same for the orbits of one batch, of whose column sets these shares are counted, each of so many.
pub(super) fn of_batch(n: BoardSize, shares: [(usize, usize); 2]) -> u64 {
    let [counted, all] = [shares[0].0 * shares[1].0, shares[0].1 * shares[1].1].map(|sets| sets as u128);
    // Lists are made and filtered whatever is counted of them.
    let work = mean(n) / 2 + mean(n) * counted / all;
    u64::try_from(work.max(1)).expect("less than 2^36")
}

impl RowSets {
    /// A guess at the time that a range takes, in nanoseconds of a core of today; at least 1.
    pub fn work(&self, range: &Range<u64>) -> u64 {
        u64::try_from((self.work_before(range.end) - self.work_before(range.start)).max(1))
            .unwrap_or(u64::MAX)
    }

    /// The same for all orbits, which may be more than 2^64.
    pub fn work_of_all(&self) -> u128 {
        self.work_before(self.len())
    }

    /// The end of the range that begins at `from` and takes about so long: after `from`, not after the last. Orbits that
    /// are counted together are left together where that makes the range shorter by a third at most.
    pub fn cut(&self, from: u64, work: u64) -> u64 {
        let until = self.work_before(from) + u128::from(work);
        // The last number with no more work before it.
        let (mut low, mut high) = (from + 1, self.len());
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.work_before(middle) <= until {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        if low == self.len() {
            return low;
        }
        let shortest = from + 1 + (low - from) * 2 / 3;
        let starts = self.starts(low);
        starts.into_iter().find(|start| (shortest..=low).contains(start)).unwrap_or(low)
    }
}
