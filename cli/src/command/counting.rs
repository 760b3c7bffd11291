//! Counts a board on this process's threads, without database and network.

use std::iter;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::Totals;
use nqueens_kernel::engine::{Control, Kernel};
use nqueens_kernel::halves::SharedTables;
use nqueens_kernel::known;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_kernel::solver::Solver;
use nqueens_kernel::symmetric::symmetric_counts;

use crate::engines::ENGINES;

/// What a board was counted to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BoardCount {
    pub(crate) total: u128,
    /// Solutions up to rotation and reflection.
    pub(crate) unique: u128,
    /// Partial boards visited on the way.
    pub(crate) states: u128,
    /// From the plan's first job to the sum.
    pub(crate) elapsed: Duration,
}

impl BoardCount {
    #[expect(clippy::cast_precision_loss, reason = "a speed, for people")]
    pub(crate) fn states_per_s(&self) -> f64 {
        self.states as f64 / self.elapsed.as_secs_f64()
    }

    /// An error if this is not what is published for N.
    pub(crate) fn check(&self, n: BoardSize) -> anyhow::Result<()> {
        let Some(known) = known::published(n) else { return Ok(()) };
        ensure!(
            (self.total, self.unique) == (known.total, known.unique),
            "N = {n}: counted {} solutions, {} unique, but {} and {} are published: do not trust this machine or this \
             build",
            self.total,
            self.unique,
            known.total,
            known.unique
        );
        Ok(())
    }
}

/// Counts a board by an engine, on so many threads.
pub(crate) fn count(
    n: BoardSize,
    kind: PlanKind,
    kernel: Kernel,
    threads: NonZeroUsize,
    memory_max: u64,
) -> anyhow::Result<BoardCount> {
    count_by(n, kind, &vec![kernel.name().to_owned(); threads.get()], memory_max)
}

/// Counts a board by the engines of these names, each on a thread. The threads take the plan's jobs one after the other, and
/// jobs are the smaller the more threads there are, so that all end at about the same time.
pub(crate) fn count_by(
    n: BoardSize,
    kind: PlanKind,
    engines: &[String],
    memory_max: u64,
) -> anyhow::Result<BoardCount> {
    let begun = Instant::now();
    let plan = Plan::new(n, kind);
    // Column and row sets are slower to count when those that stand together are not.
    let share = match kind {
        PlanKind::Halves | PlanKind::Colours => 1,
        PlanKind::Rows | PlanKind::Border => u64::try_from(engines.len())?,
    };
    let plan = Plan::with_states_per_job(n, kind, plan.states_per_job() / share);
    let tables = Arc::new(SharedTables::new(memory_max, engines.len()));
    let jobs = Mutex::new(plan.jobs());
    let work = |engine: &str| {
        let engine =
            ENGINES(engine).with_context(|| format!("this machine can't run the {engine} kernel"))?;
        let jobs = iter::from_fn(|| jobs.lock().expect("no thread panics with it").next());
        let mut solver = Solver::new(engine, &tables);
        let counted = solver.count_jobs(jobs, &Control::default());
        counted.map_err(|stopped| match solver.fault() {
            Some(fault) => anyhow::Error::msg(fault.to_owned()),
            None => stopped.into(),
        })
    };
    let found: Vec<_> = thread::scope(|scope| {
        let started: Vec<_> = engines.iter().map(|engine| scope.spawn(|| work(engine))).collect();
        let ended = started.into_iter().map(|thread| thread.join().expect("a counting thread panicked"));
        ended.collect::<anyhow::Result<_>>()
    })?;
    let elapsed = begun.elapsed();
    let (mut totals, mut states) = (Totals::default(), 0);
    for (totals_of_one, states_of_one) in found {
        totals = totals.checked_add(totals_of_one)?;
        states += states_of_one;
    }
    let symmetric = symmetric_counts(n, &Control::default()).context("nobody stops it")?;
    let totals = totals.sorted(symmetric)?;
    Ok(BoardCount { total: totals.total(n)?, unique: totals.unique(n)?, states, elapsed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_change_nothing() {
        let n = BoardSize::new(10).unwrap();
        for kind in PlanKind::ALL {
            let [one, three] = [1, 3].map(|threads| {
                count(n, kind, Kernel::best(), NonZeroUsize::new(threads).unwrap(), 1 << 24).unwrap()
            });
            one.check(n).unwrap();
            assert_eq!((one.total, one.unique), (three.total, three.unique));
        }
    }

    #[test]
    fn a_wrong_total_is_refused() {
        let n = BoardSize::new(8).unwrap();
        let wrong = BoardCount { total: 91, unique: 12, states: 0, elapsed: Duration::ZERO };
        let text = wrong.check(n).unwrap_err().to_string();
        assert!(text.starts_with("N = 8: counted 91 solutions, 12 unique, but 92 and 12 are published"));
    }
}
