//! Pseudo-random orders, the same on every machine.

use nqueens_kernel::random::Random;

/// The numbers `0..length` in a pseudo-random order fixed by the seed: Fisher and Yates' shuffle, the same on every
/// machine and for ever.
pub(super) fn shuffled(length: u32, seed: u64) -> Vec<u32> {
    let mut random = Random::new(seed);
    let mut numbers: Vec<u32> = (0..length).collect();
    for last in (1..numbers.len()).rev() {
        // Lemire's multiply-shift: a number below last + 1, its bias (2^-32 at worst) of no matter here.
        let pick = (u128::from(random.bits()) * (last as u128 + 1)) >> 64;
        numbers.swap(last, usize::try_from(pick).expect("at most last"));
    }
    numbers
}
