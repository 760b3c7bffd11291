//! Runs: planned, begun, restored, ended.

use std::collections::BTreeSet;

use nqueens_evidence::total::{of_cells, outcome};
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::cells::Cells;
use nqueens_kernel::counts::Totals;
use nqueens_kernel::plan::{Fingerprint, Plan, PlanKind};
use nqueens_model::id::{JobId, RunId};
use nqueens_model::operator::{Grounds, Outcome, Recounts, RunState, TotalEstimate, WallTime};
use nqueens_scheduler::RunSettings;
use sqlx::sqlite::{SqliteConnection, SqliteExecutor};
use sqlx::{query, query_as, query_scalar};

use crate::error::{Error, damaged};
use crate::{ROWS_MAX, all_written, column, parsed, run_id, within};

/// A run's own row.
#[derive(Clone, Debug)]
pub struct RunRow {
    /// Its name.
    pub id: RunId,
    /// N, the kind of plan and the size of its jobs.
    pub plan: Plan,
    /// Number of jobs.
    pub jobs: u32,
    /// Of the plan.
    pub fingerprint: Fingerprint,
    /// Fixes the order of the jobs.
    pub seed: u64,
    /// Among active runs, higher goes first.
    pub priority: i32,
    /// This share of its results is counted twice, in millionths.
    pub replicate_ppm: u32,
    /// What it is doing.
    pub state: RunState,
    /// Why it failed, if it did.
    pub reason: Option<String>,
    /// When it was submitted.
    pub created_at: WallTime,
    /// When its first job was leased.
    pub started_at: Option<WallTime>,
    /// When it was done.
    pub finished_at: Option<WallTime>,
    /// The result, once it is done.
    pub outcome: Option<Outcome>,
    /// What the coordinator has counted itself.
    pub recounts: Recounts,
}

impl RunRow {
    /// What it was to be.
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

struct RunRecord {
    id: i64,
    n: i64,
    plan: String,
    cells: Option<String>,
    states_per_job: i64,
    jobs: i64,
    fingerprint: Vec<u8>,
    seed: i64,
    priority: i64,
    replicate_ppm: i64,
    state: String,
    reason: Option<String>,
    created_at: i64,
    started_at: Option<i64>,
    finished_at: Option<i64>,
    count2: Option<String>,
    count4: Option<String>,
    count8: Option<String>,
    total: Option<String>,
    checked: Option<String>,
    estimate_seed: Option<i64>,
    estimate_strata: Option<i64>,
    estimate_value: Option<String>,
    estimate_reach: Option<String>,
    checks_wanted: Option<i64>,
    recounts_wanted: Option<i64>,
    recounts_agreed: i64,
    recounts_differing: i64,
    recounts_us: i64,
}

impl TryFrom<RunRecord> for RunRow {
    type Error = Error;

