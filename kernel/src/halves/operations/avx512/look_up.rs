//! The leaf: blocks to bit planes, planes to tables, and queries that look them up.

#![allow(clippy::wildcard_imports, reason = "intrinsics; the lint is off in tests")]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "intrinsics take words as signed; counts and positions are small"
)]

use std::arch::x86_64::*;

use super::wide::WideMask;
use super::{load, store};
use crate::halves::windows::{BLOCKS_MAX, Table, WINDOW_ROWS, WindowRow, Windows};

/// The bit planes of at most 64 words of masks, eight a register; plane t is word [`slot`] (t).
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub(super) fn flip<M: WideMask>(masks: &[M]) -> [__m512i; 8] {
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
    let whole = masks.len() == 64 * M::IN_WORD;
    let r: [__m512i; 8] = std::array::from_fn(|i| {
        let masks = &masks[(i * M::LANES).min(masks.len())..];
        let x = if whole { M::load(masks) } else { M::load_some(masks).0 };
        _mm512_gf2p8affine_epi64_epi8::<0>(identity, _mm512_permutexvar_epi8(gather, x))
    });
    let a: [__m512i; 8] = std::array::from_fn(|i| match i {
        0..4 => _mm512_unpacklo_epi8(r[2 * i], r[2 * i + 1]),
        _ => _mm512_unpackhi_epi8(r[2 * i - 8], r[2 * i - 7]),
    });
    let mut planes = [identity; 8];
    for (x, planes) in a.as_chunks::<4>().0.iter().zip(planes.as_chunks_mut::<4>().0) {
        let [b0, b1] = [_mm512_unpacklo_epi16(x[0], x[1]), _mm512_unpackhi_epi16(x[0], x[1])];
        let [c0, c1] = [_mm512_unpacklo_epi16(x[2], x[3]), _mm512_unpackhi_epi16(x[2], x[3])];
        planes[0] = _mm512_unpacklo_epi32(b0, c0);
        planes[1] = _mm512_unpackhi_epi32(b0, c0);
        planes[2] = _mm512_unpacklo_epi32(b1, c1);
        planes[3] = _mm512_unpackhi_epi32(b1, c1);
    }
    planes
}

/// [`flip`], written to memory.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub(super) fn flip_to<M: WideMask>(masks: &[M], out: &mut [u64; 64]) {
    for (to, planes) in out.as_chunks_mut::<8>().0.iter_mut().zip(flip(masks)) {
        store(to, planes);
    }
}

/// Where [`flip`] puts the plane of bit `bit`.
#[inline]
pub(super) const fn slot(bit: usize) -> usize {
    (bit % 16 / 2) * 8 + bit / 16 * 2 + bit % 2
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub(super) fn transpose<M: WideMask>(masks: &[M], planes: &mut [WindowRow; 64]) {
    for (square, masks) in masks.chunks(64 * M::IN_WORD).enumerate() {
        for (k, words) in flip(masks).into_iter().enumerate() {
            store(&mut planes[place(k, square)].0, words);
        }
    }
    for k in 0..8 {
        if M::IN_WORD == 1 {
            gather_long(k, planes);
        } else {
            gather_short(k, planes);
        }
    }
}

/// Where plane [`slot`] `8 * k + number` belongs. Until all squares are done, word k of square `number` stands there.
#[inline]
const fn place(k: usize, number: usize) -> usize {
    number / 2 * 16 + k * 2 + number % 2
}

/// Makes the eight planes at word k of eight squares: an 8 by 8 transposition of words.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn gather_long(k: usize, planes: &mut [WindowRow; 64]) {
    let r: [__m512i; 8] = std::array::from_fn(|square| load(&planes[place(k, square)].0));
    let t: [__m512i; 8] = std::array::from_fn(|i| match i % 2 {
        0 => _mm512_unpacklo_epi64(r[i], r[i + 1]),
        _ => _mm512_unpackhi_epi64(r[i - 1], r[i]),
    });
    for odd in 0..2 {
        let [x, y, z, w] = [t[odd], t[odd + 2], t[odd + 4], t[odd + 6]];
        let [a0, a1] = [_mm512_shuffle_i64x2::<0x88>(x, y), _mm512_shuffle_i64x2::<0x88>(z, w)];
        let [b0, b1] = [_mm512_shuffle_i64x2::<0xdd>(x, y), _mm512_shuffle_i64x2::<0xdd>(z, w)];
        let mut put = |number: usize, value: __m512i| store(&mut planes[place(k, number)].0, value);
        put(odd, _mm512_shuffle_i64x2::<0x88>(a0, a1));
        put(odd + 4, _mm512_shuffle_i64x2::<0xdd>(a0, a1));
        put(odd + 2, _mm512_shuffle_i64x2::<0x88>(b0, b1));
        put(odd + 6, _mm512_shuffle_i64x2::<0xdd>(b0, b1));
    }
}

