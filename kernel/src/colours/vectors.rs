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
    fn free(masks: &[u64], queen: u64, to: &mut [u64]) -> usize;

    /// Makes bit planes: bit k of a lane's byte of plane b is bit b of the k-th of its eight masks. `masks` has the
    /// first of each lane, then the second of each, and so on. Planes from `bits` on are left alone.
    fn transpose(masks: &[u64], bits: u32, planes: &mut [Bytes<L>; 64]);

    /// The place of a lane among the bytes.
    fn byte(lane: usize) -> usize;
}

/// Masks that are written behind those that [`Vectors::free`] keeps.
pub(super) const BEHIND: usize = 4;

/// Plain code.
#[derive(Debug)]
pub(super) struct Plain;

impl<const L: usize> Vectors<L> for Plain {
    #[inline(always)]
    fn free(masks: &[u64], queen: u64, to: &mut [u64]) -> usize {
        let mut found = 0;
        for &mask in masks {
            to[found] = mask;
            found += usize::from(mask & queen == 0);
        }
        found
    }

    #[inline]
    fn transpose(masks: &[u64], bits: u32, planes: &mut [Bytes<L>; 64]) {
        for lane in 0..L {
            for byte in 0..bits.div_ceil(8) as usize {
                let mut square = (0..8)
                    .fold(0u64, |square, k| square | (masks[k * L + lane] >> (8 * byte) & 255) << (8 * k));
                // Exchange rows and columns of eight bits by eight (Hacker's Delight, 7-3).
                for (shift, half) in
                    [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0)]
                {
                    let moved = (square ^ square >> shift) & half;
                    square ^= moved ^ moved << shift;
                }
                for (bit, row) in square.to_le_bytes().into_iter().enumerate() {
                    planes[8 * byte + bit].0[lane] = row;
                }
            }
        }
    }

    fn byte(lane: usize) -> usize {
        lane
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use by_avx2::Avx2Unpack;

#[cfg(target_arch = "x86_64")]
mod by_avx2 {
    #![allow(clippy::wildcard_imports, reason = "intrinsics; the lint is off in tests")]

    use std::arch::x86_64::*;
    use std::mem::MaybeUninit;

    use super::{BEHIND, Bytes, Vectors};

    /// Lanes of a register.
    const WIDTH: usize = 32;

    /// AVX2. Bytes come in another order than lanes, as unpacking leaves them.
    #[derive(Debug)]
    pub(in super::super) struct Avx2Unpack;

    impl<const L: usize> Vectors<L> for Avx2Unpack {
        #[inline(always)]
        fn free(masks: &[u64], queen: u64, to: &mut [u64]) -> usize {
            assert!(to.len() >= masks.len() + BEHIND);
            // SAFETY: the caller is compiled for AVX2, and the slices are as long as asserted.
            unsafe { free(masks, queen, to) }
        }

        #[inline(always)]
        fn transpose(masks: &[u64], bits: u32, planes: &mut [Bytes<L>; 64]) {
            assert!(masks.len() == 8 * L && L.is_multiple_of(WIDTH) && bits <= 64);
            // SAFETY: the caller is compiled for AVX2, and the slices are as long as asserted.
            unsafe { transpose::<L>(masks, bits, planes) }
        }

        #[inline(always)]
        fn byte(lane: usize) -> usize {
            let (register, lane) = (lane / WIDTH, lane % WIDTH);
            // Four masks a register and eight registers: of each, two masks are in the lower half.
            let (load, place) = (lane / 4, lane % 4);
            let (half, odd) = (place / 2, place % 2);
            register * WIDTH + half * 16 + 2 * load + odd
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
    unsafe fn free(masks: &[u64], queen: u64, to: &mut [u64]) -> usize {
        let queens = _mm256_set1_epi64x(queen.cast_signed());
        let (fours, rest) = masks.as_chunks::<4>();
        let mut found = 0;
        for four in fours {
            // SAFETY: four masks, and `found` is at most the number of masks before.
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
    #[target_feature(enable = "avx2")]
    unsafe fn transpose<const L: usize>(masks: &[u64], bits: u32, planes: &mut [Bytes<L>; 64]) {
        for register in 0..L / WIDTH {
            let mut bytes = [[MaybeUninit::<__m256i>::uninit(); 8]; 8];
            for k in 0..8 {
                let from = &masks[k * L + register * WIDTH..][..WIDTH];
                // SAFETY: 32 masks are there.
                let words = by_bytes(|at| unsafe { _mm256_loadu_si256(from.as_ptr().add(4 * at).cast()) });
                for (bytes, word) in bytes.iter_mut().zip(words) {
                    bytes[k].write(word);
                }
            }
            for byte in 0..bits.div_ceil(8) as usize {
                // SAFETY: all have been written.
                let rows = by_bits(bytes[byte].map(|bytes| unsafe { bytes.assume_init() }));
                for (bit, row) in rows.into_iter().enumerate() {
                    let to = &mut planes[8 * byte + bit].0[register * WIDTH..][..WIDTH];
                    // SAFETY: 32 bytes are there.
                    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), row) };
                }
            }
        }
    }

    /// Eight registers of four masks as eight registers of bytes: all lowest bytes, and so on.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn by_bytes(masks: impl Fn(usize) -> __m256i) -> [__m256i; 8] {
        // In each half of 16 bytes: the bytes of two masks each, byte by byte, two registers together.
        let zip = |at: usize| {
            // Bytes 0..8 of mask x and y become x0 y0 x1 y1 ...
            let x = masks(at);
            _mm256_shuffle_epi8(x, pairs())
        };
        let words: [__m256i; 8] = std::array::from_fn(zip);
        // Words of 16 bits: (x0 y0) (x1 y1) ... (x7 y7) in each half. An 8 by 8 exchange of words.
        let one: [__m256i; 8] = std::array::from_fn(|i| {
            let (a, b) = (words[i / 2 * 2], words[i / 2 * 2 + 1]);
            if i % 2 == 0 { _mm256_unpacklo_epi16(a, b) } else { _mm256_unpackhi_epi16(a, b) }
        });
        // one[2g]: words 0..4 of registers 2g and 2g + 1, interleaved; one[2g + 1]: words 4..8.
        let two: [__m256i; 8] = std::array::from_fn(|i| {
            let (group, high, part) = (i / 4, i / 2 % 2, i % 2);
            let (a, b) = (one[group * 4 + high], one[group * 4 + 2 + high]);
            if part == 0 { _mm256_unpacklo_epi32(a, b) } else { _mm256_unpackhi_epi32(a, b) }
        });
        // two[4g + 2h + p]: words 4h + 2p and 4h + 2p + 1 of registers 4g..4g + 4.
        std::array::from_fn(|word| {
            let (high, part, last) = (word / 4, word / 2 % 2, word % 2);
            let (a, b) = (two[2 * high + part], two[4 + 2 * high + part]);
            if last == 0 { _mm256_unpacklo_epi64(a, b) } else { _mm256_unpackhi_epi64(a, b) }
        })
    }

    /// Interleaves the bytes of the two masks in each half.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn pairs() -> __m256i {
        let half = _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
        _mm256_broadcastsi128_si256(half)
    }

    /// Exchanges bits: bit k of a byte of result b is bit b of that byte of register k.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn by_bits(mut x: [__m256i; 8]) -> [__m256i; 8] {
        macro_rules! exchange {
            ($distance:literal, $shift:literal, $mask:literal) => {
                let mask = _mm256_set1_epi8($mask);
                for low in 0..8 {
                    if low & $distance == 0 {
                        let high = low + $distance;
                        let moved = _mm256_and_si256(
                            _mm256_xor_si256(_mm256_srli_epi16::<$shift>(x[low]), x[high]),
                            mask,
                        );
                        x[high] = _mm256_xor_si256(x[high], moved);
                        x[low] = _mm256_xor_si256(x[low], _mm256_slli_epi16::<$shift>(moved));
                    }
                }
            };
        }
        exchange!(4, 4, 0x0f);
        exchange!(2, 2, 0x33);
        exchange!(1, 1, 0x55);
        x
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn check<const L: usize, T: Vectors<L>>() {
        let mut random = Random::new(1);
        let masks: Vec<u64> = (0..8 * L).map(|_| random.bits()).collect();
        let mut planes = Box::new([Bytes([0; L]); 64]);
        T::transpose(&masks, 64, &mut planes);
        for (bit, plane) in planes.iter().enumerate() {
            for lane in 0..L {
                let expected =
                    (0..8).fold(0, |byte, k| byte | u8::from(masks[k * L + lane] >> bit & 1 == 1) << k);
                assert_eq!(plane.0[T::byte(lane)], expected, "bit {bit}, lane {lane}");
            }
        }
    }

    fn check_free<T: Vectors<32>>() {
        let mut random = Random::new(2);
        for length in 0..40 {
            let masks: Vec<u64> = (0..length).map(|_| random.bits() & random.bits()).collect();
            let queen = 1 << (random.bits() % 64) | 1 << (random.bits() % 64);
            let mut to = vec![0; length + BEHIND];
            let found = T::free(&masks, queen, &mut to);
            let expected: Vec<u64> = masks.into_iter().filter(|mask| mask & queen == 0).collect();
            assert_eq!(to[..found], expected);
        }
    }

    #[test]
    fn attacked_masks_are_left_out() {
        check_free::<Plain>();
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") {
            check_free::<Avx2Unpack>();
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
    }
}
