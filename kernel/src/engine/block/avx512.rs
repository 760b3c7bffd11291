//! AVX-512: 16 lanes of 32 columns (AVX512F) or 32 lanes of 16 columns (AVX512BW and VBMI2).
//!
//! Found on Zen 5: `vpexpandd` and `vpcompressd` must merge into a register that is ready, since the zeroing form
//! waits for the old value too; packing one index vector and permuting three times beats packing three times;
//! packing straight to memory is slow.

#![allow(clippy::wildcard_imports, reason = "intrinsics carry their vendor's prefix")]

use std::arch::x86_64::*;

use super::Steps;
use super::lanes::{Lanes, compiled_for};
use super::schedule::Level;
use super::stacks::{Parents, Stack};
use super::step;
use crate::engine::Kernel;

/// Proof that the machine has what [`Kernel::Avx512`] needs.
#[derive(Clone, Copy)]
pub(super) struct Avx512(());

impl Avx512 {
    /// The proof, if this machine has the instructions.
    pub(super) fn detect() -> Option<Self> {
        Kernel::Avx512.is_available().then_some(Self(()))
    }
}

/// 16 lanes of `u32`.
#[derive(Clone, Copy)]
pub(super) struct Wide(pub(super) Avx512);

/// 32 lanes of `u16`.
#[derive(Clone, Copy)]
pub(super) struct Narrow(pub(super) Avx512);

static NUMBERS_WIDE: [u32; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
static NUMBERS_NARROW: [u16; 32] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
    29, 30, 31,
];

