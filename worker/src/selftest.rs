//! The self-test of engines: a wrong processor, memory or build shows here, not in a total.

use std::sync::Arc;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::engine::{Control, Factory, Kernel};
use nqueens_kernel::halves::SharedTables;
use nqueens_kernel::known::published;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_kernel::solver::Solver;
use nqueens_kernel::symmetric::symmetric_counts;
use tracing::error;

use crate::capability::states_per_s;

/// What an engine showed in its test.
#[derive(Clone, Copy, Debug)]
pub struct Proof {
    /// The engine.
    pub kernel: Kernel,
    /// States that one thread visits in a second.
    pub states_per_s: f64,
}

/// Counts small boards by every plan and holds the counts against the published ones. The error says what was wrong.
pub fn prove(factory: &Factory, kernel: Kernel) -> Result<Proof, String> {
    let engine =
        factory(kernel.name()).ok_or_else(|| format!("this machine can't run the {kernel} engine"))?;
    let mut solver = Solver::new(engine, &Arc::new(SharedTables::new(u64::MAX, 1)));
    let control = Control::default();
    for n in [5, 8, 11].map(|n| BoardSize::new(n).expect("a small board")) {
        for kind in PlanKind::ALL {
            let counted = solver.count_jobs(Plan::new(n, kind).jobs(), &control);
            let (totals, _) = counted.expect("nobody stops it");
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
    Ok(Proof { kernel, states_per_s: states_per_s(&mut solver) })
}

/// The engines that this machine can run and that proved themselves, fastest first. Those that fail are logged.
pub fn proven_kernels(factory: &Factory) -> impl Iterator<Item = Proof> {
    let available = Kernel::ALL.into_iter().rev().filter(|kernel| kernel.is_available());
    available.filter_map(|kernel| {
        prove(factory, kernel)
            .inspect_err(|reason| error!(reason, "an engine failed its self-test and is not offered"))
            .ok()
    })
}
