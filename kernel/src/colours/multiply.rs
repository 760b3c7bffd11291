//! Orbits of row sets, counted: the matrices of both colours, multiplied.

use std::ops::Range;
use std::slice;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ScopedJoinHandle};

use super::depth::{Listed, Shape};
use super::device::DeviceProducts;
use super::diagonals::{Colour, Diagonals};
use super::lines::{Lines, Parity};
use super::lists::{CellClass, ColumnSets, Only, PlacementLists};
use super::loops;
use super::product::{CpuProducts, Planted, Product, Products, Side};
use super::row_sets::{Major, RowSets, Stratum, Tile, TilePart};
use super::trie::{REST_MAX, Set, Trie, TrieSpec};
use super::{ColourTally, Part};
use crate::engine::{Control, Kernel, ProductCounter, Stopped};

/// Counts orbit after orbit; one a thread. Keeps its buffers.
#[derive(Debug)]
pub struct Multiplier {
    /// One, or one for each thread that makes trees for a device.
    counters: Vec<TileCounter>,
    fault: Option<String>,
}

/// Counts tile after tile.
#[derive(Debug)]
struct TileCounter {
    products: Box<dyn Products>,
    memory_max: usize,
    cells: Vec<Cells>,
    /// To make lists in.
    found: Vec<(usize, u64)>,
    /// One for each colour.
    tries: [Trie; 2],
}

/// The placements of both colours in some major rows.
#[derive(Debug)]
struct Cells {
    key: Key,
    lists: [PlacementLists; 2],
}

/// By this the placements are known again: N, the stratum's queens, the ranks of its batch, the rows, and
/// the columns if only some are counted.
type Key = (Lines, u32, [u32; 2], Major, [Only; 2]);

/// What the orbits of a tile are counted with.
struct TileSpec<'a> {
    tile: &'a Tile<'a>,
    only: [Only; 2],
    /// First the colour with fewer queens in minor rows.
    sides: &'a [Side<'a>; 2],
    control: &'a Control,
}

impl Multiplier {
    /// A multiplier on the instructions of `isa` that keeps about `memory_max` bytes or less, if that is possible: with less
    /// memory the same lists are filtered several times over. `None` if this machine can't run it, or `isa` multiplies
    /// nothing.
    pub fn new(isa: Kernel, memory_max: u64) -> Option<Self> {
        let products: Box<dyn Products> = match isa {
            Kernel::Portable => Box::new(CpuProducts::<_, 32>::new(loops::Portable)),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => Box::new(CpuProducts::<_, 32>::new(loops::Avx2::new()?)),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => Box::new(CpuProducts::<_, 64>::new(loops::Avx512::new()?)),
            _ => return None,
        };
        Some(Self::with(products, usize::try_from(memory_max).unwrap_or(usize::MAX)))
    }

    /// One that makes lists and trees, and has others join them.
    pub fn by(counters: Vec<Box<dyn ProductCounter>>) -> Self {
        /// Memory for the trees and lists of a tile, in bytes.
        const MEMORY_MAX: usize = 1 << 29;
        let products = DeviceProducts::of(counters);
        let counters = products.into_iter().map(|products| TileCounter::new(Box::new(products), MEMORY_MAX));
        Self { counters: counters.collect(), fault: None }
    }

    fn with(products: Box<dyn Products>, memory_max: usize) -> Self {
        Self { counters: vec![TileCounter::new(products, memory_max)], fault: None }
    }

    /// Why it can't count any more; see [`Engine::fault`](crate::engine::Engine::fault).
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Counts the solutions of the orbits `range`, each with its weight; exactly, or not at all when stopped. `found` gets
    /// the number of an orbit with solutions of it, weighted, in one call or in several that add up.
    pub fn count_each(
        &mut self,
        sets: &RowSets,
        range: Range<u64>,
        found: &mut dyn FnMut(u64, u64),
        control: &Control,
    ) -> Result<ColourTally, Stopped> {
        let mut found = |_: usize, number, solutions| found(number, solutions);
        Ok(self.count_ranges(sets, slice::from_ref(&range), &mut found, control)?[0])
    }

