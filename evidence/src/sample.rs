//! A sample of jobs, drawn by a seed.

use std::collections::BTreeMap;

use nqueens_kernel::counts::Counts;
use nqueens_model::kernel::KernelName;
use nqueens_model::message::EncodedJob;
use sha2::{Digest, Sha256};

/// The result of a job according to a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub number: u32,
    pub job: EncodedJob,
    pub counts: Counts,
    pub kernel: KernelName,
    pub worker: u64,
}

/// Keeps as many of the jobs that pass by as it was asked for, each set of them as likely as any other.
///
/// A job's place is SHA-256 over the seed and its number (8 and 4 bytes, big-endian), and those with the lowest places are
/// kept: so the draw can be repeated by anybody, whatever order the jobs come in.
#[derive(Clone, Debug)]
pub struct Sample {
    seed: u64,
    size: usize,
    kept: BTreeMap<[u8; 32], Claim>,
}

impl Sample {
    /// Up to `size` jobs, by `seed`.
    pub fn new(size: usize, seed: u64) -> Self {
        Self { seed, size, kept: BTreeMap::new() }
    }

    pub fn offer(&mut self, number: u32, claim: impl FnOnce() -> Claim) {
        if self.size == 0 {
            return;
        }
        let hash = Sha256::new().chain_update(self.seed.to_be_bytes()).chain_update(number.to_be_bytes());
        let place = hash.finalize().into();
        let full = self.kept.len() == self.size;
        if full && self.kept.last_key_value().is_some_and(|(last, _)| *last <= place) {
            return;
        }
        if self.kept.insert(place, claim()).is_none() && full {
            self.kept.pop_last();
        }
    }

    /// The kept ones in the order of their places: the first of them are a sample too.
    pub fn into_claims(self) -> Vec<Claim> {
        self.kept.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use nqueens_kernel::board::BoardSize;
    use nqueens_kernel::job::Class;

    use super::*;
    use crate::confidence::finds;

    fn draw(size: usize, seed: u64, numbers: impl Iterator<Item = u32>) -> Vec<u32> {
        let mut sample = Sample::new(size, seed);
        for number in numbers {
            let job = EncodedJob { n: BoardSize::MIN, class: Class::Edge, bound1: 0, prefixes: Vec::new() };
            let kernel = "scalar".parse().expect("a name");
            let claim = Claim { number, job, counts: Counts::ZERO, kernel, worker: 1 };
            sample.offer(number, || claim);
        }
        sample.into_claims().iter().map(|claim| claim.number).collect()
    }

    #[test]
    fn a_draw_depends_on_the_seed_and_on_nothing_else() {
        let drawn = draw(10, 1, 0..1_000);
        assert_eq!(drawn, draw(10, 1, (0..1_000).rev()));
        assert_ne!(drawn, draw(10, 2, 0..1_000));
        assert_eq!(draw(4, 1, 0..1_000), drawn[..4]);
        let mut all = draw(100, 1, 0..20);
        all.sort_unstable();
        assert!(all.into_iter().eq(0..20));
        assert!(draw(0, 1, 0..20).is_empty());
    }

    #[test]
    fn every_job_is_as_likely_as_any_other() {
        let mut drawn = [0_u32; 20];
        for seed in 0..4_000 {
            for number in draw(5, seed, 0..20) {
                drawn[number as usize] += 1;
            }
        }
        // A quarter of 4,000 each; the standard deviation is 27.
        assert!(drawn.iter().all(|times| (850..1_150).contains(times)), "{drawn:?}");
    }
    #[test]
    fn a_sample_misses_wrong_jobs_as_seldom_as_it_says() {
        let wrong = (1..=100_u32).find(|&wrong| finds(100, 20, wrong.into()) >= 0.95).unwrap();
        let missed = (0..2_000).filter(|&seed| draw(20, seed, 0..100).iter().all(|&number| number >= wrong));
        // 5 % at most by the formula: 4.2 % of 2,000 are 84, with a standard deviation of 9.
        assert!((55..=110).contains(&missed.count()), "{wrong}");
    }
}
