//! AVX2: 8 lanes of 32 columns or 16 lanes of 16 columns.
//!
//! Masks are vectors with all bits of a chosen lane set. Lanes are moved by shuffles looked up in tables: across
//! the whole register for 32-bit lanes, within each half for 16-bit lanes, whose halves are therefore read and
//! written one after the other.

#![allow(clippy::wildcard_imports, reason = "intrinsics carry their vendor's prefix")]

use std::arch::x86_64::*;

use super::Steps;
use super::lanes::{Lanes, compiled_for};
use super::schedule::Level;
use super::stacks::{Parents, Stack};
use super::step;
use crate::engine::Kernel;

/// Proof that the machine has what [`Kernel::Avx2`] needs.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    /// The proof, if this machine has the instructions.
    pub(super) fn detect() -> Option<Self> {
        Kernel::Avx2.is_available().then_some(Self(()))
    }
}

/// 8 lanes of `u32`.
#[derive(Clone, Copy)]
pub(super) struct Wide(pub(super) Avx2);

/// 16 lanes of `u16`.
#[derive(Clone, Copy)]
pub(super) struct Narrow(pub(super) Avx2);

/// For a mask of 8 lanes: which lane moves to each place (packing), or from which place each lane comes
/// (spreading).
type Moves = [[u8; 8]; 256];

/// The numbers of the chosen lanes, ascending.
const PACKING: Moves = {
    let mut moves = [[0; 8]; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut lane, mut place) = (0, 0);
        while lane < 8 {
            if mask >> lane & 1 == 1 {
                moves[mask][place] = lane;
                place += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    moves
};

/// For each chosen lane, how many are chosen before it.
const SPREADING: Moves = {
    let mut moves = [[0; 8]; 256];
    let mut mask: usize = 0;
    while mask < 256 {
        let (mut lane, mut before) = (0, 0);
        while lane < 8 {
            moves[mask][lane] = before;
            before += if mask >> lane & 1 == 1 { 1 } else { 0 };
            lane += 1;
        }
        mask += 1;
    }
    moves
};

/// The same moves for lanes of two bytes, in bytes.
const fn in_bytes(moves: &Moves) -> [[u8; 16]; 256] {
    let mut bytes = [[0; 16]; 256];
    let mut mask = 0;
    while mask < 256 {
        let mut place = 0;
        while place < 16 {
            bytes[mask][place] = 2 * moves[mask][place / 2] + if place % 2 == 1 { 1 } else { 0 };
            place += 1;
        }
        mask += 1;
    }
    bytes
}

static PACKING_WIDE: Moves = PACKING;
static SPREADING_WIDE: Moves = SPREADING;
static PACKING_NARROW: [[u8; 16]; 256] = in_bytes(&PACKING);
static SPREADING_NARROW: [[u8; 16]; 256] = in_bytes(&SPREADING);

/// A bit for each chosen lane of 32 columns.
#[inline]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn wide_bits(mask: __m256i) -> usize {
    _mm256_movemask_ps(_mm256_castsi256_ps(mask)).cast_unsigned() as usize
}

/// The moves for the chosen lanes of 32 columns, and their number.
#[inline]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn wide_moves(table: &Moves, mask: __m256i) -> (__m256i, usize) {
    let bits = wide_bits(mask);
    let moves = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(i64::from_le_bytes(table[bits])));
    (moves, bits.count_ones() as usize)
}

/// The moves for the chosen lanes of 16 columns, and their number.
#[inline]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn narrow_moves(table: &[[u8; 16]; 256], mask: __m256i) -> (Halves, usize) {
    let bytes = _mm_packs_epi16(_mm256_castsi256_si128(mask), _mm256_extracti128_si256::<1>(mask));
    let bits = _mm_movemask_epi8(bytes).cast_unsigned() as usize;
    let (lower, upper) = (bits & 0xff, bits >> 8);
    // SAFETY: each entry is as large as half a vector.
    let moves = unsafe { _mm256_loadu2_m128i(table[upper].as_ptr().cast(), table[lower].as_ptr().cast()) };
    (Halves { moves, lower: lower.count_ones() as usize }, bits.count_ones() as usize)
}

