//! Devices that fail while they multiply.

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::colours::RowSets;
use nqueens_kernel::engine::{Engine, Tally, cpu};
use nqueens_kernel::solver::Solver;
use nqueens_kernel::subproblem::Subproblem;
use nqueens_kernel::unit::Unit;
use std::array;

use super::*;

/// A device that counts by plain loops, and has troubles.
#[derive(Clone, Default)]
struct Fake {
    work: Counted,
    calls: u32,
    launches: usize,
    /// The call that finds it lost.
    lost_at: Option<u32>,
    /// From this launch on it counts a fit more, or its sums have a wrong bit, or it leaves an item out.
    fit_from: Option<usize>,
    sum_from: Option<usize>,
    left_out_from: Option<usize>,
    /// It has memory for so many parts, and for launches of so many items.
    parts_max: Option<usize>,
    launch_max: Option<usize>,
    /// Its launches take so many looks; or they never end.
    looks: u32,
    hangs: bool,
}

/// What it has been given to count.
#[derive(Clone, Default)]
struct Counted {
    /// By colour, part, group, and row.
    cells: [Vec<Vec<Vec<[u32; SETS]>>>; 2],
    sums: Vec<[u64; 2]>,
    /// Items of the launch.
    items: usize,
}

impl Fake {
    fn call(&mut self) -> Result<(), Fault> {
        self.calls += 1;
        let lost = self.lost_at.is_some_and(|at| self.calls >= at);
        if lost { Err(Fault::Lost("fell off the bus".to_owned())) } else { Ok(()) }
    }

    fn is_from(&self, launch: Option<usize>) -> bool {
        launch.is_some_and(|from| self.launches >= from)
    }
}

/// All fits of a colour's lists of a part.
fn cells_of(work: &ProductWork<'_>, colour: usize, part: &ProductPart<'_>) -> Vec<Vec<[u32; SETS]>> {
    let (tree, sets) = (&work.trees[colour], part.factors[colour].len());
    let rows: Vec<_> = (0..work.row_sets * tree.height).map(|row| (work.placements)(colour, row)).collect();
    let cell = |row: &Vec<u64>, set: usize| {
        if set < sets { u32::try_from(fits(row, part.lists[colour].list(set))).unwrap() } else { 0 }
    };
    (0..groups(sets))
        .map(|group| rows.iter().map(|row| array::from_fn(|lane| cell(row, group * SETS + lane))).collect())
        .collect()
}

impl ProductRunner for Fake {
    fn matrices_max(&self) -> u64 {
        1 << 20
    }

    fn items_wanted(&self) -> usize {
        40
    }

    fn items_max(&self, colour: usize) -> usize {
        5 + colour
    }

    fn launch_s(&self) -> f64 {
        1e-4
    }

    fn set(&mut self, work: &ProductWork<'_>, _: &[Walk; 2]) -> Result<(), Fault> {
        self.call()?;
        if self.parts_max.is_some_and(|most| work.parts.len() > most) {
            return Err(Fault::OutOfMemory);
        }
        self.work.cells =
            [0, 1].map(|colour| work.parts.iter().map(|part| cells_of(work, colour, part)).collect());
        let [ps, ls] = sets(work);
        self.work.sums.clear();
        for (at, part) in work.parts.iter().enumerate() {
            for row_set in 0..work.row_sets {
                for p_group in 0..groups(ps) {
                    for l_group in 0..groups(ls) {
                        let mut sum = 0;
                        for p in p_group * SETS..ps.min((p_group + 1) * SETS) {
                            for l in l_group * SETS..ls.min((l_group + 1) * SETS) {
                                let one = self.work.cells[0][at][p_group][row_set * ls + l][p % SETS];
                                let other = self.work.cells[1][at][l_group][row_set * ps + p][l % SETS];
                                let [p, l] = [part.factors[0][p], part.factors[1][l]];
                                sum +=
                                    u64::from(one) * u64::from(other) * u64::from(p[0] * l[0] + p[1] * l[1]);
                            }
                        }
                        self.work.sums.push([sum, 0]);
                    }
                }
            }
        }
        Ok(())
    }

    fn start_fits(&mut self, _: usize, items: Range<usize>) -> Result<(), Fault> {
        self.call()?;
        if self.launch_max.is_some_and(|most| items.len() > most) {
            return Err(Fault::OutOfMemory);
        }
        self.launches += 1;
        self.looks = 2;
        self.work.items = items.len();
        Ok(())
    }

    fn start_products(&mut self) -> Result<(), Fault> {
        self.call()
    }

