//! Half boards and the bits that stand for their diagonals.
//!
//! The upper half has N/2 rows (rounded down), the lower half the rest; both count their rows from the line
//! between them, row 0 nearest, so that one description serves both. A cell (i, c) of either half lies on the
//! diagonals X = c - i and Y = c + i. Those that reach the other half are kept: X in 1..N as bit X - 1, Y in
//! 0..N-1 as bit N - 1 + Y. The other half calls the same diagonal by the same number in the other family, so two
//! half boards on complementary columns fit together when `exchange(a) & b` has no diagonal.
//!
//! Above the diagonals stands what the quarter turn needs to know about the queens of the middle columns:
//! for even N "one of them stands in a row below j" for j = 1..=[`LATENESS`](Geometry::lateness) (the four
//! central cells apart), for odd N the row itself, in binary.

use super::orbits::Kind;
use crate::board::BoardSize;

/// Upper (0) or lower (1) half.
pub(super) type Half = usize;

/// The geometry of one board size.
#[derive(Clone, Debug)]
pub(super) struct Geometry {
    n: BoardSize,
    /// Rows of the upper and of the lower half.
    pub(super) rows: [usize; 2],
    /// Largest j with a bit of its own, for even N.
    lateness: u32,
    /// What a queen on each cell adds to its half's mask, by row and column.
    cells: Vec<[u64; 32]>,
}

/// How the quarter turn's symmetry is used on a pair of halves with given row-0 queens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Criterion {
    /// Halves with a middle-column queen in a row below this are left out.
    pub(super) early: u32,
    /// Pairs without a middle-column queen in a row below this count double, the others once; `None`: all once.
    pub(super) tie: Option<u32>,
}

/// How the masks of two facing sides correspond: the `low` first diagonals of this side's masks stand behind the others'
/// `high` first ones, which this side has behind its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchange {
    low: u32,
    high: u32,
}

impl Exchange {
    /// Number of diagonals that both sides can use.
    pub(super) fn diagonals(self) -> u32 {
        self.low + self.high
    }

    /// A mask's diagonals as the other side calls them.
    pub(super) fn of(self, mask: u64) -> u64 {
        let [low, high] = self.parts();
        (mask & low) << self.high | (mask & high) >> self.low
    }

    /// Which bit of the other side's masks is the same diagonal as a bit of this side's.
    pub(super) fn bit(self, bit: u32) -> u32 {
        if bit < self.low { bit + self.high } else { bit - self.low }
    }

    /// The diagonals that get a higher place on the other side and those that get a lower one.
    pub(super) fn parts(self) -> [u64; 2] {
        let low = (1 << self.low) - 1;
        [low, ((1 << self.high) - 1) << self.low]
    }

    /// How far these move up.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn shifts(self) -> [i32; 2] {
        [self.high.cast_signed(), -self.low.cast_signed()]
    }

    /// The same, seen from the other side.
    pub(super) fn back(self) -> Self {
        Self { low: self.high, high: self.low }
    }

    /// The diagonals that both sides use, as this side calls them, from all that each of them uses.
    pub(super) fn live(self, used: u64, used_there: u64) -> u64 {
        self.back().of(used_there) & used
    }

    /// What becomes of it when the masks keep only the diagonals `live`, moved together.
    pub(super) fn squeezed(self, live: u64) -> Self {
        let low = (live & ((1 << self.low) - 1)).count_ones();
        Self { low, high: live.count_ones() - low }
    }
}

impl Geometry {
    pub(super) fn new(n: BoardSize) -> Self {
        // At least 4 bits are free, and 15 rows are the most that odd N needs to tell apart.
        let spare = 64 - 2 * (n.get() - 1);
        Self::with_lateness(n, spare.min(n.get() / 2))
    }

    /// With at most `lateness` bits for the middle columns of even N, as large boards have it.
    pub(super) fn with_lateness(n: BoardSize, lateness: u32) -> Self {
        let mut new =
            Self { n, rows: [n.index() / 2, n.index() - n.index() / 2], lateness, cells: Vec::new() };
        let cell =
            |row, c| if c < n.index() { new.diagonal_bits(row, c) | new.middle_queen(row, c) } else { 0 };
        new.cells = (0..new.rows[1]).map(|row| std::array::from_fn(|c| cell(row, c))).collect();
        new
    }

    pub(super) fn n(&self) -> usize {
        self.n.index()
    }

    pub(super) fn board(&self) -> BoardSize {
        self.n
    }

    pub(super) fn is_odd(&self) -> bool {
        !self.n.get().is_multiple_of(2)
    }

    /// Diagonals of one family that reach the other half: N - 1.
    pub(super) fn family(&self) -> u32 {
        self.n.get() - 1
    }

