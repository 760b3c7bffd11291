//! Any CPU: vectors are arrays, and every operation is a loop that the compiler turns into what SIMD it may use.

use super::lanes::Lanes;
use super::schedule::Level;
use super::stacks::{Parents, Stack};
use super::step;

/// 8 lanes of `u32`.
#[derive(Clone, Copy)]
pub(super) struct Wide;

/// 16 lanes of `u16`.
#[derive(Clone, Copy)]
pub(super) struct Narrow;

macro_rules! portable_lanes {
    ($isa:ident, $word:ty, $lanes:literal) => {
        impl Lanes for $isa {
            type Word = $word;
            type Vector = [$word; $lanes];
            /// All bits of a chosen lane.
            type Mask = [$word; $lanes];
            type Shift = u32;
            type Packing = [$word; $lanes];
            type Spreading = [$word; $lanes];
            const LANES: usize = $lanes;

            #[inline(always)]
            fn splat(self, bitmap: $word) -> Self::Vector {
                [bitmap; $lanes]
            }
            #[inline(always)]
            fn shift(self, rows: u32) -> u32 {
                rows
            }
            #[inline(always)]
            fn and(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
                lanewise!(lane => a[lane] & b[lane])
            }
            #[inline(always)]
            fn or(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
                lanewise!(lane => a[lane] | b[lane])
            }
            #[inline(always)]
            fn xor(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
                lanewise!(lane => a[lane] ^ b[lane])
            }
            #[inline(always)]
            fn unattacked(self, free: Self::Vector, left: Self::Vector, right: Self::Vector) -> Self::Vector {
                lanewise!(lane => free[lane] & !(left[lane] | right[lane]))
            }
            #[inline(always)]
            fn split_lowest(self, columns: Self::Vector) -> (Self::Vector, Self::Vector) {
                let lowest = lanewise!(lane => columns[lane] & columns[lane].wrapping_neg());
                (lowest, self.xor(columns, lowest))
            }
            #[inline(always)]
            fn raise<const ADJACENT: bool, const K: u32>(self, x: Self::Vector, by: u32) -> Self::Vector {
                let by = if ADJACENT { K } else { by };
                lanewise!(lane => x[lane].unbounded_shl(by))
            }
            #[inline(always)]
            fn lower<const ADJACENT: bool, const K: u32>(self, x: Self::Vector, by: u32) -> Self::Vector {
                let by = if ADJACENT { K } else { by };
                lanewise!(lane => x[lane].unbounded_shr(by))
            }
            #[inline(always)]
            fn every(self) -> Self::Mask {
                [<$word>::MAX; $lanes]
            }
            #[inline(always)]
            fn empty(self, x: Self::Vector) -> Self::Mask {
                lanewise!(lane => if x[lane] == 0 { <$word>::MAX } else { 0 })
            }
            #[inline(always)]
            fn occupied(self, x: Self::Vector) -> Self::Mask {
                lanewise!(lane => if x[lane] == 0 { 0 } else { <$word>::MAX })
            }
            #[inline(always)]
            fn keep_meeting(self, mask: Self::Mask, a: Self::Vector, b: Self::Vector) -> Self::Mask {
                self.and(mask, self.occupied(self.and(a, b)))
            }
            #[inline(always)]
            fn keep_disjoint(self, mask: Self::Mask, a: Self::Vector, b: Self::Vector) -> Self::Mask {
                self.and(mask, self.empty(self.and(a, b)))
            }
            #[inline(always)]
            fn keep_equal(self, mask: Self::Mask, a: Self::Vector, b: Self::Vector) -> Self::Mask {
                self.and(mask, self.empty(self.xor(a, b)))
            }
            #[inline(always)]
            fn first(self, mut mask: Self::Mask, mut count: usize) -> Self::Mask {
                for lane in &mut mask {
                    *lane = if count == 0 { 0 } else { *lane };
                    count -= usize::from(*lane != 0);
                }
                mask
            }
            #[inline(always)]
            fn count(self, mask: Self::Mask) -> usize {
                let mut count: $word = 0;
                for lane in mask {
                    count += lane & 1;
                }
                count as usize
            }
            #[inline(always)]
            fn choose(self, mask: Self::Mask, old: Self::Vector, new: Self::Vector) -> Self::Vector {
                lanewise!(lane => old[lane] & !mask[lane] | new[lane] & mask[lane])
            }
            #[inline(always)]
            fn packing(self, mask: Self::Mask) -> Self::Mask {
                mask
            }
            #[inline(always)]
            unsafe fn pack_to(self, to: *mut $word, packing: Self::Mask, x: Self::Vector) {
                let mut at = 0;
                for lane in 0..$lanes {
                    // SAFETY: `at` is at most `lane`, and that many words are writable, says the caller.
                    unsafe { *to.add(at) = x[lane] };
                    at += usize::from(packing[lane] & 1 != 0);
                }
            }
            #[inline(always)]
            fn spreading(self, mask: Self::Mask) -> Self::Mask {
                mask
            }
            #[inline(always)]
            unsafe fn spread_from(
                self,
                onto: Self::Vector,
                spreading: Self::Mask,
                from: *const $word,
            ) -> Self::Vector {
                let mut spread = onto;
                let mut at = 0;
                for lane in 0..$lanes {
                    // SAFETY: `at` is at most `lane`, and that many words are readable, says the caller.
                    let word = unsafe { *from.add(at) };
                    spread[lane] = if spreading[lane] == 0 { onto[lane] } else { word };
                    at += usize::from(spreading[lane] & 1 != 0);
                }
                spread
            }
            fn expand<const ADJACENT: bool, const AHEAD: usize, const COVER: bool>(
                self,
                level: &Level,
                parents: &Parents<'_, $word>,
                children: &mut Stack<'_, $word>,
            ) {
                step::expand::<$isa, 1, ADJACENT, AHEAD, COVER>(self, level, parents, children);
            }
            fn leaf<const ADJACENT: bool>(self, level: &Level, parents: &Parents<'_, $word>) -> u64 {
                step::leaf::<$isa, 1, ADJACENT>(self, level, parents)
            }
        }
    };
}

/// A vector from an expression for each lane.
macro_rules! lanewise {
    ($lane:ident => $value:expr) => {{
        let mut result = [0; Self::LANES];
        for $lane in 0..Self::LANES {
            result[$lane] = $value;
        }
        result
    }};
}

portable_lanes!(Wide, u32, 8);
portable_lanes!(Narrow, u16, 16);
