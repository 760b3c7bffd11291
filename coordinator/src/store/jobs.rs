//! Jobs: what they are, where they stand, who has them.

use std::collections::HashMap;

use nqueens_kernel::counts::Counts;
use nqueens_kernel::job::{Job, Weight};
use nqueens_model::id::{Incarnation, JobId, LeaseToken, RunId, WorkerId};
use nqueens_model::message::EncodedJob;
use sqlx::sqlite::{SqliteConnection, SqlitePool};
use sqlx::{query, query_scalar};

use super::{
    ROWS_MAX, all, column, counts, encoded_job, job_id, json, json_of_ids, parsed, rows_of, token, within,
    worker_id,
};
use crate::dispatch::{Accepted, JobState, Slot};
use crate::error::{Error, damaged};

/// Writes the jobs of a plan from number `first` on.
pub(crate) async fn insert_jobs(
    db: &mut SqliteConnection,
    run: RunId,
    first: u32,
    jobs: &[(Job, Weight)],
) -> Result<(), Error> {
    let row = |(number, (job, weight)): (u32, &(Job, Weight))| {
        let Counts { count2, count4, count8, solutions } = weight.counts_max;
        let prefixes = hex(&job.encode());
        (
            number,
            job.class().name(),
            job.bound1(),
            prefixes,
            weight.states,
            (count2, count4, count8, solutions),
        )
    };
    let rows = json(&(first..).zip(jobs).map(row).collect::<Vec<_>>());
    let run = column(run.get());
    let done = query!(
        "INSERT INTO job (run, number, class, bound1, prefixes, states, count2_max, count4_max, count8_max, solutions_max)
         SELECT ?, value ->> 0, value ->> 1, value ->> 2, unhex(value ->> 3), value ->> 4, value ->> '$[5][0]',
                value ->> '$[5][1]', value ->> '$[5][2]', value ->> '$[5][3]'
         FROM jsonb_each(?)",
        run,
        rows
    )
    .execute(db)
    .await?;
    assert_eq!(done.rows_affected(), jobs.len() as u64, "every job of the batch is stored");
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes it");
        text
    })
}

/// The slots of a run's jobs, by number.
pub(crate) async fn slots(db: &SqlitePool, run: RunId, jobs: u32) -> Result<Vec<Slot>, Error> {
    let id = column(run.get());
    let mut slots = Vec::with_capacity(jobs as usize);
    for first in (0..jobs).step_by(ROWS_MAX as usize) {
        let text = query_scalar!(
            r#"SELECT json_group_array(json_array(number, state, epoch, failures, lapses, states)) AS "rows!: String"
               FROM (SELECT * FROM job WHERE run = ?1 AND number >= ?2 AND number < ?2 + ?3 ORDER BY number)"#,
            id,
            first,
            ROWS_MAX
        )
        .fetch_one(db)
        .await?;
        for (number, state, epoch, failures, lapses, estimate) in
            rows_of::<(u32, i64, u32, u16, u16, u64)>(&text)?
        {
            if number as usize != slots.len() {
                return Err(damaged(format!(
                    "job {number} of run {run} stands where {} should",
                    slots.len()
                )));
            }
            let state =
                JobState::from_stored(state).ok_or_else(|| damaged(format!("job.state is {state}")))?;
            slots.push(Slot { state, epoch, failures, lapses, estimate });
        }
    }
    if slots.len() != jobs as usize {
        return Err(damaged(format!("run {run} has {} jobs instead of {jobs}", slots.len())));
    }
    Ok(slots)
}

/// All jobs that were leased when the coordinator last stopped, with their holders.
pub(crate) async fn leases(db: &SqlitePool) -> Result<Vec<(WorkerId, LeaseToken)>, Error> {
    let rows = query!(
        r#"SELECT run, number, epoch, worker AS "worker!", incarnation AS "incarnation!" FROM job WHERE state = 1"#
    )
    .fetch_all(db)
    .await?;
    rows.into_iter()
        .map(|row| Ok((worker_id(row.worker)?, token(row.run, row.number, row.epoch, row.incarnation)?)))
        .collect()
}

/// What a result is judged by: the most that its job can count, and the result that stands for the job already.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportedJob {
    pub(crate) counts_max: Counts,
    pub(crate) accepted: Option<Accepted>,
}

