//! Rung 6, symmetry: search one board in eight.
//!
//! A board has 8 images, 4 turns of itself and 4 of its mirror image, and all of them are solutions if one is.
//! This rung finds one representative of each such orbit, the smallest of its images row by row, and counts it
//! with the number of its different images: 8, or 4 if it equals its half turn, or 2 if it equals its quarter
//! turn.
//!
//! To find all boards and throw seven of eight away would save nothing. The art is to see at the top of the board
//! that a representative can't come of it. Every image begins with one of the queens on the border, and its first
//! number is that queen's distance from a corner; so **the representative has its first queen as near to a corner
//! as any queen on the border.** What follows from it are the two classes of the classic search, named for
//! their parameters BOUND1 and BOUND2:
//!
//! * **corner**: the first queen stands in the corner, column 0. Only one other image begins in a corner, the
//!   reflection in that corner's diagonal, which exchanges the queen of row 1 with that of column 1. BOUND1 is
//!   the column of row 1's queen; that of column 1 must come further down, so the rows above BOUND1 may not use
//!   column 1. All 8 images differ.
//! * **edge**: the first queen stands on column BOUND1, and BOUND2 = N-1-BOUND1 is the same distance from the
//!   other corner. Each side's queen must stay between the two bounds: the rows above BOUND1 and below BOUND2
//!   may not use the outermost columns, and the last row only columns BOUND1 to BOUND2. Of those six border
//!   cells that are exactly as far from a corner, the first queen attacks three. A queen on one of the other
//!   three means that one turn of the board begins like the board itself, and has to be compared with it at the
//!   leaf of the search: a smaller turn is the representative in its stead, an equal one is a symmetry.
//!
//! Each board that passes is a representative, whether it met none, one or all of the three tests. (A published
//! listing counts an orbit of 8 only where the last test was made; right for N = 5, wrong from N = 6 on.)
//!
//! The method and the names of its bounds are those of Takaken's program, on which several record searches were
//! built.

use std::cmp::Ordering;

use super::bitmap::{self, Rule};
use crate::board::BoardSize;
use crate::solution::{Image, Solution, Symmetry};

pub(super) fn search(n: BoardSize, visit: &mut dyn FnMut(Solution, Symmetry)) -> u64 {
    classes(n).map(|class| bitmap::search_by(class.rule(n), n, &mut class.at_leaf(n, visit))).sum()
}

pub(super) fn solutions(n: BoardSize) -> impl Iterator<Item = (Solution, Symmetry)> {
    let of_class = move |class: SymmetryClass| {
        let orbit = move |board| Some((board, class.symmetry(&board)?));
        bitmap::solutions_by(class.rule(n), n).filter_map(orbit)
    };
    classes(n).flat_map(of_class)
}

/// A part of the search, told apart by where the first queens stand.
#[derive(Clone, Copy)]
enum SymmetryClass {
    /// The board of one cell, whose queen is on all four sides at once and fits neither class.
    Single,
    Corner {
        bound1: usize,
    },
    Edge {
        bound1: usize,
        bound2: usize,
    },
}

/// Every class that may hold a solution, by its first queens' columns, ascending.
fn classes(n: BoardSize) -> impl Iterator<Item = SymmetryClass> {
    let (n, last) = (n.index(), n.index() - 1);
    let single = (n == 1).then_some(SymmetryClass::Single);
    let corners = (2..last).map(|bound1| SymmetryClass::Corner { bound1 });
    let edges = (1..n / 2).map(move |bound1| SymmetryClass::Edge { bound1, bound2: last - bound1 });
    single.into_iter().chain(corners).chain(edges)
}

impl SymmetryClass {
    /// The cells that the class leaves to a row.
    fn rule(self, n: BoardSize) -> impl Rule {
        let last = n.index() - 1;
        let sides = 1 | 1 << last;
        move |row, columns| match self {
            Self::Single => 1,
            Self::Corner { bound1 } => match row {
                0 => 1,
                1 => 1 << bound1,
                _ if row < bound1 => n.full() & !0b10,
                _ => n.full(),
            },
            Self::Edge { bound1, bound2 } => match row {
                0 => 1 << bound1,
                _ if row == last => (2 << bound2) - (1 << bound1),
                _ if row < bound1 || row > bound2 => n.full() & !sides,
                // The last chance for queens on the left and right side: one can still come, two can't.
                _ if row == bound2 => match sides & !columns {
                    0 => n.full(),
                    missing if missing == sides => 0,
                    missing => missing,
                },
                _ => n.full(),
            },
        }
    }

    /// The board's symmetry if it is its orbit's representative, `None` if one of its turns is.
    fn symmetry(self, board: &Solution) -> Option<Symmetry> {
        let (bound1, bound2) = match self {
            Self::Single => return Some(Symmetry::QuarterTurn),
            Self::Corner { .. } => return Some(Symmetry::Identity),
            Self::Edge { bound1, bound2 } => (bound1, bound2),
        };
        let last = bound1 + bound2;
        // A queen on this row and column makes this turn begin with BOUND1; if the rest is equal too, this is the
        // symmetry. (For a board that equals its half turn, the first and the third turn are the same board, so
        // nothing is missed by stopping at the second.)
        let ties = [
            (bound2, 0, Image::QUARTER_TURN, Symmetry::QuarterTurn),
            (last, bound2, Image::HALF_TURN, Symmetry::HalfTurn),
            (bound1, last, Image::THREE_QUARTER_TURN, Symmetry::QuarterTurn),
        ];
        for (row, column, turn, symmetry) in ties {
            if usize::from(board.columns()[row]) == column {
                match board.image(turn).cmp(board) {
                    Ordering::Less => return None,
                    Ordering::Equal => return Some(symmetry),
                    Ordering::Greater => {}
                }
            }
        }
        Some(Symmetry::Identity)
    }

    /// What the search does with a full board: pass it on if it is a representative.
    fn at_leaf(self, n: BoardSize, visit: &mut dyn FnMut(Solution, Symmetry)) -> impl FnMut(&[u8]) {
        move |queens| {
            let board = Solution::found(n, queens);
            if let Some(symmetry) = self.symmetry(&board) {
                visit(board, symmetry);
            }
        }
    }
}
