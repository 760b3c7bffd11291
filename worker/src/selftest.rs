//! The self-test of engines: a wrong processor, memory or build shows here, not in a total.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::Totals;
use nqueens_kernel::engine::{Control, Kernel};
use nqueens_kernel::halves::SharedTables;
use nqueens_kernel::known::published;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_kernel::solver::Solver;
use nqueens_kernel::symmetric::symmetric_counts;
use tracing::error;

/// What an engine showed in its test.
#[derive(Clone, Copy, Debug)]
pub struct Proof {
    /// The engine.
    pub kernel: Kernel,
    /// Estimated states that it deals with in a second, on these small boards.
    pub states_per_s: f64,
}

/// Counts small boards by every plan and holds the counts against the published ones. The error says what was wrong.
pub fn prove(kernel: Kernel) -> Result<Proof, String> {
    let mut solver = Solver::new(kernel, &Arc::new(SharedTables::new(u64::MAX, 1)))
        .ok_or_else(|| format!("this machine can't run the {kernel} engine"))?;
    let (mut states, mut elapsed) = (0, Duration::ZERO);
    for n in [5, 8, 11].map(|n| BoardSize::new(n).expect("a small board")) {
        for kind in PlanKind::ALL {
            let begun = Instant::now();
            let (totals, visited) = count(&Plan::new(n, kind), &mut solver);
            let known = published(n).expect("small boards are published");
            let sorted = symmetric_counts(n, &Control::default()).map(|symmetric| totals.sorted(symmetric));
            if sorted != Ok(Ok(known.orbits)) {
                return Err(format!(
                    "{kernel} counts {totals:?} for N = {n} by plan {kind}; right is {:?}",
                    known.orbits
                ));
            }
            states += visited;
            elapsed += begun.elapsed();
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a speed")]
    let states_per_s = states as f64 / elapsed.as_secs_f64();
    Ok(Proof { kernel, states_per_s })
}

fn count(plan: &Plan, solver: &mut Solver) -> (Totals, u64) {
    let control = Control::default();
    let (mut totals, mut states) = (Totals::default(), 0);
    for (job, weight) in plan.weighed_jobs() {
        states += weight.states;
        for unit in job.units(solver.leaf_test()) {
            let tally = unit.solve(solver, &control).expect("nobody stops it");
            totals = totals.checked_add(tally.counts).expect("small boards");
        }
    }
    (totals, states)
}

/// The engines that this machine can run and that proved themselves, fastest first. Those that fail are logged.
pub fn proven_kernels() -> Vec<Proof> {
    let available = Kernel::ALL.into_iter().rev().filter(|kernel| kernel.is_available());
    available
        .filter_map(|kernel| {
            prove(kernel)
                .inspect_err(|reason| error!(reason, "an engine failed its self-test and is not offered"))
                .ok()
        })
        .collect()
}
