//! Operations that each instruction set does in its own way: filters and bit planes.

#![expect(clippy::inline_always, reason = "compiled anew for each instruction set")]

/// A byte a lane.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Bytes<const L: usize>(pub(super) [u8; L]);

/// Operations on `L` lanes.
pub(super) trait Vectors<const L: usize> {
    /// Writes those of `masks` that share no bit with `queen` to `to`, in order, and returns their number. More masks,
    /// without meaning, may be written behind: `to` is longer by [`BEHIND`].
    fn sift(masks: &[u64], queen: u64, to: &mut [u64]) -> usize;

    /// The lowest bytes of the masks of all lanes, the next ones, and so on.
    fn by_bytes(masks: &[u64; L]) -> [Bytes<L>; 8];

    /// The place of a lane among the bytes.
    fn byte(lane: usize) -> usize;
}

/// Masks that are written behind those that [`Vectors::sift`] keeps.
pub(super) const BEHIND: usize = 8;

/// Makes bit planes: bit k of a lane's byte of plane b is bit b of the k-th of its eight masks. `masks` has the
/// first of each lane, then the second of each, and so on. Planes from `bits` on have no meaning.
#[inline(always)]
pub(super) fn transpose<T: Vectors<L>, const L: usize>(
    masks: &[u64],
    bits: u32,
    planes: &mut [Bytes<L>; 64],
) {
    let bytes: [[Bytes<L>; 8]; 8] =
        std::array::from_fn(|k| T::by_bytes(masks[k * L..][..L].try_into().expect("a mask a lane")));
    for (byte, planes) in planes.chunks_exact_mut(8).enumerate().take(bits.div_ceil(8) as usize) {
        planes.copy_from_slice(&by_bits(std::array::from_fn(|k| bytes[k][byte])));
    }
}

/// Exchanges bits: bit k of a byte of result b is bit b of that byte of vector k.
#[inline(always)]
fn by_bits<const L: usize>(mut x: [Bytes<L>; 8]) -> [Bytes<L>; 8] {
    for (distance, half) in [(4, 0x0f), (2, 0x33), (1, 0x55)] {
        for low in (0..8).filter(|low| low & distance == 0) {
            let (mut one, mut other) = (x[low].0, x[low + distance].0);
            for l in 0..L {
                let moved = (one[l] >> distance ^ other[l]) & half;
                one[l] ^= moved << distance;
                other[l] ^= moved;
            }
            (x[low].0, x[low + distance].0) = (one, other);
        }
    }
    x
}

/// Plain code.
#[derive(Debug)]
pub(super) struct Plain;

impl<const L: usize> Vectors<L> for Plain {
    #[inline(always)]
    fn sift(masks: &[u64], queen: u64, to: &mut [u64]) -> usize {
        let mut found = 0;
        for &mask in masks {
            to[found] = mask;
            found += usize::from(mask & queen == 0);
        }
        found
    }

    #[inline(always)]
    fn by_bytes(masks: &[u64; L]) -> [Bytes<L>; 8] {
        std::array::from_fn(|byte| {
            #[expect(clippy::cast_possible_truncation, reason = "the lowest byte")]
            let bytes = masks.map(|mask| (mask >> (8 * byte)) as u8);
            Bytes(bytes)
        })
    }

    fn byte(lane: usize) -> usize {
        lane
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2Unpack, Avx512Unpack};

#[cfg(target_arch = "x86_64")]
mod x86 {
    #![allow(clippy::wildcard_imports, reason = "intrinsics; the lint is off in tests")]

    use std::arch::x86_64::*;

    use super::{BEHIND, Bytes, Vectors};

    /// AVX2. Bytes come in another order than lanes, as unpacking leaves them.
    #[derive(Debug)]
    pub(in super::super) struct Avx2Unpack;

    impl<const L: usize> Vectors<L> for Avx2Unpack {
        #[inline(always)]
        fn sift(masks: &[u64], queen: u64, to: &mut [u64]) -> usize {
            // SAFETY: the caller is compiled for AVX2.
            unsafe { sift_by_avx2(masks, queen, to) }
        }

        #[inline(always)]
        fn by_bytes(masks: &[u64; L]) -> [Bytes<L>; 8] {
            let mut bytes = [Bytes([0; L]); 8];
            for (register, masks) in masks.as_chunks::<32>().0.iter().enumerate() {
                // SAFETY: the caller is compiled for AVX2.
                let some = unsafe { by_bytes_by_avx2(masks) };
                for (bytes, some) in bytes.iter_mut().zip(some) {
                    bytes.0[32 * register..][..32].copy_from_slice(&some);
                }
            }
            bytes
        }

        #[inline(always)]
        fn byte(lane: usize) -> usize {
            lane / 32 * 32 + byte::<4>(lane % 32)
        }
    }

    /// AVX-512. Bytes come in another order than lanes, as unpacking leaves them.
    #[derive(Debug)]
    pub(in super::super) struct Avx512Unpack;

    impl Vectors<64> for Avx512Unpack {
        #[inline(always)]
        fn sift(masks: &[u64], queen: u64, to: &mut [u64]) -> usize {
            // SAFETY: the caller is compiled for AVX-512.
            unsafe { sift_by_avx512(masks, queen, to) }
        }

        #[inline(always)]
        fn by_bytes(masks: &[u64; 64]) -> [Bytes<64>; 8] {
            // SAFETY: the caller is compiled for AVX-512.
            unsafe { by_bytes_by_avx512(masks) }
        }

