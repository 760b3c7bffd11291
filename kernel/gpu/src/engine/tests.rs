//! The engine on devices that fail.

use std::collections::HashMap;
use std::sync::Arc;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::colours::RowSets;
use nqueens_kernel::engine::Kernel;
use nqueens_kernel::job::Job;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_kernel::random::Random;
use nqueens_kernel::solver::Solver;
use nqueens_kernel::subproblem::OpenRow;
use nqueens_kernel::unit::Unit;

use super::*;
use crate::canary::completions;

/// A device that counts by plain recursion, and has troubles.
#[derive(Default)]
struct Fake {
    masks: Vec<Masks>,
    outcomes: HashMap<Slot, Vec<Outcome>>,
    /// Tasks of the largest launch.
    largest: usize,
    tasks: usize,
    calls: u32,
    /// Tasks that there is memory for, boards, and tasks for which this shows only when they have begun.
    memory: Option<usize>,
    boards_max: Option<usize>,
    memory_late: Option<usize>,
    /// The call that finds it lost.
    lost_at: Option<u32>,
    /// From this task on all counts have a wrong bit.
    wrong_from: Option<usize>,
    /// The task that is left out.
    left_out: Option<usize>,
    /// Tasks with more completions take too long.
    completions_max: Option<u32>,
    /// Looks until a launch ends, each of which stops the count.
    looks: HashMap<Slot, u32>,
    slow: Option<(u32, Arc<Control>)>,
    /// What comes back is of the launch before in the same slot, where there was one.
    is_stale: bool,
    before: HashMap<Slot, Vec<Outcome>>,
}

impl Fake {
    fn call(&mut self) -> Result<(), Fault> {
        self.calls += 1;
        let lost = self.lost_at.is_some_and(|at| self.calls >= at);
        if lost { Err(Fault::Lost("fell off the bus".to_owned())) } else { Ok(()) }
    }

    fn outcome(&mut self, task: Task) -> Outcome {
        self.tasks += 1;
        let completions = completions(&self.masks[task.board as usize], task);
        let completions = u32::try_from(completions).expect("small");
        if self.left_out == Some(self.tasks) {
            return Outcome::NONE;
        }
        if self.completions_max.is_some_and(|most| completions > most && task.rows() > 2) {
            return Outcome { completions: Outcome::UNFINISHED, rounds: ROUNDS_MAX };
        }
        let wrong = u32::from(self.wrong_from.is_some_and(|from| self.tasks >= from));
        Outcome { completions: completions ^ wrong, rounds: 1 + completions }
    }
}

impl Runner for Fake {
    fn lanes(&self) -> usize {
        64
    }

    fn launch_s(&self) -> f64 {
        0.001
    }

    fn set_masks(&mut self, masks: &[[u32; 32]]) -> Result<(), Fault> {
        self.call()?;
        if self.boards_max.is_some_and(|most| masks.len() > most) {
            return Err(Fault::OutOfMemory);
        }
        self.masks = masks.iter().map(|allowed| Masks { allowed: *allowed, free: 0 }).collect();
        Ok(())
    }

    fn start(&mut self, slot: Slot, tasks: &[Task]) -> Result<(), Fault> {
        self.call()?;
        if self.memory.is_some_and(|most| tasks.len() > most) {
            return Err(Fault::OutOfMemory);
        }
        self.largest = self.largest.max(tasks.len());
        let outcomes = tasks.iter().map(|task| self.outcome(*task)).collect();
        assert_eq!(self.outcomes.insert(slot, outcomes), None, "one launch in a slot");
        Ok(())
    }

    fn is_done(&mut self, slot: Slot) -> Result<bool, Fault> {
        self.call()?;
        let begun = self.outcomes.get(&slot).expect("it was started").len();
        if self.memory_late.is_some_and(|most| begun > most) {
            self.outcomes.remove(&slot);
            return Err(Fault::OutOfMemory);
        }
        let Some((looks_max, control)) = &self.slow else { return Ok(true) };
        control.stop();
        let looks = self.looks.entry(slot).or_default();
        *looks += 1;
        Ok(*looks > *looks_max)
    }

    fn outcomes(&mut self, slot: Slot, outcomes: &mut Vec<Outcome>) -> Result<(), Fault> {
        self.call()?;
        *outcomes = self.outcomes.remove(&slot).expect("it was started");
        if self.is_stale
            && let Some(before) = self.before.insert(slot, outcomes.clone())
        {
            let length = outcomes.len().min(before.len());
            outcomes[..length].copy_from_slice(&before[..length]);
        }
        Ok(())
    }
}

