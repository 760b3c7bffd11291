//! A mask a row, a look ahead, and no guessing by the processor: as fast as plain code gets.
//!
//! A recursive search spends most of its time on branches that nobody can predict: is this child worth a visit?
//! So boards are searched in blocks: all boards of a block have the same open rows, their children are written
//! one after the other into the block of the next level, and a child that leads nowhere is simply overwritten by
//! the next one. A level whose block is full, or has no more boards to come, is searched before its parent goes
//! on, so the search stays depth first and small.

use std::hint;

use super::{Control, Engine, Meter, Stopped, Tally};
use crate::board::take_lowest;
use crate::subproblem::Subproblem;

/// Boards a block: enough to make up for the start of a loop, few enough that all levels stay in the cache.
const BLOCK: usize = 512;

/// The engine with its blocks, one a level, the last level first.
///
/// A child is left out when one of the rows after its first has no cell left (two rows are looked at, near the
/// end all), or a free column has none (near the end; earlier, a column that no later row allows must be taken at
/// once). States are the partial boards that passed.
#[derive(Default)]
pub(super) struct Scalar {
    blocks: Vec<BoardBlock>,
}

type BoardBlock = [PartialBoard; BLOCK];

impl Engine for Scalar {
    fn count(&mut self, problem: &Subproblem, control: &Control) -> Result<Tally, Stopped> {
        let rows = rows(problem);
        if self.blocks.len() < rows.len() {
            self.blocks.resize(rows.len(), [PartialBoard::default(); BLOCK]);
        }
        let cells = rows.first().map_or(0, |first| first.allowed);
        let start = PartialBoard { left: 0, right: 0, free: problem.free(), cells };
        let mut search = Search { meter: Meter::new(control), completions: 0 };
        if rows.iter().all(|row| row.allowed != 0) {
            search.visit(&rows, &[start], &mut self.blocks)?;
        }
        Ok(Tally { completions: search.completions, states: search.meter.finish()? })
    }
}

/// An open row.
#[derive(Clone, Copy)]
struct Row {
    allowed: u32,
    /// Columns that no row below allows.
    last_chance: u32,
    /// Rows down to the next open row.
    gap: u8,
}

fn rows(problem: &Subproblem) -> Vec<Row> {
    let open = problem.rows();
    let below = |at: usize| open[at + 1..].iter().fold(0, |columns, row| columns | row.allowed);
    let row = |at: usize| Row {
        allowed: open[at].allowed,
        last_chance: problem.free() & !below(at),
        gap: open.get(at + 1).map_or(0, |below| below.row - open[at].row),
    };
    (0..open.len()).map(row).collect()
}

/// A partial board, seen from its first open row.
#[derive(Clone, Copy, Default)]
struct PartialBoard {
    /// Columns attacked along the diagonals that move to higher columns row by row.
    left: u32,
    /// The same for those that move to lower columns.
    right: u32,
    /// Columns without a queen.
    free: u32,
    /// Where the row's queen may stand; never empty.
    cells: u32,
}

impl PartialBoard {
    /// The board after a queen on column `bit`, seen from `gap` rows below, where `allowed` applies.
    #[inline]
    fn child(&self, bit: u32, gap: u8, allowed: u32) -> Self {
        let (left, right) = ((self.left | bit) << gap, (self.right | bit) >> gap);
        let free = self.free ^ bit;
        Self { left, right, free, cells: allowed & free & !(left | right) }
    }

    /// Cells left in a row `gap` rows below.
    #[inline]
    fn cells_below(&self, gap: u8, allowed: u32) -> u32 {
        allowed & self.free & !(self.left << gap | self.right >> gap)
    }
}

struct Search<'a> {
    meter: Meter<'a>,
    completions: u64,
}

impl Search<'_> {
    /// Searches the boards of a block, which have these rows open.
    fn visit(
        &mut self,
        rows: &[Row],
        boards: &[PartialBoard],
        blocks: &mut [BoardBlock],
    ) -> Result<(), Stopped> {
        self.meter.add(boards.len() as u64)?;
        match rows.len() {
            0 => self.completions += boards.len() as u64,
            1 => self.completions += boards.iter().map(|b| u64::from(b.cells != 0)).sum::<u64>(),
            2 => return self.expand::<0, true>(rows, boards, blocks),
            3 => self.last_three(rows, boards),
            4 => return self.expand::<2, true>(rows, boards, blocks),
            5 => return self.expand::<3, true>(rows, boards, blocks),
            6 => return self.expand::<4, true>(rows, boards, blocks),
            _ => return self.expand::<2, false>(rows, boards, blocks),
        }
        Ok(())
    }

    /// Makes the boards with one queen more and searches them. `AHEAD` rows after the child's first are looked
    /// at; with `ALL` these are all there are, and columns are looked at too.
    fn expand<const AHEAD: usize, const ALL: bool>(
        &mut self,
        rows: &[Row],
        boards: &[PartialBoard],
        blocks: &mut [BoardBlock],
    ) -> Result<(), Stopped> {
        let (row, below) = rows.split_first().expect("a row to fill");
        let (next, after) = below.split_first().expect("a row for the child");
        let ahead = after.first_chunk::<AHEAD>().expect("rows to look at");
        let (block, blocks) = blocks.split_first_mut().expect("a block a row");
        let (mut at, mut len) = (0, 0);
        let mut cells = boards[0].cells;
        // One round a child, whichever board it is of: the one branch in here is that of a full block.
        while at < boards.len() {
            let bit = cells & cells.wrapping_neg();
            let mut child = boards[at].child(bit, row.gap, next.allowed);
            let (mut alive, mut gap, mut later) = (true, next.gap, 0);
            for row in ahead {
                let cells = child.cells_below(gap, row.allowed);
                alive &= cells != 0;
                later |= cells;
                gap += row.gap;
            }
            // Columns that the child's first row must take, for want of a later row.
            let must = child.free & if ALL { !later } else { next.last_chance };
            child.cells &= if must == 0 { u32::MAX } else { must };
            alive &= child.cells != 0 && must & must.wrapping_sub(1) == 0;
            block[len] = child;
            len += usize::from(alive);
            if len == BLOCK {
                self.visit(below, block, blocks)?;
                len = 0;
            }
            cells ^= bit;
            at += usize::from(cells == 0);
            let fresh = boards.get(at).map_or(0, |board| board.cells);
            cells = hint::select_unpredictable(cells == 0, fresh, cells);
        }
        if len > 0 { self.visit(below, &block[..len], blocks) } else { Ok(()) }
    }

    /// Three rows and three columns: a queen in the first leaves two ways to fill the others.
    fn last_three(&mut self, rows: &[Row], boards: &[PartialBoard]) {
        let &[first, second, third] = rows else { unreachable!("three rows") };
        for board in boards {
            let mut cells = board.cells;
            while let Some(bit) = take_lowest(&mut cells) {
                let two = board.child(bit, first.gap, second.allowed);
                let low = two.free & two.free.wrapping_neg();
                for bit in [low, two.free ^ low] {
                    let one = two.child(bit, second.gap, third.allowed);
                    self.completions += u64::from(two.cells & bit != 0) & u64::from(one.cells != 0);
                }
            }
        }
    }
}
