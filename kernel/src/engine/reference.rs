//! Row by row, cell by cell: the engine to read, and the twin of every fast one.

use super::{Control, Engine, Meter, Stopped, Tally};
use crate::board::take_lowest;
use crate::subproblem::{OpenRow, Subproblem};

/// Plain backtracking over the open rows, from the top.
pub(super) struct Reference;

impl Engine for Reference {
    fn count(&mut self, problem: &Subproblem, control: &Control) -> Result<Tally, Stopped> {
        let mut search = Search { meter: Meter::new(control), completions: 0 };
        search.descend(problem.rows(), Attacks::default())?;
        Ok(Tally { completions: search.completions, states: search.meter.finish()? })
    }

    fn leaf_test(&self) -> bool {
        true
    }
}

/// Columns attacked by the queens placed so far, seen from one row.
#[derive(Clone, Copy, Default)]
struct Attacks {
    column: u32,
    /// Diagonals that move one column up (to higher bits) a row.
    rising: u32,
    /// Diagonals that move one column down a row.
    falling: u32,
}

impl Attacks {
    fn with_queen(self, bit: u32) -> Self {
        Self { column: self.column | bit, rising: self.rising | bit, falling: self.falling | bit }
    }

    fn seen_from_rows_below(self, gap: u8) -> Self {
        Self { rising: self.rising << gap, falling: self.falling >> gap, ..self }
    }
}

struct Search<'a> {
    meter: Meter<'a>,
    completions: u64,
}

impl Search<'_> {
    fn descend(&mut self, rows: &[OpenRow], attacks: Attacks) -> Result<(), Stopped> {
        self.meter.add(1)?;
        let Some((first, below)) = rows.split_first() else {
            self.completions += 1;
            return Ok(());
        };
        let gap = below.first().map_or(0, |next| next.row - first.row);
        let mut cells = first.allowed & !(attacks.column | attacks.rising | attacks.falling);
        while let Some(bit) = take_lowest(&mut cells) {
            self.descend(below, attacks.with_queen(bit).seen_from_rows_below(gap))?;
        }
        Ok(())
    }
}
