//! When a run was counted, and by which engines.

use std::time::Duration;

use nqueens_model::kernel::KernelName;
use nqueens_model::operator::WallTime;
use sqlx::query;
use sqlx::sqlite::SqlitePool;

use crate::error::Error;
use crate::{RunRow, column, parsed};

/// What its accepted results say about the counting of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Engines that counted, the one with the most jobs first; none for a board without jobs.
    pub kernels: Vec<KernelName>,
    /// Begin and end of each period in which one coordinator's process took results, in order. Between two of them the run was
    /// interrupted.
    pub spells: Vec<(WallTime, WallTime)>,
}

impl Effort {
    /// Time by the clock, without interruptions.
    pub fn counted(&self) -> Duration {
        self.spells.iter().map(|&(began, ended)| between(began, ended)).sum()
    }

    /// Time by the clock in which no process took results.
    pub fn interrupted(&self) -> Duration {
        self.spells.array_windows().map(|&[(_, ended), (began, _)]| between(ended, began)).sum()
    }
}

fn between(from: WallTime, to: WallTime) -> Duration {
    Duration::from_millis(u64::try_from(to.saturating_sub(from)).unwrap_or(0))
}

/// Reads a run's accepted results: each belongs to the process that had started last when it arrived.
pub async fn effort(db: &SqlitePool, run: &RunRow) -> Result<Effort, Error> {
    let id = column(run.id.get());
    // The end of a run is an arrival, too: of no result.
    let rows = query!(
        r#"SELECT began AS "began: i64", kernel AS "kernel: String", count(*) AS "jobs!: i64", max(arrival) AS "ended!: i64"
           FROM (SELECT kernel, arrival, (SELECT max(started_at) FROM coordinator WHERE started_at <= arrival) AS began
                 FROM (SELECT kernel, reported_at AS arrival FROM result WHERE run = ?1 AND verdict = 'accepted'
                       UNION ALL SELECT NULL, finished_at FROM run WHERE id = ?1 AND finished_at IS NOT NULL))
           GROUP BY 1, 2 ORDER BY 1, 2"#,
        id
    )
    .fetch_all(db)
    .await?;
    let first = run.started_at.unwrap_or(run.created_at);
    let mut kernels = Vec::<(i64, KernelName)>::new();
    let mut spells = Vec::<(WallTime, WallTime)>::new();
    for row in rows {
        let began = row.began.unwrap_or(first).max(first);
        match spells.last_mut().filter(|last| last.0 == began) {
            Some(last) => last.1 = last.1.max(row.ended),
            None => spells.push((began, row.ended)),
        }
        let Some(kernel) = row.kernel.as_deref().map(parsed).transpose()? else { continue };
        match kernels.iter_mut().find(|(_, known)| *known == kernel) {
            Some((jobs, _)) => *jobs = jobs.saturating_add(row.jobs),
            None => kernels.push((row.jobs, kernel)),
        }
    }
    kernels.sort_by(|one, other| other.cmp(one));
    Ok(Effort { kernels: kernels.into_iter().map(|(_, kernel)| kernel).collect(), spells })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_time_is_of_counting_or_of_an_interruption() {
        let effort = |spells: &[_]| Effort { kernels: Vec::new(), spells: spells.to_vec() };
        let times = |effort: Effort| (effort.counted().as_millis(), effort.interrupted().as_millis());
        assert_eq!(times(effort(&[])), (0, 0));
        assert_eq!(times(effort(&[(1_000, 3_000)])), (2_000, 0));
        assert_eq!(times(effort(&[(1_000, 3_000), (10_000, 10_500), (10_500, 11_000)])), (3_000, 7_000));
        assert_eq!(times(effort(&[(5_000, 4_000), (3_000, 3_001)])), (1, 0), "a clock was set back");
    }
}
