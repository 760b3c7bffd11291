//! Filters and bit planes, which each instruction set has in its own way.

#![expect(clippy::inline_always, reason = "compiled anew for each instruction set")]

/// A byte a lane.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Bytes<const L: usize>(pub(super) [u8; L]);

/// What an instruction set has in its own way, for `L` lanes.
pub(super) trait Instructions<const L: usize> {
    /// Masks that are filtered at once, at most 8.
    const AT_ONCE: usize;

    /// Writes those of `masks` that share no bit with `queen` to `to`, in order, and returns their number. More masks,
    /// without meaning, may be written behind: `to` is longer by [`BEHIND`]. For each [`AT_ONCE`](Self::AT_ONCE) masks, and
    /// for those that remain, `kept` has which of them are kept, a bit each in the lowest byte, and above it how many are
    /// kept before them.
    fn sift(masks: &[u64], queen: u64, to: &mut [u64], kept: &mut [u64]) -> u32;

    /// Makes bit planes: bit k of a lane's byte of plane b is bit b of the k-th of eight masks, which begin at the lane's
    /// place. Planes from `bits` on have no meaning.
    fn transpose(masks: &[u64], places: &[usize; L], bits: u32, planes: &mut [Bytes<L>; 64]);
}

/// Masks that are written behind those that [`Instructions::sift`] keeps.
pub(super) const BEHIND: usize = 8;

/// How many of the first `count` masks [`Instructions::sift`] has kept.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "at most `count`")]
pub(super) fn kept_of<T: Instructions<L>, const L: usize>(kept: &[u64], count: u32) -> u32 {
    let (number, more) = (count as usize / T::AT_ONCE, count as usize % T::AT_ONCE);
    (kept[number] >> 8) as u32 + (kept[number] & ((1 << more) - 1)).count_ones()
}

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

