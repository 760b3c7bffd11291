//! Cuts boards into tasks: nodes of the search with few enough rows, and of a size that suits the device.

use std::sync::Mutex;
use std::thread;

use crate::masks::Masks;
use crate::runner::{Outcome, ROWS, STEPS, Task};

/// A board's tasks are made in pieces of nodes with this many rows more than tasks have.
const STEM_ROWS: u32 = ROWS + 3;

/// Stems that a thread takes at once.
const STEMS: usize = 16;

/// Tasks with so few rows are not cut any further.
const ROWS_MIN: u32 = 5;

/// How many steps tasks of so many rows take, learned from those that were counted.
#[derive(Clone, Debug)]
pub(crate) struct Sizes {
    /// Tasks and their steps, by rows.
    seen: [(u64, u64); ROWS as usize + 1],
}

impl Sizes {
    /// Before any was counted: a guess, as if of 16 tasks.
    pub(crate) fn guess() -> Self {
        let mut seen = [(0, 0); ROWS as usize + 1];
        let mut steps = 1.0;
        for (tasks, sum) in &mut seen {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and small")]
            let all = (16.0 * steps) as u64;
            (*tasks, *sum) = (16, all);
            steps *= 2.0;
        }
        Self { seen }
    }

    /// One more task was counted.
    pub(crate) fn learn(&mut self, task: Task, outcome: Outcome) {
        let (tasks, steps) = &mut self.seen[task.rows()];
        // What was seen long ago loses its weight.
        if *tasks >= 1 << 20 {
            (*tasks, *steps) = (*tasks / 2, *steps / 2);
        }
        *tasks += 1;
        *steps += u64::from(outcome.rounds) * u64::from(STEPS);
    }

    /// Most rows of a task that takes no more than so many steps on average.
    fn rows_max(&self, steps_max: u64) -> u32 {
        let fits = |rows: &u32| {
            let (tasks, steps) = self.seen[*rows as usize];
            steps / tasks <= steps_max
        };
        (ROWS_MIN..=ROWS).rev().find(fits).unwrap_or(ROWS_MIN)
    }
}

/// Boards on their way to the device.
pub(crate) struct Splitter<'a> {
    boards: &'a [Masks],
    /// Number of the next board.
    next: usize,
    /// Nodes of the board before, the next one last.
    nodes: Vec<Task>,
}

/// Tasks, and the completions that were found on the way to them: with a board's number each.
#[derive(Default)]
pub(crate) struct Cut {
    pub(crate) tasks: Vec<Task>,
    pub(crate) completions: Vec<(u32, u64)>,
}

impl<'a> Splitter<'a> {
    /// Cuts `boards` from number `first` on.
    pub(crate) fn new(boards: &'a [Masks], first: usize) -> Self {
        Self { boards, next: first, nodes: Vec::new() }
    }

    /// The next node with few rows, or a whole board.
    fn stem(&mut self) -> Option<Task> {
        loop {
            let Some(node) = self.nodes.pop() else {
                let free = self.boards.get(self.next)?.free;
                let board = u32::try_from(self.next).expect("a batch has fewer boards");
                self.next += 1;
                self.nodes.push(Task { left: 0, right: 0, free, board });
                continue;
            };
            if node.rows() <= STEM_ROWS as usize {
                return Some(node);
            }
            let masks = &self.boards[node.board as usize];
            self.nodes.extend(children(masks, node));
        }
    }

    /// About so many tasks or some more, fewer if there are no more boards, made by several threads. They take
    /// `steps_max` steps on average.
    pub(crate) fn cut(&mut self, tasks: usize, steps_max: u64, sizes: &Sizes, threads: usize) -> Cut {
        let (rows_max, boards) = (sizes.rows_max(steps_max), self.boards);
        let share = tasks.div_ceil(threads.max(1));
        let splitter = Mutex::new(self);
        let work = || {
            let mut cut = Cut::default();
            while cut.tasks.len() < share {
                let stems: Vec<_> = {
                    let mut splitter = splitter.lock().expect("no thread panics with it");
                    std::iter::from_fn(|| splitter.stem()).take(STEMS).collect()
                };
                if stems.is_empty() {
                    break;
                }
                for stem in stems {
                    let completions = expand(&boards[stem.board as usize], stem, rows_max, &mut cut.tasks);
                    if completions > 0 {
                        cut.completions.push((stem.board, completions));
                    }
                }
            }
            cut
        };
        thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let mut cut = work();
            for other in others {
                let Cut { tasks, completions } = other.join().expect("no thread panics");
                cut.tasks.extend(tasks);
                cut.completions.extend(completions);
            }
            cut
        })
    }
}

/// The nodes below a node, those without a cell included.
fn children(masks: &Masks, node: Task) -> impl Iterator<Item = Task> {
    let (left, right) = (node.left >> 1, node.right);
    let mut cells = masks.allowed[node.rows()] & node.free & !(left | right);
    std::iter::from_fn(move || {
        let bit = cells & cells.wrapping_neg();
        cells ^= bit;
        let child = Task {
            // Seen from the row below, and doubled.
            left: (left | bit) << 2,
            right: (right | bit) >> 1,
            free: node.free ^ bit,
            board: node.board,
        };
        (bit != 0).then_some(child)
    })
}

/// Adds the tasks of at most so many rows below a node, or the node itself; the completions that were found on the way,
/// in nodes too small for a device.
fn expand(masks: &Masks, node: Task, rows_max: u32, tasks: &mut Vec<Task>) -> u64 {
    let rows = node.rows();
    let cells = masks.allowed[rows] & node.free & !(node.left >> 1 | node.right);
    match rows {
        0 => 1,
        _ if cells == 0 => 0,
        1 => 1,
        _ if rows <= rows_max as usize => {
            tasks.push(node);
            0
        }
        _ => children(masks, node).map(|child| expand(masks, child, rows_max, tasks)).sum(),
    }
}

/// The same for a task that takes too long: it is cut once more, whatever its size.
pub(crate) fn cut_once(masks: &Masks, task: Task, tasks: &mut Vec<Task>) -> u64 {
    expand(masks, task, task.free.count_ones() - 1, tasks)
}
