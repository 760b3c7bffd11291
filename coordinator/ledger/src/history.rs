//! What operators look back on: events, and moments of the runs. Nothing is decided by it.

use std::collections::HashMap;

use nqueens_model::id::RunId;
use nqueens_model::operator::{Event, History, Interval, Moment, WallTime};
use nqueens_scheduler::NewEvent;
use sqlx::query;
use sqlx::sqlite::{SqliteConnection, SqliteExecutor};

use crate::error::{Error, damaged};
use crate::{column, run_id, within, worker_id};

/// Events that are kept, in all and of one run.
const EVENTS_MAX: i64 = 300;
const EVENTS_OF_RUN_MAX: i64 = 100;

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
    let rows = query!("SELECT number, at, kind, run, worker, text FROM event ORDER BY number").fetch_all(db);
    rows.await?
        .into_iter()
        .map(|row| {
            Ok(Event {
                number: within("event.number", row.number)?,
                at: row.at,
                kind: row.kind.parse().map_err(|_| damaged(format!("event.kind is {}", row.kind)))?,
                run: row.run.map(run_id).transpose()?,
                worker: row.worker.map(worker_id).transpose()?,
                text: row.text,
            })
        })
        .collect()
}

/// Adds a moment of a run. Of too many, every second one goes, as in [`History::add`].
pub async fn insert_moment(db: &mut SqliteConnection, run: RunId, moment: &Moment) -> Result<(), Error> {
    let Moment { at, share_done, states_per_s, total, time_left_s } = *moment;
    let parts = |found: Option<Interval>| {
        let part = |of: fn(Interval) -> f64| found.map(of);
        [part(|found| found.value), part(|found| found.low), part(|found| found.high)]
    };
    let ([total, total_low, total_high], [left, left_low, left_high]) = (parts(total), parts(time_left_s));
    let run = column(run.get());
    // A clock that was set back must not keep results out of the ledger.
    query!(
        "INSERT OR REPLACE INTO moment (run, at, share_done, states_per_s, total, total_low, total_high, left_s,
                                        left_low_s, left_high_s)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        run,
        at,
        share_done,
        states_per_s,
        total,
        total_low,
        total_high,
        left,
        left_low,
        left_high
    )
    .execute(&mut *db)
    .await?;
    let moments_max = i64::try_from(History::MOMENTS_MAX).expect("a few");
    query!(
        "DELETE FROM moment WHERE run = ?1 AND at IN (
             SELECT at FROM (SELECT at, row_number() OVER (ORDER BY at) AS place, count(*) OVER () AS moments
                             FROM moment WHERE run = ?1)
             WHERE moments > ?2 AND place % 2 = 0)",
        run,
        moments_max
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Removes the moments of a run.
pub async fn delete_moments(db: &mut SqliteConnection, run: RunId) -> Result<(), Error> {
    let run = column(run.get());
    query!("DELETE FROM moment WHERE run = ?", run).execute(db).await?;
    Ok(())
}

/// The moments of all runs that have some.
pub async fn histories(db: impl SqliteExecutor<'_>) -> Result<HashMap<RunId, History>, Error> {
    let rows = query!(
        "SELECT run, at, share_done, states_per_s, total, total_low, total_high, left_s, left_low_s, left_high_s
         FROM moment ORDER BY run, at"
    );
    let mut moments = HashMap::<RunId, Vec<Moment>>::new();
    for row in rows.fetch_all(db).await? {
        let interval = |parts: [Option<f64>; 3]| {
            let [value, low, high] = parts;
            Some(Interval { value: value?, low: low?, high: high? })
        };
        moments.entry(run_id(row.run)?).or_default().push(Moment {
            at: row.at,
            share_done: row.share_done,
            states_per_s: row.states_per_s,
            total: interval([row.total, row.total_low, row.total_high]),
            time_left_s: interval([row.left_s, row.left_low_s, row.left_high_s]),
        });
    }
    Ok(moments.into_iter().map(|(run, moments)| (run, History::restored(moments))).collect())
}

#[cfg(test)]
mod tests {
    use nqueens_model::operator::EventKind;

    use super::*;
    use crate::database::Database;

    #[tokio::test]
    async fn the_oldest_events_go() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut database = Database::open(&folder.path().join("ledger.db")).await.expect("a database");
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

    #[tokio::test]
    async fn the_database_keeps_the_moments_that_memory_keeps() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut database = Database::open(&folder.path().join("ledger.db")).await.expect("a database");
        let (run, db) = (RunId::new(7).expect("a name"), &mut database.writer);
        let mut history = History::default();
        for at in (0..1_000_000).step_by(1_000).filter(|at| at % 7_000 != 0) {
            if history.is_due(at) {
                let known = Interval { value: 2.0, low: 1.0, high: 3.0 };
                let total = (at % 2_000 == 0).then_some(known);
                let moment = Moment { at, share_done: 0.5, states_per_s: None, total, time_left_s: None };
                history.add(moment);
                insert_moment(db, run, &moment).await.expect("stored");
            }
        }
        let stored = histories(&mut *db).await.expect("read");
        assert_eq!(stored[&run].moments(), history.moments());
        assert!(history.moments().len() > 100);
        delete_moments(db, run).await.expect("removed");
        assert!(histories(db).await.expect("read").is_empty());
    }
}
