//! The random numbers of a simulation, and the faults that they decide on. All follows from the seed.

use std::collections::BTreeMap;

use nqueens_kernel::random::SplitMix64;

use crate::scenario::Fault;

/// Random numbers.
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

/// Random numbers, how often each fault strikes, and how often it has.
#[derive(Clone, Debug)]
pub(crate) struct Luck {
    pub(crate) random: Random,
    /// In times of 100,000 messages, seconds or jobs.
    rates: BTreeMap<Fault, u64>,
    /// In the order of [`Fault::ALL`].
    pub(crate) struck: [u64; Fault::ALL.len()],
}

impl Luck {
    pub(crate) fn new(mut random: Random, faults: &[Fault]) -> Self {
        let rates = faults.iter().map(|fault| (*fault, 30 << random.below(8))).collect();
        Self { random, rates, struck: [0; Fault::ALL.len()] }
    }

    /// True as often as the fault's rate says.
    pub(crate) fn strikes(&mut self, fault: Fault) -> bool {
        let Some(rate) = self.rates.get(&fault) else { return false };
        let strikes = self.random.below(100_000) < *rate;
        self.struck[fault as usize] += u64::from(strikes);
        strikes
    }

    /// Faults cease.
    pub(crate) fn calm(&mut self) {
        self.rates.clear();
    }

    pub(crate) fn is_calm(&self) -> bool {
        self.rates.is_empty()
    }
}
