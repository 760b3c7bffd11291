//! AVX-512: 16 lanes of 32 columns (AVX512F) or 32 lanes of 16 columns (AVX512BW and VBMI2).
//!
//! Found on Zen 5: `vpexpandd` and `vpcompressd` must merge into a register that is ready, since the zeroing form
//! waits for the old value too; packing one index vector and permuting three times beats packing three times;
//! packing straight to memory is slow.

#![allow(clippy::wildcard_imports, reason = "intrinsics carry their vendor's prefix")]

use std::arch::x86_64::*;
use std::ops::{BitAnd, BitOr, BitXor, Not};

use super::simd::{self, Moves, on_values, vector};
use super::vector::{Node, Nodes, Vector, Work};

macro_rules! lanes {
    (
        $vector:ident, $word:ty, $lanes:literal, $mask:ty; $splat:ident, $sub:ident, $sll:ident, $srl:ident,
        $cmpeq:ident, $testn:ident, $mov:ident, $compress:ident, $expand:ident, $permute:ident
    ) => {
        vector!(
            $vector(__m512i), $word, $mask, $lanes,
            _mm512_setzero_si512, _mm512_and_si512, _mm512_or_si512,
            _mm512_xor_si512, _mm512_loadu_si512, $splat, $sub, $sll, $srl;

            #[inline(always)]
            fn equals(self, other: Self) -> $mask {
                on_values!($cmpeq(self.0, other.0))
            }
            #[inline(always)]
            fn is_empty(self) -> $mask {
                on_values!($testn(self.0, self.0))
            }
            #[inline(always)]
            fn count(mask: $mask) -> u32 {
                mask.count_ones()
            }
        );

        impl Moves for $vector {
            #[inline(always)]
            unsafe fn spread(node: Node<Self>, idle: $mask, from: [*const $word; 3]) -> (Node<Self>, usize) {
                // SAFETY: the caller lets a vector be read.
                let [left, right, free] = from.map(|words| unsafe { _mm512_loadu_si512(words.cast()) });
                let node = Node {
                    left: Self(on_values!($expand(node.left.0, idle, left))),
                    right: Self(on_values!($expand(node.right.0, idle, right))),
                    free: Self(on_values!($expand(node.free.0, idle, free))),
                };
                (node, idle.count_ones() as usize)
            }
            #[inline(always)]
            unsafe fn compress(node: Node<Self>, keep: $mask, to: [*mut $word; 3]) -> usize {
                static NUMBERS: [$word; $lanes] = {
                    let mut numbers = [0; $lanes];
                    let mut lane: $word = 0;
                    while lane < $lanes {
                        numbers[lane as usize] = lane;
                        lane += 1;
                    }
                    numbers
                };
                let numbers = node.left.load(&NUMBERS).0;
                let chosen = on_values!($compress(numbers, keep, numbers));
                for (words, lanes) in to.into_iter().zip([node.left, node.right, node.free]) {
                    // SAFETY: the caller lets a vector be written.
                    unsafe { _mm512_storeu_si512(words.cast(), $permute(chosen, lanes.0)) };
                }
                keep.count_ones() as usize
            }
            #[inline(always)]
            fn replace(self, mask: $mask, new: Self) -> Self {
                Self(on_values!($mov(self.0, mask, new.0)))
            }
        }
    };
}

lanes!(
    Wide, u32, 16, __mmask16; _mm512_set1_epi32, _mm512_sub_epi32, _mm512_sll_epi32, _mm512_srl_epi32,
    _mm512_cmpeq_epi32_mask, _mm512_testn_epi32_mask, _mm512_mask_mov_epi32, _mm512_mask_compress_epi32,
    _mm512_mask_expand_epi32, _mm512_permutexvar_epi32
);
lanes!(
    Narrow, u16, 32, __mmask32; _mm512_set1_epi16, _mm512_sub_epi16, _mm512_sll_epi16, _mm512_srl_epi16,
    _mm512_cmpeq_epi16_mask, _mm512_testn_epi16_mask, _mm512_mask_mov_epi16, _mm512_mask_compress_epi16,
    _mm512_mask_expand_epi16, _mm512_permutexvar_epi16
);
