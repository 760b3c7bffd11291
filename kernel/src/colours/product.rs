//! The matrices of both colours for row sets with the same major rows, and their product.

use std::ops::Range;

use super::dense::{ByteRows, FitCount, LaneGroup, MatrixRow, Scratch};
use super::diagonals::{Colour, Diagonals};
use super::lists::{ColumnSets, Factor, PlacementLists};
use super::loops::Loops;
use super::trie::Trie;
use crate::engine::{Control, Stopped};

/// What one group of column sets after the other is counted with.
#[derive(Debug)]
pub(super) struct Buffers<const L: usize> {
    scratch: Scratch<L>,
    counts: ByteRows,
    /// Queens that the branches have in common between which these are added to wider ones.
    cut: usize,
    places: Vec<usize>,
}

impl<const L: usize> Buffers<L> {
    pub(super) fn new() -> Self {
        Self { scratch: Scratch::new(), counts: ByteRows::default(), cut: 0, places: Vec::new() }
    }

    /// Pairs of placements compared since the last call.
    pub(super) fn take_states(&mut self) -> u64 {
        std::mem::take(&mut self.scratch.states)
    }
}

/// The counts of both colours.
#[derive(Debug)]
pub(super) struct Matrices<C, const L: usize> {
    /// Of the first colour, ready to be multiplied: by row set, group of the second one's lanes, and its leaves' column set.
    first: Vec<MatrixRow<C, L>>,
    /// Of a group of column sets: by row set, and leaves' column set.
    group: Vec<MatrixRow<C, L>>,
}

impl<C, const L: usize> Default for Matrices<C, L> {
    fn default() -> Self {
        Self { first: Vec::new(), group: Vec::new() }
    }
}

/// One colour of a tile: the placements in minor rows are the leaves of a tree, those in major rows fill lanes.
#[derive(Debug)]
pub(super) struct Side<'a> {
    pub(super) colour: Colour,
    pub(super) diagonals: &'a Diagonals,
    pub(super) leaves: &'a ColumnSets,
    pub(super) lanes: &'a ColumnSets,
}

/// What a cell of a matrix is kept in.
pub(super) trait Cell<const L: usize>: FitCount + Into<u64> {
    /// Counts the fits of a group; `false` if a count is too large.
    fn join<M: Loops<L>>(
        loops: M,
        group: LaneGroup<'_>,
        buffers: &mut Buffers<L>,
        matrix: &mut [MatrixRow<Self, L>],
        control: &Control,
    ) -> Result<bool, Stopped>;

    /// [`dense::products`](super::dense::products).
    fn products<M: Loops<L>>(
        loops: M,
        one: &[MatrixRow<Self, L>],
        other: &[MatrixRow<Self, L>],
        lanes: [&[u32; L]; 2],
        rows: &[Factor],
    ) -> u64;
}

impl<const L: usize> Cell<L> for u16 {
    fn join<M: Loops<L>>(
        loops: M,
        group: LaneGroup<'_>,
        buffers: &mut Buffers<L>,
        matrix: &mut [MatrixRow<Self, L>],
        control: &Control,
    ) -> Result<bool, Stopped> {
        let Buffers { scratch, counts, cut, places } = buffers;
        let trie = group.trie;
        let counts = counts.zeros::<L>(matrix.len());
        *cut = (*cut).min(trie.depth);
        let (mut parts, mut stuck, mut narrowest, mut most) = (0, 0, 0, 0);
        // Ends of parts that have to be counted in smaller ones.
        let mut again: Vec<usize> = Vec::new();
        let mut done = 0;
        while done < trie.steps.len() {
            again.retain(|end| *end > done);
            let own = *cut + again.len();
            let steps = trie.part(done, own, places);
            let end = steps.end;
            loops.join(group, steps, scratch, counts, control)?;
            let (narrow, wide) = loops.widen(counts, matrix, trie.height(), places);
            parts += usize::from(again.is_empty());
            if narrow == u8::MAX {
                if own == trie.depth {
                    return Ok(false);
                }
                stuck += usize::from(again.is_empty());
                again.push(end);
                continue;
            }
            done = end;
            narrowest = narrow.max(narrowest);
            most = wide.max(most);
        }
        if stuck > parts / 8 {
            *cut += 1;
        } else if stuck == 0 && narrowest < u8::MAX / 16 {
            *cut = cut.saturating_sub(1);
        }
        Ok(most < Self::MAX)
    }

    fn products<M: Loops<L>>(
        loops: M,
        one: &[MatrixRow<Self, L>],
        other: &[MatrixRow<Self, L>],
        lanes: [&[u32; L]; 2],
        rows: &[Factor],
    ) -> u64 {
        loops.products(one, other, lanes, rows)
    }
}

impl<const L: usize> Cell<L> for u32 {
    fn join<M: Loops<L>>(
        loops: M,
        group: LaneGroup<'_>,
        buffers: &mut Buffers<L>,
        matrix: &mut [MatrixRow<Self, L>],
        control: &Control,
    ) -> Result<bool, Stopped> {
        loops.join(group, 0..group.trie.steps.len(), &mut buffers.scratch, matrix, control)?;
        Ok(matrix.iter().all(|row| !row.0.contains(&Self::FULL)))
    }

