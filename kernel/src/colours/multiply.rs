//! Orbits of row sets, counted: the matrices of both colours, multiplied.

use std::fmt::Debug;
use std::ops::Range;

use super::dense::{ByteRows, Count, Group, Row, Scratch};
use super::diagonals::{Colour, Diagonals};
use super::lines::{Lines, Parity};
use super::lists::{Class, ColumnSets, Factor, Lists, Only};
use super::loops::{self, Loops};
use super::row_sets::{Major, RowSets, Stratum, Tile};
use super::trie::{REST_MAX, Trie, Wanted};
use super::{ColourTally, Part};
use crate::engine::{Control, Stopped};
use crate::halves::Isa;

/// Counts orbit after orbit; one a thread. Keeps its buffers.
#[derive(Debug)]
pub struct Multiplier {
    isa: Isa,
    tiles: Box<dyn Tiles>,
}

impl Multiplier {
    /// A multiplier on instruction set `isa` that keeps about `memory_max` bytes or less, if that is possible: with less
    /// memory the same lists are filtered several times over. `None` if this machine can't run it.
    pub fn new(isa: Isa, memory_max: u64) -> Option<Self> {
        let memory_max = usize::try_from(memory_max).unwrap_or(usize::MAX);
        let tiles: Box<dyn Tiles> = match isa {
            Isa::Portable => Box::new(Multiply::<_, 32>::new(loops::Portable, memory_max)),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => Box::new(Multiply::<_, 32>::new(loops::Avx2::new()?, memory_max)),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => Box::new(Multiply::<_, 64>::new(loops::Avx512::new()?, memory_max)),
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx2 | Isa::Avx512 => return None,
        };
        Some(Self { isa, tiles })
    }

    /// The instruction set in use.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Counts the solutions of the orbits `range`, each with its weight; exactly, or not at all when stopped.
    pub fn count(
        &mut self,
        sets: &RowSets,
        range: Range<u64>,
        control: &Control,
    ) -> Result<ColourTally, Stopped> {
        self.count_tiles(sets, range, [Only::default(); 2], control)
    }

    /// Counts a part of an orbit, each solution with its weight.
    pub fn count_part(
        &mut self,
        sets: &RowSets,
        part: Part,
        control: &Control,
    ) -> Result<ColourTally, Stopped> {
        let lines = sets.lines();
        let only = Parity::ALL.map(|parity| Only {
            given: lines.some(parity, part.given),
            white: lines.some(parity, part.given & part.columns),
        });
        self.count_tiles(sets, part.number..part.number + 1, only, control)
    }

    fn count_tiles(
        &mut self,
        sets: &RowSets,
        range: Range<u64>,
        only: [Only; 2],
        control: &Control,
    ) -> Result<ColourTally, Stopped> {
        let before = control.states();
        let mut sum: u64 = 0;
        for tile in sets.tiles(range) {
            let solutions = self.tiles.count(sets.lines(), &tile, only, control)?;
            sum = sum.checked_add(solutions).expect("a range of orbits has fewer than 2^64 solutions");
        }
        Ok(ColourTally { weighted_solutions: sum, states: control.states() - before })
    }
}

/// Counts tiles, by some version of the inner loops.
trait Tiles: Debug + Send {
    /// The solutions of a tile, each with its weight; with white queens in `only` some even and some odd columns.
    fn count(
        &mut self,
        lines: Lines,
        tile: &Tile<'_>,
        only: [Only; 2],
        control: &Control,
    ) -> Result<u64, Stopped>;
}

/// The multiplication with `L` lanes.
#[derive(Debug)]
struct Multiply<M, const L: usize> {
    loops: M,
    memory_max: usize,
    cells: Vec<Cells>,
    found: Vec<(u16, u64)>,
    /// One for each colour.
    tries: [Trie; 2],
    buffers: Buffers<L>,
    narrow: Matrices<u16, L>,
    wide: Matrices<u32, L>,
    /// Whether narrow cells are too small from the start: for tests.
    wide_only: bool,
}

