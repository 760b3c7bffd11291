//! Exports totals as the OEIS wants a sequence's terms: a b-file.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::str::FromStr;

use anyhow::ensure;
use clap::builder::{ValueParser, ValueParserFactory};
use nqueens_coordinator::RunRow;
use nqueens_kernel::counts::Overflow;
use nqueens_kernel::sequence::{Sequence, TorusSequence};
use nqueens_kernel::variant::Variant;

use super::choices::one_of;
use super::source::LedgerSource;

/// A sequence whose terms runs count.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Terms {
    OfBoards(Sequence),
    OfTorus(TorusSequence),
}

impl Terms {
    /// The index of a run's term, and the term; `None` if the run has none, for it counts something else or is not done.
    fn of(self, run: &RunRow) -> Result<Option<(u32, u128)>, Overflow> {
        let (Some(outcome), n) = (&run.outcome, run.plan.n()) else { return Ok(None) };
        Ok(match (self, run.plan.variant()) {
            (Self::OfBoards(sequence), None) => Some((n.get(), sequence.term(n, outcome.totals)?)),
            (Self::OfTorus(sequence), Some(Variant::Torus(_))) => {
                sequence.index(n).map(|index| (index, outcome.total))
            }
            _ => None,
        })
    }

    fn describe(self) -> &'static str {
        match self {
            Self::OfBoards(sequence) => sequence.describe(),
            Self::OfTorus(sequence) => sequence.describe(),
        }
    }
}

impl Default for Terms {
    fn default() -> Self {
        Self::OfBoards(Sequence::Solutions)
    }
}

impl fmt::Display for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OfBoards(sequence) => sequence.fmt(f),
            Self::OfTorus(sequence) => sequence.fmt(f),
        }
    }
}

impl FromStr for Terms {
    type Err = strum::ParseError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        name.parse().map(Self::OfBoards).or_else(|_| name.parse().map(Self::OfTorus))
    }
}

impl ValueParserFactory for Terms {
    type Parser = ValueParser;

    fn value_parser() -> ValueParser {
        let names = Sequence::ALL.map(Sequence::name).into_iter();
        one_of::<Self>(names.chain(TorusSequence::ALL.map(TorusSequence::name)))
    }
}

/// Writes one line `INDEX TERM` for each board that the runs have counted, in order.
pub(crate) async fn write(
    sequence: Terms,
    source: &LedgerSource,
    out: impl FnOnce() -> anyhow::Result<Box<dyn Write>>,
) -> anyhow::Result<()> {
    let runs = source.runs().await?;
    let mut terms = BTreeMap::new();
    for run in &runs {
        let Some((index, term)) = sequence.of(run)? else { continue };
        let earlier = terms.insert(index, term).unwrap_or(term);
        let n = run.plan.n();
        ensure!(earlier == term, "two runs of N = {n} differ: {earlier} and {term}; name the one to export");
    }
    let open = runs.iter().filter(|run| run.outcome.is_none()).count();
    ensure!(
        !terms.is_empty(),
        "no run here has a total that is a term of {sequence}; 'nqueens status' lists the runs"
    );
    let mut out = out()?;
    writeln!(out, "# {sequence} ({})", sequence.describe())?;
    for (index, term) in terms {
        writeln!(out, "{index} {term}")?;
    }
    if open > 0 {
        eprintln!("nqueens: {open} of {} runs have no total and are left out", runs.len());
    }
    Ok(())
}
