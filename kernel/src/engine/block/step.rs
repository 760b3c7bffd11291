//! The two steps of the search, for vectors of any kind: expand a level's nodes, and complete those of the leaf.
//!
//! Each lane works on a node of its own. A step gives every lane that has run out of candidates the next node
//! (refill), takes one candidate from each lane (pop), and stores those children that pass the filter, packed (emit).
//! All lanes do useful work whatever the number of candidates of a node. Several vectors take turns, which hides the
//! latency of the moves between masks and lanes.

use super::schedule::{AHEAD_MAX, Level};
use super::stacks::{Parents, Stack};
use super::vector::{Node, Nodes, Vector, Work};

/// A level's masks in every lane, and its gaps.
struct Rows<V, const ADJACENT: bool> {
    allowed: [V; AHEAD_MAX + 2],
    gaps: [u32; AHEAD_MAX + 2],
}

impl<V: Vector, const ADJACENT: bool> Rows<V, ADJACENT> {
    #[inline(always)]
    fn new(none: V, level: &Level) -> Self {
        let word = |mask: u32| V::Word::try_from(mask).expect("a board that the lanes can hold");
        Self { allowed: level.allowed.map(|mask| none.splat(word(mask))), gaps: level.gaps }
    }

    /// `gaps[K]`, a constant if all rows are adjacent.
    #[inline(always)]
    fn gap<const K: u32>(&self) -> u32 {
        match (ADJACENT, K) {
            (false, _) => self.gaps[K as usize],
            (true, 0) => 1,
            (true, _) => K,
        }
    }

    /// Takes a candidate of each lane: the children, as seen from the next row.
    #[inline(always)]
    fn pop(&self, node: Node<V>, candidates: &mut V) -> Node<V> {
        let queen = candidates.lowest();
        *candidates = *candidates ^ queen;
        Node {
            left: (node.left | queen).raise(self.gap::<0>()),
            right: (node.right | queen).lower(self.gap::<0>()),
            free: node.free ^ queen,
        }
    }

    /// Open cells of children in the `K`-th row below their own.
    #[inline(always)]
    fn open_below<const K: u32>(&self, child: Node<V>) -> V {
        let (left, right) = match K {
            0 => (child.left, child.right),
            _ => (child.left.raise(self.gap::<K>()), child.right.lower(self.gap::<K>())),
        };
        child.free & !(left | right) & self.allowed[K as usize + 1]
    }

    /// Children whose row and `AHEAD` rows more all have an open cell and, with `COVER`, whose free columns all have
    /// one in these rows.
    #[inline(always)]
    fn passes<const AHEAD: usize, const COVER: bool>(&self, child: Node<V>) -> V::Mask {
        let mut covered = self.open_below::<0>(child);
        let mut passes = !covered.is_empty();
        macro_rules! look {
            ($k:literal) => {
                if AHEAD >= $k {
                    let open = self.open_below::<$k>(child);
                    passes = passes & !open.is_empty();
                    covered = covered | open;
                }
            };
        }
        look!(1);
        look!(2);
        look!(3);
        look!(4);
        if COVER { passes & covered.equals(child.free) } else { passes }
    }
}

/// Puts the surviving children of `parents` on the stack of the level below.
#[inline(always)]
pub(super) fn expand<
    V: Vector,
    const VECTORS: usize,
    const ADJACENT: bool,
    const AHEAD: usize,
    const COVER: bool,
>(
    none: V,
    level: &Level,
    parents: &Parents<'_, V::Word>,
    stack: &mut Stack<'_, V::Word>,
) {
    let rows = Rows::<V, ADJACENT>::new(none, level);
    let (from, mut to) = (parents.arrays(), stack.spare());
    let (nodes, candidates) = (Nodes::empty(none), [none; VECTORS]);
    let mut work = Work { nodes, candidates, used: VECTORS };
    let (mut children, mut keep) = (nodes, [none.is_empty(); VECTORS]);
    let (mut next, mut stored) = (0, 0);
    loop {
        let left = parents.count() - next;
        next += V::refill(&mut work, from.map(|words| &words[next..]), left, rows.allowed[0]);
        // The compiler has to see that this is no more than there are.
        let used = work.used.min(VECTORS);
        for pop in 0..V::POPS {
            for (k, keep) in keep[..used].iter_mut().enumerate() {
                let idle = work.candidates[k].is_empty();
                let child = rows.pop(work.nodes.at(k), &mut work.candidates[k]);
                children.put(k, child);
                *keep = rows.passes::<AHEAD, COVER>(child);
                // After a refill, a node without candidates has no free columns either, and so no child.
                if pop > 0 {
                    *keep = *keep & !idle;
                }
            }
            stored += V::pack(&keep[..used], &children, to.each_mut().map(|words| &mut words[stored..]));
        }
        let open = || work.candidates.iter().fold(none, |all, &some| all | some);
        if next == parents.count() && V::count(open().is_empty()) as usize == V::LANES {
            break;
        }
    }
    stack.grow(stored);
}

/// Counts the completions of `parents`, which have three rows left.
///
/// A child has two rows left. There are two ways to fill two rows and two columns, and any at all only if the columns
/// are not on one diagonal, both rows have an open cell and both columns are open in some row; then there is one way,
/// or two if all four cells are open.
#[inline(always)]
pub(super) fn leaf<V: Vector, const ADJACENT: bool>(
    none: V,
    level: &Level,
    parents: &Parents<'_, V::Word>,
) -> u64 {
    let rows = Rows::<V, ADJACENT>::new(none, level);
    // Behind the last are nodes without free columns.
    let whole = parents.count().next_multiple_of(V::LANES);
    let [left, right, free] = parents.arrays().map(|words| words[..whole].chunks_exact(V::LANES));
    let mut completions = 0_u32;
    for ((left, right), free) in left.zip(right).zip(free) {
        let node = Node { left: none.load(left), right: none.load(right), free: none.load(free) };
        let mut candidates = node.open(rows.allowed[0]);
        for _ in 0..3 {
            let busy = !candidates.is_empty();
            let child = rows.pop(node, &mut candidates);
            let (above, below) = (rows.open_below::<0>(child), rows.open_below::<1>(child));
            let on_a_diagonal = child.free.raise(rows.gap::<1>()) & child.free;
            let both_rows = !above.is_empty() & !below.is_empty();
            let one = busy & both_rows & on_a_diagonal.is_empty() & (above | below).equals(child.free);
            completions += V::count(one) + V::count(one & (above & below).equals(child.free));
        }
    }
    completions.into()
}
