//! Block depth-first search: the border plan's engine on SIMD.
//!
//! A node is a partial board: every open row above some row has its queen. Depth-first search takes them one at a
//! time; here each row has a stack of nodes, which are expanded by the thousand, so that vectors always are full
//! and branches always go the same way (after Ren et al., "Efficient Execution of Recursive Programs on Commodity
//! Vector Hardware", PLDI 2015). [`step`] is the inner loop, for any [`Vector`]; it is compiled for each instruction set.
//! [`schedule`] holds what it needs to know about the rows.

#![expect(
    clippy::inline_always,
    reason = "what is compiled for an instruction set must be inlined where it is enabled"
)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod plain;
mod schedule;
#[cfg(target_arch = "x86_64")]
mod simd;
mod stacks;
mod step;
#[cfg(test)]
mod tests;
mod vector;

use super::{Control, Engine, Kernel, Stopped, Tally};
use crate::board::{BoardSize, columns_of};
use crate::subproblem::Subproblem;
use schedule::{CHUNK, Level, Schedule, is_ready};
use stacks::{Buffer, Parents, Stack};
use vector::{Vector, Word};

/// Counts the completions of the root of a schedule, by one instruction set.
type Search = unsafe fn(&Schedule, &mut Buffer, &Control) -> Result<Tally, Stopped>;

/// The block search by one instruction set, which this machine has.
struct BlockSearch {
    isa: Kernel,
    /// For free columns that span at most 16.
    narrow: Search,
    /// For any.
    wide: Search,
    /// How many columns too many for the narrow lanes are worth being taken off first.
    excess_max: u32,
    buffer: Buffer,
    /// The largest board that the buffer was made for.
    largest: Option<BoardSize>,
}