/// The placements of both colours in some major rows.
#[derive(Debug)]
struct Cells {
    key: Key,
    lists: [Lists; 2],
}

/// By this the placements are known again: N, the stratum's queens and major parity, the ranks of its batch, the rows, and
/// the columns if only some are counted.
type Key = (Lines, u32, Parity, [u32; 2], Major, [Only; 2]);

/// What one group of column sets after the other is counted with.
#[derive(Debug)]
struct Buffers<const L: usize> {
    scratch: Scratch<L>,
    counts: ByteRows,
    /// How many times a group these are added to wider ones.
    turns: usize,
}

/// The counts of both colours.
#[derive(Debug, Default)]
struct Matrices<C, const L: usize> {
    /// Of the first colour, ready to be multiplied: by row set, group of the second one's lanes, and its leaves' column set.
    first: Vec<Row<C, L>>,
    /// Of a group of column sets: by row set, and leaves' column set.
    group: Vec<Row<C, L>>,
}

/// One colour of a tile: the placements in minor rows are the leaves of a tree, those in major rows fill lanes.
#[derive(Debug)]
struct Side<'a> {
    colour: Colour,
    diagonals: &'a Diagonals,
    leaves: &'a ColumnSets,
    lanes: &'a ColumnSets,
}

/// What a cell of a matrix is kept in.
trait Cell<const L: usize>: Count + Into<u64> {
    /// Counts the fits of a group; `false` if a count is too large.
    fn join<M: Loops<L>>(
        loops: M,
        group: Group<'_>,
        buffers: &mut Buffers<L>,
        matrix: &mut [Row<Self, L>],
        control: &Control,
    ) -> Result<bool, Stopped>;

    /// [`dense::products`](super::dense::products).
    fn products<M: Loops<L>>(
        loops: M,
        one: &[Row<Self, L>],
        other: &[Row<Self, L>],
        lanes: [&[u32; L]; 2],
        rows: &[Factor],
    ) -> u64;
}

impl<const L: usize> Cell<L> for u16 {
    fn join<M: Loops<L>>(
        loops: M,
        group: Group<'_>,
        buffers: &mut Buffers<L>,
        matrix: &mut [Row<Self, L>],
        control: &Control,
    ) -> Result<bool, Stopped> {
        let Buffers { scratch, counts, turns } = buffers;
        let steps = group.trie.steps.len();
        let counts = counts.zeros::<L>(matrix.len());
        loop {
            let (mut narrowest, mut most) = (0, 0);
            let parts = (*turns).min(steps);
            for part in 0..parts {
                let steps = steps * part / parts..steps * (part + 1) / parts;
                loops.join(group, steps, scratch, counts, control)?;
                let (narrow, wide) = loops.widen(counts, matrix);
                narrowest = narrow.max(narrowest);
                most = wide.max(most);
            }
            if narrowest < u8::MAX {
                // So much less would do with fewer turns, too.
                if narrowest < u8::MAX / 3 {
                    *turns = (*turns / 2).max(1);
                }
                return Ok(most < Self::MAX);
            }
            if parts == steps {
                return Ok(false);
            }
            *turns = parts * 2;
            matrix.fill(Row([0; L]));
        }
    }

    fn products<M: Loops<L>>(
        loops: M,
        one: &[Row<Self, L>],
        other: &[Row<Self, L>],
        lanes: [&[u32; L]; 2],
        rows: &[Factor],
    ) -> u64 {
        loops.products(one, other, lanes, rows)
    }
}

impl<const L: usize> Cell<L> for u32 {
    fn join<M: Loops<L>>(
        loops: M,
        group: Group<'_>,
        buffers: &mut Buffers<L>,
        matrix: &mut [Row<Self, L>],
        control: &Control,
    ) -> Result<bool, Stopped> {
        loops.join(group, 0..group.trie.steps.len(), &mut buffers.scratch, matrix, control)?;
        Ok(matrix.iter().all(|row| !row.0.contains(&Self::FULL)))
    }