    fn try_from(row: RunRecord) -> Result<Self, Error> {
        let plan = plan(row.n, &row.plan, row.cells.as_deref(), row.states_per_job)?;
        let grounds = grounds(&row)?;
        let outcome = match (row.count2, row.count4, row.count8, row.total, row.checked.as_deref()) {
            (Some(count2), Some(count4), Some(count8), Some(total), Some(checked)) => {
                let (count2, count4, count8) = (parsed(&count2)?, parsed(&count4)?, parsed(&count8)?);
                let totals = Totals { count2, count4, count8, solutions: 0 };
                let stored = parsed(&total)?;
                let outcome = match plan.cells() {
                    None => outcome(plan.n(), totals, grounds).map_err(damaged)?,
                    Some(_) => of_cells(stored, grounds),
                };
                if (stored, totals, checked) != (outcome.total, outcome.totals, outcome.checked.name()) {
                    return Err(damaged(format!(
                        "a total of {total} where the counts come to {}",
                        outcome.total
                    )));
                }
                Some(outcome)
            }
            _ => None,
        };
        let fingerprint =
            row.fingerprint.try_into().map_err(|_| damaged("run.fingerprint has not 32 bytes"))?;
        Ok(Self {
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
            outcome,
            recounts: Recounts {
                agreed: within("run.recounts_agreed", row.recounts_agreed)?,
                differing: within("run.recounts_differing", row.recounts_differing)?,
                elapsed_us: within("run.recounts_us", row.recounts_us)?,
            },
        })
    }
}

/// What confirms a run's total where no published count does.
fn grounds(row: &RunRecord) -> Result<Option<Grounds>, Error> {
    let wanted = row.checks_wanted.zip(row.recounts_wanted);
    let parts = (row.estimate_seed, row.estimate_strata, wanted);
    let texts = (row.estimate_value.as_deref(), row.estimate_reach.as_deref());
    match (parts, texts) {
        ((Some(seed), Some(strata), Some((checks, recounts))), (Some(value), Some(reach))) => {
            let strata = within("run.estimate_strata", strata)?;
            let (value, reach) = (parsed(value)?, parsed(reach)?);
            let estimate = TotalEstimate { seed: seed.cast_unsigned(), strata, value, reach };
            let checks_wanted = within("run.checks_wanted", checks)?;
            let recounts_wanted = within("run.recounts_wanted", recounts)?;
            Ok(Some(Grounds { estimate, checks_wanted, recounts_wanted }))
        }
        ((None, None, None), (None, None)) => Ok(None),
        _ => Err(damaged("a run has an estimate in part")),
    }
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
    let rows = query_as!(
        RunRecord,
        r#"SELECT id AS "id!", n, plan, cells, states_per_job, jobs AS "jobs!", fingerprint AS "fingerprint!", seed,
                  priority, replicate_ppm, state, reason, created_at, started_at, finished_at, count2, count4, count8, total,
                  checked, estimate_seed, estimate_strata, estimate_value, estimate_reach, checks_wanted, recounts_wanted,
                  recounts_agreed, recounts_differing, recounts_us
           FROM run WHERE state <> 'planning' ORDER BY created_at, id"#
    )
    .fetch_all(db)
    .await?;
    rows.into_iter().map(RunRow::try_from).collect()
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
        "UPDATE run SET state = ?, reason = ?, finished_at = NULL, count2 = NULL, count4 = NULL, count8 = NULL,
                        total = NULL, checked = NULL, estimate_seed = NULL, estimate_strata = NULL, estimate_value = NULL,
                        estimate_reach = NULL, checks_wanted = NULL, recounts_wanted = NULL, recounts_agreed = 0
         WHERE id = ?",
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
    let Totals { count2, count4, count8, solutions: 0 } = outcome.totals else {
        panic!("a total has its solutions sorted into orbits")
    };
    let [count2, count4, count8, total] =
        [count2, count4, count8, outcome.total].map(|count| count.to_string());
    let checked = outcome.checked.name();
    let estimate = outcome.grounds.map(|grounds| grounds.estimate);
    let seed = estimate.map(|estimate| estimate.seed.cast_signed());
    let strata = estimate.map(|estimate| estimate.strata);
    let value = estimate.map(|estimate| estimate.value.to_string());
    let reach = estimate.map(|estimate| estimate.reach.to_string());
    let checks_wanted = outcome.grounds.map(|grounds| grounds.checks_wanted);
    let recounts_wanted = outcome.grounds.map(|grounds| grounds.recounts_wanted);
    let done = query!(
        "UPDATE run SET state = 'done', finished_at = ?1, count2 = ?2, count4 = ?3, count8 = ?4, total = ?5,
                        checked = ?6, estimate_seed = ?8, estimate_strata = ?9, estimate_value = ?10,
                        estimate_reach = ?11, checks_wanted = ?12, recounts_wanted = ?13,
                        recounts_agreed = (SELECT coalesce(sum(recounted % 254), 0) FROM job WHERE run = ?7)
         WHERE id = ?7 AND state IN ('active', 'paused')
           AND NOT EXISTS (SELECT 1 FROM job WHERE run = ?7 AND state <> 2)",
        now,
        count2,
        count4,
        count8,
        total,
        checked,
        id,
        seed,
        strata,
        value,
        reach,
        checks_wanted,
        recounts_wanted
    )
    .execute(db)
    .await?;
    all_written(&done, 1, "a run that gets its total was open, and all its jobs are done")
}
