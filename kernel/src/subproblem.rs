//! The one question that every counting engine answers: in how many ways can this partial board be completed?

use crate::board::{BoardSize, columns_of};

/// A row that still waits for its queen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenRow {
    /// Row number, `0..N`, counted from the top.
    pub row: u8,
    /// Columns where the row's queen may stand: neither forbidden nor attacked by a queen placed before.
    pub allowed: u32,
}

/// A board with some rows settled and the others open, each with a mask of allowed columns.
///
/// A **completion** puts one queen on each open row, each on an allowed column, no two on one column or
/// diagonal. Queens placed already and forbidden cells are both nothing but cells taken out of the masks, so
/// this one type serves the classic classes and border configurations alike; open rows may have gaps between
/// them.
///
/// Invariants: `1 <= N <= 31`; rows ascend; every mask is a subset of [`free`](Self::free); there are as many
/// free columns as open rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subproblem {
    n: BoardSize,
    free: u32,
    rows: Vec<OpenRow>,
}

impl Subproblem {
    /// The empty board: every row open, every column allowed.
    pub fn empty(n: BoardSize) -> Self {
        let rows = n.lines().map(|row| OpenRow { row, allowed: n.full() }).collect();
        Self { n, free: n.full(), rows }
    }

    /// The board on which each row, from the top, has the columns of its mask.
    pub(crate) fn of_masks(n: BoardSize, masks: &[u32]) -> Self {
        let mut board = Self::empty(n);
        for (open, mask) in board.rows.iter_mut().zip(masks) {
            open.allowed &= mask;
        }
        board
    }

    /// The same with a queen on each row that has one cell left, for as long as there is such a row; as it is if that leaves
    /// a row without a cell.
    pub(crate) fn settled(&self) -> Self {
        let mut board = self.clone();
        while let Some(&OpenRow { row, allowed }) =
            board.rows.iter().find(|open| open.allowed.is_power_of_two())
        {
            let column = columns_of(allowed).next().expect("one cell");
            board = board.place(row, column).expect("an open cell");
        }
        let is_hopeful = board.rows.iter().all(|open| open.allowed != 0);
        if is_hopeful { board } else { self.clone() }
    }

    /// A board on which only `rows` (row numbers with their allowed columns, ascending) are open and only the
    /// columns `free` are left. Masks are cut down to `free`.
    ///
    /// `None` unless the rows ascend inside the board and are as many as the free columns.
    pub fn new(n: BoardSize, free: u32, rows: &[OpenRow]) -> Option<Self> {
        let ascending = rows.windows(2).all(|pair| pair[0].row < pair[1].row);
        let inside = rows.last().is_none_or(|last| u32::from(last.row) < n.get()) && free & !n.full() == 0;
        let balanced = rows.len() == free.count_ones() as usize;
        let cut = |open: &OpenRow| OpenRow { allowed: open.allowed & free, ..*open };
        (ascending && inside && balanced).then(|| Self { n, free, rows: rows.iter().map(cut).collect() })
    }

    /// Board size.
    pub fn n(&self) -> BoardSize {
        self.n
    }

    /// Columns without a queen.
    pub fn free(&self) -> u32 {
        self.free
    }

    /// Rows without a queen, from the top.
    pub fn rows(&self) -> &[OpenRow] {
        &self.rows
    }

    /// Puts a queen on an allowed cell of an open row: the row is settled, and the cells it attacks leave the
    /// masks of the others. `None`, and nothing changed, if the cell is not open to a queen.
    #[must_use]
    pub fn place(&self, row: u8, column: u8) -> Option<Self> {
        let at = self.rows.iter().position(|open| open.row == row)?;
        if self.rows[at].allowed.checked_shr(column.into()).unwrap_or(0) & 1 == 0 {
            return None;
        }
        let keep = |open: &OpenRow| {
            let attacked = attacked_columns(row.abs_diff(open.row), column);
            OpenRow { allowed: open.allowed & !attacked, ..*open }
        };
        // Sized at once: planning a million jobs is mostly this.
        let mut rows = Vec::with_capacity(self.rows.len());
        rows.extend(self.rows.iter().filter(|open| open.row != row).map(keep));
        Some(Self { n: self.n, free: self.free & !(1 << column), rows })
    }

