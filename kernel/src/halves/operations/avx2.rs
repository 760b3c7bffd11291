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

use super::super::generate::{KEYS, Runs};
use super::super::leaf::{Row, TABLE_ROWS, Weighted, Windows};
use super::super::outer::Outer;
pub(super) use super::portable::{
    emit, planes, sample, small, standing, survivors, tables, transpose, union,
};
use super::{Costs, Isa, SLACK};

/// For machines with AVX2; one exists only where the instructions do.
#[derive(Debug)]
pub(super) struct Avx2(());

impl Avx2 {
    /// The version for this machine, if it has the instructions.
    pub(super) fn new() -> Option<Self> {
        let available = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        available.then_some(Self(()))
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

/// For each choice of four words the places of the chosen ones, as pairs of 32-bit places.
static CHOICES: [[u32; 8]; 16] = {
    let mut table = [[0; 8]; 16];
    let mut choice = 0;
    while choice < 16 {
        let [mut from, mut to] = [0, 0];
        while from < 4 {
            if choice >> from & 1 == 1 {
                table[choice][2 * to] = 2 * from as u32;
                table[choice][2 * to + 1] = 2 * from as u32 + 1;
                to += 1;
            }
            from += 1;
        }
        choice += 1;
    }
    table
};

/// Writes the chosen words to `to`, where four words must be writable, and returns where they end.
#[target_feature(enable = "avx2,popcnt")]
#[inline]
unsafe fn append(to: *mut u64, chosen: u32, words: __m256i) -> *mut u64 {
    // SAFETY: the caller's promise, and 32 readable bytes.
    unsafe {
        let places = _mm256_loadu_si256(CHOICES[chosen as usize % 16].as_ptr().cast());
        _mm256_storeu_si256(to.cast(), _mm256_permutevar8x32_epi32(words, places));
        to.add(chosen.count_ones() as usize)
    }
}

#[target_feature(enable = "avx2,bmi1,popcnt")]
fn pick(masks: &[u64], chosen: &[u64], out: &mut [u64]) -> usize {
    assert!(out.len() >= masks.len().min(64 * chosen.len()) + SLACK, "room for all");
    let mut to = out.as_mut_ptr();
    for (&bits, masks) in chosen.iter().zip(masks.as_chunks::<64>().0) {
        if bits == 0 {
            continue;
        }
        for (i, masks) in masks.as_chunks::<4>().0.iter().enumerate() {
            // SAFETY: no more than all masks and four are written.
            unsafe { to = append(to, (bits >> (4 * i)) as u32 & 15, load(masks)) };
        }
    }
    // SAFETY: both point into `out`.
    unsafe { to.offset_from_unsigned(out.as_ptr()) }
}

/// Which of four words have none of `bits`.
#[target_feature(enable = "avx2")]
#[inline]
fn without(words: __m256i, bits: __m256i) -> u32 {
    let none = _mm256_cmpeq_epi64(_mm256_and_si256(words, bits), _mm256_setzero_si256());
    _mm256_movemask_pd(_mm256_castsi256_pd(none)) as u32
}

#[target_feature(enable = "avx2,popcnt")]
fn sift(masks: &[u64], bits: u64, out: &mut [u64]) -> usize {
    assert!(out.len() >= masks.len() + SLACK, "room for all");
    let every = _mm256_set1_epi64x(bits as i64);
    let mut to = out.as_mut_ptr();
    let (whole, rest) = masks.as_chunks::<4>();
    // SAFETY: no more than all masks and four are written.
    unsafe {
        for masks in whole {
            let x = load(masks);
            to = append(to, without(x, every), x);
        }
        for &mask in rest {
            *to = mask;
            to = to.add(usize::from(mask & bits == 0));
        }
        to.offset_from_unsigned(out.as_ptr())
    }
}

#[target_feature(enable = "avx2,popcnt")]
fn part(masks: &[u64], bits: u64, out: &mut [u64], with: &mut [u64]) -> usize {
    assert!(out.len().min(with.len()) >= masks.len() + SLACK, "room for all");
    let every = _mm256_set1_epi64x(bits as i64);
    let [mut to, mut other] = [out.as_mut_ptr(), with.as_mut_ptr()];
    let (whole, rest) = masks.as_chunks::<4>();
    // SAFETY: no more than all masks and four are written to either.
    unsafe {
        for masks in whole {
            let x = load(masks);
            let keep = without(x, every);
            to = append(to, keep, x);
            other = append(other, !keep & 15, x);
        }
        for &mask in rest {
            [*to, *other] = [mask; 2];
            let keep = usize::from(mask & bits == 0);
            to = to.add(keep);
            other = other.add(1 - keep);
        }
        to.offset_from_unsigned(out.as_ptr())
    }
}

#[target_feature(enable = "bmi2")]
fn index(masks: &[u64], windows: &Windows, indices: &mut [u64]) {
    let [live, fields] = [windows.live(), u64::from_le_bytes(windows.fields)];
    for (index, &mask) in indices.iter_mut().zip(masks) {
        *index = _pdep_u64(_pext_u64(mask, live), fields);
    }
}

#[target_feature(enable = "avx2,popcnt")]
fn query(tables: &[Row; TABLE_ROWS], windows: usize, queries: &[u64], double: Option<&Row>) -> u64 {
    let all = Row([u64::MAX; 8]);
    let of = |counted: &Row| match windows {
        1 => query_windows::<1>(tables, queries, counted),
        2 => query_windows::<2>(tables, queries, counted),
        3 => query_windows::<3>(tables, queries, counted),
        4 => query_windows::<4>(tables, queries, counted),
        5 => query_windows::<5>(tables, queries, counted),
        6 => query_windows::<6>(tables, queries, counted),
        7 => query_windows::<7>(tables, queries, counted),
        8 => query_windows::<8>(tables, queries, counted),
        _ => unreachable!("1 to 8 windows"),
    };
    of(&all) + double.map_or(0, of)
}

/// Adds three bits in each place: their sum and their carry.
#[target_feature(enable = "avx2")]
#[inline]
fn add(a: __m256i, b: __m256i, c: __m256i) -> [__m256i; 2] {
    let either = _mm256_xor_si256(a, b);
    [_mm256_xor_si256(either, c), _mm256_or_si256(_mm256_and_si256(a, b), _mm256_and_si256(either, c))]
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

/// Sum over the queries of the elements of `counted` left by all tables, by the carry-save method of Harley and
/// Seal.
#[target_feature(enable = "avx2,popcnt")]
fn query_windows<const WINDOWS: usize>(tables: &[Row; TABLE_ROWS], queries: &[u64], counted: &Row) -> u64 {
    let zero = _mm256_setzero_si256();
    let mut sum = zero;
    for half in 0..2 {
        let part = |row: &Row| load(&row.0.as_chunks::<4>().0[half]);
        let counted = part(counted);
        let fits = |indices: u64| {
            let row = |window: usize| part(&tables[256 * window + (indices >> (8 * window) & 255) as usize]);
            (0..WINDOWS).fold(counted, |fits, window| _mm256_and_si256(fits, row(window)))
        };
        let [mut ones, mut twos, mut fours, mut sixteens] = [zero; 4];
        let mut eights = zero;
        let (whole, rest) = queries.as_chunks::<16>();
        for group in whole {
            let mut carried = [zero; 2];
            for (eight, carry_eight) in group.as_chunks::<8>().0.iter().zip(&mut carried) {
                let mut carry_four = [zero; 2];
                for (four, carry_four) in eight.as_chunks::<4>().0.iter().zip(&mut carry_four) {
                    let [next, a] = add(ones, fits(four[0]), fits(four[1]));
                    let [next, b] = add(next, fits(four[2]), fits(four[3]));
                    ones = next;
                    [twos, *carry_four] = add(twos, a, b);
                }
                [fours, *carry_eight] = add(fours, carry_four[0], carry_four[1]);
            }
            let sixteen;
            [eights, sixteen] = add(eights, carried[0], carried[1]);
            sixteens = _mm256_add_epi64(sixteens, count(sixteen));
        }
        sum = _mm256_add_epi64(sum, _mm256_slli_epi64::<4>(sixteens));
        sum = _mm256_add_epi64(sum, _mm256_slli_epi64::<3>(count(eights)));
        sum = _mm256_add_epi64(sum, _mm256_slli_epi64::<2>(count(fours)));
        sum = _mm256_add_epi64(sum, _mm256_slli_epi64::<1>(count(twos)));
        sum = _mm256_add_epi64(sum, count(ones));
        for &indices in rest {
            sum = _mm256_add_epi64(sum, count(fits(indices)));
        }
    }
    let mut words = [0; 4];
    // SAFETY: four words are writable.
    unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), sum) };
    words.iter().sum()
}
