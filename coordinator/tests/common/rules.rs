//! What holds in every ledger, whatever has happened to it.

/// Rules of the ledger: each is a query that finds whatever breaks it.
pub(crate) const RULES: [(&str, &str); 6] = [
    (
        "a job is done if and only if it has one accepted result and no later one disagrees",
        "SELECT run || '/' || number FROM job WHERE (state = 2) <> (
            (SELECT count(*) FROM result WHERE run = job.run AND job = number AND verdict = 'accepted') = 1 AND
            (SELECT max(id) FILTER (WHERE verdict = 'accepted') > coalesce(max(id) FILTER (WHERE verdict = 'conflict'), 0)
             FROM result WHERE run = job.run AND job = number))",
    ),
    (
        "whatever disagrees is a conflict, whatever agrees is none",
        "SELECT other.id FROM result AS other JOIN result AS accepted USING (run, job)
         WHERE accepted.verdict = 'accepted' AND other.id > accepted.id AND other.verdict <> iif(
            (accepted.count2, accepted.count4, accepted.count8, accepted.solutions) =
                (other.count2, other.count4, other.count8, other.solutions),
            'duplicate', 'conflict')",
    ),
    (
        "no result is of a lease that was never given out",
        "SELECT id FROM result JOIN job ON job.run = result.run AND number = job WHERE result.epoch > job.epoch",
    ),
    (
        "a run is done only if all its jobs are, and they come to its total",
        "SELECT id FROM run WHERE state = 'done' AND (
            EXISTS (SELECT 1 FROM job WHERE run = run.id AND state <> 2) OR
            jobs <> (SELECT count(*) FROM job WHERE run = run.id) OR
            CAST(total AS INTEGER) <> (n = 1) + coalesce((SELECT sum(2 * count2 + 4 * count4 + 8 * count8 + solutions)
                                                  FROM result WHERE run = run.id AND verdict = 'accepted'), 0))",
    ),
    ("nothing refers to what is not there", "SELECT \"table\" FROM pragma_foreign_key_check"),
    ("the file is sound", "SELECT * FROM pragma_integrity_check WHERE integrity_check <> 'ok'"),
];
