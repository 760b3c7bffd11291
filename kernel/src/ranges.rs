//! Jobs of colours: ranges of the numbered row sets of a board.

use std::ops::Range;
use std::sync::OnceLock;

use crate::board::BoardSize;
use crate::colours::RowSets;
use crate::counts::Counts;
use crate::job::weight::Weight;
use crate::known::published;

impl RowSets {
    /// Those of boards of `n`, as [`new`](Self::new) makes them: tables of the square root of their number, made once a
    /// process.
    pub(crate) fn shared(n: BoardSize) -> Option<&'static Self> {
        static MADE: [OnceLock<Option<RowSets>>; BoardSize::MAX.index()] =
            [const { OnceLock::new() }; BoardSize::MAX.index()];
        MADE[n.index() - 1].get_or_init(|| Self::new(n)).as_ref()
    }

    /// The ranges of all orbits, of about this many states each.
    pub(crate) fn ranges(&self, states: u64) -> impl Iterator<Item = Range<u64>> + Send {
        let mut from = 0;
        std::iter::from_fn(move || {
            let start = from;
            from = if start < self.len() { self.cut(start, states) } else { start };
            (start < from).then_some(start..from)
        })
    }

    /// The pieces in which threads share a range; one orbit is left whole.
    pub(crate) fn pieces(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        /// Neighbours share work: pieces are as long as several splittings allow, and shorter than this only if the range is,
        /// too.
        const PIECES: u64 = 16;
        const TOGETHER: u64 = 8;
        let least = if range.end - range.start > TOGETHER { TOGETHER } else { 1 };
        let (states, mut from) = (self.work(range).div_ceil(PIECES), range.start);
        let mut pieces = Vec::new();
        while from < range.end {
            let end = self.cut(from, states).max(from + least).min(range.end);
            pieces.push(from..end);
            from = end;
        }
        pieces
    }

    /// What some orbits are expected to cost, and what they can have at most: no more than the rows' columns admit or
    /// than is published for the whole board.
    pub(crate) fn weight(&self, range: &Range<u64>) -> Weight {
        let orbits = u128::from(range.end - range.start);
        // The queens of one half of the rows stand in even columns, the others in odd ones.
        let (half, all) = (self.n().get() / 2, self.n().get());
        let placements = (1..=half).chain(1..=all - half).map(u128::from).product::<u128>();
        // The heaviest weigh 8.
        let admitted = placements.saturating_mul(8 * orbits);
        let published = published(self.n()).map_or(u128::MAX, |known| known.total);
        let most = u128::from(i64::MAX.unsigned_abs());
        let solutions = u64::try_from(admitted.min(published).min(most)).expect("just limited");
        let states = self.work(range).min(i64::MAX.unsigned_abs());
        Weight { states, counts_max: Counts::plain(solutions) }
    }
}