    /// What a queen on cell (`row`, `column`) adds to its half's mask.
    pub(super) fn cell(&self, row: usize, column: usize) -> u64 {
        self.cells[row][column]
    }

    /// [`cell`](Self::cell) as a table, by row and column.
    pub(super) fn cells(&self) -> &[[u64; 32]] {
        &self.cells
    }

    /// The bits of the other half's masks that a queen on cell (`row`, `column`) forbids; at least one.
    pub(super) fn struck(&self, row: usize, column: usize) -> u64 {
        self.exchange().of(self.diagonal_bits(row, column))
    }

    /// The diagonals that tell more about halves than which row-0 queens they have: all but those in the corners of
    /// row 0, of either half.
    pub(super) fn beyond_first_queens(&self) -> u64 {
        let corners = self.diagonal_bits(0, 0) | self.diagonal_bits(0, self.n() - 1);
        let diagonals = (1 << self.exchange().diagonals()) - 1;
        diagonals & !(corners | self.exchange().of(corners))
    }

    /// The mask of the mirror image.
    pub(super) fn mirrored(&self, mask: u64) -> u64 {
        let diagonals = 2 * self.family();
        mask.reverse_bits() >> (64 - diagonals) | mask >> diagonals << diagonals
    }

    fn diagonal_bits(&self, row: usize, column: usize) -> u64 {
        let family = self.family() as usize;
        let rising = if column > row { 1 << (column - row - 1) } else { 0 };
        let falling = if column + row < family { 1 << (family + column + row) } else { 0 };
        rising | falling
    }

    fn middle_queen(&self, row: usize, column: usize) -> u64 {
        let first = 2 * self.family();
        let middle =
            if self.is_odd() { column == self.n() / 2 } else { column.abs_diff(self.n() - 1 - column) == 1 };
        if !middle {
            0
        } else if self.is_odd() {
            (row as u64) << first
        } else if row == 0 {
            0
        } else {
            (1..=self.lateness).filter(|&j| row < j as usize).fold(0, |bits, j| bits | 1 << (first + j - 1))
        }
    }

    /// How the two halves' masks correspond.
    pub(super) fn exchange(&self) -> Exchange {
        Exchange { low: self.family(), high: self.family() }
    }

    /// The bits of a mask that tell about the middle columns: for even N "a queen in a row below j" for each j, from
    /// 1; for odd N the row's bits, from the lowest.
    pub(super) fn middle_bits(&self) -> std::ops::Range<u32> {
        let first = 2 * self.family();
        first..first + if self.is_odd() { 4 } else { self.lateness }
    }

    /// The columns on which the row-0 queens of the two halves may stand.
    pub(super) fn first_queens(&self, columns: [u32; 2], kind: Kind) -> [u32; 2] {
        let middle = self.n() / 2;
        match kind {
            Kind::Even => columns,
            Kind::CentreQueen => [columns[0], 1 << middle],
            Kind::EmptyCentre => {
                // The queen of the middle column is further from the centre: at most N/2 cells away.
                let near = (0..self.n())
                    .filter(|c| c.abs_diff(middle) < self.rows[0])
                    .fold(0, |near, c| near | 1 << c);
                [columns[0] & !(1 << middle), columns[1] & near]
            }
        }
    }

    /// The symmetry criterion for row-0 queens on `upper` and `lower`, which do not attack each other.
    ///
    /// Even N: d is the least distance to the centre of the queens in the two middle rows, e the same for the
    /// middle columns, the four central cells ignored in both. The quarter turn exchanges them: keep e >= d,
    /// count e > d double. Both are cut off at [`lateness`](Self::lateness), beyond which everything is a tie.
    /// Odd N, empty centre: the queen of the middle row (`lower`) is nearer to the centre than the one of the
    /// middle column, which is in the upper half, row i at distance i + 1.
    pub(super) fn criterion(&self, kind: Kind, upper: usize, lower: usize) -> Criterion {
        let distance = |c: usize| {
            let middle = self.n() / 2;
            u32::try_from(if self.is_odd() || c >= middle { c.abs_diff(middle) } else { middle - 1 - c })
                .expect("below 32")
        };
        match kind {
            Kind::CentreQueen => Criterion { early: 0, tie: None },
            Kind::EmptyCentre => Criterion { early: distance(lower), tie: None },
            Kind::Even => {
                let [d_upper, d_lower] = [distance(upper), distance(lower)];
                let d = match (d_upper, d_lower) {
                    (0, d) | (d, 0) => d,
                    (d_upper, d_lower) => d_upper.min(d_lower),
                };
                let early = d.min(self.lateness);
                Criterion { early, tie: (early < self.lateness).then_some(early + 1) }
            }
        }
    }

    /// The largest j that a criterion can ask for.
    pub(super) fn lateness(&self) -> u32 {
        if self.is_odd() { self.n.get() / 2 } else { self.lateness }
    }
}
