//! AVX-512: 512 elements of a block in one register.

#![allow(clippy::wildcard_imports, reason = "intrinsics; the lint is off in tests")]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "intrinsics take words as signed; counts and positions are small"
)]
#![expect(clippy::inline_always, reason = "compiled anew for each instruction set")]

use std::arch::x86_64::*;

use super::super::generate::{KEYS, Runs};
use super::super::leaf::{Row, TABLE_ROWS, Weighted, Windows};
use super::super::outer::{MASKS_SLACK, Outer};
use super::lanes::{self, Lanes};
use super::{Costs, Isa, SLACK};

/// For machines with AVX-512; one exists only where the instructions do.
#[derive(Debug)]
pub(super) struct Avx512(());

impl Avx512 {
    /// The version for this machine, if it has the instructions.
    pub(super) fn new() -> Option<Self> {
        let available = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("avx512vbmi2")
            && is_x86_feature_detected!("avx512vpopcntdq")
            && is_x86_feature_detected!("gfni")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        available.then_some(Self(()))
    }
}

implement!(
    Avx512,
    Isa::Avx512,
    Costs { block: 1500.0, query: 3.7, row: 1.0, window: 0.55, sift: 0.8 },
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
    fn prefetch(source: &[u64]) {
        for line in source.chunks(8) {
            // SAFETY: a prefetch touches nothing.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
        }
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
    let mut found = [0u16; 64 * (Runs::BODY_MAX + 1)];
    for (head, vector) in runs.iter() {
        let mut end = 0;
        for (word, &bits) in vector.iter().enumerate() {
            end +=
                positions(bits, 64 * word as i16, found[end..].first_chunk_mut().expect("at most 8 words"));
        }
        let from: &[u64; MASKS_SLACK] = outer[head.start as usize..].first_chunk().expect("slack at the end");
        let at = &mut at[usize::from(head.key)];
        let to = &mut list[*at..*at + end];
        *at += end;
        for (to, &position) in to.iter_mut().zip(&found) {
            *to = from[usize::from(position) % MASKS_SLACK] | head.mask;
        }
    }
}

/// The bit planes of 64 masks; plane t stands at [`slot`] (t).
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn flip(masks: &[u64; 64], out: &mut [u64; 64]) {
    // Byte k of element i goes to byte 7 - i of qword k; the multiplication by the identity from the other side
    // then transposes each qword.
    const GATHER: [u8; 64] = {
        let mut gather = [0; 64];
        let mut at = 0;
        while at < 64 {
            gather[at / 8 * 8 + 7 - at % 8] = (at % 8 * 8 + at / 8) as u8;
            at += 1;
        }
        gather
    };
    // SAFETY: 64 bytes are readable.
    let gather = unsafe { _mm512_loadu_si512(GATHER.as_ptr().cast()) };
    let identity = _mm512_set1_epi64(0x8040_2010_0804_0201_u64 as i64);
    let chunks = masks.as_chunks::<8>().0;
    let r: [__m512i; 8] = std::array::from_fn(|i| {
        _mm512_gf2p8affine_epi64_epi8::<0>(identity, _mm512_permutexvar_epi8(gather, load(&chunks[i])))
    });
    let a: [__m512i; 8] = std::array::from_fn(|i| match i {
        0..4 => _mm512_unpacklo_epi8(r[2 * i], r[2 * i + 1]),
        _ => _mm512_unpackhi_epi8(r[2 * i - 8], r[2 * i - 7]),
    });
    for (half, to) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let x = &a[4 * half..];
        let [b0, b1] = [_mm512_unpacklo_epi16(x[0], x[1]), _mm512_unpackhi_epi16(x[0], x[1])];
        let [c0, c1] = [_mm512_unpacklo_epi16(x[2], x[3]), _mm512_unpackhi_epi16(x[2], x[3])];
        let to = to.as_chunks_mut::<8>().0;
        store(&mut to[0], _mm512_unpacklo_epi32(b0, c0));
        store(&mut to[1], _mm512_unpackhi_epi32(b0, c0));
        store(&mut to[2], _mm512_unpacklo_epi32(b1, c1));
        store(&mut to[3], _mm512_unpackhi_epi32(b1, c1));
    }
}

