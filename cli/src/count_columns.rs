//! The columns that tables of counts have in common: all solutions, the orbits by symmetry, the symmetric solutions.

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::{Overflow, Totals};
use nqueens_kernel::known::published;
use nqueens_kernel::sequence::Sequence;

/// Titles, and the sequences of the OEIS.
type Columns = [(&'static str, Sequence)];

const ORBITS: &Columns = &[
    ("TOTAL", Sequence::Solutions),
    ("UNIQUE", Sequence::Unique),
    ("COUNT2", Sequence::Count2),
    ("COUNT4", Sequence::Count4),
    ("COUNT8", Sequence::Count8),
];

/// Solutions equal to their half turn, and of these those equal to their quarter turn.
const SYMMETRIC: &Columns = &[("HALF TURN", Sequence::HalfTurn), ("QUARTER TURN", Sequence::QuarterTurn)];

/// Columns as wide as their largest number needs.
pub(crate) struct CountColumns {
    columns: &'static Columns,
    widths: Vec<usize>,
    written: fn(u128) -> String,
}

impl CountColumns {
    /// TOTAL, UNIQUE and the three counts of boards up to `last`, with numbers as `written` writes them.
    pub(crate) fn of_orbits(last: BoardSize, written: fn(u128) -> String) -> Self {
        Self::up_to(last, ORBITS, written)
    }

    /// The symmetric solutions of boards up to `last`.
    pub(crate) fn of_symmetric(last: BoardSize, written: fn(u128) -> String) -> Self {
        Self::up_to(last, SYMMETRIC, written)
    }

    fn up_to(last: BoardSize, columns: &'static Columns, written: fn(u128) -> String) -> Self {
        let known = || BoardSize::MIN.up_to(last).filter_map(|n| Some((n, published(n)?.orbits)));
        let width = |&(title, sequence): &(&str, Sequence)| {
            let numbers = known().filter_map(|(n, orbits)| count(sequence, n, orbits).ok());
            let texts = numbers.map(|number| written(number).len());
            texts.chain([title.len(), sequence.name().len()]).max().unwrap_or(0)
        };
        Self { columns, widths: columns.iter().map(width).collect(), written }
    }

    pub(crate) fn titles(&self) -> String {
        self.line(self.columns.iter().map(|(title, _)| (*title).to_owned()))
    }

    pub(crate) fn sequences(&self) -> String {
        self.line(self.columns.iter().map(|(_, sequence)| sequence.name().to_owned()))
    }

    /// The line of an `n` by `n` board with these orbits.
    pub(crate) fn row(&self, n: BoardSize, orbits: Totals) -> Result<String, Overflow> {
        let counts = self.columns.iter().map(|(_, sequence)| count(*sequence, n, orbits));
        let counts = counts.collect::<Result<Vec<_>, _>>()?;
        Ok(self.line(counts.into_iter().map(self.written)))
    }

    /// The lines of titles, of the OEIS's numbers, and of these boards.
    pub(crate) fn table(&self, boards: &[(BoardSize, Totals)]) -> Result<String, Overflow> {
        let rows = boards.iter().map(|(n, orbits)| Ok(format!("{n:>2}  {}\n", self.row(*n, *orbits)?)));
        let rows = rows.collect::<Result<String, _>>()?;
        Ok(format!(" N  {}\n    {}\n{rows}", self.titles(), self.sequences()))
    }

    fn line(&self, cells: impl Iterator<Item = String>) -> String {
        let padded = cells.zip(&self.widths).map(|(cell, width)| format!("{cell:>width$}"));
        padded.collect::<Vec<_>>().join("  ")
    }
}

/// What stands in a column: the term of its sequence, but that the only queen of N = 1 is in none of the three counts.
fn count(sequence: Sequence, n: BoardSize, orbits: Totals) -> Result<u128, Overflow> {
    match sequence {
        Sequence::Count2 => Ok(orbits.count2),
        other => other.term(n, orbits),
    }
}
