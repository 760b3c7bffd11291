//! Reads the whole state of the scheduler.

use nqueens_model::operator::DiskRoom;
use nqueens_scheduler::{Dispatch, Millis, Run, Scheduler};
use sqlx::sqlite::SqlitePool;

use crate::checks::{open_checks, reputations};
use crate::error::{Error, damaged};
use crate::jobs::leases;
use crate::workers::sessions;
use crate::{runs, slots, stored_sums, worker_rows};

/// Has a state machine that knows nothing yet take up all that the ledger has.
pub async fn restore(
    db: &SqlitePool,
    mut dispatch: Dispatch,
    room: Option<DiskRoom>,
    now: Millis,
) -> Result<Scheduler, Error> {
    let mut sums = stored_sums(db).await?;
    for row in runs(db).await? {
        let slots = slots(db, row.id, row.jobs).await?;
        let run = Run::new(&row.settings(), row.state, slots, sums.remove(&row.id).unwrap_or_default());
        let (done, found) = (run.sums().done, run.sums().accepted.results);
        if found != u64::from(done) {
            return Err(damaged(format!("run {} has {done} jobs done but {found} accepted results", row.id)));
        }
        dispatch.add_run(run);
    }
    for row in worker_rows(db).await? {
        dispatch.add_worker(row.id, &row.registration, row.credential);
    }
    for (machine, reputation) in reputations(db).await? {
        dispatch.add_reputation(machine, reputation);
    }
    for (job, votes) in open_checks(db).await? {
        dispatch.add_check(job, votes);
    }
    for (worker, token) in leases(db).await? {
        dispatch.add_lease(now, worker, token);
    }
    Ok(Scheduler::new(dispatch, sessions(db).await?, room))
}
