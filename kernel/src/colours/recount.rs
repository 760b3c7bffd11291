//! The same numbers by an independent search: the solutions of a row set found one by one.
//!
//! A row set says for every row whether its queen stands on a white or on a black cell, so it is a board with a mask
//! of allowed columns for each row. The search places one queen after the other, keeps the columns of the white ones,
//! and weighs each solution when it is complete. It shares nothing with the multiplication but the numbering of the
//! orbits and their weights.

use std::ops::Range;

use super::{ColourTally, RowSets};
use crate::board::{BoardSize, take_lowest};
use crate::engine::{Control, Meter, Stopped};
use crate::estimate;
use crate::random::Random;
use crate::subproblem::{OpenRow, Subproblem};

/// Some of the solutions of an orbit: small enough to be found one by one on boards whose row sets are not.
///
/// Of the columns `given`, those in `columns` have their queens on white cells and the others on black ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The orbit.
    pub number: u64,
    /// Columns whose colour is given: none, the even ones or all.
    pub given: u32,
    /// Those of them that have white queens; bit c is column c.
    pub columns: u32,
}

impl Part {
    /// All solutions of an orbit.
    pub fn whole(number: u64) -> Self {
        Self { number, given: 0, columns: 0 }
    }

    /// A part of one of these orbits, drawn at random, that the search is guessed to visit no more than `states_max` states
    /// for, if there is one: with no columns given, the even ones or all.
    pub fn draw(sets: &RowSets, range: &Range<u64>, states_max: u64, random: &mut Random) -> Self {
        let number = range.start + random.below(range.end - range.start);
        let (n, set) = (sets.n(), sets.get(number));
        // Column sets that count for other row sets would prove nothing. Of the rows' own set and its mirror image one always
        // counts.
        let own = [set.rows, set.rows.reverse_bits() >> (u32::BITS - n.get())];
        let mut drawn = (0..DRAWS).map(|_| same_parities(n, set.rows, random)).chain(own);
        let columns = drawn.find(|&columns| set.columns_weight(columns) > 0);
        let columns = columns.unwrap_or(set.rows);
        let part = |given| Self { number, given, columns: columns & given };
        let mut larger = [0, EVEN & n.full()].into_iter().map(part);
        let affordable = larger.find(|part| part.states_estimate(sets) <= states_max);
        affordable.unwrap_or_else(|| part(n.full()))
    }

    /// The board whose completions are the solutions of this part, without their weights.
    fn board(self, sets: &RowSets) -> Subproblem {
        let (n, rows) = (sets.n(), sets.get(self.number).rows);
        // Columns where queens of the colour (black, white) are possible.
        let possible = [self.given & self.columns, self.given & !self.columns].map(|taken| n.full() & !taken);
        let open = |row: u8| {
            let white = rows >> row & 1;
            // On even rows white cells are those of even columns.
            let cells = if (white == 1) == row.is_multiple_of(2) { EVEN } else { !EVEN };
            OpenRow { row, allowed: cells & possible[white as usize] }
        };
        let rows: Vec<_> = n.lines().map(open).collect();
        Subproblem::new(n, n.full(), &rows).expect("as many rows as columns")
    }

    /// A guess at the states of the search, mostly too large: up to N = 20 twice, with given columns up to 30 times.
    fn states_estimate(self, sets: &RowSets) -> u64 {
        estimate::states(&self.board(sets))
    }
}

/// Column sets drawn for one part, before the rows' own set is taken.
const DRAWS: usize = 256;

/// Even lines of any board.
const EVEN: u32 = 0x5555_5555;

/// A random set of lines with as many even and odd members as `lines` has.
fn same_parities(n: BoardSize, lines: u32, random: &mut Random) -> u32 {
    [EVEN, !EVEN].into_iter().fold(0, |drawn, parity| {
        let mut left: Vec<u32> = n.lines().map(|line| 1 << line).filter(|line| line & parity != 0).collect();
        (0..(lines & parity).count_ones())
            .fold(drawn, |drawn, _| drawn | left.swap_remove(random.index(left.len())))
    })
}

