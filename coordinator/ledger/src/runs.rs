//! Runs: planned, begun, restored, ended.

use std::collections::BTreeSet;

use nqueens_evidence::total::{of_cells, outcome};
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::cells::Cells;
use nqueens_kernel::plan::{Fingerprint, Plan, PlanKind};
use nqueens_model::id::{JobId, RunId};
use nqueens_model::operator::{Outcome, Recounts, RunState, WallTime};
use nqueens_scheduler::RunSettings;
use sqlx::sqlite::{SqliteConnection, SqliteExecutor};
use sqlx::{query, query_scalar};

use crate::error::{Error, damaged};
use crate::{ROWS_MAX, all_written, column, json, object, parsed, run_id, within};

#[derive(Clone, Debug)]
pub struct RunRow {
    pub id: RunId,
    pub plan: Plan,
    pub jobs: u32,
    pub fingerprint: Fingerprint,
    /// Fixes the order of the jobs.
    pub seed: u64,
    /// Among active runs, higher goes first.
    pub priority: i32,
    /// This share of its results is counted twice, in millionths.
    pub replicate_ppm: u32,
    pub state: RunState,
    pub reason: Option<String>,
    /// When it was submitted.
    pub created_at: WallTime,
    /// When its first job was leased.
    pub started_at: Option<WallTime>,
    pub finished_at: Option<WallTime>,
    pub outcome: Option<Outcome>,
    pub recounts: Recounts,
}

impl RunRow {
    pub fn settings(&self) -> RunSettings {
        let Self { id, plan, seed, priority, replicate_ppm, .. } = *self;
        RunSettings { id, plan, seed, priority, replicate_ppm }
    }
}

/// Writes a run whose jobs follow: it stays `planning` until [`finish_planning`].
pub(super) async fn insert_run(
    db: &mut SqliteConnection,
    settings: &RunSettings,
    now: WallTime,
) -> Result<(), Error> {
    let RunSettings { id, plan, seed, priority, replicate_ppm } = *settings;
    let (run, n, kind) = (column(id.get()), plan.n().get(), plan.kind().name());
    let (states, seed) = (column(plan.states_per_job()), seed.cast_signed());
    let cells = plan.cells().map(|cells| cells.to_string());
    query!(
        "INSERT INTO run (id, n, plan, cells, states_per_job, seed, priority, replicate_ppm, state, created_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'planning', ?)",
        run,
        n,
        kind,
        cells,
        states,
        seed,
        priority,
        replicate_ppm,
        now
    )
    .execute(db)
    .await?;
    Ok(())
}

/// All jobs of a run are stored: it becomes active.
pub(super) async fn finish_planning(
    db: &mut SqliteConnection,
    run: RunId,
    jobs: u32,
    fingerprint: Fingerprint,
) -> Result<(), Error> {
    let (run, fingerprint) = (column(run.get()), fingerprint.0.to_vec());
    let done = query!(
        "UPDATE run SET state = 'active', jobs = ?1, fingerprint = ?2 WHERE id = ?3 AND state = 'planning'
           AND ?1 = (SELECT count(*) FROM job WHERE run = ?3)",
        jobs,
        fingerprint,
        run
    )
    .execute(db)
    .await?;
    all_written(&done, 1, "a run whose planning ends was being planned, and all its jobs are stored")
}

/// Removes the last jobs of the runs whose planning was cut short, 10,000 of each, and the runs that have none; true
/// once there is no such run.
pub async fn delete_unplanned(db: &mut SqliteConnection) -> Result<bool, Error> {
    query!(
        "DELETE FROM job WHERE (run, number) IN
           (SELECT job.run, job.number FROM run JOIN job ON job.run = run.id
              AND job.number > (SELECT max(number) FROM job WHERE job.run = run.id) - ?
            WHERE run.state = 'planning')",
        ROWS_MAX
    )
    .execute(&mut *db)
    .await?;
    query!(
        "DELETE FROM run WHERE state = 'planning' AND NOT EXISTS (SELECT 1 FROM job WHERE job.run = run.id)"
    )
    .execute(&mut *db)
    .await?;
    let left = query_scalar!("SELECT count(*) FROM run WHERE state = 'planning'").fetch_one(db).await?;
    Ok(left == 0)
}

/// The runs whose jobs are not all stored, oldest first, each with the number of those that are.
pub async fn unplanned_runs(db: impl SqliteExecutor<'_>) -> Result<Vec<(RunSettings, WallTime, u32)>, Error> {
    let rows = query!(
        r#"SELECT id AS "id!", n, plan, cells, states_per_job, seed, priority, replicate_ppm, created_at,
                  (SELECT 1 + max(number) FROM job WHERE job.run = run.id) AS "stored: i64"
           FROM run WHERE state = 'planning' ORDER BY created_at, id"#
    )
    .fetch_all(db)
    .await?;
    rows.into_iter()
        .map(|row| {
            let settings = RunSettings {
                id: run_id(row.id)?,
                plan: plan(row.n, &row.plan, row.cells.as_deref(), row.states_per_job)?,
                seed: row.seed.cast_unsigned(),
                priority: within("run.priority", row.priority)?,
                replicate_ppm: within("run.replicate_ppm", row.replicate_ppm)?,
            };
            Ok((settings, row.created_at, within("job.number", row.stored.unwrap_or(0))?))
        })
        .collect()
}

