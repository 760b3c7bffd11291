//! What waits to be counted, what is being counted, and what has come of it.

use std::collections::VecDeque;
use std::iter;
use std::sync::Arc;

use nqueens_kernel::counts::Counts;
use nqueens_kernel::engine::{Control, Stopped};
use nqueens_kernel::job::Job;
use nqueens_kernel::solver::Solver;
use nqueens_kernel::unit::{Unit, UnitTally};
use nqueens_model::id::LeaseToken;
use nqueens_model::kernel::KernelName;
use nqueens_model::message::{HeldLease, JobResult, Lease, ReturnedLease};
use nqueens_worker_protocol::JobProgress;

use super::faults::Faults;
use super::spent::Spent;

/// What a result can hold: neither the wire nor a database has more than 63 bits for a number.
pub(super) const NUMBER_MAX: u64 = i64::MAX as u64;
const COUNTS_MAX: Counts =
    Counts { count2: NUMBER_MAX, count4: NUMBER_MAX, count8: NUMBER_MAX, solutions: NUMBER_MAX };

#[derive(Default)]
pub(super) struct Queue {
    pub(super) waiting: VecDeque<Lease>,
    pub(super) active: Vec<ActiveJob>,
    /// What threads are counting.
    pub(super) batches: Vec<Arc<PieceBatch>>,
    pub(super) finished: Vec<Result<JobResult, ReturnedLease>>,
    /// Jobs that have failed since one was finished.
    pub(super) failures: u32,
    pub(super) closing: bool,
    /// The engines of the threads that count.
    pub(super) living: Vec<KernelName>,
    pub(super) faults: Faults,
}

/// A job that threads are at work on.
pub(super) struct ActiveJob {
    pub(super) lease: Lease,
    pub(super) kernel: KernelName,
    /// It was in a batch that came to nothing, and from now on shares none with other jobs.
    pub(super) alone: bool,
    /// Pieces that nobody has taken yet.
    pub(super) units: Vec<Piece>,
    pub(super) units_total: usize,
    /// Pieces not finished yet, taken or not.
    pub(super) open: usize,
    pub(super) counts: Counts,
    pub(super) parts: PartCounts,
    pub(super) states: u64,
    pub(super) spent: Spent,
}

/// A piece of a job, and the part of the job that it belongs to; one of orbits may belong to several.
#[derive(Clone)]
pub(super) struct Piece {
    pub(super) unit: Unit,
    pub(super) part: usize,
}

/// What was found in each part of a job.
#[derive(Default)]
pub(super) struct PartCounts {
    /// Empty if the job is one part.
    counts: Vec<Counts>,
    /// The first orbit of each, if the job is a range of orbits.
    firsts: Arc<[u64]>,
}

pub(super) struct PieceTally {
    pub(super) tally: UnitTally,
    /// What was found in parts of the job: all of it.
    pub(super) parts: Vec<(usize, Counts)>,
}

/// Pieces that a thread counts together: such with boards, ranges of orbits, or one of another kind.
pub(super) struct PieceBatch {
    pub(super) units: Vec<Unit>,
    /// The part of each in its job.
    part_of: Vec<usize>,
    /// The first orbits of the parts of its job for each that is a range of orbits.
    firsts: Vec<Arc<[u64]>>,
    /// The jobs that these are of, in the same order, each with the number of its pieces.
    pub(super) shares: Vec<(LeaseToken, usize)>,
    pub(super) mirrored: bool,
    /// Stopped when nobody wants any of it.
    pub(super) control: Control,
}

/// Ranges of orbits that a device counts together, at most: enough that each of its threads has a tile of some.
pub(super) const ROW_SETS_MAX: usize = 16;

impl ActiveJob {
    pub(super) fn new(lease: &Lease, kernel: KernelName) -> Self {
        Self {
            lease: lease.clone(),
            kernel,
            alone: false,
            units: Vec::new(),
            units_total: 0,
            open: 0,
            counts: Counts::ZERO,
            parts: PartCounts::default(),
            states: 0,
            spent: Spent::default(),
        }
    }

    pub(super) fn progress(&self, batches: &[Arc<PieceBatch>]) -> JobProgress {
        let token = self.lease.token;
        let states = self.states + batches.iter().map(|batch| batch.states(token)).sum::<u64>();
        JobProgress { lease: HeldLease { token, states }, left: self.left() }
    }

    /// Estimated states of the pieces that nobody has taken yet.
    pub(super) fn left(&self) -> u64 {
        let (left, all) = (self.units.len() as u64, self.units_total.max(1) as u64);
        self.lease.states / all * left
    }

    /// Has its pieces counted, these ones of these parts.
    pub(super) fn begin(&mut self, units: Vec<Piece>, parts: PartCounts) {
        (self.units_total, self.open) = (units.len(), units.len());
        (self.units, self.parts) = (units, parts);
    }

    /// Adds what a piece gave; `None` if that leaves the range of a result.
    pub(super) fn add(&mut self, PieceTally { tally, parts }: &PieceTally, spent: Spent) -> Option<()> {
        let counts = self.counts.checked_add(tally.counts).ok().filter(|counts| counts.within(COUNTS_MAX))?;
        let states = self.states.checked_add(tally.states).filter(|states| *states <= NUMBER_MAX)?;
        (self.counts, self.states) = (counts, states);
        self.parts.add(parts);
        self.spent += spent;
        self.open -= 1;
        Some(())
    }
}

