//! The search for inner placements, shared by all versions and compiled for each.

#![expect(clippy::inline_always, reason = "compiled anew for each instruction set")]

use super::super::outer::{Inner, Outer, OuterSet, SLACK};
use super::super::runs::{RunHead, Runs, key};
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

    /// OR.
    fn or(self, other: Self) -> Self;

    /// Whether every bit is set.
    fn is_full(self) -> bool;

    /// Writes the complement to the start of `target` and returns the number of its bits.
    fn store_complement(self, target: &mut [u64; Runs::BODY_MAX]) -> u32;
}

/// A level of the search.
#[derive(Clone, Copy)]
struct SearchLevel<L> {
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
    if outer.inner.rows == 2 {
        survivors_with::<L, 2>(outer, sets, columns, queens, runs);
    } else {
        survivors_with::<L, 3>(outer, sets, columns, queens, runs);
    }
}

/// The same, where the queens of the last `LAST` rows are placed at once.
#[inline(always)]
fn survivors_with<L: Lanes, const LAST: usize>(
    outer: &Outer,
    sets: &[(u32, usize)],
    columns: u32,
    queens: [u32; 2],
    runs: &mut Runs,
) {
    for (at, &(set, rank)) in sets.iter().enumerate() {
        if let Some(ahead) = sets.get(at + LOOKAHEAD).and_then(|ahead| outer.set(ahead.1)) {
            prefetch(ahead.vectors);
            prefetch(ahead.masks);
        }
        if let Some(found) = outer.set(rank) {
            for chunk in (0..found.words).step_by(L::WORDS) {
                Search::new::<L>(&outer.inner, found, chunk, queens).all::<L, LAST>(columns & !set, runs);
            }
        }
    }
}

/// Fetches what will be loaded soon, where that is known to pay.
#[inline(always)]
fn prefetch(source: &[u64]) {
    #[cfg(target_arch = "x86_64")]
    for line in source.chunks(8) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch touches nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = source;
}

/// The search for all inner placements against some words of a set's bit vectors.
#[derive(Clone, Copy)]
struct Search<'a> {
    inner: &'a Inner,
    /// From the first word of interest of the first vector on, to the end and [`SLACK`] words.
    vectors: &'a [u64],
    /// From one vector to the next.
    stride: usize,
    /// Words of interest.
    words: usize,
    /// Number of the first outer placement of interest.
    start: u32,
    /// Columns allowed in rows 0 and 1.
    queens: [u32; 2],
}

impl<'a> Search<'a> {
    #[inline(always)]
    fn new<L: Lanes>(inner: &'a Inner, set: OuterSet<'a>, chunk: usize, queens: [u32; 2]) -> Self {
        assert!(set.vectors.len() == inner.vectors_len() * set.words + SLACK, "all vectors");
        assert!(L::WORDS <= SLACK && chunk < set.words, "words of the vectors");
        Self {
            inner,
            vectors: &set.vectors[chunk..],
            stride: set.words,
            words: (set.words - chunk).min(L::WORDS),
            start: set.start + narrow::<_, u32>(64 * chunk),
            queens,
        }
    }

    /// Outer placements hit by one more queen, on `column` of inner row `row`.
    ///
    /// # Safety
    /// The cell is on the board.
    #[inline(always)]
    unsafe fn hit<L: Lanes>(self, row: usize, column: usize) -> L {
        let [rising, falling] = self.inner.vectors(row, column);
        debug_assert!(falling * self.stride + L::WORDS <= self.vectors.len());
        // SAFETY: both vectors are there, and `SLACK` words more than the last one's part that is left.
        unsafe {
            let rising = L::load(self.vectors.as_ptr().add(rising * self.stride));
            rising.or(L::load(self.vectors.as_ptr().add(falling * self.stride)))
        }
    }

    /// The columns of `free` allowed in a row, as far as the row decides it.
    #[inline(always)]
    fn allowed(self, row: usize, free: u32) -> u32 {
        if row < 2 { free & self.queens[row] } else { free }
    }

