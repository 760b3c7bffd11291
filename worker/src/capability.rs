//! What an engine can do, found out in a moment.

use std::env::consts::ARCH;
use std::time::{Duration, Instant};

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::engine::Control;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_kernel::solver::Solver;
use nqueens_model::kernel::{Capability, KernelName};

use crate::selftest::Proof;

/// Enough to tell a slow machine from a fast one, and no more than 1 % of the shortest runs.
const TIME: Duration = Duration::from_millis(5);

/// Engines are far faster on boards of this size than on the small ones of their test, and hardly faster on larger ones.
const BOARD: u32 = 15;

/// What coordinators are told of an engine that so many threads count with.
pub(crate) fn capability(engine: Proof, threads: u32) -> Capability {
    let Proof { kernel, states_per_s } = engine;
    let device: Vec<_> = std::iter::once(ARCH).chain(kernel.needs().iter().copied()).collect();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let states_per_s = (states_per_s * f64::from(threads)) as u64;
    Capability {
        family: KernelName::from(kernel).family(None, PlanKind::Border),
        device: device.join(" "),
        states_per_s: states_per_s.max(1),
    }
}

/// States that one thread visits in a second, at least 1.
pub(crate) fn states_per_s(solver: &mut Solver) -> f64 {
    let plan = Plan::new(BoardSize::new(BOARD).expect("a board"), PlanKind::Border);
    let begun = Instant::now();
    let jobs = plan.jobs().take_while(|_| begun.elapsed() < TIME);
    let (_, states) = solver.count_jobs(jobs, &Control::default()).expect("nobody stops it");
    #[expect(clippy::cast_precision_loss, reason = "a speed")]
    let speed = states as f64 / begun.elapsed().as_secs_f64();
    speed.max(1.0)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use nqueens_kernel::engine::Kernel;
    use nqueens_kernel::halves::SharedTables;

    use super::*;

    #[test]
    fn every_engine_has_a_speed_and_a_device_that_fits_the_wire() {
        for kernel in Kernel::ALL {
            let capability = capability(Proof { kernel, states_per_s: 0.5 }, 3);
            assert_eq!(
                (capability.states_per_s, capability.family.as_str()),
                (1, kernel.family(PlanKind::Border))
            );
            assert!((1..=64).contains(&capability.device.len()), "{}", capability.device);
            if let Some(engine) = kernel.engine() {
                let mut solver = Solver::new(engine, &Arc::new(SharedTables::new(0, 1)));
                assert!(states_per_s(&mut solver) > 1.0);
            }
        }
    }
}
