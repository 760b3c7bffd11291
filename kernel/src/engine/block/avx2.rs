//! AVX2: 8 lanes of 32 columns or 16 lanes of 16 columns.
//!
//! Masks are vectors with all bits of a chosen lane set. Lanes are moved by shuffles looked up in tables.

#![allow(clippy::wildcard_imports, reason = "intrinsics carry their vendor's prefix")]

use std::arch::x86_64::*;
use std::ops::{BitAnd, BitOr, BitXor, Not};

use super::plain::CHOSEN;
use super::simd::{self, on_values, vector};
use super::vector::{Node, Nodes, Vector, Work};

/// How many lanes are chosen before each lane, for each choice of eight.
static BEFORE: [[u8; 8]; 256] = {
    let mut before = [[0; 8]; 256];
    let mut choice: usize = 0;
    while choice < 256 {
        let mut lane = 1;
        while lane < 8 {
            before[choice][lane] =
                before[choice][lane - 1] + if choice >> (lane - 1) & 1 == 1 { 1 } else { 0 };
            lane += 1;
        }
        choice += 1;
    }
    before
};

/// Moves of eight lanes of two bytes, byte by byte.
const fn in_bytes(moves: &[[u8; 8]; 256]) -> [[u8; 16]; 256] {
    let mut bytes = [[0; 16]; 256];
    let mut choice = 0;
    while choice < 256 {
        let mut byte = 0;
        while byte < 16 {
            bytes[choice][byte] = 2 * moves[choice][byte / 2] + if byte % 2 == 1 { 1 } else { 0 };
            byte += 1;
        }
        choice += 1;
    }
    bytes
}

/// How the lanes of a mask move, and how many they are.
struct Moves {
    shuffle: __m256i,
    /// Of the lower half, where halves move on their own.
    lower: usize,
    all: usize,
}

/// Lanes of 32 columns move across the whole register.
mod wide {
    use super::*;

    pub(super) static PACKING: &[[u8; 8]; 256] = &CHOSEN;
    pub(super) static SPREADING: &[[u8; 8]; 256] = &BEFORE;

    #[inline(always)]
    pub(super) fn moves(table: &[[u8; 8]; 256], mask: __m256i) -> Moves {
        let choice = on_values!(_mm256_movemask_ps(_mm256_castsi256_ps(mask))).cast_unsigned() as usize;
        let numbers = i64::from_le_bytes(table[choice]);
        let shuffle = on_values!(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(numbers)));
        Moves { shuffle, lower: 0, all: choice.count_ones() as usize }
    }

    #[inline(always)]
    pub(super) unsafe fn load(words: *const u32, moves: &Moves) -> __m256i {
        // SAFETY: the caller lets a vector be read.
        unsafe { _mm256_permutevar8x32_epi32(_mm256_loadu_si256(words.cast()), moves.shuffle) }
    }

    #[inline(always)]
    pub(super) unsafe fn store(words: *mut u32, moves: &Moves, lanes: __m256i) {
        // SAFETY: the caller lets a vector be written.
        unsafe { _mm256_storeu_si256(words.cast(), _mm256_permutevar8x32_epi32(lanes, moves.shuffle)) }
    }
}

/// Lanes of 16 columns move within each half of the register; the halves are read and written one after the other.
mod narrow {
    use super::*;

    pub(super) static PACKING: &[[u8; 16]; 256] = &in_bytes(&CHOSEN);
    pub(super) static SPREADING: &[[u8; 16]; 256] = &in_bytes(&BEFORE);

    #[inline(always)]
    pub(super) fn moves(table: &[[u8; 16]; 256], mask: __m256i) -> Moves {
        let halves = on_values!((_mm256_castsi256_si128(mask), _mm256_extracti128_si256::<1>(mask)));
        let choice =
            on_values!(_mm_movemask_epi8(_mm_packs_epi16(halves.0, halves.1))).cast_unsigned() as usize;
        let [lower, upper] = [choice & 0xff, choice >> 8];
        // SAFETY: each entry is as large as half a vector.
        let shuffle =
            unsafe { _mm256_loadu2_m128i(table[upper].as_ptr().cast(), table[lower].as_ptr().cast()) };
        Moves { shuffle, lower: lower.count_ones() as usize, all: choice.count_ones() as usize }
    }

