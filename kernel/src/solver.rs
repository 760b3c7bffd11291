//! What one thread counts with.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::colours::{self, ColourTally, Multiplier, RowSets};
use crate::engine::{Control, Engine, Kernel, Mirrored, Stopped};
use crate::halves::{self, Join, JoinTally, Orbits, SharedTables};
use crate::isa::Isa;

/// An engine for boards, and ways to count column sets of half boards and row sets of colours; with whatever buffers they
/// keep from one unit to the next. One a thread.
pub struct Solver {
    engine: Mirrored,
    /// The instructions to join and to multiply by; the plain engines do neither.
    isa: Option<Isa>,
    /// The process's tables of half boards; none where half boards are not joined.
    tables: Option<Arc<SharedTables>>,
    latest: Latest,
}

/// What was used last. Of the two only one keeps its buffers, so that both together stay within the memory of one.
enum Latest {
    Neither,
    Join(Box<Join>),
    Multiplier(Box<Multiplier>),
}

impl Solver {
    /// Row sets of no more states than this are searched one solution at a time when mirror images are asked for: a second
    /// or so.
    const SEARCHED_MAX: u64 = 100_000_000;

    /// Memory of a multiplication that is not one of many threads.
    const MEMORY_ALONE: u64 = 1 << 30;

    /// Counts by `kernel`, and joins half boards and multiplies colours with its instructions, within the memory that
    /// `tables` have been given. The plain engines `reference` and `scalar` do neither: they
    /// [recount](Self::recounting). `None` if this machine can't run the engine.
    pub fn new(kernel: Kernel, tables: &Arc<SharedTables>) -> Option<Self> {
        let engine = Mirrored { engine: kernel.engine()?, is_on: false };
        Some(Self { engine, isa: isa(kernel), tables: Some(Arc::clone(tables)), latest: Latest::Neither })
    }

    /// Counts by `kernel` alone, column sets of half boards too (slower than the join, and independent of it), and
    /// every board by its mirror image. Row sets of colours are searched one solution at a time by the plain engines,
    /// and multiplied by the others. This is the other road for audits. `None` if this machine can't run the engine.
    pub fn recounting(kernel: Kernel) -> Option<Self> {
        let engine = Mirrored { engine: kernel.engine()?, is_on: true };
        Some(Self { engine, isa: isa(kernel), tables: None, latest: Latest::Neither })
    }

    /// Whether boards are counted by their mirror images from now on. Half boards know none, and are counted as always;
    /// so are colours, but where it takes no longer than a second their solutions are found one by one instead.
    pub fn mirror(&mut self, is_on: bool) {
        self.engine.is_on = is_on;
    }

    /// The engine's kernel.
    pub fn kernel(&self) -> Kernel {
        self.engine.kernel()
    }

    /// The engine's wish, see [`Engine::leaf_test`].
    pub fn leaf_test(&self) -> bool {
        self.engine.leaf_test()
    }

    pub(crate) fn engine(&mut self) -> &mut dyn Engine {
        &mut self.engine
    }

    /// Counts the solutions of some orbits of column sets, each with its weight; exactly, or not at all when stopped.
    pub(crate) fn count_halves(
        &mut self,
        orbits: &Orbits,
        range: Range<u64>,
        control: &Control,
    ) -> Result<JoinTally, Stopped> {
        let (Some(isa), Some(tables)) = (self.isa, &self.tables) else {
            return halves::recount(orbits, range, &mut self.engine, control);
        };
        if !matches!(self.latest, Latest::Join(_)) {
            let make = |isa| Join::new(isa, tables.lists_max());
            self.latest = Latest::Join(Box::new(best(isa, make)));
        }
        let Latest::Join(join) = &mut self.latest else { unreachable!("just made") };
        join.count(&*tables.get(orbits.n(), control)?, range, control)
    }

    /// Counts the solutions of some orbits of row sets, each with its weights; exactly, or not at all when stopped.
    pub fn count_colours(
        &mut self,
        sets: &RowSets,
        range: Range<u64>,
        control: &Control,
    ) -> Result<ColourTally, Stopped> {
        let second_count = self.engine.is_on && self.tables.is_some();
        if second_count && colours::recount_states(sets, &range) <= Self::SEARCHED_MAX {
            return colours::recount(sets, range, control);
        }
        match self.multiplier() {
            Some(multiplier) => multiplier.count(sets, range, control),
            None => colours::recount(sets, range, control),
        }
    }

    /// What multiplies colours; `None` if the engine is a plain one.
    pub fn multiplier(&mut self) -> Option<&mut Multiplier> {
        let isa = self.isa?;
        if !matches!(self.latest, Latest::Multiplier(_)) {
            let memory_max =
                self.tables.as_ref().map_or(Self::MEMORY_ALONE, |tables| tables.left_for_thread());
            self.latest = Latest::Multiplier(Box::new(best(isa, |isa| Multiplier::new(isa, memory_max))));
        }
        let Latest::Multiplier(multiplier) = &mut self.latest else { unreachable!("just made") };
        Some(multiplier)
    }
}

fn isa(kernel: Kernel) -> Option<Isa> {
    match kernel {
        Kernel::Reference | Kernel::Scalar => None,
        Kernel::Portable => Some(Isa::Portable),
        Kernel::Avx2 => Some(Isa::Avx2),
        Kernel::Avx512 => Some(Isa::Avx512),
    }
}

/// What is made for these instructions or, as it may need a few more than the engine of the same name, for the best ones
/// below that this machine has.
fn best<T>(isa: Isa, make: impl Fn(Isa) -> Option<T>) -> T {
    let slower = Isa::ALL.into_iter().rev().filter(|&slower| slower <= isa);
    slower.into_iter().find_map(make).expect("portable code runs everywhere")
}

impl fmt::Debug for Solver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let road = if self.tables.is_some() { "counting" } else { "recounting" };
        write!(f, "Solver {{ kernel: {}, {road} }}", self.kernel())
    }
}
