//! Every engine is held equal to the reference, on boards with any masks and gaps, and stops when asked.

use std::cell::RefCell;
use std::slice;
use std::sync::{Arc, Mutex};
use std::thread;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::engine::{Control, Engine, Kernel, Stopped, Tally};
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_kernel::solver::Solver;
use nqueens_kernel::subproblem::Subproblem;
use nqueens_kernel::symmetric::symmetric_counts;
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};

use crate::board;
use crate::boards::boards;

/// The same engines count one board after another, so that what one leaves behind would spoil the next.
#[test]
fn engines_agree_on_any_board() {
    let available = Kernel::ALL.into_iter().filter_map(|kernel| Some((kernel, kernel.engine()?)));
    let engines = RefCell::new(available.collect::<Vec<_>>());
    for (cases, most) in [(12_000, 9), (600, 13)] {
        let config = ProptestConfig {
            cases,
            rng_seed: RngSeed::Fixed(18),
            failure_persistence: None,
            ..ProptestConfig::default()
        };
        let outcome = TestRunner::new(config).run(&boards(most), |board| {
            let tally = |engine: &mut Box<dyn Engine>| {
                engine.count(&board, &Control::default()).expect("nobody stops it")
            };
            let tallies: Vec<_> =
                engines.borrow_mut().iter_mut().map(|(kernel, engine)| (*kernel, tally(engine))).collect();
            let expected = tallies[0].1.completions;
            prop_assert!(expected <= board.completions_max());
            for (kernel, tally) in &tallies {
                prop_assert_eq!(tally.completions, expected, "{}", kernel);
            }
            // Block engines go the same way, unless some split off columns that narrow lanes can't hold.
            if board.free() >> board.free().trailing_zeros().min(31) <= 0xffff {
                let states: Vec<_> = tallies[2..].iter().map(|(_, tally)| tally.states).collect();
                prop_assert!(states.iter().all(|one| *one == states[0]), "{:?}", states);
            }
            Ok(())
        });
        outcome.unwrap();
    }
}

/// An engine that counts up to so many boards at once, the last one first.
struct Batching(Box<dyn Engine>, usize);

impl Engine for Batching {
    fn count(&mut self, problem: &Subproblem, control: &Control) -> Result<Tally, Stopped> {
        let mut tally = [Tally::default()];
        self.count_batch(slice::from_ref(problem), &mut tally, control)?;
        Ok(tally[0])
    }

    fn batch_max(&self) -> usize {
        self.1
    }

    fn count_batch(
        &mut self,
        problems: &[Subproblem],
        tallies: &mut [Tally],
        control: &Control,
    ) -> Result<(), Stopped> {
        assert!((1..=self.1).contains(&problems.len()) && problems.len() == tallies.len());
        for (problem, tally) in problems.iter().zip(tallies).rev() {
            *tally = self.0.count(problem, control)?;
        }
        Ok(())
    }

    fn isa(&self) -> Option<Kernel> {
        self.0.isa()
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200, rng_seed: RngSeed::Fixed(8), failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn batches_give_each_unit_what_it_has_alone(
        n in 4u32..=9,
        kind in prop::sample::select(&PlanKind::ALL[..]),
        batch_max in 1usize..=70,
        leaf_test in any::<bool>(),
        mirrored in any::<bool>(),
    ) {
        let engine = || Kernel::Portable.engine().unwrap();
        let solvers = [engine(), Box::new(Batching(engine(), batch_max))].map(|engine| {
            let mut solver = Solver::new(engine, 1 << 20);
            solver.mirror(mirrored);
            solver
        });
        let [mut alone, mut together] = solvers;
        let plan = Plan::with_states_per_job(board(n), kind, 30);
        let units: Vec<_> = plan.jobs().flat_map(|job| job.units(leaf_test)).collect();
        let control = Control::default();
        let expected: Vec<_> =
            units.iter().map(|unit| alone.count_unit(unit, &control).unwrap()).collect();
        prop_assert_eq!(together.count(&units, &control).unwrap(), expected);
        let [one, many] = [alone, together].map(|mut solver| solver.count_jobs(plan.jobs(), &control));
        prop_assert_eq!(one, many);
    }
}

/// An engine that keeps what it was asked for.
struct Listening(Arc<Mutex<Vec<Subproblem>>>);

impl Engine for Listening {
    fn count(&mut self, problem: &Subproblem, _: &Control) -> Result<Tally, Stopped> {
        self.0.lock().unwrap().push(problem.clone());
        Ok(Tally::default())
    }
}

#[test]
fn second_counts_ask_engines_for_mirror_images() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let engine = || Box::new(Listening(Arc::clone(&asked)));
    let mut solvers = [Solver::new(engine(), 0), Solver::new(engine(), 0), Solver::recounting(engine())];
    solvers[1].mirror(true);
    for kind in [PlanKind::Rows, PlanKind::Border] {
        let job = Plan::new(board(8), kind).jobs().next().unwrap();
        let [plain, mirrored, recounted] = solvers.each_mut().map(|solver| {
            solver.count_job(&job, &Control::default()).unwrap().unwrap();
            std::mem::take(&mut *asked.lock().unwrap())
        });
        let images: Vec<_> = plain.iter().map(Subproblem::mirrored).collect();
        assert!(!images.is_empty() && images != plain, "{kind}");
        assert!(images == mirrored && images == recounted, "{kind}");
    }
}