/// Looks up what results are judged by; jobs that do not exist are left out.
pub(crate) async fn reported_jobs(
    db: &mut SqliteConnection,
    ids: &[JobId],
) -> Result<HashMap<JobId, ReportedJob>, Error> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let wanted = json_of_ids(ids.iter().copied());
    let rows = query!(
        r#"SELECT job.run AS "run!", job.number AS "number!", job.count2_max AS "count2_max!",
                  job.count4_max AS "count4_max!", job.count8_max AS "count8_max!", job.solutions_max AS "solutions_max!",
                  result.worker AS "worker?", result.epoch AS "epoch?", result.incarnation AS "incarnation?",
                  result.count2 AS "count2?", result.count4 AS "count4?", result.count8 AS "count8?",
                  result.solutions AS "solutions?", result.kernel AS "kernel?", result.states AS "states?", result.elapsed_us AS "elapsed_us?"
           FROM jsonb_each(?) AS wanted
           JOIN job ON job.run = wanted.value ->> 0 AND job.number = wanted.value ->> 1
           LEFT JOIN result ON result.run = job.run AND result.job = job.number AND result.verdict = 'accepted'"#,
        wanted
    )
    .fetch_all(db)
    .await?;
    let mut reported = HashMap::with_capacity(rows.len());
    for row in rows {
        let lease = row.worker.zip(row.epoch).zip(row.incarnation);
        let work = row.states.zip(row.elapsed_us);
        let found = all([row.count2, row.count4, row.count8, row.solutions]);
        let accepted = match lease.zip(found).zip(work).zip(row.kernel) {
            None => None,
            Some((((((worker, epoch), incarnation), found), (states, elapsed_us)), kernel)) => {
                let LeaseToken { epoch, incarnation, .. } = token(row.run, row.number, epoch, incarnation)?;
                Some(Accepted {
                    worker: worker_id(worker)?,
                    epoch,
                    incarnation,
                    kernel: parsed(&kernel)?,
                    counts: counts(found)?,
                    states: within("result.states", states)?,
                    elapsed_us: within("result.elapsed_us", elapsed_us)?,
                })
            }
        };
        let counts_max = counts([row.count2_max, row.count4_max, row.count8_max, row.solutions_max])?;
        reported.insert(job_id(row.run, row.number)?, ReportedJob { counts_max, accepted });
    }
    Ok(reported)
}

/// Looks up what jobs are, and the most that each can count; those that do not exist are left out.
pub(crate) async fn encoded_jobs(
    db: &mut SqliteConnection,
    ids: impl Iterator<Item = JobId>,
) -> Result<HashMap<JobId, (EncodedJob, Counts)>, Error> {
    let wanted = json_of_ids(ids);
    let rows = query!(
        r#"SELECT job.run AS "run!", job.number AS "number!", run.n AS "n!", job.class AS "class!",
                  job.bound1 AS "bound1!", job.prefixes AS "prefixes!", job.count2_max AS "count2_max!",
                  job.count4_max AS "count4_max!", job.count8_max AS "count8_max!", job.solutions_max AS "solutions_max!"
           FROM jsonb_each(?) AS wanted
           JOIN job ON job.run = wanted.value ->> 0 AND job.number = wanted.value ->> 1
           JOIN run ON run.id = job.run"#,
        wanted
    )
    .fetch_all(db)
    .await?;
    let mut jobs = HashMap::with_capacity(rows.len());
    for row in rows {
        let counts_max = counts([row.count2_max, row.count4_max, row.count8_max, row.solutions_max])?;
        let job = encoded_job(row.n, &row.class, row.bound1, row.prefixes)?;
        jobs.insert(job_id(row.run, row.number)?, (job, counts_max));
    }
    Ok(jobs)
}

/// A job's slot, and the lease on it.
pub(crate) type ChangedJob = (JobId, Slot, Option<(WorkerId, Incarnation)>);

/// Writes what became of jobs.
pub(crate) async fn update_jobs(db: &mut SqliteConnection, changes: &[ChangedJob]) -> Result<(), Error> {
    let row = |(id, slot, lease): &ChangedJob| {
        let lease = lease.map(|(worker, incarnation)| (worker.get(), incarnation.get()));
        let (run, state) = (id.run.get(), slot.state as u8);
        (
            run,
            id.number,
            state,
            slot.epoch,
            slot.failures,
            slot.lapses,
            lease.map(|l| l.0),
            lease.map(|l| l.1),
        )
    };
    let rows = json(&changes.iter().map(row).collect::<Vec<_>>());
    let done = query!(
        "UPDATE job SET state = new.state, epoch = new.epoch, failures = new.failures, lapses = new.lapses,
                        worker = new.worker, incarnation = new.incarnation
         FROM (SELECT value ->> 0 AS run, value ->> 1 AS number, value ->> 2 AS state, value ->> 3 AS epoch,
                      value ->> 4 AS failures, value ->> 5 AS lapses, value ->> 6 AS worker, value ->> 7 AS incarnation
               FROM jsonb_each(?)) AS new
         WHERE job.run = new.run AND job.number = new.number AND job.epoch <= new.epoch",
        rows
    )
    .execute(db)
    .await?;
    assert_eq!(
        done.rows_affected(),
        changes.len() as u64,
        "every changed job is there, and no epoch goes back"
    );
    Ok(())
}
