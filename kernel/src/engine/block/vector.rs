//! What the search asks of a vector.

use std::fmt::Debug;
use std::ops::{BitAnd, BitOr, BitXor, Not};

/// A node in each lane: diagonals that move to higher columns (`left`) and to lower ones (`right`), and free columns.
#[derive(Clone, Copy)]
pub(super) struct Node<V> {
    pub(super) left: V,
    pub(super) right: V,
    pub(super) free: V,
}

impl<V: Vector> Node<V> {
    /// Open cells in the nodes' own row.
    #[inline(always)]
    pub(super) fn open(self, allowed: V) -> V {
        self.free & !(self.left | self.right) & allowed
    }
}

/// The nodes of several vectors.
#[derive(Clone, Copy)]
pub(super) struct Nodes<V, const VECTORS: usize> {
    pub(super) left: [V; VECTORS],
    pub(super) right: [V; VECTORS],
    pub(super) free: [V; VECTORS],
}

impl<V: Copy, const VECTORS: usize> Nodes<V, VECTORS> {
    /// Nodes without free columns, if `none` has no column.
    #[inline(always)]
    pub(super) fn empty(none: V) -> Self {
        Self { left: [none; VECTORS], right: [none; VECTORS], free: [none; VECTORS] }
    }

    /// The nodes of the `k`-th vector.
    #[inline(always)]
    pub(super) fn at(&self, k: usize) -> Node<V> {
        Node { left: self.left[k], right: self.right[k], free: self.free[k] }
    }

    /// Other nodes for the `k`-th vector.
    #[inline(always)]
    pub(super) fn put(&mut self, k: usize, node: Node<V>) {
        (self.left[k], self.right[k], self.free[k]) = (node.left, node.right, node.free);
    }
}

/// The parents at work.
pub(super) struct Work<V, const VECTORS: usize> {
    pub(super) nodes: Nodes<V, VECTORS>,
    /// Those not taken yet.
    pub(super) candidates: [V; VECTORS],
    /// How many vectors are in use: the first ones.
    pub(super) used: usize,
}

/// A vector of bitmaps, one a lane, and what can be done to all its lanes at once.
///
/// A vector exists only where the machine has the instructions. All methods are inlined into the search, which alone
/// is compiled for them.
pub(super) trait Vector:
    Copy + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self> + Not<Output = Self>
{
    /// A lane.
    type Word: Word;
    /// A choice of lanes.
    type Mask: Copy + BitAnd<Output = Self::Mask> + Not<Output = Self::Mask>;
    /// Lanes in a vector.
    const LANES: usize;
    /// Candidates taken from each lane between two refills. More leave more lanes idle, fewer refill more often.
    const POPS: usize = 1;

    /// No column in any lane.
    ///
    /// # Safety
    /// The machine has the instructions.
    unsafe fn none() -> Self;
    /// The same bitmap in every lane.
    fn splat(self, bitmap: Self::Word) -> Self;
    /// A bitmap for each lane, from the front of `words`.
    fn load(self, words: &[Self::Word]) -> Self;

    /// The lowest column; none if there is none.
    fn lowest(self) -> Self;
    /// Every column `rows` up.
    fn raise(self, rows: u32) -> Self;
    /// Every column `rows` down.
    fn lower(self, rows: u32) -> Self;
    /// Lanes that are the same.
    fn equals(self, other: Self) -> Self::Mask;
    /// Lanes without a column.
    fn is_empty(self) -> Self::Mask;
    /// Number of lanes in `mask`.
    fn count(mask: Self::Mask) -> u32;

    /// Gives the lanes without candidates the next nodes of `from`, and returns how many it took. Candidates are the
    /// open cells in `allowed`. There are `left` nodes, and behind them as many without free columns as there are
    /// lanes.
    fn refill<const VECTORS: usize>(
        work: &mut Work<Self, VECTORS>,
        from: [&[Self::Word]; 3],
        left: usize,
        allowed: Self,
    ) -> usize;
    /// Moves the lanes of `keep` to the front of `to`, and returns how many. `to` has room for all lanes; what is
    /// left in that behind the ones moved is arbitrary.
    fn pack<const VECTORS: usize>(
        keep: &[Self::Mask],
        nodes: &Nodes<Self, VECTORS>,
        to: [&mut [Self::Word]; 3],
    ) -> usize;
}

/// A bitmap of columns: `u16` where the free columns span at most 16 and `u32` otherwise.
pub(super) trait Word:
    Copy
    + Default
    + PartialEq
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Not<Output = Self>
    + TryFrom<u32, Error: Debug>
    + Into<u32>
    + 'static
{
    fn wrapping_neg(self) -> Self;
    fn unbounded_shl(self, rows: u32) -> Self;
    fn unbounded_shr(self, rows: u32) -> Self;
}

macro_rules! words {
    ($($word:ty),*) => { $(
        impl Word for $word {
            #[inline(always)]
            fn wrapping_neg(self) -> Self {
                self.wrapping_neg()
            }
            #[inline(always)]
            fn unbounded_shl(self, rows: u32) -> Self {
                self.unbounded_shl(rows)
            }
            #[inline(always)]
            fn unbounded_shr(self, rows: u32) -> Self {
                self.unbounded_shr(rows)
            }
        }
    )* };
}

words!(u16, u32);