    /// Takes cells away: columns `columns` of `row` no longer may hold its queen. Nothing happens on a row that
    /// is settled.
    #[must_use]
    pub fn forbid(mut self, row: u8, columns: u32) -> Self {
        if let Some(open) = self.rows.iter_mut().find(|open| open.row == row) {
            open.allowed &= !columns;
        }
        self
    }

    /// Left and right exchanged; there are as many completions.
    #[must_use]
    pub fn mirrored(&self) -> Self {
        let mirror = |columns: u32| columns.reverse_bits() >> (u32::BITS - self.n.get());
        let rows = self.rows.iter().map(|open| OpenRow { allowed: mirror(open.allowed), ..*open }).collect();
        Self { n: self.n, free: mirror(self.free), rows }
    }

    /// The subproblems that differ by where the first open row's queen stands: together they have the same
    /// completions, each once. Children with an open row that has no cell left are left out.
    pub fn children(&self) -> Vec<Self> {
        let Some(first) = self.rows.first() else { return vec![self.clone()] };
        let placed = columns_of(first.allowed).filter_map(|column| self.place(first.row, column));
        placed.filter(|child| child.rows.iter().all(|open| open.allowed != 0)).collect()
    }

    /// A number that the completions can not exceed: the product, over the open rows, of the cells left to each
    /// when every earlier row has used up one column. Saturates at `u64::MAX`.
    pub fn completions_max(&self) -> u64 {
        let m = self.rows.len() as u64;
        (0..).zip(&self.rows).fold(1, |product: u64, (used, open)| {
            product.saturating_mul(u64::from(open.allowed.count_ones()).min(m - used))
        })
    }
}

/// The columns that a queen on `column` attacks in a row `distance` away: its own and the two diagonals.
pub(crate) fn attacked_columns(distance: u8, column: u8) -> u32 {
    let bit = 1u32 << column;
    // A bit shifted out at either end is off every board.
    bit | bit.checked_shl(distance.into()).unwrap_or(0) | bit.checked_shr(distance.into()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placing_a_queen_takes_its_row_column_and_diagonals() {
        let n = BoardSize::new(5).unwrap();
        let board = Subproblem::empty(n).place(1, 2).unwrap();
        let masks: Vec<_> = board.rows().iter().map(|open| (open.row, open.allowed)).collect();
        assert_eq!(masks, [(0, 0b10001), (2, 0b10001), (3, 0b01010), (4, 0b11011)]);
        assert_eq!(board.free(), 0b11011);
        assert!(board.place(1, 0).is_none() && board.place(2, 1).is_none() && board.place(9, 0).is_none());
        assert!(board.place(0, 5).is_none() && board.place(0, 32).is_none());
        assert_eq!(board.completions_max(), 2 * 2 * 2);
    }

    #[test]
    fn the_mirror_image_has_its_queens_on_the_other_side() {
        for n in [1, 5, 31].map(|n| BoardSize::new(n).unwrap()) {
            let last = u8::try_from(n.get()).unwrap() - 1;
            let board = |column| Subproblem::empty(n).place(0, column).unwrap();
            assert_eq!(board(0).mirrored(), board(last));
            assert_eq!(board(last / 2).forbid(last, 1).mirrored(), board(last / 2).forbid(last, 1 << last));
        }
    }

    #[test]
    fn rows_with_one_cell_left_are_settled() {
        let n = BoardSize::new(4).unwrap();
        let board = Subproblem::of_masks(n, &[0b0010, 0b1111, 0b1111, 0b1111]).settled();
        assert!(board.rows().is_empty(), "each queen leaves one cell to the next: {board:?}");
        let hopeless = Subproblem::of_masks(n, &[0b0001, 0b1111, 0b1111, 0b0001]);
        assert_eq!(hopeless.settled(), hopeless);
        assert_eq!(Subproblem::empty(n).settled(), Subproblem::empty(n));
    }

    #[test]
    fn unbalanced_or_disordered_boards_cannot_be_built() {
        let n = BoardSize::new(5).unwrap();
        let row = |row| OpenRow { row, allowed: 31 };
        assert!(Subproblem::new(n, 0b11, &[row(0), row(3)]).is_some());
        assert!(Subproblem::new(n, 0b111, &[row(0), row(3)]).is_none());
        assert!(Subproblem::new(n, 0b11, &[row(3), row(0)]).is_none());
        assert!(Subproblem::new(n, 0b11, &[row(0), row(5)]).is_none());
        assert!(Subproblem::new(n, 0b10_0001, &[row(0), row(1)]).is_none());
    }
}