    /// The same for each of some ranges, whose number among them `found` gets first.
    pub fn count_ranges(
        &mut self,
        sets: &RowSets,
        ranges: &[Range<u64>],
        found: &mut dyn FnMut(usize, u64, u64),
        control: &Control,
    ) -> Result<Vec<ColourTally>, Stopped> {
        self.count_tiles(sets, ranges, [Only::default(); 2], found, control)
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
        let range = part.number..part.number + 1;
        Ok(self.count_tiles(sets, slice::from_ref(&range), only, &mut |_, _, _| {}, control)?[0])
    }

    fn count_tiles(
        &mut self,
        sets: &RowSets,
        ranges: &[Range<u64>],
        only: [Only; 2],
        found: &mut dyn FnMut(usize, u64, u64),
        control: &Control,
    ) -> Result<Vec<ColourTally>, Stopped> {
        let (tiles, has_ended) = (ranges.iter().enumerate(), AtomicBool::new(false));
        let tiles =
            Mutex::new(tiles.flat_map(|(at, range)| sets.tiles(range.clone()).map(move |tile| (at, tile))));
        let count = |counter: &mut TileCounter| {
            // What was left when somebody stopped it belongs to nobody.
            counter.products.take_states();
            let (mut orbits, mut states) = (Vec::new(), vec![0; ranges.len()]);
            let next = || tiles.lock().unwrap_or_else(PoisonError::into_inner).next();
            while !has_ended.load(Relaxed)
                && let Some((at, tile)) = next()
            {
                let mut found = |number, solutions| orbits.push((at, number, solutions));
                let counted = counter.count(&tile, only, &mut found, control);
                // The others need not go on.
                counted.inspect_err(|Stopped| has_ended.store(true, Relaxed))?;
                states[at] += counter.products.take_states();
            }
            Ok((orbits, states))
        };
        let counted: Result<Vec<_>, Stopped> = if let [counter] = &mut self.counters[..] {
            count(counter).map(|counted| vec![counted])
        } else {
            thread::scope(|scope| {
                let threads: Vec<_> =
                    self.counters.iter_mut().map(|counter| scope.spawn(|| count(counter))).collect();
                let join = |thread: ScopedJoinHandle<'_, _>| {
                    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                };
                threads.into_iter().map(join).collect()
            })
        };
        let fault = || self.counters.iter().find_map(|counter| counter.products.fault());
        let counted = counted.inspect_err(|Stopped| self.fault = fault())?;
        let mut tallies = vec![ColourTally::default(); ranges.len()];
        for (orbits, states) in counted {
            for (tally, states) in tallies.iter_mut().zip(states) {
                tally.states += states;
            }
            for (at, number, solutions) in orbits {
                let sum = tallies[at].weighted_solutions.checked_add(solutions);
                tallies[at].weighted_solutions =
                    sum.expect("a range of orbits has fewer than 2^64 solutions");
                found(at, number, solutions);
            }
        }
        Ok(tallies)
    }
}

impl TileCounter {
    fn new(products: Box<dyn Products>, memory_max: usize) -> Self {
        Self { products, memory_max, cells: Vec::new(), found: Vec::new(), tries: Default::default() }
    }

