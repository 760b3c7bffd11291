//! The solutions that equal their half or quarter turn, counted on their own: an independent check on every run.

use crate::board::{BoardSize, columns_of};
use crate::counts::SymmetricCounts;
use crate::engine::{Control, Meter, Stopped};

/// Counts the symmetric solutions of an N by N board by a search of their own, which shares nothing with plans and
/// engines. Half a second for N = 24, and about three times as long for each N more.
pub fn symmetric_counts(n: BoardSize, control: &Control) -> Result<SymmetricCounts, Stopped> {
    let lines = u8::try_from(n.get()).expect("at most 31");
    let mut search = Search { lines, meter: Meter::new(control) };
    let center = search.center();
    let upper_rows = lines / 2;
    let half_turn = if upper_rows == 0 {
        1
    } else {
        // The other half of the solutions are their mirror images.
        let left_half = (1 << upper_rows) - 1;
        2 * search.half_turn(upper_rows, center, left_half)?
    };
    let quarter_turn = search.quarter_turn(center)?;
    search.meter.finish()?;
    Ok(SymmetricCounts { half_turn, quarter_turn })
}

/// What the queens placed so far attack, in the coordinates of the whole board: any row may come next.
#[derive(Clone, Copy, Default)]
struct BoardAttacks {
    /// Bit `c`: column `c`.
    columns: u32,
    /// Bit `r + c`.
    rising: u64,
    /// Bit `c + N-1-r`.
    falling: u64,
}

struct Search<'a> {
    lines: u8,
    meter: Meter<'a>,
}

impl Search<'_> {
    fn last(&self) -> u8 {
        self.lines - 1
    }

    /// On an odd board a symmetric solution has a queen on the cell in the centre.
    fn center(&self) -> BoardAttacks {
        let middle = self.last() / 2;
        if self.lines.is_multiple_of(2) {
            BoardAttacks::default()
        } else {
            self.with_queen(BoardAttacks::default(), middle, middle)
        }
    }

    fn with_queen(&self, attacked: BoardAttacks, row: u8, column: u8) -> BoardAttacks {
        BoardAttacks {
            columns: attacked.columns | 1 << column,
            rising: attacked.rising | 1 << (row + column),
            falling: attacked.falling | 1 << (column + self.last() - row),
        }
    }

    /// Columns of `row` where a queen attacks neither those placed nor its own half turn.
    fn cells(&self, attacked: BoardAttacks, row: u8) -> u32 {
        let mirror_row = self.last() - row;
        let diagonals = attacked.rising >> row | attacked.falling >> mirror_row;
        #[expect(clippy::cast_possible_truncation, reason = "diagonals that leave the board's 31 columns")]
        let diagonals = diagonals as u32;
        let full = (1 << self.lines) - 1;
        full & !(attacked.columns | diagonals | 1 << row | 1 << mirror_row)
    }

    /// Half-turn symmetric ways to fill the first `open` rows and, with them, as many at the bottom; the queen
    /// nearest to the centre on one of `columns`. From the centre outward, where queens attack most.
    fn half_turn(&mut self, open: u8, attacked: BoardAttacks, columns: u32) -> Result<u64, Stopped> {
        self.meter.add(1)?;
        let row = open - 1;
        let cells = self.cells(attacked, row) & columns;
        if row == 0 {
            return Ok(cells.count_ones().into());
        }
        let mut solutions = 0;
        for column in columns_of(cells) {
            let one = self.with_queen(attacked, row, column);
            let pair = self.with_queen(one, self.last() - row, self.last() - column);
            solutions += self.half_turn(row, pair, u32::MAX)?;
        }
        Ok(solutions)
    }

    /// Quarter-turn symmetric ways to fill the rest: four queens at a time, which settle the same rows and columns.
    fn quarter_turn(&mut self, attacked: BoardAttacks) -> Result<u64, Stopped> {
        self.meter.add(1)?;
        let last = self.last();
        let Some(row) = (0..self.lines).find(|&row| attacked.columns >> row & 1 == 0) else { return Ok(1) };
        let mut solutions = 0;
        for column in columns_of(self.cells(attacked, row)) {
            let orbit =
                [(row, column), (column, last - row), (last - row, last - column), (last - column, row)];
            let all =
                orbit.into_iter().fold(attacked, |all, (row, column)| self.with_queen(all, row, column));
            let new = [all.rising ^ attacked.rising, all.falling ^ attacked.falling];
            if new.map(u64::count_ones) == [4, 4] {
                solutions += self.quarter_turn(all)?;
            }
        }
        Ok(solutions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::published;

    #[test]
    fn symmetric_solutions_are_as_many_as_published() {
        for n in BoardSize::MIN.up_to(BoardSize::new(21).unwrap()) {
            let counts = symmetric_counts(n, &Control::default()).unwrap();
            let known = published(n).unwrap();
            assert_eq!(
                (counts.half_turn, counts.quarter_turn),
                (known.half_turn, known.quarter_turn),
                "N = {n}"
            );
            let orbits = (u128::from(counts.count2()), u128::from(counts.count4()));
            assert_eq!(orbits, (known.orbits.count2, known.orbits.count4), "N = {n}");
        }
    }
}
