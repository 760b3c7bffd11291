//! Devices that fail while they multiply.

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::colours::RowSets;
use nqueens_kernel::engine::{Engine, Tally, cpu};
use nqueens_kernel::halves::SharedTables;
use nqueens_kernel::solver::Solver;
use nqueens_kernel::subproblem::Subproblem;
use std::sync::Arc;

use super::*;

/// A device that counts by plain loops, and has troubles.
#[derive(Clone, Default)]
struct Fake {
    sums: Vec<[u64; 2]>,
    calls: u32,
    launches: usize,
    /// The call that finds it lost.
    lost_at: Option<u32>,
    /// From this launch on all sums have a wrong bit.
    wrong_from: Option<usize>,
    /// Its launches take so many looks.
    looks: u32,
}

impl Fake {
    fn call(&mut self) -> Result<(), Fault> {
        self.calls += 1;
        let lost = self.lost_at.is_some_and(|at| self.calls >= at);
        if lost { Err(Fault::Lost("fell off the bus".to_owned())) } else { Ok(()) }
    }
}

impl PairRunner for Fake {
    fn width(&self) -> usize {
        4
    }

    fn launch_s(&self) -> f64 {
        1e-4
    }

    fn set(&mut self, _: &PairWork<'_>) -> Result<(), Fault> {
        self.call()
    }

    fn start(&mut self, work: &PairWork<'_>, first: usize, row_sets: usize) -> Result<(), Fault> {
        self.call()?;
        self.launches += 1;
        self.looks = 2;
        let wrong = u64::from(self.wrong_from.is_some_and(|from| self.launches >= from));
        let pieces = work.sets()[1].div_ceil(self.width());
        self.sums.clear();
        for row_set in first..first + row_sets {
            for stripe in 0..STRIPES {
                for piece in 0..pieces {
                    let sum = sum_of(work, row_set, stripe, piece * self.width(), self.width());
                    let [low, high] =
                        [sum, sum >> 64].map(|half| u64::try_from(half & u128::from(u64::MAX)).unwrap());
                    self.sums.push([low ^ wrong, high]);
                }
            }
        }
        Ok(())
    }

    fn is_done(&mut self) -> Result<bool, Fault> {
        self.call()?;
        self.looks = self.looks.saturating_sub(1);
        Ok(self.looks == 0)
    }

    fn sums(&mut self) -> Result<Vec<[u64; 2]>, Fault> {
        self.call()?;
        Ok(self.sums.clone())
    }
}

/// An engine whose device multiplies, and does nothing else.
struct Multiplies(Option<DevicePairs<Fake>>);

impl Engine for Multiplies {
    fn count(&mut self, _: &Subproblem, _: &Control) -> Result<Tally, Stopped> {
        unreachable!("there are no boards")
    }

    fn pair_counter(&mut self) -> Option<Box<dyn PairCounter>> {
        Some(Box::new(self.0.take().expect("it is asked for once")))
    }
}

/// All solutions of an N by such a device, or its fault.
fn total(fake: Fake, n: u32, control: &Control) -> Result<u64, Option<String>> {
    let sets = RowSets::new(BoardSize::new(n).unwrap()).unwrap();
    let engine = Multiplies(Some(DevicePairs::new(fake)));
    let mut solver = Solver::new(Box::new(engine), &Arc::new(SharedTables::new(0, 1)));
    match solver.count_colours(&sets, 0..sets.len(), control) {
        Ok(tally) => Ok(tally.weighted_solutions),
        Err(Stopped) => Err(solver.fault().map(str::to_owned)),
    }
}

#[test]
fn sums_are_put_together() {
    for (n, solutions) in [(4, 2), (8, 92), (11, 2_680)] {
        assert_eq!(total(Fake::default(), n, &Control::default()), Ok(solutions));
    }
    assert!(cpu("scalar").unwrap().pair_counter().is_none());
}

#[test]
fn a_device_that_is_lost_at_any_call_says_so_and_counts_nothing() {
    for lost_at in 1..40 {
        let fake = Fake { lost_at: Some(lost_at), ..Fake::default() };
        let fault = total(fake, 9, &Control::default());
        assert_eq!(fault, Err(Some("the device is lost: fell off the bus".to_owned())));
    }
}

#[test]
fn a_device_that_counts_wrong_is_found_in_its_next_launch() {
    for wrong_from in [1, 2, 9] {
        let fake = Fake { wrong_from: Some(wrong_from), ..Fake::default() };
        let fault = total(fake, 9, &Control::default()).expect_err("it is wrong").expect("and says so");
        assert!(fault.starts_with("the device counts wrong: ") && fault.contains("for a sum of"), "{fault}");
    }
}

#[test]
fn a_stop_is_no_fault() {
    let control = Control::default();
    control.stop();
    assert_eq!(total(Fake::default(), 9, &control), Err(None));
}
