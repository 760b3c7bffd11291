//! AVX-512: 512 elements of a block in one register.

#![allow(clippy::wildcard_imports, reason = "intrinsics; the lint is off in tests")]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "intrinsics take words as signed; counts and positions are small"
)]
#![expect(clippy::inline_always, reason = "compiled anew for each instruction set")]

mod look_up;
mod wide;

use std::arch::x86_64::*;

use super::lanes::{self, Lanes};
use super::{Costs, Isa, Mask, PAIRS_MAX, SLACK};
use crate::halves::geometry::Exchange;
use crate::halves::outer::{MASKS_SLACK, Outer};
use crate::halves::runs::{KEYS, RunHead, Runs};
use crate::halves::windows::{BLOCKS_MAX, Table, Weighted, WindowRow, Windows};
use look_up::{flip_to, query, slot, table, transpose};
use wide::WideMask;

/// For machines with AVX-512; one exists only where the instructions do.
#[derive(Debug)]
pub(super) struct Avx512(());

impl Avx512 {
    /// The version for this machine, if it has the instructions.
    pub(super) fn new() -> Option<Self> {
        Isa::Avx512.is_available().then_some(Self(()))
    }
}

implement!(
    Avx512,
    Isa::Avx512,
    Costs { block: 1500.0, query: 3.7, row: 2.5, window: 0.55, sift: 0.8 },
    "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
);

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn load(words: &[u64; 8]) -> __m512i {
    // SAFETY: eight words are readable.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn store(words: &mut [u64; 8], value: __m512i) {
    // SAFETY: eight words are writable.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), value) }
}

/// At most eight words; the others are zero.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn load_some(words: &[u64]) -> (__m512i, __mmask8) {
    let some = lowest(words.len());
    // SAFETY: only the first words, which are there, are read.
    (unsafe { _mm512_maskz_loadu_epi64(some, words.as_ptr().cast()) }, some)
}

/// The lowest `count` lanes, all from 8 on.
#[inline]
fn lowest(count: usize) -> __mmask8 {
    if count >= 8 { 0xff } else { (1 << count) - 1 }
}

#[derive(Clone, Copy)]
struct Lanes512(__m512i);

impl Lanes for Lanes512 {
    const WORDS: usize = 8;

    #[inline(always)]
    fn beyond(words: usize) -> Self {
        // SAFETY: only code compiled for the instruction set uses these lanes.
        Self(unsafe { _mm512_maskz_set1_epi64(!lowest(words), -1) })
    }

    #[inline(always)]
    unsafe fn load(source: *const u64) -> Self {
        // SAFETY: as above, and the caller's promise.
        Self(unsafe { _mm512_loadu_si512(source.cast()) })
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_or_si512(self.0, other.0) })
    }

    #[inline(always)]
    fn is_full(self) -> bool {
        // SAFETY: as above.
        unsafe { _mm512_cmpneq_epi64_mask(self.0, _mm512_set1_epi64(-1)) == 0 }
    }

    #[inline(always)]
    fn store_complement(self, target: &mut [u64; Runs::BODY_MAX]) -> u32 {
        // SAFETY: as above.
        unsafe {
            let standing = _mm512_xor_si512(self.0, _mm512_set1_epi64(-1));
            store(target, standing);
            _mm512_reduce_add_epi64(_mm512_popcnt_epi64(standing)) as u32
        }
    }
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn survivors(outer: &Outer, sets: &[(u32, usize)], columns: u32, queens: [u32; 2], runs: &mut Runs) {
    lanes::survivors::<Lanes512>(outer, sets, columns, queens, runs);
}

/// Runs that [`emit`] looks at together.
const RUNS_AT_ONCE: usize = 8;

