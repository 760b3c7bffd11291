//! The matrices of both colours for row sets with the same major rows, and their product.

use std::fmt::Debug;
use std::ops::Range;

use super::dense::{LaneGroup, Scratch};
use super::depth::Costs;
use super::diagonals::{Colour, Diagonals};
use super::lines::{Lines, Parity};
use super::lists::{ColumnSets, Factor, PlacementLists};
use super::loops::Loops;
use super::matrix::{ByteRows, FitCount, MatrixRow, Pair};
use super::trie::{Stretch, Trie};
use crate::engine::{Control, Stopped};

/// What one group of column sets after the other is counted with.
#[derive(Debug)]
pub(super) struct Buffers<const L: usize> {
    scratch: Scratch<L>,
    counts: ByteRows,
    /// Leaves, by colour, after which these are added to wider ones.
    pub(super) leaves_max: [u64; 2],
    places: Vec<usize>,
}

impl<const L: usize> Buffers<L> {
    pub(super) fn new() -> Self {
        Self {
            scratch: Scratch::new(),
            counts: ByteRows::default(),
            leaves_max: [u64::MAX; 2],
            places: Vec::new(),
        }
    }

    /// Pairs of placements compared since the last call.
    pub(super) fn take_states(&mut self) -> u64 {
        std::mem::take(&mut self.scratch.states)
    }
}

/// The counts of both colours.
#[derive(Debug, Default)]
pub(super) struct Matrices<C, const L: usize> {
    /// Of the first colour, ready to be multiplied: by row set, group of the second one's lanes, and its leaves' column set.
    first: Vec<MatrixRow<C, L>>,
    /// Of a group of column sets: by row set, and leaves' column set.
    group: Vec<MatrixRow<C, L>>,
    /// To turn that in.
    room: Vec<Pair<C, L>>,
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

    /// [`matrix::products`](super::matrix::products).
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
        let Buffers { scratch, counts, leaves_max, places } = buffers;
        let (trie, leaves_max) = (group.trie, &mut leaves_max[group.colour as usize]);
        let counts = counts.zeros::<L>(matrix.len());
        let (mut done, mut most) = (0, 0);
        while done < trie.steps.len() {
            let Stretch { steps, branches, leaves } = trie.stretch(done, *leaves_max, places);
            loops.join(group, steps.clone(), scratch, counts, control)?;
            let (narrow, wide) = loops.widen(counts, matrix, trie.height(), places);
            if narrow < u8::MAX {
                done = steps.end;
                most = wide.max(most);
                if narrow > u8::MAX / 2 {
                    *leaves_max = leaves - leaves / 8;
                } else if narrow < u8::MAX / 4 && *leaves_max / 2 < leaves {
                    *leaves_max += leaves / 8;
                }
                continue;
            }
            if branches == 1 {
                return Ok(false);
            }
            // Once more, with fewer: from the lists on that were there before.
            *leaves_max = leaves / 2;
            let before: Vec<_> = trie.before(done).collect();
            for step in before.into_iter().rev() {
                loops.join(group, step..step + 1, scratch, counts, control)?;
            }
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

/// Somebody who multiplies the matrices of both colours.
pub(super) trait Products: Debug + Send {
    /// Column sets that are joined at once.
    fn lanes(&self) -> usize;

    /// What it takes to join them.
    fn costs(&self) -> &'static Costs;

    /// Bytes that a cell of a row set's matrix takes.
    fn cell_bytes(&self) -> usize;

    /// Bytes for matrices, if there are `memory_max` for everything.
    fn matrices_max(&self, memory_max: usize) -> usize;

    /// Row sets that there is room for, if each takes so many bytes for its matrix and for its trees.
    fn at_once(&self, memory_max: usize, matrix: usize, trees: usize) -> usize {
        memory_max / 4 * 3 / (matrix + trees)
    }

    /// Products that are counted together, at most; at least 1.
    fn parts_max(&self) -> usize;

    /// For each product the solutions of each of its row sets, unweighted.
    fn count(&mut self, planted: &Planted<'_>, products: &[Product<'_>]) -> Result<Vec<Vec<u64>>, Stopped>;

    /// Pairs of placements compared since the last call.
    fn take_states(&mut self) -> u64;

    /// Why it can't count any more.
    fn fault(&self) -> Option<String> {
        None
    }
}

/// What products have in common.
#[derive(Debug)]
pub(super) struct Planted<'a> {
    /// First the colour whose matrix is kept.
    pub(super) sides: &'a [Side<'a>; 2],
    /// By colour.
    pub(super) tries: &'a [Trie; 2],
    /// The column sets of the first colour's leaves, and so of the second one's lanes, that are counted.
    pub(super) window: Range<usize>,
    pub(super) lines: Lines,
    pub(super) minor: Parity,
    /// The white minor rows of the trees' row sets, and their ranks.
    pub(super) row_sets: &'a [(u32, u32)],
    pub(super) control: &'a Control,
}

/// Row sets with the same major rows, ready to be counted.
#[derive(Debug)]
pub(super) struct Product<'a> {
    /// By colour.
    pub(super) lists: &'a [PlacementLists; 2],
    /// How often the column sets of the second colour's leaves and lanes count.
    pub(super) factors: [&'a [Factor]; 2],
    /// Which ones of the trees' row sets they are.
    pub(super) row_sets: Range<usize>,
}

