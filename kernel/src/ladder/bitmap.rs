//! Rung 4, bitmaps: a whole row in one machine word.
//!
//! The flags of the rung before, packed into bits and looked at from the row in question: bit `c` of three words
//! says whether column `c` is attacked straight from above, along a rising or along a falling diagonal. One row
//! further down, a diagonal has moved by one column, and so have all of them at once: the words are shifted by
//! one, left or right. Then
//!
//! * `!(columns | rising | falling)` is all the free cells of the row, found together instead of one by one;
//! * `free & -free` is the lowest of them, so that only free cells are ever visited;
//! * nothing is undone on the way up, because each row keeps its own three words.
//!
//! The tree is still that of backtracking, yet the search is many times as fast. Every fast program since has
//! this loop at its heart. (Martin Richards, *Backtracking Algorithms in MCPL using Bit Patterns and Recursion*,
//! 1997; Zongyan Qiu, *Bit-vector encoding of n-queen problem*, 2002.)
//!
//! The rungs above this one do not search differently, they search less: they leave cells out. So the search
//! takes a [`Rule`] that tells which cells of a row it may use; here, all of them.
//!
//! The loop keeps its stack in a list of rows, so that solutions are found one at a time.

use std::iter;

use crate::board::{BoardSize, take_lowest};
use crate::solution::Solution;

/// Which cells the search may use in a row, as a bitmap: given the row and the bitmap of the columns that hold a
/// queen above it.
pub(super) trait Rule: Fn(usize, u32) -> u32 {}
impl<F: Fn(usize, u32) -> u32> Rule for F {}

pub(super) fn search(n: BoardSize, visit: &mut dyn FnMut(&[u8])) -> u64 {
    search_by(every_cell(n), n, visit)
}

pub(super) fn solutions(n: BoardSize) -> impl Iterator<Item = Solution> {
    solutions_by(every_cell(n), n)
}

fn every_cell(n: BoardSize) -> impl Rule {
    move |_, _| n.full()
}

/// What the queens above attack in one row: bit `c` is column `c`.
#[derive(Clone, Copy, Default)]
struct RowAttacks {
    columns: u32,
    /// Diagonals that move one column up a row.
    rising: u32,
    /// Diagonals that move one column down a row.
    falling: u32,
}

impl RowAttacks {
    /// The same seen from the next row, with a queen on `bit` of this one.
    fn below(self, bit: u32) -> Self {
        Self {
            columns: self.columns | bit,
            rising: (self.rising | bit) << 1,
            falling: (self.falling | bit) >> 1,
        }
    }

    fn free(self, allowed: u32) -> u32 {
        allowed & !(self.columns | self.rising | self.falling)
    }
}

fn column_of(bit: u32) -> u8 {
    u8::try_from(bit.trailing_zeros()).expect("below 32")
}

/// The search among the cells that `rule` allows.
pub(super) fn search_by(rule: impl Rule, n: BoardSize, visit: &mut dyn FnMut(&[u8])) -> u64 {
    Search { rule, queens: vec![0; n.index()], states: 0, visit }.run()
}

struct Search<'a, R> {
    rule: R,
    queens: Vec<u8>,
    states: u64,
    visit: &'a mut dyn FnMut(&[u8]),
}

impl<R: Rule> Search<'_, R> {
    fn run(mut self) -> u64 {
        self.descend(0, RowAttacks::default());
        self.states
    }

    fn descend(&mut self, row: usize, attacked: RowAttacks) {
        if row == self.queens.len() {
            return (self.visit)(&self.queens);
        }
        let mut free = attacked.free((self.rule)(row, attacked.columns));
        while let Some(bit) = take_lowest(&mut free) {
            self.queens[row] = column_of(bit);
            self.states += 1;
            self.descend(row + 1, attacked.below(bit));
        }
    }
}

/// The same search as a loop.
pub(super) fn solutions_by(rule: impl Rule, n: BoardSize) -> impl Iterator<Item = Solution> {
    let mut queens = vec![0; n.index()];
    // One level for each row from the top to the one that was reached.
    let mut levels = Vec::with_capacity(n.index());
    levels.push(Level::new(RowAttacks::default(), rule(0, 0)));
    iter::from_fn(move || {
        loop {
            let row = levels.len().checked_sub(1)?;
            let Level { attacked, ref mut free } = levels[row];
            let Some(bit) = take_lowest(free) else {
                levels.pop();
                continue;
            };
            queens[row] = column_of(bit);
            if levels.len() == queens.len() {
                return Some(Solution::found(n, &queens));
            }
            let attacked = attacked.below(bit);
            levels.push(Level::new(attacked, rule(row + 1, attacked.columns)));
        }
    })
}

/// A row of the search: what is attacked there, and the free cells not yet tried.
struct Level {
    attacked: RowAttacks,
    free: u32,
}

impl Level {
    fn new(attacked: RowAttacks, allowed: u32) -> Self {
        Self { attacked, free: attacked.free(allowed) }
    }
}
