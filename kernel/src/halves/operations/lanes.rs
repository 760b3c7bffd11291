//! The search for inner placements, shared by all versions and compiled for each.

#![expect(clippy::inline_always, reason = "compiled anew for each instruction set")]

use super::super::generate::{RunHead, Runs, key};
use super::super::outer::{Inner, Outer, OuterSet};
use crate::board::take_lowest;

/// A few words of a bit vector, in a register or so.
pub(super) trait Lanes: Copy {
    /// Number of words, at most [`Runs::BODY_MAX`] and [`SLACK`](super::super::outer::SLACK).
    const WORDS: usize;

    /// All words beyond the first `words` ones, the others zero.
    fn beyond(words: usize) -> Self;

    /// The words at the start of `source`, which has as many.
    fn load(source: &[u64]) -> Self;

    /// Fetches what will be loaded soon.
    fn prefetch(source: &[u64]);

    /// OR.
    fn or(self, other: Self) -> Self;

    /// Whether every bit is set.
    fn is_full(self) -> bool;

    /// Writes the complement to the start of `target` and returns the number of its bits.
    fn store_complement(self, target: &mut [u64; Runs::BODY_MAX]) -> u32;
}

/// A level of the search.
#[derive(Clone, Copy)]
struct Level<L> {
    /// Outer placements hit by the queens placed.
    dead: L,
    mask: u64,
    free: u32,
    rising: u32,
    falling: u32,
    open: u32,
}

/// How many column sets ahead memory is fetched.
const LOOKAHEAD: usize = 2;

/// [`Operations::survivors`](super::Operations::survivors).
#[inline(always)]
pub(super) fn survivors<L: Lanes>(
    outer: &Outer,
    sets: &[(u32, usize)],
    columns: u32,
    firsts: u32,
    runs: &mut Runs,
) {
    let mut levels = [Level { dead: L::beyond(0), mask: 0, free: 0, rising: 0, falling: 0, open: 0 }; 16];
    for (at, &(set, rank)) in sets.iter().enumerate() {
        if let Some(ahead) = sets.get(at + LOOKAHEAD).and_then(|ahead| outer.set(ahead.1)) {
            L::prefetch(ahead.vectors);
            L::prefetch(ahead.masks);
        }
        if let Some(found) = outer.set(rank) {
            for chunk in (0..found.words).step_by(L::WORDS) {
                search(&outer.inner, found, chunk, columns & !set, firsts, &mut levels, runs);
            }
        }
    }
}

/// Some words of a set's bit vectors.
#[derive(Clone, Copy)]
struct Vectors<'a> {
    inner: &'a Inner,
    /// From the first word of interest of the first vector on.
    words: &'a [u64],
    /// From one vector to the next.
    stride: usize,
}

/// A level with one more queen, on `bit` of `row`.
#[inline(always)]
fn place<L: Lanes>(level: &Level<L>, vectors: Vectors<'_>, row: usize, bit: u32) -> Level<L> {
    let column = bit.trailing_zeros() as usize;
    let [rising, falling] = vectors.inner.vectors(row, column);
    let rising_hit = L::load(&vectors.words[rising * vectors.stride..]);
    let falling_hit = L::load(&vectors.words[falling * vectors.stride..]);
    let dead = level.dead.or(rising_hit).or(falling_hit);
    let mask = level.mask | vectors.inner.cell(row, column);
    let [rising, falling] = [(level.rising | bit) << 1, (level.falling | bit) >> 1];
    let free = level.free & !bit;
    Level { dead, mask, free, rising, falling, open: free & !(rising | falling) }
}

/// All inner placements against some words of a set's bit vectors.
#[inline(always)]
fn search<L: Lanes>(
    inner: &Inner,
    set: OuterSet<'_>,
    chunk: usize,
    free: u32,
    firsts: u32,
    levels: &mut [Level<L>; 16],
    runs: &mut Runs,
) {
    let words = (set.words - chunk).min(L::WORDS);
    let vectors = Vectors { inner, words: &set.vectors[chunk..], stride: set.words };
    let start = set.start + narrow::<_, u32>(64 * chunk);
    levels[0] = Level { dead: L::beyond(words), mask: 0, free, rising: 0, falling: 0, open: free & firsts };
    let mut row = 0;
    let mut queens = [0; 2];
    loop {
        let Some(bit) = take_lowest(&mut levels[row].open) else {
            if row == 0 {
                return;
            }
            row -= 1;
            continue;
        };
        if row < 2 {
            queens[row] = bit.trailing_zeros();
        }
        let next = place(&levels[row], vectors, row, bit);
        if next.dead.is_full() {
            continue;
        }
        if row + 1 == inner.rows {
            let placements = next.dead.store_complement(runs.room());
            let head = RunHead { mask: next.mask, start, key: key(queens[0], queens[1]), words: narrow(words) };
            runs.push(head, placements);
        } else {
            row += 1;
            levels[row] = next;
        }
    }
}

fn narrow<A, B: TryFrom<A>>(value: A) -> B {
    B::try_from(value).ok().expect("columns and words are small, placements fewer than 2^32")
}
