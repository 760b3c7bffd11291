//! The half-board join: all solutions of a board as the fitting pairs of an upper and a lower half.
//!
//! The upper half's queens use some set of columns, the lower half's the others. For one such set all placements of
//! both halves are listed, each as a mask of the diagonals that it occupies in the other half's reach, and the pairs
//! of disjoint masks are counted, hundreds of them at once. Column sets that are images of each other give the same
//! number, so one of each [orbit](Orbits) is joined; the quarter turn, which does not map halves to halves, is used
//! by a criterion (`geometry.rs`) on the queens of the middle rows and columns.
//!
//! `docs/halves.md` has the method, its measurements and what did not pay.

mod generate;
mod geometry;
mod grouped;
mod leaf;
mod operations;
mod oracle;
mod orbits;
mod outer;
mod pairs;
mod progress;
mod runs;
mod shared;
mod split;
#[cfg(test)]
mod tests;
mod windows;

use std::ops::Range;

pub use oracle::recount;
pub use orbits::{ColumnSet, Kind, Orbits};
pub use shared::SharedTables;

use crate::board::{BoardSize, columns_of};
use crate::engine::{Control, Stopped};
use crate::isa::Isa;
use generate::{Generator, Lists, Wanted};
use geometry::Geometry;
use operations::Operations;
use outer::Outer;
use pairs::Pairs;
use progress::JoinProgress;
use split::{Thresholds, Tools};

/// What all joins of one board size share, read-only: the orbits and the tables of outer rows.
#[derive(Debug)]
pub struct Tables {
    orbits: Orbits,
    geometry: Geometry,
    /// The upper half's table and, if it is another one, the lower half's.
    outer: Vec<Outer>,
    layout: Layout,
}

/// How the lists of half boards are laid out.
#[derive(Clone, Copy, Debug)]
struct Layout {
    /// Whether they are grouped by the row-1 queen; on small boards the groups would be too small for whole blocks.
    grouped: bool,
    /// In how many passes the lists of each row-0 queen are made, to save memory; 0 if one pass makes them all.
    passes: u32,
    /// Whether lists, if not grouped, have short masks: where all diagonals that matter fit them.
    short: bool,
}

impl Layout {
    fn new(n: usize) -> Self {
        let passes = match n {
            ..=22 => 0,
            23..=26 => 1,
            _ => 6,
        };
        Self { grouped: n >= 21, passes, short: n <= 19 }
    }

    /// The queens of row 0 and row 1 of the passes that make all lists with row-0 queens on `firsts`.
    fn passes(self, n: BoardSize, firsts: u32) -> impl Iterator<Item = [u32; 2]> {
        let seconds =
            move |pass| (pass..n.get()).step_by(self.passes.max(1) as usize).fold(0, |all, c| all | 1 << c);
        let single = columns_of(firsts).map(|column| 1 << column);
        let parts = single.flat_map(move |first| (0..self.passes).map(move |pass| [first, seconds(pass)]));
        let whole = std::iter::once([firsts, n.full()]).filter(move |_| self.passes == 0);
        whole.chain(parts)
    }
}

/// What joining a range of orbits gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JoinTally {
    /// Solutions, each orbit's counted with its weight; the sum over all orbits is the board's total.
    pub weighted_solutions: u64,
    /// Pairs of half boards compared: the measure of work.
    pub states: u64,
}

impl Tables {
    /// The tables for boards of `n`, in about `memory_max` bytes or less if that is possible: with less memory more
    /// rows are placed by search, which takes longer. `None` below [`Orbits::N_MIN`].
    pub fn new(n: BoardSize, memory_max: u64, control: &Control) -> Option<Result<Self, Stopped>> {
        let orbits = Orbits::new(n)?;
        let geometry = Geometry::new(n);
        let (rows, _) = Self::outer_rows(&geometry, memory_max);
        Some(Self::build(orbits, geometry, rows, control))
    }

    /// The number of outer rows that `memory_max` bytes are enough for, at least one, and about the bytes they need.
    fn outer_rows(geometry: &Geometry, memory_max: u64) -> (u32, u64) {
        let rows_max = u32::try_from(geometry.rows[0] - 2).expect("at most 15").min(OUTER_ROWS_MAX);
        let bytes = |rows| -> u64 {
            Outer::halves(geometry).map(|half| Outer::bytes_estimate(geometry, half, rows)).sum()
        };
        let mut sizes = (1..=rows_max).rev().map(|rows| (rows, bytes(rows)));
        sizes.find(|&(rows, bytes)| rows == 1 || bytes <= memory_max).expect("three rows a half, or more")
    }

    fn build(orbits: Orbits, geometry: Geometry, rows: u32, control: &Control) -> Result<Self, Stopped> {
        let table = |half| Outer::new(&geometry, half, rows, control);
        let outer = Outer::halves(&geometry).map(table).collect::<Result<_, _>>()?;
        let layout = Layout::new(geometry.n());
        Ok(Self { orbits, geometry, outer, layout })
    }

    /// The orbits that can be joined.
    pub fn orbits(&self) -> &Orbits {
        &self.orbits
    }

