//! Cuts boards into tasks: nodes of the search with few enough rows, and of a size that suits the device.

use std::sync::Mutex;
use std::thread;

use crate::guess;
use crate::masks::Masks;
use crate::runner::{ROWS, Task};

/// A board's tasks are made in pieces of nodes with this many rows more than tasks have.
const STEM_ROWS: u32 = ROWS + 3;

/// Stems that a thread takes at once.
const STEMS: usize = 16;

/// A task, and how many steps it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) task: Task,
    pub(crate) guess: u32,
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
    pub(crate) pieces: Vec<Piece>,
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

    /// About so many tasks or some more, fewer if there are no more boards, made by several threads. By our guess each
    /// takes `steps_max` steps at most.
    pub(crate) fn cut(&mut self, tasks: usize, steps_max: u32, threads: usize) -> Cut {
        let boards = self.boards;
        let share = tasks.div_ceil(threads.max(1));
        let splitter = Mutex::new(self);
        let work = || {
            let mut cut = Cut::default();
            while cut.pieces.len() < share {
                let stems: Vec<_> = {
                    let mut splitter = splitter.lock().expect("no thread panics with it");
                    std::iter::from_fn(|| splitter.stem()).take(STEMS).collect()
                };
                if stems.is_empty() {
                    break;
                }
                for stem in stems {
                    let completions = expand(&boards[stem.board as usize], stem, steps_max, &mut cut.pieces);
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
                let Cut { pieces, completions } = other.join().expect("no thread panics");
                cut.pieces.extend(pieces);
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

/// Adds the tasks below a node, or the node itself: of at most [`ROWS`] rows, and so many steps; the completions that were
/// found on the way, in nodes too small for a device.
fn expand(masks: &Masks, node: Task, steps_max: u32, pieces: &mut Vec<Piece>) -> u64 {
    let rows = node.rows();
    let cells = masks.allowed[rows] & node.free & !(node.left >> 1 | node.right);
    if rows <= 1 || cells == 0 {
        return u64::from(rows == 0 || cells != 0);
    }
    if rows <= ROWS as usize {
        let guess = guess::steps(masks, node);
        if guess <= steps_max {
            pieces.push(Piece { task: node, guess });
            return 0;
        }
    }
    children(masks, node).map(|child| expand(masks, child, steps_max, pieces)).sum()
}

/// The same for a task that takes too long: its children are tasks, whatever we think of them.
pub(crate) fn cut_once(masks: &Masks, task: Task, pieces: &mut Vec<Piece>) -> u64 {
    children(masks, task).map(|child| expand(masks, child, u32::MAX, pieces)).sum()
}
