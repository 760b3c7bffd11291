//! The faults that strike, and how often.

use std::collections::BTreeMap;

use nqueens_kernel::random::Random;

use crate::scenario::Fault;

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

    pub(crate) fn calm(&mut self) {
        self.rates.clear();
    }

    pub(crate) fn is_calm(&self) -> bool {
        self.rates.is_empty()
    }
}
