//! Exports totals as the OEIS wants a sequence's terms: a b-file.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::ensure;
use nqueens_kernel::sequence::Sequence;

use crate::ledger_source::LedgerSource;
use crate::output::OutputFile;

/// Writes one line `INDEX TERM` for each board that the runs have counted, in order.
pub(crate) async fn write(
    sequence: Sequence,
    source: &LedgerSource,
    output: &OutputFile,
) -> anyhow::Result<()> {
    let runs = source.runs().await?;
    let mut terms = BTreeMap::new();
    for run in runs.iter().filter(|run| run.progress.plan.cells().is_none()) {
        let (Some(outcome), n) = (&run.outcome, run.progress.plan.n()) else { continue };
        let term = sequence.term(n, outcome.totals)?;
        let (earlier, confirmed) = terms.entry(n).or_insert((term, false));
        ensure!(*earlier == term, "two runs of N = {n} differ: {earlier} and {term}; name the one to export");
        *confirmed |= run.standing().is_some_and(|standing| standing.is_confirmed());
    }
    let open = runs.iter().filter(|run| run.outcome.is_none()).count();
    ensure!(
        !terms.is_empty(),
        "no run here has a total that is a term of {sequence}; 'nqueens status' lists the runs"
    );
    let mut out = output.open()?;
    writeln!(out, "# {sequence} ({})", sequence.describe())?;
    for (index, (term, confirmed)) in terms {
        if !confirmed {
            writeln!(out, "# counted, not confirmed:")?;
        }
        writeln!(out, "{index} {term}")?;
    }
    out.finish()?;
    if open > 0 {
        eprintln!("nqueens: {open} of {} runs have no total and are left out", runs.len());
    }
    Ok(())
}
