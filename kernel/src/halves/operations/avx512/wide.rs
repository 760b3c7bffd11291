//! Long and short masks in registers.

#![allow(clippy::wildcard_imports, reason = "intrinsics; the lint is off in tests")]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "intrinsics take words as signed; choices have as many bits as there are lanes"
)]
#![expect(clippy::inline_always, reason = "compiled anew for each instruction set")]

use std::arch::x86_64::*;

use super::{Mask, load, load_some};

/// Masks in a register.
pub(super) trait WideMask: Mask {
    const LANES: usize = 8 * Self::IN_WORD;

    /// The first masks of a list that has as many as a register.
    fn load(masks: &[Self]) -> __m512i;

    /// As many as there are, and which those are; the others are zero.
    fn load_some(masks: &[Self]) -> (__m512i, u16);

    /// The same in every lane.
    fn splat(bits: u64) -> __m512i;

    /// Which lanes have none of `bits`.
    fn without(x: __m512i, bits: __m512i) -> u16;

    /// Writes the chosen masks to `to` and returns where they end.
    ///
    /// # Safety
    /// A whole register can be written.
    unsafe fn append(to: *mut Self, chosen: u16, x: __m512i) -> *mut Self;

    /// `x` shifted to the left, or to the right if `shift` is negative, within its lanes.
    fn shift(x: __m512i, shift: i32) -> __m512i;

    /// Adds one to some lanes.
    fn add_one(x: __m512i, some: u16) -> __m512i;

    /// `x + y` in some lanes, `x` in the others.
    fn add(x: __m512i, some: u16, y: __m512i) -> __m512i;

    /// The sum of all lanes.
    fn sum(x: __m512i) -> u64;

    /// OR of the masks in a word.
    fn fold(word: u64) -> u64;

    /// The lowest `count` lanes.
    #[inline(always)]
    fn lowest(count: usize) -> u16 {
        if count >= Self::LANES { u16::MAX >> (16 - Self::LANES) } else { (1 << count) - 1 }
    }
}

impl WideMask for u64 {
    #[inline(always)]
    fn load(masks: &[Self]) -> __m512i {
        // SAFETY: only code compiled for the instruction set uses this, and eight words are readable.
        unsafe { load(masks.first_chunk().expect("eight")) }
    }

    #[inline(always)]
    fn load_some(masks: &[Self]) -> (__m512i, u16) {
        // SAFETY: as above.
        let (x, some) = unsafe { load_some(masks) };
        (x, some.into())
    }

    #[inline(always)]
    fn splat(bits: u64) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_set1_epi64(bits as i64) }
    }

    #[inline(always)]
    fn without(x: __m512i, bits: __m512i) -> u16 {
        // SAFETY: as above.
        unsafe { _mm512_testn_epi64_mask(x, bits).into() }
    }

    #[inline(always)]
    unsafe fn append(to: *mut Self, chosen: u16, x: __m512i) -> *mut Self {
        let chosen = chosen as __mmask8;
        // SAFETY: as above, and the caller's promise.
        unsafe {
            _mm512_storeu_si512(to.cast(), _mm512_maskz_compress_epi64(chosen, x));
            to.add(chosen.count_ones() as usize)
        }
    }

    #[inline(always)]
    fn shift(x: __m512i, shift: i32) -> __m512i {
        // SAFETY: as above.
        unsafe {
            let [left, right] = [_mm_cvtsi32_si128(shift.max(0)), _mm_cvtsi32_si128((-shift).max(0))];
            _mm512_srl_epi64(_mm512_sll_epi64(x, left), right)
        }
    }

    #[inline(always)]
    fn add_one(x: __m512i, some: u16) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_mask_sub_epi64(x, some as __mmask8, x, _mm512_set1_epi64(-1)) }
    }

    #[inline(always)]
    fn add(x: __m512i, some: u16, y: __m512i) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_mask_add_epi64(x, some as __mmask8, x, y) }
    }

    #[inline(always)]
    fn sum(x: __m512i) -> u64 {
        // SAFETY: as above.
        unsafe { _mm512_reduce_add_epi64(x) as u64 }
    }

    #[inline(always)]
    fn fold(word: u64) -> u64 {
        word
    }
}

impl WideMask for u32 {
    #[inline(always)]
    fn load(masks: &[Self]) -> __m512i {
        let masks: &[Self; 16] = masks.first_chunk().expect("sixteen");
        // SAFETY: only code compiled for the instruction set uses this, and sixteen masks are readable.
        unsafe { _mm512_loadu_si512(masks.as_ptr().cast()) }
    }

    #[inline(always)]
    fn load_some(masks: &[Self]) -> (__m512i, u16) {
        let some = Self::lowest(masks.len());
        // SAFETY: only the first masks, which are there, are read.
        (unsafe { _mm512_maskz_loadu_epi32(some, masks.as_ptr().cast()) }, some)
    }

    #[inline(always)]
    fn splat(bits: u64) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_set1_epi32(bits as i32) }
    }

    #[inline(always)]
    fn without(x: __m512i, bits: __m512i) -> u16 {
        // SAFETY: as above.
        unsafe { _mm512_testn_epi32_mask(x, bits) }
    }

    #[inline(always)]
    unsafe fn append(to: *mut Self, chosen: u16, x: __m512i) -> *mut Self {
        // SAFETY: as above, and the caller's promise.
        unsafe {
            _mm512_storeu_si512(to.cast(), _mm512_maskz_compress_epi32(chosen, x));
            to.add(chosen.count_ones() as usize)
        }
    }

    #[inline(always)]
    fn shift(x: __m512i, shift: i32) -> __m512i {
        // SAFETY: as above.
        unsafe {
            let [left, right] = [_mm_cvtsi32_si128(shift.max(0)), _mm_cvtsi32_si128((-shift).max(0))];
            _mm512_srl_epi32(_mm512_sll_epi32(x, left), right)
        }
    }

    #[inline(always)]
    fn add_one(x: __m512i, some: u16) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_mask_sub_epi32(x, some, x, _mm512_set1_epi64(-1)) }
    }

    #[inline(always)]
    fn add(x: __m512i, some: u16, y: __m512i) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_mask_add_epi32(x, some, x, y) }
    }

    #[inline(always)]
    fn sum(x: __m512i) -> u64 {
        // SAFETY: as above.
        unsafe { u64::from(_mm512_reduce_add_epi32(x) as u32) }
    }

    #[inline(always)]
    fn fold(word: u64) -> u64 {
        (word | word >> 32) & u64::from(Self::MAX)
    }
}
