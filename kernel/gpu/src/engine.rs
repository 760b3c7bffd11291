//! Keeps a device busy with the tasks of many boards, and adds up what comes back.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::slice;
use std::time::Instant;

use nqueens_kernel::engine::{Control, Engine, Kernel, ProductCounter, Stopped, Tally};
use nqueens_kernel::estimate;
use nqueens_kernel::subproblem::Subproblem;

use crate::canary::{self, Canary, canaries};
use crate::guess;
use crate::masks::Masks;
use crate::runner::{Fault, Interruption, Outcome, ROUNDS_MAX, Runner, SLOTS, STEPS, Slot, Task, wait};
use crate::split::{Cut, Piece, Splitter, cut_once};

/// Boards that are counted together: the device has to be busy for seconds, however small they are.
const BATCH_MAX: usize = 4_096;

/// Steps of a task, at most, by our guess: enough to make up for its transfer, few enough that all lanes end together.
const STEPS_MAX: u32 = 100_000;
const STEPS_MIN: u32 = 200;

/// Tasks of this size for each lane of which there are enough in a batch, if not for larger ones. Most tasks are smaller,
/// and not all lanes fit on a device at once.
const TASKS_PER_LANE: u64 = 3;

/// Tasks in the first launch for each lane; the next ones follow the time that it takes.
const LOAD_FIRST: usize = 16;

/// Tasks in a launch for each lane, at most: for a large GPU 100 MB in each slot.
const LOAD_MAX: usize = 32;

/// Tasks in a launch, at least: with less memory a device is of no use.
const LOAD_MIN: usize = 1 << 8;

/// An engine on a device.
pub(crate) struct DeviceEngine<R> {
    runner: R,
    /// Threads that cut boards into tasks.
    threads: usize,
    /// The first boards that the device knows, and the canaries on them.
    canary_boards: Vec<Masks>,
    canaries: Vec<Canary>,
    /// Tasks in a launch.
    load: usize,
    /// The most that the device has memory for.
    load_max: usize,
    /// Launches so far.
    launches: usize,
    /// Who multiplies colours on the device, until it is asked for.
    products: Vec<Box<dyn ProductCounter>>,
    /// With what the thread multiplies colours, if nobody does on the device.
    isa: Option<Kernel>,
    fault: Option<String>,
}

impl<R: Runner> DeviceEngine<R> {
    /// An engine on the device of a runner, whose colours are multiplied by `products`.
    pub(crate) fn new(runner: R, threads: usize, products: Vec<Box<dyn ProductCounter>>) -> Self {
        let (canary_boards, canaries) = canaries();
        let [load, load_max] = [LOAD_FIRST, LOAD_MAX].map(|load| (runner.lanes() * load).max(LOAD_MIN));
        let isa = if products.is_empty() { Some(Kernel::best()) } else { None };
        let (launches, fault) = (0, None);
        Self { runner, threads, canary_boards, canaries, load, load_max, launches, products, isa, fault }
    }

    fn count_all(
        &mut self,
        problems: &[Subproblem],
        tallies: &mut [Tally],
        control: &Control,
    ) -> Result<(), Interruption> {
        // Where a board has to be taken apart its pieces have it as their owner.
        let mut owners = vec![usize::MAX; self.canary_boards.len()];
        let mut boards = self.canary_boards.clone();
        for (owner, problem) in problems.iter().enumerate() {
            add_masks(problem, &mut boards);
            owners.resize(boards.len(), owner);
        }
        let estimate: u64 = problems.iter().map(estimate::states).fold(0, u64::saturating_add);
        let masks: Vec<_> = boards.iter().map(|board| board.allowed).collect();
        match self.runner.set_masks(&masks) {
            Err(Fault::OutOfMemory) if problems.len() > 1 => {
                let (first, second) = problems.split_at(problems.len() / 2);
                let (tallies, others) = tallies.split_at_mut(first.len());
                self.count_all(first, tallies, control)?;
                return self.count_all(second, others, control);
            }
            outcome => outcome?,
        }
        let lanes = u64::try_from(self.runner.lanes()).unwrap_or(u64::MAX);
        let steps_max = estimate / lanes.saturating_mul(TASKS_PER_LANE);
        let steps_max = u32::try_from(steps_max).unwrap_or(u32::MAX).clamp(STEPS_MIN, STEPS_MAX);
        tallies.fill(Tally::default());
        let splitter = Splitter::new(&boards, self.canary_boards.len());
        let mut batch =
            Batch { boards: &boards, owners, splitter, steps_max, pending: Vec::new(), tallies, control };
        let mut launched = VecDeque::new();
        let outcome = self.run(&mut batch, &mut launched);
        if let Err(Interruption::Stopped) = outcome {
            // The next batch needs their buffers.
            launched.iter().try_for_each(|launch| self.wait(launch, &Control::default()))?;
        }
        outcome
    }

