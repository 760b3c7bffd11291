//! The same numbers by an independent search: the solutions of a column set counted row by row.

use std::ops::Range;

use super::JoinTally;
use super::geometry::{Criterion, Geometry};
use super::orbits::{ColumnSet, Kind, Orbits};
use crate::board::columns_of;
use crate::engine::{Stopped, Tally};
use crate::subproblem::{OpenRow, Subproblem};

/// Recounts orbits without joining anything: what [`Join::count`](super::Join::count) must give for them, weights
/// included. The states are those that `count` visits, which gives the completions of a board.
///
/// The rows' masks are the column set above and its complement below. The symmetry criterion becomes masks too:
/// for each pair of queens next to the middle line it forbids the middle columns in rows near the centre, and
/// where ties count half as much as other solutions these are counted once with and once without the ties.
///
/// `found` gets the number of each orbit and its solutions, weighted.
pub fn recount(
    orbits: &Orbits,
    range: Range<u64>,
    found: &mut dyn FnMut(u64, u64),
    mut count: impl FnMut(Subproblem) -> Result<Tally, Stopped>,
) -> Result<JoinTally, Stopped> {
    let geometry = Geometry::new(orbits.n());
    let (mut weighted_solutions, mut states) = (0u64, 0);
    let few = "a range of orbits has fewer than 2^64 solutions";
    for number in range {
        let (set, mut completions) = (orbits.get(number), 0u64);
        for problem in subproblems(&geometry, set) {
            let tally = count(problem)?;
            states += tally.states;
            completions = completions.checked_add(tally.completions).expect(few);
        }
        let weighted = completions.checked_mul(set.weight.into()).expect(few);
        weighted_solutions = weighted_solutions.checked_add(weighted).expect(few);
        found(number, weighted);
    }
    Ok(JoinTally { weighted_solutions, states })
}

/// The partial boards whose completions, taken together, a column set stands for.
pub(super) fn subproblems(geometry: &Geometry, set: ColumnSet) -> Vec<Subproblem> {
    let n = geometry.board();
    let columns = [set.columns, n.full() & !set.columns];
    let upper = u8::try_from(geometry.rows[0]).expect("at most 15");
    let open = |row| OpenRow { row, allowed: columns[usize::from(row >= upper)] };
    let rows: Vec<OpenRow> = n.lines().map(open).collect();
    let board = Subproblem::new(n, n.full(), &rows).expect("as many rows as columns");
    let [above, below] = geometry.first_queens(columns, set.kind);
    let mut problems = Vec::new();
    for first in columns_of(above) {
        let Some(placed) = board.place(upper - 1, first) else { continue };
        for second in columns_of(below) {
            let Some(placed) = placed.place(upper, second) else { continue };
            let Criterion { early, tie } = geometry.criterion(set.kind, first.into(), second.into());
            problems.extend(
                [Some(early), tie]
                    .into_iter()
                    .flatten()
                    .map(|j| without_early(placed.clone(), upper, set.kind, j)),
            );
        }
    }
    problems
}

/// Forbids the middle columns in the rows below `j` of both halves, for odd N of the upper half.
fn without_early(board: Subproblem, upper: u8, kind: Kind, j: u32) -> Subproblem {
    let middle = 1 << (board.n().get() / 2);
    (0..u8::try_from(j).expect("at most 15")).fold(board, |board, row| match kind {
        Kind::Even => {
            board.forbid(upper - 1 - row, middle | middle >> 1).forbid(upper + row, middle | middle >> 1)
        }
        Kind::EmptyCentre => board.forbid(upper - 1 - row, middle),
        Kind::CentreQueen => board,
    })
}