    #[inline(always)]
    pub(super) unsafe fn load(words: *const u16, moves: &Moves) -> __m256i {
        // SAFETY: the caller lets a vector be read; the lower half takes no more lanes than it has.
        let words = unsafe { _mm256_loadu2_m128i(words.add(moves.lower).cast(), words.cast()) };
        on_values!(_mm256_shuffle_epi8(words, moves.shuffle))
    }

    #[inline(always)]
    pub(super) unsafe fn store(words: *mut u16, moves: &Moves, lanes: __m256i) {
        // SAFETY: the caller lets a vector be written; the lower half keeps no more lanes than it has.
        unsafe {
            let packed = _mm256_shuffle_epi8(lanes, moves.shuffle);
            _mm_storeu_si128(words.cast(), _mm256_castsi256_si128(packed));
            _mm_storeu_si128(words.add(moves.lower).cast(), _mm256_extracti128_si256::<1>(packed));
        }
    }
}

macro_rules! lanes {
    (
        $vector:ident, $word:ty, $lanes:literal; $splat:ident, $sub:ident, $sll:ident, $srl:ident, $cmpeq:ident,
        $width:ident
    ) => {
        vector!(
            $vector(__m256i), $word, Self, $lanes,
            _mm256_setzero_si256, _mm256_and_si256, _mm256_or_si256,
            _mm256_xor_si256, _mm256_loadu_si256, $splat, $sub, $sll, $srl;

            #[inline(always)]
            fn equals(self, other: Self) -> Self {
                Self(on_values!($cmpeq(self.0, other.0)))
            }
            #[inline(always)]
            fn is_empty(self) -> Self {
                self.equals(Self(on_values!(_mm256_setzero_si256())))
            }
            #[inline(always)]
            fn count(mask: Self) -> u32 {
                on_values!(_mm256_movemask_epi8(mask.0)).count_ones() / (<$word>::BITS / u8::BITS)
            }
        );

        impl simd::Moves for $vector {
            #[inline(always)]
            unsafe fn spread(node: Node<Self>, idle: Self, from: [*const $word; 3]) -> (Node<Self>, usize) {
                let moves = $width::moves($width::SPREADING, idle.0);
                let mut lanes = [node.left, node.right, node.free];
                for (lanes, words) in lanes.iter_mut().zip(from) {
                    // SAFETY: the caller lets a vector be read.
                    *lanes = lanes.replace(idle, Self(unsafe { $width::load(words, &moves) }));
                }
                let [left, right, free] = lanes;
                (Node { left, right, free }, moves.all)
            }
            #[inline(always)]
            unsafe fn compress(node: Node<Self>, keep: Self, to: [*mut $word; 3]) -> usize {
                let moves = $width::moves($width::PACKING, keep.0);
                for (words, lanes) in to.into_iter().zip([node.left, node.right, node.free]) {
                    // SAFETY: the caller lets a vector be written.
                    unsafe { $width::store(words, &moves, lanes.0) };
                }
                moves.all
            }
            #[inline(always)]
            fn replace(self, mask: Self, new: Self) -> Self {
                Self(on_values!(_mm256_blendv_epi8(self.0, new.0, mask.0)))
            }
        }
    };
}

lanes!(
    Wide, u32, 8; _mm256_set1_epi32, _mm256_sub_epi32, _mm256_sll_epi32, _mm256_srl_epi32, _mm256_cmpeq_epi32,
    wide
);
lanes!(
    Narrow, u16, 16; _mm256_set1_epi16, _mm256_sub_epi16, _mm256_sll_epi16, _mm256_srl_epi16, _mm256_cmpeq_epi16,
    narrow
);
