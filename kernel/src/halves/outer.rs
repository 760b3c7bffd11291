//! The table of outer rows: every placement of a half's rows far from the middle, by the columns it uses.
//!
//! Built once a process for each half height and shared by all threads. Beside its mask each placement is a bit
//! in bit vectors, one a diagonal that reaches the inner rows: "has a queen on this diagonal". The placements
//! that a set of inner queens leaves standing are then the zeros of an OR of a few bit vectors.

use std::ops::Range;

use super::geometry::{Geometry, Half};
use super::orbits::binomial;
use crate::board::take_lowest;
use crate::engine::{Control, Stopped};

/// Words that may be read beyond the end of a set's bit vectors.
pub(super) const SLACK: usize = 8;

/// Masks that may be asked for from any placement on.
pub(super) const MASKS_SLACK: usize = 512;

/// The rows of a half that are placed by search, next to the middle, and the numbering of their diagonals.
#[derive(Clone, Debug)]
pub(super) struct Inner {
    /// Number of inner rows, 2..=15.
    pub(super) rows: usize,
    /// Diagonals of one family that meet an inner row.
    extent: usize,
    /// Mask of each inner cell, by row and column.
    cells: Vec<[u64; 32]>,
}

impl Inner {
    fn new(geometry: &Geometry, rows: usize) -> Self {
        Self { rows, extent: geometry.n() + rows - 1, cells: geometry.cells()[..rows].to_vec() }
    }

    /// Mask of inner cell (`row`, `column`).
    #[inline]
    pub(super) fn cell(&self, row: usize, column: usize) -> u64 {
        self.cells[row][column % 32]
    }

    /// Whether these are columns of the board.
    pub(super) fn has_columns(&self, columns: u32) -> bool {
        columns >> (self.extent + 1 - self.rows) == 0
    }

    /// The two bit vectors of an inner cell.
    #[inline]
    pub(super) fn vectors(&self, row: usize, column: usize) -> [usize; 2] {
        [column + self.rows - 1 - row, self.extent + column + row]
    }

    /// Number of bit vectors of a set.
    pub(super) fn vectors_len(&self) -> usize {
        2 * self.extent
    }

    /// The bit vectors on which a queen of outer row `row` lies, if they reach the inner rows.
    fn vectors_of_outer(&self, row: usize, column: usize) -> [Option<usize>; 2] {
        let rising = (column + self.rows - 1).checked_sub(row);
        let falling = Some(column + row).filter(|&y| y < self.extent);
        [rising, falling.map(|y| self.extent + y)]
    }
}

/// All placements of the outer rows of one half.
#[derive(Debug)]
pub(super) struct Outer {
    pub(super) inner: Inner,
    /// Queens of an outer placement, 1..=6.
    pub(super) rows: u32,
    /// Where each column set's placements begin, by the set's rank; one more at the end.
    starts: Vec<u32>,
    /// Where each column set's bit vectors begin, in units of one word for each vector.
    vector_starts: Vec<u32>,
    masks: Vec<u64>,
    vectors: Vec<u64>,
}

/// The placements on one column set.
#[derive(Clone, Copy, Debug)]
pub(super) struct OuterSet<'a> {
    /// Number of the first placement in [`Outer::masks`].
    pub(super) start: u32,
    /// Words of each bit vector; bits beyond the last placement are set.
    pub(super) words: usize,
    /// The masks of the placements.
    pub(super) masks: &'a [u64],
    /// The bit vectors, one after the other, and [`SLACK`] words.
    pub(super) vectors: &'a [u64],
}

impl Outer {
    /// The table of half `half` with the `rows` outermost rows, at least one; two rows at least remain.
    pub(super) fn new(
        geometry: &Geometry,
        half: Half,
        rows: u32,
        control: &Control,
    ) -> Result<Self, Stopped> {
        let height = geometry.rows[half];
        let inner = Inner::new(geometry, height - rows as usize);
        let sets = usize::try_from(binomial(geometry.board().get(), rows)).expect("below 2^20");
        let mut table = Self {
            inner,
            rows,
            starts: Vec::with_capacity(sets + 1),
            vector_starts: Vec::with_capacity(sets + 1),
            masks: Vec::new(),
            vectors: Vec::new(),
        };
        let mut placements = Placements::new(geometry, table.inner.clone(), height);
        let first = (1u64 << rows) - 1;
        for (done, columns) in same_size(first).take(sets).enumerate() {
            if done.is_multiple_of(1 << 12) {
                control.advance(0)?;
            }
            let columns = u32::try_from(columns).expect("a set of columns");
            let mirrored = columns.reverse_bits() >> (32 - geometry.n());
            table.starts.push(narrow(table.masks.len()));
            table.vector_starts.push(narrow(table.vectors.len() / table.inner.vectors_len()));
            if mirrored < columns {
                table.push_mirrored(geometry, Self::rank(mirrored));
            } else {
                placements.enumerate(columns);
                placements.append_to(&mut table.masks, &mut table.vectors);
            }
        }
        table.starts.push(narrow(table.masks.len()));
        table.vector_starts.push(narrow(table.vectors.len() / table.inner.vectors_len()));
        table.vectors.extend([0; SLACK]);
        table.masks.extend([0; MASKS_SLACK]);
        table.masks.shrink_to_fit();
        table.vectors.shrink_to_fit();
        Ok(table)
    }

