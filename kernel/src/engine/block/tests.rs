//! Where every instruction set could go wrong: `tests/kernel/engines.rs` holds them to the reference on any boards.

use super::schedule::{CHUNK, Schedule, is_ready};
use super::*;
use crate::board::BoardSize;
use crate::engine::Kernel;
use crate::subproblem::OpenRow;

/// The block engines that this machine can run: the portable one at least.
fn engines() -> Vec<Box<dyn Engine>> {
    [Kernel::Portable, Kernel::Avx2, Kernel::Avx512].into_iter().filter_map(Kernel::engine).collect()
}

fn completions(engine: &mut dyn Engine, problem: &Subproblem) -> u64 {
    engine.count(problem, &Control::default()).expect("nobody stops it").completions
}

/// Holds all engines to the reference.
fn assert_all_agree(engines: &mut [Box<dyn Engine>], problem: &Subproblem) {
    let expected = completions(&mut super::super::reference::Reference, problem);
    for engine in engines {
        assert_eq!(completions(&mut **engine, problem), expected, "{:?} on {problem:?}", engine.isa());
    }
}

/// `m` open rows at the top of a board of 31 and as many free columns, `apart` from each other.
fn spread_out(m: u8, apart: u8) -> Subproblem {
    let n = BoardSize::MAX;
    let free = (0..m).fold(0, |free, k| free | 1 << (k * apart));
    let rows: Vec<_> = (0..m).map(|row| OpenRow { row, allowed: n.full() }).collect();
    Subproblem::new(n, free, &rows).unwrap()
}

#[test]
fn both_lane_widths_are_used_up_to_their_last_column() {
    let mut engines = engines();
    // Columns 0, 3, .. span 16 columns with six of them; columns at 15 and at 16 apart sit on either side of it.
    for (m, apart) in [(6, 3), (5, 4), (4, 5), (4, 10), (7, 5), (11, 3), (12, 1)] {
        assert_all_agree(&mut engines, &spread_out(m, apart));
    }
    assert_eq!(Schedule::of(&spread_out(6, 3)).unwrap().span(), 16);
    assert_eq!(Schedule::of(&spread_out(5, 4)).unwrap().span(), 17);
    assert_eq!(Schedule::of(&spread_out(11, 3)).unwrap().span(), 31);
}

#[test]
fn rows_at_both_ends_of_the_largest_board_see_each_other() {
    let n = BoardSize::MAX;
    let mut engines = engines();
    for columns in [[0, 1, 2, 30], [0, 10, 29, 30], [0, 15, 16, 30]] {
        let free = columns.iter().fold(0, |free, column| free | 1 << column);
        for rows in [[0, 1, 2, 30], [0, 28, 29, 30], [0, 10, 20, 30], [0, 1, 29, 30]] {
            let rows = rows.map(|row| OpenRow { row, allowed: n.full() });
            assert_all_agree(&mut engines, &Subproblem::new(n, free, &rows).unwrap());
        }
    }
}

/// A node's words: left and right diagonals, free columns.
type Node = [u32; 3];

/// What is asked of vectors of any kind, as closures can't be generic.
trait Ask {
    fn of<V: Vector, const VECTORS: usize>(&self, none: V, name: &str);
}

/// Asks all the vectors that this machine has.
fn ask_all_vectors(question: &impl Ask) {
    question.of::<_, { plain::PLACES }>(0_u16, "portable narrow");
    question.of::<_, { plain::PLACES }>(0_u32, "portable wide");
    #[cfg(target_arch = "x86_64")]
    {
        if Kernel::Avx2.is_available() {
            // SAFETY: the machine has the instructions.
            let (narrow, wide) = unsafe { (avx2::Narrow::none(), avx2::Wide::none()) };
            question.of::<_, 3>(narrow, "AVX2 narrow");
            question.of::<_, 3>(wide, "AVX2 wide");
        }
        if Kernel::Avx512.is_available() {
            // SAFETY: the machine has the instructions.
            let (narrow, wide) = unsafe { (avx512::Narrow::none(), avx512::Wide::none()) };
            question.of::<_, 3>(narrow, "AVX-512 narrow");
            question.of::<_, 3>(wide, "AVX-512 wide");
        }
    }
}

