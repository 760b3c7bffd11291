//! The independent pieces of a job, each counted by one thread.

use crate::board::{BoardSize, columns_of, take_lowest};
use crate::counts::Counts;
use crate::engine::{Control, Engine, Meter, Stopped};
use crate::estimate;
use crate::rows::{bound2, last_line};
use crate::subproblem::Subproblem;

/// A piece of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Every completion is an orbit of 8 of its own.
    Count(Subproblem),
    /// Solutions of an edge class, tested one by one.
    Leaves(Leaves),
    /// Solutions of a border configuration that rotations map to itself.
    Symmetric(Symmetric),
}

/// What counting a unit gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitTally {
    /// Orbits found.
    pub counts: Counts,
    /// Partial boards visited on the way.
    pub states: u64,
}

impl Unit {
    /// Counts the unit's orbits; exactly, or not at all when stopped.
    pub fn solve(&self, engine: &mut dyn Engine, control: &Control) -> Result<UnitTally, Stopped> {
        match self {
            Self::Count(board) => {
                let tally = engine.count(board, control)?;
                Ok(UnitTally { counts: Counts::only8(tally.completions), states: tally.states })
            }
            Self::Leaves(leaves) => leaves.solve(control),
            Self::Symmetric(symmetric) => symmetric.solve(engine, control),
        }
    }

    /// Smaller units with the same orbits, none if there are no orbits; the unit alone where it has no open row
    /// to split by.
    #[must_use]
    pub fn split(self) -> Vec<Self> {
        match self {
            Self::Count(board) => board.children().into_iter().map(Self::Count).collect(),
            Self::Leaves(leaves) => leaves.split().into_iter().map(Self::Leaves).collect(),
            Self::Symmetric(symmetric) => symmetric.split(),
        }
    }

    /// A guess at the states that the reference search visits.
    pub fn states_estimate(&self) -> u64 {
        estimate::states(match self {
            Self::Count(board) => board,
            Self::Leaves(leaves) => &leaves.board,
            Self::Symmetric(symmetric) => &symmetric.board,
        })
    }
}

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

    pub(crate) fn into_board(self) -> Subproblem {
        self.board
    }

    fn split(self) -> Vec<Self> {
        match self.board.rows().first() {
            None => vec![self],
            Some(first) => {
                columns_of(first.allowed).filter_map(|column| self.with_queen(first.row, column)).collect()
            }
        }
    }

    fn solve(&self, control: &Control) -> Result<UnitTally, Stopped> {
        let n = self.board.n();
        let mut search = LeafSearch {
            n,
            bound2: bound2(n, self.bound1),
            sides: 1 | 1 << last_line(n),
            queens: self.queens,
            counts: Counts::ZERO,
            meter: Meter::new(control),
        };
        search.descend(0, 0, 0, self.board.free(), &self.board)?;
        Ok(UnitTally { counts: search.counts, states: search.meter.finish()? })
    }
}

/// The classic symmetry search.
struct LeafSearch<'a> {
    n: BoardSize,
    bound2: u8,
    sides: u32,
    queens: [u8; 32],
    counts: Counts,
    meter: Meter<'a>,
}

impl LeafSearch<'_> {
    fn descend(
        &mut self,
        at: usize,
        left: u32,
        right: u32,
        free: u32,
        board: &Subproblem,
    ) -> Result<(), Stopped> {
        self.meter.add(1)?;
        let Some(open) = board.rows().get(at) else {
            self.test();
            return Ok(());
        };
        let gap = board.rows().get(at + 1).map_or(0, |next| next.row - open.row);
        let mut cells = open.allowed & free & !(left | right);
        if open.row == self.bound2 {
            // No row below may use the outer columns: those that are free must be taken here.
            match (free & self.sides).count_ones() {
                0 => {}
                1 => cells &= self.sides,
                _ => return Ok(()),
            }
        }
        while let Some(bit) = take_lowest(&mut cells) {
            self.queens[usize::from(open.row)] = bit.trailing_zeros() as u8;
            self.descend(at + 1, (left | bit) << gap, (right | bit) >> gap, free ^ bit, board)?;
        }
        Ok(())
    }

    /// Counts the solution, unless a rotation of it comes first.
    fn test(&mut self) {
        let solution = &self.queens[..self.n.index()];
        let quarter = rotated(self.n, &self.queens);
        let half = rotated(self.n, &quarter);
        let three_quarter = rotated(self.n, &half);
        let [quarter, half, three_quarter] =
            [&quarter, &half, &three_quarter].map(|turned| solution.cmp(&turned[..self.n.index()]));
        if quarter.is_gt() || half.is_gt() || three_quarter.is_gt() {
            return;
        }
        let count = if quarter.is_eq() {
            &mut self.counts.count2
        } else if half.is_eq() {
            &mut self.counts.count4
        } else {
            &mut self.counts.count8
        };
        *count += 1;
    }
}

/// The quarter turn of a solution.
fn rotated(n: BoardSize, queens: &[u8; 32]) -> [u8; 32] {
    let last = last_line(n);
    let mut turned = [0; 32];
    for row in n.lines() {
        turned[usize::from(queens[usize::from(row)])] = last - row;
    }
    turned
}