/// [`Instructions::transpose`] for `W` words of eight lanes; `turn` makes the k-th of each word's rows the k-th row.
#[inline(always)]
fn transpose<const L: usize, const W: usize>(
    masks: &[u64],
    places: &[usize; L],
    bits: u32,
    planes: &mut [Bytes<L>; 64],
    turn: impl Fn(&[[u64; 8]; W]) -> [[u64; W]; 8],
) {
    // Of the masks' bytes and each word's lanes, for each of the eight masks the byte of all eight lanes.
    let mut bytes = [[[0; 8]; W]; 8];
    for (word, places) in places.as_chunks::<8>().0.iter().enumerate() {
        let mut rows = [[0; 8]; 8];
        for (row, place) in rows.iter_mut().zip(places) {
            row.copy_from_slice(&masks[*place..place + 8]);
        }
        for (byte, row) in exchange(rows, 8).into_iter().enumerate() {
            bytes[byte][word] = row;
        }
    }
    let planes = planes.chunks_exact_mut(8).take(bits.div_ceil(8) as usize);
    for (planes, words) in planes.zip(&bytes) {
        for (plane, row) in planes.iter_mut().zip(exchange(turn(words), 1)) {
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

impl<const L: usize> Instructions<L> for Plain {
    const AT_ONCE: usize = 1;

    #[inline(always)]
    fn sift(masks: &[u64], queen: u64, to: &mut [u64], kept: &mut [u64]) -> u32 {
        let mut found = 0;
        for (&mask, kept) in masks.iter().zip(&mut *kept) {
            to[found as usize] = mask;
            *kept = u64::from(found) << 8;
            found += u32::from(mask & queen == 0);
        }
        kept[masks.len()] = u64::from(found) << 8;
        found
    }

    #[inline(always)]
    fn transpose(masks: &[u64], places: &[usize; L], bits: u32, planes: &mut [Bytes<L>; 64]) {
        match L {
            32 => transpose::<L, 4>(masks, places, bits, planes, turn),
            64 => transpose::<L, 8>(masks, places, bits, planes, turn),
            _ => unreachable!("32 or 64 lanes"),
        }
    }
}

/// Rows become words.
#[inline(always)]
fn turn<const W: usize>(words: &[[u64; 8]; W]) -> [[u64; W]; 8] {
    let mut rows = [[0; W]; 8];
    for (at, row) in rows.iter_mut().enumerate() {
        for (to, word) in row.iter_mut().zip(words) {
            *to = word[at];
        }
    }
    rows
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    #![allow(clippy::wildcard_imports, reason = "intrinsics; the lint is off in tests")]

    use std::arch::x86_64::*;

    use super::{BEHIND, Bytes, Instructions, exchange, transpose};

    #[derive(Debug)]
    pub(in super::super) struct Avx2;

    impl Instructions<32> for Avx2 {
        const AT_ONCE: usize = 4;

        #[inline(always)]
        fn sift(masks: &[u64], queen: u64, to: &mut [u64], kept: &mut [u64]) -> u32 {
            // SAFETY: the caller is compiled for AVX2.
            unsafe { sift_by_avx2(masks, queen, to, kept) }
        }

        #[inline(always)]
        fn transpose(masks: &[u64], places: &[usize; 32], bits: u32, planes: &mut [Bytes<32>; 64]) {
            // SAFETY: the caller is compiled for AVX2.
            transpose(masks, places, bits, planes, |words| unsafe { turn(words) });
        }
    }

    #[derive(Debug)]
    pub(in super::super) struct Avx512;

    impl Instructions<64> for Avx512 {
        const AT_ONCE: usize = 8;

        #[inline(always)]
        fn sift(masks: &[u64], queen: u64, to: &mut [u64], kept: &mut [u64]) -> u32 {
            // SAFETY: the caller is compiled for AVX-512.
            unsafe { sift_by_avx512(masks, queen, to, kept) }
        }

        #[inline(always)]
        fn transpose(masks: &[u64], places: &[usize; 64], bits: u32, planes: &mut [Bytes<64>; 64]) {
            // SAFETY: the caller is compiled for AVX-512.
            unsafe { spread(masks, places, planes) };
            for planes in planes.chunks_exact_mut(8).take(bits.div_ceil(8) as usize) {
                let mut rows = [[0; 8]; 8];
                for (row, plane) in rows.iter_mut().zip(&*planes) {
                    for (word, bytes) in row.iter_mut().zip(plane.0.as_chunks().0) {
                        *word = u64::from_le_bytes(*bytes);
                    }
                }
                for (plane, row) in planes.iter_mut().zip(exchange(rows, 8)) {
                    plane.set(row);
                }
            }
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
    fn sift_by_avx2(masks: &[u64], queen: u64, to: &mut [u64], kept: &mut [u64]) -> u32 {
        assert!(to.len() >= masks.len() + BEHIND);
        let queens = _mm256_set1_epi64x(queen.cast_signed());
        let (fours, rest) = masks.as_chunks::<4>();
        let (kept, last) = kept[..=fours.len()].split_at_mut(fours.len());
        let mut found = 0;
        for (four, kept) in fours.iter().zip(kept) {
            // SAFETY: four masks; and `found` is at most the number of masks before.
            unsafe {
                let masks = _mm256_loadu_si256(four.as_ptr().cast());
                let free = _mm256_cmpeq_epi64(_mm256_and_si256(masks, queens), _mm256_setzero_si256());
                let free = _mm256_movemask_pd(_mm256_castsi256_pd(free)).cast_unsigned();
                let order = _mm256_loadu_si256(KEPT[free as usize].as_ptr().cast());
                let free_masks = _mm256_permutevar8x32_epi32(masks, order);
                _mm256_storeu_si256(to.as_mut_ptr().add(found as usize).cast(), free_masks);
                *kept = u64::from(found) << 8 | u64::from(free);
                found += free.count_ones();
            }
        }
        last[0] = u64::from(found) << 8;
        for (at, &mask) in rest.iter().enumerate() {
            to[found as usize] = mask;
            let free = mask & queen == 0;
            last[0] |= u64::from(free) << at;
            found += u32::from(free);
        }
        found
    }

    /// Rows become words.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn turn(words: &[[u64; 8]; 4]) -> [[u64; 4]; 8] {
        let mut rows = [[0; 4]; 8];
        for (at, rows) in rows.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            // SAFETY: two words each, and then four.
            let two =
                |word: usize| unsafe { _mm_loadu_si128(words[word][2 * at..2 * at + 2].as_ptr().cast()) };
            let (even, odd) = (_mm256_set_m128i(two(2), two(0)), _mm256_set_m128i(two(3), two(1)));
            let pairs = [_mm256_unpacklo_epi64(even, odd), _mm256_unpackhi_epi64(even, odd)];
            for (row, pair) in rows.iter_mut().zip(pairs) {
                // SAFETY: four words.
                unsafe { _mm256_storeu_si256(row.as_mut_ptr().cast(), pair) };
            }
        }
        rows
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,popcnt")]
    fn sift_by_avx512(masks: &[u64], queen: u64, to: &mut [u64], kept: &mut [u64]) -> u32 {
        assert!(to.len() >= masks.len() + BEHIND);
        let queens = _mm512_set1_epi64(queen.cast_signed());
        let (eights, rest) = masks.as_chunks::<8>();
        let (kept, last) = kept[..=eights.len()].split_at_mut(eights.len());
        let mut found = 0;
        let mut keep = |masks, among, kept: &mut u64| {
            let free = _mm512_mask_testn_epi64_mask(among, masks, queens);
            let free_masks = _mm512_maskz_compress_epi64(free, masks);
            // SAFETY: `found` is at most the number of masks before.
            unsafe { _mm512_storeu_si512(to.as_mut_ptr().add(found as usize).cast(), free_masks) };
            *kept = u64::from(found) << 8 | u64::from(free);
            found += free.count_ones();
        };
        for (eight, kept) in eights.iter().zip(kept) {
            // SAFETY: eight masks.
            keep(unsafe { _mm512_loadu_si512(eight.as_ptr().cast()) }, u8::MAX, kept);
        }
        let among = (1 << rest.len()) - 1;
        // SAFETY: no more masks than there are.
        keep(unsafe { _mm512_maskz_loadu_epi64(among, rest.as_ptr().cast()) }, among, &mut last[0]);
        found
    }

    /// Makes planes whose lanes are still in the wrong place: plane 8 b + r has in word w, byte c what byte r of word w of plane
    /// 8 b + c is to have.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
    #[expect(clippy::cast_possible_truncation, reason = "numbers below 64")]
    fn spread(masks: &[u64], places: &[usize; 64], planes: &mut [Bytes<64>; 64]) {
        // Byte b of the k-th mask becomes byte 7 - k of word b.
        const BYTES: [u8; 64] = {
            let mut from = [0; 64];
            let mut at = 0;
            while at < 64 {
                from[at] = (8 * (7 - at % 8) + at / 8) as u8;
                at += 1;
            }
            from
        };
        // SAFETY: 64 bytes.
        let bytes = unsafe { _mm512_loadu_si512(BYTES.as_ptr().cast()) };
        // Bit c of byte c.
        let bits = _mm512_set1_epi64(0x8040_2010_0804_0201_u64.cast_signed());
        for byte in 0..8 {
            let lane = |word: usize| {
                let masks: &[u64; 8] = masks[places[8 * word + byte]..].first_chunk().expect("eight masks");
                // SAFETY: eight masks.
                let masks = unsafe { _mm512_loadu_si512(masks.as_ptr().cast()) };
                // Bit k of byte c of word b is bit 8 b + c of the k-th mask.
                _mm512_gf2p8affine_epi64_epi8::<0>(bits, _mm512_permutexvar_epi8(bytes, masks))
            };
            // Eight words of eight lanes become eight lanes of eight words.
            let pairs = |word: usize| {
                let (one, other) = (lane(word), lane(word + 1));
                [_mm512_unpacklo_epi64(one, other), _mm512_unpackhi_epi64(one, other)]
            };
            let [one, two, three, four] = [pairs(0), pairs(2), pairs(4), pairs(6)];
            for odd in 0..2 {
                let first = _mm512_shuffle_i64x2::<0x88>(one[odd], two[odd]);
                let second = _mm512_shuffle_i64x2::<0xdd>(one[odd], two[odd]);
                let third = _mm512_shuffle_i64x2::<0x88>(three[odd], four[odd]);
                let fourth = _mm512_shuffle_i64x2::<0xdd>(three[odd], four[odd]);
                let words = [
                    _mm512_shuffle_i64x2::<0x88>(first, third),
                    _mm512_shuffle_i64x2::<0x88>(second, fourth),
                    _mm512_shuffle_i64x2::<0xdd>(first, third),
                    _mm512_shuffle_i64x2::<0xdd>(second, fourth),
                ];
                for (number, word) in words.into_iter().enumerate() {
                    let plane = &mut planes[8 * (2 * number + odd) + byte];
                    // SAFETY: 64 bytes.
                    unsafe { _mm512_store_si512(plane.0.as_mut_ptr().cast(), word) };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_arch = "x86_64")]
    use crate::engine::Kernel;
    use crate::random::Random;

    fn check<T: Instructions<L>, const L: usize>() {
        let mut random = Random::new(1);
        let masks: Vec<u64> = (0..8 * L).map(|_| random.bits()).collect();
        let mut planes = Box::new([Bytes([0; L]); 64]);
        // Lanes may share masks.
        let places: [usize; L] = std::array::from_fn(|_| random.below(7 * L as u64 + 1).try_into().unwrap());
        T::transpose(&masks, &places, 64, &mut planes);
        for (bit, plane) in planes.iter().enumerate() {
            for lane in 0..L {
                let expected =
                    (0..8).fold(0, |byte, k| byte | u8::from(masks[places[lane] + k] >> bit & 1 == 1) << k);
                assert_eq!(plane.0[lane], expected, "bit {bit}, lane {lane}");
            }
        }
    }

    fn check_sift<T: Instructions<L>, const L: usize>() {
        let mut random = Random::new(2);
        for length in 0..40 {
            let masks: Vec<u64> = (0..length).map(|_| random.bits() & random.bits()).collect();
            let queen = 1 << (random.bits() % 64) | 1 << (random.bits() % 64);
            let (mut to, mut kept) = (vec![0; length + BEHIND], vec![0; length + 1]);
            let found = T::sift(&masks, queen, &mut to, &mut kept);
            let is_free = |mask: &u64| mask & queen == 0;
            for (count, at) in (0..=length).zip(0..) {
                let expected = masks[..count].iter().filter(|mask| is_free(mask)).count();
                assert_eq!(kept_of::<T, L>(&kept, at) as usize, expected, "of {at} of {length}");
            }
            let expected: Vec<u64> = masks.into_iter().filter(is_free).collect();
            assert_eq!(to[..found as usize], expected);
        }
    }

    #[test]
    fn attacked_masks_are_left_out() {
        check_sift::<Plain, 32>();
        #[cfg(target_arch = "x86_64")]
        if Kernel::Avx2.is_available() {
            check_sift::<Avx2, 32>();
        }
        #[cfg(target_arch = "x86_64")]
        if Kernel::Avx512.is_available() {
            check_sift::<Avx512, 64>();
        }
    }

    #[test]
    fn planes_have_the_bits_of_the_masks() {
        check::<Plain, 32>();
        check::<Plain, 64>();
        #[cfg(target_arch = "x86_64")]
        if Kernel::Avx2.is_available() {
            check::<Avx2, 32>();
        }
        #[cfg(target_arch = "x86_64")]
        if Kernel::Avx512.is_available() {
            check::<Avx512, 64>();
        }
    }
}
