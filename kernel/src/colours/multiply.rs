//! Orbits of row sets, counted: the matrices of both colours, multiplied.

mod pairs;

use std::fmt::Debug;
use std::ops::Range;

use super::depth::{Listed, Shape};
use super::diagonals::{Colour, Diagonals};
use super::lines::{Lines, Parity};
use super::lists::{CellClass, ColumnSets, Only, PlacementLists};
use super::loops::{self, Loops};
use super::product::{Buffers, Matrices, Product, Side};
use super::row_sets::{Major, RowSets, Stratum, Tile};
use super::trie::{REST_MAX, Set, Trie, TrieSpec};
use super::{ColourTally, Part};
use crate::engine::{Control, PairCounter, Stopped};
use crate::isa::Isa;

/// Counts orbit after orbit; one a thread. Keeps its buffers.
#[derive(Debug)]
pub struct Multiplier {
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
        Some(Self { tiles })
    }

    /// One that makes the lists of placements, and has somebody else compare their pairs.
    pub fn by(counter: Box<dyn PairCounter>) -> Self {
        Self { tiles: Box::new(pairs::PairTiles::new(counter)) }
    }

    /// Why it can't count any more; see [`Engine::fault`](crate::engine::Engine::fault).
    pub fn fault(&self) -> Option<&str> {
        self.tiles.fault()
    }

    /// Counts the solutions of the orbits `range`, each with its weight; exactly, or not at all when stopped.
    pub fn count(
        &mut self,
        sets: &RowSets,
        range: Range<u64>,
        control: &Control,
    ) -> Result<ColourTally, Stopped> {
        self.count_each(sets, range, &mut |_, _| {}, control)
    }

    /// The same, and tells what each orbit has: `found` gets the number of an orbit with solutions of it, weighted, in one
    /// call or in several that add up.
    pub fn count_each(
        &mut self,
        sets: &RowSets,
        range: Range<u64>,
        found: &mut dyn FnMut(u64, u64),
        control: &Control,
    ) -> Result<ColourTally, Stopped> {
        self.count_tiles(sets, range, [Only::default(); 2], found, control)
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
        self.count_tiles(sets, part.number..part.number + 1, only, &mut |_, _| {}, control)
    }

    fn count_tiles(
        &mut self,
        sets: &RowSets,
        range: Range<u64>,
        only: [Only; 2],
        found: &mut dyn FnMut(u64, u64),
        control: &Control,
    ) -> Result<ColourTally, Stopped> {
        // What was left when somebody stopped it belongs to nobody.
        self.tiles.take_states();
        let mut sum: u64 = 0;
        for tile in sets.tiles(range) {
            let mut add = |number, solutions| {
                sum = sum.checked_add(solutions).expect("a range of orbits has fewer than 2^64 solutions");
                found(number, solutions);
            };
            self.tiles.count(&tile, only, &mut add, control)?;
        }
        Ok(ColourTally { weighted_solutions: sum, states: self.tiles.take_states() })
    }
}

/// Counts tiles, by some version of the inner loops.
trait Tiles: Debug + Send {
    /// The solutions of a tile's orbits, each with its weight; with white queens in `only` some even and some odd columns.
    /// Together they are what `found` gets for an orbit.
    fn count(
        &mut self,
        tile: &Tile<'_>,
        only: [Only; 2],
        found: &mut dyn FnMut(u64, u64),
        control: &Control,
    ) -> Result<(), Stopped>;

    /// Pairs of placements compared since the last call.
    fn take_states(&mut self) -> u64;

    /// Why it can't count any more.
    fn fault(&self) -> Option<&str> {
        None
    }
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
    lists: [PlacementLists; 2],
}

/// By this the placements are known again: N, the stratum's queens and major parity, the ranks of its batch, the rows, and
/// the columns if only some are counted.
type Key = (Lines, u32, Parity, [u32; 2], Major, [Only; 2]);

