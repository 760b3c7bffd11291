//! Vectors by intrinsics: what they have in common.
//!
//! The nodes of all vectors stay in their lanes. Several vectors take turns, which hides the latency of the moves between
//! masks and lanes.

use super::vector::{Node, Nodes, Vector, Work};

/// How lanes move.
pub(super) trait Moves: Vector {
    /// The lanes of `idle` replaced by the words at `from`, one after the other, and their number.
    ///
    /// # Safety
    /// As many words as there are lanes must be readable.
    unsafe fn spread(node: Node<Self>, idle: Self::Mask, from: [*const Self::Word; 3])
    -> (Node<Self>, usize);
    /// Writes the lanes of `keep` to `to`, one after the other, and returns their number.
    ///
    /// # Safety
    /// As many words as there are lanes must be writable; what is left in those behind the ones moved is arbitrary.
    unsafe fn compress(node: Node<Self>, keep: Self::Mask, to: [*mut Self::Word; 3]) -> usize;
    /// `new` in the lanes of `mask`.
    fn replace(self, mask: Self::Mask, new: Self) -> Self;
}

/// [`Vector::refill`], vector by vector.
#[inline(always)]
pub(super) fn refill<V: Moves, const VECTORS: usize>(
    work: &mut Work<V, VECTORS>,
    from: [&[V::Word]; 3],
    left: usize,
    allowed: V,
) -> usize {
    assert!(from.iter().all(|words| words.len() >= VECTORS * V::LANES));
    let mut taken = 0;
    for k in 0..VECTORS {
        let idle = work.candidates[k].is_empty();
        // SAFETY: `taken` are at most the lanes of the vectors before this one.
        let (node, more) =
            unsafe { V::spread(work.nodes.at(k), idle, from.map(|words| words.as_ptr().add(taken))) };
        work.nodes.put(k, node);
        work.candidates[k] = work.candidates[k].replace(idle, node.open(allowed));
        taken += more;
    }
    taken.min(left)
}

/// [`Vector::pack`], vector by vector.
#[inline(always)]
pub(super) fn pack<V: Moves, const VECTORS: usize>(
    keep: &[V::Mask],
    nodes: &Nodes<V, VECTORS>,
    to: [&mut [V::Word]; 3],
) -> usize {
    assert!(to.iter().all(|words| words.len() >= keep.len() * V::LANES));
    let to = to.map(<[V::Word]>::as_mut_ptr);
    let mut kept = 0;
    for (k, &keep) in keep.iter().enumerate() {
        // SAFETY: `kept` are at most the lanes of the vectors before this one.
        kept += unsafe { V::compress(nodes.at(k), keep, to.map(|words| words.add(kept))) };
    }
    kept
}

/// A vector type, its operators, and what is the same for all.
macro_rules! vector {
    ($vector:ident, $register:ty, $and:ident, $or:ident, $xor:ident, $ones:expr) => {
        /// Lanes of one word each.
        #[derive(Clone, Copy)]
        pub(in crate::engine::block) struct $vector($register);

        vector!(@operator $vector BitAnd bitand $and);
        vector!(@operator $vector BitOr bitor $or);
        vector!(@operator $vector BitXor bitxor $xor);

        impl Not for $vector {
            type Output = Self;

            #[inline(always)]
            fn not(self) -> Self {
                self ^ Self(on_values!($ones))
            }
        }
    };
    (@operator $vector:ident $operator:ident $method:ident $intrinsic:ident) => {
        impl $operator for $vector {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Self(on_values!($intrinsic(self.0, other.0)))
            }
        }
    };
}
/// Intrinsics on the values of vectors.
macro_rules! on_values {
    ($intrinsics:expr) => {{
        // SAFETY: a vector exists only where the machine has the instructions.
        unsafe { $intrinsics }
    }};
}
pub(super) use {on_values, vector};
