//! Plain code: the version to read, and what other versions are made of where plain code compiles well.

#![expect(clippy::inline_always, reason = "compiled anew for each instruction set")]

use super::super::generate::{KEYS, Runs};
use super::super::leaf::{Row, TABLE_ROWS, Weighted, Windows};
use super::super::outer::Outer;
use super::lanes::{self, Lanes};
use super::{Costs, Isa};

/// For every machine.
#[derive(Debug)]
pub(super) struct Portable;

implement!(Portable, Isa::Portable, Costs { block: 8000.0, query: 60.0, row: 4.0, window: 8.0, sift: 3.0 });

impl Lanes for [u64; 4] {
    const WORDS: usize = 4;

    #[inline]
    fn beyond(words: usize) -> Self {
        std::array::from_fn(|word| if word < words { 0 } else { u64::MAX })
    }

    #[inline]
    unsafe fn load(source: *const u64) -> Self {
        // SAFETY: the caller's promise.
        unsafe { source.cast::<Self>().read() }
    }

    #[inline]
    fn prefetch(_source: &[u64]) {}

    #[inline]
    fn or(self, other: Self) -> Self {
        std::array::from_fn(|word| self[word] | other[word])
    }

    #[inline]
    fn is_full(self) -> bool {
        self[0] & self[1] & self[2] & self[3] == u64::MAX
    }

    #[inline]
    fn store_complement(self, target: &mut [u64; Runs::BODY_MAX]) -> u32 {
        for (to, from) in target.iter_mut().zip(self) {
            *to = !from;
        }
        self.iter().map(|word| word.count_zeros()).sum()
    }
}

/// The positions of the set bits, ascending.
#[inline(always)]
fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let position = word.trailing_zeros() as usize;
        let more = word != 0;
        word &= word.wrapping_sub(1);
        more.then_some(position)
    })
}

#[inline(always)]
pub(super) fn emit(runs: &Runs, outer: &[u64], at: &mut [usize; KEYS], list: &mut [u64]) {
    for (head, vector) in runs.iter() {
        let from = &outer[head.start as usize..];
        let to = &mut at[usize::from(head.key)];
        for (word, &bits) in vector.iter().enumerate() {
            for position in ones(bits) {
                list[*to] = from[64 * word + position] | head.mask;
                *to += 1;
            }
        }
    }
}

/// Bit t of mask i becomes bit i of word t, and the other way round.
#[inline(always)]
pub(super) fn flip(square: &mut [u64; 64]) {
    let mut width = 32;
    let mut low = 0x0000_0000_ffff_ffff_u64;
    while width > 0 {
        for from in (0..64).step_by(2 * width) {
            for i in from..from + width {
                let swap = (square[i] >> width ^ square[i + width]) & low;
                square[i] ^= swap << width;
                square[i + width] ^= swap;
            }
        }
        width /= 2;
        low ^= low << width;
    }
}

#[inline(always)]
pub(super) fn planes(masks: &[u64], bits: &[u64], planes: &mut [u64]) {
    let blocks = masks.len() / 64;
    for (block, masks) in masks.as_chunks::<64>().0.iter().enumerate() {
        let mut square = *masks;
        flip(&mut square);
        for (plane, &bits) in bits.iter().enumerate() {
            let [x, y] = [bits.trailing_zeros() as usize, 63 - bits.leading_zeros() as usize];
            planes[plane * blocks + block] = square[x] | square[y];
        }
    }
}

#[inline(always)]
pub(super) fn standing(
    dead: [&[u64]; 2],
    tie: Option<&[u64]>,
    untied: &mut [u64],
    tied: &mut [u64],
) -> [usize; 2] {
    let mut counts = [0; 2];
    for word in 0..tied.len() {
        let standing = !(dead[0][word] | dead[1][word]);
        let tie = tie.map_or(u64::MAX, |plane| plane[word]);
        untied[word] = standing & !tie;
        tied[word] = standing & tie;
        counts[0] += untied[word].count_ones() as usize;
        counts[1] += tied[word].count_ones() as usize;
    }
    counts
}

#[inline(always)]
pub(super) fn pick(masks: &[u64], chosen: &[u64], out: &mut [u64]) -> usize {
    let mut end = 0;
    for (&bits, masks) in chosen.iter().zip(masks.as_chunks::<64>().0) {
        for position in ones(bits) {
            out[end] = masks[position];
            end += 1;
        }
    }
    end
}

