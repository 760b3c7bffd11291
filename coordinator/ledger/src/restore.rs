//! Reads the whole state of the scheduler.

use nqueens_model::operator::{DiskRoom, WallTime};
use nqueens_scheduler::{Dispatch, Millis, Run, Scheduler, Sums};
use sqlx::sqlite::SqlitePool;

use crate::checks::{open_checks, reputations};
use crate::error::{Error, damaged};
use crate::jobs::{leases, unmade_checks};
use crate::workers::{WorkerRow, worker_rows};
use crate::{runs, slots, stored_sums};

/// Has a state machine that knows nothing yet take up all that the ledger has. `now` is the time by its clock, and by the
/// ledger's.
pub async fn restore(
    db: &SqlitePool,
    mut dispatch: Dispatch,
    room: Option<DiskRoom>,
    (now, at): (Millis, WallTime),
) -> Result<Scheduler, Error> {
    let mut sums = stored_sums(db).await?;
    let unmade = unmade_checks(db, None).await?;
    for row in runs(db).await? {
        let slots = slots(db, row.id, row.jobs).await?;
        let (recounts_us, differing) = (row.recounts.elapsed_us.into(), row.recounts.differing);
        let stored = Sums { recounts_us, differing, ..sums.remove(&row.id).unwrap_or_default() };
        let begun = now.cast_signed().saturating_sub(at.saturating_sub(row.created_at));
        let unmade = unmade.iter().filter(|job| job.run == row.id).map(|job| job.number).collect();
        let run = Run::new(&row.settings(), row.state, slots, stored).begun_at(begun).with_unmade(unmade);
        let (done, found) = (run.sums().done, run.sums().accepted.results);
        if found != u64::from(done) {
            return Err(damaged(format!("run {} has {done} jobs done but {found} accepted results", row.id)));
        }
        dispatch.add_run(run);
    }
    let mut sessions = Vec::new();
    for WorkerRow { session, registration, credential, .. } in worker_rows(db).await? {
        dispatch.add_worker(session.worker, &registration, credential);
        sessions.push((registration.instance, session));
    }
    for (machine, reputation) in reputations(db).await? {
        dispatch.add_reputation(machine, reputation);
    }
    for (job, accepted, differing) in open_checks(db).await? {
        dispatch.add_check(job, accepted, differing);
    }
    for (worker, job) in leases(db).await? {
        dispatch.add_lease(now, worker, job);
    }
    Ok(Scheduler::new(dispatch, sessions, room))
}