macro_rules! avx512_lanes {
    (
        $isa:ident, $word:ty, $lanes:literal, $mask:ty, $bits:ident,
        $set1:ident, $add:ident, $sllv:ident, $srlv:ident, $slli:ident, $srli:ident,
        $test:ident, $testn:ident, $mask_test:ident, $mask_testn:ident, $mask_eq:ident, $mask_mov:ident,
        $compress:ident, $expand:ident, $permute:ident, $numbers:ident
    ) => {
        impl Steps for $isa {
            type Word = $word;

            compiled_for! {
                "avx512f,avx512bw,avx512vbmi2,bmi1,bmi2,popcnt", isa: $isa;

                fn expand<const ADJACENT: bool, const AHEAD: usize, const COVER: bool>(
                    level: &Level,
                    parents: &Parents<'_, $word>,
                    children: &mut Stack<'_, $word>
                ) {
                    step::expand::<$isa, 3, ADJACENT, AHEAD, COVER>(isa, level, parents, children);
                }
                fn leaf<const ADJACENT: bool>(level: &Level, parents: &Parents<'_, $word>) -> u64 {
                    step::leaf::<$isa, 3, ADJACENT>(isa, level, parents)
                }
            }
        }

        impl Lanes for $isa {
            type Vector = __m512i;
            type Mask = $mask;
            type Shift = __m512i;
            type Packing = __m512i;
            type Spreading = $mask;
            const LANES: usize = $lanes;

            #[inline(always)]
            fn every(self) -> $mask {
                <$mask>::MAX
            }
            #[inline(always)]
            fn count(self, mask: $mask) -> usize {
                mask.count_ones() as usize
            }
            #[inline(always)]
            fn count_both(self, a: $mask, b: $mask) -> usize {
                ($bits::from(a) << $lanes | $bits::from(b)).count_ones() as usize
            }
            #[inline(always)]
            fn spreading(self, mask: $mask) -> ($mask, usize) {
                (mask, self.count(mask))
            }
            #[inline(always)]
            unsafe fn pack_to(self, to: *mut $word, packing: __m512i, x: __m512i) {
                // SAFETY: `self` proves the features; the caller lets a vector be written.
                unsafe { _mm512_storeu_si512(to.cast(), $permute(packing, x)) }
            }
            #[inline(always)]
            unsafe fn spread_from(self, onto: __m512i, spreading: $mask, from: *const $word) -> __m512i {
                // SAFETY: `self` proves the features; the caller lets a vector be read.
                unsafe { $expand(onto, spreading, _mm512_loadu_si512(from.cast())) }
            }

            compiled_for! {
                "avx512f,avx512bw,avx512vbmi2,bmi1,bmi2,popcnt", isa: $isa;

                fn splat(bitmap: $word) -> __m512i {
                    $set1(bitmap.cast_signed())
                }
                fn shift(rows: u32) -> __m512i {
                    $set1(rows.try_into().expect("fewer than 31 rows"))
                }
                fn and(a: __m512i, b: __m512i) -> __m512i {
                    _mm512_and_si512(a, b)
                }
                fn or(a: __m512i, b: __m512i) -> __m512i {
                    _mm512_or_si512(a, b)
                }
                fn xor(a: __m512i, b: __m512i) -> __m512i {
                    _mm512_xor_si512(a, b)
                }
                fn unattacked(free: __m512i, left: __m512i, right: __m512i) -> __m512i {
                    _mm512_ternarylogic_epi32::<0x10>(free, left, right)
                }
                fn split_lowest(columns: __m512i) -> (__m512i, __m512i) {
                    let less_one = $add(columns, $set1(-1));
                    (_mm512_andnot_si512(less_one, columns), _mm512_and_si512(columns, less_one))
                }
                fn raise<const ADJACENT: bool, const K: u32>(x: __m512i, by: __m512i) -> __m512i {
                    if ADJACENT { $slli::<K>(x) } else { $sllv(x, by) }
                }
                fn lower<const ADJACENT: bool, const K: u32>(x: __m512i, by: __m512i) -> __m512i {
                    if ADJACENT { $srli::<K>(x) } else { $srlv(x, by) }
                }
                fn empty(x: __m512i) -> $mask {
                    $testn(x, x)
                }
                fn occupied(x: __m512i) -> $mask {
                    $test(x, x)
                }
                fn keep_meeting(mask: $mask, a: __m512i, b: __m512i) -> $mask {
                    $mask_test(mask, a, b)
                }
                fn keep_disjoint(mask: $mask, a: __m512i, b: __m512i) -> $mask {
                    $mask_testn(mask, a, b)
                }
                fn keep_equal(mask: $mask, a: __m512i, b: __m512i) -> $mask {
                    $mask_eq(mask, a, b)
                }
                fn first(mask: $mask, count: usize) -> $mask {
                    // The deposit has no bit beyond the mask.
                    if count >= $lanes {
                        mask
                    } else {
                        _pdep_u32((1 << count) - 1, mask.into()).try_into().expect("a part of the mask")
                    }
                }
                fn choose(mask: $mask, old: __m512i, new: __m512i) -> __m512i {
                    $mask_mov(old, mask, new)
                }
                fn packing(mask: $mask) -> (__m512i, usize) {
                    // SAFETY: the array is as large as a vector.
                    let numbers = unsafe { _mm512_loadu_si512($numbers.as_ptr().cast()) };
                    ($compress(numbers, mask, numbers), isa.count(mask))
                }
            }
        }
    };
}

avx512_lanes!(
    Wide,
    u32,
    16,
    __mmask16,
    u32,
    _mm512_set1_epi32,
    _mm512_add_epi32,
    _mm512_sllv_epi32,
    _mm512_srlv_epi32,
    _mm512_slli_epi32,
    _mm512_srli_epi32,
    _mm512_test_epi32_mask,
    _mm512_testn_epi32_mask,
    _mm512_mask_test_epi32_mask,
    _mm512_mask_testn_epi32_mask,
    _mm512_mask_cmpeq_epi32_mask,
    _mm512_mask_mov_epi32,
    _mm512_mask_compress_epi32,
    _mm512_mask_expand_epi32,
    _mm512_permutexvar_epi32,
    NUMBERS_WIDE
);
avx512_lanes!(
    Narrow,
    u16,
    32,
    __mmask32,
    u64,
    _mm512_set1_epi16,
    _mm512_add_epi16,
    _mm512_sllv_epi16,
    _mm512_srlv_epi16,
    _mm512_slli_epi16,
    _mm512_srli_epi16,
    _mm512_test_epi16_mask,
    _mm512_testn_epi16_mask,
    _mm512_mask_test_epi16_mask,
    _mm512_mask_testn_epi16_mask,
    _mm512_mask_cmpeq_epi16_mask,
    _mm512_mask_mov_epi16,
    _mm512_mask_compress_epi16,
    _mm512_mask_expand_epi16,
    _mm512_permutexvar_epi16,
    NUMBERS_NARROW
);