/// Writes `base + i` for each bit i of `word`, ascending, and anything to the rest of `out`; returns their number.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn positions(word: u64, base: i16, out: &mut [u16; 64]) -> usize {
    const NUMBERS: [u8; 64] = {
        let mut numbers = [0; 64];
        let mut i = 0;
        while i < 64 {
            numbers[i] = i as u8;
            i += 1;
        }
        numbers
    };
    let count = word.count_ones() as usize;
    // SAFETY: 64 bytes are readable, and 64 numbers, 32 in a register, are writable.
    unsafe {
        let bytes = _mm512_maskz_compress_epi8(word, _mm512_loadu_si512(NUMBERS.as_ptr().cast()));
        let to = out.as_mut_ptr();
        if count <= 16 {
            let few = _mm256_cvtepu8_epi16(_mm512_castsi512_si128(bytes));
            _mm256_storeu_si256(to.cast(), _mm256_add_epi16(few, _mm256_set1_epi16(base)));
        } else {
            let halves = [_mm512_castsi512_si256(bytes), _mm512_extracti64x4_epi64::<1>(bytes)];
            for (half, bytes) in halves.into_iter().enumerate() {
                let numbers = _mm512_add_epi16(_mm512_cvtepu8_epi16(bytes), _mm512_set1_epi16(base));
                _mm512_storeu_si512(to.add(32 * half).cast(), numbers);
            }
        }
    }
    count
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn emit(runs: &Runs, outer: &[u64], at: &mut [usize; KEYS], list: &mut [u64]) {
    // Some runs at once, as numbers that were written just before in pieces are slow to read.
    let mut found = [0u16; 64 * (RUNS_AT_ONCE * Runs::BODY_MAX + 1)];
    let mut heads = [(RunHead::default(), 0); RUNS_AT_ONCE];
    let mut runs = runs.iter().peekable();
    while runs.peek().is_some() {
        let mut end = 0;
        let mut used = 0;
        for (slot, (head, vector)) in heads.iter_mut().zip(runs.by_ref()) {
            assert!(vector.len() <= Runs::BODY_MAX, "numbers below 512");
            for (word, &bits) in vector.iter().enumerate() {
                let room = found[end..].first_chunk_mut().expect("at most 8 words each");
                end += positions(bits, 64 * word as i16, room);
            }
            *slot = (head, end);
            used += 1;
        }
        let mut from = 0;
        for &(head, end) in &heads[..used] {
            let outer: &[u64; MASKS_SLACK] =
                outer[head.start as usize..].first_chunk().expect("slack at the end");
            let at = &mut at[usize::from(head.key)];
            let to = &mut list[*at..*at + end - from];
            *at += end - from;
            let mask = _mm512_set1_epi64(head.mask as i64);
            for (to, found) in to.chunks_mut(8).zip(found[from..].as_chunks::<8>().0) {
                let some = lowest(to.len());
                // SAFETY: eight numbers are readable; those of placements, the others are left out, are below 512.
                unsafe {
                    let numbers = _mm256_cvtepu16_epi32(_mm_loadu_si128(found.as_ptr().cast()));
                    let outer = _mm512_mask_i32gather_epi64::<8>(mask, some, numbers, outer.as_ptr().cast());
                    _mm512_mask_storeu_epi64(to.as_mut_ptr().cast(), some, _mm512_or_si512(outer, mask));
                }
            }
            from = end;
        }
    }
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn planes(masks: &[u64], bits: &[u64], planes: &mut [u64]) {
    let blocks = masks.len() / 64;
    assert!(planes.len() >= bits.len() * blocks, "a plane for each");
    let mut slots = [[0; 2]; 64];
    for (slots, &bits) in slots.iter_mut().zip(bits) {
        *slots = [slot(bits.trailing_zeros() as usize), slot(63 - bits.leading_zeros() as usize)];
    }
    let slots = &slots[..bits.len()];
    let mut square = [0; 64];
    for (block, masks) in masks.as_chunks::<64>().0.iter().enumerate() {
        flip_to(masks, &mut square);
        for (plane, &[x, y]) in slots.iter().enumerate() {
            planes[plane * blocks + block] = square[x % 64] | square[y % 64];
        }
    }
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn standing(dead: [&[u64]; 2], tie: Option<&[u64]>, untied: &mut [u64], tied: &mut [u64]) -> [usize; 2] {
    let mut counts = [_mm512_setzero_si512(); 2];
    for at in (0..tied.len()).step_by(8) {
        let (a, some) = load_some(&dead[0][at..]);
        let (b, _) = load_some(&dead[1][at..]);
        let standing = _mm512_maskz_andnot_epi64(
            some & lowest(tied.len() - at),
            _mm512_or_si512(a, b),
            _mm512_set1_epi64(-1),
        );
        let tie = tie.map_or(_mm512_set1_epi64(-1), |tie| load_some(&tie[at..]).0);
        for (k, (value, out)) in [_mm512_andnot_si512(tie, standing), _mm512_and_si512(tie, standing)]
            .into_iter()
            .zip([&mut *untied, &mut *tied])
            .enumerate()
        {
            counts[k] = _mm512_add_epi64(counts[k], _mm512_popcnt_epi64(value));
            let out = &mut out[at..];
            // SAFETY: only words that are there are written.
            unsafe { _mm512_mask_storeu_epi64(out.as_mut_ptr().cast(), lowest(out.len()), value) }
        }
    }
    counts.map(|count| _mm512_reduce_add_epi64(count) as usize)
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn pick<M: WideMask>(masks: &[M], chosen: &[u64], out: &mut [M]) -> usize {
    assert!(out.len() >= masks.len().min(64 * chosen.len()) + SLACK, "room for all");
    let mut to = out.as_mut_ptr();
    for (&bits, masks) in chosen.iter().zip(masks.as_chunks::<64>().0) {
        if bits == 0 {
            continue;
        }
        for (i, masks) in masks.chunks_exact(M::LANES).enumerate() {
            // SAFETY: no more than all masks and a register are written.
            unsafe { to = M::append(to, (bits >> (M::LANES * i)) as u16, M::load(masks)) };
        }
    }
    // SAFETY: both point into `out`.
    unsafe { to.offset_from_unsigned(out.as_ptr()) }
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn sift<M: WideMask>(masks: &[M], bits: u64, without: &mut [M]) -> usize {
    assert!(without.len() >= masks.len() + SLACK, "room for all");
    let bits = M::splat(bits);
    let mut to = without.as_mut_ptr();
    let whole = masks.chunks_exact(M::LANES);
    let (x, some) = M::load_some(whole.remainder());
    for masks in whole {
        let x = M::load(masks);
        // SAFETY: no more than all masks and a register are written.
        unsafe { to = M::append(to, M::without(x, bits), x) };
    }
    // SAFETY: as above.
    unsafe {
        to = M::append(to, some & M::without(x, bits), x);
        to.offset_from_unsigned(without.as_ptr())
    }
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn part<M: WideMask>(masks: &[M], bits: u64, without: &mut [M], with: &mut [M]) -> usize {
    assert!(without.len().min(with.len()) >= masks.len() + SLACK, "room for all");
    let bits = M::splat(bits);
    let [mut to, mut other] = [without.as_mut_ptr(), with.as_mut_ptr()];
    let whole = masks.chunks_exact(M::LANES);
    let (x, some) = M::load_some(whole.remainder());
    for masks in whole {
        let x = M::load(masks);
        let keep = M::without(x, bits);
        // SAFETY: no more than all masks and a register are written to either.
        unsafe {
            to = M::append(to, keep, x);
            other = M::append(other, !keep, x);
        }
    }
    let keep = M::without(x, bits);
    // SAFETY: as above.
    unsafe {
        to = M::append(to, some & keep, x);
        M::append(other, some & !keep, x);
        to.offset_from_unsigned(without.as_ptr())
    }
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn union<M: WideMask>(masks: &[M]) -> u64 {
    let (fours, rest) = masks.split_at(masks.len() - masks.len() % (4 * M::LANES));
    let mut unions = [_mm512_setzero_si512(); 4];
    for four in fours.chunks_exact(4 * M::LANES) {
        for (union, masks) in unions.iter_mut().zip(four.chunks_exact(M::LANES)) {
            *union = _mm512_or_si512(*union, M::load(masks));
        }
    }
    for (union, masks) in unions.iter_mut().zip(rest.chunks(M::LANES)) {
        *union = _mm512_or_si512(*union, M::load_some(masks).0);
    }
    let [a, b, c, d] = unions;
    M::fold(_mm512_reduce_or_epi64(_mm512_or_si512(_mm512_or_si512(a, b), _mm512_or_si512(c, d))) as u64)
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn squeeze(masks: &[u64], live: u64, out: &mut [u32]) {
    for (out, &mask) in out.iter_mut().zip(masks) {
        *out = _pext_u64(mask, live) as u32;
    }
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn sample<M: WideMask>(masks: &[M], counts: &mut [u64; 64]) {
    let mut square = [0; 64];
    flip_to(masks, &mut square);
    for bit in 0..64 {
        counts[bit % (64 / M::IN_WORD)] += u64::from(square[slot(bit)].count_ones());
    }
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn small<M: WideMask>(exchange: Exchange, a: Weighted<'_, M>, b: Weighted<'_, M>) -> u64 {
    assert!(a.len() * b.len() <= PAIRS_MAX, "counts fit 32 bits");
    // The shorter list in registers, and each mask of the longer one against all of a register.
    let (a, b, exchange) = if a.len() < b.len() { (b, a, exchange.back()) } else { (a, b, exchange) };
    let (untied, tied) = a.masks.split_at(a.untied);
    let back = exchange.back();
    let [low, high] = back.parts().map(|part| M::splat(part));
    let [up, down] = back.shifts();
    let mut sums = _mm512_setzero_si512();
    for (i, masks) in b.masks.chunks(M::LANES).enumerate() {
        let (x, some) = M::load_some(masks);
        // As the others call them.
        let x = _mm512_or_si512(
            M::shift(_mm512_and_si512(x, low), up),
            M::shift(_mm512_and_si512(x, high), down),
        );
        let doubles = M::lowest(b.untied.saturating_sub(M::LANES * i));
        let mut counts = _mm512_setzero_si512();
        for &mask in untied {
            counts = M::add_one(counts, M::without(x, M::splat(mask.into())));
        }
        sums = M::add(sums, some & doubles, counts);
        for &mask in tied {
            counts = M::add_one(counts, M::without(x, M::splat(mask.into())));
        }
        sums = M::add(sums, some, counts);
    }
    M::sum(sums)
}
