//! Engines prove themselves before they are offered: a wrong processor, memory or build shows here, not in a total.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::engine::{Control, Factory, Kernel};
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
pub fn prove(factory: &Factory, kernel: Kernel) -> Result<Proof, String> {
    let engine =
        factory(kernel.name()).ok_or_else(|| format!("this machine can't run the {kernel} engine"))?;
    let mut solver = Solver::new(engine, &Arc::new(SharedTables::new(u64::MAX, 1)));
    let (mut states, mut elapsed, control) = (0, Duration::ZERO, Control::default());
    for n in [5, 8, 11].map(|n| BoardSize::new(n).expect("a small board")) {
        for kind in PlanKind::ALL {
            let (begun, plan) = (Instant::now(), Plan::new(n, kind));
            let jobs = plan.weighed_jobs().inspect(|(_, weight)| states += weight.states);
            let counted = solver.count_jobs(jobs.map(|(job, _)| job), &control);
            let (totals, _) = counted.expect("nobody stops it");
            elapsed += begun.elapsed();
            let known = published(n).expect("small boards are published");
            let sorted = symmetric_counts(n, &control).map(|symmetric| totals.sorted(symmetric));
            if sorted != Ok(Ok(known.orbits)) {
                return Err(format!(
                    "{kernel} counts {totals:?} for N = {n} by plan {kind}; right is {:?}",
                    known.orbits
                ));
            }
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a speed")]
    let states_per_s = states as f64 / elapsed.as_secs_f64();
    Ok(Proof { kernel, states_per_s })
}

/// The engines that this machine can run and that proved themselves, fastest first. Those that fail are logged.
pub fn proven_kernels(factory: &Factory) -> impl Iterator<Item = Proof> {
    let available = Kernel::ALL.into_iter().rev().filter(|kernel| kernel.is_available());
    available.filter_map(|kernel| {
        prove(factory, kernel)
            .inspect_err(|reason| error!(reason, "an engine failed its test and is not offered"))
            .ok()
    })
}
