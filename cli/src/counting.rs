//! Counts a board on this process's threads, without database and network.

use std::iter;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::Context;
use nqueens_evidence::total::conclude;
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::Totals;
use nqueens_kernel::engine::Control;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_kernel::symmetric::symmetric_counts;
use nqueens_model::operator::Outcome;

use crate::engines::{on_threads, solver};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BoardCount {
    pub(crate) outcome: Outcome,
    /// Partial boards visited on the way.
    pub(crate) states: u128,
    /// From the plan's first job to the sum.
    pub(crate) elapsed: Duration,
}

/// Counts a board by the engines of these names, each on a thread. The threads take the plan's jobs one after the other, and
/// jobs are the smaller the more threads there are, so that all end at about the same time.
pub(crate) fn count(
    n: BoardSize,
    kind: PlanKind,
    engines: &[String],
    memory_max: u64,
) -> anyhow::Result<BoardCount> {
    let begun = Instant::now();
    let plan = Plan::new(n, kind);
    // Row sets are slower to count when those that stand together are not.
    let threads = engines.len() as u64;
    let share = if kind == PlanKind::Colours { 1 } else { threads };
    let plan = Plan::with_states_per_job(n, kind, plan.states_per_job() / share);
    let jobs = Mutex::new(plan.jobs());
    let found = on_threads(engines.iter(), |engine| {
        let jobs = iter::from_fn(|| jobs.lock().expect("no thread panics with it").next());
        let mut solver = solver(engine, memory_max / threads)?;
        let counted = solver.count_jobs(jobs, &Control::default());
        counted.map_err(|stopped| match solver.fault() {
            Some(fault) => anyhow::Error::msg(fault.to_owned()),
            None => stopped.into(),
        })
    })?;
    let elapsed = begun.elapsed();
    let (mut totals, mut states) = (Totals::default(), 0);
    for (totals_of_one, states_of_one) in found {
        totals = totals.checked_add(totals_of_one)?;
        states += states_of_one;
    }
    let symmetric = symmetric_counts(n, &Control::default()).context("nobody stops it")?;
    let outcome = conclude(&plan, totals, symmetric, None).with_context(|| distrust(n))?;
    Ok(BoardCount { outcome, states, elapsed })
}

/// What a count that can't be right says of whoever made it.
pub(crate) fn distrust(n: BoardSize) -> String {
    format!("N = {n}: do not trust this machine or this build")
}

#[cfg(test)]
mod tests {
    use nqueens_kernel::engine::Kernel;
    use nqueens_model::operator::Checked;

    use super::*;

    #[test]
    fn threads_change_nothing() {
        let n = BoardSize::new(10).unwrap();
        for kind in PlanKind::ALL {
            let [one, three] = [1, 3].map(|threads| {
                count(n, kind, &vec![Kernel::best().name().to_owned(); threads], 1 << 24).unwrap()
            });
            assert_eq!((one.outcome.checked, one.outcome), (Checked::Published, three.outcome));
        }
    }
}
