//! Jobs that are ranges of numbered orbits: of the column sets of half boards, or of the row sets of colours.

use std::ops::Range;
use std::sync::OnceLock;

use crate::board::BoardSize;
use crate::colours::RowSets;
use crate::counts::Counts;
use crate::estimate;
use crate::halves::Orbits;
use crate::job::class::Class;
use crate::job::weight::Weight;
use crate::known::published;

/// The numbered orbits of a board, of which jobs are ranges.
#[derive(Clone, Debug)]
pub(crate) enum Numbered {
    /// Column sets of half boards.
    Columns(Orbits),
    /// Rows with queens on white cells.
    Rows(&'static RowSets),
}

impl Numbered {
    /// Those of the jobs of a class; `None` if it has others, or if boards of `n` are too small for it.
    pub(crate) fn of_class(n: BoardSize, class: Class) -> Option<Self> {
        match class {
            Class::Corner | Class::Edge | Class::Border | Class::Cells | Class::Torus => None,
            Class::Halves => Orbits::new(n).map(Self::Columns),
            Class::Colours => row_sets(n).map(Self::Rows),
        }
    }

    pub(crate) fn class(&self) -> Class {
        match self {
            Self::Columns(_) => Class::Halves,
            Self::Rows(_) => Class::Colours,
        }
    }

    fn n(&self) -> BoardSize {
        match self {
            Self::Columns(orbits) => orbits.n(),
            Self::Rows(sets) => sets.n(),
        }
    }

    /// The number of orbits.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Columns(orbits) => orbits.len(),
            Self::Rows(sets) => sets.len(),
        }
    }

    /// What some orbits are expected to cost, in states; at least 1.
    pub(crate) fn work(&self, range: &Range<u64>) -> u64 {
        match self {
            Self::Columns(orbits) => estimate::halves(orbits, range),
            Self::Rows(sets) => sets.work(range).clamp(1, i64::MAX.unsigned_abs()),
        }
    }

    /// The ranges of all orbits, of about this many states each.
    pub(crate) fn ranges(self, states: u64) -> impl Iterator<Item = Range<u64>> + Send {
        let mut from = 0;
        std::iter::from_fn(move || {
            let start = from;
            from = if start < self.len() { self.cut(start, states) } else { start };
            (start < from).then_some(start..from)
        })
    }

    /// The end of the range of about this many states that begins at `from`; column sets in whole clusters, if one is
    /// not too heavy.
    pub(crate) fn cut(&self, from: u64, states: u64) -> u64 {
        match self {
            Self::Columns(orbits) => {
                let wanted = (states / estimate::halves(orbits, &(0..1))).max(1);
                let beyond_clusters = if wanted > orbits.cluster() { wanted % orbits.cluster() } else { 0 };
                orbits.len().min(from + wanted - beyond_clusters)
            }
            Self::Rows(sets) => sets.cut(from, states),
        }
    }

    /// The pieces in which threads share a range; one orbit, or one cluster of column sets, is left whole.
    pub(crate) fn pieces(&self, range: Range<u64>) -> Vec<Range<u64>> {
        /// Neighbours share work: pieces of row sets are as long as several splittings allow, and shorter than this only
        /// if the range is, too.
        const PIECES: u64 = 16;
        const TOGETHER: u64 = 8;
        match self {
            Self::Columns(orbits) => {
                let Range { start, end } = range;
                let cluster = orbits.cluster();
                let from = |first: u64| start.max(first * cluster)..end.min((first + 1) * cluster);
                (start / cluster..end.div_ceil(cluster)).map(from).collect()
            }
            Self::Rows(sets) => {
                let least = if range.end - range.start > TOGETHER { TOGETHER } else { 1 };
                let (states, mut from) = (sets.work(&range).div_ceil(PIECES), range.start);
                let mut pieces = Vec::new();
                while from < range.end {
                    let end = sets.cut(from, states).max(from + least).min(range.end);
                    pieces.push(from..end);
                    from = end;
                }
                pieces
            }
        }
    }

    /// What some orbits are expected to cost, and what they can have at most: no more than the rows' columns admit or
    /// than is published for the whole board.
    pub(crate) fn weight(&self, range: &Range<u64>) -> Weight {
        let orbits = u128::from(range.end - range.start);
        // The rows of the upper half have the columns of the set, the lower ones the others. Of colours: the queens of
        // one half of the rows stand in even columns, the others in odd ones.
        let (half, all) = (self.n().get() / 2, self.n().get());
        let placements = (1..=half).chain(1..=all - half).map(u128::from).product::<u128>();
        // The heaviest weigh 8.
        let admitted = placements.saturating_mul(8 * orbits);
        let published = published(self.n()).map_or(u128::MAX, |known| known.total);
        let solutions = admitted.min(published).min(u128::from(i64::MAX.unsigned_abs()));
        Weight {
            states: self.work(range),
            counts_max: Counts::plain(u64::try_from(solutions).expect("just limited")),
        }
    }
}

/// The row sets of a board: looked up in tables of the square root of their number, which are made once a process.
fn row_sets(n: BoardSize) -> Option<&'static RowSets> {
    static MADE: [OnceLock<Option<RowSets>>; BoardSize::MAX.index()] =
        [const { OnceLock::new() }; BoardSize::MAX.index()];
    MADE[n.index() - 1].get_or_init(|| RowSets::new(n)).as_ref()
}
