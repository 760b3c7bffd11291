//! What one thread counts with.

use std::ops::Range;
use std::slice;
use std::sync::Arc;

use crate::colours::{self, ColourTally, Multiplier, RowSets};
use crate::counts::{Counts, Overflow, Totals};
use crate::engine::{Control, Engine, Stopped, Tally};
use crate::halves::{self, Join, JoinTally, Orbits, SharedTables};
use crate::isa::Isa;
use crate::job::Job;
use crate::ranges::Numbered;
use crate::subproblem::Subproblem;
use crate::unit::{self, Unit, UnitTally};

/// An engine for boards, and ways to count column sets of half boards and row sets of colours; with whatever buffers they
/// keep from one unit to the next. One a thread.
pub struct Solver {
    engine: Box<dyn Engine>,
    /// Whether the engine is given mirror images: other masks, other shifts, other order.
    mirrored: bool,
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

    /// Counts by `engine`, and joins half boards and multiplies colours with [its instructions](Engine::isa), within the
    /// memory that `tables` have been given. The plain engines `reference` and `scalar` do neither: they
    /// [recount](Self::recounting), and search a torus in a way of their own.
    pub fn new(engine: Box<dyn Engine>, tables: &Arc<SharedTables>) -> Self {
        let isa = engine.isa();
        Self { engine, mirrored: false, isa, tables: Some(Arc::clone(tables)), latest: Latest::Neither }
    }

    /// Counts by `engine` alone, column sets of half boards too (slower than the join, and independent of it), and
    /// every board by its mirror image. Row sets of colours are searched one solution at a time by the plain engines,
    /// and multiplied by the others. This is the other road for audits.
    pub fn recounting(engine: Box<dyn Engine>) -> Self {
        let isa = engine.isa();
        Self { engine, mirrored: true, isa, tables: None, latest: Latest::Neither }
    }

    /// Whether boards are counted by their mirror images from now on. Half boards know none, and are counted as always;
    /// so are colours, but where it takes no longer than a second their solutions are found one by one instead.
    pub fn mirror(&mut self, is_on: bool) {
        self.mirrored = is_on;
    }

    /// The engine's wish, see [`Engine::leaf_test`].
    pub fn leaf_test(&self) -> bool {
        self.engine.leaf_test()
    }

    /// Why the engine can't go on, see [`Engine::fault`].
    pub fn fault(&self) -> Option<&str> {
        match &self.latest {
            Latest::Multiplier(multiplier) => self.engine.fault().or(multiplier.fault()),
            _ => self.engine.fault(),
        }
    }

    /// The engine's limit, see [`Engine::batch_max`].
    pub fn batch_max(&self) -> usize {
        self.engine.batch_max()
    }

    /// Counts all that belongs to some jobs, and tells what there was and how many states were visited; exactly, or not at
    /// all when stopped. A job is taken only when there is room for it in a batch.
    pub fn count_jobs(
        &mut self,
        jobs: impl IntoIterator<Item = Job>,
        control: &Control,
    ) -> Result<(Totals, u128), Stopped> {
        let (leaf_test, batch_max) = (self.leaf_test(), self.batch_max());
        let mut units = jobs.into_iter().flat_map(|job| job.units(leaf_test));
        let (mut totals, mut states) = (Totals::default(), 0);
        loop {
            let batch: Vec<_> = units.by_ref().take(batch_max).collect();
            if batch.is_empty() {
                return Ok((totals, states));
            }
            for tally in self.count(&batch, control)? {
                totals = totals.checked_add(tally.counts).expect("fewer than 2^64 units");
                states += u128::from(tally.states);
            }
        }
    }

    /// Counts what belongs to one job; exactly, or not at all when stopped. The inner error is a sum beyond 64 bits.
    pub fn count_job(
        &mut self,
        job: &Job,
        control: &Control,
    ) -> Result<Result<UnitTally, Overflow>, Stopped> {
        let mut tallies = self.count(&job.units(self.leaf_test()), control)?.into_iter();
        Ok(tallies.try_fold(UnitTally::default(), UnitTally::checked_add))
    }

    /// Counts what belongs to each of some units, of which the boards go to the engine in batches; exactly, or not at all
    /// when stopped.
    pub fn count(&mut self, units: &[Unit], control: &Control) -> Result<Vec<UnitTally>, Stopped> {
        self.count_each(units, &mut |_, _| {}, control)
    }

