//! Border configurations with a rotational symmetry: how their solutions are counted, and how that is split.

use crate::board::columns_of;
use crate::counts::Counts;
use crate::engine::{Control, Meter, Stopped, Tally};
use crate::rows::last_line;
use crate::subproblem::Subproblem;
use crate::unit::{Unit, UnitTally};

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

    /// What is left to fill.
    pub(super) fn board(&self) -> &Subproblem {
        &self.board
    }

    /// Whether the first open row differs from its own mirror row, so that a queen there can lead.
    pub(crate) fn can_split(board: &Subproblem) -> bool {
        board.rows().first().is_some_and(|open| open.row != last_line(board.n()) - open.row)
    }

    pub(super) fn split(self) -> Vec<Unit> {
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

    /// Sorts all completions of the board into orbits, by counting the symmetric ones.
    pub(crate) fn sort(&self, all: Tally, control: &Control) -> Result<UnitTally, Stopped> {
        let mut meter = Meter::new(control);
        let half_turn = self.invariant(&self.board, &[0, 2], &mut meter)?;
        let quarter_turn =
            if self.stabiliser == 4 { self.invariant(&self.board, &[0, 1, 2, 3], &mut meter)? } else { 0 };
        // Solutions that are among `all` but not among the more symmetric ones, in groups of so many.
        let groups = |all: u64, symmetric: u64, members: u64| {
            let others = all.checked_sub(symmetric).expect("symmetric solutions are among all");
            assert!(others.is_multiple_of(members), "{others} solutions make no groups of {members}");
            others / members
        };
        let counts = Counts {
            count2: quarter_turn,
            count4: groups(half_turn, quarter_turn, u64::from(self.stabiliser) / 2),
            count8: groups(all.completions, half_turn, self.stabiliser.into()),
            solutions: 0,
        };
        Ok(UnitTally { counts, states: all.states + meter.finish()? })
    }

    /// Completions of `board` that each of these turns maps to themselves.
    fn invariant(&self, board: &Subproblem, turns: &[u8], meter: &mut Meter<'_>) -> Result<u64, Stopped> {
        meter.add(1)?;
        meter.ask()?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::BoardSize;

    #[test]
    fn a_stop_is_noticed_at_the_first_state() {
        let symmetric = Symmetric::new(Subproblem::empty(BoardSize::new(8).unwrap()), 4);
        let control = Control::default();
        control.stop();
        let found = symmetric.invariant(&symmetric.board, &[0, 2], &mut Meter::new(&control));
        assert_eq!(found, Err(Stopped));
    }
}
