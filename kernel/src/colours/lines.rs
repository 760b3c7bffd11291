//! Rows (and columns) by their parity, and the symmetries of sets of them.
//!
//! A cell is white if row plus column is even. White queens stand in even rows on even columns and in odd rows on odd
//! columns, black ones in even rows on odd columns and in odd rows on even columns. So a set of rows or columns is two
//! sets, one for each parity; bit i of such a set is line 2i, or 2i + 1.

use std::cmp::Ordering;

use crate::board::BoardSize;

/// Even or odd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parity {
    Even,
    Odd,
}

impl Parity {
    pub(super) const ALL: [Self; 2] = [Self::Even, Self::Odd];

    pub(super) const fn other(self) -> Self {
        match self {
            Self::Even => Self::Odd,
            Self::Odd => Self::Even,
        }
    }

    /// 0 or 1.
    pub(super) const fn bit(self) -> u32 {
        self as u32
    }
}

/// How a set of columns counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SetWeight {
    /// 2 if the set stands for its mirror image too, else 1.
    pub(super) mirrored: u32,
    /// Whether its rank is below the row set's, not equal to it.
    pub(super) below: bool,
}

/// The lines of an N.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lines {
    n: BoardSize,
}

impl Lines {
    pub(super) fn new(n: BoardSize) -> Self {
        Self { n }
    }

    pub(super) fn n(self) -> BoardSize {
        self.n
    }

    /// The lines of a set as they are filled: the most central first, for these attack most.
    pub(super) fn in_order(self, parity: Parity, set: u32) -> Vec<u32> {
        self.central_lines(parity).filter(|line| set >> line & 1 == 1).collect()
    }

    /// Sets of major rows in a batch.
    pub(super) const BATCH: usize = 16;

    /// Whether N is even.
    pub(super) fn is_even(self) -> bool {
        self.n.get().is_multiple_of(2)
    }

    /// The number of lines of a parity.
    pub(super) fn count(self, parity: Parity) -> u32 {
        (self.n.get() + 1 - parity.bit()) / 2
    }

    /// The set of all lines of a parity.
    pub(super) fn full(self, parity: Parity) -> u32 {
        (1 << self.count(parity)) - 1
    }

    /// The possible numbers of white queens in even rows, one of each two that the complement exchanges.
    pub(super) fn strata(self) -> std::ops::RangeInclusive<u32> {
        let even = self.count(Parity::Even);
        if self.is_even() { even.div_ceil(2)..=even } else { 1..=even }
    }

    /// White queens in rows of a parity, if there are `white` in even rows: as many as in the columns of the parity.
    /// The black queens have to fill the rows and columns that are left.
    pub(super) fn white(self, parity: Parity, white: u32) -> u32 {
        white + self.count(parity) - self.count(Parity::Even)
    }

    /// All sets of so many lines of a parity, ascending.
    pub(super) fn sets(self, parity: Parity, size: u32) -> impl Iterator<Item = u32> {
        (0..=self.full(parity)).filter(move |set| set.count_ones() == size)
    }

    /// The set in reverse order: its mirror image.
    pub(super) fn reversed(self, parity: Parity, set: u32) -> u32 {
        set.reverse_bits() >> (u32::BITS - self.count(parity))
    }

    /// The parity of the major rows: those decide which column sets are counted.
    pub(super) fn major(self) -> Parity {
        // For even N the half turn exchanges both, and odd rows do. For odd N they could decide as well as even rows, or
        // both together; this is the fastest: 0.71 of the time at N = 19.
        if self.is_even() { Parity::Odd } else { Parity::Even }
    }

    /// A number that is the same for a set and for all its images under the symmetries that leave rows rows and
    /// columns columns. With odd N it is 0 for all sets of odd lines, and no other.
    pub(super) fn rank(self, parity: Parity, set: u32) -> u32 {
        let least = set.min(self.reversed(parity, set));
        if self.is_even() {
            let complement = self.full(parity) & !set;
            least.min(complement).min(self.reversed(parity, complement))
        } else if parity == self.major() {
            least + 1
        } else {
            0
        }
    }

    /// Whether these major rows are the ones that are kept of their images.
    pub(super) fn is_representative(self, rows: u32) -> bool {
        let parity = self.major();
        if self.is_even() {
            let complement = self.full(parity) & !rows;
            complement.count_ones() != rows.count_ones() || rows < complement
        } else {
            rows <= self.reversed(parity, rows)
        }
    }

    /// The number of row sets that one with these major and minor rows stands for.
    ///
    /// Even N: of a row set, its complement, its reverse and that one's complement the two with the other number of white
    /// queens (or, if it is the same, with the larger major rows) are left out, and if major and minor rows differ in
    /// rank one of the other two as well. Odd N: of a row set and its reverse the one with the larger major rows is left
    /// out; where these are their own reverse, both are kept.
    pub(super) fn row_weight(self, [major_rows, minor_rows]: [u32; 2]) -> u32 {
        let major = self.major();
        if self.is_even() {
            if self.rank(major, major_rows) == self.rank(major.other(), minor_rows) { 2 } else { 4 }
        } else if major_rows == self.reversed(major, major_rows) {
            1
        } else {
            2
        }
    }

    /// The columns of which sets and their mirror images count as one, if there are `white` queens in even rows: those that
    /// are lanes of the colour with more queens; of black only if it has at least two more. `None` for even N.
    pub(super) fn mirrored(self, white: u32) -> Option<Parity> {
        let queens = self.white(Parity::Even, white) + self.white(Parity::Odd, white);
        let black_lanes = queens + 1 < self.n.get() - queens;
        (!self.is_even()).then_some(if black_lanes { Parity::Odd } else { Parity::Even })
    }

    /// How a set of columns counts for a row set of this rank with `white` queens in even rows; `None` if it does not. For odd
    /// N the mirror image exchanges column sets: of two images one is kept.
    pub(super) fn weigh(self, parity: Parity, white: u32, columns: u32, rank: u32) -> Option<SetWeight> {
        let own = self.rank(parity, columns);
        let mirrored = if self.mirrored(white) == Some(parity) {
            match columns.cmp(&self.reversed(parity, columns)) {
                Ordering::Less => 2,
                Ordering::Equal => 1,
                Ordering::Greater => return None,
            }
        } else {
            1
        };
        (own <= rank).then_some(SetWeight { mirrored, below: own < rank })
    }

    /// The lines of a parity, the most central first.
    pub(super) fn central_lines(self, parity: Parity) -> impl Iterator<Item = u32> {
        let last = self.n.get() - 1;
        let mut lines: Vec<u32> = (0..self.count(parity)).collect();
        lines.sort_by_key(|line| (2 * (2 * line + parity.bit())).abs_diff(last));
        lines.into_iter()
    }

    /// The lines of a set of lines of a parity: bit i goes to bit 2i, or 2i + 1.
    pub(super) fn spread(self, parity: Parity, set: u32) -> u32 {
        (0..self.count(parity)).fold(0, |lines, i| lines | (set >> i & 1) << (2 * i + parity.bit()))
    }

    /// The opposite: the lines of a parity among some lines.
    pub(super) fn some(self, parity: Parity, lines: u32) -> u32 {
        (0..self.count(parity)).fold(0, |set, i| set | (lines >> (2 * i + parity.bit()) & 1) << i)
    }
}
