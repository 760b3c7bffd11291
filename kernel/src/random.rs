//! Pseudo-random numbers: the same for a seed, on every machine and for ever.

use std::ops::RangeInclusive;

/// The generator `SplitMix64` (G. Steele, D. Lea, C. Flood, 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The series of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Series `number` of a seed: as independent as the series of two seeds.
    pub fn series(seed: u64, number: u32) -> Self {
        Self(mix(Self(seed).bits() ^ u64::from(number)))
    }

    /// An independent series, drawn from this one.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self(self.bits())
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.bits() % end
    }

    /// A number in `range`, which is not empty, nor all numbers.
    pub fn number(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (low, high) = range.into_inner();
        low + self.below(high - low + 1)
    }

    /// A place in a list of this length, which is not 0.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("below a length")
    }

    /// True with this probability, in thousandths.
    pub fn permille(&mut self, share: u64) -> bool {
        self.below(1_000) < share
    }

    /// A number in `0.0..1.0`, of 53 bits.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Numbers that differ in few bits become such that differ in many.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}
