//! AVX2: plain code where it compiles well, filters by table look-up, and queries that count their bits by
//! carry-save addition.

#![allow(clippy::wildcard_imports, reason = "intrinsics; the lint is off in tests")]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "intrinsics take words as signed; choices are of four"
)]

use std::arch::x86_64::*;

use super::super::geometry::Exchange;
use super::super::outer::Outer;
use super::super::runs::{KEYS, Runs};
use super::super::windows::{BLOCKS_MAX, Table, WINDOW_ROWS, Weighted, WindowRow, Windows};
pub(super) use super::portable::{emit, planes, sample, small, standing, survivors, table, transpose, union};
use super::{Costs, Isa, Mask, SLACK};

/// For machines with AVX2; one exists only where the instructions do.
#[derive(Debug)]
pub(super) struct Avx2(());

impl Avx2 {
    /// The version for this machine, if it has the instructions.
    pub(super) fn new() -> Option<Self> {
        Isa::Avx2.is_available().then_some(Self(()))
    }
}

implement!(
    Avx2,
    Isa::Avx2,
    Costs { block: 3500.0, query: 8.0, row: 2.0, window: 1.2, sift: 1.6 },
    "avx2,bmi1,bmi2,lzcnt,popcnt"
);

#[target_feature(enable = "avx2")]
#[inline]
fn load(words: &[u64; 4]) -> __m256i {
    // SAFETY: four words are readable.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

/// For each choice of eight words of 32 bits the places of the chosen ones.
static CHOICES: [[u32; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut choice = 0;
    while choice < 256 {
        let [mut from, mut to] = [0, 0];
        while from < 8 {
            if choice >> from & 1 == 1 {
                table[choice][to] = from as u32;
                to += 1;
            }
            from += 1;
        }
        choice += 1;
    }
    table
};

/// Writes the chosen ones of eight words of 32 bits to `to`, where 32 bytes must be writable, and returns where they
/// end.
#[target_feature(enable = "avx2,popcnt")]
#[inline]
unsafe fn append(to: *mut u32, chosen: u32, words: __m256i) -> *mut u32 {
    // SAFETY: the caller's promise, and 32 readable bytes.
    unsafe {
        let places = _mm256_loadu_si256(CHOICES[chosen as usize % 256].as_ptr().cast());
        _mm256_storeu_si256(to.cast(), _mm256_permutevar8x32_epi32(words, places));
        to.add(chosen.count_ones() as usize)
    }
}

/// Masks in a register.
trait WideMask: Mask {
    const LANES: usize = 4 * Self::IN_WORD;

    /// The same in every lane.
    fn splat(bits: u64) -> __m256i;

    /// Which words of 32 bits belong to masks with none of `bits`.
    fn without(x: __m256i, bits: __m256i) -> u32;

    /// Which words of 32 bits belong to the masks at the lowest bits of `chosen`.
    fn words(chosen: u32) -> u32;
}

impl WideMask for u64 {
    #[inline]
    fn splat(bits: u64) -> __m256i {
        // SAFETY: only code compiled for the instruction set uses this.
        unsafe { _mm256_set1_epi64x(bits as i64) }
    }

    #[inline]
    fn without(x: __m256i, bits: __m256i) -> u32 {
        // SAFETY: as above.
        unsafe {
            let none = _mm256_cmpeq_epi64(_mm256_and_si256(x, bits), _mm256_setzero_si256());
            _mm256_movemask_ps(_mm256_castsi256_ps(none)) as u32
        }
    }

    #[inline]
    fn words(chosen: u32) -> u32 {
        // SAFETY: as above.
        unsafe { _pdep_u32(chosen, 0b0101_0101) * 3 }
    }
}

impl WideMask for u32 {
    #[inline]
    fn splat(bits: u64) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_set1_epi32(bits as i32) }
    }

    #[inline]
    fn without(x: __m256i, bits: __m256i) -> u32 {
        // SAFETY: as above.
        unsafe {
            let none = _mm256_cmpeq_epi32(_mm256_and_si256(x, bits), _mm256_setzero_si256());
            _mm256_movemask_ps(_mm256_castsi256_ps(none)) as u32
        }
    }

    #[inline]
    fn words(chosen: u32) -> u32 {
        chosen & 0xff
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn pick<M: WideMask>(masks: &[M], chosen: &[u64], out: &mut [M]) -> usize {
    assert!(out.len() >= masks.len().min(64 * chosen.len()) + SLACK, "room for all");
    let mut to = out.as_mut_ptr();
    for (&bits, masks) in chosen.iter().zip(masks.as_chunks::<64>().0) {
        if bits == 0 {
            continue;
        }
        for (i, masks) in masks.chunks_exact(M::LANES).enumerate() {
            // SAFETY: no more than all masks and a register are written.
            unsafe {
                let x = _mm256_loadu_si256(masks.as_ptr().cast());
                to = append(to.cast(), M::words((bits >> (M::LANES * i)) as u32), x).cast();
            }
        }
    }
    // SAFETY: both point into `out`.
    unsafe { to.offset_from_unsigned(out.as_ptr()) }
}

#[target_feature(enable = "avx2,popcnt")]
fn sift<M: WideMask>(masks: &[M], bits: u64, out: &mut [M]) -> usize {
    assert!(out.len() >= masks.len() + SLACK, "room for all");
    let every = M::splat(bits);
    let mut to = out.as_mut_ptr();
    let whole = masks.chunks_exact(M::LANES);
    let rest = whole.remainder();
    // SAFETY: no more than all masks and a register are written.
    unsafe {
        for masks in whole {
            let x = _mm256_loadu_si256(masks.as_ptr().cast());
            to = append(to.cast(), M::without(x, every), x).cast();
        }
        for &mask in rest {
            *to = mask;
            to = to.add(usize::from(mask.into() & bits == 0));
        }
        to.offset_from_unsigned(out.as_ptr())
    }
}

#[target_feature(enable = "avx2,popcnt")]
fn part<M: WideMask>(masks: &[M], bits: u64, out: &mut [M], with: &mut [M]) -> usize {
    assert!(out.len().min(with.len()) >= masks.len() + SLACK, "room for all");
    let every = M::splat(bits);
    let [mut to, mut other] = [out.as_mut_ptr(), with.as_mut_ptr()];
    let whole = masks.chunks_exact(M::LANES);
    let rest = whole.remainder();
    // SAFETY: no more than all masks and a register are written to either.
    unsafe {
        for masks in whole {
            let x = _mm256_loadu_si256(masks.as_ptr().cast());
            let keep = M::without(x, every);
            to = append(to.cast(), keep, x).cast();
            other = append(other.cast(), !keep & 255, x).cast();
        }
        for &mask in rest {
            [*to, *other] = [mask; 2];
            let keep = usize::from(mask.into() & bits == 0);
            to = to.add(keep);
            other = other.add(1 - keep);
        }
        to.offset_from_unsigned(out.as_ptr())
    }
}

#[target_feature(enable = "bmi2")]
fn squeeze(masks: &[u64], live: u64, out: &mut [u32]) {
    for (out, &mask) in out.iter_mut().zip(masks) {
        *out = _pext_u64(mask, live) as u32;
    }
}

#[target_feature(enable = "avx2,bmi2,popcnt")]
fn query<M: WideMask>(
    table: &Table,
    windows: &Windows,
    blocks: usize,
    queries: &[M],
    double: Option<&[WindowRow; BLOCKS_MAX]>,
) -> u64 {
    let of = match windows.len() {
        1 => query_windows::<M, 1>,
        2 => query_windows::<M, 2>,
        3 => query_windows::<M, 3>,
        4 => query_windows::<M, 4>,
        5 => query_windows::<M, 5>,
        6 => query_windows::<M, 6>,
        7 => query_windows::<M, 7>,
        _ => unreachable!("1 to 7 windows"),
    };
    let all = WindowRow([u64::MAX; 8]);
    let count = |block| {
        of(table, windows, block, queries, &all)
            + double.map_or(0, |double| of(table, windows, block, queries, &double[block]))
    };
    (0..blocks).map(count).sum()
}

/// Adds three bits in each place: their sum and their carry.
#[target_feature(enable = "avx2")]
#[inline]
fn add(a: __m256i, b: __m256i, c: __m256i) -> [__m256i; 2] {
    let either = _mm256_xor_si256(a, b);
    [_mm256_xor_si256(either, c), _mm256_or_si256(_mm256_and_si256(a, b), _mm256_and_si256(either, c))]
}

/// Adds two bits to `sum` in each place of both halves; returns what is carried.
#[target_feature(enable = "avx2")]
#[inline]
fn add_both(sum: &mut [__m256i; 2], a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
    let mut carry = a;
    for half in 0..2 {
        [sum[half], carry[half]] = add(sum[half], a[half], b[half]);
    }
    carry
}

/// Number of bits of each word.
#[target_feature(enable = "avx2")]
#[inline]
fn count(x: __m256i) -> __m256i {
    let low = _mm256_set1_epi8(15);
    let counts = _mm256_setr_epi8(
        0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
    );
    let nibbles = [_mm256_and_si256(x, low), _mm256_and_si256(_mm256_srli_epi64::<4>(x), low)];
    let [a, b] = nibbles.map(|nibble| _mm256_shuffle_epi8(counts, nibble));
    _mm256_sad_epu8(_mm256_add_epi8(a, b), _mm256_setzero_si256())
}

/// Sum over the queries of the elements of `counted` of a block left by all windows, by the carry-save method of
/// Harley and Seal.
#[target_feature(enable = "avx2,bmi2,popcnt")]
fn query_windows<M: WideMask, const WINDOWS: usize>(
    table: &Table,
    windows: &Windows,
    block: usize,
    queries: &[M],
    counted: &WindowRow,
) -> u64 {
    let field = ((1 << windows.width) - 1) << WindowRow::SHIFT;
    let zero = _mm256_setzero_si256();
    let counted = counted.0.as_chunks::<4>().0;
    let counted = [load(&counted[0]), load(&counted[1])];
    // The two halves of the elements left, whose rows have the same indices.
    let fits = |mask: M| {
        // Indices times the size of a row.
        let indices = _pext_u64(mask.into(), windows.live) << WindowRow::SHIFT;
        let mut fits = counted;
        for window in 0..WINDOWS {
            let offset = (indices.wrapping_shr(windows.width * window as u32) & field) as usize;
            // SAFETY: an index has `width` bits, at most eight, and so is one of 256 rows of its window, and a row
            // has two blocks of two halves.
            unsafe {
                let row = table.as_ptr().add(WINDOW_ROWS * window).byte_add(offset);
                let row = row.cast::<[__m256i; 2]>().add(block).cast();
                fits = [
                    _mm256_and_si256(fits[0], _mm256_load_si256(row)),
                    _mm256_and_si256(fits[1], _mm256_load_si256(row.add(1))),
                ];
            }
        }
        fits
    };
    let [mut ones, mut twos, mut fours, mut eights, mut sixteens] = [[zero; 2]; 5];
    let (whole, rest) = queries.as_chunks::<16>();
    for group in whole {
        let mut carried = [[zero; 2]; 2];
        for (eight, carry_eight) in group.as_chunks::<8>().0.iter().zip(&mut carried) {
            let mut carry_four = [[zero; 2]; 2];
            for (four, carry_four) in eight.as_chunks::<4>().0.iter().zip(&mut carry_four) {
                let a = add_both(&mut ones, fits(four[0]), fits(four[1]));
                let b = add_both(&mut ones, fits(four[2]), fits(four[3]));
                *carry_four = add_both(&mut twos, a, b);
            }
            *carry_eight = add_both(&mut fours, carry_four[0], carry_four[1]);
        }
        let sixteen = add_both(&mut eights, carried[0], carried[1]);
        for half in 0..2 {
            sixteens[half] = _mm256_add_epi64(sixteens[half], count(sixteen[half]));
        }
    }
    let mut sum = zero;
    for half in 0..2 {
        sum = _mm256_add_epi64(sum, _mm256_slli_epi64::<4>(sixteens[half]));
        sum = _mm256_add_epi64(sum, _mm256_slli_epi64::<3>(count(eights[half])));
        sum = _mm256_add_epi64(sum, _mm256_slli_epi64::<2>(count(fours[half])));
        sum = _mm256_add_epi64(sum, _mm256_slli_epi64::<1>(count(twos[half])));
        sum = _mm256_add_epi64(sum, count(ones[half]));
    }
    for &mask in rest {
        let [a, b] = fits(mask);
        sum = _mm256_add_epi64(sum, _mm256_add_epi64(count(a), count(b)));
    }
    let mut words = [0; 4];
    // SAFETY: four words are writable.
    unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), sum) };
    words.iter().sum()
}
