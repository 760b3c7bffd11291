//! The self-test of engines: a wrong processor, memory or build shows here, not in a total.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::{Totals, to_f64};
use nqueens_kernel::engine::{Control, Factory, Kernel};
use nqueens_kernel::known::published;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_kernel::solver::Solver;
use nqueens_kernel::symmetric::symmetric_counts;
use tracing::error;

use crate::panics;

/// Enough to tell a slow machine from a fast one, and no more than 1 % of the shortest runs.
const TIME: Duration = Duration::from_millis(2);

/// Engines are far faster on boards of this size than on the small ones of their test, and hardly faster on larger ones.
const BOARD: u32 = 15;

/// Boards on which devices are measured: larger and larger ones, until one takes longer than [`BATCH_TIME`] and is not counted
/// twice as fast as the one before. A large GPU is far faster on each than on those below.
const BOARDS: [u32; 6] = [14, 15, 16, 17, 18, 19];

/// Enough to make up for the way to a device and back.
const BATCH_TIME: Duration = Duration::from_millis(50);

/// Bytes to multiply colours of small boards.
const MEMORY: u64 = 1 << 30;

/// What an engine showed in its test.
#[derive(Clone, Copy, Debug)]
pub struct Proof {
    pub kernel: Kernel,
    /// States that one thread visits in a second.
    pub states_per_s: f64,
}

/// Counts small boards by every plan, and holds the counts against the published ones. The error says what
/// was wrong.
pub fn prove(factory: &Factory, kernel: Kernel) -> Result<Proof, String> {
    caught(kernel.name(), || {
        let mut solver = tested(factory, kernel.name())?;
        Ok(Proof { kernel, states_per_s: states_per_s(&mut solver, TIME) })
    })
}

/// The same for a device, which counts in large batches, and for what is compared with it; its speed by this plan, in estimated
/// states a second.
pub fn prove_device(factory: &Factory, engine: &str, plan: PlanKind) -> Result<f64, String> {
    caught(engine, || measure_device(factory, engine, plan))
}

/// There are wrong counts that no orbits have: to put them together panics.
fn caught<T>(engine: &str, prove: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let proven = catch_unwind(AssertUnwindSafe(prove));
    proven.unwrap_or_else(|panic| Err(format!("{engine} counts wrong: {}", panics::text(&*panic))))
}

fn measure_device(factory: &Factory, engine: &str, plan: PlanKind) -> Result<f64, String> {
    let mut solver = tested(factory, engine)?;
    let mut speed = 1.0;
    for n in BOARDS.map(|n| BoardSize::new(n).expect("a board")) {
        let jobs: Vec<_> = Plan::new(n, plan).weighed_jobs().collect();
        let states: u128 = jobs.iter().map(|(_, weight)| u128::from(weight.states)).sum();
        let begun = Instant::now();
        let counted = solver.count_jobs(jobs.into_iter().map(|(job, _)| job), &Control::default());
        let (totals, _) = counted.map_err(|_stopped| fault_of(&solver))?;
        let elapsed = begun.elapsed();
        compare(engine, n, plan, totals)?;
        let before = std::mem::replace(&mut speed, (to_f64(states) / elapsed.as_secs_f64()).max(1.0));
        if elapsed > BATCH_TIME && speed < 2.0 * before {
            break;
        }
    }
    Ok(speed)
}

fn fault_of(solver: &Solver) -> String {
    solver.fault().expect("nobody stops it").to_owned()
}

/// What counts by an engine that has counted small boards right.
fn tested(factory: &Factory, kernel: &str) -> Result<Solver, String> {
    let engine = factory(kernel).ok_or_else(|| format!("this machine can't run the {kernel} engine"))?;
    let mut solver = Solver::new(engine, MEMORY);
    let control = Control::default();
    for n in [5, 8, 11].map(|n| BoardSize::new(n).expect("a small board")) {
        for kind in PlanKind::ALL {
            let counted = solver.count_jobs(Plan::new(n, kind).jobs(), &control);
            let (totals, _) = counted.map_err(|_stopped| fault_of(&solver))?;
            compare(kernel, n, kind, totals)?;
        }
    }
    Ok(solver)
}

/// Holds what an engine has counted against the published counts.
fn compare(kernel: &str, n: BoardSize, kind: PlanKind, totals: Totals) -> Result<(), String> {
    let known = published(n).expect("small boards are published");
    let symmetric = symmetric_counts(n, &Control::default()).expect("nobody stops it");
    let (found, right) = (totals.sorted(symmetric).unwrap_or(totals), known.orbits);
    if found == right {
        return Ok(());
    }
    Err(format!("{kernel} counts {totals} for N = {n} by plan {kind}; right is {right}"))
}