/// Moves within the two halves of a register.
#[derive(Clone, Copy)]
pub(super) struct Halves {
    moves: __m256i,
    /// Lanes chosen in the lower half.
    lower: usize,
}

macro_rules! avx2_lanes {
    (
        $isa:ident, $word:ty, $lanes:literal, $set1:ident, $add:ident, $cmpeq:ident,
        { $($types_and_moves:tt)* } { $($compiled:tt)* }
    ) => {
        impl Steps for $isa {
            type Word = $word;

            compiled_for! {
                "avx2,bmi1,popcnt", isa: $isa;

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
            type Vector = __m256i;
            /// All bits of a chosen lane.
            type Mask = __m256i;
            const LANES: usize = $lanes;

            $($types_and_moves)*

            compiled_for! {
                "avx2,bmi1,popcnt", isa: $isa;

                $($compiled)*

                fn splat(bitmap: $word) -> __m256i {
                    $set1(bitmap.cast_signed())
                }
                fn and(a: __m256i, b: __m256i) -> __m256i {
                    _mm256_and_si256(a, b)
                }
                fn or(a: __m256i, b: __m256i) -> __m256i {
                    _mm256_or_si256(a, b)
                }
                fn xor(a: __m256i, b: __m256i) -> __m256i {
                    _mm256_xor_si256(a, b)
                }
                fn unattacked(free: __m256i, left: __m256i, right: __m256i) -> __m256i {
                    _mm256_andnot_si256(_mm256_or_si256(left, right), free)
                }
                fn split_lowest(columns: __m256i) -> (__m256i, __m256i) {
                    let less_one = $add(columns, $set1(-1));
                    (_mm256_andnot_si256(less_one, columns), _mm256_and_si256(columns, less_one))
                }
                fn every() -> __m256i {
                    _mm256_set1_epi32(-1)
                }
                fn empty(x: __m256i) -> __m256i {
                    $cmpeq(x, _mm256_setzero_si256())
                }
                fn occupied(x: __m256i) -> __m256i {
                    _mm256_xor_si256(isa.empty(x), isa.every())
                }
                fn keep_meeting(mask: __m256i, a: __m256i, b: __m256i) -> __m256i {
                    _mm256_andnot_si256(isa.empty(_mm256_and_si256(a, b)), mask)
                }
                fn keep_disjoint(mask: __m256i, a: __m256i, b: __m256i) -> __m256i {
                    _mm256_and_si256(mask, isa.empty(_mm256_and_si256(a, b)))
                }
                fn keep_equal(mask: __m256i, a: __m256i, b: __m256i) -> __m256i {
                    _mm256_and_si256(mask, $cmpeq(a, b))
                }
                fn first(mask: __m256i, count: usize) -> __m256i {
                    if count >= $lanes {
                        return mask;
                    }
                    let mut lanes = [0 as $word; $lanes];
                    // SAFETY: the array is as large as a vector.
                    unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), mask) };
                    let mut left = count;
                    for lane in &mut lanes {
                        *lane = if left == 0 { 0 } else { *lane };
                        left -= usize::from(*lane != 0);
                    }
                    // SAFETY: the array is as large as a vector.
                    unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) }
                }
                fn choose(mask: __m256i, old: __m256i, new: __m256i) -> __m256i {
                    _mm256_blendv_epi8(old, new, mask)
                }
            }
        }
    };
}

