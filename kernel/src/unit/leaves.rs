//! The classic symmetry search: every solution of the edge class is held against its rotations.

use crate::board::{BoardSize, columns_of};
use crate::counts::Counts;
use crate::engine::{Control, Meter, Stopped};
use crate::rows::{bound2, last_line};
use crate::subproblem::{OpenRow, Subproblem};
use crate::unit::UnitTally;

/// A part of an edge class whose solutions are tested, each on its own: it counts if none of its rotations comes
/// before it.
///
/// Only rotations can tie with it for the place of representative: a reflection that brings a queen to
/// (0, BOUND1) would bring it from a cell that the queen there attacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaves {
    bound1: u8,
    /// Column of the queen of each settled row.
    queens: [u8; 32],
    board: Subproblem,
}

impl Leaves {
    /// The edge class of `bound1` with its first rows' queens on the columns `settled`; `board` is what they
    /// leave open.
    pub(crate) fn new(board: Subproblem, bound1: u8, settled: &[u8]) -> Self {
        let mut queens = [0; 32];
        queens[..settled.len()].copy_from_slice(settled);
        Self { bound1, queens, board }
    }

    fn is_open(&self, row: u8) -> bool {
        self.board.rows().iter().any(|open| open.row == row)
    }

    /// The solutions among these with a queen on this cell; `None` if there are none.
    #[must_use]
    pub(crate) fn with_queen(&self, row: u8, column: u8) -> Option<Self> {
        if !self.is_open(row) {
            return (self.queens[usize::from(row)] == column).then(|| self.clone());
        }
        let mut queens = self.queens;
        queens[usize::from(row)] = column;
        Some(Self { queens, board: self.board.place(row, column)?, ..*self })
    }

    /// The solutions among these with no queen on this cell; `None` if there are none.
    #[must_use]
    pub(crate) fn without_queen(self, row: u8, column: u8) -> Option<Self> {
        if !self.is_open(row) {
            return (self.queens[usize::from(row)] != column).then_some(self);
        }
        Some(Self { board: self.board.forbid(row, 1 << column), ..self })
    }

    /// What is left to fill.
    pub(crate) fn board(&self) -> &Subproblem {
        &self.board
    }

    pub(super) fn split(self) -> Vec<Self> {
        match self.board.rows().first() {
            None => vec![self],
            Some(first) => {
                columns_of(first.allowed).filter_map(|column| self.with_queen(first.row, column)).collect()
            }
        }
    }

    pub(crate) fn solve(&self, control: &Control) -> Result<UnitTally, Stopped> {
        let n = self.board.n();
        let mut search = LeafSearch {
            n,
            bound2: bound2(n, self.bound1),
            rows: self.board.rows(),
            queens: self.queens,
            counts: Counts::ZERO,
            meter: Meter::new(control),
        };
        search.descend(0, 0, 0, self.board.free())?;
        Ok(UnitTally { counts: search.counts, states: search.meter.finish()? })
    }
}

struct LeafSearch<'a> {
    n: BoardSize,
    bound2: u8,
    rows: &'a [OpenRow],
    /// Column of the queen of each row.
    queens: [u8; 32],
    counts: Counts,
    meter: Meter<'a>,
}

impl LeafSearch<'_> {
    /// Fills the open rows from number `at` on; `left` and `right` are the diagonals attacked, seen from there.
    fn descend(&mut self, at: usize, left: u32, right: u32, free: u32) -> Result<(), Stopped> {
        self.meter.add(1)?;
        let Some(&OpenRow { row, allowed }) = self.rows.get(at) else {
            self.test();
            return Ok(());
        };
        let gap = self.rows.get(at + 1).map_or(0, |next| next.row - row);
        let mut cells = allowed & free & !(left | right);
        if row == self.bound2 {
            // No row below may use the outer columns: if they are free, this is their last chance.
            let outer = free & (1 | 1 << last_line(self.n));
            match outer.count_ones() {
                0 => {}
                1 => cells &= outer,
                _ => return Ok(()),
            }
        }
        for column in columns_of(cells) {
            let bit = 1 << column;
            self.queens[usize::from(row)] = column;
            self.descend(at + 1, (left | bit) << gap, (right | bit) >> gap, free ^ bit)?;
        }
        Ok(())
    }

    /// Counts the solution, unless a rotation of it comes first.
    fn test(&mut self) {
        let quarter = rotated(self.n, &self.queens);
        let half = rotated(self.n, &quarter);
        let three_quarter = rotated(self.n, &half);
        if [quarter, half, three_quarter].iter().any(|turned| *turned < self.queens) {
            return;
        }
        let Counts { count2, count4, count8, .. } = &mut self.counts;
        let count = match self.queens {
            same if same == quarter => count2,
            same if same == half => count4,
            _ => count8,
        };
        *count += 1;
    }
}

/// The quarter turn of a solution; what lies beyond row N-1 is 0 in both.
fn rotated(n: BoardSize, queens: &[u8; 32]) -> [u8; 32] {
    let last = last_line(n);
    let mut turned = [0; 32];
    for row in n.lines() {
        turned[usize::from(queens[usize::from(row)])] = last - row;
    }
    turned
}
