//! The columns that tables of counts have in common: all solutions, and the orbits by symmetry.

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::{Overflow, Totals};
use nqueens_kernel::known::published;
use nqueens_kernel::sequence::Sequence;

/// TOTAL, UNIQUE and the three counts: their titles and the OEIS's numbers of them.
const COLUMNS: [(&str, Sequence); 5] = [
    ("TOTAL", Sequence::Solutions),
    ("UNIQUE", Sequence::Unique),
    ("COUNT2", Sequence::Count2),
    ("COUNT4", Sequence::Count4),
    ("COUNT8", Sequence::Count8),
];

/// Columns as wide as their largest number needs.
pub(crate) struct CountColumns {
    widths: [usize; 5],
    written: fn(u128) -> String,
}

impl CountColumns {
    /// For boards up to `last`, with numbers as `written` writes them.
    pub(crate) fn up_to(last: BoardSize, written: fn(u128) -> String) -> Self {
        let mut widths = COLUMNS.map(|(_, sequence)| sequence.name().len());
        for known in BoardSize::MIN.up_to(last).filter_map(published) {
            let numbers = counts(known.total, known.unique, known.orbits).map(written);
            widths.iter_mut().zip(numbers).for_each(|(width, number)| *width = number.len().max(*width));
        }
        Self { widths, written }
    }

    /// The line of titles.
    pub(crate) fn titles(&self) -> String {
        self.line(COLUMNS.map(|(title, _)| title.to_owned()))
    }

    /// The line of the OEIS's numbers.
    pub(crate) fn sequences(&self) -> String {
        self.line(COLUMNS.map(|(_, sequence)| sequence.name().to_owned()))
    }

    /// The line of an `n` by `n` board with these orbits.
    pub(crate) fn row(&self, n: BoardSize, orbits: Totals) -> Result<String, Overflow> {
        Ok(self.line(counts(orbits.total(n)?, orbits.unique(n)?, orbits).map(self.written)))
    }

    fn line(&self, cells: [String; 5]) -> String {
        let padded = cells.iter().zip(self.widths).map(|(cell, width)| format!("{cell:>width$}"));
        padded.collect::<Vec<_>>().join("  ")
    }
}

fn counts(total: u128, unique: u128, orbits: Totals) -> [u128; 5] {
    [total, unique, orbits.count2, orbits.count4, orbits.count8]
}