fn boards(n: u32) -> Vec<Subproblem> {
    let jobs = Plan::new(BoardSize::new(n).expect("a board"), PlanKind::Border).jobs();
    let units = jobs.flat_map(|job: Job| job.units(false));
    units.filter_map(|unit| Unit::board(&unit).cloned()).collect()
}

/// The completions of the boards of an N by such a device, and by a CPU; or the fault.
fn count(engine: &mut DeviceEngine<Fake>, n: u32) -> Result<(u64, u64), String> {
    let boards = boards(n);
    let mut sums = [0; 2];
    let mut cpu = Kernel::Scalar.engine().expect("it runs everywhere");
    let engines: [&mut dyn Engine; 2] = [engine, &mut *cpu];
    for (engine, sum) in engines.into_iter().zip(&mut sums) {
        for boards in boards.chunks(engine.batch_max()) {
            let mut tallies = vec![Tally::default(); boards.len()];
            if engine.count_batch(boards, &mut tallies, &Control::default()).is_err() {
                return Err(engine.fault().expect("nobody stopped it").to_owned());
            }
            *sum += tallies.iter().map(|tally| tally.completions).sum::<u64>();
        }
    }
    Ok((sums[0], sums[1]))
}

fn assert_equal(mut engine: DeviceEngine<Fake>, n: u32) -> DeviceEngine<Fake> {
    let (device, cpu) = count(&mut engine, n).expect("no fault");
    assert_eq!(device, cpu);
    assert!(cpu > 0);
    engine
}

#[test]
fn several_threads_cut_boards() {
    for threads in [1, 3] {
        assert_equal(DeviceEngine::new(Fake::default(), threads, Vec::new()), 11);
    }
}

#[test]
fn without_memory_launches_get_smaller() {
    let engine =
        assert_equal(DeviceEngine::new(Fake { memory: Some(300), ..Fake::default() }, 1, Vec::new()), 12);
    assert!(
        engine.runner.largest <= 300 && engine.runner.tasks > 600,
        "in several launches: {}",
        engine.runner.tasks
    );
    let late = assert_equal(
        DeviceEngine::new(Fake { memory_late: Some(300), ..Fake::default() }, 1, Vec::new()),
        12,
    );
    assert!(late.runner.largest > 300 && late.load <= 300, "{} and {}", late.runner.largest, late.load);
    for fake in [
        Fake { memory: Some(9), ..Fake::default() },
        Fake { memory_late: Some(9), ..Fake::default() },
        Fake { boards_max: Some(5), ..Fake::default() },
    ] {
        let fault = count(&mut DeviceEngine::new(fake, 1, Vec::new()), 11);
        assert_eq!(fault, Err("the device has no memory left".to_owned()));
    }
}

#[test]
fn without_memory_for_their_masks_fewer_boards_are_counted_together() {
    let canaries = canaries().0.len();
    assert!(boards(11).len() > 7);
    assert_equal(
        DeviceEngine::new(Fake { boards_max: Some(canaries + 3), ..Fake::default() }, 1, Vec::new()),
        11,
    );
}

/// More rows than stems have, so that stems are cut on the way to them.
#[test]
fn boards_with_many_rows_are_counted_to_their_end() {
    let mut random = Random::new(5);
    let boards = [16, 18, 22, 24].map(|n| sparse(n, &mut random));
    let mut engine = DeviceEngine::new(Fake::default(), 2, Vec::new());
    let mut cpu = Kernel::Scalar.engine().expect("it runs everywhere");
    let [mut found, mut expected] = [(); 2].map(|()| vec![Tally::default(); boards.len()]);
    engine.count_batch(&boards, &mut found, &Control::default()).expect("no fault");
    cpu.count_batch(&boards, &mut expected, &Control::default()).expect("nobody stops it");
    let completions = |tallies: &[Tally]| tallies.iter().map(|tally| tally.completions).collect::<Vec<_>>();
    assert_eq!(completions(&found), completions(&expected));
    assert!(completions(&found).iter().all(|completions| *completions > 0), "{expected:?}");
}

/// A board with the cells of a solution, and up to four more in each row. N is even, and not 2 modulo 6.
fn sparse(n: u32, random: &mut Random) -> Subproblem {
    let solution = (1..n).step_by(2).chain((0..n).step_by(2));
    let mut allowed = |column| (0..4).fold(1_u32 << column, |cells, _| cells | 1 << random.below(n.into()));
    let rows: Vec<_> =
        (0..).zip(solution).map(|(row, column)| OpenRow { row, allowed: allowed(column) }).collect();
    Subproblem::new(BoardSize::new(n).expect("a board"), (1 << n) - 1, &rows).expect("a real board")
}