    fn products<M: Loops<L>>(
        _: M,
        one: &[Row<Self, L>],
        other: &[Row<Self, L>],
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

impl Count for u16 {
    const ZERO: Self = 0;
    const FULL: Self = Self::MAX;

    fn add(self, more: u8) -> Self {
        self.saturating_add(more.into())
    }
}

impl<M: Loops<L>, const L: usize> Tiles for Multiply<M, L> {
    fn count(
        &mut self,
        lines: Lines,
        tile: &Tile<'_>,
        only: [Only; 2],
        control: &Control,
    ) -> Result<u64, Stopped> {
        let Stratum { white, major, .. } = *tile.stratum;
        let minor = major.other();
        let columns = Parity::ALL.map(|parity| {
            ColumnSets::new(lines, parity, lines.white(parity, white), tile.ranks(), only[parity as usize])
        });
        if columns.iter().any(|columns| columns.len() == 0) {
            return Ok(0);
        }
        let diagonals = Colour::ALL.map(|colour| Diagonals::new(lines, colour));
        let mut sides = Colour::ALL.map(|colour| Side {
            colour,
            diagonals: &diagonals[colour as usize],
            leaves: &columns[colour.columns(minor) as usize],
            lanes: &columns[colour.columns(major) as usize],
        });
        // First the colour with fewer queens.
        let black = lines.count(minor) - lines.white(minor, white);
        if black <= lines.white(minor, white) {
            sides.reverse();
        }
        let wanted = tile.parts.iter().map(|part| &part.minors);
        let from = wanted.clone().map(|minors| minors.start).min().unwrap_or(0);
        let to = wanted.map(|minors| minors.end).max().unwrap_or(0);
        // As many row sets at once as memory allows; if it is not enough for one, its matrix in pieces.
        let memory = self.memory_max / 2;
        let row = sides[1].leaves.len() * size_of::<Row<u16, L>>();
        let places = sides[1].lanes.len();
        let matrix = places.div_ceil(L) * row;
        let (at_once, width) = if matrix <= memory {
            (memory / matrix, places)
        } else {
            (1, (memory / row).max(1).saturating_mul(L).min(places))
        };
        let mut sum: u64 = 0;
        for first in (from..to).step_by(at_once) {
            let minors = first..to.min(first + at_once);
            self.plant(lines, tile, &sides[1], minors.clone(), 0..sides[1].leaves.len(), control)?;
            for place in (0..places).step_by(width) {
                let window = place..places.min(place + width);
                self.plant(lines, tile, &sides[0], minors.clone(), window.clone(), control)?;
                for part in &tile.parts {
                    let own = part.minors.start.max(minors.start)..part.minors.end.min(minors.end);
                    if own.is_empty() {
                        continue;
                    }
                    let cells = self.cells(lines, tile, part.major, &sides, only, control)?;
                    let factors = columns.each_ref().map(|columns| columns.factors(part.major.rank));
                    let weigh = |minor: usize| tile.stratum.weight(part.major, tile.block[minor].0);
                    let product = Product {
                        loops: self.loops,
                        sides: &sides,
                        tries: &self.tries,
                        lists: &self.cells[cells].lists,
                        window: window.clone(),
                        factors: [minor, major]
                            .map(|rows| &factors[sides[1].colour.columns(rows) as usize][..]),
                        weights: own.clone().map(weigh).collect(),
                        row_sets: own.start - minors.start..own.end - minors.start,
                        all_row_sets: minors.len(),
                        control,
                    };
                    let narrow = if self.wide_only {
                        None
                    } else {
                        product.count(&mut self.buffers, &mut self.narrow)?
                    };
                    let solutions = match narrow {
                        Some(solutions) => solutions,
                        None => product
                            .count(&mut self.buffers, &mut self.wide)?
                            .expect("no two column sets have 2^32 fits"),
                    };
                    sum = sum.checked_add(solutions).expect("a tile has fewer than 2^64 solutions");
                }
            }
        }
        Ok(sum)
    }
}

impl<M: Loops<L>, const L: usize> Multiply<M, L> {
    fn new(loops: M, memory_max: usize) -> Self {
        Self {
            loops,
            memory_max,
            cells: Vec::new(),
            found: Vec::new(),
            tries: Default::default(),
            buffers: Buffers { scratch: Scratch::new(), counts: ByteRows::default(), turns: 1 },
            narrow: Matrices { first: Vec::new(), group: Vec::new() },
            wide: Matrices { first: Vec::new(), group: Vec::new() },
            wide_only: false,
        }
    }

    /// Makes the tree of one colour for some row sets of the block, with leaves at some places.
    fn plant(
        &mut self,
        lines: Lines,
        tile: &Tile<'_>,
        side: &Side<'_>,
        minors: Range<usize>,
        places: Range<usize>,
        control: &Control,
    ) -> Result<(), Stopped> {
        let minor = tile.stratum.major.other();
        let order = |&(white, _): &(u32, u32)| in_order(lines, minor, side.colour.of(lines, minor, white));
        let sets: Vec<Vec<u32>> = tile.block[minors].iter().map(order).collect();
        let queens = sets[0].len();
        let common =
            |rows: &Vec<u32>| rows.iter().zip(&sets[0]).take_while(|(one, other)| one == other).count();
        let common = sets.iter().map(common).min().unwrap_or(0);
        let wanted = Wanted {
            class: Class::new(lines, side.colour, minor, side.diagonals),
            sets: &sets,
            depth: lines
                .filters(queens, sets.len())
                .min(common)
                .min(queens.saturating_sub(1))
                .max(queens.saturating_sub(REST_MAX)),
            columns: side.leaves,
            places,
            control,
        };
        self.tries[side.colour as usize].fill(&wanted)
    }

    /// Where the placements in these major rows are among those that are kept.
    fn cells(
        &mut self,
        lines: Lines,
        tile: &Tile<'_>,
        rows: Major,
        sides: &[Side<'_>; 2],
        only: [Only; 2],
        control: &Control,
    ) -> Result<usize, Stopped> {
        let Stratum { white, major, .. } = *tile.stratum;
        let key = |rows| (lines, white, major, [*tile.ranks().start(), *tile.ranks().end()], rows, only);
        if let Some(at) = self.cells.iter().position(|cells| cells.key == key(rows)) {
            return Ok(at);
        }
        let bytes = |cells: &Cells| cells.lists.iter().map(Lists::bytes).sum::<usize>();
        self.cells.retain(|cells| tile.batch.iter().any(|&rows| cells.key == key(rows)));
        while self.cells.iter().map(bytes).sum::<usize>() > self.memory_max / 8 {
            self.cells.remove(0);
        }
        let mut cells = Cells { key: key(rows), lists: Default::default() };
        for side in sides {
            let class = Class::new(lines, side.colour, major, side.diagonals);
            let order = in_order(lines, major, side.colour.of(lines, major, rows.rows));
            cells.lists[side.colour as usize].fill(&class, &order, side.lanes, &mut self.found, control)?;
        }
        self.cells.push(cells);
        Ok(self.cells.len() - 1)
    }
}

/// The rows of a set as they are filled: the most central first, for these attack most.
fn in_order(lines: Lines, parity: Parity, rows: u32) -> Vec<u32> {
    lines.central_lines(parity).filter(|row| rows >> row & 1 == 1).collect()
}

/// Row sets with the same major rows, ready to be counted.
#[derive(Debug)]
struct Product<'a, M> {
    loops: M,
    /// First the colour whose matrix is kept.
    sides: &'a [Side<'a>; 2],
    tries: &'a [Trie; 2],
    lists: &'a [Lists; 2],
    /// The column sets of the first colour's leaves, and so of the second one's lanes, that are counted.
    window: Range<usize>,
    /// How often the column sets of the second colour's leaves and lanes count.
    factors: [&'a [Factor]; 2],
    /// How often each row set counts.
    weights: Vec<u32>,
    /// Which ones of the trees' row sets they are, and the number of these.
    row_sets: Range<usize>,
    all_row_sets: usize,
    control: &'a Control,
}

impl<M> Product<'_, M> {
    /// The solutions, each with its weight; `None` if a cell of a matrix is too large for its type.
    fn count<C: Cell<L>, const L: usize>(
        &self,
        buffers: &mut Buffers<L>,
        matrices: &mut Matrices<C, L>,
    ) -> Result<Option<u64>, Stopped>
    where
        M: Loops<L>,
    {
        let Matrices { first, group } = matrices;
        let [stored, asked] = self.sides;
        let (height, wide) = (self.window.len(), asked.leaves.len());
        let groups = height.div_ceil(L);
        first.clear();
        first.resize(self.all_row_sets * groups * wide, Row([C::ZERO; L]));
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
        let mut sum: u64 = 0;
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
            for (row_set, weight) in self.row_sets.clone().zip(&self.weights) {
                let one = &group[row_set * wide..(row_set + 1) * wide];
                let other = &first[(row_set * groups + number) * wide..][..wide];
                let product = C::products(self.loops, one, other, lanes.each_ref(), self.factors[0]);
                sum = product
                    .checked_mul(u64::from(*weight))
                    .and_then(|product| sum.checked_add(product))
                    .expect("a row set has fewer than 2^64 solutions");
            }
        }
        Ok(Some(sum))
    }