#[inline(always)]
pub(super) fn sift(masks: &[u64], bits: u64, without: &mut [u64]) -> usize {
    let mut end = 0;
    for &mask in masks {
        without[end] = mask;
        end += usize::from(mask & bits == 0);
    }
    end
}

#[inline(always)]
pub(super) fn part(masks: &[u64], bits: u64, without: &mut [u64], with: &mut [u64]) -> usize {
    let mut ends = [0; 2];
    for &mask in masks {
        without[ends[0]] = mask;
        with[ends[1]] = mask;
        ends[usize::from(mask & bits != 0)] += 1;
    }
    ends[0]
}

#[inline(always)]
pub(super) fn union(masks: &[u64]) -> u64 {
    masks.iter().fold(0, |union, mask| union | mask)
}

#[inline(always)]
pub(super) fn sample(masks: &[u64; 64], counts: &mut [u64; 64]) {
    let mut square = *masks;
    flip(&mut square);
    for (count, plane) in counts.iter_mut().zip(square) {
        *count += u64::from(plane.count_ones());
    }
}

#[inline(always)]
pub(super) fn small(a: Weighted<'_>, b: Weighted<'_>) -> u64 {
    let mut sum = 0;
    for (i, x) in a.masks.iter().enumerate() {
        let fits = |masks: &[u64]| masks.iter().filter(|&&y| x & y == 0).count() as u64;
        sum += fits(b.masks);
        if i < a.untied {
            sum += fits(&b.masks[..b.untied]);
        }
    }
    sum
}

#[inline(always)]
pub(super) fn survivors(
    outer: &Outer,
    sets: &[(u32, usize)],
    columns: u32,
    queens: [u32; 2],
    runs: &mut Runs,
) {
    lanes::survivors::<[u64; 4]>(outer, sets, columns, queens, runs);
}

#[inline(always)]
pub(super) fn index(masks: &[u64], windows: &Windows, indices: &mut [u64]) {
    for (index, &mask) in indices.iter_mut().zip(masks) {
        let byte =
            |window: usize| (mask >> windows.offsets[window]).to_le_bytes()[0] & windows.fields[window];
        *index = u64::from_le_bytes(std::array::from_fn(byte));
    }
}

#[inline(always)]
pub(super) fn transpose(masks: &[u64], planes: &mut [Row; 64]) {
    for (word, masks) in masks.chunks(64).enumerate() {
        let mut square = [0; 64];
        square[..masks.len()].copy_from_slice(masks);
        flip(&mut square);
        for (row, plane) in planes.iter_mut().zip(square) {
            row.0[word] = plane;
        }
    }
}

#[inline(always)]
pub(super) fn tables(windows: &Windows, planes: &[Row; 64], valid: &Row, tables: &mut [Row; TABLE_ROWS]) {
    for (window, table) in tables.as_chunks_mut::<256>().0[..windows.len()].iter_mut().enumerate() {
        table[0] = if window == 0 { *valid } else { Row([u64::MAX; 8]) };
        let mut done = 0;
        for k in (0..8).filter(|k| windows.fields[window] >> k & 1 == 1) {
            let Row(plane) = planes[usize::from(windows.partners[window][k])];
            // All subsets of the bits done, from the largest down.
            let mut index = done;
            loop {
                let Row(from) = table[index];
                table[index | 1 << k] = Row(std::array::from_fn(|word| from[word] & !plane[word]));
                if index == 0 {
                    break;
                }
                index = (index - 1) & done;
            }
            done |= 1 << k;
        }
    }
}

#[inline(always)]
pub(super) fn query(
    tables: &[Row; TABLE_ROWS],
    windows: usize,
    queries: &[u64],
    double: Option<&Row>,
) -> u64 {
    let mut sum = 0;
    for indices in queries {
        let mut left = tables[(indices & 255) as usize].0;
        for window in 1..windows {
            let row = &tables[256 * window + (indices >> (8 * window) & 255) as usize].0;
            left = std::array::from_fn(|word| left[word] & row[word]);
        }
        for (word, left) in left.into_iter().enumerate() {
            sum += u64::from(left.count_ones());
            sum += double.map_or(0, |double| u64::from((left & double.0[word]).count_ones()));
        }
    }
    sum
}