        #[inline(always)]
        fn byte(lane: usize) -> usize {
            byte::<8>(lane)
        }
    }

    /// The place of a lane, of eight registers of `M` masks: two masks are in each part of 16 bytes.
    fn byte<const M: usize>(lane: usize) -> usize {
        lane % M / 2 * 16 + lane / M * 2 + lane % 2
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

    /// In each 16 bytes the bytes of two masks, byte by byte, make words of 16 bits; then words of eight registers are
    /// exchanged.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn by_bytes_by_avx2(masks: &[u64; 32]) -> [[u8; 32]; 8] {
        let pairs = _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
        let pairs = _mm256_broadcastsi128_si256(pairs);
        let words: [__m256i; 8] = std::array::from_fn(|at| {
            // SAFETY: four masks.
            let masks = unsafe { _mm256_loadu_si256(masks[4 * at..][..4].as_ptr().cast()) };
            _mm256_shuffle_epi8(masks, pairs)
        });
        // Words of 16 bits: (x0 y0) (x1 y1) ... (x7 y7) in each half.
        let one: [__m256i; 8] = std::array::from_fn(|at| {
            let [a, b] = [words[at / 2 * 2], words[at / 2 * 2 + 1]];
            if at % 2 == 0 { _mm256_unpacklo_epi16(a, b) } else { _mm256_unpackhi_epi16(a, b) }
        });
        // one[2g]: words 0..4 of registers 2g and 2g + 1, interleaved; one[2g + 1]: words 4..8.
        let two: [__m256i; 8] = std::array::from_fn(|at| {
            let [a, b] = [one[at / 4 * 4 + at / 2 % 2], one[at / 4 * 4 + 2 + at / 2 % 2]];
            if at % 2 == 0 { _mm256_unpacklo_epi32(a, b) } else { _mm256_unpackhi_epi32(a, b) }
        });
        // two[4g + 2h + p]: words 4h + 2p and 4h + 2p + 1 of registers 4g..4g + 4.
        std::array::from_fn(|word| {
            let [a, b] = [two[word / 2], two[4 + word / 2]];
            let bytes = if word % 2 == 0 { _mm256_unpacklo_epi64(a, b) } else { _mm256_unpackhi_epi64(a, b) };
            // SAFETY: as many bytes.
            unsafe { std::mem::transmute::<__m256i, [u8; 32]>(bytes) }
        })
    }

    /// As [`by_bytes_by_avx2`], with twice as many lanes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn by_bytes_by_avx512(masks: &[u64; 64]) -> [Bytes<64>; 8] {
        let pairs = _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
        let pairs = _mm512_broadcast_i32x4(pairs);
        let words: [__m512i; 8] = std::array::from_fn(|at| {
            // SAFETY: eight masks.
            let masks = unsafe { _mm512_loadu_si512(masks[8 * at..][..8].as_ptr().cast()) };
            _mm512_shuffle_epi8(masks, pairs)
        });
        let one: [__m512i; 8] = std::array::from_fn(|at| {
            let [a, b] = [words[at / 2 * 2], words[at / 2 * 2 + 1]];
            if at % 2 == 0 { _mm512_unpacklo_epi16(a, b) } else { _mm512_unpackhi_epi16(a, b) }
        });
        let two: [__m512i; 8] = std::array::from_fn(|at| {
            let [a, b] = [one[at / 4 * 4 + at / 2 % 2], one[at / 4 * 4 + 2 + at / 2 % 2]];
            if at % 2 == 0 { _mm512_unpacklo_epi32(a, b) } else { _mm512_unpackhi_epi32(a, b) }
        });
        std::array::from_fn(|word| {
            let [a, b] = [two[word / 2], two[4 + word / 2]];
            let bytes = if word % 2 == 0 { _mm512_unpacklo_epi64(a, b) } else { _mm512_unpackhi_epi64(a, b) };
            // SAFETY: as many bytes.
            Bytes(unsafe { std::mem::transmute::<__m512i, [u8; 64]>(bytes) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_arch = "x86_64")]
    use crate::engine::Kernel;
    use crate::random::Random;

    fn check<const L: usize, T: Vectors<L>>() {
        let mut random = Random::new(1);
        let masks: Vec<u64> = (0..8 * L).map(|_| random.bits()).collect();
        let mut planes = Box::new([Bytes([0; L]); 64]);
        transpose::<T, L>(&masks, 64, &mut planes);
        for (bit, plane) in planes.iter().enumerate() {
            for lane in 0..L {
                let expected =
                    (0..8).fold(0, |byte, k| byte | u8::from(masks[k * L + lane] >> bit & 1 == 1) << k);
                assert_eq!(plane.0[T::byte(lane)], expected, "bit {bit}, lane {lane}");
            }
        }
    }

    fn check_sift<T: Vectors<L>, const L: usize>() {
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
        check_sift::<Plain, 32>();
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") {
            check_sift::<Avx2Unpack, 32>();
        }
        #[cfg(target_arch = "x86_64")]
        if Kernel::Avx512.is_available() {
            check_sift::<Avx512Unpack, 64>();
        }
    }

    #[test]
    fn planes_have_the_bits_of_the_masks() {
        check::<32, Plain>();
        check::<64, Plain>();
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            check::<32, Avx2Unpack>();
            check::<64, Avx2Unpack>();
        }
        #[cfg(target_arch = "x86_64")]
        if Kernel::Avx512.is_available() {
            check::<64, Avx512Unpack>();
        }
    }
}