    /// The same, and tells what each orbit of the units has that are ranges of such: `found` gets the number of an orbit
    /// with solutions of it, in one call or in several that add up.
    pub fn count_each(
        &mut self,
        units: &[Unit],
        found: &mut dyn FnMut(u64, u64),
        control: &Control,
    ) -> Result<Vec<UnitTally>, Stopped> {
        let boards = units.iter().filter_map(Unit::board).cloned();
        let boards: Vec<_> = boards.map(|board| imaged(board, self.mirrored)).collect();
        let (mut tallies, batch_max) = (vec![Tally::default(); boards.len()], self.batch_max());
        for (boards, tallies) in boards.chunks(batch_max).zip(tallies.chunks_mut(batch_max)) {
            self.engine.count_batch(boards, tallies, control)?;
        }
        let mut tallies = tallies.into_iter();
        let mut tally = || tallies.next().expect("a tally for each board");
        let count = |unit: &Unit| match unit {
            Unit::Count(_) => Ok(tally().into()),
            Unit::Symmetric(symmetric) => symmetric.sort(tally(), control),
            Unit::Leaves(leaves) => leaves.solve(control),
            Unit::Orbits(orbits) => self.count_orbits(orbits, found, control),
            Unit::Plain(_) => Ok(UnitTally::plain(tally())),
            Unit::Torus(piece) => Ok(UnitTally::plain(piece.count(self.isa.is_some(), control)?)),
        };
        units.iter().map(count).collect()
    }

    /// Counts what belongs to one unit; exactly, or not at all when stopped.
    pub fn count_unit(&mut self, unit: &Unit, control: &Control) -> Result<UnitTally, Stopped> {
        Ok(self.count(slice::from_ref(unit), control)?.remove(0))
    }

    fn count_orbits(
        &mut self,
        orbits: &unit::OrbitRange,
        found: &mut dyn FnMut(u64, u64),
        control: &Control,
    ) -> Result<UnitTally, Stopped> {
        let range = orbits.range.clone();
        let (solutions, states) = match orbits.numbered() {
            Numbered::Columns(orbits) => {
                let tally = self.count_halves(&orbits, range, found, control)?;
                (tally.weighted_solutions, tally.states)
            }
            Numbered::Rows(sets) => {
                let tally = self.count_row_sets(sets, range, found, control)?;
                (tally.weighted_solutions, tally.states)
            }
        };
        Ok(UnitTally { counts: Counts::plain(solutions), states })
    }

    /// Counts the solutions of some orbits of column sets, each with its weight.
    fn count_halves(
        &mut self,
        orbits: &Orbits,
        range: Range<u64>,
        found: &mut dyn FnMut(u64, u64),
        control: &Control,
    ) -> Result<JoinTally, Stopped> {
        let (Some(isa), Some(tables)) = (self.isa, &self.tables) else {
            let count = |board: Subproblem| self.engine.count(&imaged(board, self.mirrored), control);
            return halves::recount(orbits, range, found, count);
        };
        if !matches!(self.latest, Latest::Join(_)) {
            let make = |isa| Join::new(isa, tables.lists_max());
            self.latest = Latest::Join(Box::new(best(isa, make)));
        }
        let Latest::Join(join) = &mut self.latest else { unreachable!("just made") };
        join.count_each(&*tables.get(orbits.n(), control)?, range, found, control)
    }

    /// Counts the solutions of some orbits of row sets, each with its weights; exactly, or not at all when stopped.
    pub fn count_colours(
        &mut self,
        sets: &RowSets,
        range: Range<u64>,
        control: &Control,
    ) -> Result<ColourTally, Stopped> {
        self.count_row_sets(sets, range, &mut |_, _| {}, control)
    }

    fn count_row_sets(
        &mut self,
        sets: &RowSets,
        range: Range<u64>,
        found: &mut dyn FnMut(u64, u64),
        control: &Control,
    ) -> Result<ColourTally, Stopped> {
        let second_count = self.mirrored && self.tables.is_some();
        if second_count && colours::recount_states(sets, &range) <= Self::SEARCHED_MAX {
            return colours::recount_each(sets, range, found, control);
        }
        match self.multiplier() {
            Some(multiplier) => multiplier.count_each(sets, range, found, control),
            None => colours::recount_each(sets, range, found, control),
        }
    }

    /// What multiplies colours; `None` if the engine is a plain one.
    pub fn multiplier(&mut self) -> Option<&mut Multiplier> {
        if !matches!(self.latest, Latest::Multiplier(_)) {
            let multiplier = if let Some(counter) = self.engine.product_counter() {
                Multiplier::by(counter)
            } else {
                let isa = self.isa?;
                let memory_max =
                    self.tables.as_ref().map_or(Self::MEMORY_ALONE, |tables| tables.left_for_thread());
                best(isa, |isa| Multiplier::new(isa, memory_max))
            };
            self.latest = Latest::Multiplier(Box::new(multiplier));
        }
        let Latest::Multiplier(multiplier) = &mut self.latest else { unreachable!("just made") };
        Some(multiplier)
    }
}

fn imaged(board: Subproblem, mirrored: bool) -> Subproblem {
    if mirrored { board.mirrored() } else { board }
}

/// What is made for these instructions or, as it may need a few more than the engine of the same name, for the best ones
/// below that this machine has.
fn best<T>(isa: Isa, make: impl Fn(Isa) -> Option<T>) -> T {
    let slower = Isa::ALL.into_iter().rev().filter(|&slower| slower <= isa);
    slower.into_iter().find_map(make).expect("portable code runs everywhere")
}
