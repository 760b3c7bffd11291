//! The search for inner placements, shared by all versions and compiled for each.

use super::super::generate::{RunHead, Runs};
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
#[expect(clippy::inline_always, reason = "compiled anew for each instruction set")]
pub(super) fn survivors<L: Lanes>(
    outer: &Outer,
    sets: &[(u32, usize)],
    columns: u32,
    first: usize,
    runs: &mut Runs,
) {
    let bit = 1 << first;
    let mut levels = [Level { dead: L::beyond(0), mask: 0, free: 0, rising: 0, falling: 0, open: 0 }; 16];
    for (at, &(set, rank)) in sets.iter().enumerate() {
        if let Some(ahead) = sets.get(at + LOOKAHEAD).and_then(|ahead| outer.set(ahead.1)) {
            L::prefetch(ahead.vectors);
        }
        if set & bit == 0 && let Some(found) = outer.set(rank) {
            let root = Level { free: columns & !(set | bit), ..levels[0] };
            for chunk in (0..found.words).step_by(L::WORDS) {
                search(&outer.inner, found, chunk, first, root, &mut levels, runs);
            }
        }
    }
}

/// All inner placements against some words of a set's bit vectors.
#[inline(always)]
#[expect(clippy::inline_always, reason = "compiled anew for each instruction set")]
fn search<L: Lanes>(
    inner: &Inner,
    set: OuterSet<'_>,
    chunk: usize,
    first: usize,
    root: Level<L>,
    levels: &mut [Level<L>; 16],
    runs: &mut Runs,
) {
    let words = (set.words - chunk).min(L::WORDS);
    let vectors = &set.vectors[chunk..];
    let hit = |row, column| {
        let [rising, falling] = inner.vectors(row, column);
        L::load(&vectors[rising * set.words..]).or(L::load(&vectors[falling * set.words..]))
    };
    let place = |level: Level<L>, row, bit: u32| {
        let column = bit.trailing_zeros() as usize;
        let [rising, falling] = [(level.rising | bit) << 1, (level.falling | bit) >> 1];
        let free = level.free & !bit;
        let dead = level.dead.or(hit(row, column));
        let mask = level.mask | inner.cell(row, column);
        Level { dead, mask, free, rising, falling, open: free & !(rising | falling) }
    };
    levels[1] = place(Level { dead: L::beyond(words), ..root }, 0, 1 << first);
    let start = set.start + narrow::<_, u32>(64 * chunk);
    let mut row = 1;
    let mut second = 0;
    while row > 0 {
        let Some(bit) = take_lowest(&mut levels[row].open) else {
            row -= 1;
            continue;
        };
        if row == 1 {
            second = bit.trailing_zeros();
        }
        let next = place(levels[row], row, bit);
        if next.dead.is_full() {
            continue;
        }
        if row + 1 == inner.rows {
            let head = RunHead { mask: next.mask, start, second: narrow(second), words: narrow(words) };
            runs.push(head, |room| next.dead.store_complement(room));
        } else {
            row += 1;
            levels[row] = next;
        }
    }
}

fn narrow<A, B: TryFrom<A>>(value: A) -> B {
    B::try_from(value).ok().expect("columns and words are small, placements fewer than 2^32")
}
