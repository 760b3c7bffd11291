//! Reads the whole state of the scheduler.

use nqueens_scheduler::{Dispatch, Millis, Room, Run, Scheduler};
use sqlx::sqlite::SqlitePool;

use super::checks::{open_checks, standings};
use super::jobs::leases;
use super::{accepted_sums, runs, slots, worker_rows};
use crate::error::{Error, damaged};

/// Has a state machine that knows nothing yet take up all that the ledger has.
pub(crate) async fn restore(
    db: &SqlitePool,
    mut dispatch: Dispatch,
    room: Option<Room>,
    now: Millis,
) -> Result<Scheduler, Error> {
    let mut sums = accepted_sums(db).await?;
    for row in runs(db).await? {
        let slots = slots(db, row.id, row.jobs).await?;
        let (accepted, checks) = sums.remove(&row.id).unwrap_or_default();
        let run = Run::new(&row.settings(), row.state, slots, accepted, checks);
        if accepted.results != u64::from(run.sums().done) {
            let (done, found) = (run.sums().done, accepted.results);
            return Err(damaged(format!("run {} has {done} jobs done but {found} accepted results", row.id)));
        }
        dispatch.add_run(run);
    }
    let workers = worker_rows(db).await?;
    let processes = workers.iter().map(|row| (row.registration.instance, row.id)).collect();
    for row in workers {
        dispatch.add_worker(row.id, &row.registration);
    }
    for (machine, standing) in standings(db).await? {
        dispatch.add_standing(machine, standing);
    }
    for (job, opinions) in open_checks(db).await? {
        dispatch.add_check(job, opinions);
    }
    for (worker, token) in leases(db).await? {
        dispatch.add_lease(now, worker, token);
    }
    Ok(Scheduler::new(dispatch, processes, room))
}
