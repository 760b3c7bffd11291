//! Queens on a torus: the board's opposite sides are joined, and every diagonal goes on where it leaves the board.
//!
//! Every row, column, and both kinds of diagonals are N cells long, so a solution has one queen on each. Moving all
//! queens by a row or a column, around the sides, gives another solution. So each of the N columns of the top row holds the
//! queen of as many solutions, and only those with a queen in the corner are searched. Left and right can be exchanged
//! around that queen: of the second row's queen only the columns up to the middle are tried, and each solution counts 2 N
//! times. There is none if N is divisible by 2 or 3 (G. Polya, 1918).

use crate::board::{BoardSize, columns_of, take_lowest};
use crate::engine::{Control, Meter, Stopped, Tally};
use crate::rows::last_line;
use crate::solution::Solution;
use crate::subproblem::{OpenRow, Subproblem};

/// Whether some queens can stand on the torus: N has no factor 2 or 3.
pub(crate) fn has_solutions(n: BoardSize) -> bool {
    !n.get().is_multiple_of(2) && !n.get().is_multiple_of(3)
}

/// The board that every prefix begins with: the first queen in the corner, the second one left of the middle.
pub(crate) fn start(n: BoardSize) -> Subproblem {
    let second_row = (2..=last_line(n) / 2).fold(0, |columns, column| columns | 1 << column);
    Subproblem::empty(n).forbid(0, !1).forbid(1, !second_row)
}

/// The board with one more queen on an open cell, and without all that it attacks around the sides; `None` if the cell is not
/// open.
pub(crate) fn with_queen(board: &Subproblem, row: u8, column: u8) -> Option<Subproblem> {
    let (placed, n) = (board.place(row, column)?, board.n().get());
    let apart = |open: &OpenRow| {
        let (column, distance) = (u32::from(column), u32::from(row.abs_diff(open.row)));
        let attacked = 1 << ((column + distance) % n) | 1 << ((column + n - distance) % n);
        OpenRow { allowed: open.allowed & !attacked, ..*open }
    };
    let rows: Vec<_> = placed.rows().iter().map(apart).collect();
    Subproblem::new(board.n(), placed.free(), &rows)
}

/// Solutions that have these queens in the first rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TorusPiece {
    /// Columns of the queens from the top: at least two, of which the first is in the corner.
    queens: Vec<u8>,
    /// The cells that they leave open.
    board: Subproblem,
}

impl TorusPiece {
    pub(crate) fn new(queens: &[u8], board: Subproblem) -> Self {
        Self { queens: queens.to_vec(), board }
    }

    /// Pieces with one queen more, which together have the same solutions; the piece alone if all queens are placed.
    pub(crate) fn split(self) -> Vec<Self> {
        let Some(first) = self.board.rows().first() else { return vec![self] };
        let longer = |column| {
            let board = with_queen(&self.board, first.row, column)?;
            Some(Self { queens: [&self.queens[..], &[column]].concat(), board })
        };
        columns_of(first.allowed).filter_map(longer).collect()
    }

    pub(crate) fn board(&self) -> &Subproblem {
        &self.board
    }

    /// How many solutions of the torus each of those counts for that are searched.
    pub(crate) fn weight(n: BoardSize) -> u64 {
        2 * u64::from(n.get())
    }

    /// Counts all solutions of the torus that the piece stands for: row by row, or by the row with the fewest cells, two
    /// searches that share nothing.
    pub(crate) fn count(&self, by_rows: bool, control: &Control) -> Result<Tally, Stopped> {
        let mut meter = Meter::new(control);
        let found = if by_rows && !self.board.rows().is_empty() {
            self.count_by_rows(&mut meter)?
        } else {
            count_by_fewest(&self.board, &mut meter)?
        };
        let weight = Self::weight(self.board.n());
        let completions = found.checked_mul(weight).expect("the largest torus has 2^44 solutions");
        Ok(Tally { completions, states: meter.finish()? })
    }

    fn count_by_rows(&self, meter: &mut Meter<'_>) -> Result<u64, Stopped> {
        let n = self.board.n();
        let first = self.queens.iter().fold(Row::first(n), |row, column| row.below(1 << column, n));
        let (mut walk, mut found) = (Walk::new(n, self.queens.len(), first), 0);
        meter.add(1)?;
        while walk.go_on(meter)? {
            found += 1;
        }
        Ok(found)
    }
}

fn count_by_fewest(board: &Subproblem, meter: &mut Meter<'_>) -> Result<u64, Stopped> {
    meter.add(1)?;
    let Some(row) = board.rows().iter().min_by_key(|open| open.allowed.count_ones()) else { return Ok(1) };
    let below = columns_of(row.allowed).filter_map(|column| with_queen(board, row.row, column));
    below.map(|board| count_by_fewest(&board, meter)).sum()
}

fn column_of(bit: u32) -> u8 {
    u8::try_from(bit.trailing_zeros()).expect("below 32")
}

/// A row of the search: what the queens above attack there, and the cells that are left to try.
#[derive(Clone, Copy)]
struct Row {
    columns: u32,
    /// Diagonals that move one column up a row.
    rising: u32,
    /// Diagonals that move one column down a row.
    falling: u32,
    free: u32,
}

impl Row {
    fn first(n: BoardSize) -> Self {
        Self { columns: 0, rising: 0, falling: 0, free: n.full() }
    }

