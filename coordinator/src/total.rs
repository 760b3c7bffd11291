//! From the ledger to the total: the checks that a run must pass before it gets one.

use std::collections::HashMap;
use std::sync::Arc;

use nqueens_evidence::estimate::{STRATA, estimate_total};
use nqueens_evidence::total;
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::cells::Cells;
use nqueens_kernel::counts::{SymmetricCounts, Totals};
use nqueens_kernel::engine::{Control, Stopped};
use nqueens_kernel::known::published;
use nqueens_kernel::plan::{Fingerprinter, Plan};
use nqueens_kernel::symmetric::symmetric_counts;
use nqueens_ledger::{self as ledger, RunRow, damaged};
use nqueens_model::operator::{Grounds, Outcome, TotalEstimate, recounts_wanted};
use nqueens_proto::random_bytes;
use nqueens_scheduler::{JobState, Policy};
use sqlx::sqlite::SqlitePool;
use tokio::sync::watch;

use crate::error::Error;

/// What the total of a board is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TotalReference {
    /// Of the whole board; none where cells are blocked.
    symmetric: SymmetricCounts,
    /// Unless a published count is there.
    estimate: Option<TotalEstimate>,
}

/// What is counted.
type Subject = (BoardSize, Option<Cells>);

/// Makes what each of them is held against once, on a thread of its own beside the jobs: of a large board it takes a
/// minute. This ends with its owner.
pub(crate) struct References {
    begun: HashMap<Subject, watch::Receiver<Option<TotalReference>>>,
    checks_min: u32,
    policy: Policy,
    control: Arc<Control>,
}

impl References {
    pub(crate) fn new(checks_min: u32, policy: Policy) -> Self {
        Self { begun: HashMap::new(), checks_min, policy, control: Arc::default() }
    }

    /// Begins with what a plan counts unless that was begun; what is found comes out of the receiver.
    pub(crate) fn of(&mut self, plan: &Plan) -> watch::Receiver<Option<TotalReference>> {
        let (n, cells) = (plan.n(), plan.cells());
        let begin = || {
            let (found, reference) = watch::channel(None);
            let control = Arc::clone(&self.control);
            let is_published = self.policy.published && cells.is_none() && published(n).is_some();
            tokio::task::spawn_blocking(move || {
                let search = || {
                    let seed = || u64::from_ne_bytes(random_bytes());
                    let estimate = || estimate_total(n, cells, (seed(), STRATA), &control);
                    let counted = cells.is_none().then(|| symmetric_counts(n, &control)).transpose()?;
                    let symmetric = counted.unwrap_or_default();
                    let estimate = (!is_published).then(estimate).transpose()?;
                    Ok::<_, Stopped>(TotalReference { symmetric, estimate })
                };
                found.send_replace(search().ok())
            });
            reference
        };
        self.begun.entry((n, cells)).or_insert_with(begin).clone()
    }
}

impl Drop for References {
    fn drop(&mut self) {
        self.control.stop();
    }
}

/// Reads a run's ledger from the first job to the last, adds it up and makes every check there is.
///
/// The inner error says which check did not pass.
pub(crate) async fn conclude(
    db: &SqlitePool,
    run: &RunRow,
    references: &mut References,
) -> Result<Result<Outcome, String>, Error> {
    let mut found = Totals::default();
    let mut fingerprint = Fingerprinter::new(&run.plan);
    let (mut jobs, mut own, mut parts) = (0, 0, 0_u32);
    loop {
        let rows = ledger::rows(db, run.id, jobs).await?;
        if rows.is_empty() {
            break;
        }
        for row in rows {
            if row.number != jobs {
                return Err(damaged(format!("job {jobs} of run {} is missing", run.id)).into());
            }
            jobs += 1;
            fingerprint.add_encoded(row.job.class, row.job.bound1, &row.job.prefixes);
            let Some(accepted) = row.accepted.filter(|_| row.state == JobState::Done) else {
                return Ok(Err(format!("job {} is not done", row.number)));
            };
            // What the coordinator has counted for another reason is neither drawn nor counted by others.
            own += u32::from(row.is_own);
            parts = parts.saturating_add(if row.is_own { 0 } else { row.parts });
            match found.checked_add(accepted.counts) {
                Ok(sum) => found = sum,
                Err(overflow) => return Ok(Err(overflow.to_string())),
            }
        }
    }
    if jobs != run.jobs || fingerprint.finish() != run.fingerprint {
        return Ok(Err(format!("the {jobs} stored jobs are not the plan that the run began with")));
    }
    let mut found_reference = references.of(&run.plan);
    let reference = found_reference.wait_for(Option::is_some).await.map(|reference| *reference);
    let TotalReference { symmetric, estimate } =
        reference.ok().flatten().expect("the search ends early only with its coordinator");
    let checks_wanted = references.checks_min.min(run.jobs - own);
    let recounts_wanted = recounts_wanted(references.policy.recounts_min, run.recounts.differing).min(parts);
    let grounds = estimate.map(|estimate| Grounds { estimate, checks_wanted, recounts_wanted });
    Ok(total::conclude(&run.plan, found, symmetric, grounds).map_err(|doubt| doubt.to_string()))
}

#[cfg(test)]
mod tests {
    use nqueens_kernel::plan::PlanKind;

    use super::*;

    #[tokio::test]
    async fn symmetric_solutions_are_counted_until_their_coordinator_ends() {
        let board = |n| BoardSize::new(n).unwrap();
        let [small, large] = [8, 31].map(|n| Plan::with_states_per_job(board(n), PlanKind::Border, 1));
        let mut searches = References::new(1, Policy::default());
        let found = *searches.of(&small).wait_for(Option::is_some).await.unwrap();
        let symmetric = symmetric_counts(board(8), &Control::default()).unwrap();
        assert_eq!(found, Some(TotalReference { symmetric, estimate: None }));
        let mut rehearsal = References::new(1, Policy { published: false, ..Policy::default() });
        let found = *rehearsal.of(&small).wait_for(Option::is_some).await.unwrap();
        assert!(found.unwrap().estimate.unwrap().holds(92));
        // This one would take hours.
        let mut unfinished = searches.of(&large);
        drop(searches);
        assert!(unfinished.wait_for(Option::is_some).await.is_err());
    }
}
