//! The solutions that equal their half or quarter turn, counted on their own: an independent check on every run.

use crate::board::{BoardSize, columns_of};
use crate::engine::{Control, Meter, Stopped};

/// How many solutions are symmetric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SymmetricCounts {
    /// Solutions equal to their half turn (OEIS A032522).
    pub half_turn: u64,
    /// Solutions equal to their quarter turn (OEIS A033148).
    pub quarter_turn: u64,
}

impl SymmetricCounts {
    /// COUNT2 of the whole board: two of these solutions an orbit. Zero for N = 1, whose orbit has one member.
    pub fn count2(self) -> u64 {
        self.quarter_turn / 2
    }

    /// COUNT4 of the whole board: four of these solutions an orbit.
    pub fn count4(self) -> u64 {
        (self.half_turn - self.quarter_turn) / 4
    }
}

/// Counts the symmetric solutions of an N by N board.
pub fn symmetric_counts(n: BoardSize, control: &Control) -> Result<SymmetricCounts, Stopped> {
    let mut meter = Meter::new(control);
    let lines = u8::try_from(n.get()).expect("at most 31");
    let mut search = Search { lines, meter: &mut meter };
    let start = search.center();
    let half_turn = search.half_turn(lines / 2, start)?;
    let quarter_turn = search.quarter_turn(start)?;
    meter.finish()?;
    Ok(SymmetricCounts { half_turn, quarter_turn })
}

/// What the queens placed so far attack, in the coordinates of the whole board.
#[derive(Clone, Copy, Default)]
struct Attacked {
    /// Bit `c`: column `c`.
    columns: u32,
    /// Bit `r + c`.
    rising: u64,
    /// Bit `c + N-1-r`.
    falling: u64,
}

struct Search<'a, 'b> {
    lines: u8,
    meter: &'b mut Meter<'a>,
}

impl Search<'_, '_> {
    fn last(&self) -> u8 {
        self.lines - 1
    }

    /// On an odd board a symmetric solution has a queen on the cell in the centre.
    fn center(&self) -> Attacked {
        if self.lines.is_multiple_of(2) {
            return Attacked::default();
        }
        let middle = self.last() / 2;
        Attacked { columns: 1 << middle, rising: 1 << self.last(), falling: 1 << self.last() }
    }

    fn with_queen(&self, attacked: Attacked, row: u8, column: u8) -> Attacked {
        Attacked {
            columns: attacked.columns | 1 << column,
            rising: attacked.rising | 1 << (row + column),
            falling: attacked.falling | 1 << (column + self.last() - row),
        }
    }

    /// Columns of `row` where a queen attacks neither those placed nor its own half turn.
    fn cells(&self, attacked: Attacked, row: u8) -> u32 {
        let full = (1u64 << self.lines) - 1;
        let up = self.last() - row;
        let taken = u64::from(attacked.columns) | attacked.rising >> row | attacked.falling >> up;
        (full & !taken & !(1 << row | 1 << up)) as u32
    }

    fn half_turn(&mut self, open: u8, attacked: Attacked) -> Result<u64, Stopped> {
        self.meter.add(1)?;
        let Some(row) = open.checked_sub(1) else { return Ok(1) };
        let mut solutions = 0;
        for column in columns_of(self.cells(attacked, row)) {
            let one = self.with_queen(attacked, row, column);
            solutions +=
                self.half_turn(row, self.with_queen(one, self.last() - row, self.last() - column))?;
        }
        Ok(solutions)
    }

    fn quarter_turn(&mut self, attacked: Attacked) -> Result<u64, Stopped> {
        self.meter.add(1)?;
        let last = self.last();
        // Lines are settled as rows and columns at once.
        let row = attacked.columns.trailing_ones() as u8;
        if row == self.lines {
            return Ok(1);
        }
        let mut solutions = 0;
        for column in columns_of(self.cells(attacked, row)) {
            let orbit =
                [(row, column), (column, last - row), (last - row, last - column), (last - column, row)];
            let all =
                orbit.into_iter().fold(attacked, |all, (row, column)| self.with_queen(all, row, column));
            let [rising, falling] = [all.rising ^ attacked.rising, all.falling ^ attacked.falling];
            if rising.count_ones() == 4 && falling.count_ones() == 4 {
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
        for n in BoardSize::MIN.up_to(BoardSize::new(20).unwrap()) {
            let counts = symmetric_counts(n, &Control::default()).unwrap();
            let known = published(n).unwrap();
            assert_eq!(
                (counts.half_turn, counts.quarter_turn),
                (known.half_turn, known.quarter_turn),
                "N = {n}"
            );
        }
    }
}
