//! Filters, which each instruction set has in its own way, and bit planes.

#![expect(clippy::inline_always, reason = "compiled anew for each instruction set")]

/// A byte a lane.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Bytes<const L: usize>(pub(super) [u8; L]);

/// Leaves out what a queen attacks.
pub(super) trait Filter {
    /// Writes those of `masks` that share no bit with `queen` to `to`, in order, and returns their number. More masks,
    /// without meaning, may be written behind: `to` is longer by [`BEHIND`].
    fn sift(masks: &[u64], queen: u64, to: &mut [u64]) -> usize;
}

/// Masks that are written behind those that [`Filter::sift`] keeps.
pub(super) const BEHIND: usize = 8;

/// Has a cache line come from memory beside what is done until it is needed.
#[inline(always)]
pub(super) fn prefetch<T>(line: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: this reads nothing, wherever it points.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(line.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

/// The place of a lane among the bytes of a plane.
pub(super) const fn byte<const L: usize>(lane: usize) -> usize {
    let words = L / 8;
    lane % words * 8 + lane / words
}

/// Makes bit planes: bit k of a lane's byte of plane b is bit b of the k-th of its eight masks. `masks` has the
/// first of each lane, then the second of each, and so on. Planes from `bits` on have no meaning.
#[inline(always)]
pub(super) fn transpose<const L: usize>(masks: &[u64], bits: u32, planes: &mut [Bytes<L>; 64]) {
    match L {
        32 => transpose_words::<L, 4>(masks, bits, planes),
        64 => transpose_words::<L, 8>(masks, bits, planes),
        _ => unreachable!("32 or 64 lanes"),
    }
}

/// The same, for `W` words of eight lanes.
#[inline(always)]
fn transpose_words<const L: usize, const W: usize>(masks: &[u64], bits: u32, planes: &mut [Bytes<L>; 64]) {
    // Bytes of masks, each where one of its bits' planes will be.
    for k in 0..8 {
        let mut rows = [[0; W]; 8];
        for (row, masks) in rows.iter_mut().zip(masks[k * L..].chunks_exact(W)) {
            row.copy_from_slice(masks);
        }
        for (byte, row) in exchange(rows, 8).into_iter().enumerate() {
            planes[8 * byte + k].set(row);
        }
    }
    for planes in planes.chunks_exact_mut(8).take(bits.div_ceil(8) as usize) {
        let mut rows = [[0; W]; 8];
        for (row, plane) in rows.iter_mut().zip(&*planes) {
            for (word, bytes) in row.iter_mut().zip(plane.0.as_chunks().0) {
                *word = u64::from_le_bytes(*bytes);
            }
        }
        for (plane, row) in planes.iter_mut().zip(exchange(rows, 1)) {
            plane.set(row);
        }
    }
}

impl<const L: usize> Bytes<L> {
    #[inline(always)]
    fn set<const W: usize>(&mut self, words: [u64; W]) {
        for (bytes, word) in self.0.as_chunks_mut().0.iter_mut().zip(words) {
            *bytes = word.to_le_bytes();
        }
    }
}

/// Exchanges the three bits of a row's number with those three of the number of a bit in its word that weigh from `weight` on.
#[inline(always)]
fn exchange<const W: usize>(rows: [[u64; W]; 8], weight: u32) -> [[u64; W]; 8] {
    let rows = exchange_one(rows, 4, 4 * weight);
    let rows = exchange_one(rows, 2, 2 * weight);
    exchange_one(rows, 1, weight)
}

/// Exchanges the bit of a row's number that weighs `of_row` with the bit of a bit's number that weighs `of_bit`.
#[inline(always)]
fn exchange_one<const W: usize>(mut rows: [[u64; W]; 8], of_row: usize, of_bit: u32) -> [[u64; W]; 8] {
    // The bits whose numbers do not have that bit.
    let low = u64::MAX / ((1 << of_bit) + 1);
    for row in 0..8 {
        if row & of_row == 0 {
            let (mut one, mut other) = (rows[row], rows[row + of_row]);
            for word in 0..W {
                let (up, down) = (other[word] << of_bit, one[word] >> of_bit);
                one[word] = one[word] & low | up & !low;
                other[word] = other[word] & !low | down & low;
            }
            (rows[row], rows[row + of_row]) = (one, other);
        }
    }
    rows
}

/// Plain code.
#[derive(Debug)]
pub(super) struct Plain;

impl Filter for Plain {
    #[inline(always)]
    fn sift(masks: &[u64], queen: u64, to: &mut [u64]) -> usize {
        let mut found = 0;
        for &mask in masks {
            to[found] = mask;
            found += usize::from(mask & queen == 0);
        }
        found
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    #![allow(clippy::wildcard_imports, reason = "intrinsics; the lint is off in tests")]

    use std::arch::x86_64::*;

    use super::{BEHIND, Filter};

    #[derive(Debug)]
    pub(in super::super) struct Avx2;

    impl Filter for Avx2 {
        #[inline(always)]
        fn sift(masks: &[u64], queen: u64, to: &mut [u64]) -> usize {
            // SAFETY: the caller is compiled for AVX2.
            unsafe { sift_by_avx2(masks, queen, to) }
        }
    }

    #[derive(Debug)]
    pub(in super::super) struct Avx512;

    impl Filter for Avx512 {
        #[inline(always)]
        fn sift(masks: &[u64], queen: u64, to: &mut [u64]) -> usize {
            // SAFETY: the caller is compiled for AVX-512.
            unsafe { sift_by_avx512(masks, queen, to) }
        }
    }

    /// For four masks of which some are kept, where the halves of the kept ones come from.
    const KEPT: [[u32; 8]; 16] = {
        let mut kept = [[0; 8]; 16];
        let mut of = 0;
        while of < 16 {
            let (mut from, mut to) = (0, 0);
            while from < 4 {
                if of >> from & 1 == 1 {
                    kept[of][2 * to] = 2 * from;
                    kept[of][2 * to + 1] = 2 * from + 1;
                    to += 1;
                }
                from += 1;
            }
            of += 1;
        }
        kept
    };

    #[inline]
    #[target_feature(enable = "avx2,popcnt")]
    fn sift_by_avx2(masks: &[u64], queen: u64, to: &mut [u64]) -> usize {
        assert!(to.len() >= masks.len() + BEHIND);
        let queens = _mm256_set1_epi64x(queen.cast_signed());
        let (fours, rest) = masks.as_chunks::<4>();
        let mut found = 0;
        for four in fours {
            // SAFETY: four masks; and `found` is at most the number of masks before.
            unsafe {
                let masks = _mm256_loadu_si256(four.as_ptr().cast());
                let free = _mm256_cmpeq_epi64(_mm256_and_si256(masks, queens), _mm256_setzero_si256());
                let free = _mm256_movemask_pd(_mm256_castsi256_pd(free)).cast_unsigned();
                let order = _mm256_loadu_si256(KEPT[free as usize].as_ptr().cast());
                let kept = _mm256_permutevar8x32_epi32(masks, order);
                _mm256_storeu_si256(to.as_mut_ptr().add(found).cast(), kept);
                found += free.count_ones() as usize;
            }
        }
        for &mask in rest {
            to[found] = mask;
            found += usize::from(mask & queen == 0);
        }
        found
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,popcnt")]
    fn sift_by_avx512(masks: &[u64], queen: u64, to: &mut [u64]) -> usize {
        assert!(to.len() >= masks.len() + BEHIND);
        let queens = _mm512_set1_epi64(queen.cast_signed());
        let (eights, rest) = masks.as_chunks::<8>();
        let mut found = 0;
        let mut keep = |masks, among| {
            let free = _mm512_mask_testn_epi64_mask(among, masks, queens);
            let kept = _mm512_maskz_compress_epi64(free, masks);
            // SAFETY: `found` is at most the number of masks before.
            unsafe { _mm512_storeu_si512(to.as_mut_ptr().add(found).cast(), kept) };
            found += free.count_ones() as usize;
        };
        for eight in eights {
            // SAFETY: eight masks.
            keep(unsafe { _mm512_loadu_si512(eight.as_ptr().cast()) }, u8::MAX);
        }
        if !rest.is_empty() {
            let among = (1 << rest.len()) - 1;
            // SAFETY: no more masks than there are.
            keep(unsafe { _mm512_maskz_loadu_epi64(among, rest.as_ptr().cast()) }, among);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_arch = "x86_64")]
    use crate::engine::Kernel;
    use crate::random::Random;

    fn check<const L: usize>() {
        let mut random = Random::new(1);
        let masks: Vec<u64> = (0..8 * L).map(|_| random.bits()).collect();
        let mut planes = Box::new([Bytes([0; L]); 64]);
        transpose(&masks, 64, &mut planes);
        for (bit, plane) in planes.iter().enumerate() {
            for lane in 0..L {
                let expected =
                    (0..8).fold(0, |byte, k| byte | u8::from(masks[k * L + lane] >> bit & 1 == 1) << k);
                assert_eq!(plane.0[byte::<L>(lane)], expected, "bit {bit}, lane {lane}");
            }
        }
    }

    fn check_sift<T: Filter>() {
        let mut random = Random::new(2);
        for length in 0..40 {
            let masks: Vec<u64> = (0..length).map(|_| random.bits() & random.bits()).collect();
            let queen = 1 << (random.bits() % 64) | 1 << (random.bits() % 64);
            let mut to = vec![0; length + BEHIND];
            let found = T::sift(&masks, queen, &mut to);
            let expected: Vec<u64> = masks.into_iter().filter(|mask| mask & queen == 0).collect();
            assert_eq!(to[..found], expected);
        }
    }

    #[test]
    fn attacked_masks_are_left_out() {
        check_sift::<Plain>();
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") {
            check_sift::<Avx2>();
        }
        #[cfg(target_arch = "x86_64")]
        if Kernel::Avx512.is_available() {
            check_sift::<Avx512>();
        }
    }

    #[test]
    fn planes_have_the_bits_of_the_masks() {
        check::<32>();
        check::<64>();
    }
}
