//! What one thread counts with.

use std::ops::Range;
use std::slice;

use crate::colours::{self, ColourTally, Multiplier, RowSets};
use crate::counts::{Counts, Overflow, Totals};
use crate::engine::{Control, Engine, Stopped, Tally};
use crate::job::Job;
use crate::subproblem::Subproblem;
use crate::unit::{Unit, UnitTally};

/// An engine for boards, and the multiplication of colours; with whatever buffers they keep from one unit to the next. One a
/// thread.
pub struct Solver {
    engine: Box<dyn Engine>,
    /// Whether the engine is given mirror images: other masks, other shifts, other order.
    mirrored: bool,
    /// Bytes for its multiplication; `None` where it [recounts](Self::recounting).
    memory_max: Option<u64>,
    /// Made when it is first needed.
    multiplier: Option<Box<Multiplier>>,
}

impl Solver {
    /// Row sets of no more states than this are searched one solution at a time when mirror images are asked for: a second
    /// or so.
    const SEARCHED_MAX: u64 = 100_000_000;

    /// Memory of a multiplication that recounts.
    const MEMORY_RECOUNTING: u64 = 1 << 30;

    /// Counts by `engine`, and multiplies colours with [its instructions](Engine::isa) in about `memory_max` bytes, or less.
    /// The plain engines `reference` and `scalar` search the solutions of colours.
    pub fn new(engine: Box<dyn Engine>, memory_max: u64) -> Self {
        Self { engine, mirrored: false, memory_max: Some(memory_max), multiplier: None }
    }

    /// Counts every board by its mirror image. Row sets of colours are searched one solution at a time by the plain engines,
    /// and multiplied by the others. This is the other road for audits.
    pub fn recounting(engine: Box<dyn Engine>) -> Self {
        Self { mirrored: true, memory_max: None, ..Self::new(engine, 0) }
    }

    /// Whether boards are counted by their mirror images from now on. Colours know none, and are multiplied as always; but
    /// where it takes no longer than a second their solutions are found one by one instead.
    pub fn mirror(&mut self, is_on: bool) {
        self.mirrored = is_on;
    }

    /// The engine's wish, see [`Engine::leaf_test`].
    pub fn leaf_test(&self) -> bool {
        self.engine.leaf_test()
    }

    /// Why the engine can't go on, see [`Engine::fault`].
    pub fn fault(&self) -> Option<&str> {
        self.engine.fault().or_else(|| self.multiplier.as_ref()?.fault())
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
        self.count_each(units, &mut |_, _, _| {}, control)
    }

    /// The same, and tells what each row set of the units has that are ranges of such: `found` gets the place of the unit and
    /// the number of a row set with solutions of it, in one call or in several that add up.
    pub fn count_each(
        &mut self,
        units: &[Unit],
        found: &mut dyn FnMut(usize, u64, u64),
        control: &Control,
    ) -> Result<Vec<UnitTally>, Stopped> {
        let boards = units.iter().filter_map(Unit::board).cloned();
        let boards: Vec<_> = boards.map(|board| imaged(board, self.mirrored)).collect();
        let (mut tallies, batch_max) = (vec![Tally::default(); boards.len()], self.batch_max());
        for (boards, tallies) in boards.chunks(batch_max).zip(tallies.chunks_mut(batch_max)) {
            self.engine.count_batch(boards, tallies, control)?;
        }
        let row_sets: Vec<_> =
            units.iter().enumerate().filter_map(|(at, unit)| Some((at, unit.row_sets()?))).collect();
        let mut orbits = Vec::with_capacity(row_sets.len());
        for row_sets in row_sets.chunk_by(|(_, (one, _)), (_, (other, _))| one == other) {
            let sets = RowSets::shared(row_sets[0].1.0).expect("checked when the job was made");
            let ranges: Vec<_> = row_sets.iter().map(|(_, (_, range))| range.clone()).collect();
            let mut found = |at: usize, number, solutions| found(row_sets[at].0, number, solutions);
            orbits.extend(self.count_row_sets(sets, &ranges, &mut found, control)?);
        }
        let (mut tallies, mut orbits) = (tallies.into_iter(), orbits.into_iter());
        let mut tally = || tallies.next().expect("a tally for each board");
        let count = |unit: &Unit| match unit {
            Unit::Count(_) => Ok(tally().into()),
            Unit::Symmetric(symmetric) => symmetric.sort(tally(), control),
            Unit::Leaves(leaves) => leaves.solve(control),
            Unit::RowSets(..) => {
                let ColourTally { weighted_solutions, states } = orbits.next().expect("one for each range");
                Ok(UnitTally { counts: Counts::plain(weighted_solutions), states })
            }
            Unit::Plain(_) => Ok(UnitTally::plain(tally())),
        };
        units.iter().map(count).collect()
    }

    /// Counts what belongs to one unit; exactly, or not at all when stopped.
    pub fn count_unit(&mut self, unit: &Unit, control: &Control) -> Result<UnitTally, Stopped> {
        Ok(self.count(slice::from_ref(unit), control)?.remove(0))
    }

    fn count_row_sets(
        &mut self,
        sets: &RowSets,
        ranges: &[Range<u64>],
        found: &mut dyn FnMut(usize, u64, u64),
        control: &Control,
    ) -> Result<Vec<ColourTally>, Stopped> {
        let second_count = self.mirrored && self.memory_max.is_some();
        let is_searched = |range| second_count && colours::recount_states(sets, range) <= Self::SEARCHED_MAX;
        let (mut searched, mut others): (Vec<usize>, Vec<usize>) =
            (0..ranges.len()).partition(|at| is_searched(&ranges[*at]));
        let mut tallies = vec![ColourTally::default(); ranges.len()];
        if !others.is_empty() {
            if let Some(multiplier) = self.multiplier() {
                let multiplied: Vec<_> = others.iter().map(|at| ranges[*at].clone()).collect();
                let mut found = |at: usize, number, solutions| found(others[at], number, solutions);
                let counted = multiplier.count_ranges(sets, &multiplied, &mut found, control)?;
                others.iter().zip(counted).for_each(|(at, tally)| tallies[*at] = tally);
            } else {
                searched.append(&mut others);
            }
        }
        for at in searched {
            let mut found = |number, solutions| found(at, number, solutions);
            tallies[at] = colours::recount_each(sets, ranges[at].clone(), &mut found, control)?;
        }
        // What it keeps would be in the way of other threads that count the board's largest row sets.
        let least = sets.memory_least(&(0..sets.len()));
        if self.engine.isa().is_some() && self.memory_max.is_some_and(|most| most < least) {
            self.multiplier = None;
        }
        Ok(tallies)
    }

    /// What multiplies colours; `None` if the engine is a plain one.
    pub fn multiplier(&mut self) -> Option<&mut Multiplier> {
        if self.multiplier.is_none() {
            let counters = self.engine.product_counters();
            let multiplier = if counters.is_empty() {
                let isa = self.engine.isa()?;
                let memory_max = self.memory_max.unwrap_or(Self::MEMORY_RECOUNTING);
                Multiplier::new(isa, memory_max).expect("the engine runs on the same instructions")
            } else {
                Multiplier::by(counters)
            };
            self.multiplier = Some(Box::new(multiplier));
        }
        self.multiplier.as_deref_mut()
    }
}

fn imaged(board: Subproblem, mirrored: bool) -> Subproblem {
    if mirrored { board.mirrored() } else { board }
}