/// The search compiled for an instruction set: by narrow vectors and by wide ones, so many at a time.
macro_rules! compiled {
    ($narrow:ty, $wide:ty, $vectors:expr $(, $features:literal)?) => {{
        $(#[target_feature(enable = $features)])?
        unsafe fn compiled<V: Vector>(
            schedule: &Schedule,
            buffer: &mut Buffer,
            control: &Control,
        ) -> Result<Tally, Stopped> {
            // SAFETY: the caller promises that the machine has the instructions.
            search::<V, { $vectors }>(unsafe { V::none() }, schedule, buffer, control)
        }
        [compiled::<$narrow>, compiled::<$wide>]
    }};
}

/// The engine in plain code.
pub(super) fn portable() -> Box<dyn Engine> {
    BlockSearch::boxed(Kernel::Portable, compiled!(u16, u32, plain::PLACES), 5)
}

/// The engine on AVX2; `None` where the machine has none.
#[cfg(target_arch = "x86_64")]
pub(super) fn avx2() -> Option<Box<dyn Engine>> {
    let compiled = compiled!(avx2::Narrow, avx2::Wide, 3, "avx2,bmi1,popcnt");
    Kernel::Avx2.is_available().then(|| BlockSearch::boxed(Kernel::Avx2, compiled, 5))
}

/// The engine on AVX-512; `None` where the machine has none.
#[cfg(target_arch = "x86_64")]
pub(super) fn avx512() -> Option<Box<dyn Engine>> {
    let compiled =
        compiled!(avx512::Narrow, avx512::Wide, 3, "avx512f,avx512bw,avx512vbmi2,bmi1,bmi2,popcnt");
    Kernel::Avx512.is_available().then(|| BlockSearch::boxed(Kernel::Avx512, compiled, 8))
}

impl BlockSearch {
    fn boxed(isa: Kernel, [narrow, wide]: [Search; 2], excess_max: u32) -> Box<dyn Engine> {
        Box::new(Self { isa, narrow, wide, excess_max, buffer: Buffer::default(), largest: None })
    }

    /// Makes the buffer large enough for all subproblems of an `n` by `n` board, once.
    fn reserve(&mut self, n: BoardSize) {
        if self.largest < Some(n) {
            if let Some(whole_board) = Schedule::of(&Subproblem::empty(n)) {
                self.buffer.reserve_for(&whole_board);
            }
            self.largest = Some(n);
        }
    }

    /// Counts the completions of all `parts`.
    fn count_all(&mut self, parts: &[Subproblem], control: &Control) -> Result<Tally, Stopped> {
        let mut sum = Tally::default();
        for part in parts {
            let tally = self.count(part, control)?;
            sum.completions += tally.completions;
            sum.states += tally.states;
        }
        Ok(sum)
    }
}

impl Engine for BlockSearch {
    fn count(&mut self, problem: &Subproblem, control: &Control) -> Result<Tally, Stopped> {
        if problem.rows().iter().any(|open| open.allowed == 0) {
            return Ok(Tally::default());
        }
        let Some(schedule) = Schedule::of(problem) else {
            return super::reference::Reference.count(problem, control);
        };
        self.reserve(problem.n());
        let search = match schedule.span().saturating_sub(u16::BITS) {
            0 => self.narrow,
            excess if excess <= self.excess_max => {
                return self.count_all(&split_off_a_column(problem), control);
            }
            _ => self.wide,
        };
        // SAFETY: there is an engine only where the machine has its instructions.
        unsafe { search(&schedule, &mut self.buffer, control) }
    }

    fn isa(&self) -> Option<Kernel> {
        Some(self.isa)
    }
}

/// The subproblems that differ by where the queen of an outermost free column stands.
///
/// Narrow lanes are twice as many, for which it pays to settle the columns that they can't hold first, although a
/// search that starts with outer columns visits a tenth more states for each.
fn split_off_a_column(problem: &Subproblem) -> Vec<Subproblem> {
    let open_at = |column: u8| problem.rows().iter().filter(move |open| open.allowed >> column & 1 == 1);
    let outermost = [columns_of(problem.free()).next(), columns_of(problem.free()).last()];
    let fewest = outermost.into_iter().flatten().min_by_key(|&column| open_at(column).count());
    let column = fewest.expect("a free column for each open row");
    open_at(column).filter_map(|open| problem.place(open.row, column)).collect()
}

/// Counts the completions of the root of `schedule`.
///
/// States are the nodes expanded: partial boards with three rows or more left that passed the look ahead.
#[inline(always)]
fn search<V: Vector, const VECTORS: usize>(
    none: V,
    schedule: &Schedule,
    buffer: &mut Buffer,
    control: &Control,
) -> Result<Tally, Stopped> {
    let mut stacks = buffer.stacks::<V::Word>(schedule);
    stacks[0].push([0, 0, schedule.free]);
    let mut tally = Tally::default();
    let mut next = Some(0);
    while let Some(at) = next {
        let level = &schedule.levels[at];
        let (above, below) = stacks.split_at_mut(at + 1);
        let parents = above[at].take(CHUNK);
        match (level.rows_left, below.first_mut()) {
            (Some(rows_left), Some(children)) => {
                assert!(!is_ready(children.len()), "the room of a level counts on this");
                expand::<V, VECTORS>(none, rows_left, level, &parents, children);
            }
            _ if level.adjacent => tally.completions += step::leaf::<V, true>(none, level, &parents),
            _ => tally.completions += step::leaf::<V, false>(none, level, &parents),
        }
        let expanded = parents.count() as u64;
        tally.states += expanded;
        control.advance(expanded)?;
        next = next_level(&stacks, at);
    }
    Ok(tally)
}

/// Which level to expand after level `at`: the one below if it is ready, else the nearest at or above with any
/// node, else the first below with any. So all levels below the one expanded hold less than is ready.
fn next_level<W: Word>(stacks: &[Stack<'_, W>], at: usize) -> Option<usize> {
    if stacks.get(at + 1).is_some_and(|below| is_ready(below.len())) {
        return Some(at + 1);
    }
    let has_nodes = |&level: &usize| stacks[level].len() > 0;
    (0..=at).rev().find(has_nodes).or_else(|| (at + 1..stacks.len()).find(has_nodes))
}

/// [`step::expand`] for children with so many rows left.
#[inline(always)]
fn expand<V: Vector, const VECTORS: usize>(
    none: V,
    rows_left: usize,
    level: &Level,
    parents: &Parents<'_, V::Word>,
    children: &mut Stack<'_, V::Word>,
) {
    match (rows_left, level.adjacent) {
        (3, true) => step::expand::<V, VECTORS, true, 2, true>(none, level, parents, children),
        (3, false) => step::expand::<V, VECTORS, false, 2, true>(none, level, parents, children),
        (4, true) => step::expand::<V, VECTORS, true, 3, true>(none, level, parents, children),
        (4, false) => step::expand::<V, VECTORS, false, 3, true>(none, level, parents, children),
        (5, true) => step::expand::<V, VECTORS, true, 4, true>(none, level, parents, children),
        (5, false) => step::expand::<V, VECTORS, false, 4, true>(none, level, parents, children),
        (_, true) => step::expand::<V, VECTORS, true, 2, false>(none, level, parents, children),
        (_, false) => step::expand::<V, VECTORS, false, 2, false>(none, level, parents, children),
    }
}
