//! Stores the changes of a transaction.

use nqueens_model::operator::WallTime;
use nqueens_scheduler::{Change, JobState};
use sqlx::sqlite::SqliteConnection;

use crate::checks::{insert_checks, upsert_reputations};
use crate::error::Error;
use crate::jobs::{insert_jobs, update_jobs};
use crate::recounts::{add_recount_time, insert_recount};
use crate::results::{insert_results, void_results};
use crate::runs::{finish_planning, finish_run, insert_run, note_started, update_run_state};
use crate::workers::insert_worker;

/// Stores changes in their order, inside of the transaction that is open on `db`, as of `now`.
pub async fn persist(db: &mut SqliteConnection, changes: &[Change], now: WallTime) -> Result<(), Error> {
    for change in changes {
        match change {
            Change::Worker(session, worker, credential) => {
                insert_worker(db, *session, worker, credential, now).await?;
            }
            Change::RunPlanned(settings) => insert_run(db, settings, now).await?,
            Change::JobsPlanned { run, first, jobs } => insert_jobs(db, *run, *first, jobs).await?,
            Change::RunActivated { run, jobs, fingerprint } => {
                finish_planning(db, *run, *jobs, *fingerprint).await?;
            }
            Change::RunState { run, state, reason } => {
                update_run_state(db, *run, *state, reason.as_deref()).await?;
            }
            Change::RunDone(run, outcome) => finish_run(db, *run, outcome, now).await?,
            Change::Results(results) => insert_results(db, results, now).await?,
            Change::Voided(jobs) => void_results(db, jobs).await?,
            Change::Jobs(jobs) => {
                update_jobs(db, jobs).await?;
                let leased = jobs.iter().filter(|(_, slot, _)| slot.state == JobState::Leased);
                note_started(db, leased.map(|(job, ..)| *job), now).await?;
            }
            Change::Checks(checks) => insert_checks(db, checks).await?,
            Change::Recounted(recount) => insert_recount(db, recount, now).await?,
            Change::RecountTime(run, elapsed_us) => add_recount_time(db, *run, *elapsed_us).await?,
            Change::Reputations(reputations) => upsert_reputations(db, reputations).await?,
        }
    }
    Ok(())
}