    /// Counts the fits of one colour for the column sets of some lanes; `false` if there are too many for a cell.
    fn fits<C: Cell<L>, const L: usize>(
        &self,
        side: &Side<'_>,
        first: usize,
        count: usize,
        height: usize,
        buffers: &mut Buffers<L>,
        matrix: &mut Vec<Row<C, L>>,
    ) -> Result<bool, Stopped>
    where
        M: Loops<L>,
    {
        let colour = side.colour as usize;
        let (trie, lists) = (&self.tries[colour], &self.lists[colour]);
        matrix.clear();
        matrix.resize(self.all_row_sets * height, Row([C::ZERO; L]));
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
        let group = Group { trie, lists, bits: side.diagonals.bits(), first, count };
        C::join(self.loops, group, buffers, matrix, self.control)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::BoardSize;

    fn row_sets(n: u32) -> RowSets {
        RowSets::new(BoardSize::new(n).unwrap()).unwrap()
    }

    fn total<M: Loops<L>, const L: usize>(
        multiply: &mut Multiply<M, L>,
        sets: &RowSets,
        range: Range<u64>,
    ) -> u64 {
        let only = [Only::default(); 2];
        let tiles = sets.tiles(range);
        tiles.map(|tile| multiply.count(sets.lines(), &tile, only, &Control::default()).unwrap()).sum()
    }

    #[test]
    fn cells_of_both_widths_and_any_memory_give_the_same() {
        for (n, expected) in [(9, 352), (12, 14_200), (15, 2_279_184)] {
            let sets = row_sets(n);
            for memory in [0, 10_000, 100_000, 1 << 30] {
                for wide_only in [false, true] {
                    let mut multiply = Multiply::<_, 32>::new(loops::Portable, memory);
                    multiply.wide_only = wide_only;
                    assert_eq!(
                        total(&mut multiply, &sets, 0..sets.len()),
                        expected,
                        "N = {n}, {memory} bytes"
                    );
                }
            }
        }
    }

    /// As many lanes as AVX-512 has, on machines that have none.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn any_number_of_lanes_gives_the_same() {
        let Some(avx2) = loops::Avx2::new() else { return };
        for (n, expected) in [(11, 2_680), (14, 365_596), (16, 14_772_512)] {
            let sets = row_sets(n);
            let mut multiply = Multiply::<_, 64>::new(avx2, 1 << 30);
            assert_eq!(total(&mut multiply, &sets, 0..sets.len()), expected, "N = {n}");
        }
    }

