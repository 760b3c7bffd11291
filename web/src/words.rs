//! Words of the page.

use nqueens_kernel::plan::PlanKind;
use nqueens_model::numbers::{counted, thousands};
use nqueens_model::operator::{Checked, RunState, RunStatus};

/// What a job of a plan is.
pub(crate) const fn plan(kind: PlanKind) -> &'static str {
    match kind {
        PlanKind::Rows => "a job continues some placements of queens in the first rows",
        PlanKind::Border => "a job continues some placements of queens in the two outermost rows and columns",
        PlanKind::Colours => "a job joins queens on white cells with queens on black ones",
        PlanKind::Cells => "a job continues some placements of queens in the first rows of the board",
    }
}

/// What came of the checks on a run, and what was done beyond counting each job once.
pub(crate) fn checks(run: &RunStatus) -> (&'static str, String) {
    let parts = run.recounts.agreed.saturating_add(run.recounts.differing);
    let recounts = (parts > 0).then(|| {
        let (parts, differing) = (counted(parts, "part"), thousands(run.recounts.differing));
        format!("{parts} counted again by the coordinator, {differing} differing")
    });
    let checks = run.progress.checks.told().map(|told| format!("second counts: {told}"));
    let made: Vec<_> = checks.into_iter().chain(recounts).collect();
    let more = if made.is_empty() { "no second counts".to_owned() } else { made.join("; ") };
    match &run.outcome {
        Some(outcome) => {
            let against = match outcome.checked {
                Checked::Published => "against published counts",
                Checked::Symmetric => "against symmetric counts",
                Checked::None => "no such count is published",
            };
            ("passed", format!("{against}; {more}"))
        }
        None if run.progress.state == RunState::Failed => ("failed", more),
        None => (if made.is_empty() { "none yet" } else { "pending" }, more),
    }
}