    /// All inner placements on the columns `free`.
    #[inline(always)]
    fn all<L: Lanes, const LAST: usize>(self, free: u32, runs: &mut Runs) {
        assert!(self.inner.has_columns(free), "columns of the board");
        let first_last = self.inner.rows - LAST;
        let open = self.allowed(0, free);
        let root = SearchLevel { dead: L::beyond(self.words), mask: 0, free, rising: 0, falling: 0, open };
        let mut queens = [0; 2];
        if first_last == 0 {
            // SAFETY: `free` has only columns of the board.
            return unsafe { self.last::<L, LAST>(&root, queens, runs) };
        }
        let mut levels = [root; 16];
        let mut row = 0;
        loop {
            let level = &mut levels[row];
            let Some(bit) = take_lowest(&mut level.open) else {
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
            // SAFETY: `free` has only columns of the board.
            let dead = level.dead.or(unsafe { self.hit(row, column as usize) });
            if dead.is_full() {
                continue;
            }
            let mask = level.mask | self.inner.cell(row, column as usize);
            let free = level.free & !bit;
            let [rising, falling] = [(level.rising | bit) << 1, (level.falling | bit) >> 1];
            let open = self.allowed(row + 1, free & !(rising | falling));
            let next = SearchLevel { dead, mask, free, rising, falling, open };
            if row + 1 == first_last {
                // SAFETY: as above.
                unsafe { self.last::<L, LAST>(&next, queens, runs) };
            } else {
                row += 1;
                levels[row] = next;
            }
        }
    }

    /// The last `LAST` rows: all orders of the columns that are left. `queens` are the columns used in rows 0 and 1.
    ///
    /// # Safety
    /// `level.free` has only columns of the board.
    #[inline(always)]
    unsafe fn last<L: Lanes, const LAST: usize>(
        self,
        level: &SearchLevel<L>,
        queens: [u32; 2],
        runs: &mut Runs,
    ) {
        let first = self.inner.rows - LAST;
        let mut rest = level.free;
        let columns: [u32; LAST] = std::array::from_fn(|_| {
            let column = rest.trailing_zeros() % 32;
            rest &= rest.wrapping_sub(1);
            column
        });
        let gap = |k: usize| if k < LAST { (columns[k] - columns[k - 1]).min(3) as usize } else { 3 };
        let mut orders = ORDERS_APART[gap(1)][gap(2)] & ((1 << (LAST * (LAST - 1))) - 1);
        for (row, orders_by) in ORDERS_BY_ROW.iter().enumerate().take(LAST) {
            let attacked = level.rising << row | level.falling >> row;
            let open = self.allowed(first + row, !attacked);
            let choice = (0..LAST).fold(0, |choice, k| choice | (open >> columns[k] & 1) << k);
            orders &= orders_by[choice as usize];
        }
        while orders != 0 {
            let order = &ORDERS[orders.trailing_zeros() as usize];
            orders &= orders - 1;
            let column = |row: usize| columns[order[row]];
            // Loops, since closures in iterators are not compiled for the instruction set.
            let mut dead = level.dead;
            for row in 0..LAST {
                // SAFETY: the caller's promise.
                dead = dead.or(unsafe { self.hit(first + row, column(row) as usize) });
            }
            if dead.is_full() {
                continue;
            }
            let mask = (0..LAST)
                .fold(level.mask, |mask, row| mask | self.inner.cell(first + row, column(row) as usize));
            let queen = |row: usize| if row < first { queens[row] } else { column(row - first) };
            let head =
                RunHead { mask, start: self.start, key: key(queen(0), queen(1)), words: narrow(self.words) };
            let room = runs.room();
            head.write(room);
            let placements = dead.store_complement(room.last_chunk_mut().expect("a bit vector"));
            runs.push(head, placements);
        }
    }
}

/// The orders in which three columns, ascending, can go to three rows; the first two leave the last column in place, and
/// so are those of two columns.
static ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [1, 0, 2], [0, 2, 1], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

/// Which orders have one of some columns in a row: by the row and the columns, a bit each.
static ORDERS_BY_ROW: [[u32; 8]; 3] = {
    let mut table = [[0; 8]; 3];
    let mut choice = 0_u32;
    while choice < 8 {
        let mut at = 0;
        while at < 3 * 6 {
            let [row, order] = [at / 6, at % 6];
            table[row][choice as usize] |= (choice >> ORDERS[order][row] & 1) << order;
            at += 1;
        }
        choice += 1;
    }
    table
};

/// Which orders leave no queen on another's diagonal: by the distances of the second column from the first, and of the
/// third from the second; those beyond 2 are like 3.
static ORDERS_APART: [[u32; 4]; 4] = {
    let mut table = [[0; 4]; 4];
    let mut at = 0;
    while at < 4 * 4 * 6 {
        let [first, second, order] = [at / 24, at / 6 % 4, at % 6];
        let places = [0, first, first + second];
        let mut apart = true;
        let mut pair = 0;
        while pair < 3 {
            let [upper, lower] = [[0, 1], [1, 2], [0, 2]][pair];
            apart &= places[ORDERS[order][upper]].abs_diff(places[ORDERS[order][lower]]) != lower - upper;
            pair += 1;
        }
        table[first][second] |= (apart as u32) << order;
        at += 1;
    }
    table
};

fn narrow<A, B: TryFrom<A>>(value: A) -> B {
    B::try_from(value).ok().expect("columns and words are small, placements fewer than 2^32")
}