/// A board that rotations map to itself: its solutions come in groups, and those that are symmetric themselves
/// are counted apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symmetric {
    board: Subproblem,
    /// Rotations that map the board to itself: 2 or 4.
    stabiliser: u8,
}

impl Symmetric {
    pub(crate) fn new(board: Subproblem, stabiliser: u8) -> Self {
        assert!(stabiliser == 2 || stabiliser == 4, "a symmetric board has 2 or 4 rotations");
        Self { board, stabiliser }
    }

    /// Whether the first open row differs from its own mirror row, so that a queen there can lead.
    pub(crate) fn can_split(board: &Subproblem) -> bool {
        board.rows().first().is_some_and(|open| open.row != last_line(board.n()) - open.row)
    }

    fn split(self) -> Vec<Unit> {
        if !Self::can_split(&self.board) {
            return vec![Unit::Symmetric(self)];
        }
        columns_of(self.board.rows()[0].allowed).flat_map(|leader| self.parts(leader)).collect()
    }

    /// The cell that `turns` quarter turns bring to (row, column).
    fn cell(&self, turns: u8, row: u8, column: u8) -> (u8, u8) {
        let last = last_line(self.board.n());
        (0..turns).fold((row, column), |(row, column), _| (last - column, row))
    }

    /// The quarter turns that map the board to itself.
    fn turns(&self) -> &'static [u8] {
        if self.stabiliser == 4 { &[0, 1, 2, 3] } else { &[0, 2] }
    }

    /// The part of the solutions whose least value is `leader`, the values being the columns of the queen in the
    /// first open row of the solution and of its rotations that keep the board.
    ///
    /// Which of the values are the least ones is a pattern; patterns that rotate into one another have the same
    /// orbits, so one of each is counted. A pattern that no rotation keeps leaves solutions without symmetry,
    /// each an orbit of its own; the others are symmetric boards again.
    pub(crate) fn parts(&self, leader: u8) -> Vec<Unit> {
        let patterns: &[(&[u8], u8)] = if self.stabiliser == 4 {
            &[(&[0], 1), (&[0, 1], 1), (&[0, 2], 2), (&[0, 1, 2], 1), (&[0, 1, 2, 3], 4)]
        } else {
            &[(&[0], 1), (&[0, 2], 2)]
        };
        let part = |&(least, stabiliser): &(&[u8], u8)| {
            let board = self.pattern(leader, least)?;
            Some(if stabiliser == 1 {
                Unit::Count(board)
            } else {
                Unit::Symmetric(Self { board, stabiliser })
            })
        };
        patterns.iter().filter_map(part).collect()
    }

    /// The board where exactly the values at the turns `least` are `leader`, and the others are larger.
    fn pattern(&self, leader: u8, least: &[u8]) -> Option<Subproblem> {
        let row = self.board.rows()[0].row;
        let larger = self.turns().iter().filter(|turns| !least.contains(turns));
        let smaller_cells = larger.flat_map(|&turns| (0..=leader).map(move |column| (turns, column)));
        let board = smaller_cells.fold(self.board.clone(), |board, (turns, column)| {
            let (row, column) = self.cell(turns, row, column);
            board.forbid(row, 1 << column)
        });
        least.iter().try_fold(board, |board, &turns| {
            let (row, column) = self.cell(turns, row, leader);
            board.place(row, column)
        })
    }

    fn solve(&self, engine: &mut dyn Engine, control: &Control) -> Result<UnitTally, Stopped> {
        let all = engine.count(&self.board, control)?;
        let mut meter = Meter::new(control);
        let half_turn = self.invariant(&self.board, &[0, 2], &mut meter)?;
        let quarter_turn =
            if self.stabiliser == 4 { self.invariant(&self.board, &[0, 1, 2, 3], &mut meter)? } else { 0 };
        let exact = |sum: u64, members: u64| {
            assert!(sum.is_multiple_of(members), "{sum} solutions make no groups of {members}");
            sum / members
        };
        let count8 = exact(all.completions - half_turn, self.stabiliser.into());
        let counts = if self.stabiliser == 4 {
            Counts { count2: quarter_turn, count4: exact(half_turn - quarter_turn, 2), count8 }
        } else {
            Counts { count2: 0, count4: half_turn, count8 }
        };
        Ok(UnitTally { counts, states: all.states + meter.finish()? })
    }

    /// Completions of `board` that each of these turns maps to themselves.
    fn invariant(&self, board: &Subproblem, turns: &[u8], meter: &mut Meter<'_>) -> Result<u64, Stopped> {
        meter.add(1)?;
        let Some(first) = board.rows().first() else { return Ok(1) };
        let mut completions = 0;
        for column in columns_of(first.allowed) {
            let mut cells: Vec<_> = turns.iter().map(|&turns| self.cell(turns, first.row, column)).collect();
            cells.sort_unstable();
            cells.dedup();
            if let Some(board) =
                cells.iter().try_fold(board.clone(), |b, &(row, column)| b.place(row, column))
            {
                completions += self.invariant(&board, turns, meter)?;
            }
        }
        Ok(completions)
    }
}
