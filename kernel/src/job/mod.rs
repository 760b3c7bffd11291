//! A job: what is leased to a worker, and what one row of the database stands for.

pub(crate) mod class;
mod parts;
pub(crate) mod weight;

use std::ops::Range;

use crate::board::BoardSize;
use crate::colours::RowSets;
use crate::prefix::{Prefix, class_bounds, width_min};
use crate::rows::bound2;
use crate::unit::Unit;
pub use class::Class;
pub use weight::Weight;

/// Some prefixes of one class with one BOUND1, all of the same width, counted together.
///
/// A **prefix** is a placement of some queens, one byte a queen:
/// * corner and edge: the columns of the rows 0, 1, 2, ...;
/// * border: column of the top queen, row of the queen in column N-1, column of the bottom queen, row of the
///   queen in column 0 (a corner queen comes twice); then the columns of the queens in the open rows, from the
///   top. A configuration that a rotation maps to itself has one such queen at most, the **leader**: its
///   prefix means the solutions where no rotation of the solution that keeps the configuration has a lesser
///   column in that row, each orbit once;
/// * cells: the columns of the rows 0, 1, 2, ...
///
/// A job of class `cells` has the board, too: the columns of each row where a queen may stand, N masks of 4 bytes,
/// big-endian, before its prefixes.
///
/// A job of class `colours` has no prefixes but a range of [row sets](RowSets), in 8 bytes: the number of the first and of
/// the first after the last, big-endian.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Job {
    n: BoardSize,
    class: Class,
    bound1: u8,
    /// Of the rows of the board, in class `cells` alone.
    masks: Vec<u32>,
    width: u8,
    prefixes: Vec<u8>,
}

impl Job {
    /// A job of some of a plan's prefixes, all of this class, BOUND1 and width; in class `cells` of a board with these masks.
    pub(crate) fn new(
        n: BoardSize,
        (class, bound1): (Class, u8),
        masks: Vec<u32>,
        width: u8,
        mut prefixes: Vec<u8>,
    ) -> Self {
        let each = prefixes.chunks_exact(width.into());
        if !each.clone().is_sorted() {
            let mut sorted: Vec<_> = each.collect();
            sorted.sort_unstable();
            prefixes = sorted.concat();
        }
        Self { n, class, bound1, masks, width, prefixes }
    }

    /// Bytes of a range of row sets.
    const RANGE_WIDTH: u8 = 8;

    /// A job of these row sets; not none, and all of them exist.
    pub(crate) fn of_row_sets(n: BoardSize, range: Range<u64>) -> Self {
        let bytes = |number| u32::try_from(number).expect("fewer than 2^32 orbits").to_be_bytes();
        let prefixes = [bytes(range.start), bytes(range.end)].concat();
        Self { n, class: Class::Colours, bound1: 0, masks: Vec::new(), width: Self::RANGE_WIDTH, prefixes }
    }

    /// Reads what [`encode`](Self::encode) wrote. Everything is checked: the bytes may come from anywhere.
    pub fn decode(n: BoardSize, class: Class, bound1: u8, bytes: &[u8]) -> Result<Self, InvalidJob> {
        if !class_bounds(n, class).contains(&bound1) {
            return Err(InvalidJob::Bound1 { n, class, bound1 });
        }
        let (&width, prefixes) = bytes.split_first().ok_or(InvalidJob::Empty)?;
        if class == Class::Colours {
            let range = (width == Self::RANGE_WIDTH).then(|| range_of(prefixes)).flatten();
            let sets = RowSets::shared(n).map_or(0, RowSets::len);
            let range = range.filter(|range| range.start < range.end && range.end <= sets);
            let invalid = || InvalidJob::Range { n, sets, bytes: bytes.to_vec() };
            return range.map(|range| Self::of_row_sets(n, range)).ok_or_else(invalid);
        }
        if width < width_min(class) {
            return Err(InvalidJob::Width { class, width });
        }
        let (masks, prefixes) = if class == Class::Cells {
            masks_of(n, prefixes).ok_or(InvalidJob::Masks { n })?
        } else {
            (Vec::new(), prefixes)
        };
        if prefixes.is_empty() || !prefixes.len().is_multiple_of(width.into()) {
            return Err(InvalidJob::Length { width, length: prefixes.len() });
        }
        let each = prefixes.chunks_exact(width.into());
        for queens in each.clone() {
            let invalid = || InvalidJob::Prefix { n, class, bound1, queens: queens.to_vec() };
            Prefix::new(n, class, bound1, &masks, queens).ok_or_else(invalid)?;
        }
        match each.clone().zip(each.skip(1)).position(|(one, next)| one >= next) {
            Some(before) => Err(InvalidJob::Order { number: before + 1 }),
            None => Ok(Self { n, class, bound1, masks, width, prefixes: prefixes.to_vec() }),
        }
    }

    /// One byte for the width of its prefixes, the masks in class `cells`, then the prefixes. With N, class and BOUND1 this is
    /// the whole job.
    pub fn encode(&self) -> Vec<u8> {
        let masks: Vec<_> = self.masks.iter().flat_map(|mask| mask.to_be_bytes()).collect();
        [&[self.width], &masks[..], &self.prefixes].concat()
    }

