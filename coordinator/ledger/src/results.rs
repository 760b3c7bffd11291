//! Results: stored, summed, listed.

use std::collections::HashMap;
use std::ops::Range;

use nqueens_evidence::line::{LedgerResult, OtherLine};
use nqueens_model::id::{JobId, LeaseToken, RunId};
use nqueens_model::message::EncodedJob;
use nqueens_model::operator::WallTime;
use nqueens_scheduler::{JobState, JudgedResult, Sums};
use sqlx::sqlite::{SqliteConnection, SqlitePool};
use sqlx::{query, query_scalar};

use crate::error::{Error, damaged};
use crate::{ROWS_MAX, all_written, column, encoded_job, json, json_of_ids, object, rows_of, run_id, within};

/// Sums over the results of every run, in 128 bits, checked; and how its checks stand. Its jobs' states are not in them.
pub async fn stored_sums(db: &SqlitePool) -> Result<HashMap<RunId, Sums>, Error> {
    let mut sums = HashMap::<_, Sums>::new();
    let mut last = 0;
    loop {
        let text = query_scalar!(
            r#"SELECT json_group_array(json_array(id, run, json_array(count2, count4, count8, solutions),
                                                          json_array(states, elapsed_us, coalesce(cpu_us, elapsed_us),
                                                                     estimate, stands)))
                      AS "rows!: String"
               FROM (SELECT result.*, job.states AS estimate, verdict = 'accepted' AND job.state = 2 AS stands
                     FROM result JOIN job ON job.run = result.run AND job.number = result.job
                     WHERE id > ?1 ORDER BY id LIMIT ?2)"#,
            last,
            ROWS_MAX
        )
        .fetch_one(db)
        .await?;
        let rows: Vec<(i64, i64, [u64; 4], [u64; 5])> = rows_of(&text)?;
        if rows.is_empty() {
            break;
        }
        for (id, run, counts, [states, elapsed_us, cpu_us, estimate, stands]) in rows {
            // A damaged table may lead back to where it came from, for ever.
            if id <= last {
                return Err(damaged(format!("result {id} stands after result {last}")));
            }
            last = id;
            let sum = sums.entry(run_id(run)?).or_default();
            sum.cpu_us += u128::from(cpu_us);
            if stands != 0 {
                sum.accepted.add(estimate, counts.into(), states, elapsed_us, cpu_us).map_err(damaged)?;
            }
        }
    }
    for (run, checks) in super::checks::check_sums(db).await? {
        sums.entry(run).or_default().checks = checks;
    }
    Ok(sums)
}

/// Marks the accepted results of these jobs voided.
pub(super) async fn void_results(db: &mut SqliteConnection, jobs: &[JobId]) -> Result<(), Error> {
    let jobs = json_of_ids(jobs.iter().copied());
    query!(
        "UPDATE result SET verdict = 'voided' FROM jsonb_each(?) AS job
         WHERE result.run = job.value ->> 0 AND result.job = job.value ->> 1 AND verdict = 'accepted'",
        jobs
    )
    .execute(db)
    .await?;
    Ok(())
}

pub(super) async fn insert_results(
    db: &mut SqliteConnection,
    results: &[JudgedResult],
    now: WallTime,
) -> Result<(), Error> {
    let rows = results.iter().map(|(worker, result, verdict)| {
        let LeaseToken { job, epoch, .. } = result.token;
        let lease = (job.run.get(), job.number, epoch.get(), worker.get());
        (
            lease,
            result.kernel.as_str(),
            <[u64; 4]>::from(result.counts),
            result.states,
            result.elapsed_us,
            verdict.name(),
            (!result.parts.is_empty())
                .then(|| result.parts.iter().copied().map(<[u64; 4]>::from).collect::<Vec<_>>()),
            result.cpu_us,
        )
    });
    let rows = json(&rows.collect::<Vec<_>>());
    let done = query!(
        "INSERT INTO result (run, job, epoch, worker, kernel, count2, count4, count8, solutions, states,
                             elapsed_us, verdict, parts, cpu_us, reported_at)
         SELECT value ->> '$[0][0]', value ->> '$[0][1]', value ->> '$[0][2]', value ->> '$[0][3]',
                value ->> 1, value ->> '$[2][0]', value ->> '$[2][1]', value ->> '$[2][2]', value ->> '$[2][3]',
                value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, ?2
         FROM jsonb_each(?1)",
        rows,
        now
    )
    .execute(db)
    .await?;
    all_written(&done, results.len(), "every result is stored")
}

/// One job of a run with its accepted result, if it has one.
#[derive(Clone, Debug)]
pub struct LedgerRow {
    pub number: u32,
    pub job: EncodedJob,
    pub state: JobState,
    pub accepted: Option<LedgerResult>,
    /// Parts of the job that the result tells of; 1 without one, and once the job was recounted whole.
    pub parts: u32,
    /// Whether the coordinator has counted all of it, though it was not drawn.
    pub is_own: bool,
}

/// Up to 10,000 jobs of a run from number `first` on, with their accepted results; empty past the last.
pub async fn rows(db: &SqlitePool, run: RunId, first: u32) -> Result<Vec<LedgerRow>, Error> {
    let id = column(run.get());
    let rows = query!(
        r#"SELECT job.number AS "number!", run.n AS "n!", job.class, job.bound1, job.prefixes, job.state, object AS "object?: String",
                  iif(recounted = 255, 1, coalesce(parts, 1)) AS "parts!: u32", recounted = 254 AS "is_own!: bool"
           FROM job JOIN run ON run.id = job.run
           LEFT JOIN ledger_result AS result
             ON result.run = job.run AND result.job = job.number AND result.verdict = 'accepted'
           WHERE job.run = ?1 AND job.number >= ?2 AND job.number < ?2 + ?3 ORDER BY job.number"#,
        id,
        first,
        ROWS_MAX
    )
    .fetch_all(db)
    .await?;
    let mut ledger = Vec::with_capacity(rows.len());
    for row in rows {
        let number = within("job.number", row.number)?;
        // Whoever asks for the next rows gets on.
        if ledger.last().map_or(first, |last: &LedgerRow| last.number + 1) > number {
            return Err(damaged(format!("job {number} of run {run} stands in the wrong place")));
        }
        ledger.push(LedgerRow {
            number,
            job: encoded_job(row.n, &row.class, row.bound1, row.prefixes)?,
            state: JobState::from_repr(within("job.state", row.state)?)
                .ok_or_else(|| damaged("job.state is out of range"))?,
            parts: row.parts,
            is_own: row.is_own,
            accepted: row.object.as_deref().map(object).transpose()?,
        });
    }
    Ok(ledger)
}

/// The results of some jobs of a run that don't stand, by job and in the order of their commits.
pub async fn others(db: &SqlitePool, run: RunId, jobs: Range<u32>) -> Result<Vec<OtherLine>, Error> {
    let run = column(run.get());
    let rows = query_scalar!(
        r#"SELECT json_object('number', job, 'verdict', verdict, 'result', json(object)) AS "line!: String"
           FROM ledger_result
           WHERE run = ?1 AND job >= ?2 AND job < ?3 AND verdict <> 'accepted' ORDER BY job, id"#,
        run,
        jobs.start,
        jobs.end
    )
    .fetch_all(db)
    .await?;
    rows.iter().map(|line| object(line)).collect()
}