impl Piece {
    /// Smaller pieces, see [`Unit::split`].
    pub(super) fn split(self) -> impl Iterator<Item = Self> {
        let part = self.part;
        self.unit.split().into_iter().map(move |unit| Self { unit, part })
    }
}

impl PartCounts {
    /// Of a job that falls into these parts.
    pub(super) fn new(parts: &[Job]) -> Self {
        if parts.len() == 1 {
            return Self::default();
        }
        let firsts = parts.iter().filter_map(|part| Some(part.row_sets()?.start)).collect();
        Self { counts: vec![Counts::ZERO; parts.len()], firsts }
    }

    fn add(&mut self, found: &[(usize, Counts)]) {
        // A job of one part keeps no counts for it.
        for (part, more) in found {
            if let Some(counts) = self.counts.get_mut(*part) {
                *counts = counts.checked_add(*more).expect("no more than the job has");
            }
        }
    }

    pub(super) fn into_counts(self) -> Vec<Counts> {
        self.counts
    }
}

impl Queue {
    /// Where the job of a lease stands among the active ones.
    pub(super) fn find(&self, token: LeaseToken) -> Option<usize> {
        self.active.iter().position(|job| job.lease.token == token)
    }

    pub(super) fn end(&mut self, batch: &Arc<PieceBatch>) {
        self.batches.retain(|other| !Arc::ptr_eq(other, batch));
    }

    /// Stops the batches of which all jobs have left.
    pub(super) fn stop_unwanted(&self) {
        let unwanted = |batch: &PieceBatch| batch.shares.iter().all(|(token, _)| self.find(*token).is_none());
        self.batches.iter().filter(|batch| unwanted(batch)).for_each(|batch| batch.control.stop());
    }
}

impl PieceBatch {
    /// Takes pieces of the first job for this engine that has some, and others like it as long as there is room; `None` if
    /// there are none.
    pub(super) fn gather(jobs: &mut [ActiveJob], kernel: KernelName, batch_max: usize) -> Option<Self> {
        let mut jobs = jobs.iter_mut().filter(|job| job.kernel == kernel && !job.units.is_empty());
        let first = jobs.next()?;
        let kind = |piece: &Piece| (piece.unit.board().is_some(), piece.unit.row_sets().is_some());
        let wanted = kind(first.units.last()?);
        let room = match wanted {
            (true, _) => batch_max,
            (_, true) => batch_max.min(ROW_SETS_MAX),
            _ => 1,
        };
        let (alone, mirrored) = (first.alone, first.lease.mirrored);
        let others = jobs.filter(|job| !alone && !job.alone && job.lease.mirrored == mirrored);
        let mut batch = Self {
            units: Vec::new(),
            part_of: Vec::new(),
            firsts: Vec::new(),
            shares: Vec::new(),
            mirrored,
            control: Control::default(),
        };
        let mut before = 0;
        for job in iter::once(first).chain(others) {
            while batch.units.len() < room
                && let Some(Piece { unit, part }) = job.units.pop_if(|piece| kind(piece) == wanted)
            {
                batch.units.push(unit);
                batch.part_of.push(part);
                batch.firsts.push(Arc::clone(&job.parts.firsts));
            }
            if batch.units.len() > before {
                batch.shares.push((job.lease.token, batch.units.len() - before));
                before = batch.units.len();
            }
        }
        Some(batch)
    }

    pub(super) fn count(&self, solver: &mut Solver) -> Result<Vec<PieceTally>, Stopped> {
        let mut orbits: Vec<_> = self.firsts.iter().map(|firsts| vec![0_u64; firsts.len()]).collect();
        let mut add = |at: usize, orbit, solutions| {
            if let Some(part) = self.firsts[at].partition_point(|first| *first <= orbit).checked_sub(1) {
                orbits[at][part] += solutions;
            }
        };
        solver.mirror(self.mirrored);
        let tallies = solver.count_each(&self.units, &mut add, &self.control)?;
        let piece = |((tally, part), orbits): ((UnitTally, &usize), Vec<u64>)| {
            let parts = if orbits.is_empty() {
                vec![(*part, tally.counts)]
            } else {
                orbits.into_iter().map(Counts::plain).enumerate().collect()
            };
            PieceTally { tally, parts }
        };
        Ok(tallies.into_iter().zip(&self.part_of).zip(orbits).map(piece).collect())
    }

    /// The pieces, to be counted another time.
    pub(super) fn pieces(&self) -> Vec<Piece> {
        let pieces = self.units.iter().cloned().zip(&self.part_of);
        pieces.map(|(unit, part)| Piece { unit, part: *part }).collect()
    }

    /// The part of each job in what there is one of for each piece.
    pub(super) fn parts<'a, T>(&'a self, mut all: &'a [T]) -> impl Iterator<Item = (LeaseToken, &'a [T])> {
        self.shares
            .iter()
            .map(move |(token, pieces)| (*token, all.split_off(..*pieces).expect("one for each piece")))
    }

    /// States visited so far for a job: of those of all jobs as large a share as it has of the pieces.
    pub(super) fn states(&self, token: LeaseToken) -> u64 {
        let pieces: usize =
            self.shares.iter().filter(|(other, _)| *other == token).map(|(_, pieces)| pieces).sum();
        self.control.states() / self.units.len() as u64 * pieces as u64
    }
}
