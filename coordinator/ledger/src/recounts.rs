//! What the coordinator has counted itself.

use nqueens_evidence::sample::Claim;
use nqueens_kernel::counts::Counts;
use nqueens_kernel::engine::Kernel;
use nqueens_model::id::{JobId, LeaseToken, RunId};
use nqueens_model::operator::WallTime;
use nqueens_scheduler::request::Recounted;
use sqlx::query;
use sqlx::sqlite::{SqliteConnection, SqlitePool};

use crate::error::{Error, damaged};
use crate::{ROWS_MAX, all, column, counts, encoded_job, parsed, rows_of, token, within};

/// The accepted result of a job.
pub struct AcceptedResult {
    /// Its lease.
    pub token: LeaseToken,
    /// The job, and what was found.
    pub claim: Claim,
    /// Estimated states of the job.
    pub states: u64,
    /// What was found in each part; empty if the result does not tell.
    pub parts: Vec<Counts>,
}

/// The accepted result of the first job from a number on that a worker has counted; `None` if there is none nearby.
pub async fn accepted_from(db: &SqlitePool, run: RunId, first: u32) -> Result<Option<AcceptedResult>, Error> {
    let run = column(run.get());
    let row = query!(
        r#"SELECT number, n, class, bound1, prefixes, job.states, result.epoch, result.incarnation, result.worker, kernel,
                  result.count2, result.count4, result.count8, solutions, parts
           FROM job JOIN run ON run.id = job.run
           JOIN result ON result.run = job.run AND result.job = number AND verdict = 'accepted'
           JOIN worker ON worker.id = result.worker AND credential <> '(the coordinator)'
           WHERE job.run = ?1 AND number >= ?2 AND number < ?2 + ?3 AND job.state = 2
           ORDER BY number LIMIT 1"#,
        run,
        first,
        ROWS_MAX
    )
    .fetch_optional(db)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let claim = Claim {
        number: within("job.number", row.number)?,
        job: encoded_job(row.n, &row.class, row.bound1, row.prefixes)?,
        counts: counts([row.count2, row.count4, row.count8, row.solutions])?,
        kernel: parsed(&row.kernel)?,
        worker: within("result.worker", row.worker)?,
    };
    let parts = row.parts.as_deref().map_or_else(|| Ok(Vec::new()), rows_of::<[u64; 4]>)?;
    Ok(Some(AcceptedResult {
        token: token(run, row.number, row.epoch, row.incarnation)?,
        claim,
        states: within("job.states", row.states)?,
        parts: parts.into_iter().map(Counts::from).collect(),
    }))
}

/// A job with its estimated work and its accepted result. Where it has none, the result is taken for one of nothing.
pub async fn claim(db: &SqlitePool, id: JobId) -> Result<(Claim, u64), Error> {
    let (run, number) = (column(id.run.get()), id.number);
    let row = query!(
        r#"SELECT n, class, bound1, prefixes, job.states, result.worker AS "worker?", kernel AS "kernel?",
                  result.count2 AS "count2?", result.count4 AS "count4?", result.count8 AS "count8?",
                  solutions AS "solutions?"
           FROM job JOIN run ON run.id = job.run
           LEFT JOIN result ON result.run = job.run AND result.job = number AND verdict = 'accepted'
           WHERE job.run = ?1 AND number = ?2"#,
        run,
        number
    )
    .fetch_optional(db)
    .await?;
    let row = row.ok_or_else(|| damaged(format!("job {id} is gone")))?;
    let found = all([row.count2, row.count4, row.count8, row.solutions]).unwrap_or_default();
    let kernel = row.kernel.unwrap_or_else(|| Kernel::Portable.name().to_owned());
    let claim = Claim {
        number,
        job: encoded_job(row.n, &row.class, row.bound1, row.prefixes)?,
        counts: counts(found)?,
        kernel: parsed(&kernel)?,
        worker: within("result.worker", row.worker.unwrap_or_default())?,
    };
    Ok((claim, within("job.states", row.states)?))
}

/// Adds to the ledger what the coordinator has counted itself.
pub(super) async fn insert_recount(
    db: &mut SqliteConnection,
    recounted: &Recounted,
    now: WallTime,
) -> Result<(), Error> {
    let Recounted { job, part, kernel, agrees, elapsed_us } = *recounted;
    let (run, kernel, elapsed_us) = (column(job.run.get()), kernel.to_string(), column(elapsed_us));
    query!(
        "UPDATE run SET recounts_differing = recounts_differing + 1 - ?4, recounts_us = recounts_us + ?5,
                        recounts_agreed = recounts_agreed + (?4 AND NOT EXISTS (
                            SELECT 1 FROM recount WHERE run = ?1 AND job = ?2 AND part IS ?3 AND agrees))
         WHERE id = ?1",
        run,
        job.number,
        part,
        agrees,
        elapsed_us
    )
    .execute(&mut *db)
    .await?;
    query!(
        "INSERT INTO recount (run, job, part, kernel, agrees, elapsed_us, counted_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
        run,
        job.number,
        part,
        kernel,
        agrees,
        elapsed_us,
        now
    )
    .execute(db)
    .await?;
    Ok(())
}