    /// Lists of placements that fit everything: the counts are so large that bytes and words overflow.
    #[test]
    fn counts_that_are_too_large_are_found() {
        let sets = row_sets(12);
        let lines = sets.lines();
        let columns = ColumnSets::new(lines, Parity::Even, 3, 0..=u32::MAX, Only::default());
        let diagonals = Diagonals::new(lines, Colour::White);
        let mut trie = Trie::default();
        let wanted = Wanted {
            class: Class::new(lines, Colour::White, Parity::Even, &diagonals),
            sets: &[vec![2, 3, 0], vec![2, 3, 5]],
            depth: 1,
            columns: &columns,
            places: 0..columns.len(),
            control: &Control::default(),
        };
        trie.fill(&wanted).unwrap();
        let mut buffers = Buffers { scratch: Scratch::<32>::new(), counts: ByteRows::default(), turns: 1 };
        let mut count = |lengths: [u32; 2]| {
            let all = lengths[0] + lengths[1];
            let lists = Lists { masks: vec![0; all as usize], starts: vec![0, lengths[0], all] };
            let group = Group { trie: &trie, lists: &lists, bits: diagonals.bits(), first: 0, count: 2 };
            let mut narrow = vec![Row([0_u16; 32]); 2 * columns.len()];
            let mut wide = vec![Row([0_u32; 32]); 2 * columns.len()];
            let control = Control::default();
            let fits = Cell::join(loops::Portable, group, &mut buffers, &mut narrow, &control).unwrap();
            assert!(Cell::join(loops::Portable, group, &mut buffers, &mut wide, &control).unwrap());
            let leaves: u64 = trie.steps.iter().map(|step| step.leaves).sum();
            let sum: u64 = wide.iter().flat_map(|row| row.0).map(u64::from).sum();
            assert_eq!(sum, leaves * u64::from(all));
            let same = narrow.iter().zip(&wide).all(|(narrow, wide)| narrow.0.map(u32::from) == wide.0);
            assert_eq!(fits, same, "{lengths:?}");
            fits
        };
        assert!(count([1, 7]));
        // More than a byte holds, but not in one branch: that takes more turns.
        assert!(count([3, 100]));
        // More than a byte holds in one branch.
        assert!(!count([5, 3_000]));
        assert!(count([2, 9]));
    }

    #[test]
    fn words_that_are_too_small_are_found() {
        let (mut counts, mut words) = (vec![Row([0; 32])], vec![Row([0; 32])]);
        for turn in 1..=300 {
            counts[0].0[7] = 250;
            let most = loops::Portable.widen(&mut counts, &mut words);
            let (narrow, wide): (u8, u16) = most;
            assert_eq!((narrow, wide), (250, u16::try_from(250 * turn).unwrap_or(u16::MAX)));
            assert_eq!(words[0].0[7], wide);
        }
        assert_eq!(words[0].0.iter().filter(|count| **count != 0).count(), 1);
    }

    #[test]
    fn whoever_is_stopped_counts_nothing() {
        let (sets, control) = (row_sets(16), Control::default());
        let mut multiplier = Multiplier::new(Isa::Portable, 1 << 30).unwrap();
        control.stop();
        assert_eq!(multiplier.count(&sets, 0..sets.len(), &control), Err(Stopped));
        let found = multiplier.count(&sets, 0..sets.len(), &Control::default()).unwrap();
        assert_eq!(found.weighted_solutions, 14_772_512);
    }
}
