//! The search for inner placements, shared by all versions and compiled for each.

#![expect(clippy::inline_always, reason = "compiled anew for each instruction set")]

use super::super::generate::{RunHead, Runs, key};
use super::super::outer::{Inner, Outer, OuterSet, SLACK};
use crate::board::take_lowest;

/// A few words of a bit vector, in a register or so.
pub(super) trait Lanes: Copy {
    /// Number of words, at most [`Runs::BODY_MAX`] and [`SLACK`](super::super::outer::SLACK).
    const WORDS: usize;

    /// All words beyond the first `words` ones, the others zero.
    fn beyond(words: usize) -> Self;

    /// The words at `source`.
    ///
    /// # Safety
    /// All [`WORDS`](Self::WORDS) can be read.
    unsafe fn load(source: *const u64) -> Self;

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
    queens: [u32; 2],
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
                search(&outer.inner, found, chunk, columns & !set, queens, &mut levels, runs);
            }
        }
    }
}

/// Some words of a set's bit vectors.
#[derive(Clone, Copy)]
struct Vectors<'a> {
    inner: &'a Inner,
    /// From the first word of interest of the first vector on, to the end and [`SLACK`] words.
    words: &'a [u64],
    /// From one vector to the next.
    stride: usize,
}

impl Vectors<'_> {
    /// Outer placements hit by one more queen, on `column` of inner row `row`.
    ///
    /// # Safety
    /// The cell is on the board, and `words` ends no earlier than it says.
    #[inline(always)]
    unsafe fn hit<L: Lanes>(self, row: usize, column: usize) -> L {
        let [rising, falling] = self.inner.vectors(row, column);
        debug_assert!(falling * self.stride + L::WORDS <= self.words.len());
        // SAFETY: both vectors are there, and `SLACK` words more than the last one's part that is left.
        unsafe {
            let rising = L::load(self.words.as_ptr().add(rising * self.stride));
            rising.or(L::load(self.words.as_ptr().add(falling * self.stride)))
        }
    }
}

/// All inner placements against some words of a set's bit vectors.
#[inline(always)]
fn search<L: Lanes>(
    inner: &Inner,
    set: OuterSet<'_>,
    chunk: usize,
    free: u32,
    allowed: [u32; 2],
    levels: &mut [Level<L>; 16],
    runs: &mut Runs,
) {
    let words = (set.words - chunk).min(L::WORDS);
    let vectors = Vectors { inner, words: &set.vectors[chunk..], stride: set.words };
    assert!(set.vectors.len() == inner.vectors_len() * set.words + SLACK && L::WORDS <= SLACK, "all vectors");
    assert!(inner.has_columns(free), "columns of the board");
    let start = set.start + narrow::<_, u32>(64 * chunk);
    levels[0] =
        Level { dead: L::beyond(words), mask: 0, free, rising: 0, falling: 0, open: free & allowed[0] };
    let last = inner.rows - 1;
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
        let column = bit.trailing_zeros();
        if row < 2 {
            queens[row] = column;
        }
        let level = &levels[row];
        // SAFETY: `free` has only columns of the board, and the vectors were measured.
        let dead = level.dead.or(unsafe { vectors.hit(row, column as usize) });
        if dead.is_full() {
            continue;
        }
        let mask = level.mask | inner.cell(row, column as usize);
        let free = level.free & !bit;
        let [rising, falling] = [(level.rising | bit) << 1, (level.falling | bit) >> 1];
        let mut open = free & !(rising | falling);
        if row == 0 {
            open &= allowed[1];
        }
        row += 1;
        if row < last {
            levels[row] = Level { dead, mask, free, rising, falling, open };
            continue;
        }
        while let Some(bit) = take_lowest(&mut open) {
            let column = bit.trailing_zeros();
            // SAFETY: as above.
            let dead = dead.or(unsafe { vectors.hit(last, column as usize) });
            if dead.is_full() {
                continue;
            }
            let second = if last == 1 { column } else { queens[1] };
            let mask = mask | inner.cell(last, column as usize);
            let head = RunHead { mask, start, key: key(queens[0], second), words: narrow(words) };
            let room = runs.room();
            head.write(room);
            let placements = dead.store_complement(room.last_chunk_mut().expect("a bit vector"));
            runs.push(head, placements);
        }
        row -= 1;
    }
}

fn narrow<A, B: TryFrom<A>>(value: A) -> B {
    B::try_from(value).ok().expect("columns and words are small, placements fewer than 2^32")
}