/// Recounts orbits without multiplying anything: what [`Multiplier::count_each`](super::Multiplier::count_each) must give
/// for them, weights included. The states are those that the search visits. `found` gets the number of each orbit and its
/// solutions, weighted.
pub fn recount_each(
    sets: &RowSets,
    range: Range<u64>,
    found: &mut dyn FnMut(u64, u64),
    control: &Control,
) -> Result<ColourTally, Stopped> {
    let mut sum = ColourTally::default();
    for number in range {
        let orbit = recount_part(sets, Part::whole(number), control)?;
        sum.states += orbit.states;
        sum.weighted_solutions = sum
            .weighted_solutions
            .checked_add(orbit.weighted_solutions)
            .expect("a range of orbits has fewer than 2^64 solutions");
        found(number, orbit.weighted_solutions);
    }
    Ok(sum)
}

/// Recounts a part of an orbit, weights included.
pub fn recount_part(sets: &RowSets, part: Part, control: &Control) -> Result<ColourTally, Stopped> {
    let set = sets.get(part.number);
    let mut weighted: u64 = 0;
    let found = |columns| weighted += u64::from(set.columns_weight(columns));
    let states = Search::new(&part.board(sets), set.rows, control, found).run()?;
    Ok(ColourTally { weighted_solutions: weighted * u64::from(set.weight), states })
}

/// A guess at the states that [`recount_each`] visits, from a few of the orbits.
pub fn recount_states(sets: &RowSets, range: &Range<u64>) -> u64 {
    const LOOKED_AT: u64 = 8;
    let orbits = range.end - range.start;
    let looked_at = orbits.min(LOOKED_AT);
    let some = (0..looked_at).map(|at| range.start + at * orbits / looked_at);
    let states: u128 = some.map(|number| u128::from(Part::whole(number).states_estimate(sets))).sum();
    u64::try_from(states * u128::from(orbits) / u128::from(looked_at)).unwrap_or(u64::MAX)
}

/// Plain depth-first search, a row after the other.
///
/// Rows that stand in even columns come before those in odd ones, and of each the central ones first: that takes a
/// quarter of the states that the natural order does (N = 18).
struct Search<'a, F> {
    n: BoardSize,
    rows: Vec<Row>,
    /// Called for every solution with the columns whose queens stand on white cells.
    found: F,
    meter: Meter<'a>,
}

#[derive(Clone, Copy)]
struct Row {
    number: u8,
    allowed: u32,
    /// All bits, or none if its queen stands on a black cell.
    white: u32,
}

/// Columns and diagonals that have a queen: bit c - r + N - 1 of `falling` and bit c + r of `rising` are those of row r
/// and column c.
#[derive(Clone, Copy, Default)]
struct Taken {
    columns: u32,
    falling: u64,
    rising: u64,
}

impl<'a, F: FnMut(u32)> Search<'a, F> {
    fn new(board: &Subproblem, white_rows: u32, control: &'a Control, found: F) -> Self {
        let row = |open: &OpenRow| Row {
            number: open.row,
            allowed: open.allowed,
            white: 0_u32.wrapping_sub(white_rows >> open.row & 1),
        };
        let (n, mut rows) = (board.n(), board.rows().iter().map(row).collect::<Vec<_>>());
        let last = n.get() - 1;
        rows.sort_by_key(|row| (row.allowed & EVEN == 0, (2 * u32::from(row.number)).abs_diff(last)));
        Self { n, rows, found, meter: Meter::new(control) }
    }

    /// Finds all solutions and tells how many states there were on the way.
    fn run(mut self) -> Result<u64, Stopped> {
        self.place(0, Taken::default(), 0)?;
        self.meter.finish()
    }

    fn place(&mut self, at: usize, taken: Taken, white_columns: u32) -> Result<(), Stopped> {
        let Some(Row { number, allowed, white }) = self.rows.get(at).copied() else {
            (self.found)(white_columns);
            return Ok(());
        };
        let (falling, rising) = (self.n.get() - 1 - u32::from(number), u32::from(number));
        #[expect(clippy::cast_possible_truncation, reason = "columns of this row")]
        let attacked = (taken.falling >> falling | taken.rising >> rising) as u32;
        let mut free = allowed & !(taken.columns | attacked);
        self.meter.add(free.count_ones().into())?;
        while let Some(queen) = take_lowest(&mut free) {
            let next = Taken {
                columns: taken.columns | queen,
                falling: taken.falling | u64::from(queen) << falling,
                rising: taken.rising | u64::from(queen) << rising,
            };
            self.place(at + 1, next, white_columns | queen & white)?;
        }
        Ok(())
    }
}
