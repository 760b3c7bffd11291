//! What one thread counts with.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::engine::{Control, Engine, Kernel, Mirrored, Stopped};
use crate::halves::{Isa, Join, JoinTally, Orbits, SharedTables, recount};

/// An engine for boards, and a way to count column sets of half boards; with whatever buffers they keep from one
/// unit to the next. One a thread.
pub struct Solver {
    engine: Mirrored,
    halves: Halves,
}

/// A way to count column sets.
enum Halves {
    /// By the half-board join.
    Join { join: Box<Join>, tables: Arc<SharedTables> },
    /// Row by row, by the engine.
    Recount,
}

impl Solver {
    /// Counts by `kernel`, and joins half boards with its instructions and the process's `tables`. The plain engines
    /// `reference` and `scalar` have no join: they [recount](Self::recounting). `None` if this machine can't run
    /// the engine.
    pub fn new(kernel: Kernel, tables: &Arc<SharedTables>) -> Option<Self> {
        let engine = Mirrored { engine: kernel.engine()?, is_on: false };
        let join = match kernel {
            Kernel::Reference | Kernel::Scalar => None,
            Kernel::Portable => Some(Isa::Portable),
            Kernel::Avx2 => Some(Isa::Avx2),
            Kernel::Avx512 => Some(Isa::Avx512),
        };
        let halves = join.map_or(Halves::Recount, |isa| {
            // The join needs a few instructions more than the engine of the same name.
            let mut slower = Isa::ALL.into_iter().rev().filter(|&slower| slower <= isa);
            let join = slower.find_map(|isa| Join::new(isa, tables.lists_max()));
            let join = Box::new(join.expect("portable code runs everywhere"));
            Halves::Join { join, tables: Arc::clone(tables) }
        });
        Some(Self { engine, halves })
    }

    /// Counts by `kernel` alone, column sets of half boards too (slower than the join, and independent of it), and
    /// every board by its mirror image. This is the other road for audits. `None` if this machine can't run the engine.
    pub fn recounting(kernel: Kernel) -> Option<Self> {
        Some(Self { engine: Mirrored { engine: kernel.engine()?, is_on: true }, halves: Halves::Recount })
    }

    /// Whether boards are counted by their mirror images from now on. The join knows none, and counts half boards as it
    /// always does.
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

    /// Counts the solutions of some orbits, each with its weight; exactly, or not at all when stopped.
    pub(crate) fn count_halves(
        &mut self,
        orbits: &Orbits,
        range: Range<u64>,
        control: &Control,
    ) -> Result<JoinTally, Stopped> {
        match &mut self.halves {
            Halves::Join { join, tables } => join.count(&*tables.get(orbits.n(), control)?, range, control),
            Halves::Recount => recount(orbits, range, &mut self.engine, control),
        }
    }
}

impl fmt::Debug for Solver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let halves = match &self.halves {
            Halves::Join { join, .. } => join.isa().name(),
            Halves::Recount => "recount",
        };
        write!(f, "Solver {{ kernel: {}, halves: {halves} }}", self.kernel())
    }
}