    /// The next row, with a queen on `bit` of this one.
    fn below(self, bit: u32, n: BoardSize) -> Self {
        let (full, around) = (n.full(), n.get() - 1);
        let up = |diagonals: u32| (diagonals << 1 | diagonals >> around) & full;
        let down = |diagonals: u32| (diagonals >> 1 | diagonals << around) & full;
        let columns = self.columns | bit;
        let (rising, falling) = (up(self.rising | bit), down(self.falling | bit));
        Self { columns, rising, falling, free: full & !(columns | rising | falling) }
    }
}

/// A search from row `above` on that rests at each solution.
struct Walk {
    n: BoardSize,
    above: usize,
    /// Columns of the queens from row `above` on.
    queens: Vec<u8>,
    /// One for each row from `above` to the one that was reached.
    rows: Vec<Row>,
}

impl Walk {
    fn new(n: BoardSize, above: usize, first: Row) -> Self {
        Self { n, above, queens: vec![0; n.index() - above], rows: vec![first] }
    }

    /// Goes to the next solution; false when there is none.
    fn go_on(&mut self, meter: &mut Meter<'_>) -> Result<bool, Stopped> {
        while let Some(row) = self.rows.last_mut() {
            let Some(bit) = take_lowest(&mut row.free) else {
                self.rows.pop();
                continue;
            };
            meter.add(1)?;
            let below = row.below(bit, self.n);
            let reached = self.rows.len();
            self.queens[reached - 1] = column_of(bit);
            if self.above + reached == self.n.index() {
                return Ok(true);
            }
            self.rows.push(below);
        }
        Ok(false)
    }
}

/// All solutions of the torus in ascending order, found one at a time as they are asked for.
pub(super) fn solutions(n: BoardSize) -> impl Iterator<Item = Solution> {
    let mut walk = has_solutions(n).then(|| Walk::new(n, 0, Row::first(n)));
    std::iter::from_fn(move || {
        let walk = walk.as_mut()?;
        let found = walk.go_on(&mut Meter::new(&Control::default())).expect("nobody stops it");
        found.then(|| Solution::found(n, &walk.queens))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ladder;

    fn up_to(last: u32) -> impl Iterator<Item = BoardSize> {
        BoardSize::MIN.up_to(BoardSize::new(last).unwrap())
    }

    /// By the definition: columns, and both diagonals around the sides, are all different.
    fn is_toroidal(solution: &Solution) -> bool {
        let n = solution.n().get();
        let queens = || (0..n).zip(solution.columns().iter().map(|&column| u32::from(column)));
        let rising = queens().fold(0_u32, |lines, (row, column)| lines | 1 << ((row + column) % n));
        let falling = queens().fold(0_u32, |lines, (row, column)| lines | 1 << ((n + row - column) % n));
        (rising, falling) == (solution.n().full(), solution.n().full())
    }

    #[test]
    fn the_search_finds_what_the_definition_allows() {
        for n in up_to(11) {
            let mut walk = Walk::new(n, 0, Row::first(n));
            let control = Control::default();
            let mut found = Vec::new();
            // Without the theorem by which boards are left out.
            while walk.go_on(&mut Meter::new(&control)).unwrap() {
                found.push(Solution::new(&walk.queens).unwrap());
            }
            let expected: Vec<_> = ladder::solutions(n).filter(is_toroidal).collect();
            assert_eq!(found, expected, "N = {n}");
            assert_eq!(has_solutions(n), !found.is_empty(), "N = {n}");
            assert_eq!(solutions(n).collect::<Vec<_>>(), found);
        }
    }

    /// The piece of these queens.
    fn piece(n: BoardSize, queens: &[u8]) -> TorusPiece {
        let place = |board: Subproblem, (row, column): (u8, &u8)| with_queen(&board, row, *column).unwrap();
        TorusPiece::new(queens, (0..).zip(queens).fold(start(n), place))
    }

    #[test]
    fn both_searches_find_each_solution_once() {
        for n in up_to(13).filter(|n| *n > BoardSize::MIN && has_solutions(*n)) {
            let control = Control::default();
            let roots: Vec<_> = (2..=last_line(n) / 2).map(|column| piece(n, &[0, column])).collect();
            let longer: Vec<_> = roots.iter().cloned().flat_map(TorusPiece::split).collect();
            for (pieces, by_rows) in [(&roots, true), (&roots, false), (&longer, true), (&longer, false)] {
                let counted = pieces.iter().map(|piece| piece.count(by_rows, &control).unwrap().completions);
                assert_eq!(counted.sum::<u64>(), solutions(n).count() as u64, "N = {n}");
            }
        }
    }

    #[test]
    fn a_piece_of_all_queens_is_one_search_node() {
        let five = BoardSize::new(5).unwrap();
        let whole = piece(five, &[0, 2, 4, 1, 3]);
        for by_rows in [true, false] {
            assert_eq!(whole.count(by_rows, &Control::default()), Ok(Tally { completions: 10, states: 1 }));
        }
        assert_eq!(whole.clone().split(), [whole]);
    }

    #[test]
    fn a_search_ends_when_it_is_told_to() {
        let control = Control::default();
        control.stop();
        for by_rows in [true, false] {
            assert_eq!(piece(BoardSize::new(31).unwrap(), &[0, 2]).count(by_rows, &control), Err(Stopped));
        }
    }
}
