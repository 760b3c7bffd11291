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

/// A vector type with its operators, and [`Vector`] for it: what is the same for all, and then the rest.
macro_rules! vector {
    (
        $vector:ident($register:ty), $word:ty, $mask:ty, $lanes:literal, $zero:ident, $and:ident, $or:ident, $xor:ident,
        $load:ident, $splat:ident, $sub:ident, $sll:ident, $srl:ident; $($rest:item)*
    ) => {
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
                self ^ self.splat(<$word>::MAX)
            }
        }

        impl Vector for $vector {
            type Word = $word;
            type Mask = $mask;
            const LANES: usize = $lanes;

            #[inline(always)]
            unsafe fn none() -> Self {
                // SAFETY: the caller promises the instructions.
                Self(unsafe { $zero() })
            }
            #[inline(always)]
            fn splat(self, bitmap: $word) -> Self {
                Self(on_values!($splat(bitmap.cast_signed())))
            }
            #[inline(always)]
            fn load(self, words: &[$word]) -> Self {
                let words = &words[..$lanes];
                // SAFETY: `self` exists; there are as many words as lanes.
                Self(unsafe { $load(words.as_ptr().cast()) })
            }
            #[inline(always)]
            fn lowest(self) -> Self {
                self & Self(on_values!($sub($zero(), self.0)))
            }
            #[inline(always)]
            fn raise(self, rows: u32) -> Self {
                Self(on_values!($sll(self.0, _mm_cvtsi32_si128(rows.cast_signed()))))
            }
            #[inline(always)]
            fn lower(self, rows: u32) -> Self {
                Self(on_values!($srl(self.0, _mm_cvtsi32_si128(rows.cast_signed()))))
            }
            #[inline(always)]
            fn refill<const VECTORS: usize>(
                work: &mut Work<Self, VECTORS>,
                from: [&[$word]; 3],
                left: usize,
                allowed: Self,
            ) -> usize {
                simd::refill(work, from, left, allowed)
            }
            #[inline(always)]
            fn pack<const VECTORS: usize>(
                keep: &[$mask],
                nodes: &Nodes<Self, VECTORS>,
                to: [&mut [$word]; 3],
            ) -> usize {
                simd::pack(keep, nodes, to)
            }
            $($rest)*
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