/// Where [`flip`] puts the plane of bit `bit`.
#[inline]
const fn slot(bit: usize) -> usize {
    (bit % 16 / 2) * 8 + bit / 16 * 2 + bit % 2
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
        flip(masks, &mut square);
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
fn pick(masks: &[u64], chosen: &[u64], out: &mut [u64]) -> usize {
    assert!(out.len() >= masks.len().min(64 * chosen.len()) + SLACK, "room for all");
    let mut to = out.as_mut_ptr();
    for (&bits, masks) in chosen.iter().zip(masks.as_chunks::<64>().0) {
        if bits == 0 {
            continue;
        }
        for (i, masks) in masks.as_chunks::<8>().0.iter().enumerate() {
            let some = (bits >> (8 * i)) as __mmask8;
            // SAFETY: no more than all masks and eight are written.
            unsafe {
                _mm512_storeu_si512(to.cast(), _mm512_maskz_compress_epi64(some, load(masks)));
                to = to.add(some.count_ones() as usize);
            }
        }
    }
    // SAFETY: both point into `out`.
    unsafe { to.offset_from_unsigned(out.as_ptr()) }
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn sift(masks: &[u64], bits: u64, without: &mut [u64]) -> usize {
    assert!(without.len() >= masks.len() + SLACK, "room for all");
    let bits = _mm512_set1_epi64(bits as i64);
    let mut to = without.as_mut_ptr();
    let (whole, rest) = masks.as_chunks::<8>();
    for masks in whole {
        let x = load(masks);
        // SAFETY: no more than all masks and eight are written.
        unsafe { to = append(to, _mm512_testn_epi64_mask(x, bits), x) };
    }
    let (x, some) = load_some(rest);
    // SAFETY: as above.
    unsafe {
        to = append(to, _mm512_mask_testn_epi64_mask(some, x, bits), x);
        to.offset_from_unsigned(without.as_ptr())
    }
}

/// Writes the chosen words to `to`, where eight words must be writable, and returns where they end.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
unsafe fn append(to: *mut u64, chosen: __mmask8, words: __m512i) -> *mut u64 {
    // SAFETY: the caller's promise.
    unsafe {
        _mm512_storeu_si512(to.cast(), _mm512_maskz_compress_epi64(chosen, words));
        to.add(chosen.count_ones() as usize)
    }
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn part(masks: &[u64], bits: u64, without: &mut [u64], with: &mut [u64]) -> usize {
    assert!(without.len().min(with.len()) >= masks.len() + SLACK, "room for all");
    let bits = _mm512_set1_epi64(bits as i64);
    let [mut to, mut other] = [without.as_mut_ptr(), with.as_mut_ptr()];
    let (whole, rest) = masks.as_chunks::<8>();
    for masks in whole {
        let x = load(masks);
        let keep = _mm512_testn_epi64_mask(x, bits);
        // SAFETY: no more than all masks and eight are written to either.
        unsafe {
            to = append(to, keep, x);
            other = append(other, !keep, x);
        }
    }
    let (x, some) = load_some(rest);
    let keep = _mm512_mask_testn_epi64_mask(some, x, bits);
    // SAFETY: as above.
    unsafe {
        to = append(to, keep, x);
        append(other, some & !keep, x);
        to.offset_from_unsigned(without.as_ptr())
    }
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn union(masks: &[u64]) -> u64 {
    let (whole, rest) = masks.as_chunks::<8>();
    let (fours, whole) = whole.as_chunks::<4>();
    let mut unions =
        [load_some(rest).0, _mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()];
    for four in fours {
        for (union, masks) in unions.iter_mut().zip(four) {
            *union = _mm512_or_si512(*union, load(masks));
        }
    }
    for (union, masks) in unions.iter_mut().zip(whole) {
        *union = _mm512_or_si512(*union, load(masks));
    }
    let [a, b, c, d] = unions;
    _mm512_reduce_or_epi64(_mm512_or_si512(_mm512_or_si512(a, b), _mm512_or_si512(c, d))) as u64
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn sample(masks: &[u64; 64], counts: &mut [u64; 64]) {
    let mut square = [0; 64];
    flip(masks, &mut square);
    for (bit, count) in counts.iter_mut().enumerate() {
        *count += u64::from(square[slot(bit)].count_ones());
    }
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn small(a: Weighted<'_>, b: Weighted<'_>) -> u64 {
    let mut sum = 0;
    let (untied, tied) = a.masks.split_at(a.untied);
    let one = _mm512_set1_epi64(1);
    for (i, masks) in b.masks.chunks(8).enumerate() {
        let (x, some) = load_some(masks);
        let count = |queries: &[u64]| {
            let mut count = _mm512_setzero_si512();
            for &query in queries {
                let fits = _mm512_mask_testn_epi64_mask(some, x, _mm512_set1_epi64(query as i64));
                count = _mm512_mask_add_epi64(count, fits, count, one);
            }
            count
        };
        let double = count(untied);
        let doubles = lowest(b.untied.saturating_sub(8 * i));
        sum += _mm512_reduce_add_epi64(_mm512_add_epi64(double, count(tied)));
        sum += _mm512_mask_reduce_add_epi64(doubles, double);
    }
    sum as u64
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn index(masks: &[u64], windows: &Windows, indices: &mut [u64]) {
    let offsets = _mm512_set1_epi64(u64::from_le_bytes(windows.offsets) as i64);
    let fields = _mm512_set1_epi64(u64::from_le_bytes(windows.fields) as i64);
    let indices_of = |x| _mm512_and_si512(_mm512_multishift_epi64_epi8(offsets, x), fields);
    let (whole, rest) = masks.as_chunks::<8>();
    let (whole_indices, rest_indices) = indices.as_chunks_mut::<8>();
    for (indices, masks) in whole_indices.iter_mut().zip(whole) {
        store(indices, indices_of(load(masks)));
    }
    let (x, some) = load_some(rest);
    let some = some & lowest(rest_indices.len());
    // SAFETY: only words that are there are written.
    unsafe { _mm512_mask_storeu_epi64(rest_indices.as_mut_ptr().cast(), some, indices_of(x)) };
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn transpose(masks: &[u64], planes: &mut [Row; 64]) {
    let mut squares = [[0; 64]; 8];
    let (whole, rest) = masks.as_chunks::<64>();
    for (masks, square) in whole.iter().zip(&mut squares) {
        flip(masks, square);
    }
    if !rest.is_empty() {
        let mut last = [0; 64];
        last[..rest.len()].copy_from_slice(rest);
        flip(&last, &mut squares[whole.len()]);
    }
    for k in 0..8 {
        let r: [__m512i; 8] =
            std::array::from_fn(|g| load(squares[g][8 * k..].first_chunk().expect("eight")));
        // An 8 by 8 transposition of words.
        let t: [__m512i; 8] = std::array::from_fn(|i| match i % 2 {
            0 => _mm512_unpacklo_epi64(r[i], r[i + 1]),
            _ => _mm512_unpackhi_epi64(r[i - 1], r[i]),
        });
        let mut put = |place: usize, value: __m512i| {
            let slot = 8 * k + place;
            // The inverse of `slot`.
            let bit = slot % 8 / 2 * 16 + slot / 8 * 2 + slot % 2;
            store(&mut planes[bit].0, value);
        };
        for odd in 0..2 {
            let [x, y, z, w] = [t[odd], t[odd + 2], t[odd + 4], t[odd + 6]];
            let [a0, a1] = [_mm512_shuffle_i64x2::<0x88>(x, y), _mm512_shuffle_i64x2::<0x88>(z, w)];
            let [b0, b1] = [_mm512_shuffle_i64x2::<0xdd>(x, y), _mm512_shuffle_i64x2::<0xdd>(z, w)];
            put(odd, _mm512_shuffle_i64x2::<0x88>(a0, a1));
            put(odd + 4, _mm512_shuffle_i64x2::<0xdd>(a0, a1));
            put(odd + 2, _mm512_shuffle_i64x2::<0x88>(b0, b1));
            put(odd + 6, _mm512_shuffle_i64x2::<0xdd>(b0, b1));
        }
    }
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn tables(windows: &Windows, planes: &[Row; 64], valid: &Row, tables: &mut [Row; TABLE_ROWS]) {
    for (window, table) in tables.as_chunks_mut::<256>().0[..windows.len()].iter_mut().enumerate() {
        table[0] = if window == 0 { *valid } else { Row([u64::MAX; 8]) };
        let mut done = 0usize;
        for k in (0..8).filter(|k| windows.fields[window] >> k & 1 == 1) {
            let plane = load(&planes[usize::from(windows.partners[window][k]) % 64].0);
            // All subsets of the bits done: runs of consecutive ones, as long as the lowest bits are all in use.
            let run = 1usize << done.trailing_ones();
            let high = done & !(run - 1);
            let mut index = high;
            loop {
                let (from, to) = table[index..].split_at_mut(1 << k);
                for (to, from) in to[..run].iter_mut().zip(&from[..run]) {
                    store(&mut to.0, _mm512_andnot_si512(plane, load(&from.0)));
                }
                if index == 0 {
                    break;
                }
                index = (index - 1) & high;
            }
            done |= 1 << k;
        }
    }
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn query(tables: &[Row; TABLE_ROWS], windows: usize, queries: &[u64], double: Option<&Row>) -> u64 {
    match windows {
        1 => query_windows::<1>(tables, queries, double),
        2 => query_windows::<2>(tables, queries, double),
        3 => query_windows::<3>(tables, queries, double),
        4 => query_windows::<4>(tables, queries, double),
        5 => query_windows::<5>(tables, queries, double),
        6 => query_windows::<6>(tables, queries, double),
        7 => query_windows::<7>(tables, queries, double),
        8 => query_windows::<8>(tables, queries, double),
        _ => unreachable!("1 to 8 windows"),
    }
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn query_windows<const WINDOWS: usize>(
    tables: &[Row; TABLE_ROWS],
    queries: &[u64],
    double: Option<&Row>,
) -> u64 {
    let fits = |indices: u64| {
        // The index times the size of a row.
        let offset = |window: usize| {
            if window == 0 { indices << 6 & 0x3fc0 } else { indices >> (8 * window - 6) & 0x3fc0 }
        };
        // SAFETY: each index is one of 256 rows of its window.
        let row = |window: usize| unsafe {
            _mm512_load_si512(tables.as_ptr().add(256 * window).byte_add(offset(window) as usize).cast())
        };
        (1..WINDOWS).fold(row(0), |fits, window| _mm512_and_si512(fits, row(window)))
    };
    let mut sum = _mm512_setzero_si512();
    if let Some(double) = double {
        let double = load(&double.0);
        for &indices in queries {
            let fits = fits(indices);
            let twice = _mm512_popcnt_epi64(_mm512_and_si512(fits, double));
            sum = _mm512_add_epi64(sum, _mm512_add_epi64(_mm512_popcnt_epi64(fits), twice));
        }
    } else {
        for &indices in queries {
            sum = _mm512_add_epi64(sum, _mm512_popcnt_epi64(fits(indices)));
        }
    }
    _mm512_reduce_add_epi64(sum) as u64
}
