//! Jobs: their content, their states, their leases.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use nqueens_kernel::job::{Job, Weight};
use nqueens_model::id::{JobId, RunId, WorkerId};
use nqueens_model::message::EncodedJob;
use nqueens_model::operator::Blamed;
use nqueens_scheduler::{Accepted, ChangedJob, JobState, JobStatus, Loaded, Needs, StoredJob};
use sqlx::sqlite::{SqliteConnection, SqliteExecutor, SqlitePool};
use sqlx::{query, query_scalar};

use crate::error::{Error, damaged};
use crate::{
    ROWS_MAX, all_written, column, counts, encoded_job, job_id, json, json_of_ids, parsed, rows_of, within,
    worker_id,
};

/// Writes the jobs of a plan from number `first` on.
pub(super) async fn insert_jobs(
    db: &mut SqliteConnection,
    run: RunId,
    first: u32,
    jobs: &[(Job, Weight)],
) -> Result<(), Error> {
    let row = |(number, (job, weight)): (u32, &(Job, Weight))| {
        let prefixes = hex::encode(job.encode());
        (
            number,
            job.class().name(),
            job.bound1(),
            prefixes,
            weight.states,
            <[u64; 4]>::from(weight.counts_max),
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
    all_written(&done, jobs.len(), "every job of a plan is stored")
}

pub struct PlannedJob {
    pub job: EncodedJob,
    pub weight: Weight,
}

/// These jobs, as they were planned; those that do not exist are left out.
pub async fn planned_jobs(
    db: &SqlitePool,
    ids: impl Iterator<Item = JobId>,
) -> Result<BTreeMap<JobId, PlannedJob>, Error> {
    let wanted = json_of_ids(ids);
    let rows = query!(
        r#"SELECT job.run AS "run!", job.number AS "number!", run.n AS "n!", job.class AS "class!", job.bound1 AS "bound1!",
                  job.prefixes AS "prefixes!", job.states AS "states!", count2_max AS "count2_max!",
                  count4_max AS "count4_max!", count8_max AS "count8_max!", solutions_max AS "solutions_max!"
           FROM jsonb_each(?) AS wanted
           JOIN job ON job.run = wanted.value ->> 0 AND job.number = wanted.value ->> 1
           JOIN run ON run.id = job.run"#,
        wanted
    )
    .fetch_all(db)
    .await?;
    rows.into_iter()
        .map(|row| {
            let counts_max = counts([row.count2_max, row.count4_max, row.count8_max, row.solutions_max])?;
            let job = encoded_job(row.n, &row.class, row.bound1, row.prefixes)?;
            let weight = Weight { states: within("job.states", row.states)?, counts_max };
            Ok((job_id(row.run, row.number)?, PlannedJob { job, weight }))
        })
        .collect()
}

/// The slots of a run's jobs, by number.
pub async fn slots(db: &SqlitePool, run: RunId, jobs: u32) -> Result<Vec<JobStatus>, Error> {
    let id = column(run.get());
    let mut slots = Vec::with_capacity(jobs as usize);
    for first in (0..jobs).step_by(ROWS_MAX as usize) {
        let text = query_scalar!(
            r#"SELECT json_group_array(json_array(number, state, epoch, failures, lapses, states, confirmed, recounted)) AS "rows!: String"
               FROM (SELECT * FROM job WHERE run = ?1 AND number >= ?2 AND number < ?2 + ?3 ORDER BY number)"#,
            id,
            first,
            ROWS_MAX
        )
        .fetch_one(db)
        .await?;
        for (number, state, epoch, failures, lapses, estimate, confirmed, recounted) in
            rows_of::<(u32, u8, u32, u16, u16, u64, u8, u8)>(&text)?
        {
            if number as usize != slots.len() {
                return Err(damaged(format!(
                    "job {number} of run {run} stands where {} should",
                    slots.len()
                )));
            }
            let state = JobState::from_repr(state).ok_or_else(|| damaged(format!("job.state is {state}")))?;
            let confirmed = confirmed == 1;
            slots.push(JobStatus { state, epoch, failures, lapses, confirmed, recounted, estimate });
        }
    }
    if slots.len() != jobs as usize {
        return Err(damaged(format!("run {run} has {} jobs instead of {jobs}", slots.len())));
    }
    Ok(slots)
}

/// All jobs that were leased when the coordinator last stopped, with their holders.
pub(super) async fn leases(db: &SqlitePool) -> Result<Vec<(WorkerId, JobId)>, Error> {
    let rows = query!(r#"SELECT run, number, worker AS "worker!" FROM job WHERE state = 1"#);
    let rows = rows.fetch_all(db).await?;
    rows.into_iter().map(|row| Ok((worker_id(row.worker)?, job_id(row.run, row.number)?))).collect()
}

/// A record of the view `accepted_result`: run, job, lease (worker and epoch), engine, counts, states and times.
pub(super) type AcceptedRecord = (i64, i64, [u64; 2], String, [u64; 4], [u64; 3]);

pub async fn load(db: &mut SqliteConnection, needs: &Needs) -> Result<Loaded, Error> {
    let mut jobs = needs.reported.clone();
    for (run, of) in &needs.blamed {
        jobs.extend(blamed_jobs(db, *run, *of).await?);
    }
    if jobs.is_empty() {
        return Ok(Loaded::new());
    }
    let wanted = json_of_ids(jobs.into_iter());
    let text = query_scalar!(
        r#"SELECT json_group_array(json_array(job.run, job.number,
                                              json_array(count2_max, count4_max, count8_max, solutions_max), json(record)))
                  AS "rows!: String"
           FROM jsonb_each(?) AS wanted
           JOIN job ON job.run = wanted.value ->> 0 AND job.number = wanted.value ->> 1
           LEFT JOIN accepted_result AS result ON result.run = job.run AND result.job = job.number"#,
        wanted
    )
    .fetch_one(db)
    .await?;
    let rows = rows_of::<(i64, i64, [u64; 4], Option<AcceptedRecord>)>(&text)?;
    rows.into_iter()
        .map(|(run, number, counts_max, record)| {
            let accepted = record.map(accepted).transpose()?.map(|(_, accepted)| accepted);
            Ok((job_id(run, number)?, StoredJob { counts_max: counts_max.into(), accepted }))
        })
        .collect()
}

pub(super) fn accepted(record: AcceptedRecord) -> Result<(JobId, Accepted), Error> {
    let (run, job, [worker, epoch], kernel, counts, [states, elapsed_us, cpu_us]) = record;
    let missing = || damaged("a result's lease is out of range");
    let accepted = Accepted {
        worker: WorkerId::new(worker).ok_or_else(missing)?,
        epoch: u32::try_from(epoch).ok().and_then(NonZeroU32::new).ok_or_else(missing)?,
        kernel: parsed(&kernel)?,
        counts: counts.into(),
        states,
        elapsed_us,
        cpu_us,
    };
    Ok((job_id(run, job)?, accepted))
}

/// Jobs, of a run or of all, whose latest second count stayed unmade.
pub(super) async fn unmade_checks(
    db: impl SqliteExecutor<'_>,
    run: Option<RunId>,
) -> Result<Vec<JobId>, Error> {
    let id = run.map(|run| column(run.get()));
    let rows = query!(
        r#"SELECT run AS "run!", job AS "job!"
           FROM (SELECT run, job, outcome, max(id) FROM recheck WHERE ?1 IS NULL OR run = ?1 GROUP BY run, job)
           WHERE outcome = 'unmade'"#,
        id
    );
    rows.fetch_all(db).await?.into_iter().map(|row| job_id(row.run, row.job)).collect()
}

/// Jobs of a run, among them all whose accepted result is blamed.
async fn blamed_jobs(db: &mut SqliteConnection, run: RunId, of: Blamed) -> Result<Vec<JobId>, Error> {
    let worker = match of {
        Blamed::Job(number) => return Ok(vec![JobId { run, number }]),
        Blamed::Worker(worker) => column(worker.get()),
        Blamed::Unmade => return unmade_checks(db, Some(run)).await,
    };
    let id = column(run.get());
    let jobs = query_scalar!(
        r#"SELECT job AS "job!" FROM result WHERE run = ? AND verdict = 'accepted' AND worker = ?"#,
        id,
        worker
    )
    .fetch_all(db)
    .await?;
    jobs.into_iter().map(|number| Ok(JobId { run, number: within("result.job", number)? })).collect()
}

pub(super) async fn update_jobs(db: &mut SqliteConnection, changes: &[ChangedJob]) -> Result<(), Error> {
    let row = |(id, slot, lease): &ChangedJob| {
        let (run, state) = (id.run.get(), slot.state as u8);
        (
            run,
            id.number,
            state,
            slot.epoch,
            slot.failures,
            slot.lapses,
            lease.map(WorkerId::get),
            u8::from(slot.confirmed),
            slot.recounted,
        )
    };
    let rows = json(&changes.iter().map(row).collect::<Vec<_>>());
    let done = query!(
        "UPDATE job SET state = new.state, epoch = new.epoch, failures = new.failures, lapses = new.lapses,
                        worker = new.worker, confirmed = new.confirmed, recounted = new.recounted
         FROM (SELECT value ->> 0 AS run, value ->> 1 AS number, value ->> 2 AS state, value ->> 3 AS epoch,
                      value ->> 4 AS failures, value ->> 5 AS lapses, value ->> 6 AS worker, value ->> 7 AS confirmed,
                      value ->> 8 AS recounted
               FROM jsonb_each(?)) AS new
         WHERE job.run = new.run AND job.number = new.number AND job.epoch <= new.epoch",
        rows
    )
    .execute(db)
    .await?;
    all_written(&done, changes.len(), "every job is there, and no epoch goes back")
}