    fn products<M: Loops<L>>(
        _: M,
        one: &[MatrixRow<Self, L>],
        other: &[MatrixRow<Self, L>],
        [any, below]: [&[u32; L]; 2],
        rows: &[Factor],
    ) -> u64 {
        let mut sum: u128 = 0;
        for ((one, other), row) in one.iter().zip(other).zip(rows) {
            for l in 0..L {
                let weight = any[l] * row.any + below[l] * row.below;
                sum += u128::from(one.0[l]) * u128::from(other.0[l]) * u128::from(weight);
            }
        }
        u64::try_from(sum).expect("an orbit has fewer than 2^64 solutions")
    }
}

/// Row sets with the same major rows, ready to be counted.
#[derive(Debug)]
pub(super) struct Product<'a, M> {
    pub(super) loops: M,
    /// First the colour whose matrix is kept.
    pub(super) sides: &'a [Side<'a>; 2],
    pub(super) tries: &'a [Trie; 2],
    pub(super) lists: &'a [PlacementLists; 2],
    /// The column sets of the first colour's leaves, and so of the second one's lanes, that are counted.
    pub(super) window: Range<usize>,
    /// How often the column sets of the second colour's leaves and lanes count.
    pub(super) factors: [&'a [Factor]; 2],
    /// How often each row set counts.
    pub(super) weights: Vec<u32>,
    /// Which ones of the trees' row sets they are, and the number of these.
    pub(super) row_sets: Range<usize>,
    pub(super) all_row_sets: usize,
    pub(super) control: &'a Control,
}

impl<M> Product<'_, M> {
    /// The solutions of each row set, with their weights; `None` if a cell of a matrix is too large for its type.
    pub(super) fn count<C: Cell<L>, const L: usize>(
        &self,
        buffers: &mut Buffers<L>,
        matrices: &mut Matrices<C, L>,
    ) -> Result<Option<Vec<u64>>, Stopped>
    where
        M: Loops<L>,
    {
        let Matrices { first, group } = matrices;
        let [stored, asked] = self.sides;
        let (height, wide) = (self.window.len(), asked.leaves.len());
        let groups = height.div_ceil(L);
        first.clear();
        first.resize(self.all_row_sets * groups * wide, MatrixRow([C::ZERO; L]));
        for lane in (0..wide).step_by(L) {
            let count = L.min(wide - lane);
            if !self.fits(stored, lane, count, height, buffers, group)? {
                return Ok(None);
            }
            // Rows become lanes.
            for row_set in self.row_sets.clone() {
                for (place, counts) in group[row_set * height..(row_set + 1) * height].iter().enumerate() {
                    let to = &mut first[(row_set * groups + place / L) * wide + lane..][..count];
                    let byte = M::byte(place % L);
                    for (l, to) in to.iter_mut().enumerate() {
                        to.0[byte] = counts.0[M::byte(l)];
                    }
                }
            }
        }
        let mut sums = vec![0_u64; self.row_sets.len()];
        for (number, lane) in self.window.clone().step_by(L).enumerate() {
            let count = L.min(self.window.end - lane);
            if !self.fits(asked, lane, count, wide, buffers, group)? {
                return Ok(None);
            }
            let mut lanes = [[0; L]; 2];
            for (l, factor) in self.factors[1][lane..lane + count].iter().enumerate() {
                lanes[0][M::byte(l)] = factor.any;
                lanes[1][M::byte(l)] = factor.below;
            }
            for ((row_set, weight), sum) in self.row_sets.clone().zip(&self.weights).zip(&mut sums) {
                let one = &group[row_set * wide..(row_set + 1) * wide];
                let other = &first[(row_set * groups + number) * wide..][..wide];
                let product = C::products(self.loops, one, other, lanes.each_ref(), self.factors[0]);
                *sum = product
                    .checked_mul(u64::from(*weight))
                    .and_then(|product| sum.checked_add(product))
                    .expect("a row set has fewer than 2^64 solutions");
            }
        }
        Ok(Some(sums))
    }

    /// Counts the fits of one colour for the column sets of some lanes; `false` if there are too many for a cell.
    fn fits<C: Cell<L>, const L: usize>(
        &self,
        side: &Side<'_>,
        first: usize,
        count: usize,
        height: usize,
        buffers: &mut Buffers<L>,
        matrix: &mut Vec<MatrixRow<C, L>>,
    ) -> Result<bool, Stopped>
    where
        M: Loops<L>,
    {
        let colour = side.colour as usize;
        let (trie, lists) = (&self.tries[colour], &self.lists[colour]);
        matrix.clear();
        matrix.resize(self.all_row_sets * height, MatrixRow([C::ZERO; L]));
        if trie.rest == 0 {
            // The tree is one placement, of no queen, which fits all.
            for row in matrix.iter_mut() {
                for l in 0..count {
                    let fits = u8::try_from(lists.length(first + l))
                        .expect("at most one placement of at most one queen");
                    row.0[M::byte(l)] = C::ZERO.add(fits);
                }
            }
            return Ok(true);
        }
        let group = LaneGroup { trie, lists, bits: side.diagonals.bits(), first, count };
        C::join(self.loops, group, buffers, matrix, self.control)
    }
}
