//! Block depth-first search: the border plan's engine on SIMD.
//!
//! A node is a partial board: every open row above some row has its queen. Depth-first search takes them one at a
//! time; here each row has a stack of nodes, which are expanded by the thousand, so that vectors always are full
//! and branches always go the same way (after Ren et al., "Efficient Execution of Recursive Programs on Commodity
//! Vector Hardware", PLDI 2015). [`step`] is the inner loop on SIMD, for whatever [`lanes`] the machine has, and
//! [`portable`] that of plain code; [`schedule`] holds what they need to know about the rows.

#![expect(
    clippy::inline_always,
    reason = "what is compiled for an instruction set must be inlined where it is enabled"
)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod schedule;
mod stacks;
mod step;
#[cfg(test)]
mod tests;
mod vector;

use super::{Control, Engine, Kernel, Stopped, Tally};
use crate::board::{BoardSize, columns_of};
use crate::isa::Isa;
use crate::subproblem::Subproblem;
use schedule::{CHUNK, Filter, Level, Schedule, is_ready};
use stacks::{Buffer, Parents, Stack};
use vector::{PLACES, Vector, Word};

/// Counts the completions of the root of a schedule, by one instruction set.
type Search = unsafe fn(&Schedule, &mut Buffer, &Control) -> Result<Tally, Stopped>;

/// The block search by one instruction set, which this machine has.
struct BlockSearch {
    isa: Isa,
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

/// The engine in plain code.
pub(super) fn portable() -> Box<dyn Engine> {
    BlockSearch::boxed(Isa::Portable, search::<u16, PLACES>, search::<u32, PLACES>, 5)
}

/// The engine on AVX2; `None` where the machine has none.
#[cfg(target_arch = "x86_64")]
pub(super) fn avx2() -> Option<Box<dyn Engine>> {
    #[target_feature(enable = "avx2,bmi1,popcnt")]
    unsafe fn compiled<V: Vector, const VECTORS: usize>(
        schedule: &Schedule,
        buffer: &mut Buffer,
        control: &Control,
    ) -> Result<Tally, Stopped> {
        // SAFETY: the caller promises the same.
        unsafe { search::<V, VECTORS>(schedule, buffer, control) }
    }
    let engine = || BlockSearch::boxed(Isa::Avx2, compiled::<avx2::Avx2, 3>, compiled::<u32, PLACES>, 5);
    Kernel::Avx2.is_available().then(engine)
}

/// The engine on AVX-512; `None` where the machine has none.
#[cfg(target_arch = "x86_64")]
pub(super) fn avx512() -> Option<Box<dyn Engine>> {
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi1,bmi2,popcnt")]
    unsafe fn compiled<V: Vector, const VECTORS: usize>(
        schedule: &Schedule,
        buffer: &mut Buffer,
        control: &Control,
    ) -> Result<Tally, Stopped> {
        // SAFETY: the caller promises the same.
        unsafe { search::<V, VECTORS>(schedule, buffer, control) }
    }
    let engine =
        || BlockSearch::boxed(Isa::Avx512, compiled::<avx512::Avx512, 3>, compiled::<u32, PLACES>, 8);
    Kernel::Avx512.is_available().then(engine)
}

impl BlockSearch {
    fn boxed(isa: Isa, narrow: Search, wide: Search, excess_max: u32) -> Box<dyn Engine> {
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

    fn isa(&self) -> Option<Isa> {
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
    let parts = open_at(column).filter_map(|open| problem.place(open.row, column));
    parts.filter(|part| part.rows().iter().all(|open| open.allowed != 0)).collect()
}

/// Counts the completions of the root of `schedule`.
///
/// States are the nodes expanded: partial boards with three rows or more left that passed the look ahead.
///
/// # Safety
/// The machine has the vector's instructions.
#[inline(always)]
unsafe fn search<V: Vector, const VECTORS: usize>(
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
        match (level.filter, below.first_mut()) {
            (Some(filter), Some(children)) => {
                assert!(!is_ready(children.len()), "the room of a level counts on this");
                // SAFETY: the caller promises the instructions.
                unsafe { expand::<V, VECTORS>(filter, level, &parents, children) };
            }
            // SAFETY: the caller promises the instructions.
            _ => tally.completions += unsafe { leaf::<V>(level, &parents) },
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

/// [`step::expand`] with the filter of the level.
///
/// # Safety
/// The machine has the vector's instructions.
#[inline(always)]
unsafe fn expand<V: Vector, const VECTORS: usize>(
    filter: Filter,
    level: &Level,
    parents: &Parents<'_, V::Word>,
    children: &mut Stack<'_, V::Word>,
) {
    // SAFETY: the caller promises the instructions.
    unsafe {
        match (filter, level.adjacent) {
            (Filter::All3, true) => step::expand::<V, VECTORS, true, 2, true>(level, parents, children),
            (Filter::All3, false) => step::expand::<V, VECTORS, false, 2, true>(level, parents, children),
            (Filter::All4, true) => step::expand::<V, VECTORS, true, 3, true>(level, parents, children),
            (Filter::All4, false) => step::expand::<V, VECTORS, false, 3, true>(level, parents, children),
            (Filter::All5, true) => step::expand::<V, VECTORS, true, 4, true>(level, parents, children),
            (Filter::All5, false) => step::expand::<V, VECTORS, false, 4, true>(level, parents, children),
            (Filter::Next3, true) => step::expand::<V, VECTORS, true, 2, false>(level, parents, children),
            (Filter::Next3, false) => step::expand::<V, VECTORS, false, 2, false>(level, parents, children),
        }
    }
}

/// [`step::leaf`] of the level.
///
/// # Safety
/// The machine has the vector's instructions.
#[inline(always)]
unsafe fn leaf<V: Vector>(level: &Level, parents: &Parents<'_, V::Word>) -> u64 {
    // SAFETY: the caller promises the instructions.
    unsafe {
        if level.adjacent {
            step::leaf::<V, true>(level, parents)
        } else {
            step::leaf::<V, false>(level, parents)
        }
    }
}