/// Makes the four planes at word k of four squares of short masks: of each square its first half, then its second.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn gather_short(k: usize, planes: &mut [WindowRow; 64]) {
    let order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    let r: [__m512i; 4] =
        std::array::from_fn(|square| _mm512_permutexvar_epi64(order, load(&planes[place(k, square)].0)));
    let [a0, a1] = [_mm512_shuffle_i64x2::<0x44>(r[0], r[1]), _mm512_shuffle_i64x2::<0xee>(r[0], r[1])];
    let [b0, b1] = [_mm512_shuffle_i64x2::<0x44>(r[2], r[3]), _mm512_shuffle_i64x2::<0xee>(r[2], r[3])];
    store(&mut planes[place(k, 0)].0, _mm512_shuffle_i64x2::<0x88>(a0, b0));
    store(&mut planes[place(k, 1)].0, _mm512_shuffle_i64x2::<0xdd>(a0, b0));
    store(&mut planes[place(k, 2)].0, _mm512_shuffle_i64x2::<0x88>(a1, b1));
    store(&mut planes[place(k, 3)].0, _mm512_shuffle_i64x2::<0xdd>(a1, b1));
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub(super) fn table(
    windows: &Windows,
    planes: &[Box<[WindowRow; 64]>; BLOCKS_MAX],
    valid: &[WindowRow; BLOCKS_MAX],
    blocks: usize,
    table: &mut Table,
) {
    let windows = table.as_chunks_mut::<WINDOW_ROWS>().0.iter_mut().zip(windows.partners());
    for (number, (table, partners)) in windows.enumerate() {
        for (block, planes) in planes.iter().enumerate().take(blocks) {
            table[0][block] = if number == 0 { valid[block] } else { WindowRow([u64::MAX; 8]) };
            for (k, &partner) in partners.iter().enumerate() {
                let plane = load(&planes[usize::from(partner) % 64].0);
                let (from, to) = table.split_at_mut(1 << k);
                for (to, from) in to.iter_mut().zip(from) {
                    store(&mut to[block].0, _mm512_andnot_si512(plane, load(&from[block].0)));
                }
            }
        }
    }
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub(super) fn query<M: WideMask>(
    table: &Table,
    windows: &Windows,
    blocks: usize,
    queries: &[M],
    double: Option<&[WindowRow; BLOCKS_MAX]>,
) -> u64 {
    let of = match (windows.len(), blocks) {
        (1, 1) => query_windows::<M, 1, 1>,
        (2, 1) => query_windows::<M, 2, 1>,
        (3, 1) => query_windows::<M, 3, 1>,
        (4, 1) => query_windows::<M, 4, 1>,
        (5, 1) => query_windows::<M, 5, 1>,
        (6, 1) => query_windows::<M, 6, 1>,
        (7, 1) => query_windows::<M, 7, 1>,
        (1, 2) => query_windows::<M, 1, 2>,
        (2, 2) => query_windows::<M, 2, 2>,
        (3, 2) => query_windows::<M, 3, 2>,
        (4, 2) => query_windows::<M, 4, 2>,
        (5, 2) => query_windows::<M, 5, 2>,
        (6, 2) => query_windows::<M, 6, 2>,
        (7, 2) => query_windows::<M, 7, 2>,
        _ => unreachable!("1 to 7 windows, one or two blocks"),
    };
    of(table, windows, queries, double)
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn query_windows<M: WideMask, const WINDOWS: usize, const BLOCKS: usize>(
    table: &Table,
    windows: &Windows,
    queries: &[M],
    double: Option<&[WindowRow; BLOCKS_MAX]>,
) -> u64 {
    let Windows { live, width, .. } = *windows;
    let field = ((1 << width) - 1) << WindowRow::SHIFT;
    let shifts: [u32; WINDOWS] = std::array::from_fn(|window| width * window as u32);
    let fits = |mask: M| -> [__m512i; BLOCKS] {
        // Indices times the size of a row.
        let indices = _pext_u64(mask.into(), live) << WindowRow::SHIFT;
        let rows: [*const WindowRow; WINDOWS] = std::array::from_fn(|window| {
            let offset = indices.wrapping_shr(shifts[window]) & field;
            // SAFETY: an index has `width` bits, at most eight, and so is one of 256 rows of its window.
            unsafe { table.as_ptr().add(WINDOW_ROWS * window).byte_add(offset as usize).cast() }
        });
        std::array::from_fn(|block| {
            // SAFETY: as above, and a row has two blocks.
            let row = |window: usize| unsafe { _mm512_load_si512(rows[window].add(block).cast()) };
            (1..WINDOWS).fold(row(0), |fits, window| _mm512_and_si512(fits, row(window)))
        })
    };
    let mut sums = [_mm512_setzero_si512(); BLOCKS];
    if let Some(double) = double {
        for &mask in queries {
            for ((sum, fits), double) in sums.iter_mut().zip(fits(mask)).zip(double) {
                let twice = _mm512_popcnt_epi64(_mm512_and_si512(fits, load(&double.0)));
                *sum = _mm512_add_epi64(*sum, _mm512_add_epi64(_mm512_popcnt_epi64(fits), twice));
            }
        }
    } else {
        for &mask in queries {
            for (sum, fits) in sums.iter_mut().zip(fits(mask)) {
                *sum = _mm512_add_epi64(*sum, _mm512_popcnt_epi64(fits));
            }
        }
    }
    sums.into_iter().map(|sum| _mm512_reduce_add_epi64(sum) as u64).sum()
}
