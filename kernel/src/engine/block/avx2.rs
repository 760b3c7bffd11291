//! AVX2: 16 lanes of 16 columns.
//!
//! Masks are vectors with all bits of a chosen lane set. Lanes are moved by shuffles looked up in tables, within each
//! half of the register; the halves are therefore read and written one after the other.

#![allow(clippy::wildcard_imports, reason = "intrinsics carry their vendor's prefix")]

use std::arch::x86_64::*;
use std::ops::{BitAnd, BitOr, BitXor, Not};

use super::vector::{CHOSEN, Nodes, Vector, on_values, operators};

/// 16 lanes.
#[derive(Clone, Copy)]
pub(super) struct Avx2(__m256i);

operators!(
    Avx2, _mm256_set1_epi16;
    BitAnd bitand _mm256_and_si256,
    BitOr bitor _mm256_or_si256,
    BitXor bitxor _mm256_xor_si256
);

/// Bytes to move, for each choice of the eight lanes of a half.
type Moves = [[u8; 16]; 256];

/// Which lane moves to each place: those chosen, ascending.
static PACKING: Moves = in_bytes(&CHOSEN);

/// From which place each lane comes: as many as are chosen before it.
static SPREADING: Moves = in_bytes(&{
    let mut moves = [[0; 8]; 256];
    let mut choice: usize = 0;
    while choice < 256 {
        let mut lane = 1;
        while lane < 8 {
            moves[choice][lane] = moves[choice][lane - 1] + (choice >> (lane - 1) & 1) as u8;
            lane += 1;
        }
        choice += 1;
    }
    moves
});

/// The same moves for lanes of two bytes, in bytes.
const fn in_bytes(moves: &[[u8; 8]; 256]) -> Moves {
    let mut bytes = [[0; 16]; 256];
    let mut choice = 0;
    while choice < 256 {
        let mut lane = 0;
        while lane < 8 {
            bytes[choice][2 * lane] = 2 * moves[choice][lane];
            bytes[choice][2 * lane + 1] = 2 * moves[choice][lane] + 1;
            lane += 1;
        }
        choice += 1;
    }
    bytes
}

/// The moves for the lanes of `mask`, and their number in each half.
#[inline(always)]
fn moves(table: &Moves, mask: Avx2) -> (__m256i, [usize; 2]) {
    let mask = mask.0;
    let bits = on_values!({
        let bytes = _mm_packs_epi16(_mm256_castsi256_si128(mask), _mm256_extracti128_si256::<1>(mask));
        _mm_movemask_epi8(bytes).cast_unsigned() as usize
    });
    let halves = [bits & 0xff, bits >> 8];
    let [lower, upper] = halves.map(|choice| table[choice].as_ptr().cast());
    // SAFETY: a vector exists only where the instructions do; each entry is as large as half a vector.
    (unsafe { _mm256_loadu2_m128i(upper, lower) }, halves.map(|choice| choice.count_ones() as usize))
}

impl Vector for Avx2 {
    type Word = u16;
    /// All bits of a chosen lane.
    type Mask = Self;
    const LANES: usize = 16;

    #[inline(always)]
    unsafe fn splat(bitmap: u16) -> Self {
        // SAFETY: the caller promises the instructions.
        Self(unsafe { _mm256_set1_epi16(bitmap.cast_signed()) })
    }
    #[inline(always)]
    unsafe fn load(words: &[u16]) -> Self {
        // SAFETY: the caller promises the instructions; there are as many words as lanes.
        Self(unsafe { _mm256_loadu_si256(words[..Self::LANES].as_ptr().cast()) })
    }
    #[inline(always)]
    fn sum(self) -> u64 {
        let mut words = [0_u16; Self::LANES];
        // SAFETY: the array is as large as a vector.
        unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), self.0) };
        words.map(u64::from).iter().sum()
    }
    #[inline(always)]
    fn lowest(self) -> Self {
        self & Self(on_values!(_mm256_sub_epi16(_mm256_setzero_si256(), self.0)))
    }
    #[inline(always)]
    fn raise(self, rows: u32) -> Self {
        Self(on_values!(_mm256_sll_epi16(self.0, _mm_cvtsi32_si128(rows.cast_signed()))))
    }
    #[inline(always)]
    fn lower(self, rows: u32) -> Self {
        Self(on_values!(_mm256_srl_epi16(self.0, _mm_cvtsi32_si128(rows.cast_signed()))))
    }
    #[inline(always)]
    fn equals(self, other: Self) -> Self {
        Self(on_values!(_mm256_cmpeq_epi16(self.0, other.0)))
    }
    #[inline(always)]
    fn is_empty(self) -> Self {
        self.equals(Self(on_values!(_mm256_setzero_si256())))
    }
    #[inline(always)]
    fn replace(self, mask: Self, new: Self) -> Self {
        Self(on_values!(_mm256_blendv_epi8(self.0, new.0, mask.0)))
    }
    #[inline(always)]
    fn increment(self, mask: Self) -> Self {
        Self(on_values!(_mm256_sub_epi16(self.0, mask.0)))
    }

    #[inline(always)]
    fn spread<const VECTORS: usize>(
        idle: &[Self; VECTORS],
        nodes: &mut Nodes<Self, VECTORS>,
        from: [&[u16]; 3],
    ) -> usize {
        assert!(from.iter().all(|words| words.len() >= VECTORS * Self::LANES));
        let mut taken = 0;
        for k in 0..VECTORS {
            let (moves, [lower, upper]) = moves(&SPREADING, idle[k]);
            let expand = |vector: Self, words: &[u16]| {
                // SAFETY: a vector exists only where the instructions do; halves before took no more than their lanes.
                let lanes = unsafe {
                    let words = words.as_ptr().add(taken);
                    _mm256_shuffle_epi8(_mm256_loadu2_m128i(words.add(lower).cast(), words.cast()), moves)
                };
                vector.replace(idle[k], Self(lanes))
            };
            nodes.left[k] = expand(nodes.left[k], from[0]);
            nodes.right[k] = expand(nodes.right[k], from[1]);
            nodes.free[k] = expand(nodes.free[k], from[2]);
            taken += lower + upper;
        }
        taken
    }

    #[inline(always)]
    fn pack<const VECTORS: usize>(
        keep: &[Self; VECTORS],
        nodes: &Nodes<Self, VECTORS>,
        to: [&mut [u16]; 3],
    ) -> usize {
        assert!(to.iter().all(|words| words.len() >= VECTORS * Self::LANES));
        let [left, right, free] = to;
        let mut kept = 0;
        for k in 0..VECTORS {
            let (moves, [lower, upper]) = moves(&PACKING, keep[k]);
            let store = |vector: Self, words: &mut [u16]| {
                // SAFETY: a vector exists only where the instructions do; halves before kept no more than their lanes.
                unsafe {
                    let words = words.as_mut_ptr().add(kept);
                    let packed = _mm256_shuffle_epi8(vector.0, moves);
                    _mm_storeu_si128(words.cast(), _mm256_castsi256_si128(packed));
                    _mm_storeu_si128(words.add(lower).cast(), _mm256_extracti128_si256::<1>(packed));
                }
            };
            store(nodes.left[k], left);
            store(nodes.right[k], right);
            store(nodes.free[k], free);
            kept += lower + upper;
        }
        kept
    }
}
