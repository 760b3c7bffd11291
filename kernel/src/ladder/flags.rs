//! Rung 3, placement flags: remember what is taken instead of asking every queen again.
//!
//! Backtracking compares a new queen with all those above it, up to N-1 comparisons a cell. But all that matters
//! is whether the cell's column and its two diagonals are still free, and those can be ticked off in three lists:
//!
//! * the column `c`: N flags;
//! * the diagonal on which `r + c` is constant: 2N-1 flags;
//! * the diagonal on which `r - c` is constant (`r + N-1 - c`, to begin at 0): 2N-1 flags.
//!
//! A cell is tested by three look-ups, whatever the row. The tree of boards is the same as before, state by
//! state; each state is cheaper. The price is that a queen taken back must clear her three flags: whatever is
//! done on the way down has to be undone on the way up.
//!
//! Wirth's *Program Development by Stepwise Refinement* (1971) arrives at these three arrays.

use crate::board::BoardSize;

/// Queens one a row from the top, and the columns and diagonals that they take.
struct Board {
    n: usize,
    queens: Vec<u8>,
    column_taken: Vec<bool>,
    sum_taken: Vec<bool>,
    difference_taken: Vec<bool>,
}

impl Board {
    fn empty(n: BoardSize) -> Self {
        let n = n.index();
        Self {
            n,
            queens: Vec::with_capacity(n),
            column_taken: vec![false; n],
            sum_taken: vec![false; 2 * n - 1],
            difference_taken: vec![false; 2 * n - 1],
        }
    }

    fn is_full(&self) -> bool {
        self.queens.len() == self.n
    }

    /// Whether a queen can stand on `column` of the first empty row.
    fn is_free(&self, column: u8) -> bool {
        let (row, column) = (self.queens.len(), usize::from(column));
        !(self.column_taken[column]
            || self.sum_taken[row + column]
            || self.difference_taken[row + self.n - 1 - column])
    }

    fn put(&mut self, column: u8) {
        self.mark(column, true);
        self.queens.push(column);
    }

    /// Takes the last queen back, who stands on `column`.
    fn take_back(&mut self, column: u8) {
        self.queens.pop();
        self.mark(column, false);
    }

    fn mark(&mut self, column: u8, taken: bool) {
        let (row, column) = (self.queens.len(), usize::from(column));
        self.column_taken[column] = taken;
        self.sum_taken[row + column] = taken;
        self.difference_taken[row + self.n - 1 - column] = taken;
    }
}

pub(super) fn search(n: BoardSize, visit: &mut dyn FnMut(&[u8])) -> u64 {
    descend(n, &mut Board::empty(n), visit)
}

fn descend(n: BoardSize, board: &mut Board, visit: &mut dyn FnMut(&[u8])) -> u64 {
    if board.is_full() {
        visit(&board.queens);
        return 0;
    }
    let mut states = 0;
    for column in n.lines() {
        if board.is_free(column) {
            board.put(column);
            states += 1 + descend(n, board, visit);
            board.take_back(column);
        }
    }
    states
}