    /// Memory held, in bytes.
    pub fn bytes(&self) -> u64 {
        self.outer.iter().map(Outer::bytes).sum()
    }
}

/// Rows of the outer table, if board and memory have room.
const OUTER_ROWS_MAX: u32 = 6;

/// Counts orbit after orbit; one a thread. Keeps its buffers.
#[derive(Debug)]
pub struct Join {
    operations: Box<dyn Operations>,
    memory_max: u64,
    thresholds: Thresholds,
    generators: [Generator; 2],
    upper: Lists,
    lower: Vec<Lists>,
    pairs: Pairs,
}

impl Join {
    /// A join on instruction set `isa` that keeps the lists of half boards within about `memory_max` bytes, if
    /// that is possible: with less memory lists are made several times over. `None` if this machine can't run it.
    pub fn new(isa: Isa, memory_max: u64) -> Option<Self> {
        Some(Self {
            operations: isa.operations()?,
            memory_max,
            thresholds: Thresholds::default(),
            generators: [Generator::new(), Generator::new()],
            upper: Lists::new(),
            lower: Vec::new(),
            pairs: Pairs::new(),
        })
    }

    /// The instruction set in use.
    pub fn isa(&self) -> Isa {
        self.operations.isa()
    }

    /// Counts the solutions of the orbits `range`, each with its weight; exactly, or not at all when stopped.
    pub fn count(
        &mut self,
        tables: &Tables,
        range: Range<u64>,
        control: &Control,
    ) -> Result<JoinTally, Stopped> {
        self.count_each(tables, range, &mut |_, _| {}, control)
    }

    /// The same, and tells what each orbit has: `found` gets its number and its solutions, weighted.
    pub fn count_each(
        &mut self,
        tables: &Tables,
        range: Range<u64>,
        found: &mut dyn FnMut(u64, u64),
        control: &Control,
    ) -> Result<JoinTally, Stopped> {
        let mut progress = JoinProgress::new(control);
        let mut weighted_solutions: u64 = 0;
        for index in range {
            let set = tables.orbits.get(index);
            let solutions = self.count_set(tables, set, &mut progress)?;
            let few = "a range of orbits has fewer than 2^64 solutions";
            let weighted = solutions.checked_mul(set.weight.into()).expect(few);
            weighted_solutions = weighted_solutions.checked_add(weighted).expect(few);
            found(index, weighted);
        }
        progress.report()?;
        Ok(JoinTally { weighted_solutions, states: progress.pairs() })
    }

    /// The solutions of one column set that the quarter turn's criterion keeps, without the set's weight.
    fn count_set(
        &mut self,
        tables: &Tables,
        set: ColumnSet,
        progress: &mut JoinProgress<'_>,
    ) -> Result<u64, Stopped> {
        let geometry = &tables.geometry;
        let operations = &*self.operations;
        let tools = Tools { operations, geometry, costs: operations.costs(), thresholds: self.thresholds };
        let columns = [set.columns, geometry.board().full() & !set.columns];
        let firsts = geometry.first_queens(columns, set.kind);
        let outers = [&tables.outer[0], tables.outer.last().expect("one or two")];
        let [upper, lower] = &mut self.generators;
        upper.start(outers[0], columns[0]);
        lower.start(outers[1], columns[1]);
        let mut sum: u64 = 0;
        let mut rest = tables.layout.passes(geometry.board(), firsts[1]).peekable();
        while rest.peek().is_some() {
            // As many lower lists as there is room for, one pass at least; then all upper lists against them.
            let mut held = 0;
            let mut passes_held = 0;
            while let Some(&pass) = rest.peek() {
                let bytes = Lists::bytes_for(lower.find(operations, outers[1], pass, progress)?);
                if passes_held > 0 && held + bytes > self.memory_max / 2 {
                    break;
                }
                rest.next();
                held += bytes;
                if self.lower.len() == passes_held {
                    self.lower.push(Lists::new());
                }
                let wanted = Wanted {
                    grouped: tables.layout.grouped,
                    short: tables.layout.short,
                    others: firsts[0],
                    early: set.kind == Kind::Even,
                };
                lower.finish(operations, geometry, outers[1], wanted, &mut self.lower[passes_held]);
                passes_held += 1;
                progress.report()?;
            }
            for pass in tables.layout.passes(geometry.board(), firsts[0]) {
                upper.find(operations, outers[0], pass, progress)?;
                let wanted = Wanted {
                    grouped: tables.layout.grouped,
                    short: tables.layout.short,
                    others: firsts[1],
                    early: set.kind != Kind::CentreQueen,
                };
                upper.finish(operations, geometry, outers[0], wanted, &mut self.upper);
                for above in self.upper.rows() {
                    let lists = self.lower[..passes_held].iter().flat_map(Lists::rows);
                    for below in lists.filter(|below| below.first().abs_diff(above.first()) > 1) {
                        let criterion = geometry.criterion(set.kind, above.first(), below.first());
                        sum += self.pairs.join(tools, [above, below], criterion, progress)?;
                    }
                }
                progress.report()?;
            }
        }
        Ok(sum)
    }
}