    /// Board size.
    pub fn n(&self) -> BoardSize {
        self.n
    }

    /// The class of its solutions.
    pub fn class(&self) -> Class {
        self.class
    }

    /// Distance of the nearest border queen to a corner (edge and border), or the column of the second row's
    /// queen (corner).
    pub fn bound1(&self) -> u8 {
        self.bound1
    }

    /// `N-1-BOUND1` in the edge class, which alone has it.
    pub fn bound2(&self) -> Option<u8> {
        (self.class == Class::Edge).then(|| bound2(self.n, self.bound1))
    }

    /// Queens a prefix.
    pub fn width(&self) -> u8 {
        self.width
    }

    /// The numbers of its row sets, in class `colours` alone.
    pub fn row_sets(&self) -> Option<Range<u64>> {
        (self.class == Class::Colours).then(|| range_of(&self.prefixes).expect("checked when a job is made"))
    }

    /// Its prefixes, ascending, each of [`width`](Self::width) bytes.
    pub fn prefixes(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.prefixes.chunks_exact(self.width.into())
    }

    fn placed(&self) -> impl Iterator<Item = Prefix> {
        self.prefixes().map(|queens| {
            Prefix::new(self.n, self.class, self.bound1, &self.masks, queens)
                .expect("prefixes are checked when a job is made")
        })
    }

    /// The independent pieces to count. With `leaf_test` the edge class comes as the classic search that tests
    /// each solution; without, only the solutions on a tie cell are tested, and the others purely counted.
    pub fn units(&self, leaf_test: bool) -> Vec<Unit> {
        if let Some(range) = self.row_sets() {
            return vec![Unit::RowSets(self.n, range)];
        }
        self.placed().flat_map(|prefix| prefix.units(leaf_test)).collect()
    }

    /// What it is expected to cost, and what it can find at most.
    pub fn weight(&self) -> Weight {
        if let Some((range, sets)) = self.row_sets().zip(RowSets::shared(self.n)) {
            return sets.weight(&range);
        }
        self.placed().fold(Weight::default(), |sum, prefix| sum.plus(prefix.weight()))
    }
}

/// The numbers of the first row set and of the first after the last.
fn range_of(bytes: &[u8]) -> Option<Range<u64>> {
    let (&[first, after], []) = bytes.as_chunks::<4>() else { return None };
    let number = |bytes: [u8; 4]| u64::from(u32::from_be_bytes(bytes));
    Some(number(first)..number(after))
}

/// The masks at the beginning, each of columns of the board, and what follows them.
fn masks_of(n: BoardSize, bytes: &[u8]) -> Option<(Vec<u32>, &[u8])> {
    let (masks, rest) = bytes.split_at_checked(n.index() * size_of::<u32>())?;
    let masks: Vec<_> = masks.as_chunks().0.iter().map(|mask| u32::from_be_bytes(*mask)).collect();
    masks.iter().all(|mask| mask & !n.full() == 0).then_some((masks, rest))
}

/// Bytes that are no job.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidJob {
    /// There are none.
    #[error("a job has at least one prefix, not none")]
    Empty,
    /// The class has no such BOUND1.
    #[error("class {class} of N = {n} has no BOUND1 = {bound1}")]
    Bound1 {
        /// Board size.
        n: BoardSize,
        /// The class.
        class: Class,
        /// What was given.
        bound1: u8,
    },
    /// Prefixes of the class have more queens.
    #[error("prefixes of class {class} have {} queens or more, not {width}", width_min(*class))]
    Width {
        /// The class.
        class: Class,
        /// What was given.
        width: u8,
    },
    /// No masks of all rows of the board.
    #[error("a job of class cells of N = {n} begins with {n} masks of columns of the board")]
    Masks {
        /// Board size.
        n: BoardSize,
    },
    /// No whole number of prefixes.
    #[error("{length} bytes are no whole number of prefixes of {width}")]
    Length {
        /// Bytes a prefix.
        width: u8,
        /// Bytes given.
        length: usize,
    },
    /// A prefix has queens off the board, attacking each other, or outside the class.
    #[error("{queens:?} is no prefix of class {class} of N = {n} with BOUND1 = {bound1}")]
    Prefix {
        /// Board size.
        n: BoardSize,
        /// The class.
        class: Class,
        /// Its BOUND1.
        bound1: u8,
        /// The prefix.
        queens: Vec<u8>,
    },
    /// No range of the board's row sets.
    #[error("{bytes:?} is no range of the {sets} orbits of row sets of N = {n}")]
    Range {
        /// Board size.
        n: BoardSize,
        /// How many there are.
        sets: u64,
        /// What was given.
        bytes: Vec<u8>,
    },
    /// Prefixes do not ascend.
    #[error("prefix {number} is not larger than the one before it")]
    Order {
        /// Place of the first that is not larger than the one before it.
        number: usize,
    },
}
