//! The parts of a job, each small enough to be counted once more.

use super::Job;
use crate::prefix::Prefix;

impl Job {
    /// Estimated states of a part: an engine of another family counts it in some seconds, or in a minute.
    const STATES_PER_PART: u64 = 1_000_000_000;

    /// Parts of a job, at most: their counts travel with its result.
    pub const PARTS_MAX: u64 = 64;

    /// How many parts a job of so many estimated states is to have. It has fewer if it can't be cut so often.
    pub fn parts_wanted(states: u64) -> u64 {
        (states / Self::STATES_PER_PART).clamp(1, Self::PARTS_MAX)
    }

    /// The parts of a job of so many estimated states: jobs that together have its solutions, each once; the job alone if
    /// it is small. Always the same in the same order.
    ///
    /// A range of row sets falls into ranges of about equal length. Prefixes are made longer until they are enough, as long as
    /// all of them can be (of symmetric configurations only the leader is placed), and then stand together by their guesses
    /// at the work.
    pub fn parts(&self, states: u64) -> Vec<Self> {
        let wanted = Self::parts_wanted(states);
        if wanted == 1 {
            return vec![self.clone()];
        }
        let Some(range) = self.row_sets() else { return self.groups(wanted) };
        let sets = range.end - range.start;
        let parts = wanted.min(sets);
        let from = |part| range.start + sets * part / parts;
        (0..parts).map(|part| Self::of_row_sets(self.n, from(part)..from(part + 1))).collect()
    }

    /// Its prefixes or longer ones, in groups of about equal work.
    fn groups(&self, wanted: u64) -> Vec<Self> {
        let mut prefixes: Vec<_> = self.placed().collect();
        while (prefixes.len() as u64) < wanted {
            let longer: Option<Vec<_>> = prefixes.iter().map(Prefix::split).collect();
            let Some(longer) = longer.map(|longer| longer.concat()).filter(|longer| !longer.is_empty())
            else {
                break;
            };
            prefixes = longer;
        }
        let guesses: Vec<_> = prefixes.iter().map(Prefix::states_estimate).collect();
        let all = guesses.iter().fold(0, |sum: u64, states| sum.saturating_add(*states));
        let (target, width) = (all.div_ceil(wanted), prefixes[0].queens.len());
        let width = u8::try_from(width).expect("a queen a row, a corner's twice");
        let (mut parts, mut group, mut states) = (Vec::new(), Vec::new(), 0_u64);
        let mut close = |group: &mut Vec<u8>| {
            let (key, masks) = ((self.class, self.bound1), self.masks.clone());
            parts.push(Self::new(self.n, key, masks, width, std::mem::take(group)));
        };
        for (prefix, guess) in prefixes.iter().zip(guesses) {
            group.extend(&prefix.queens);
            states = states.saturating_add(guess);
            if states >= target {
                close(&mut group);
                states = 0;
            }
        }
        if !group.is_empty() {
            close(&mut group);
        }
        parts
    }
}