impl<M: Loops<L>, const L: usize> Tiles for Multiply<M, L> {
    fn count(
        &mut self,
        tile: &Tile<'_>,
        only: [Only; 2],
        found: &mut dyn FnMut(u64, u64),
        control: &Control,
    ) -> Result<(), Stopped> {
        let Stratum { lines, white, major, .. } = *tile.stratum;
        let minor = major.other();
        let Some(columns) = columns(tile, only) else { return Ok(()) };
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
        let first = self.cells(tile, tile.parts[0].major, &sides, only, control)?;
        let middle = tile.block[usize::midpoint(from, to)].0;
        let shape = |side: &Side<'_>| {
            let class = CellClass::new(lines, side.colour, minor, side.diagonals);
            let rows = in_order(lines, minor, side.colour.of(lines, minor, middle));
            let placements = self.cells[first].lists[side.colour as usize].masks.len();
            let queens = side.colour.of(lines, major, tile.parts[0].major.rows).count_ones();
            let listed = Listed::new(placements, side.lanes.len(), queens, L);
            Shape::new(&class, &rows, side.leaves, listed, control)
        };
        let shapes = [shape(&sides[0])?, shape(&sides[1])?];
        // As many row sets at once as memory allows; if it is not enough for one, its matrix in pieces.
        let memory = self.memory_max / 2;
        let row = sides[1].leaves.len() * L * size_of::<u16>();
        let places = sides[1].lanes.len();
        let matrix = places.div_ceil(L) * row;
        let trees: usize = shapes.iter().map(|shape| shape.bytes().max(1)).sum();
        let (at_once, width) = if matrix <= memory {
            ((memory / matrix).min(self.memory_max / 4 / trees).max(1), places)
        } else {
            (1, (memory / row).max(1).saturating_mul(L).min(places))
        };
        for first in (from..to).step_by(at_once) {
            let minors = first..to.min(first + at_once);
            self.plant(tile, &sides[1], &shapes[1], minors.clone(), 0..sides[1].leaves.len(), control)?;
            for place in (0..places).step_by(width) {
                let window = place..places.min(place + width);
                self.plant(tile, &sides[0], &shapes[0], minors.clone(), window.clone(), control)?;
                for part in &tile.parts {
                    let own = part.minors.start.max(minors.start)..part.minors.end.min(minors.end);
                    if own.is_empty() {
                        continue;
                    }
                    let cells = self.cells(tile, part.major, &sides, only, control)?;
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
                    for (minor, solutions) in own.zip(solutions) {
                        found(part.first + minor as u64, solutions);
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

impl<M: Loops<L>, const L: usize> Multiply<M, L> {
    fn new(loops: M, memory_max: usize) -> Self {
        Self {
            loops,
            memory_max,
            cells: Vec::new(),
            found: Vec::new(),
            tries: Default::default(),
            buffers: Buffers::new(),
            narrow: Matrices::default(),
            wide: Matrices::default(),
            wide_only: false,
        }
    }

    /// Makes the tree of one colour for some row sets of the block, with leaves at some places.
    fn plant(
        &mut self,
        tile: &Tile<'_>,
        side: &Side<'_>,
        shape: &Shape,
        minors: Range<usize>,
        places: Range<usize>,
        control: &Control,
    ) -> Result<(), Stopped> {
        let (lines, minor) = (tile.stratum.lines, tile.stratum.major.other());
        let order = |&(white, _): &(u32, u32)| in_order(lines, minor, side.colour.of(lines, minor, white));
        let mut sets: Vec<Set> = tile.block[minors].iter().map(order).zip(0..).collect();
        sets.sort_unstable();
        let least = sets[0].0.len().saturating_sub(REST_MAX);
        let wanted = TrieSpec {
            class: CellClass::new(lines, side.colour, minor, side.diagonals),
            sets: &sets,
            depth: shape.depth(lines, &sets, least),
            columns: side.leaves,
            places,
            control,
        };
        self.tries[side.colour as usize].fill(&wanted)
    }

    /// Where the placements in these major rows are among those that are kept.
    fn cells(
        &mut self,
        tile: &Tile<'_>,
        rows: Major,
        sides: &[Side<'_>; 2],
        only: [Only; 2],
        control: &Control,
    ) -> Result<usize, Stopped> {
        let Stratum { lines, white, major, .. } = *tile.stratum;
        let key = |rows| (lines, white, major, [*tile.ranks().start(), *tile.ranks().end()], rows, only);
        if let Some(at) = self.cells.iter().position(|cells| cells.key == key(rows)) {
            return Ok(at);
        }
        let bytes = |cells: &Cells| cells.lists.iter().map(PlacementLists::bytes).sum::<usize>();
        self.cells.retain(|cells| tile.batch.iter().any(|&rows| cells.key == key(rows)));
        while self.cells.iter().map(bytes).sum::<usize>() > self.memory_max / 8 {
            self.cells.remove(0);
        }
        let mut cells = Cells { key: key(rows), lists: Default::default() };
        for side in sides {
            let class = CellClass::new(lines, side.colour, major, side.diagonals);
            let order = in_order(lines, major, side.colour.of(lines, major, rows.rows));
            cells.lists[side.colour as usize].fill(&class, &order, side.lanes, &mut self.found, control)?;
        }
        self.cells.push(cells);
        Ok(self.cells.len() - 1)
    }
}

/// The sets of even and of odd columns that are counted for a tile; `None` if there are none of a parity.
fn columns(tile: &Tile<'_>, only: [Only; 2]) -> Option<[ColumnSets; 2]> {
    let Stratum { lines, white, .. } = *tile.stratum;
    let columns = Parity::ALL.map(|parity| {
        ColumnSets::new(lines, parity, lines.white(parity, white), tile.ranks(), only[parity as usize])
    });
    columns.iter().all(|columns| columns.len() > 0).then_some(columns)
}

/// The rows of a set as they are filled: the most central first, for these attack most.
fn in_order(lines: Lines, parity: Parity, rows: u32) -> Vec<u32> {
    lines.central_lines(parity).filter(|row| rows >> row & 1 == 1).collect()
}

#[cfg(test)]
mod tests;