/// Nodes at `at` of the empty board of 16 rows: that many free columns as rows are left, diagonals anywhere that
/// leave a candidate.
fn nodes(at: usize, count: usize) -> Vec<Node> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state = (state ^ state << 13).wrapping_mul(0x2545_f491_4f6c_dd1d);
        state ^= state >> 29;
        u32::try_from(state >> 48).unwrap()
    };
    let mut nodes = vec![];
    while nodes.len() < count {
        let node = [random() & random(), random() & random(), random() | random() & random()];
        if node[2].count_ones() as usize == 16 - at && node[2] & !node[0] & !node[1] != 0 {
            nodes.push(node);
        }
    }
    nodes
}

/// Counts the completions of a node on the empty board of 16 rows, cell by cell.
fn completions_below(at: usize, [left, right, free]: Node) -> u64 {
    if at == 16 {
        return 1;
    }
    let open = (0..16).map(|column| 1 << column).filter(|cell| free & !left & !right & cell != 0);
    open.map(|cell| {
        completions_below(at + 1, [(left | cell) << 1 & 0xffff, (right | cell) >> 1, free & !cell])
    })
    .sum()
}

/// Expands or completes each of these counts of nodes at level `at` and holds the completions below them to those
/// found cell by cell.
struct KeepsAllCompletions {
    at: usize,
    nodes: Vec<Node>,
    counts: Vec<usize>,
}

impl Ask for KeepsAllCompletions {
    fn of<V: Vector, const VECTORS: usize>(&self, none: V, name: &str) {
        let schedule = Schedule::of(&Subproblem::empty(BoardSize::new(16).unwrap())).unwrap();
        let level = &schedule.levels[self.at];
        let mut buffer = Buffer::default();
        let mut stacks = buffer.stacks::<V::Word>(&schedule);
        let (above, below) = stacks.split_at_mut(self.at + 1);
        for &count in &self.counts {
            for &node in &self.nodes[..count] {
                above[self.at].push(node);
            }
            let parents = above[self.at].take(count);
            let expected: u64 =
                self.nodes[..count].iter().map(|&node| completions_below(self.at, node)).sum();
            let found = if let Some(rows_left) = level.rows_left {
                expand::<V, VECTORS>(none, rows_left, level, &parents, &mut below[0]);
                let children = below[0].take(usize::MAX);
                (0..children.count()).map(|k| completions_below(self.at + 1, children.node(k))).sum()
            } else {
                step::leaf::<V, true>(none, level, &parents)
            };
            assert_eq!(found, expected, "{count} nodes on level {} of {name}", self.at);
        }
    }
}

#[test]
fn chunks_of_every_length_are_expanded_to_their_last_node() {
    // 32 lanes in each of 3 streams at most, and 256 places of plain code, once and again.
    let mut counts: Vec<usize> = (0..=if cfg!(miri) { 9 } else { 110 }).rev().collect();
    if !cfg!(miri) {
        counts.extend([255, 256, 257, 700]);
    }
    let most = counts.iter().copied().max().expect("some");
    for at in [9, 10, 11, 12, 13] {
        ask_all_vectors(&KeepsAllCompletions { at, nodes: nodes(at, most), counts: counts.clone() });
    }
}

/// Fills a level to its room: one node less than is ready, and the children of a chunk that lose none.
struct FillsItsRoom;

impl Ask for FillsItsRoom {
    fn of<V: Vector, const VECTORS: usize>(&self, none: V, name: &str) {
        let n = BoardSize::new(16).unwrap();
        let schedule = Schedule::of(&Subproblem::empty(n)).unwrap();
        let at = 5;
        let mut buffer = Buffer::default();
        let mut stacks = buffer.stacks::<V::Word>(&schedule);
        let (above, below) = stacks.split_at_mut(at + 1);
        let untouched = [0, 0, n.full() >> at];
        while !is_ready(below[0].len() + 1) {
            below[0].push(untouched);
        }
        for _ in 0..CHUNK {
            above[at].push(untouched);
        }
        let level = &schedule.levels[at];
        expand::<V, VECTORS>(none, level.rows_left.unwrap(), level, &above[at].take(CHUNK), &mut below[0]);
        assert_eq!(below[0].len(), schedule.levels[at + 1].room, "{name}");
    }
}

#[test]
fn a_level_can_be_filled_to_its_room() {
    ask_all_vectors(&FillsItsRoom);
}

#[test]
fn a_board_of_28_takes_less_than_128_mb() {
    let mut buffer = Buffer::default();
    buffer.stacks::<u32>(&Schedule::of(&Subproblem::empty(BoardSize::new(28).unwrap())).unwrap());
    assert!(buffer.bytes() < 128 << 20, "{} bytes", buffer.bytes());
}
