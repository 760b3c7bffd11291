//! For the benchmark `lanes`: a GPU that is not there. It counts on the CPU, and knows how long its lanes would have taken.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::thread;

use nqueens_kernel::engine::{Control, Engine, Tally};
use nqueens_kernel::subproblem::Subproblem;

use crate::engine::DeviceEngine;
use crate::runner::{Fault, Outcome, ROUNDS_MAX, Runner, SLOTS, STEPS, Slot, Task};

/// An H200 has so many multiprocessors.
const MULTIPROCESSORS: usize = 132;

/// Lanes of a multiprocessor: those that its memory has room for, in 5 groups, and those that a launch asks for.
const RESIDENT: usize = 5 * 128;
const LAUNCHED: usize = 8 * 128;

/// Lanes of a warp, which go through the same steps.
const WARP: usize = 32;

/// Rounds that a warp waits whose lanes take work: for the instructions alone, and if nothing hides that memory is slow.
const WAITS: [u64; 2] = [1, 10];

/// What came of some boards.
#[derive(Debug)]
pub struct Report {
    /// Their completions.
    pub completions: u64,
    /// Launches that the engine made.
    pub launches: usize,
    /// Tasks in them.
    pub tasks: usize,
    /// Steps of all tasks.
    pub steps: u64,
    /// Steps of the largest task.
    pub steps_max: u64,
    /// Share of the time that lanes are busy: if taking work costs a warp one round of steps, or ten.
    pub busy: [f64; 2],
}

/// Counts boards on one of `share` parts of an H200, in batches that are smaller by as much.
pub fn simulate(boards: &[Subproblem], share: usize) -> Report {
    let multiprocessors = MULTIPROCESSORS / share;
    let device = Simulated { multiprocessors, ..Simulated::default() };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut engine = DeviceEngine::new(device, threads);
    let mut completions = 0;
    for boards in boards.chunks(engine.batch_max() / share) {
        let mut tallies = vec![Tally::default(); boards.len()];
        let outcome = engine.count_batch(boards, &mut tallies, &Control::default());
        outcome.unwrap_or_else(|_| panic!("{:?}", engine.fault()));
        completions += tallies.iter().map(|tally| tally.completions).sum::<u64>();
    }
    let Simulated { launches, tasks, busy, largest, rounds, .. } = *engine.runner();
    let lanes = (multiprocessors * RESIDENT) as u64;
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    let busy_share = rounds.map(|rounds| busy as f64 / (rounds * lanes) as f64);
    let [steps, steps_max] = [busy, largest].map(|rounds| rounds * u64::from(STEPS));
    Report { completions, launches, tasks, steps, steps_max, busy: busy_share }
}

/// A device that has counted as soon as it starts.
#[derive(Default)]
struct Simulated {
    multiprocessors: usize,
    masks: Vec<[u32; 32]>,
    outcomes: [Vec<Outcome>; SLOTS],
    launches: usize,
    tasks: usize,
    /// Rounds of all tasks, and of the largest.
    busy: u64,
    largest: u64,
    /// Rounds until all launches have ended, for each of [`WAITS`].
    rounds: [u64; 2],
}

impl Runner for Simulated {
    fn lanes(&self) -> usize {
        self.multiprocessors * LAUNCHED
    }

    fn launch_s(&self) -> f64 {
        // Time here says nothing. An H200 has ended the largest launch before its time is up.
        f64::INFINITY
    }

    fn set_masks(&mut self, masks: &[[u32; 32]]) -> Result<(), Fault> {
        self.masks = masks.to_vec();
        Ok(())
    }

    fn start(&mut self, slot: Slot, tasks: &[Task]) -> Result<(), Fault> {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let outcome = |task: &Task| outcome(&self.masks[task.board as usize], *task);
        let outcomes: Vec<_> = thread::scope(|scope| {
            let parts = tasks.chunks(tasks.len().div_ceil(threads));
            let count = |part: &[Task]| part.iter().map(outcome).collect::<Vec<_>>();
            let parts: Vec<_> = parts.map(|part| scope.spawn(move || count(part))).collect();
            parts.into_iter().flat_map(|part| part.join().expect("no thread panics")).collect()
        });
        let rounds: Vec<_> = outcomes.iter().map(|outcome| u64::from(outcome.rounds)).collect();
        self.launches += 1;
        self.tasks += rounds.len();
        self.busy += rounds.iter().sum::<u64>();
        self.largest = rounds.iter().copied().fold(self.largest, u64::max);
        for (sum, wait) in self.rounds.iter_mut().zip(WAITS) {
            *sum += launch(&rounds, self.multiprocessors * RESIDENT / WARP, wait);
        }
        self.outcomes[slot] = outcomes;
        Ok(())
    }