    /// The halves that need a table of their own: for even N one serves both.
    pub(super) fn halves(geometry: &Geometry) -> std::ops::Range<Half> {
        0..if geometry.is_odd() { 2 } else { 1 }
    }

    /// About the memory that a table will take, in bytes: within 15 % from N = 16 on.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "far below 2^53")]
    pub(super) fn bytes_estimate(geometry: &Geometry, half: Half, rows: u32) -> u64 {
        let n = f64::from(geometry.board().get());
        let vectors = 2.0 * (n + (geometry.rows[half] as f64 - f64::from(rows)) - 1.0);
        // Two queens d rows apart on different columns attack each other in 2 (N - d) of N (N - 1) cases.
        let apart = |d| f64::from(rows - d) * (1.0 - 2.0 * (n - f64::from(d)) / (n * (n - 1.0))).ln();
        let peaceful = (1..rows).map(apart).sum::<f64>().exp();
        let each = (1..=rows).map(f64::from).product::<f64>() * peaceful;
        let words = each / 64.0 + 0.5;
        (binomial(geometry.board().get(), rows) as f64 * 8.0 * (each + words * vectors + 1.0)) as u64
    }

    /// Appends the mirror images of the placements on the column set of rank `rank`.
    fn push_mirrored(&mut self, geometry: &Geometry, rank: usize) {
        let masks = self.starts[rank] as usize..self.starts[rank + 1] as usize;
        self.masks.extend_from_within(masks.clone());
        let mirrored = self.masks.len() - masks.len();
        self.masks[mirrored..].iter_mut().for_each(|mask| *mask = geometry.mirrored(*mask));
        // A rising diagonal becomes a falling one, and the last of these the first of those.
        let words = (self.vector_starts[rank + 1] - self.vector_starts[rank]) as usize;
        let first = self.vector_starts[rank] as usize * self.inner.vectors_len();
        for vector in (0..self.inner.vectors_len()).rev() {
            self.vectors.extend_from_within(first + words * vector..first + words * (vector + 1));
        }
    }

    /// The rank of a column set of the table's size.
    pub(super) fn rank(mut columns: u32) -> usize {
        let mut rank = 0;
        let mut k = 1;
        while let Some(bit) = take_lowest(&mut columns) {
            rank += BINOMIALS[bit.trailing_zeros() as usize][k];
            k += 1;
        }
        rank as usize
    }

    /// The placements on the column set of rank `rank`; `None` if there are none.
    #[inline]
    pub(super) fn set(&self, rank: usize) -> Option<OuterSet<'_>> {
        let [from, to] = [self.vector_starts[rank] as usize, self.vector_starts[rank + 1] as usize];
        let vectors = self.inner.vectors_len();
        (from < to).then(|| OuterSet {
            start: self.starts[rank],
            words: to - from,
            masks: &self.masks[self.starts[rank] as usize..self.starts[rank + 1] as usize],
            vectors: &self.vectors[from * vectors..to * vectors + SLACK],
        })
    }

    /// The masks of all placements, set by set, and [`MASKS_SLACK`] words.
    pub(super) fn masks(&self) -> &[u64] {
        &self.masks
    }

    /// Memory held, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let words = self.masks.capacity() + self.vectors.capacity();
        (words * 8 + (self.starts.capacity() + self.vector_starts.capacity()) * 4) as u64
    }
}

/// Finds the placements of the outer rows on a given set of columns.
struct Placements<'a> {
    geometry: &'a Geometry,
    inner: Inner,
    height: usize,
    masks: Vec<u64>,
    /// A bit vector for each diagonal that reaches the inner rows.
    vectors: Vec<[u64; WORDS_MAX]>,
}

/// Words of a bit vector at most: six queens have no more than 720 placements.
const WORDS_MAX: usize = 12;

impl<'a> Placements<'a> {
    fn new(geometry: &'a Geometry, inner: Inner, height: usize) -> Self {
        let vectors = vec![[0; WORDS_MAX]; inner.vectors_len()];
        Self { geometry, inner, height, masks: Vec::new(), vectors }
    }

    fn enumerate(&mut self, columns: u32) {
        self.masks.clear();
        self.vectors.fill([0; WORDS_MAX]);
        self.descend(self.inner.rows, columns, [0, 0], 0);
    }

    /// `attacked`: the columns attacked in this row along the two kinds of diagonals.
    fn descend(&mut self, row: usize, free: u32, attacked: [u32; 2], mask: u64) {
        if row == self.height {
            self.masks.push(mask);
            return;
        }
        let mut open = free & !(attacked[0] | attacked[1]);
        while let Some(bit) = take_lowest(&mut open) {
            let column = bit.trailing_zeros() as usize;
            let from = self.masks.len();
            let attacked = [(attacked[0] | bit) << 1, (attacked[1] | bit) >> 1];
            self.descend(row + 1, free ^ bit, attacked, mask | self.geometry.cell(row, column));
            // All placements with this queen were found in a row.
            let found = from..self.masks.len();
            for vector in self.inner.vectors_of_outer(row, column).into_iter().flatten() {
                set_bits(&mut self.vectors[vector], found.clone());
            }
        }
    }

