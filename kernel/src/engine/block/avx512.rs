//! AVX-512 (BW and VBMI2): 32 lanes of 16 columns.
//!
//! Found on Zen 5: `vpexpandw` and `vpcompressw` must merge into a register that is ready, since the zeroing form
//! waits for the old value too; packing one index vector and permuting three times beats packing three times;
//! packing straight to memory is slow.

#![allow(clippy::wildcard_imports, reason = "intrinsics carry their vendor's prefix")]

use std::arch::x86_64::*;
use std::ops::{BitAnd, BitOr, BitXor, Not};

use super::vector::{Nodes, Vector, on_values, operators};

/// 32 lanes.
#[derive(Clone, Copy)]
pub(super) struct Avx512(__m512i);

operators!(
    Avx512, _mm512_set1_epi16;
    BitAnd bitand _mm512_and_si512,
    BitOr bitor _mm512_or_si512,
    BitXor bitxor _mm512_xor_si512
);

static NUMBERS: [u16; 32] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
    29, 30, 31,
];

impl Vector for Avx512 {
    type Word = u16;
    type Mask = __mmask32;
    const LANES: usize = 32;

    #[inline(always)]
    unsafe fn splat(bitmap: u16) -> Self {
        // SAFETY: the caller promises the instructions.
        Self(unsafe { _mm512_set1_epi16(bitmap.cast_signed()) })
    }
    #[inline(always)]
    unsafe fn load(words: &[u16]) -> Self {
        // SAFETY: the caller promises the instructions; there are as many words as lanes.
        Self(unsafe { _mm512_loadu_si512(words[..Self::LANES].as_ptr().cast()) })
    }
    #[inline(always)]
    fn sum(self) -> u64 {
        let mut words = [0_u16; Self::LANES];
        // SAFETY: the array is as large as a vector.
        unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), self.0) };
        words.map(u64::from).iter().sum()
    }
    #[inline(always)]
    fn lowest(self) -> Self {
        self & Self(on_values!(_mm512_sub_epi16(_mm512_setzero_si512(), self.0)))
    }
    #[inline(always)]
    fn raise(self, rows: u32) -> Self {
        Self(on_values!(_mm512_sll_epi16(self.0, _mm_cvtsi32_si128(rows.cast_signed()))))
    }
    #[inline(always)]
    fn lower(self, rows: u32) -> Self {
        Self(on_values!(_mm512_srl_epi16(self.0, _mm_cvtsi32_si128(rows.cast_signed()))))
    }
    #[inline(always)]
    fn equals(self, other: Self) -> u32 {
        on_values!(_mm512_cmpeq_epi16_mask(self.0, other.0))
    }
    #[inline(always)]
    fn is_empty(self) -> u32 {
        on_values!(_mm512_testn_epi16_mask(self.0, self.0))
    }
    #[inline(always)]
    fn replace(self, mask: u32, new: Self) -> Self {
        Self(on_values!(_mm512_mask_mov_epi16(self.0, mask, new.0)))
    }
    #[inline(always)]
    fn increment(self, mask: u32) -> Self {
        Self(on_values!(_mm512_mask_add_epi16(self.0, mask, self.0, _mm512_set1_epi16(1))))
    }

    #[inline(always)]
    fn spread<const VECTORS: usize>(
        idle: &[u32; VECTORS],
        nodes: &mut Nodes<Self, VECTORS>,
        from: [&[u16]; 3],
    ) -> usize {
        assert!(from.iter().all(|words| words.len() >= VECTORS * Self::LANES));
        let mut taken = 0;
        for k in 0..VECTORS {
            let expand = |vector: Self, words: &[u16]| {
                // SAFETY: a vector exists only where the instructions do; vectors before took no more than their lanes.
                Self(unsafe {
                    let words = _mm512_loadu_si512(words.as_ptr().add(taken).cast());
                    _mm512_mask_expand_epi16(vector.0, idle[k], words)
                })
            };
            nodes.left[k] = expand(nodes.left[k], from[0]);
            nodes.right[k] = expand(nodes.right[k], from[1]);
            nodes.free[k] = expand(nodes.free[k], from[2]);
            taken += idle[k].count_ones() as usize;
        }
        taken
    }

    #[inline(always)]
    fn pack<const VECTORS: usize>(
        keep: &[u32; VECTORS],
        nodes: &Nodes<Self, VECTORS>,
        to: [&mut [u16]; 3],
    ) -> usize {
        assert!(to.iter().all(|words| words.len() >= VECTORS * Self::LANES));
        let [left, right, free] = to;
        let mut kept = 0;
        for k in 0..VECTORS {
            // SAFETY: a vector exists only where the instructions do; the array is as large as one.
            let chosen = unsafe {
                let numbers = _mm512_loadu_si512(NUMBERS.as_ptr().cast());
                _mm512_mask_compress_epi16(numbers, keep[k], numbers)
            };
            let store = |vector: Self, words: &mut [u16]| {
                // SAFETY: a vector exists only where the instructions do; vectors before kept no more than their lanes.
                unsafe {
                    let packed = _mm512_permutexvar_epi16(chosen, vector.0);
                    _mm512_storeu_si512(words.as_mut_ptr().add(kept).cast(), packed);
                }
            };
            store(nodes.left[k], left);
            store(nodes.right[k], right);
            store(nodes.free[k], free);
            kept += keep[k].count_ones() as usize;
        }
        kept
    }
}
