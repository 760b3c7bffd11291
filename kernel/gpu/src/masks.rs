//! Boards as the device wants them: a mask for every row from the first open one to the last.

use nqueens_kernel::subproblem::Subproblem;

/// Cells for settled rows are looked for in so many ways. Boards of our plans have a few settled rows between open ones.
const TRIES_MAX: u32 = 1_000;

/// Masks of a board, by rows left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Masks {
    /// `allowed[k]`: where the queen of the row may stand that has `k` rows left, itself included; `[0]` is 0.
    pub(crate) allowed: [u32; 32],
    /// Columns without a queen, one for each row.
    pub(crate) free: u32,
}

impl Masks {
    /// The masks of `board`. A settled row between open ones gets a cell of its own, on a column that is not free, whose
    /// queen attacks no allowed cell above or below, nor another such cell: the queen that stands there is one, but where
    /// the board was made of its masks alone it may have stood anywhere. `None` if there is no such cell, or none that is
    /// found soon.
    pub(crate) fn of(board: &Subproblem) -> Option<Self> {
        let open = board.rows();
        let (Some(first), Some(last)) = (open.first(), open.last()) else {
            return Some(Self { allowed: [0; 32], free: 0 });
        };
        let mut rows: Vec<_> = open.iter().map(|open| (open.row, open.allowed)).collect();
        let is_settled = |row: &u8| open.iter().all(|open| open.row != *row);
        let settled: Vec<_> = (first.row..=last.row).filter(is_settled).collect();
        let free = board.free() | settle(&settled, board.free(), &mut rows, &mut { TRIES_MAX })?;
        let mut allowed = [0; 32];
        for (row, cells) in rows {
            allowed[usize::from(last.row - row) + 1] = cells;
        }
        Some(Self { allowed, free })
    }
}

/// Adds a cell for each of the rows `settled`; their columns. Gives up after so many `tries`.
fn settle(settled: &[u8], free: u32, rows: &mut Vec<(u8, u32)>, tries: &mut u32) -> Option<u32> {
    let Some((&row, others)) = settled.split_first() else { return Some(0) };
    *tries = tries.checked_sub(1)?;
    for bit in (0..u32::BITS).map(|column| 1 << column).filter(|bit| free & bit == 0) {
        let attacked = |distance: u8| {
            let shift = u32::from(distance);
            bit.checked_shl(shift).unwrap_or(0) | bit.checked_shr(shift).unwrap_or(0)
        };
        if rows.iter().all(|&(other, cells)| cells & attacked(row.abs_diff(other)) == 0) {
            rows.push((row, bit));
            if let Some(columns) = settle(others, free | bit, rows, tries) {
                return Some(columns | bit);
            }
            rows.pop();
        }
    }
    None
}
