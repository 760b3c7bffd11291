//! Second counts, and the reputation of machines.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU32;

use nqueens_model::id::{JobId, RunId};
use nqueens_model::operator::CheckCounts;
use nqueens_scheduler::{CheckOutcome, CheckVote, Machine, MachineReputation};
use sqlx::sqlite::{SqliteConnection, SqliteExecutor, SqlitePool};
use sqlx::{query, query_scalar};

use crate::error::{Error, damaged};
use crate::{all_written, credential, job_id, json, parsed, rows_of, run_id, within, worker_id};

/// Writes checks that were opened or ended so, in this order.
pub(super) async fn insert_checks(
    db: &mut SqliteConnection,
    changes: &[(JobId, Option<CheckOutcome>)],
) -> Result<(), Error> {
    for alike in changes.chunk_by(|one, next| one.1 == next.1) {
        let jobs = super::json_of_ids(alike.iter().map(|(job, _)| *job));
        let done = match alike[0].1.map(CheckOutcome::name) {
            None => query!(
                "INSERT INTO recheck (run, job) SELECT value ->> 0, value ->> 1 FROM jsonb_each(?)",
                jobs
            )
            .execute(&mut *db),
            Some(outcome) => query!(
                "UPDATE recheck SET outcome = ? FROM jsonb_each(?) AS job
                 WHERE recheck.run = job.value ->> 0 AND recheck.job = job.value ->> 1 AND outcome IS NULL",
                outcome,
                jobs
            )
            .execute(&mut *db),
        };
        all_written(&done.await?, alike.len(), "a check is opened once and ended once")?;
    }
    Ok(())
}

/// Every open check with what has been counted: the accepted result, and the first after it that differs.
pub(super) async fn open_checks(db: &SqlitePool) -> Result<Vec<(JobId, Vec<CheckVote>)>, Error> {
    let accepted = query_scalar!(
        r#"SELECT json_group_array(json_array(result.run, result.job, worker, json_array(credential, name), kernel, epoch,
                                              json_array(count2, count4, count8, solutions))) AS "rows!: String"
           FROM recheck JOIN result ON result.run = recheck.run AND result.job = recheck.job
           JOIN worker ON worker.id = worker WHERE outcome IS NULL AND verdict = 'accepted'"#
    );
    let differing = query_scalar!(
        r#"SELECT json_group_array(json_array(result.run, result.job, worker, json_array(credential, name), kernel, epoch,
                                              json_array(count2, count4, count8, solutions))) AS "rows!: String"
           FROM recheck JOIN result ON result.run = recheck.run AND result.job = recheck.job
           JOIN worker ON worker.id = worker
           WHERE outcome IS NULL AND verdict <> 'accepted' AND verdict = 'conflict' AND result.id = (
             SELECT min(other.id) FROM result AS other WHERE other.run = recheck.run AND other.job = recheck.job
               AND other.verdict <> 'accepted' AND other.verdict = 'conflict' AND other.id > (
                 SELECT accepted.id FROM result AS accepted WHERE accepted.run = recheck.run
                   AND accepted.job = recheck.job AND accepted.verdict = 'accepted'))"#
    );
    let mut checks = BTreeMap::<JobId, Vec<CheckVote>>::new();
    for text in [accepted.fetch_one(db).await?, differing.fetch_one(db).await?] {
        for row in rows_of::<ResultRecord>(&text)? {
            let (job, vote) = vote(row)?;
            checks.entry(job).or_default().push(vote);
        }
    }
    Ok(checks.into_iter().collect())
}

type ResultRecord = (i64, i64, i64, [String; 2], String, u32, [u64; 4]);

fn vote(record: ResultRecord) -> Result<(JobId, CheckVote), Error> {
    let (run, job, worker, [of, name], kernel, epoch, counts) = record;
    let vote = CheckVote {
        worker: worker_id(worker)?,
        machine: Machine::new(credential(&of)?, &name),
        kernel: parsed(&kernel)?,
        epoch: NonZeroU32::new(epoch).ok_or_else(|| damaged("a result's epoch is zero"))?,
        counts: counts.into(),
    };
    Ok((job_id(run, job)?, vote))
}

