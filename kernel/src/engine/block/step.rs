//! The two steps of the search, for any instruction set: expand a level's nodes, and complete those of the leaf.
//!
//! Each lane of a vector works on a node of its own. A step gives every lane that has run out of candidates the
//! next node (refill), takes one candidate from each lane (pop), and stores those children that pass the filter,
//! packed (emit). All lanes do useful work whatever the number of candidates of a node. `STREAMS` such vectors, each
//! on its own part of the nodes, take turns to hide the latency of the moves between masks and lanes.

use super::lanes::Lanes;
use super::schedule::{AHEAD_MAX, Level};
use super::stacks::{Parents, Stack};
use super::word::Word;

/// A level's masks and gaps in every lane.
struct Rows<L: Lanes> {
    allowed: [L::Vector; AHEAD_MAX + 2],
    gaps: [L::Shift; AHEAD_MAX + 2],
}

impl<L: Lanes> Rows<L> {
    #[inline(always)]
    fn new(isa: L, level: &Level) -> Self {
        let mut rows = Self {
            allowed: [isa.splat(L::Word::default()); AHEAD_MAX + 2],
            gaps: [isa.shift(0); AHEAD_MAX + 2],
        };
        for k in 0..AHEAD_MAX + 2 {
            rows.allowed[k] = isa.splat(L::Word::narrow(level.allowed[k]));
            rows.gaps[k] = isa.shift(level.gaps[k]);
        }
        rows
    }
}

/// A node in every lane.
#[derive(Clone, Copy)]
struct Nodes<L: Lanes> {
    left: L::Vector,
    right: L::Vector,
    free: L::Vector,
}

impl<L: Lanes> Nodes<L> {
    /// Open columns `K` rows below that of the nodes; `by` is the distance if it is not `K`.
    #[inline(always)]
    fn open_below<const ADJACENT: bool, const K: u32>(self, isa: L, by: L::Shift) -> L::Vector {
        let left = isa.raise::<ADJACENT, K>(self.left, by);
        isa.unattacked(self.free, left, isa.lower::<ADJACENT, K>(self.right, by))
    }
}

/// A vector of nodes at work, and the part of the parents that it takes nodes from.
#[derive(Clone, Copy)]
struct Stream<L: Lanes> {
    nodes: Nodes<L>,
    candidates: L::Vector,
    next: usize,
    end: usize,
}

impl<L: Lanes> Stream<L> {
    /// Streams over `count` parents, in equal parts.
    #[inline(always)]
    fn over<const STREAMS: usize>(isa: L, count: usize) -> [Self; STREAMS] {
        let none = isa.splat(L::Word::default());
        let nodes = Nodes { left: none, right: none, free: none };
        let mut streams = [Self { nodes, candidates: none, next: 0, end: count }; STREAMS];
        for k in 1..STREAMS {
            streams[k].next = count / STREAMS * k;
            streams[k - 1].end = streams[k].next;
        }
        streams
    }

    /// Whether a whole vector of parents is left.
    #[inline(always)]
    fn is_full(&self) -> bool {
        self.next + L::LANES <= self.end
    }

    /// Gives the next parents to the lanes without candidates: to all of them, or with `LAST` to as many as there
    /// are parents.
    ///
    /// # Safety
    /// `arrays` are those of the parents that the stream was made for.
    #[inline(always)]
    unsafe fn refill<const LAST: bool>(&mut self, isa: L, arrays: [*const L::Word; 3], allowed: L::Vector) {
        let mut idle = isa.empty(self.candidates);
        if LAST {
            idle = isa.first(idle, self.end - self.next);
        }
        let (spreading, taken) = isa.spreading(idle);
        let [left, right, free] = arrays;
        // SAFETY: `next` is at most the number of parents, behind which a vector's worth of words can be read.
        unsafe {
            self.nodes.left = isa.spread_from(self.nodes.left, spreading, left.add(self.next));
            self.nodes.right = isa.spread_from(self.nodes.right, spreading, right.add(self.next));
            self.nodes.free = isa.spread_from(self.nodes.free, spreading, free.add(self.next));
        }
        let open = isa.and(isa.unattacked(self.nodes.free, self.nodes.left, self.nodes.right), allowed);
        self.candidates = isa.choose(idle, self.candidates, open);
        self.next += taken;
    }

    /// Takes a candidate from each lane: the children, as seen from the next row.
    #[inline(always)]
    fn pop<const ADJACENT: bool>(&mut self, isa: L, rows: &Rows<L>) -> Nodes<L> {
        let (queen, others) = isa.split_lowest(self.candidates);
        self.candidates = others;
        Nodes {
            left: isa.raise::<ADJACENT, 1>(isa.or(self.nodes.left, queen), rows.gaps[0]),
            right: isa.lower::<ADJACENT, 1>(isa.or(self.nodes.right, queen), rows.gaps[0]),
            free: isa.xor(self.nodes.free, queen),
        }
    }
}

/// What becomes of the children popped.
trait Sink<L: Lanes> {
    /// Takes the children in the lanes of `mask`.
    fn take(&mut self, isa: L, rows: &Rows<L>, mask: L::Mask, child: Nodes<L>);
}