avx2_lanes!(
    Wide,
    u32,
    8,
    _mm256_set1_epi32,
    _mm256_add_epi32,
    _mm256_cmpeq_epi32,
    {
        type Shift = __m256i;
        type Packing = __m256i;
        type Spreading = (__m256i, __m256i);

        #[inline(always)]
        unsafe fn pack_to(self, to: *mut u32, packing: __m256i, x: __m256i) {
            // SAFETY: `self` proves the features; the caller lets a vector be written.
            unsafe { _mm256_storeu_si256(to.cast(), _mm256_permutevar8x32_epi32(x, packing)) }
        }
        #[inline(always)]
        unsafe fn spread_from(
            self,
            onto: __m256i,
            (mask, moves): (__m256i, __m256i),
            from: *const u32,
        ) -> __m256i {
            // SAFETY: `self` proves the features; the caller lets a vector be read.
            let lanes = unsafe { _mm256_permutevar8x32_epi32(_mm256_loadu_si256(from.cast()), moves) };
            self.choose(mask, onto, lanes)
        }
    }
    {
        fn shift(rows: u32) -> __m256i {
            _mm256_set1_epi32(rows.cast_signed())
        }
        fn raise<const ADJACENT: bool, const K: u32>(x: __m256i, by: __m256i) -> __m256i {
            _mm256_sllv_epi32(x, if ADJACENT { _mm256_set1_epi32(K.cast_signed()) } else { by })
        }
        fn lower<const ADJACENT: bool, const K: u32>(x: __m256i, by: __m256i) -> __m256i {
            _mm256_srlv_epi32(x, if ADJACENT { _mm256_set1_epi32(K.cast_signed()) } else { by })
        }
        fn count(mask: __m256i) -> usize {
            wide_bits(mask).count_ones() as usize
        }
        fn packing(mask: __m256i) -> (__m256i, usize) {
            wide_moves(&PACKING_WIDE, mask)
        }
        fn spreading(mask: __m256i) -> ((__m256i, __m256i), usize) {
            let (moves, taken) = wide_moves(&SPREADING_WIDE, mask);
            ((mask, moves), taken)
        }
    }
);

avx2_lanes!(
    Narrow,
    u16,
    16,
    _mm256_set1_epi16,
    _mm256_add_epi16,
    _mm256_cmpeq_epi16,
    {
        type Shift = __m128i;
        type Packing = Halves;
        type Spreading = (__m256i, Halves);

        #[inline(always)]
        unsafe fn pack_to(self, to: *mut u16, Halves { moves, lower }: Halves, x: __m256i) {
            // SAFETY: `self` proves the features; the caller lets a vector be written, and the upper half goes
            // no further than behind the 8 lanes of the lower.
            unsafe {
                let packed = _mm256_shuffle_epi8(x, moves);
                _mm_storeu_si128(to.cast(), _mm256_castsi256_si128(packed));
                _mm_storeu_si128(to.add(lower).cast(), _mm256_extracti128_si256::<1>(packed));
            }
        }
        #[inline(always)]
        unsafe fn spread_from(
            self,
            onto: __m256i,
            (mask, Halves { moves, lower }): (__m256i, Halves),
            from: *const u16,
        ) -> __m256i {
            // SAFETY: `self` proves the features; the caller lets a vector be read, and the upper half comes from
            // no further than behind the 8 lanes of the lower.
            let lanes = unsafe {
                _mm256_shuffle_epi8(_mm256_loadu2_m128i(from.add(lower).cast(), from.cast()), moves)
            };
            self.choose(mask, onto, lanes)
        }
    }
    {
        fn shift(rows: u32) -> __m128i {
            _mm_cvtsi32_si128(rows.cast_signed())
        }
        fn raise<const ADJACENT: bool, const K: u32>(x: __m256i, by: __m128i) -> __m256i {
            _mm256_sll_epi16(x, if ADJACENT { _mm_cvtsi32_si128(K.cast_signed()) } else { by })
        }
        fn lower<const ADJACENT: bool, const K: u32>(x: __m256i, by: __m128i) -> __m256i {
            _mm256_srl_epi16(x, if ADJACENT { _mm_cvtsi32_si128(K.cast_signed()) } else { by })
        }
        fn count(mask: __m256i) -> usize {
            // Two bits a lane.
            _mm256_movemask_epi8(mask).count_ones() as usize / 2
        }
        fn packing(mask: __m256i) -> (Halves, usize) {
            narrow_moves(&PACKING_NARROW, mask)
        }
        fn spreading(mask: __m256i) -> ((__m256i, Halves), usize) {
            let (moves, taken) = narrow_moves(&SPREADING_NARROW, mask);
            ((mask, moves), taken)
        }
    }
);
