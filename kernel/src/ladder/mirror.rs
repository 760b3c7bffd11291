//! Rung 5, mirror: search half, count double.
//!
//! Exchange left and right, and a solution becomes another solution. So the solutions come in pairs, and one of
//! each pair is enough: that whose first queen stands in the left half (columns below N/2). The search does half
//! the work, and each board found stands for two.
//!
//! Odd N has a middle column, and a board whose first queen stands there keeps it there in the mirror. Doubling
//! those too would count them twice; leaving them out would lose them. But then the second queen is not in the
//! middle, since the first attacks that column, and the pair is told apart by it: it must stand in the left half.
//!
//! Either way the board that is kept is the smaller of its pair, row by row. No board is its own mirror image
//! (each row's queen would stand in the middle), except the single cell of N = 1.

use super::bitmap::{self, Rule};
use crate::board::BoardSize;

pub(super) fn search(n: BoardSize, visit: &mut dyn FnMut(&[u8])) -> u64 {
    bitmap::search_by(left_half_first(n), n, visit)
}

fn left_half_first(n: BoardSize) -> impl Rule {
    let left = (1 << (n.get() / 2)) - 1;
    // The bit between the left half and its mirror image; none if N is even.
    let middle = if n.get() % 2 == 1 { left + 1 } else { 0 };
    move |row, columns| match row {
        0 => left | middle,
        1 if columns == middle => left,
        _ => n.full(),
    }
}
