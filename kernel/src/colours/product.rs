//! The matrices of both colours, and their products: tile by tile, one group of column sets after the other.

use std::ops::Range;

use super::dense::{ByteRows, FitCount, LaneGroup, MatrixRow, Scratch};
use super::depth::{Listed, Shape};
use super::diagonals::{Colour, Diagonals};
use super::lists::{CellClass, ColumnSets, Factor, Only, PlacementLists};
use super::loops::Loops;
use super::multiply::{TileCounter, columns};
use super::row_sets::{Stratum, Tile, TilePart};
use super::trie::{Plot, Trie};
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

/// The counts for a group of column sets.
#[derive(Debug)]
struct Matrices<C, const L: usize> {
    /// Of white queens: by major rows, minor rows, and leaves' column set.
    white: Vec<MatrixRow<C, L>>,
    /// Of black queens, for some minor rows: by major rows, and leaves' column set.
    black: Vec<MatrixRow<C, L>>,
}

impl<C, const L: usize> Default for Matrices<C, L> {
    fn default() -> Self {
        Self { white: Vec::new(), black: Vec::new() }
    }
}

/// One colour of a tile: the placements in rows of one parity are the leaves of a tree, those in rows of the other fill
/// lanes. White trees are of minor rows, black ones of major rows, so that both colours have the same lanes.
#[derive(Clone, Copy, Debug)]
struct Side<'a> {
    plot: Plot<'a>,
    listed: CellClass<'a>,
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

/// The multiplication by a thread, with `L` lanes.
#[derive(Debug)]
pub(super) struct CpuCounter<M, const L: usize> {
    loops: M,
    memory_max: usize,
    buffers: Buffers<L>,
    lists: PlacementLists,
    narrow: Matrices<u16, L>,
    wide: Matrices<u32, L>,
    /// One for each colour.
    tries: [Trie; 2],
    /// Whether narrow cells are too small from the start: for tests.
    pub(super) wide_only: bool,
}

impl<M, const L: usize> CpuCounter<M, L> {
    pub(super) fn new(loops: M, memory_max: usize) -> Self {
        Self {
            loops,
            memory_max,
            buffers: Buffers::new(),
            lists: PlacementLists::default(),
            narrow: Matrices::default(),
            wide: Matrices::default(),
            tries: Default::default(),
            wide_only: false,
        }
    }
}

