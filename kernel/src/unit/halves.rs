//! Ranges of column sets of half boards.

use std::ops::Range;

use super::Unit;
use crate::board::BoardSize;
use crate::counts::Counts;
use crate::estimate;
use crate::halves::Orbits;
use crate::job::Weight;
use crate::known::published;

/// Some [orbits](Orbits) of the column sets of an N, by their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Halves {
    /// Board size, at least [`Orbits::N_MIN`].
    pub(crate) n: BoardSize,
    /// Numbers of the orbits.
    pub(crate) range: Range<u64>,
}

impl Halves {
    /// All orbits of the board.
    pub(crate) fn orbits(&self) -> Orbits {
        Orbits::new(self.n).expect("checked when the job was made")
    }

    /// What they are expected to cost, and what they can have at most: no more than the rows of both halves admit or than
    /// is published for the whole board.
    pub(crate) fn weight(&self) -> Weight {
        let orbits = u128::from(self.range.end - self.range.start);
        let (upper, all) = (self.n.get() / 2, self.n.get());
        let placements = (1..=upper).chain(1..=all - upper).map(u128::from).product::<u128>();
        // The heaviest weigh 8.
        let admitted = placements.saturating_mul(8 * orbits);
        let published = published(self.n).map_or(u128::MAX, |known| known.total);
        let solutions = admitted.min(published).min(u128::from(i64::MAX.unsigned_abs()));
        Weight {
            states: estimate::halves(&self.orbits(), &self.range),
            counts_max: Counts::plain(u64::try_from(solutions).expect("just limited")),
        }
    }

    /// The clusters of the range; a cluster is left whole.
    pub(super) fn split(&self) -> Vec<Unit> {
        let Range { start, end } = self.range;
        let cluster = self.orbits().cluster();
        let from = |first: u64| start.max(first * cluster)..end.min((first + 1) * cluster);
        let clusters = (start / cluster..end.div_ceil(cluster)).map(from);
        clusters.map(|range| Unit::Halves(Self { range, ..*self })).collect()
    }
}