    fn is_done(&mut self) -> Result<bool, Fault> {
        self.call()?;
        self.looks = self.looks.saturating_sub(1);
        Ok(self.looks == 0 && !self.hangs)
    }

    fn compared(&mut self) -> Result<Vec<u64>, Fault> {
        self.call()?;
        let mut compared = vec![3; self.work.items];
        if self.is_from(self.left_out_from) {
            compared[self.launches % self.work.items] = LEFT_OUT;
        }
        Ok(compared)
    }

    fn sums(&mut self) -> Result<Vec<[u64; 2]>, Fault> {
        self.call()?;
        let wrong = u64::from(self.is_from(self.sum_from));
        Ok(self.work.sums.iter().map(|&[low, high]| [low ^ wrong, high]).collect())
    }

    fn cells(
        &mut self,
        colour: usize,
        part: usize,
        group: usize,
        rows: Range<usize>,
    ) -> Result<Vec<[u32; SETS]>, Fault> {
        self.call()?;
        let more = u32::from(self.is_from(self.fit_from));
        Ok(self.work.cells[colour][part][group][rows].iter().map(|row| row.map(|fits| fits + more)).collect())
    }
}

/// An engine whose device multiplies, and does nothing else.
struct Multiplies(Vec<DeviceProducts<Fake>>);

impl Engine for Multiplies {
    fn count(&mut self, _: &Subproblem, _: &Control) -> Result<Tally, Stopped> {
        unreachable!("there are no boards")
    }

    fn product_counters(&mut self) -> Vec<Box<dyn ProductCounter>> {
        self.0.drain(..).map(|products| Box::new(products) as _).collect()
    }
}

/// All solutions of an N by such a device, or its fault.
fn total(fake: Fake, n: u32, control: &Control) -> Result<u64, Option<String>> {
    let n = BoardSize::new(n).unwrap();
    let all = Unit::RowSets(n, 0..RowSets::new(n).unwrap().len());
    // Of two devices side by side the second has no trouble.
    let engine = Multiplies([fake, Fake::default()].map(|fake| DeviceProducts::new(fake, 3)).into());
    let mut solver = Solver::new(Box::new(engine), 0);
    match solver.count_unit(&all, control) {
        Ok(tally) => Ok(tally.counts.solutions),
        Err(Stopped) => Err(solver.fault().map(str::to_owned)),
    }
}

#[test]
fn sums_are_put_together() {
    for (n, solutions) in [(4, 2), (8, 92), (11, 2_680)] {
        assert_eq!(total(Fake::default(), n, &Control::default()), Ok(solutions));
    }
    assert!(cpu("scalar").unwrap().product_counters().is_empty());
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
fn a_device_that_counts_wrong_is_found() {
    let from = |launch| {
        let fit = Fake { fit_from: Some(launch), ..Fake::default() };
        let sum = Fake { sum_from: Some(launch), ..Fake::default() };
        let left_out = Fake { left_out_from: Some(launch), ..Fake::default() };
        [(fit, " fits"), (sum, " for a sum of "), (left_out, "items were left out")]
    };
    for (fake, reason) in [1, 2, 9].into_iter().flat_map(from) {
        let fault = total(fake, 9, &Control::default()).expect_err("it is wrong").expect("and says so");
        assert!(fault.starts_with("the device counts wrong: ") && fault.contains(reason), "{fault}");
    }
}

#[test]
fn with_less_memory_fewer_parts_are_counted_at_once() {
    for parts_max in 1..4 {
        let fake = Fake { parts_max: Some(parts_max), ..Fake::default() };
        assert_eq!(total(fake, 10, &Control::default()), Ok(724));
    }
    let fault = total(Fake { parts_max: Some(0), ..Fake::default() }, 10, &Control::default());
    assert_eq!(fault, Err(Some(Fault::OutOfMemory.to_string())));
}

#[test]
fn with_less_memory_launches_are_smaller() {
    for launch_max in 1..4 {
        let fake = Fake { launch_max: Some(launch_max), ..Fake::default() };
        assert_eq!(total(fake, 10, &Control::default()), Ok(724));
    }
    let fault = total(Fake { launch_max: Some(0), ..Fake::default() }, 10, &Control::default());
    assert_eq!(fault, Err(Some(Fault::OutOfMemory.to_string())));
}

#[test]
fn a_launch_that_never_ends_is_a_lost_device() {
    let fault = total(Fake { hangs: true, ..Fake::default() }, 9, &Control::default());
    assert_eq!(fault, Err(Some("the device is lost: a launch does not end".to_owned())));
}

#[test]
fn a_stop_is_no_fault() {
    let control = Control::default();
    control.stop();
    assert_eq!(total(Fake::default(), 9, &control), Err(None));
}
