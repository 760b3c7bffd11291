//! Queens on a torus: the board's opposite sides are joined, and every diagonal goes on where it leaves the board.
//!
//! Every row, column, and both kinds of diagonals are N cells long, so a solution has one queen on each. Moving all
//! queens by a row or a column, around the sides, gives another solution. So each of the N columns of the top row holds the
//! queen of as many solutions, and only those with a queen in the corner are searched. Left and right can be exchanged
//! around that queen: of the second row's queen only the columns up to the middle are tried, and each solution counts 2 N
//! times. There is none if N is divisible by 2 or 3 (G. Polya, 1918).

use crate::board::{BoardSize, take_lowest};
use crate::engine::{Control, Meter, Stopped, Tally};
use crate::rows::last_line;
use crate::solution::Solution;

/// Whether some queens can stand on the torus: N has no factor 2 or 3.
pub(super) fn has_solutions(n: BoardSize) -> bool {
    !n.get().is_multiple_of(2) && !n.get().is_multiple_of(3)
}

/// Solutions that have these queens in the first rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TorusPiece {
    n: BoardSize,
    /// Columns of the queens from the top; on a board of more than one cell at least two, the first in the corner.
    pub(super) queens: Vec<u8>,
}

impl TorusPiece {
    /// Rows whose queens are placed before the search: some hundred pieces from N = 17 on, some ten thousand from 23 on.
    fn rows(n: BoardSize) -> usize {
        (n.index() / 4).clamp(2, 5)
    }

    /// The pieces of a torus: all solutions up to moves and the exchange of left and right.
    pub(super) fn all(n: BoardSize) -> Vec<Self> {
        if n == BoardSize::MIN {
            return vec![Self { n, queens: Vec::new() }];
        }
        if !has_solutions(n) {
            return Vec::new();
        }
        let second_row = 2..=last_line(n) / 2;
        let mut pieces: Vec<_> = second_row.map(|column| Self { n, queens: vec![0, column] }).collect();
        for _ in 2..Self::rows(n) {
            pieces = pieces.iter().flat_map(Self::split).collect();
        }
        pieces
    }

    fn split(&self) -> Vec<Self> {
        let mut free = self.attacks().free;
        let mut longer = Vec::new();
        while let Some(bit) = take_lowest(&mut free) {
            longer.push(Self { queens: [&self.queens[..], &[column_of(bit)]].concat(), ..*self });
        }
        longer
    }

    /// The row below its queens.
    fn attacks(&self) -> Row {
        self.queens.iter().fold(Row::first(self.n), |row, column| row.below(1 << column, self.n))
    }

    /// How many solutions of the torus each of those counts for that are searched.
    fn weight(&self) -> u64 {
        if self.queens.is_empty() { 1 } else { 2 * u64::from(self.n.get()) }
    }

    /// Counts all solutions of the torus that the piece stands for.
    pub(super) fn count(&self, control: &Control) -> Result<Tally, Stopped> {
        let mut walk = Walk::new(self.n, self.queens.len(), self.attacks());
        let (mut meter, mut found) = (Meter::new(control), 0_u64);
        while walk.go_on(&mut meter)? {
            found += 1;
        }
        let completions = found.checked_mul(self.weight()).expect("the largest torus has 2^44 solutions");
        Ok(Tally { completions, states: meter.finish()? })
    }
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

    #[test]
    fn pieces_have_each_solution_once() {
        for n in up_to(13) {
            let pieces = TorusPiece::all(n);
            let counted = pieces.iter().map(|piece| piece.count(&Control::default()).unwrap().completions);
            assert_eq!(counted.sum::<u64>(), solutions(n).count() as u64, "N = {n}");
        }
        let numbers = [13, 19, 23, 31].map(|n| TorusPiece::all(BoardSize::new(n).unwrap()).len());
        assert!(numbers.is_sorted() && numbers[0] > 10 && numbers[3] < 200_000, "{numbers:?}");
    }

    #[test]
    fn a_search_ends_when_it_is_told_to() {
        let control = Control::default();
        control.stop();
        let piece = TorusPiece { n: BoardSize::new(31).unwrap(), queens: vec![0, 2] };
        assert_eq!(piece.count(&control), Err(Stopped));
    }
}
