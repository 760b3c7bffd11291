//! What operators look back on: events, and how runs went over time. Nothing is decided by it.

use nqueens_model::id::RunId;
use nqueens_model::operator::{Event, WallTime, WorkerName};
use nqueens_scheduler::NewEvent;
use sqlx::sqlite::{SqliteConnection, SqliteExecutor, SqlitePool};
use sqlx::{query, query_scalar};

use crate::error::{Error, damaged};
use crate::{column, run_id, within, worker_id};

/// Events that are kept, in all and of one run.
const EVENTS_MAX: i64 = 300;
const EVENTS_OF_RUN_MAX: i64 = 100;

/// The shortest span of time that is shown, in milliseconds: workers report every few seconds.
const SPAN_MIN_MS: i64 = 2_000;

/// Adds events, as of `now`. Of too many, the oldest go.
pub async fn insert_events(db: &mut SqliteConnection, news: &[NewEvent], now: WallTime) -> Result<(), Error> {
    for NewEvent { kind, run, worker, text } in news {
        let (kind, run) = (kind.name(), run.map(|run| column(run.get())));
        let worker = worker.map(|worker| column(worker.get()));
        query!(
            "INSERT INTO event (at, kind, run, worker, text) VALUES (?, ?, ?, ?, ?)",
            now,
            kind,
            run,
            worker,
            text
        )
        .execute(&mut *db)
        .await?;
    }
    query!(
        "DELETE FROM event WHERE number NOT IN (
             SELECT number FROM (SELECT number, run, row_number() OVER (PARTITION BY run ORDER BY number DESC) AS place
                                 FROM event)
             WHERE run IS NULL OR place <= ? ORDER BY number DESC LIMIT ?)",
        EVENTS_OF_RUN_MAX,
        EVENTS_MAX
    )
    .execute(db)
    .await?;
    Ok(())
}

/// The events that are kept, oldest first.
pub async fn events(db: impl SqliteExecutor<'_>) -> Result<Vec<Event>, Error> {
    let rows = query!(
        r#"SELECT number, at, kind, run, event.worker, name AS "name?", text
           FROM event LEFT JOIN worker ON worker.id = event.worker ORDER BY number"#
    );
    rows.fetch_all(db)
        .await?
        .into_iter()
        .map(|row| {
            Ok(Event {
                number: within("event.number", row.number)?,
                at: row.at,
                kind: row.kind.parse().map_err(|_| damaged(format!("event.kind is {}", row.kind)))?,
                run: row.run.map(run_id).transpose()?,
                worker: match row.worker.zip(row.name) {
                    Some((id, name)) => Some(WorkerName { id: worker_id(id)?, name }),
                    None => None,
                },
                text: row.text,
            })
        })
        .collect()
}

/// What the results of a span of time come to, for estimates: of their jobs' estimated work x, and the solutions y.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SpanSums {
    /// Which span it is, from 0.
    pub number: usize,
    pub jobs: u32,
    pub states: f64,
    /// Thread time, in microseconds.
    pub elapsed_us: f64,
    pub x: f64,
    pub y: f64,
    pub xx: f64,
    pub xy: f64,
    pub yy: f64,
}

/// The accepted results of a run by their arrival, in at most so many spans of equal length that begin at `began`; with the
/// length in milliseconds. Spans without results are left out.
pub async fn spans(
    db: &SqlitePool,
    run: RunId,
    began: WallTime,
    spans_max: i64,
) -> Result<(i64, Vec<SpanSums>), Error> {
    let run = column(run.get());
    let last = query_scalar!("SELECT reported_at FROM result WHERE run = ? ORDER BY id DESC LIMIT 1", run);
    let Some(last) = last.fetch_optional(db).await? else { return Ok((SPAN_MIN_MS, Vec::new())) };
    let took = last.saturating_sub(began).max(0);
    let spans = (took / SPAN_MIN_MS).clamp(1, spans_max);
    let span_ms = took / spans + 1;
    let rows = query!(
        r#"SELECT max(reported_at - ?2, 0) / ?3 AS "number!: i64", count(*) AS "jobs!: i64",
                  total(visited) AS "states!: f64", total(elapsed_us) AS "elapsed_us!: f64", total(x) AS "x!: f64",
                  total(y) AS "y!: f64", total(x * x) AS "xx!: f64", total(x * y) AS "xy!: f64", total(y * y) AS "yy!: f64"
           FROM (SELECT reported_at, result.states AS visited, elapsed_us, CAST(job.states AS REAL) AS x,
                        2.0 * count2 + 4.0 * count4 + 8.0 * count8 + solutions AS y
                 FROM result JOIN job ON job.run = result.run AND job.number = result.job
                 WHERE result.run = ?1 AND verdict = 'accepted')
           GROUP BY 1 ORDER BY 1"#,
        run,
        began,
        span_ms
    );
    let rows = rows.fetch_all(db).await?.into_iter().map(|row| {
        let number = within("reported_at", row.number)?;
        let jobs = within("jobs", row.jobs)?;
        let (states, elapsed_us, x, y) = (row.states, row.elapsed_us, row.x, row.y);
        Ok(SpanSums { number, jobs, states, elapsed_us, x, y, xx: row.xx, xy: row.xy, yy: row.yy })
    });
    Ok((span_ms, rows.collect::<Result<_, Error>>()?))
}

pub async fn planned_work(db: &SqlitePool, run: RunId) -> Result<f64, Error> {
    let run = column(run.get());
    let work = query_scalar!(r#"SELECT total(states) AS "work!: f64" FROM job WHERE run = ?"#, run);
    Ok(work.fetch_one(db).await?)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use nqueens_model::operator::EventKind;

    use super::*;
    use crate::database::Database;

    #[tokio::test]
    async fn the_oldest_events_go() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut database =
            Database::open(&folder.path().join("ledger.db"), Duration::ZERO).await.expect("a database");
        let of = |run| NewEvent { kind: EventKind::RunStalled, run, worker: None, text: String::new() };
        let (one, other) = (RunId::new(1), RunId::new(2));
        let db = &mut database.writer;
        for (run, times) in [(one, 1), (other, 150), (None, 180), (other, 50)] {
            for at in 0..times {
                insert_events(db, &[of(run)], at).await.expect("stored");
            }
        }
        let kept = events(&mut *db).await.expect("read");
        let number = |run| kept.iter().filter(|event| event.run == run).count();
        assert_eq!([one, other, None].map(number), [1, 100, 180], "no run crowds out another");
        assert_eq!(kept.last().expect("some").number, 381);
        for at in 0..250 {
            insert_events(db, &[of(None)], at).await.expect("stored");
        }
        let kept = events(&mut *db).await.expect("read");
        assert_eq!((kept.len(), kept[0].number, kept[299].number), (300, 332, 631));
    }
}