#[test]
fn engines_count_whole_boards_again_and_again() {
    for kernel in Kernel::ALL.into_iter().filter(|kernel| kernel.is_available()) {
        let mut engine = kernel.engine().unwrap();
        for (n, solutions) in
            [(1, 1), (10, 724), (2, 0), (4, 2), (11, 2680), (3, 0), (5, 10), (6, 4), (7, 40)]
        {
            let control = Control::default();
            let tally = engine.count(&Subproblem::empty(board(n)), &control).unwrap();
            assert_eq!(tally.completions, solutions, "{kernel} {n}");
            assert_eq!(tally.states, control.states(), "{kernel} {n}");
        }
    }
}

#[test]
fn whoever_is_stopped_stops() {
    let control = Control::default();
    control.stop();
    let largest = BoardSize::MAX;
    assert_eq!(symmetric_counts(largest, &control), Err(Stopped));
    for kernel in Kernel::ALL.into_iter().filter(|kernel| kernel.is_available()) {
        let mut engine = kernel.engine().unwrap();
        assert_eq!(engine.count(&Subproblem::empty(largest), &control), Err(Stopped), "{kernel}");
        let mut solver = Solver::new(kernel.engine().unwrap(), 1 << 30);
        for kind in PlanKind::ALL {
            let job = Plan::with_states_per_job(largest, kind, u64::MAX).jobs().last().unwrap();
            for unit in [job.units(false), job.units(true)].concat() {
                assert_eq!(solver.count_unit(&unit, &control), Err(Stopped), "{kernel} {unit:?}");
            }
        }
    }
}

#[test]
fn a_job_under_way_tells_how_far_it_is_and_stops_when_another_thread_says_so() {
    // Hours of work for the fastest engine.
    let job = |(n, kind)| {
        let large = Plan::with_states_per_job(board(n), kind, u64::MAX);
        large.jobs().next().unwrap()
    };
    let jobs = [(24, PlanKind::Border), (27, PlanKind::Colours)].map(job);
    let kernels = Kernel::ALL.into_iter().filter(|kernel| kernel.is_available());
    for (kernel, job) in kernels.flat_map(|kernel| jobs.iter().map(move |job| (kernel, job))) {
        let mut solver = Solver::new(kernel.engine().unwrap(), 1 << 25);
        let control = Control::default();
        let outcome = thread::scope(|scope| {
            let counting = scope.spawn(|| solver.count_job(job, &control));
            let mut seen = 0;
            for _ in 0..3 {
                while control.states() == seen && !counting.is_finished() {
                    thread::yield_now();
                }
                seen = control.states();
            }
            control.stop();
            counting.join().unwrap()
        });
        assert_eq!(outcome, Err(Stopped), "{kernel}");
        let small = Plan::new(board(8), PlanKind::Colours).jobs().next().unwrap();
        let again = solver.count_job(&small, &Control::default()).unwrap().unwrap();
        assert_eq!(again.counts.solutions, 92, "{kernel}");
    }
}
