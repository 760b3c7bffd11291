//! Rung 2, backtracking: look before each queen.
//!
//! Two queens that attack each other will do so whatever stands below them. So a queen is only put down where
//! none of those above attacks it, and where a row has no such cell left, the queen above it is taken back and
//! moved on. One early test cuts off a whole tree of boards: 8 queens take 2,056 states instead of 19
//! million. The full boards that remain are the solutions, and need no test at the end.
//!
//! Golomb and Baumert described the method in general (*Backtrack Programming*, 1965); Dijkstra made these queens
//! its textbook example (*Notes on Structured Programming*, 1972).

use crate::board::BoardSize;
use crate::solution::is_safe;

pub(super) fn search(n: BoardSize, visit: &mut dyn FnMut(&[u8])) -> u64 {
    descend(n, &mut Vec::with_capacity(n.index()), visit)
}

fn descend(n: BoardSize, queens: &mut Vec<u8>, visit: &mut dyn FnMut(&[u8])) -> u64 {
    if queens.len() == n.index() {
        visit(queens);
        return 0;
    }
    let mut states = 0;
    for column in n.lines() {
        if is_safe(queens, column) {
            queens.push(column);
            states += 1 + descend(n, queens, visit);
            queens.pop();
        }
    }
    states
}
