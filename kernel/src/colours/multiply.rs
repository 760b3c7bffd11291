//! Orbits of row sets, counted: the matrices of both colours, multiplied.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ScopedJoinHandle};

use super::device::DeviceCounter;
use super::lines::Parity;
use super::lists::{ColumnSets, Only};
use super::loops;
use super::product::CpuCounter;
use super::row_sets::{RowSets, Stratum, Tile};
use super::{ColourTally, Part};
use crate::engine::{Control, ProductCounter, Stopped};
use crate::isa::Isa;

/// Counts orbit after orbit; one a thread. Keeps its buffers.
#[derive(Debug)]
pub struct Multiplier {
    /// One, or one for each thread that makes trees for a device.
    counters: Vec<Box<dyn TileCounter>>,
    fault: Option<String>,
}

/// Counts tile after tile.
pub(super) trait TileCounter: Debug + Send {
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
    fn fault(&self) -> Option<String> {
        None
    }
}

impl Multiplier {
    /// A multiplier on instruction set `isa` that keeps about `memory_max` bytes or less, if that is possible: with less
    /// memory the same lists are filtered several times over. `None` if this machine can't run it.
    pub fn new(isa: Isa, memory_max: u64) -> Option<Self> {
        let memory_max = usize::try_from(memory_max).unwrap_or(usize::MAX);
        let counter: Box<dyn TileCounter> = match isa {
            Isa::Portable => Box::new(CpuCounter::<_, 32>::new(loops::Portable, memory_max)),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => Box::new(CpuCounter::<_, 32>::new(loops::Avx2::new()?, memory_max)),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => Box::new(CpuCounter::<_, 64>::new(loops::Avx512::new()?, memory_max)),
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx2 | Isa::Avx512 => return None,
        };
        Some(Self { counters: vec![counter], fault: None })
    }

    /// One that makes lists and trees, and has somebody else join them.
    pub fn by(counter: Box<dyn ProductCounter>) -> Self {
        let counters = DeviceCounter::of(counter).into_iter().map(|counter| Box::new(counter) as _);
        Self { counters: counters.collect(), fault: None }
    }

    /// Why it can't count any more; see [`Engine::fault`](crate::engine::Engine::fault).
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
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
        let tiles = Mutex::new(sets.tiles(range));
        let count = |counter: &mut Box<dyn TileCounter>| {
            // What was left when somebody stopped it belongs to nobody.
            counter.take_states();
            let mut orbits = Vec::new();
            let next = || tiles.lock().unwrap_or_else(PoisonError::into_inner).next();
            while let Some(tile) = next() {
                counter.count(
                    &tile,
                    only,
                    &mut |number, solutions| orbits.push((number, solutions)),
                    control,
                )?;
            }
            Ok((orbits, counter.take_states()))
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
        let counted = counted.inspect_err(|Stopped| self.fault = self.counters[0].fault())?;
        let mut tally = ColourTally::default();
        for (orbits, states) in counted {
            tally.states += states;
            for (number, solutions) in orbits {
                let sum = tally.weighted_solutions.checked_add(solutions);
                tally.weighted_solutions = sum.expect("a range of orbits has fewer than 2^64 solutions");
                found(number, solutions);
            }
        }
        Ok(tally)
    }
}

/// The sets of even and of odd columns that are counted for a tile; `None` if there are none of a parity.
pub(super) fn columns(tile: &Tile<'_>, only: [Only; 2]) -> Option<[ColumnSets; 2]> {
    let Stratum { lines, white, .. } = *tile.stratum;
    let columns = Parity::ALL.map(|parity| {
        ColumnSets::new(lines, parity, lines.white(parity, white), tile.ranks(), only[parity as usize])
    });
    columns.iter().all(|columns| columns.len() > 0).then_some(columns)
}

#[cfg(test)]
mod tests;
