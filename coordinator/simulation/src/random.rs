//! The random numbers of a simulation.

use nqueens_kernel::random::SplitMix64;

/// Random numbers; all follow from the seed.
#[derive(Clone, Debug)]
pub(crate) struct Random(SplitMix64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next()
    }

    /// A number below `end`, or 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.bits() % end.max(1)
    }

    /// A number from `low` on, below `high`.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low)
    }

    /// True so many times of a thousand.
    pub(crate) fn chance(&mut self, of_1000: u64) -> bool {
        self.below(1_000) < of_1000
    }

    /// A place in a sequence of this length, which is not 0.
    pub(crate) fn place(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("below a length")
    }

    /// A number in `0.0..1.0`.
    pub(crate) fn part(&mut self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
        let part = (self.bits() >> 11) as f64 / (1_u64 << 53) as f64;
        part
    }

    /// 16 random bytes.
    pub(crate) fn bytes(&mut self) -> [u8; 16] {
        (u128::from(self.bits()) << 64 | u128::from(self.bits())).to_be_bytes()
    }
}
