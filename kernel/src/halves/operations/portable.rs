//! Plain code: the version to read, and what other versions are made of where plain code compiles well.

#![expect(clippy::inline_always, reason = "compiled anew for each instruction set")]
#![expect(clippy::cast_possible_truncation, reason = "squeezed masks have at most 32 bits")]

use super::super::geometry::Exchange;
use super::super::outer::Outer;
use super::super::runs::{KEYS, Runs};
use super::super::windows::{BLOCKS_MAX, Table, WINDOW_ROWS, Weighted, WindowRow, Windows};
use super::lanes::{self, Lanes};
use super::{Costs, Isa, Mask};

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
        let count = vector.iter().map(|bits| bits.count_ones() as usize).sum();
        let at = &mut at[usize::from(head.key)];
        let mut to = list[*at..][..count].iter_mut();
        *at += count;
        for (&bits, from) in vector.iter().zip(from.chunks(64)) {
            for (position, to) in ones(bits).zip(&mut to) {
                *to = from[position] | head.mask;
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
pub(super) fn pick<M: Mask>(masks: &[M], chosen: &[u64], out: &mut [M]) -> usize {
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
pub(super) fn sift<M: Mask>(masks: &[M], bits: u64, without: &mut [M]) -> usize {
    let mut end = 0;
    for &mask in masks {
        without[end] = mask;
        end += usize::from(mask.into() & bits == 0);
    }
    end
}

#[inline(always)]
pub(super) fn part<M: Mask>(masks: &[M], bits: u64, without: &mut [M], with: &mut [M]) -> usize {
    let mut ends = [0; 2];
    for &mask in masks {
        without[ends[0]] = mask;
        with[ends[1]] = mask;
        ends[usize::from(mask.into() & bits != 0)] += 1;
    }
    ends[0]
}

#[inline(always)]
pub(super) fn union<M: Mask>(masks: &[M]) -> u64 {
    masks.iter().fold(0, |union, &mask| union | mask.into())
}

/// At most 64 words of masks, each from as many neighbouring masks as have room in it.
#[inline(always)]
fn words<M: Mask>(masks: &[M]) -> [u64; 64] {
    let mut words = [0; 64];
    for (word, masks) in words.iter_mut().zip(masks.chunks(M::IN_WORD)) {
        let shifts = (0..).step_by(64 / M::IN_WORD);
        *word = masks.iter().zip(shifts).fold(0, |word, (&mask, shift)| word | mask.into() << shift);
    }
    words
}

#[inline(always)]
pub(super) fn sample<M: Mask>(masks: &[M], counts: &mut [u64; 64]) {
    let mut square = words(masks);
    flip(&mut square);
    for (bit, plane) in square.iter().enumerate() {
        counts[bit % (64 / M::IN_WORD)] += u64::from(plane.count_ones());
    }
}

#[inline(always)]
pub(super) fn small<M: Mask>(exchange: Exchange, a: Weighted<'_, M>, b: Weighted<'_, M>) -> u64 {
    let mut sum = 0;
    for (i, &x) in a.masks.iter().enumerate() {
        let x = exchange.of(x.into());
        let fits = |masks: &[M]| masks.iter().filter(|&&y| x & y.into() == 0).count() as u64;
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
pub(super) fn transpose<M: Mask>(masks: &[M], planes: &mut [WindowRow; 64]) {
    let bits = 64 / M::IN_WORD;
    for (square, masks) in masks.chunks(64 * M::IN_WORD).enumerate() {
        let mut words = words(masks);
        flip(&mut words);
        for (bit, plane) in words.into_iter().enumerate() {
            planes[bit % bits].0[square * M::IN_WORD + bit / bits] = plane;
        }
    }
}

#[inline(always)]
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
            // The rows without the next bit, then those with it.
            for (k, &partner) in partners.iter().enumerate() {
                let WindowRow(plane) = planes[usize::from(partner)];
                let (from, to) = table.split_at_mut(1 << k);
                for (to, from) in to.iter_mut().zip(from) {
                    to[block] = WindowRow(std::array::from_fn(|word| from[block].0[word] & !plane[word]));
                }
            }
        }
    }
}

/// Moves the bits of words at some places together, from the lowest on; the method is that of Hacker's Delight,
/// section 7-4.
struct Squeeze {
    live: u64,
    /// In each step the bits that move down by a power of two.
    moving: [u64; 6],
}

impl Squeeze {
    fn new(live: u64) -> Self {
        let mut moving = [0; 6];
        let mut rest = live;
        // Zeros below each bit, a digit a step: their parity, and what is counted in the next.
        let mut below = !live << 1;
        for (step, moving) in moving.iter_mut().enumerate() {
            let parity = (0..6).fold(below, |parity, k| parity ^ parity << (1 << k));
            *moving = parity & rest;
            rest = rest ^ *moving | *moving >> (1 << step);
            below &= !parity;
        }
        Self { live, moving }
    }

    #[inline(always)]
    fn squeeze(&self, word: u64) -> u64 {
        self.moving.iter().enumerate().fold(word & self.live, |word, (step, moving)| {
            let moved = word & moving;
            word ^ moved | moved >> (1 << step)
        })
    }
}

#[inline(always)]
pub(super) fn squeeze(masks: &[u64], live: u64, out: &mut [u32]) {
    let squeeze = Squeeze::new(live);
    for (out, &mask) in out.iter_mut().zip(masks) {
        *out = squeeze.squeeze(mask) as u32;
    }
}

#[inline(always)]
pub(super) fn query<M: Mask>(
    table: &Table,
    windows: &Windows,
    blocks: usize,
    queries: &[M],
    double: Option<&[WindowRow; BLOCKS_MAX]>,
) -> u64 {
    let squeeze = Squeeze::new(windows.live);
    let field = (1 << windows.width) - 1;
    let mut sum = 0;
    for &mask in queries {
        let indices = squeeze.squeeze(mask.into());
        let row = |window: usize| {
            &table[WINDOW_ROWS * window + (indices >> (windows.width as usize * window) & field) as usize]
        };
        for block in 0..blocks {
            let mut left = row(0)[block].0;
            for window in 1..windows.len() {
                let row = &row(window)[block].0;
                left = std::array::from_fn(|word| left[word] & row[word]);
            }
            sum += left.iter().map(|left| u64::from(left.count_ones())).sum::<u64>();
            if let Some(double) = double {
                let twice = left.iter().zip(double[block].0).map(|(left, double)| left & double);
                sum += twice.map(|twice| u64::from(twice.count_ones())).sum::<u64>();
            }
        }
    }
    sum
}