    /// Counts a batch: while one launch runs, the next is prepared, and what came of the one before is added up.
    fn run(&mut self, batch: &mut Batch<'_>, launched: &mut VecDeque<Launch>) -> Result<(), Interruption> {
        let mut free: Vec<Slot> = (0..SLOTS).collect();
        let mut outcomes = Vec::new();
        loop {
            while let Some(slot) = free.pop() {
                let Some(launch) = self.launch(slot, batch)? else {
                    free.push(slot);
                    break;
                };
                launched.push_back(launch);
            }
            let Some(launch) = launched.front() else { return Ok(()) };
            let ended = self.wait(launch, batch.control);
            if let Err(Interruption::Stopped) = ended {
                return ended;
            }
            let launch = launched.pop_front().expect("it was waited for");
            match ended {
                Ok(()) => {
                    self.runner.outcomes(launch.slot, &mut outcomes)?;
                    self.pace(&launch);
                    self.add_up(&launch, &outcomes, batch)?;
                }
                // Drivers may notice it only when a launch begins on the device.
                Err(Interruption::Fault(Fault::OutOfMemory)) if launch.load > LOAD_MIN => {
                    self.halve(launch.load);
                    batch.take_back(&launch.tasks);
                }
                Err(interruption) => return Err(interruption),
            }
            free.push(launch.slot);
        }
    }

    fn wait(&mut self, launch: &Launch, control: &Control) -> Result<(), Interruption> {
        wait(|| self.runner.is_done(launch.slot), || control.advance(0))
    }

    /// Makes launches half as large as one that there was no memory for.
    fn halve(&mut self, load: usize) {
        self.load_max = self.load_max.min((load / 2).max(LOAD_MIN));
        self.load = self.load.min(self.load_max);
    }

    /// Begins the next launch; `None` if there is nothing to count. A device without memory for it gets half of it.
    fn launch(&mut self, slot: Slot, batch: &mut Batch<'_>) -> Result<Option<Launch>, Interruption> {
        batch.fill(self.load, self.threads)?;
        loop {
            let load = batch.pending.len().min(self.load);
            if load == 0 {
                return Ok(None);
            }
            let at = batch.pending.len() - load;
            // The heaviest first, so that all lanes end together.
            let pieces = &mut batch.pending[at..];
            pieces.sort_unstable_by_key(|piece| Reverse(piece.guess.ilog2()));
            let tasks = self.with_canaries(pieces);
            match self.runner.start(slot, &tasks) {
                Ok(()) => {
                    let number = self.launches;
                    self.launches += 1;
                    batch.pending.truncate(at);
                    return Ok(Some(Launch { number, slot, tasks, load, begun: Instant::now() }));
                }
                Err(Fault::OutOfMemory) if load > LOAD_MIN => self.halve(load),
                Err(fault) => return Err(fault.into()),
            }
        }
    }

    /// The tasks with canaries among them, each another. The last one ends the launch: no task comes after all canaries.
    fn with_canaries(&self, pieces: &[Piece]) -> Vec<Task> {
        let mut canaries = canary::of_launch(&self.canaries, self.launches).map(|canary| canary.task);
        let mut all = Vec::with_capacity(pieces.len() + pieces.len().div_ceil(canary::EVERY) + 1);
        for pieces in pieces.chunks(canary::EVERY) {
            all.extend(canaries.next());
            all.extend(pieces.iter().map(|piece| piece.task));
        }
        all.extend(canaries.next());
        all
    }

    /// Makes launches as long as they should be.
    fn pace(&mut self, launch: &Launch) {
        let share = self.runner.launch_s() / launch.begun.elapsed().as_secs_f64().max(1e-6);
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a guess"
        )]
        let load = (launch.tasks.len() as f64 * share) as usize;
        // A launch waits for the one before it, so it seems too long by up to a factor of two.
        self.load = load.clamp(self.load / 2, self.load * 2).clamp(LOAD_MIN, self.load_max);
    }

    /// Adds the outcomes of a launch to their boards, if all canaries in it were counted right.
    fn add_up(
        &mut self,
        launch: &Launch,
        outcomes: &[Outcome],
        batch: &mut Batch<'_>,
    ) -> Result<(), Interruption> {
        let wrong = |what: String| Interruption::Fault(Fault::Wrong(what));
        if outcomes.len() != launch.tasks.len() {
            return Err(wrong(format!("{} tasks have {} outcomes", launch.tasks.len(), outcomes.len())));
        }
        if let Some(at) = outcomes.iter().position(|outcome| outcome.rounds == 0) {
            return Err(wrong(format!("task {at} of {} was left out", outcomes.len())));
        }
        let is_canary = |at: usize| canary::is_canary(at, outcomes.len());
        let counted = outcomes.iter().enumerate().filter(|(at, _)| is_canary(*at));
        for ((_, outcome), canary) in counted.zip(canary::of_launch(&self.canaries, launch.number)) {
            let right = canary.completions;
            if outcome.completions != right {
                return Err(wrong(format!("{} for a board with {right} solutions", outcome.completions)));
            }
        }
        let mut steps = 0;
        for (at, (task, outcome)) in launch.tasks.iter().zip(outcomes).enumerate() {
            if is_canary(at) {
                continue;
            }
            let rounds_steps = u64::from(outcome.rounds) * u64::from(STEPS);
            steps += rounds_steps;
            let tally = batch.tally(task.board);
            tally.states += rounds_steps;
            if outcome.completions == Outcome::UNFINISHED {
                if outcome.rounds < ROUNDS_MAX {
                    return Err(wrong(format!("task {at} was given up after {} rounds", outcome.rounds)));
                }
                batch.cut_once(*task)?;
                continue;
            }
            if u64::from(outcome.completions) > rounds_steps {
                return Err(wrong(format!("{} completions in {rounds_steps} steps", outcome.completions)));
            }
            tally.completions = add(tally.completions, outcome.completions.into())?;
        }
        Ok(batch.control.advance(steps)?)
    }
}

