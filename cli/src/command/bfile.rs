//! Exports totals as the OEIS wants a sequence's terms: a b-file.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::ensure;
use nqueens_kernel::sequence::Sequence;

use super::source::LedgerSource;

/// Writes one line `N TERM` for each board that the runs have counted, in order of N.
pub(crate) async fn write(
    sequence: Sequence,
    source: &LedgerSource,
    out: impl FnOnce() -> anyhow::Result<Box<dyn Write>>,
) -> anyhow::Result<()> {
    let runs = source.runs().await?;
    let mut terms = BTreeMap::new();
    // Sequences are of whole boards.
    for run in runs.iter().filter(|run| run.plan.variant().is_none()) {
        let Some(outcome) = &run.outcome else { continue };
        let n = run.plan.n();
        let term = sequence.term(n, outcome.totals)?;
        let earlier = terms.insert(n.get(), term).unwrap_or(term);
        ensure!(earlier == term, "two runs of N = {n} differ: {earlier} and {term}; name the one to export");
    }
    let open = runs.iter().filter(|run| run.outcome.is_none()).count();
    ensure!(!terms.is_empty(), "no run here has a total; 'nqueens status' lists the runs");
    let mut out = out()?;
    writeln!(out, "# {sequence} ({})", sequence.describe())?;
    for (n, term) in terms {
        writeln!(out, "{n} {term}")?;
    }
    if open > 0 {
        eprintln!("nqueens: {open} of {} runs have no total and are left out", runs.len());
    }
    Ok(())
}
