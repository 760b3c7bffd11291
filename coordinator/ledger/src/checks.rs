//! Second counts, and the reputation of machines.

use std::collections::HashMap;

use nqueens_kernel::counts::Counts;
use nqueens_model::id::{JobId, RunId, WorkerId};
use nqueens_model::operator::CheckCounts;
use nqueens_scheduler::{Accepted, CheckOutcome, InDoubt, Machine, MachineReputation};
use sqlx::sqlite::{SqliteConnection, SqliteExecutor, SqlitePool};
use sqlx::{query, query_scalar};

use crate::error::{Error, damaged};
use crate::jobs::{accepted as accepted_of, unmade_checks};
use crate::{all_written, credential, job_id, json, rows_of, run_id, within, worker_id};

/// Writes second counts that were opened or ended so, in this order.
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
        all_written(&done.await?, alike.len(), "a second count is opened once and ended once")?;
    }
    Ok(())
}

/// An open second count: the accepted result, and who counted otherwise.
type OpenCheck = (JobId, Accepted, Option<(WorkerId, Counts)>);

pub(super) async fn open_checks(db: &SqlitePool) -> Result<Vec<OpenCheck>, Error> {
    let accepted = query_scalar!(
        r#"SELECT json_group_array(json(record)) AS "rows!: String"
           FROM recheck JOIN accepted_result AS result ON result.run = recheck.run AND result.job = recheck.job
           WHERE outcome IS NULL"#
    );
    // The latest, of a job that is in dispute.
    let differing = query_scalar!(
        r#"SELECT json_group_array(json_array(recheck.run, recheck.job, result.worker,
                                              json_array(count2, count4, count8, solutions))) AS "rows!: String"
           FROM recheck JOIN job ON job.run = recheck.run AND number = recheck.job AND job.state = 3
           JOIN result ON result.id = (
             SELECT max(other.id) FROM result AS other WHERE other.run = recheck.run AND other.job = recheck.job
                                                         AND other.verdict <> 'accepted' AND other.verdict = 'conflict')
           WHERE outcome IS NULL"#
    );
    let mut differs = HashMap::new();
    for (run, job, worker, counts) in rows_of::<(i64, i64, i64, [u64; 4])>(&differing.fetch_one(db).await?)? {
        differs.insert(job_id(run, job)?, (worker_id(worker)?, counts.into()));
    }
    let accepted = accepted.fetch_one(db).await?;
    let with_differing = |record| {
        let (job, accepted) = accepted_of(record)?;
        Ok((job, accepted, differs.remove(&job)))
    };
    rows_of(&accepted)?.into_iter().map(with_differing).collect()
}

/// What nobody but an outcast has counted, in runs that are open. All of a credential are asked for by an empty name.
///
/// SQLite keeps the order of a CROSS JOIN: it would read the results of all, and look up who counted each.
pub async fn in_doubt(db: &mut SqliteConnection, machine: &Machine) -> Result<InDoubt, Error> {
    let (credential, name) = (machine.credential.as_str(), &*machine.name);
    let counted = query_scalar!(
        r#"SELECT json_group_array(json(record)) AS "rows!: String"
           FROM worker CROSS JOIN accepted_result AS result ON result.worker = worker.id JOIN run ON run.id = result.run
           JOIN job ON job.run = result.run AND number = result.job
           WHERE credential = ?1 AND ?2 IN ('', name) AND run.state IN ('active', 'paused')
             AND confirmed = 0 AND recounted < 254"#,
        credential,
        name
    );
    let counted = counted.fetch_one(&mut *db).await?;
    let confirmed = query_scalar!(
        r#"SELECT json_group_array(json(record)) AS "rows!: String"
           FROM worker CROSS JOIN result AS second ON second.worker = worker.id AND second.verdict <> 'accepted'
             AND second.verdict = 'duplicate'
           JOIN run ON run.id = second.run JOIN job ON job.run = second.run AND number = second.job
           JOIN accepted_result AS result ON result.run = second.run AND result.job = second.job
           WHERE credential = ?1 AND ?2 IN ('', name) AND run.state IN ('active', 'paused') AND confirmed = 1"#,
        credential,
        name
    );
    let confirmed = confirmed.fetch_one(db).await?;
    let all = |text: &str| rows_of(text)?.into_iter().map(accepted_of).collect::<Result<_, _>>();
    Ok(InDoubt { counted: all(&counted)?, confirmed: all(&confirmed)? })
}

/// How many second counts of each run came out how; of a job, the latest that stayed unmade.
pub(super) async fn check_sums(db: &SqlitePool) -> Result<HashMap<RunId, CheckCounts>, Error> {
    let rows = query!(
        r#"SELECT run, outcome, count(*) AS "checks!: i64" FROM recheck WHERE outcome IS NOT 'unmade' GROUP BY run, outcome"#
    );
    let rows = rows.fetch_all(db).await?;
    let mut sums = HashMap::<RunId, CheckCounts>::new();
    for job in unmade_checks(db, None).await? {
        sums.entry(job.run).or_default().unmade += 1;
    }
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

pub(super) async fn reputations(
    db: impl SqliteExecutor<'_>,
) -> Result<Vec<(Machine, MachineReputation)>, Error> {
    let rows = query!(
        "SELECT credential, name, passed, failed, refused, distrusted FROM machine ORDER BY credential, name"
    )
    .fetch_all(db)
    .await?;
    rows.into_iter()
        .map(|row| {
            let reputation = MachineReputation {
                passed: within("machine.passed", row.passed)?,
                failed: within("machine.failed", row.failed)?,
                refused: within("machine.refused", row.refused)?,
                distrusted: row.distrusted,
            };
            Ok((Machine::new(credential(&row.credential)?, &row.name), reputation))
        })
        .collect()
}

pub(super) async fn upsert_reputations(
    db: &mut SqliteConnection,
    reputations: &[(Machine, MachineReputation)],
) -> Result<(), Error> {
    let rows = reputations.iter().map(|(machine, reputation)| {
        let MachineReputation { passed, failed, refused, distrusted } = reputation;
        (machine.credential.as_str(), &*machine.name, passed, failed, refused, distrusted)
    });
    let rows = json(&rows.collect::<Vec<_>>());
    query!(
        "INSERT INTO machine (credential, name, passed, failed, refused, distrusted)
         SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5
         FROM jsonb_each(?) WHERE true
         ON CONFLICT (credential, name)
         DO UPDATE SET passed = excluded.passed, failed = excluded.failed, refused = excluded.refused,
                       distrusted = excluded.distrusted",
        rows
    )
    .execute(db)
    .await?;
    Ok(())
}
