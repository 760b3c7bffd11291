//! Rules that every ledger must satisfy.

use sqlx::sqlite::SqlitePool;
use sqlx::{AssertSqlSafe, query_scalar};

/// The file itself: what SQLite finds wrong with its pages, its indexes, and the columns' own rules.
const SOUND: (&str, &str) =
    ("the file is sound", "SELECT * FROM pragma_integrity_check WHERE integrity_check <> 'ok'");

/// Rules of the ledger: each is said in words, and as a query that finds whatever breaks it. None takes longer than in
/// proportion to the ledger.
pub const RULES: [(&str, &str); 11] = [
    SOUND,
    ("nothing refers to what is not there", "SELECT \"table\" FROM pragma_foreign_key_check"),
    (
        "a planned run has all its jobs",
        "SELECT id FROM run WHERE jobs <> (SELECT count(*) FROM job WHERE run = run.id)",
    ),
    (
        "a job is done, or in dispute, if and only if it has one accepted result",
        "SELECT job.run || '/' || number FROM job LEFT JOIN (
             SELECT run, job, count(*) = 1 AS stands FROM result WHERE verdict = 'accepted' GROUP BY run, job) AS result
           ON result.run = job.run AND result.job = number
         LEFT JOIN recheck ON recheck.run = job.run AND recheck.job = number AND outcome IS NULL
         WHERE (state = 2 OR state = 3 AND outcome IS NULL AND recheck.id IS NOT NULL) <> coalesce(stands, FALSE)",
    ),
    (
        "a second count disagrees if it is a conflict, and agrees if it is a duplicate",
        "SELECT other.id FROM result AS other JOIN result AS accepted USING (run, job)
         WHERE accepted.verdict = 'accepted' AND other.id > accepted.id AND other.verdict <> iif(
            (accepted.count2, accepted.count4, accepted.count8, accepted.solutions) =
                (other.count2, other.count4, other.count8, other.solutions),
            'duplicate', 'conflict')",
    ),
    (
        "the parts of a result come to its counts",
        "SELECT result.id FROM result JOIN json_each(parts) AS part WHERE parts IS NOT NULL GROUP BY result.id
         HAVING (count2, count4, count8, solutions) <> (sum(part.value ->> 0), sum(part.value ->> 1),
                                                        sum(part.value ->> 2), sum(part.value ->> 3))",
    ),
    (
        "a run has the sums of its recounts",
        "SELECT id FROM run WHERE recounts_differing <> (SELECT count(*) FROM recount WHERE run = run.id AND NOT agrees)
            OR state = 'done' AND recounts_agreed <> (SELECT coalesce(sum(recounted % 254), 0)
                                                      FROM job WHERE run = run.id)",
    ),
    (
        "what is recounted has its recounts, or is the coordinator's own",
        "SELECT run || '/' || number FROM job WHERE recounted > 0 AND NOT EXISTS (
            SELECT 1 FROM recount WHERE recount.run = job.run AND recount.job = number AND agrees
              AND (part IS NULL OR recounted < 254))
         AND NOT EXISTS (SELECT 1 FROM result JOIN worker ON worker.id = result.worker
            WHERE result.run = job.run AND result.job = number AND verdict = 'accepted'
              AND credential = '(the coordinator)')",
    ),
    (
        // SQLite adds up in 63 bits, and says so where they do not do: enough for all boards up to N = 28.
        "a run is done only if all its jobs are, and they come to its total",
        "SELECT id FROM run WHERE state = 'done' AND (
            EXISTS (SELECT 1 FROM job WHERE run = run.id AND state <> 2) OR
            CAST(total AS INTEGER) <> (n = 1 AND plan <> 'cells') + coalesce((SELECT sum(2 * count2 + 4 * count4 + 8 * count8 + solutions)
                                                  FROM result WHERE run = run.id AND verdict = 'accepted'), 0))",
    ),
    (
        "an open check is of a job that has a result, in a run without a total",
        "SELECT recheck.run || '/' || job FROM recheck JOIN run ON run.id = recheck.run
         WHERE recheck.outcome IS NULL AND (run.state = 'done' OR NOT EXISTS (
            SELECT 1 FROM result WHERE result.run = recheck.run AND result.job = recheck.job
                                   AND verdict = 'accepted'))",
    ),
    (
        "what is confirmed was counted alike under another credential",
        "SELECT job.run || '/' || number FROM job WHERE confirmed AND (run, number) NOT IN (
            SELECT run, job FROM result JOIN worker ON worker.id = worker
            WHERE verdict IN ('accepted', 'duplicate')
            GROUP BY run, job, count2, count4, count8, solutions
            HAVING max(verdict = 'accepted') AND count(DISTINCT credential) > 1)",
    ),
];

/// Named offenders against a rule; the others are counted.
const NAMED: usize = 3;

/// Looks for whatever breaks a rule: a line for each that is broken. In a file that is not sound there is nothing more
/// to look for.
pub async fn broken(db: &SqlitePool) -> sqlx::Result<Vec<String>> {
    let mut broken = Vec::new();
    for (rule, query) in RULES {
        let found = format!("WITH found(what) AS ({query}) SELECT CAST(what AS TEXT) FROM found");
        let found: Vec<String> = query_scalar(AssertSqlSafe(found)).fetch_all(db).await?;
        if found.is_empty() {
            continue;
        }
        broken.push(describe(rule, &found));
        if rule == SOUND.0 {
            break;
        }
    }
    Ok(broken)
}

/// A line for a rule that is broken, with those that break it.
pub fn describe(rule: &str, found: &[String]) -> String {
    let named = found[..found.len().min(NAMED)].join(", ");
    let more = found.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("it does not hold that {rule}: {named}{more}")
}

/// What is wrong with the file itself, as far as it shows at a glance.
pub async fn unsound(db: &SqlitePool) -> sqlx::Result<Option<String>> {
    let findings = "SELECT * FROM pragma_quick_check WHERE quick_check <> 'ok'";
    query_scalar(findings).fetch_optional(db).await
}