    /// The solutions of a tile's orbits, each with its weight; with white queens in `only` some even and some odd columns.
    /// Together they are what `found` gets for an orbit.
    fn count(
        &mut self,
        tile: &Tile<'_>,
        only: [Only; 2],
        found: &mut dyn FnMut(u64, u64),
        control: &Control,
    ) -> Result<(), Stopped> {
        let Stratum { lines, white, .. } = *tile.stratum;
        let (major, minor) = (lines.major(), lines.major().other());
        let Some(columns) = columns(tile, only) else { return Ok(()) };
        let diagonals = Colour::ALL.map(|colour| Diagonals::new(lines, colour));
        let mut sides = Colour::ALL.map(|colour| Side {
            colour,
            diagonals: &diagonals[colour as usize],
            leaves: &columns[colour.columns(minor) as usize],
            lanes: &columns[colour.columns(major) as usize],
        });
        let black = lines.count(minor) - lines.white(minor, white);
        if black <= lines.white(minor, white) {
            sides.reverse();
        }
        let spec = TileSpec { tile, only, sides: &sides, control };
        let wanted = tile.parts.iter().map(|part| &part.minors);
        let from = wanted.clone().map(|minors| minors.start).min().unwrap_or(0);
        let to = wanted.map(|minors| minors.end).max().unwrap_or(0);
        let first = self.cells(&spec, &tile.parts[..1])?[0];
        let middle = tile.block[usize::midpoint(from, to)].0;
        let (lanes, costs) = (self.products.lanes(), self.products.costs());
        let shape = |side: &Side<'_>| {
            let class = CellClass::new(lines, side.colour, minor, side.diagonals);
            let rows = lines.in_order(minor, side.colour.of(lines, minor, middle));
            let placements = self.cells[first].lists[side.colour as usize].masks.len();
            let queens = side.colour.of(lines, major, tile.parts[0].major.rows).count_ones();
            let listed = Listed::new(placements, side.lanes.len(), queens, lanes, costs);
            Shape::new(&class, &rows, side.leaves, listed, control)
        };
        let shapes = [shape(&sides[0])?, shape(&sides[1])?];
        // As many row sets at once as memory allows, in equal shares; if it is not enough for one, its matrix in pieces.
        let memory = self.products.matrices_max(self.memory_max);
        let row = sides[1].leaves.len() * lanes * self.products.cell_bytes();
        let places = sides[1].lanes.len();
        let matrix = places.div_ceil(lanes) * row;
        let trees = shapes.iter().map(|shape| shape.bytes().max(1)).sum();
        let (at_once, width) = if matrix <= memory {
            (self.products.at_once(self.memory_max, matrix, trees).max(1), places)
        } else {
            (1, (memory / row).max(1).saturating_mul(lanes).min(places))
        };
        let share = (to - from).div_ceil((to - from).div_ceil(at_once));
        for first in (from..to).step_by(share) {
            let minors = first..to.min(first + share);
            self.plant(&spec, 1, &shapes[1], minors.clone(), 0..sides[1].leaves.len())?;
            for place in (0..places).step_by(width) {
                let window = place..places.min(place + width);
                self.plant(&spec, 0, &shapes[0], minors.clone(), window.clone())?;
                for parts in tile.parts.chunks(self.products.parts_max()) {
                    self.multiply(&spec, parts, &minors, &window, found)?;
                }
            }
        }
        Ok(())
    }

    /// Counts what is planted of some parts of a tile.
    fn multiply(
        &mut self,
        spec: &TileSpec<'_>,
        parts: &[TilePart],
        minors: &Range<usize>,
        window: &Range<usize>,
        found: &mut dyn FnMut(u64, u64),
    ) -> Result<(), Stopped> {
        let TileSpec { tile, sides, control, .. } = *spec;
        let major = tile.stratum.lines.major();
        let own = |part: &TilePart| part.minors.start.max(minors.start)..part.minors.end.min(minors.end);
        let parts: Vec<_> = parts.iter().filter(|part| !own(part).is_empty()).cloned().collect();
        let cells = self.cells(spec, &parts)?;
        let factors: Vec<_> = parts
            .iter()
            .map(|part| [sides[1].leaves, sides[1].lanes].map(|columns| columns.factors(part.major.rank)))
            .collect();
        let mut products = Vec::with_capacity(parts.len());
        for ((part, cells), factors) in parts.iter().zip(&cells).zip(&factors) {
            products.push(Product {
                lists: &self.cells[*cells].lists,
                factors: factors.each_ref().map(Vec::as_slice),
                row_sets: own(part).start - minors.start..own(part).end - minors.start,
            });
        }
        let planted = Planted {
            sides,
            tries: &self.tries,
            window: window.clone(),
            lines: tile.stratum.lines,
            minor: major.other(),
            row_sets: &tile.block[minors.clone()],
            control,
        };
        let sums = self.products.count(&planted, &products)?;
        for (part, sums) in parts.iter().zip(sums) {
            for (minor, sum) in own(part).zip(sums) {
                let weight = tile.stratum.weight(part.major, tile.block[minor].0);
                let solutions =
                    sum.checked_mul(weight.into()).expect("a row set has fewer than 2^64 solutions");
                found(part.first + minor as u64, solutions);
            }
        }
        Ok(())
    }

    /// Makes the tree of the `number`-th side for some row sets of the block, with leaves at some places.
    fn plant(
        &mut self,
        spec: &TileSpec<'_>,
        number: usize,
        shape: &Shape,
        minors: Range<usize>,
        places: Range<usize>,
    ) -> Result<(), Stopped> {
        let TileSpec { tile, control, .. } = *spec;
        let side = &spec.sides[number];
        let lines = tile.stratum.lines;
        let minor = lines.major().other();
        let order = |&(white, _): &(u32, u32)| lines.in_order(minor, side.colour.of(lines, minor, white));
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

    /// Where the placements in the major rows of these parts are among those that are kept.
    fn cells(&mut self, spec: &TileSpec<'_>, parts: &[TilePart]) -> Result<Vec<usize>, Stopped> {
        let TileSpec { tile, only, sides, control, .. } = *spec;
        let Stratum { lines, white, .. } = *tile.stratum;
        let major = lines.major();
        let key = |rows| (lines, white, [*tile.ranks().start(), *tile.ranks().end()], rows, only);
        let bytes = |cells: &Cells| cells.lists.iter().map(PlacementLists::bytes).sum::<usize>();
        let is_kept = |cells: &[Cells], rows| cells.iter().position(|cells| cells.key == key(rows));
        if parts.iter().any(|part| is_kept(&self.cells, part.major).is_none()) {
            self.cells.retain(|cells| tile.batch.iter().any(|&rows| cells.key == key(rows)));
        }
        for part in parts {
            if is_kept(&self.cells, part.major).is_some() {
                continue;
            }
            while self.cells.iter().map(bytes).sum::<usize>() > self.memory_max / 8 {
                let is_free = |cells: &Cells| parts.iter().all(|part| cells.key != key(part.major));
                let Some(at) = self.cells.iter().position(is_free) else { break };
                self.cells.remove(at);
            }
            let mut cells = Cells { key: key(part.major), lists: Default::default() };
            for side in sides {
                let class = CellClass::new(lines, side.colour, major, side.diagonals);
                let order = lines.in_order(major, side.colour.of(lines, major, part.major.rows));
                let found_max = self.memory_max / 8 / size_of::<(usize, u64)>();
                cells.lists[side.colour as usize] =
                    PlacementLists::new(&class, &order, side.lanes, &mut self.found, found_max, control)?;
            }
            self.cells.push(cells);
        }
        Ok(parts.iter().map(|part| is_kept(&self.cells, part.major).expect("just made")).collect())
    }
}

/// The sets of even and of odd columns that are counted for a tile; `None` if there are none of a parity.
fn columns(tile: &Tile<'_>, only: [Only; 2]) -> Option<[ColumnSets; 2]> {
    let Stratum { lines, white, .. } = *tile.stratum;
    let columns =
        Parity::ALL.map(|parity| ColumnSets::new(lines, parity, white, tile.ranks(), only[parity as usize]));
    columns.iter().all(|columns| columns.len() > 0).then_some(columns)
}

#[cfg(test)]
mod tests;