fn add(sum: u64, completions: u64) -> Result<u64, Fault> {
    sum.checked_add(completions)
        .ok_or_else(|| Fault::Wrong("more than 2^64 completions of a board".to_owned()))
}

/// Tasks that a device is at.
struct Launch {
    number: usize,
    slot: Slot,
    tasks: Vec<Task>,
    /// Tasks that are no canaries.
    load: usize,
    begun: Instant,
}

/// What is counted together.
struct Batch<'a> {
    boards: &'a [Masks],
    /// The problem that each board belongs to.
    owners: Vec<usize>,
    splitter: Splitter<'a>,
    /// Steps of a task, at most, by our guess.
    steps_max: u32,
    /// Tasks that are not launched yet.
    pending: Vec<Piece>,
    tallies: &'a mut [Tally],
    control: &'a Control,
}

impl Batch<'_> {
    fn tally(&mut self, board: u32) -> &mut Tally {
        &mut self.tallies[self.owners[board as usize]]
    }

    /// Has at least so many tasks pending, if there are as many.
    fn fill(&mut self, tasks: usize, threads: usize) -> Result<(), Interruption> {
        self.control.advance(0)?;
        let missing = tasks.saturating_sub(self.pending.len());
        if missing > 0 {
            let Cut { pieces, completions } = self.splitter.cut(missing, self.steps_max, threads);
            self.pending.extend(pieces);
            for (board, completions) in completions {
                let tally = self.tally(board);
                tally.completions = add(tally.completions, completions)?;
            }
        }
        Ok(())
    }

    /// The tasks of a launch that came to nothing are pending again.
    fn take_back(&mut self, tasks: &[Task]) {
        let of_boards = tasks.iter().enumerate().filter(|(at, _)| !canary::is_canary(*at, tasks.len()));
        let piece =
            |&task: &Task| Piece { task, guess: guess::steps(&self.boards[task.board as usize], task) };
        self.pending.extend(of_boards.map(|(_, task)| piece(task)));
    }

    /// Cuts a task that takes too long.
    fn cut_once(&mut self, task: Task) -> Result<(), Fault> {
        let completions = cut_once(&self.boards[task.board as usize], task, &mut self.pending);
        let tally = self.tally(task.board);
        tally.completions = add(tally.completions, completions)?;
        Ok(())
    }
}

/// The masks of a board, or of boards that together have its completions.
fn add_masks(problem: &Subproblem, boards: &mut Vec<Masks>) {
    match Masks::of(problem) {
        Some(masks) => boards.push(masks),
        None => problem.children().iter().for_each(|child| add_masks(child, boards)),
    }
}

impl<R: Runner> Engine for DeviceEngine<R> {
    fn count(&mut self, problem: &Subproblem, control: &Control) -> Result<Tally, Stopped> {
        let mut tally = Tally::default();
        self.count_batch(slice::from_ref(problem), slice::from_mut(&mut tally), control)?;
        Ok(tally)
    }

    fn batch_max(&self) -> usize {
        BATCH_MAX
    }

    fn count_batch(
        &mut self,
        problems: &[Subproblem],
        tallies: &mut [Tally],
        control: &Control,
    ) -> Result<(), Stopped> {
        let Err(interruption) = self.count_all(problems, tallies, control) else { return Ok(()) };
        if let Interruption::Fault(fault) = interruption {
            self.fault = Some(fault.to_string());
        }
        Err(Stopped)
    }

    fn isa(&self) -> Option<Kernel> {
        self.isa
    }

    fn product_counters(&mut self) -> Vec<Box<dyn ProductCounter>> {
        std::mem::take(&mut self.products)
    }

    fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }
}

#[cfg(test)]
mod tests;