    fn is_done(&mut self, _: Slot) -> Result<bool, Fault> {
        Ok(true)
    }

    fn outcomes(&mut self, slot: Slot, outcomes: &mut Vec<Outcome>) -> Result<(), Fault> {
        outcomes.clone_from(&self.outcomes[slot]);
        Ok(())
    }

    fn stop(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}

/// What `search.cl` makes of a task.
pub(crate) fn outcome(allowed: &[u32; 32], task: Task) -> Outcome {
    let cells = task.free & !(task.left >> 1 | task.right) & allowed[task.rows()];
    let (completions, steps) = search(allowed, [task.left, task.right, task.free, cells]);
    let rounds = u32::try_from(steps.div_ceil(u64::from(STEPS))).unwrap_or(u32::MAX);
    if rounds > ROUNDS_MAX {
        return Outcome { completions: Outcome::UNFINISHED, rounds: ROUNDS_MAX };
    }
    Outcome { completions, rounds }
}

/// Completions and steps of a node: a step takes one candidate.
fn search(allowed: &[u32; 32], [left, right, free, mut cells]: [u32; 4]) -> (u32, u64) {
    let (mut completions, mut steps) = (0, 0);
    while cells != 0 {
        let queen = cells & cells.wrapping_neg();
        cells ^= queen;
        steps += 1;
        let (left, right, free) = (queen * 2 + left, (right | queen) >> 1, free ^ queen);
        let rows = free.count_ones() as usize;
        let here = free & !(left | right) & allowed[rows];
        if rows == 1 {
            completions += u32::from(here != 0);
        } else if here != 0 && free & !(left << 1 | right >> 1) & allowed[rows - 1] != 0 {
            let (more, below) = search(allowed, [left << 1, right, free, here]);
            completions += more;
            steps += below;
        }
    }
    (completions, steps)
}

/// Rounds until the last lane has ended. A lane that is done takes the next task, and its warp waits for that.
fn launch(tasks: &[u64], warps: usize, wait: u64) -> u64 {
    let mut tasks = tasks.iter().copied();
    // What is left to each lane of its task, and when its warp looks for work.
    let mut lanes = vec![[0; WARP]; warps];
    let mut looks: BinaryHeap<_> = (0..warps).map(|warp| Reverse((0, warp))).collect();
    let mut end = 0;
    while let Some(Reverse((now, warp))) = looks.pop() {
        let lanes = &mut lanes[warp];
        let mut waited = 0;
        for lane in lanes.iter_mut().filter(|lane| **lane == 0) {
            let Some(task) = tasks.next() else { break };
            (*lane, waited) = (task, wait);
        }
        let Some(rounds) = lanes.iter().copied().filter(|left| *left > 0).min() else {
            end = end.max(now);
            continue;
        };
        for lane in lanes {
            *lane = lane.saturating_sub(rounds);
        }
        looks.push(Reverse((now + waited + rounds, warp)));
    }
    end
}

#[cfg(test)]
mod tests {
    use nqueens_kernel::board::BoardSize;

    use super::*;

    #[test]
    fn a_warp_ends_with_its_last_lane() {
        assert_eq!(launch(&[5; 33], 1, 1), 12);
        assert_eq!(launch(&[5; 33], 2, 1), 6);
        // One lane takes all others while the first task lasts.
        let tasks: Vec<_> = [100].into_iter().chain([50; 31]).chain([3; 31]).collect();
        assert_eq!(launch(&tasks, 1, 0), 100);
        assert_eq!(launch(&tasks, 1, 2), 104);
    }

    #[test]
    fn the_simulated_device_counts() {
        let report = simulate(&[8, 11].map(|n| Subproblem::empty(BoardSize::new(n).expect("a board"))), 33);
        assert_eq!(report.completions, 92 + 2_680);
        assert!(report.steps > report.completions && report.steps_max * report.tasks as u64 >= report.steps);
        assert!(report.busy[0] > report.busy[1] && report.busy[1] > 0.0, "{report:?}");
    }
}