/// The multiplication by a thread, with `L` lanes.
#[derive(Debug)]
pub(super) struct CpuProducts<M, const L: usize> {
    loops: M,
    buffers: Buffers<L>,
    narrow: Matrices<u16, L>,
    wide: Matrices<u32, L>,
    /// Whether narrow cells are too small from the start: for tests.
    pub(super) wide_only: bool,
}

impl<M, const L: usize> CpuProducts<M, L> {
    pub(super) fn new(loops: M) -> Self {
        let (buffers, narrow, wide) = (Buffers::new(), Matrices::default(), Matrices::default());
        Self { loops, buffers, narrow, wide, wide_only: false }
    }
}

impl<M: Loops<L>, const L: usize> Products for CpuProducts<M, L> {
    fn lanes(&self) -> usize {
        L
    }

    fn costs(&self) -> &'static Costs {
        M::COSTS
    }

    fn cell_bytes(&self) -> usize {
        size_of::<u16>()
    }

    fn matrices_max(&self, memory_max: usize) -> usize {
        memory_max / 2
    }

    fn parts_max(&self) -> usize {
        1
    }

    fn count(&mut self, planted: &Planted<'_>, products: &[Product<'_>]) -> Result<Vec<Vec<u64>>, Stopped> {
        let Self { loops, buffers, .. } = self;
        let mut all = Vec::with_capacity(products.len());
        for product in products {
            let multiply = Multiply { loops: *loops, planted, product };
            let narrow = if self.wide_only { None } else { multiply.count(buffers, &mut self.narrow)? };
            all.push(match narrow {
                Some(sums) => sums,
                None => multiply.count(buffers, &mut self.wide)?.expect("no two column sets have 2^32 fits"),
            });
        }
        Ok(all)
    }

    fn take_states(&mut self) -> u64 {
        self.buffers.take_states()
    }
}

/// One product, and the loops that count it.
struct Multiply<'a, M> {
    loops: M,
    planted: &'a Planted<'a>,
    product: &'a Product<'a>,
}

impl<M> Multiply<'_, M> {
    /// The solutions of each row set; `None` if a cell of a matrix is too large for its type.
    fn count<C: Cell<L>, const L: usize>(
        &self,
        buffers: &mut Buffers<L>,
        matrices: &mut Matrices<C, L>,
    ) -> Result<Option<Vec<u64>>, Stopped>
    where
        M: Loops<L>,
    {
        let Matrices { first, group, room } = matrices;
        let Planted { sides: [stored, asked], ref window, row_sets: all, .. } = *self.planted;
        let Product { factors, ref row_sets, .. } = *self.product;
        let (height, wide) = (window.len(), asked.leaves.len());
        let groups = height.div_ceil(L);
        // What is left there of others is written over.
        room.resize(L, Pair([[C::ZERO; L]; 2]));
        first.resize(all.len() * groups * wide, MatrixRow([C::ZERO; L]));
        for lane in (0..wide).step_by(L) {
            let count = L.min(wide - lane);
            if !self.fits(stored, lane, count, height, buffers, group)? {
                return Ok(None);
            }
            // Rows become lanes.
            for row_set in row_sets.clone() {
                for (number, rows) in group[row_set * height..][..height].chunks(L).enumerate() {
                    let to = &mut first[(row_set * groups + number) * wide + lane..][..count];
                    self.loops.turn(rows, to, room);
                }
            }
        }
        let mut sums = vec![0_u64; row_sets.len()];
        for (number, lane) in window.clone().step_by(L).enumerate() {
            let count = L.min(window.end - lane);
            if !self.fits(asked, lane, count, wide, buffers, group)? {
                return Ok(None);
            }
            let mut lanes = [[0; L]; 2];
            for (l, factor) in factors[1][lane..lane + count].iter().enumerate() {
                lanes[0][l] = factor.any;
                lanes[1][l] = factor.below;
            }
            for (row_set, sum) in row_sets.clone().zip(&mut sums) {
                let one = &group[row_set * wide..(row_set + 1) * wide];
                let other = &first[(row_set * groups + number) * wide..][..wide];
                let product = C::products(self.loops, one, other, lanes.each_ref(), factors[0]);
                *sum = sum.checked_add(product).expect("a row set has fewer than 2^64 solutions");
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
        let (trie, lists) = (&self.planted.tries[colour], &self.product.lists[colour]);
        matrix.clear();
        matrix.extend((0..self.planted.row_sets.len() * height).map(|_| MatrixRow([C::ZERO; L])));
        if trie.rest == 0 {
            // The tree is one placement, of no queen, which fits all.
            for row in matrix.iter_mut() {
                for l in 0..count {
                    let fits = u8::try_from(lists.length(first + l))
                        .expect("at most one placement of at most one queen");
                    row.0[l] = C::ZERO.add(fits);
                }
            }
            return Ok(true);
        }
        let bits = side.diagonals.bits();
        let group = LaneGroup { colour: side.colour, trie, lists, bits, first, count };
        C::join(self.loops, group, buffers, matrix, self.planted.control)
    }
}
