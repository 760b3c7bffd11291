//! The two steps of the search, for vectors of any kind: expand a level's nodes, and complete those of the leaf.
//!
//! Each lane works on a node of its own. A step gives every lane that has run out of candidates the next node
//! (refill), takes one candidate from each lane (pop), and stores those children that pass the filter, packed (emit).
//! All lanes do useful work whatever the number of candidates of a node. Several vectors take turns, which hides the
//! latency of the moves between masks and lanes.

use super::schedule::{AHEAD_MAX, Level};
use super::stacks::{Parents, Stack};
use super::vector::{Nodes, Vector};

/// A level's masks in every lane, and its gaps.
struct Rows<V, const ADJACENT: bool> {
    allowed: [V; AHEAD_MAX + 2],
    gaps: [u32; AHEAD_MAX + 2],
}

/// A node in every lane.
#[derive(Clone, Copy)]
struct Node<V> {
    left: V,
    right: V,
    free: V,
}

impl<V: Copy, const VECTORS: usize> Nodes<V, VECTORS> {
    /// The nodes of the `k`-th vector.
    #[inline(always)]
    fn of(&self, k: usize) -> Node<V> {
        Node { left: self.left[k], right: self.right[k], free: self.free[k] }
    }
}

impl<V: Vector, const ADJACENT: bool> Rows<V, ADJACENT> {
    /// # Safety
    /// The machine has the vector's instructions.
    #[inline(always)]
    unsafe fn new(level: &Level) -> Self {
        let word = |mask: u32| V::Word::try_from(mask).expect("a board that the lanes can hold");
        // SAFETY: the caller promises the instructions.
        Self { allowed: level.allowed.map(|mask| unsafe { V::splat(word(mask)) }), gaps: level.gaps }
    }

    /// `gaps[K]`, a constant if all rows are adjacent.
    #[inline(always)]
    fn gap<const K: usize>(&self) -> u32 {
        match (ADJACENT, K) {
            (false, _) => self.gaps[K],
            (true, 0) => 1,
            (true, _) => K as u32,
        }
    }

    /// Open cells of the nodes in their own row.
    #[inline(always)]
    fn open(&self, node: Node<V>) -> V {
        node.free & !(node.left | node.right) & self.allowed[0]
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
    fn open_below<const K: usize>(&self, child: Node<V>) -> V {
        let (left, right) = match K {
            0 => (child.left, child.right),
            _ => (child.left.raise(self.gap::<K>()), child.right.lower(self.gap::<K>())),
        };
        child.free & !(left | right) & self.allowed[K + 1]
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
///
/// # Safety
/// The machine has the vector's instructions.
#[inline(always)]
pub(super) unsafe fn expand<
    V: Vector,
    const VECTORS: usize,
    const ADJACENT: bool,
    const AHEAD: usize,
    const COVER: bool,
>(
    level: &Level,
    parents: &Parents<'_, V::Word>,
    stack: &mut Stack<'_, V::Word>,
) {
    // SAFETY: the caller promises the instructions.
    let (rows, none) = unsafe { (Rows::<V, ADJACENT>::new(level), V::splat(V::Word::default())) };
    let (from, mut to) = (parents.arrays(), stack.spare());
    let mut nodes = Nodes { left: [none; VECTORS], right: [none; VECTORS], free: [none; VECTORS] };
    let (mut candidates, mut children) = ([none; VECTORS], nodes);
    let (mut next, mut stored) = (0, 0);
    loop {
        let from = from.map(|words| &words[next..][..VECTORS * V::LANES]);
        let idle = candidates.map(V::is_empty);
        // Behind the last are nodes without free columns.
        next = parents.count().min(next + V::spread(&idle, &mut nodes, from));
        for k in 0..VECTORS {
            candidates[k] = candidates[k].replace(idle[k], rows.open(nodes.of(k)));
        }
        for _ in 0..V::POPS {
            let to = to.each_mut().map(|words| &mut words[stored..][..VECTORS * V::LANES]);
            let mut keep = idle;
            for k in 0..VECTORS {
                let busy = !candidates[k].is_empty();
                let child = rows.pop(nodes.of(k), &mut candidates[k]);
                keep[k] = busy & rows.passes::<AHEAD, COVER>(child);
                (children.left[k], children.right[k], children.free[k]) =
                    (child.left, child.right, child.free);
            }
            stored += V::pack(&keep, &children, to);
        }
        if next == parents.count() && candidates.iter().fold(none, |all, &some| all | some).sum() == 0 {
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
///
/// # Safety
/// The machine has the vector's instructions.
#[inline(always)]
pub(super) unsafe fn leaf<V: Vector, const ADJACENT: bool>(
    level: &Level,
    parents: &Parents<'_, V::Word>,
) -> u64 {
    // SAFETY: the caller promises the instructions.
    let (rows, none) = unsafe { (Rows::<V, ADJACENT>::new(level), V::splat(V::Word::default())) };
    // Behind the last are nodes without free columns.
    let whole = parents.count().next_multiple_of(V::LANES);
    let [left, right, free] = parents.arrays().map(|words| words[..whole].chunks_exact(V::LANES));
    // Six completions of each node of a chunk fit into 16 bits.
    let mut completions = none;
    for ((left, right), free) in left.zip(right).zip(free) {
        // SAFETY: the caller promises the instructions.
        let node = unsafe { Node { left: V::load(left), right: V::load(right), free: V::load(free) } };
        let mut candidates = rows.open(node);
        for _ in 0..3 {
            let busy = !candidates.is_empty();
            let child = rows.pop(node, &mut candidates);
            let (above, below) = (rows.open_below::<0>(child), rows.open_below::<1>(child));
            let on_a_diagonal = child.free.raise(rows.gap::<1>()) & child.free;
            let both_rows = !above.is_empty() & !below.is_empty();
            let one = busy & both_rows & on_a_diagonal.is_empty() & (above | below).equals(child.free);
            completions = completions.increment(one).increment(one & (above & below).equals(child.free));
        }
    }
    completions.sum()
}