/// The accepted results of a machine in runs that go on, less those that another machine has counted alike; or of all of a
/// credential, less those that somebody else has.
pub async fn unconfirmed(
    db: &mut SqliteConnection,
    machine: &Machine,
) -> Result<Vec<(JobId, CheckVote)>, Error> {
    let (credential, name) = (machine.credential.as_str(), &*machine.name);
    let text = query_scalar!(
        r#"SELECT json_group_array(json_array(result.run, job, worker, json_array(credential, name), kernel, epoch,
                                              json_array(result.count2, result.count4, result.count8, solutions)))
                  AS "rows!: String"
           FROM worker JOIN result ON result.worker = worker.id JOIN run ON run.id = result.run
           WHERE credential = ?1 AND ?2 IN ('', name) AND verdict = 'accepted' AND run.state IN ('active', 'paused')
             AND iif(?2 = '', 0 = (SELECT confirmed FROM job AS it WHERE it.run = result.run AND number = result.job),
                     NOT EXISTS (SELECT 1 FROM recheck AS it
                                 WHERE it.run = result.run AND it.job = result.job AND outcome = 'agreed'))"#,
        credential,
        name
    )
    .fetch_one(db)
    .await?;
    rows_of::<ResultRecord>(&text)?.into_iter().map(vote).collect()
}

/// How many checks of each run came out how.
pub(super) async fn check_sums(db: impl SqliteExecutor<'_>) -> Result<HashMap<RunId, CheckCounts>, Error> {
    let rows =
        query!(r#"SELECT run, outcome, count(*) AS "checks!: i64" FROM recheck GROUP BY run, outcome"#)
            .fetch_all(db)
            .await?;
    let mut sums = HashMap::<RunId, CheckCounts>::new();
    for row in rows {
        let (sums, checks) = (sums.entry(run_id(row.run)?).or_default(), within("checks", row.checks)?);
        match row.outcome {
            None => sums.open = checks,
            Some(name) => {
                let outcome = name.parse::<CheckOutcome>();
                let outcome = outcome.map_err(|_| damaged(format!("recheck.outcome is {name}")))?;
                outcome.add_to(sums, checks);
            }
        }
    }
    Ok(sums)
}

/// All machines that have shown something.
pub(super) async fn reputations(
    db: impl SqliteExecutor<'_>,
) -> Result<Vec<(Machine, MachineReputation)>, Error> {
    let rows =
        query!("SELECT credential, name, passed, failed, confirmed, distrusted FROM machine ORDER BY credential, name")
            .fetch_all(db)
            .await?;
    rows.into_iter()
        .map(|row| {
            let reputation = MachineReputation {
                passed: within("machine.passed", row.passed)?,
                failed: within("machine.failed", row.failed)?,
                confirmed: within("machine.confirmed", row.confirmed)?,
                distrusted: row.distrusted,
                open: 0,
            };
            Ok((Machine::new(credential(&row.credential)?, &row.name), reputation))
        })
        .collect()
}

/// Writes what machines have shown.
pub(super) async fn upsert_reputations(
    db: &mut SqliteConnection,
    reputations: &[(Machine, MachineReputation)],
) -> Result<(), Error> {
    let rows = reputations.iter().map(|(machine, reputation)| {
        let MachineReputation { passed, failed, confirmed, distrusted, open: _ } = reputation;
        (machine.credential.as_str(), &*machine.name, passed, failed, confirmed, distrusted)
    });
    let rows = json(&rows.collect::<Vec<_>>());
    query!(
        "INSERT INTO machine (credential, name, passed, failed, confirmed, distrusted)
         SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5
         FROM jsonb_each(?) WHERE true
         ON CONFLICT (credential, name)
         DO UPDATE SET passed = excluded.passed, failed = excluded.failed, confirmed = excluded.confirmed,
                       distrusted = excluded.distrusted",
        rows
    )
    .execute(db)
    .await?;
    Ok(())
}
