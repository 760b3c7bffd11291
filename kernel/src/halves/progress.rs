//! Reports the progress of a join.

use crate::engine::{Control, Stopped};

/// What a join is doing, for measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Listing the placements of half boards and making their bit planes.
    Generation,
    /// Choosing the placements that stand beside given queens of the other half, and planning their join.
    Filters,
    /// Splitting long lists on a diagonal.
    Splits,
    /// Preparing queries, and blocks with their tables.
    Tables,
    /// Comparing queries with blocks.
    Queries,
}

/// Who is told each time that a join turns to another phase, or again to the same.
pub type Observer<'a> = dyn FnMut(Phase) + 'a;

/// Collects the pairs joined and reports them now and then.
pub(super) struct Progress<'a> {
    control: &'a Control,
    observer: Option<&'a mut Observer<'a>>,
    pairs: u64,
    reported: u64,
}

impl<'a> Progress<'a> {
    /// Pairs between two reports: a millisecond's work with AVX-512, 50 times that in plain code.
    const INTERVAL: u64 = 1 << 28;

    pub(super) fn new(control: &'a Control) -> Self {
        Self { control, observer: None, pairs: 0, reported: 0 }
    }

    /// With someone who is told about phases.
    pub(super) fn observed(control: &'a Control, observer: &'a mut Observer<'a>) -> Self {
        Self { observer: Some(observer), ..Self::new(control) }
    }

    #[inline]
    pub(super) fn enter(&mut self, phase: Phase) {
        if let Some(observer) = &mut self.observer {
            observer(phase);
        }
    }

    pub(super) fn add(&mut self, pairs: u64) -> Result<(), Stopped> {
        self.pairs += pairs;
        if self.pairs - self.reported >= Self::INTERVAL { self.report() } else { Ok(()) }
    }

    /// Reports all that was joined.
    pub(super) fn report(&mut self) -> Result<(), Stopped> {
        let news = self.pairs - self.reported;
        self.reported = self.pairs;
        self.control.advance(news)
    }

    /// All pairs joined so far.
    pub(super) fn pairs(&self) -> u64 {
        self.pairs
    }
}