/// Gives every child of every parent to `sink`.
#[inline(always)]
fn drive<L: Lanes, const STREAMS: usize, const ADJACENT: bool>(
    isa: L,
    rows: &Rows<L>,
    parents: &Parents<'_, L::Word>,
    sink: &mut impl Sink<L>,
) {
    let arrays = parents.arrays();
    let mut streams = Stream::over::<STREAMS>(isa, parents.count());
    'whole: loop {
        for stream in &streams {
            if !stream.is_full() {
                break 'whole;
            }
        }
        let mut popped = [streams[0].nodes; STREAMS];
        for k in 0..STREAMS {
            // SAFETY: these are the arrays of `parents`.
            unsafe { streams[k].refill::<false>(isa, arrays, rows.allowed[0]) };
            popped[k] = streams[k].pop::<ADJACENT>(isa, rows);
        }
        // Every child stored has a candidate, so every lane has one now.
        for child in popped {
            sink.take(isa, rows, isa.every(), child);
        }
    }
    loop {
        let mut popped = [(isa.every(), streams[0].nodes); STREAMS];
        let mut left = 0;
        for k in 0..STREAMS {
            // SAFETY: these are the arrays of `parents`.
            unsafe { streams[k].refill::<true>(isa, arrays, rows.allowed[0]) };
            let busy = isa.occupied(streams[k].candidates);
            left += isa.count(busy);
            popped[k] = (busy, streams[k].pop::<ADJACENT>(isa, rows));
        }
        if left == 0 {
            break;
        }
        for (busy, child) in popped {
            sink.take(isa, rows, busy, child);
        }
    }
}

/// Stores the children whose next row and `AHEAD` rows more all have an open cell and, with `COVER`, whose free
/// columns all have one in these rows.
struct Emit<L: Lanes, const ADJACENT: bool, const AHEAD: usize, const COVER: bool> {
    top: [*mut L::Word; 3],
    stored: usize,
}

impl<L: Lanes, const ADJACENT: bool, const AHEAD: usize, const COVER: bool> Sink<L>
    for Emit<L, ADJACENT, AHEAD, COVER>
{
    #[inline(always)]
    fn take(&mut self, isa: L, rows: &Rows<L>, mask: L::Mask, child: Nodes<L>) {
        let open = isa.unattacked(child.free, child.left, child.right);
        let mut keep = isa.keep_meeting(mask, open, rows.allowed[1]);
        let mut covered = isa.and(open, rows.allowed[1]);
        macro_rules! look {
            ($k:literal) => {
                if AHEAD >= $k {
                    let open = child.open_below::<ADJACENT, $k>(isa, rows.gaps[$k]);
                    keep = isa.keep_meeting(keep, open, rows.allowed[$k + 1]);
                    covered = isa.or(covered, isa.and(open, rows.allowed[$k + 1]));
                }
            };
        }
        look!(1);
        look!(2);
        look!(3);
        look!(4);
        if COVER {
            keep = isa.keep_equal(keep, covered, child.free);
        }
        let (packing, kept) = isa.packing(keep);
        // SAFETY: `stored` children are within the level's room (asserted when the stack grows), behind which a
        // vector's worth of words can be written.
        unsafe {
            isa.pack_to(self.top[0].add(self.stored), packing, child.left);
            isa.pack_to(self.top[1].add(self.stored), packing, child.right);
            isa.pack_to(self.top[2].add(self.stored), packing, child.free);
        }
        self.stored += kept;
    }
}

/// Counts the completions of children that have two rows left.
///
/// There are two ways to fill two rows and two columns, and any at all only if the columns are not on one
/// diagonal, both rows have an open cell and both columns are open in some row; then there is one way, or two if
/// all four cells are open.
struct Finish<const ADJACENT: bool> {
    completions: u64,
}

impl<L: Lanes, const ADJACENT: bool> Sink<L> for Finish<ADJACENT> {
    #[inline(always)]
    fn take(&mut self, isa: L, rows: &Rows<L>, mask: L::Mask, child: Nodes<L>) {
        let above = isa.and(isa.unattacked(child.free, child.left, child.right), rows.allowed[1]);
        let below = isa.and(child.open_below::<ADJACENT, 1>(isa, rows.gaps[1]), rows.allowed[2]);
        let on_a_diagonal = isa.raise::<ADJACENT, 1>(child.free, rows.gaps[1]);
        let mut one = isa.keep_meeting(mask, above, above);
        one = isa.keep_meeting(one, below, below);
        one = isa.keep_disjoint(one, on_a_diagonal, child.free);
        one = isa.keep_equal(one, isa.or(above, below), child.free);
        let two = isa.keep_equal(one, isa.and(above, below), child.free);
        self.completions += isa.count_both(one, two) as u64;
    }
}

/// Puts the surviving children of `parents` on the stack of the level below.
#[inline(always)]
pub(super) fn expand<
    L: Lanes,
    const STREAMS: usize,
    const ADJACENT: bool,
    const AHEAD: usize,
    const COVER: bool,
>(
    isa: L,
    level: &Level,
    parents: &Parents<'_, L::Word>,
    children: &mut Stack<'_, L::Word>,
) {
    let mut sink = Emit::<L, ADJACENT, AHEAD, COVER> { top: children.top(), stored: 0 };
    drive::<L, STREAMS, ADJACENT>(isa, &Rows::new(isa, level), parents, &mut sink);
    children.grow(sink.stored);
}

/// Counts the completions of `parents`, which have three rows left.
#[inline(always)]
pub(super) fn leaf<L: Lanes, const STREAMS: usize, const ADJACENT: bool>(
    isa: L,
    level: &Level,
    parents: &Parents<'_, L::Word>,
) -> u64 {
    let mut sink = Finish::<ADJACENT> { completions: 0 };
    drive::<L, STREAMS, ADJACENT>(isa, &Rows::new(isa, level), parents, &mut sink);
    sink.completions
}
