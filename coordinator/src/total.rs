//! From the ledger to the total: the checks that a run must pass before it gets one.

use std::collections::HashMap;
use std::sync::Arc;

use nqueens_evidence::total;
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::{SymmetricCounts, Totals};
use nqueens_kernel::engine::Control;
use nqueens_kernel::plan::Fingerprinter;
use nqueens_kernel::symmetric::symmetric_counts;
use nqueens_model::operator::Outcome;
use nqueens_scheduler::JobState;
use sqlx::sqlite::SqlitePool;
use tokio::sync::watch;

use crate::error::{Error, damaged};
use crate::ledger::{self, RunRow};

/// Counts the symmetric solutions of each N once, on a thread of its own beside the jobs: of a large board it takes a
/// minute. Searches end with their owner.
#[derive(Default)]
pub(crate) struct SymmetricSearches {
    begun: HashMap<BoardSize, watch::Receiver<Option<SymmetricCounts>>>,
    control: Arc<Control>,
}

impl SymmetricSearches {
    /// Begins the search for N unless it has begun; what it finds comes out of the receiver.
    pub(crate) fn of(&mut self, n: BoardSize) -> watch::Receiver<Option<SymmetricCounts>> {
        let begin = || {
            let (found, counts) = watch::channel(None);
            let control = Arc::clone(&self.control);
            tokio::task::spawn_blocking(move || found.send_replace(symmetric_counts(n, &control).ok()));
            counts
        };
        self.begun.entry(n).or_insert_with(begin).clone()
    }
}

impl Drop for SymmetricSearches {
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
    mut symmetric: watch::Receiver<Option<SymmetricCounts>>,
) -> Result<Result<Outcome, String>, Error> {
    let n = run.plan.n();
    let mut found = Totals::default();
    let mut fingerprint = Fingerprinter::new(&run.plan);
    let mut jobs = 0;
    loop {
        let rows = ledger::rows(db, run.id, jobs).await?;
        if rows.is_empty() {
            break;
        }
        for row in rows {
            if row.number != jobs {
                return Err(damaged(format!("job {jobs} of run {} is missing", run.id)));
            }
            jobs += 1;
            fingerprint.add_encoded(row.job.class, row.job.bound1, &row.job.prefixes);
            let Some(accepted) = row.accepted.filter(|_| row.state == JobState::Done) else {
                return Ok(Err(format!("job {} is not done", row.number)));
            };
            match found.checked_add(accepted.counts) {
                Ok(sum) => found = sum,
                Err(overflow) => return Ok(Err(overflow.to_string())),
            }
        }
    }
    if jobs != run.jobs || fingerprint.finish() != run.fingerprint {
        return Ok(Err(format!("the {jobs} stored jobs are not the plan that the run began with")));
    }
    let counts = symmetric.wait_for(Option::is_some).await.map(|counts| *counts);
    let symmetric = counts.ok().flatten().expect("the symmetric search ends early only with its coordinator");
    Ok(total::conclude(n, found, symmetric).map_err(|doubt| doubt.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn symmetric_solutions_are_counted_until_their_coordinator_ends() {
        let [small, large] = [8, 31].map(|n| BoardSize::new(n).unwrap());
        let mut searches = SymmetricSearches::default();
        let found = *searches.of(small).wait_for(Option::is_some).await.unwrap();
        assert_eq!(found, symmetric_counts(small, &Control::default()).ok());
        // This one would take hours.
        let mut unfinished = searches.of(large);
        drop(searches);
        assert!(unfinished.wait_for(Option::is_some).await.is_err());
    }
}
