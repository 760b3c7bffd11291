//! Border configurations: where the queens of the two outer rows and the two outer columns stand.
//!
//! Rotations and reflections permute the configurations, and one of each orbit, the canonical one, is counted.
//! Only the few that a rotation maps to themselves (stabiliser 2 or 4) need a look at their solutions' symmetry.

use crate::board::{BoardSize, columns_of};
use crate::rows::last_line;
use crate::subproblem::Subproblem;

/// The queens of the border of an N by N board, N >= 4. A queen on a corner stands in two of the four fields.
///
/// Ordered as the tuple (top, right, bottom, left).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Border {
    n: BoardSize,
    /// Column of the queen in row 0.
    top: u8,
    /// Row of the queen in column N-1.
    right: u8,
    /// Column of the queen in row N-1.
    bottom: u8,
    /// Row of the queen in column 0.
    left: u8,
}

impl Border {
    /// `None` unless the four name two to four queens of the border that do not attack each other.
    pub(crate) fn new(n: BoardSize, [top, right, bottom, left]: [u8; 4]) -> Option<Self> {
        let border = Self { n, top, right, bottom, left };
        let last = last_line(n);
        let inside = [top, right, bottom, left].iter().all(|&line| line <= last);
        // A corner belongs to two sides, which must agree.
        let agree = (top == 0) == (left == 0)
            && (top == last) == (right == 0)
            && (bottom == 0) == (left == last)
            && (bottom == last) == (right == last);
        (n.get() >= 4 && inside && agree && border.is_peaceful()).then_some(border)
    }

    fn is_peaceful(self) -> bool {
        let queens = self.queens();
        let attack = |(r1, c1): (u8, u8), (r2, c2): (u8, u8)| {
            r1 == r2 || c1 == c2 || r1.abs_diff(r2) == c1.abs_diff(c2)
        };
        let mut pairs = (1..4).flat_map(|i| (0..i).map(move |j| (queens[i], queens[j])));
        pairs.all(|(one, other)| one == other || !attack(one, other))
    }

    /// Each orbit's canonical configuration, ascending.
    pub(crate) fn canonical_ones(n: BoardSize) -> impl Iterator<Item = Self> {
        let last = last_line(n);
        // The smallest image has its top queen no farther from a corner than any other border queen.
        let side = move |top: u8| top..=last - top;
        bounds(n)
            .flat_map(move |top| side(top).map(move |right| (top, right)))
            .flat_map(move |(top, right)| side(top).map(move |bottom| [top, right, bottom]))
            .flat_map(move |[top, right, bottom]| side(top).map(move |left| [top, right, bottom, left]))
            .filter_map(move |lines| Self::new(n, lines))
            .filter(|border| border.canonical() == *border)
    }

    /// The four lines (top column, right row, bottom column, left row).
    pub(crate) fn lines(self) -> [u8; 4] {
        [self.top, self.right, self.bottom, self.left]
    }

    /// The cells, as (row, column), of the four queens; a corner queen comes twice.
    fn queens(self) -> [(u8, u8); 4] {
        let last = last_line(self.n);
        [(0, self.top), (self.right, last), (last, self.bottom), (self.left, 0)]
    }

    fn rotated(self) -> Self {
        let last = last_line(self.n);
        Self { top: last - self.left, right: self.top, bottom: last - self.right, left: self.bottom, ..self }
    }

    fn mirrored(self) -> Self {
        let last = last_line(self.n);
        Self { top: last - self.top, right: self.left, bottom: last - self.bottom, left: self.right, ..self }
    }

    /// The four images under rotation, itself first.
    fn rotations(self) -> [Self; 4] {
        let quarter = self.rotated();
        let half = quarter.rotated();
        [self, quarter, half, half.rotated()]
    }

    /// The smallest of the 8 images. Its `top` is BOUND1.
    pub(crate) fn canonical(self) -> Self {
        let images = self.rotations().into_iter().chain(self.mirrored().rotations());
        images.min().expect("eight images")
    }

    /// BOUND1: how far the nearest border queen stands from a corner.
    pub(crate) fn bound1(self) -> u8 {
        self.canonical().top
    }

    /// How many rotations map it to itself: 1, 2 or 4. (A reflection never does: the queens that it would swap
    /// or keep attack each other.)
    pub(crate) fn stabiliser(self) -> u8 {
        let [_, quarter, half, _] = self.rotations();
        if quarter == self {
            4
        } else if half == self {
            2
        } else {
            1
        }
    }

    /// The board with these queens placed.
    pub(crate) fn board(self) -> Subproblem {
        // A corner queen, met for the second time, finds its row settled.
        let place = |board: Subproblem, (row, column): (u8, u8)| board.place(row, column).unwrap_or(board);
        self.queens().into_iter().fold(Subproblem::empty(self.n), place)
    }

    /// The rotation that is searched fastest from the top, as far as a cheap rule can tell.
    ///
    /// The rule: rows with few cells first, i.e. the smallest sum over the open rows of the logarithm of their
    /// cells, each weighted by the rows that follow. It saves a third of the states over an arbitrary choice.
    pub(crate) fn oriented(self) -> Self {
        let board = self.board();
        let cells_of =
            |column: u8| board.rows().iter().filter(|open| open.allowed >> column & 1 == 1).count();
        let rows: Vec<_> = board.rows().iter().map(|open| open.allowed.count_ones() as usize).collect();
        let columns: Vec<_> = columns_of(board.free()).map(cells_of).collect();
        // The lines from the last row up; turned by a quarter, columns are rows, the leftmost on top.
        let effort = |lines: &mut dyn Iterator<Item = &usize>| -> i64 {
            (1..).zip(lines).map(|(weight, &cells)| weight * LN_CELLS[cells]).sum()
        };
        let efforts = [
            effort(&mut rows.iter().rev()),
            effort(&mut columns.iter().rev()),
            effort(&mut rows.iter()),
            effort(&mut columns.iter()),
        ];
        let rotations = self.rotations().into_iter().zip(efforts);
        rotations.min_by_key(|&(_, effort)| effort).expect("four rotations").0
    }
}

/// `1000 ln(cells + 0.1)`, rounded: a table, so that every machine chooses the same orientation.
const LN_CELLS: [i64; 32] = [
    -2303, 95, 742, 1131, 1411, 1629, 1808, 1960, 2092, 2208, 2313, 2407, 2493, 2573, 2646, 2715, 2779, 2839,
    2896, 2950, 3001, 3049, 3096, 3140, 3182, 3223, 3262, 3300, 3336, 3371, 3405, 3437,
];

/// The values BOUND1 of border configurations.
pub(crate) fn bounds(n: BoardSize) -> impl Iterator<Item = u8> {
    let last = last_line(n);
    n.lines().take_while(move |&top| n.get() >= 4 && top < last - top)
}