    /// Appends what was found to a table.
    fn append_to(&mut self, masks: &mut Vec<u64>, vectors: &mut Vec<u64>) {
        masks.extend_from_slice(&self.masks);
        let words = self.masks.len().div_ceil(64);
        for vector in &mut self.vectors {
            set_bits(vector, self.masks.len()..64 * words);
            vectors.extend_from_slice(&vector[..words]);
        }
    }
}

fn set_bits(words: &mut [u64], mut bits: Range<usize>) {
    while !bits.is_empty() {
        let [first, beyond] = [bits.start % 64, bits.len() + bits.start % 64];
        let to = if beyond < 64 { (1 << beyond) - 1 } else { u64::MAX };
        words[bits.start / 64] |= to >> first << first;
        bits.start += 64 - first;
    }
}

/// The bitmaps with as many bits as `first`, ascending from it: colexicographic order, without end.
pub(super) fn same_size(first: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(first), |&bitmap| {
        let lowest = bitmap & bitmap.wrapping_neg();
        let carried = bitmap + lowest;
        Some((carried ^ bitmap) >> 2 >> lowest.trailing_zeros() | carried)
    })
}

/// `BINOMIALS[n][k]` for sets of at most 6 columns.
static BINOMIALS: [[u32; 8]; 32] = {
    let mut table = [[0; 8]; 32];
    let mut n = 0;
    while n < 32 {
        table[n][0] = 1;
        let mut k = 1;
        while k < 8 && n > 0 {
            table[n][k] = table[n - 1][k - 1] + table[n - 1][k];
            k += 1;
        }
        n += 1;
    }
    table
};

fn narrow(count: usize) -> u32 {
    u32::try_from(count).expect("outer tables have fewer than 2^32 placements")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{BoardSize, columns_of};

    type Queens = Vec<(usize, usize)>;

    /// All placements of the rows on the columns, cell by cell.
    fn peaceful(rows: Range<usize>, columns: u32) -> Vec<Queens> {
        let Some(row) = rows.clone().next_back() else {
            return vec![Vec::new()];
        };
        let mut all = Vec::new();
        for column in columns_of(columns).map(usize::from) {
            for mut queens in peaceful(rows.start..row, columns & !(1 << column)) {
                if queens.iter().all(|&(other, c)| c.abs_diff(column) != row - other) {
                    queens.push((row, column));
                    all.push(queens);
                }
            }
        }
        all
    }

    /// The mask of some outer queens, and the bit vectors in which they are.
    fn seen(geometry: &Geometry, inner: &Inner, queens: &Queens) -> (u64, Vec<usize>) {
        let mask = queens.iter().fold(0, |mask, &(row, column)| mask | geometry.cell(row, column));
        let all = queens.iter().flat_map(|&(row, column)| inner.vectors_of_outer(row, column));
        let mut vectors: Vec<usize> = all.flatten().collect();
        vectors.sort_unstable();
        (mask, vectors)
    }

    #[test]
    fn tables_hold_the_placements_of_every_set() {
        for (n, rows) in [(8, 2), (9, 1), (11, 3), (12, 4)] {
            let geometry = Geometry::new(BoardSize::new(n).unwrap());
            for half in Outer::halves(&geometry) {
                let table = Outer::new(&geometry, half, rows, &Control::default()).unwrap();
                for columns in (0_u32..1 << n).filter(|columns| columns.count_ones() == rows) {
                    let placements = peaceful(table.inner.rows..geometry.rows[half], columns);
                    let mut expected: Vec<_> =
                        placements.iter().map(|queens| seen(&geometry, &table.inner, queens)).collect();
                    let Some(set) = table.set(Outer::rank(columns)) else {
                        assert!(expected.is_empty(), "N = {n}, half {half}, columns {columns:b}");
                        continue;
                    };
                    let has = |vector: usize, i: usize| {
                        set.vectors[vector * set.words + i / 64] >> (i % 64) & 1 == 1
                    };
                    let vectors = |i: usize| -> Vec<usize> {
                        (0..table.inner.vectors_len()).filter(|&vector| has(vector, i)).collect()
                    };
                    let mut found: Vec<(u64, Vec<usize>)> =
                        set.masks.iter().enumerate().map(|(i, &mask)| (mask, vectors(i))).collect();
                    expected.sort_unstable();
                    found.sort_unstable();
                    assert_eq!(found, expected, "N = {n}, half {half}, columns {columns:b}");
                    let beyond = set.masks.len()..64 * set.words;
                    assert!(beyond.into_iter().all(|i| vectors(i).len() == table.inner.vectors_len()));
                }
            }
        }
    }
}
