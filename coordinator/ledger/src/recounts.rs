//! What the coordinator has counted itself.

use nqueens_evidence::sample::Claim;
use nqueens_kernel::counts::Counts;
use nqueens_kernel::engine::Kernel;
use nqueens_model::id::{JobId, RunId, WorkerId};
use nqueens_model::operator::WallTime;
use nqueens_scheduler::Recount;
use sqlx::query;
use sqlx::sqlite::{SqliteConnection, SqlitePool};

use crate::error::{Error, damaged};
use crate::{all, column, counts, encoded_job, parsed, rows_of, within, worker_id};

/// A job to be counted by the coordinator.
pub struct Subject {
    /// The job, and what its accepted result says; nothing if it has none.
    pub claim: Claim,
    pub states: u64,
    /// Worker and lease of the accepted result.
    pub accepted: Option<(WorkerId, u32)>,
    /// What that says of each part; empty if it does not tell.
    pub parts: Vec<Counts>,
    /// The second counts of that result, in the order of their commits.
    pub seconds: Vec<SecondCount>,
}

/// A second count of the result that stands.
pub struct SecondCount {
    pub worker: WorkerId,
    pub counts: Counts,
    /// And of each part; empty if it does not tell.
    pub parts: Vec<Counts>,
}

pub async fn subject(db: &SqlitePool, id: JobId) -> Result<Subject, Error> {
    let (run, number) = (column(id.run.get()), id.number);
    let row = query!(
        r#"SELECT n, class, bound1, prefixes, job.states, result.worker AS "worker?", result.epoch AS "epoch?",
                  kernel AS "kernel?", result.count2 AS "count2?", result.count4 AS "count4?", result.count8 AS "count8?",
                  solutions AS "solutions?", parts, result.id AS "id?"
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
    let accepted = row.worker.zip(row.epoch);
    let accepted = accepted
        .map(|(worker, epoch)| Ok::<_, Error>((worker_id(worker)?, within("result.epoch", epoch)?)))
        .transpose()?;
    let claim = Claim {
        number,
        job: encoded_job(row.n, &row.class, row.bound1, row.prefixes)?,
        counts: counts(found)?,
        kernel: parsed(row.kernel.as_deref().unwrap_or(Kernel::Portable.name()))?,
        worker: accepted.map_or(0, |(worker, _)| worker.get()),
    };
    let seconds = query!(
        "SELECT worker, count2, count4, count8, solutions, parts FROM result
         WHERE run = ?1 AND job = ?2 AND verdict <> 'accepted' AND verdict <> 'voided' AND id > ?3 ORDER BY id",
        run,
        number,
        row.id
    );
    let seconds = seconds.fetch_all(db).await?.into_iter().map(|row| {
        let counts = counts([row.count2, row.count4, row.count8, row.solutions])?;
        let (worker, parts) = (worker_id(row.worker)?, parts(row.parts.as_deref())?);
        Ok::<_, Error>(SecondCount { worker, counts, parts })
    });
    let seconds = seconds.collect::<Result<_, _>>()?;
    let (states, parts) = (within("job.states", row.states)?, parts(row.parts.as_deref())?);
    Ok(Subject { claim, states, accepted, parts, seconds })
}

fn parts(text: Option<&str>) -> Result<Vec<Counts>, Error> {
    let parts = text.map_or_else(|| Ok(Vec::new()), rows_of::<[u64; 4]>)?;
    Ok(parts.into_iter().map(Counts::from).collect())
}

pub(super) async fn add_recount_time(
    db: &mut SqliteConnection,
    run: RunId,
    elapsed_us: u64,
) -> Result<(), Error> {
    let (run, elapsed_us) = (column(run.get()), column(elapsed_us));
    query!("UPDATE run SET recounts_us = recounts_us + ? WHERE id = ?", elapsed_us, run).execute(db).await?;
    Ok(())
}

pub(super) async fn insert_recount(
    db: &mut SqliteConnection,
    recount: &Recount,
    now: WallTime,
) -> Result<(), Error> {
    let Recount { job, part, kernel, agrees, elapsed_us } = *recount;
    let (run, kernel, elapsed_us) = (column(job.run.get()), kernel.to_string(), column(elapsed_us));
    query!("UPDATE run SET recounts_differing = recounts_differing + 1 - ? WHERE id = ?", agrees, run)
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
