//! From the ledger to the total: what has to hold before a run may say its number.

use std::collections::HashMap;
use std::sync::Arc;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::Totals;
use nqueens_kernel::engine::Control;
use nqueens_kernel::known::published;
use nqueens_kernel::plan::Fingerprinter;
use nqueens_kernel::symmetric::{SymmetricCounts, symmetric_counts};
use nqueens_proto::operator::{Checked, Outcome};
use sqlx::sqlite::SqlitePool;
use tokio::sync::watch;

use crate::dispatch::JobState;
use crate::error::{Error, damaged};
use crate::store::{self, RunRow};

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
        let rows = store::ledger(db, run.id, jobs).await?;
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
    Ok(check(n, found, symmetric))
}

/// The checks on a sum itself.
fn check(n: BoardSize, found: Totals, symmetric: SymmetricCounts) -> Result<Outcome, String> {
    let orbits = found.sorted(symmetric).map_err(|unsortable| unsortable.to_string())?;
    let total = orbits.total(n).map_err(|overflow| overflow.to_string())?;
    // N = 1 has one solution, an orbit of its own that stands in none of the three counts.
    if n > BoardSize::MIN {
        let expected = (u128::from(symmetric.count2()), u128::from(symmetric.count4()));
        if (orbits.count2, orbits.count4) != expected {
            let (count2, count4) = expected;
            return Err(format!(
                "COUNT2 = {} and COUNT4 = {} differ from the separately counted symmetric solutions, {count2} and {count4}",
                orbits.count2, orbits.count4
            ));
        }
    }
    let checked = match published(n) {
        None => Checked::Symmetric,
        Some(known) if known.total == total && known.orbits == orbits => Checked::Published,
        Some(known) => {
            return Err(format!("the total {total} differs from the published count {}", known.total));
        }
    };
    Ok(Outcome { totals: orbits, total, checked })
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

    #[test]
    fn a_sum_that_fails_a_check_is_no_total() {
        let n = BoardSize::new(8).unwrap();
        let symmetric = symmetric_counts(n, &Control::default()).unwrap();
        let right = Totals { count4: 1, count8: 11, ..Totals::default() };
        assert_eq!(
            check(n, right, symmetric),
            Ok(Outcome { totals: right, total: 92, checked: Checked::Published })
        );
        let plain = |solutions| Totals { solutions, ..Totals::default() };
        assert_eq!(check(n, plain(92), symmetric).unwrap().totals, right);
        let errors = [
            (
                plain(91),
                "91 solutions less the symmetric ones, COUNT2 = 0 and COUNT4 = 1, are no multiple of 8",
            ),
            (plain(84), "the total 84 differs from the published count 92"),
            (Totals { count8: 1, ..plain(84) }, "some jobs found orbits and others plain solutions"),
            (Totals { count8: 10, ..right }, "the total 84 differs from the published count 92"),
            (Totals { count4: 2, ..right }, "COUNT2 = 0 and COUNT4 = 2 differ from the separately counted"),
            (Totals { count2: 1, ..right }, "COUNT2 = 1 and COUNT4 = 1 differ from the separately counted"),
            (Totals { count8: u128::MAX / 8 + 1, ..right }, "a count overflowed its integer width"),
        ];
        for (orbits, expected) in errors {
            let error = check(n, orbits, symmetric).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