impl<M: Loops<L>, const L: usize> TileCounter for CpuCounter<M, L> {
    fn count(
        &mut self,
        tile: &Tile<'_>,
        only: [Only; 2],
        found: &mut dyn FnMut(u64, u64),
        control: &Control,
    ) -> Result<(), Stopped> {
        let Stratum { lines, major, .. } = *tile.stratum;
        let minor = major.other();
        let Some(columns) = columns(tile, only) else { return Ok(()) };
        let [leaves, lanes] = [minor, major].map(|parity| &columns[parity as usize]);
        let diagonals = Colour::ALL.map(|colour| Diagonals::new(lines, colour));
        let sides = Colour::ALL.map(|colour| {
            let class = |parity| CellClass::new(lines, colour, parity, &diagonals[colour as usize]);
            let (planted, listed) = if colour == Colour::White { (minor, major) } else { (major, minor) };
            Side {
                plot: Plot { lines, class: class(planted), columns: leaves, control },
                listed: class(listed),
            }
        });
        let wanted = tile.parts.iter().map(|part| &part.minors);
        let from = wanted.clone().map(|minors| minors.start).min().unwrap_or(0);
        let to = wanted.map(|minors| minors.end).max().unwrap_or(0);
        let middles = [tile.block[usize::midpoint(from, to)].0, tile.parts[tile.parts.len() / 2].major.rows];
        let shape = |side: &Side<'_>| {
            let rows = |class: &CellClass<'_>| {
                let white = if class.rows == minor { middles[0] } else { middles[1] };
                lines.in_order(class.rows, class.colour.of(lines, class.rows, white))
            };
            let listed = Listed::new(&side.listed, &rows(&side.listed), lanes, L, M::COSTS);
            Shape::new(&side.plot.class, &rows(&side.plot.class), leaves, listed, control)
        };
        let shapes = [shape(&sides[0])?, shape(&sides[1])?];
        // As many row sets at once as memory allows.
        let trees = shapes.each_ref().map(|shape| (self.memory_max / 8 * 3 / shape.bytes()).max(1));
        let matrices = (self.memory_max / 4 / (leaves.len() * L * size_of::<u16>())).max(1);
        let minors_max = trees[0].min(matrices);
        let parts_max = trees[1].min(matrices / minors_max.min(to - from)).max(1);
        for start in (from..to).step_by(minors_max) {
            let minors = start..to.min(start + minors_max);
            let rows: Vec<u32> = tile.block[minors.clone()].iter().map(|(rows, _)| *rows).collect();
            sides[0].plot.plant(&rows, 0..leaves.len(), &shapes[0], &mut self.tries[0])?;
            for parts in tile.parts.chunks(parts_max) {
                let rows = parts.iter().map(|part| Colour::Black.of(lines, major, part.major.rows));
                let rows: Vec<u32> = rows.collect();
                sides[1].plot.plant(&rows, 0..leaves.len(), &shapes[1], &mut self.tries[1])?;
                let mut multiply = Multiply {
                    loops: self.loops,
                    tries: &self.tries,
                    sides: &sides,
                    lanes,
                    tile,
                    parts,
                    minors: minors.clone(),
                    buffers: &mut self.buffers,
                    lists: &mut self.lists,
                };
                let narrow = if self.wide_only { None } else { multiply.count(&mut self.narrow)? };
                let sums = match narrow {
                    Some(sums) => sums,
                    None => multiply.count(&mut self.wide)?.expect("no two column sets have 2^32 fits"),
                };
                for (part, sums) in parts.iter().zip(sums) {
                    for (minor, sum) in minors.clone().zip(sums) {
                        if part.minors.contains(&minor) {
                            let weight = tile.stratum.weight(part.major, tile.block[minor].0);
                            let solutions = sum
                                .checked_mul(weight.into())
                                .expect("a row set has fewer than 2^64 solutions");
                            found(part.first + minor as u64, solutions);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn take_states(&mut self) -> u64 {
        self.buffers.take_states()
    }
}

/// Some orbits of a tile whose trees are planted.
struct Multiply<'a, M, const L: usize> {
    loops: M,
    tries: &'a [Trie; 2],
    sides: &'a [Side<'a>; 2],
    lanes: &'a ColumnSets,
    tile: &'a Tile<'a>,
    parts: &'a [TilePart],
    minors: Range<usize>,
    buffers: &'a mut Buffers<L>,
    lists: &'a mut PlacementLists,
}

impl<M: Loops<L>, const L: usize> Multiply<'_, M, L> {
    /// The solutions of each part's orbits, by minor rows, unweighted; `None` if a cell of a matrix is too large for its
    /// type.
    fn count<C: Cell<L>>(&mut self, matrices: &mut Matrices<C, L>) -> Result<Option<Vec<Vec<u64>>>, Stopped> {
        let Matrices { white, black } = matrices;
        let (parts, lanes, leaves) = (self.parts, self.lanes, self.sides[0].plot.columns);
        let height = leaves.len();
        let factors: Vec<_> = parts
            .iter()
            .map(|part| [leaves, lanes].map(|columns| columns.factors(part.major.rank)))
            .collect();
        let mut sums = vec![vec![0_u64; self.minors.len()]; parts.len()];
        for first in (0..lanes.len()).step_by(L) {
            let places = first..lanes.len().min(first + L);
            // Parts of low rank have no use for the last column sets.
            let is_counted =
                |part: &usize| factors[*part][1][places.clone()].iter().any(|factor| factor.any > 0);
            let counted: Vec<usize> = (0..parts.len()).filter(is_counted).collect();
            let size = self.minors.len() * height;
            white.clear();
            white.resize(counted.len() * size, MatrixRow([C::ZERO; L]));
            for (part, matrix) in counted.iter().zip(white.chunks_exact_mut(size)) {
                if !self.fits(Colour::White, parts[*part].major.rows, places.clone(), matrix)? {
                    return Ok(None);
                }
            }
            for (number, minor) in self.minors.clone().enumerate() {
                if !counted.iter().any(|part| parts[*part].minors.contains(&minor)) {
                    continue;
                }
                black.clear();
                black.resize(parts.len() * height, MatrixRow([C::ZERO; L]));
                if !self.fits(Colour::Black, self.tile.block[minor].0, places.clone(), black)? {
                    return Ok(None);
                }
                for (&part, white) in counted.iter().zip(white.chunks_exact(size)) {
                    if !parts[part].minors.contains(&minor) {
                        continue;
                    }
                    let [rows, factors] = &factors[part];
                    let mut lanes = [[0; L]; 2];
                    for (l, factor) in factors[places.clone()].iter().enumerate() {
                        lanes[0][M::byte(l)] = factor.any;
                        lanes[1][M::byte(l)] = factor.below;
                    }
                    let [white, black] = [&white[number * height..], &black[part * height..]];
                    let [white, black] = [&white[..height], &black[..height]];
                    let product = C::products(self.loops, white, black, lanes.each_ref(), rows);
                    let sum = &mut sums[part][number];
                    *sum = sum.checked_add(product).expect("a row set has fewer than 2^64 solutions");
                }
            }
        }
        Ok(Some(sums))
    }

    /// Counts the fits of one colour for the column sets of some lanes, with its queens in the rows of its lists that go
    /// with these white ones; `false` if there are too many for a cell.
    fn fits<C: Cell<L>>(
        &mut self,
        colour: Colour,
        rows: u32,
        places: Range<usize>,
        matrix: &mut [MatrixRow<C, L>],
    ) -> Result<bool, Stopped> {
        let Side { plot: Plot { lines, control, .. }, ref listed } = self.sides[colour as usize];
        let trie = &self.tries[colour as usize];
        let rows = lines.in_order(listed.rows, colour.of(lines, listed.rows, rows));
        let count = places.len();
        self.lists.fill_some(listed, &rows, self.lanes, places, control)?;
        if trie.rest == 0 {
            // The tree is one placement, of no queen, which fits all.
            for row in matrix.iter_mut() {
                for l in 0..count {
                    let fits = u8::try_from(self.lists.length(l))
                        .expect("at most one placement of at most one queen");
                    row.0[M::byte(l)] = C::ZERO.add(fits);
                }
            }
            return Ok(true);
        }
        let bits = listed.diagonals.bits();
        let lanes_max = LaneGroup::lanes_max(bits, L);
        for lane in (0..count).step_by(lanes_max) {
            let count = lanes_max.min(count - lane);
            let group = LaneGroup { trie, lists: self.lists, bits, first: lane, count, lane };
            if !C::join(self.loops, group, self.buffers, matrix, control)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
