//! The BOUND1/BOUND2 classes of the classic symmetry search (K. Takahashi's `nqueens` lineage).
//!
//! An orbit's representative has its top-row queen as near to a corner as any of its border queens. In the
//! **corner** class that queen stands on the corner itself, and each solution is an orbit of 8 of its own. In
//! the **edge** class it stands on column BOUND1, and a rotation may tie with it.

use crate::board::{BoardSize, columns_of};
use crate::subproblem::Subproblem;

/// The column opposite to BOUND1: `N-1-BOUND1`.
pub(crate) fn bound2(n: BoardSize, bound1: u8) -> u8 {
    last_line(n) - bound1
}

/// The number of the last row or column: `N-1`.
pub(crate) fn last_line(n: BoardSize) -> u8 {
    n.lines().next_back().expect("a board has a row")
}

/// The values BOUND1 of the corner class.
pub(crate) fn corner_bounds(n: BoardSize) -> impl Iterator<Item = u8> {
    2..last_line(n).max(2)
}

/// The values BOUND1 of the edge class.
pub(crate) fn edge_bounds(n: BoardSize) -> impl Iterator<Item = u8> {
    (1..last_line(n)).take_while(move |&bound1| bound1 < bound2(n, bound1))
}

/// The board of one corner class before any queen is placed: only the cells that its solutions may use.
pub(crate) fn corner_class(n: BoardSize, bound1: u8) -> Subproblem {
    let board = Subproblem::empty(n).forbid(0, !1).forbid(1, !(1 << bound1));
    (2..bound1).fold(board, |board, row| board.forbid(row, 1 << 1))
}

/// The board of one edge class before any queen is placed: only the cells that its solutions may use.
pub(crate) fn edge_class(n: BoardSize, bound1: u8) -> Subproblem {
    let (last, bound2) = (last_line(n), bound2(n, bound1));
    let sides = 1 | 1 << last;
    // The last row's queen is no nearer to its corners than the first row's.
    let near_corners = columns_of(n.full()).filter(|&column| column < bound1 || column > bound2);
    let near_corners = near_corners.fold(0, |mask, column| mask | 1 << column);
    let board = Subproblem::empty(n).forbid(0, !(1 << bound1)).forbid(last, near_corners);
    let outside = n.lines().filter(|&row| row < bound1 || row > bound2);
    outside.fold(board, |board, row| if row == 0 { board } else { board.forbid(row, sides) })
}

/// The cells, as (row, column), of which a solution of the edge class must use one if a rotation of it is to tie
/// with it: the quarter, the half and the three-quarter turn bring these to (0, BOUND1).
pub(crate) fn tie_cells(n: BoardSize, bound1: u8) -> [(u8, u8); 3] {
    let (last, bound2) = (last_line(n), bound2(n, bound1));
    [(bound2, 0), (last, bound2), (bound1, last)]
}