#[test]
fn tasks_that_take_too_long_are_cut_again() {
    assert_equal(
        DeviceEngine::new(Fake { completions_max: Some(400), ..Fake::default() }, 1, Vec::new()),
        11,
    );
}

#[test]
fn a_device_that_is_lost_at_any_call_says_so_and_counts_nothing() {
    let calls = assert_equal(DeviceEngine::new(Fake::default(), 1, Vec::new()), 10).runner.calls;
    assert!(calls >= 4, "masks, a launch, a look, outcomes");
    for lost_at in 1..=calls {
        let mut engine = DeviceEngine::new(Fake { lost_at: Some(lost_at), ..Fake::default() }, 1, Vec::new());
        assert_eq!(count(&mut engine, 10), Err("the device is lost: fell off the bus".to_owned()));
    }
}

#[test]
fn a_device_that_counts_wrong_is_found_by_the_next_canary() {
    let tasks = assert_equal(DeviceEngine::new(Fake::default(), 1, Vec::new()), 11).runner.tasks;
    let last = (0..tasks).step_by(canary::EVERY + 1).next_back().expect("the first task is one");
    assert!(last > 0 && last + 3 < tasks);
    // Also after the last one that stands among others.
    let late = [last + 1, last + 2, tasks - 1, tasks];
    for wrong_from in (1..tasks).step_by(97).chain(late) {
        let mut engine =
            DeviceEngine::new(Fake { wrong_from: Some(wrong_from), ..Fake::default() }, 1, Vec::new());
        let reason = count(&mut engine, 11).expect_err("it is wrong");
        assert!(reason.starts_with("the device counts wrong: ") && reason.contains("solutions"), "{reason}");
    }
}

#[test]
fn a_task_that_was_left_out_is_noticed() {
    for left_out in [1, 2, 600] {
        let mut engine =
            DeviceEngine::new(Fake { left_out: Some(left_out), ..Fake::default() }, 1, Vec::new());
        let reason = count(&mut engine, 12).expect_err("one is missing");
        assert!(reason.ends_with("was left out"), "{reason}");
    }
}

#[test]
fn what_a_launch_before_left_is_noticed() {
    let fake = Fake { is_stale: true, memory: Some(300), ..Fake::default() };
    let reason = count(&mut DeviceEngine::new(fake, 1, Vec::new()), 12).expect_err("it is stale");
    assert!(reason.starts_with("the device counts wrong: ") && reason.contains("solutions"), "{reason}");
}

/// An engine whose launches end after so many looks, and how a count that is stopped by these came out.
fn stopped(looks_max: u32) -> (DeviceEngine<Fake>, Result<(), Stopped>) {
    let control = Arc::new(Control::default());
    let slow = Some((looks_max, Arc::clone(&control)));
    let mut engine = DeviceEngine::new(Fake { slow, memory: Some(300), ..Fake::default() }, 1, Vec::new());
    let boards = boards(12);
    let outcome = engine.count_batch(&boards, &mut vec![Tally::default(); boards.len()], &control);
    (engine, outcome)
}

#[test]
fn a_stop_waits_for_launches_and_the_engine_goes_on_afterwards() {
    let (mut engine, outcome) = stopped(5);
    assert_eq!((outcome, engine.fault()), (Err(Stopped), None));
    assert_eq!(engine.runner.looks.values().collect::<Vec<_>>(), [&6, &6], "both launches have ended");
    engine.runner = Fake::default();
    assert_equal(engine, 9);
}

#[test]
fn a_launch_that_never_ends_is_a_lost_device() {
    let (engine, outcome) = stopped(u32::MAX);
    assert_eq!(outcome, Err(Stopped));
    assert_eq!(engine.fault(), Some("the device is lost: a launch does not end"));
}

/// Its thread multiplies colours, and does not search them.
#[test]
fn without_products_on_the_device_a_thread_multiplies() {
    let mut solver = Solver::new(Box::new(DeviceEngine::new(Fake::default(), 1, Vec::new())), 1 << 28);
    let n = BoardSize::new(11).expect("a board");
    let all = Unit::RowSets(n, 0..RowSets::new(n).expect("large enough").len());
    let tally = solver.count_unit(&all, &Control::default());
    assert_eq!(tally.map(|tally| tally.counts.solutions), Ok(2_680));
    assert!(solver.multiplier().is_some());
}
