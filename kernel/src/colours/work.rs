//! Estimates of work.

use crate::board::BoardSize;

/// A guess at the time that an orbit takes on average, in nanoseconds of a core of today: the states of the plan.
///
/// By AVX2 on a Zen 3 core: whole boards to N = 22, samples of all strata to N = 28, beyond as two rows more take up to then; for
/// odd N the times of AVX-512, as much longer as for even N (`docs/performance.md`). The same in all strata within a factor of
/// 3 or so, but for the smallest ones.
pub(super) fn mean(n: BoardSize) -> u128 {
    /// In microseconds, for N = 20 to 31.
    const MEANS: [u128; 12] = [
        270, 370, 2_100, 2_500, 15_000, 20_000, 190_000, 240_000, 1_600_000, 2_400_000, 16_000_000,
        24_000_000,
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