fn plan(n: i64, kind: &str, cells: Option<&str>, states_per_job: i64) -> Result<Plan, Error> {
    let n = BoardSize::new(within("run.n", n)?).map_err(damaged)?;
    let (kind, cells) = (parsed::<PlanKind>(kind)?, cells.map(parsed::<Cells>).transpose()?);
    let plan = Plan::stored(n, kind, cells, within("run.states_per_job", states_per_job)?);
    plan.ok_or_else(|| damaged("run.cells is not the board of a plan cells"))
}

/// The runs whose jobs these are have begun, if they had not.
pub(super) async fn note_started(
    db: &mut SqliteConnection,
    leased: impl Iterator<Item = JobId>,
    now: WallTime,
) -> Result<(), Error> {
    for run in leased.map(|job| job.run).collect::<BTreeSet<_>>() {
        let run = column(run.get());
        query!("UPDATE run SET started_at = ? WHERE id = ? AND started_at IS NULL", now, run)
            .execute(&mut *db)
            .await?;
    }
    Ok(())
}

/// All runs that are planned, oldest first.
pub async fn runs(db: impl SqliteExecutor<'_>) -> Result<Vec<RunRow>, Error> {
    let rows = query!(
        r#"SELECT id AS "id!", n, plan, cells, states_per_job, jobs AS "jobs!", fingerprint AS "fingerprint!", seed,
                  priority, replicate_ppm, state, reason, created_at, started_at, finished_at, outcome, recounts_agreed,
                  recounts_differing, recounts_us
           FROM run WHERE state <> 'planning' ORDER BY created_at, id"#
    )
    .fetch_all(db)
    .await?;
    rows.into_iter()
        .map(|row| {
            let plan = plan(row.n, &row.plan, row.cells.as_deref(), row.states_per_job)?;
            let stored = row.outcome.as_deref().map(object::<Outcome>).transpose()?;
            if let Some(stored) = &stored {
                let made = match plan.cells() {
                    None => outcome(plan.n(), stored.totals, stored.grounds).map_err(damaged)?,
                    Some(_) => of_cells(stored.total, stored.grounds),
                };
                if made != *stored {
                    let (total, sum) = (stored.total, made.total);
                    return Err(damaged(format!("a total of {total} where the counts come to {sum}")));
                }
            }
            let fingerprint =
                row.fingerprint.try_into().map_err(|_| damaged("run.fingerprint has not 32 bytes"))?;
            Ok(RunRow {
                id: run_id(row.id)?,
                plan,
                jobs: within("run.jobs", row.jobs)?,
                fingerprint: Fingerprint(fingerprint),
                seed: row.seed.cast_unsigned(),
                priority: within("run.priority", row.priority)?,
                replicate_ppm: within("run.replicate_ppm", row.replicate_ppm)?,
                state: row.state.parse().map_err(|_| damaged(format!("run.state is {}", row.state)))?,
                reason: row.reason,
                created_at: row.created_at,
                started_at: row.started_at,
                finished_at: row.finished_at,
                outcome: stored,
                recounts: Recounts {
                    agreed: within("run.recounts_agreed", row.recounts_agreed)?,
                    differing: within("run.recounts_differing", row.recounts_differing)?,
                    elapsed_us: within("run.recounts_us", row.recounts_us)?,
                },
            })
        })
        .collect()
}

/// Changes what a run is doing; its total, if it had one, is withdrawn.
pub(super) async fn update_run_state(
    db: &mut SqliteConnection,
    run: RunId,
    state: RunState,
    reason: Option<&str>,
) -> Result<(), Error> {
    assert_ne!(state, RunState::Done, "a run is done by finish_run");
    let (run, state) = (column(run.get()), state.name());
    let done = query!(
        "UPDATE run SET state = ?, reason = ?, finished_at = NULL, outcome = NULL, recounts_agreed = 0 WHERE id = ?",
        state,
        reason,
        run
    )
    .execute(db)
    .await?;
    all_written(&done, 1, "the run exists")
}

/// Gives a run its total. The database itself makes sure that no job is open.
pub(super) async fn finish_run(
    db: &mut SqliteConnection,
    run: RunId,
    outcome: &Outcome,
    now: WallTime,
) -> Result<(), Error> {
    let id = column(run.get());
    assert_eq!(outcome.totals.solutions, 0, "a total has its solutions sorted into orbits");
    let outcome = json(outcome);
    let done = query!(
        "UPDATE run SET state = 'done', finished_at = ?1, outcome = ?2,
                        recounts_agreed = (SELECT coalesce(sum(recounted % 254), 0) FROM job WHERE run = ?3)
         WHERE id = ?3 AND state IN ('active', 'paused')
           AND NOT EXISTS (SELECT 1 FROM job WHERE run = ?3 AND state <> 2)",
        now,
        outcome,
        id
    )
    .execute(db)
    .await?;
    all_written(&done, 1, "a run that gets its total was open, and all its jobs are done")
}