/// States that one thread visits in a second, at least 1.
fn states_per_s(solver: &mut Solver, time: Duration) -> f64 {
    let plan = Plan::new(BoardSize::new(BOARD).expect("a board"), PlanKind::Border);
    let begun = Instant::now();
    // One job at least: other processes may have had the processor since.
    let mut is_first = true;
    let jobs = plan.jobs().take_while(|_| std::mem::take(&mut is_first) || begun.elapsed() < time);
    let (_, states) = solver.count_jobs(jobs, &Control::default()).expect("nobody stops it");
    (to_f64(states) / begun.elapsed().as_secs_f64()).max(1.0)
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

#[cfg(test)]
mod tests {
    use nqueens_kernel::engine::{Engine, Stopped, Tally, cpu};
    use nqueens_kernel::subproblem::Subproblem;

    use super::*;

    #[test]
    fn every_engine_of_this_machine_proves_itself_and_has_a_speed() {
        let proofs: Vec<_> = proven_kernels(&cpu).collect();
        assert!(
            proofs
                .iter()
                .map(|proof| proof.kernel)
                .eq(Kernel::ALL.into_iter().rev().filter(|kernel| kernel.is_available()))
        );
        assert!(proofs.iter().all(|proof| proof.states_per_s > 1.0), "{proofs:?}");
    }

    #[test]
    fn a_thread_that_has_no_processor_for_long_has_a_speed_all_the_same() {
        let mut solver = Solver::new(cpu("scalar").expect("any machine runs it"), 0);
        assert!(states_per_s(&mut solver, Duration::ZERO) > 1.0);
    }

    #[test]
    fn an_engine_that_is_not_there_or_counts_wrong_proves_nothing() {
        let missing = prove(&|_: &str| None, Kernel::Scalar).unwrap_err();
        assert_eq!(missing, "this machine can't run the scalar engine");
        let reason = prove(&wrong_from(1), Kernel::Portable).unwrap_err();
        assert!(reason.starts_with("portable counts COUNT") && reason.contains("for N = 5"), "{reason}");
        let panics = |_: &str| -> Option<Box<dyn Engine>> { panic!("2 solutions make no group of 8") };
        let reason = prove(&panics, Kernel::Portable).unwrap_err();
        assert_eq!(reason, "portable counts wrong: panicked: 2 solutions make no group of 8");
    }

    /// Finds something else in a board with so many queens than the real engine, which finds so much.
    struct Wrong<F> {
        real: Box<dyn Engine>,
        finds: F,
    }

    impl<F: Fn(u32, u64) -> u64 + Send> Engine for Wrong<F> {
        fn count(&mut self, problem: &Subproblem, control: &Control) -> Result<Tally, Stopped> {
            let tally = self.real.count(problem, control)?;
            Ok(Tally { completions: (self.finds)(problem.n().get(), tally.completions), ..tally })
        }
    }

    fn wrong(
        finds: impl Fn(u32, u64) -> u64 + Copy + Send + 'static,
    ) -> impl Fn(&str) -> Option<Box<dyn Engine>> {
        move |name| Some(Box::new(Wrong { real: cpu(name)?, finds }))
    }

    /// Counts right on boards smaller than `from`.
    fn wrong_from(from: u32) -> impl Fn(&str) -> Option<Box<dyn Engine>> {
        wrong(move |n, right| if n >= from { right / 2 * 2 } else { right })
    }

    #[test]
    fn a_device_proves_itself_on_the_boards_that_measure_it_too() {
        assert!(prove_device(&wrong_from(32), "portable", PlanKind::Border).unwrap() > 1.0);
        assert!(prove_device(&cpu, Kernel::best().name(), PlanKind::Colours).unwrap() > 1.0);
        let right_below = |n| prove_device(&wrong_from(n), "portable", PlanKind::Border).unwrap_err();
        let small = right_below(1);
        assert!(small.starts_with("portable counts COUNT") && small.contains("for N = 5 "), "{small}");
        // On a board that measures it, whose counts make no orbits.
        let large = right_below(14);
        assert!(large.starts_with("portable counts wrong: panicked: "), "{large}");
        // By as many solutions as there are in an orbit.
        let more = wrong(|n, right| if n == 14 && right > 0 { right + 8 } else { right });
        let more = prove_device(&more, "portable", PlanKind::Border).unwrap_err();
        assert!(more.starts_with("portable counts COUNT") && more.contains("for N = 14 by"), "{more}");
    }
}
