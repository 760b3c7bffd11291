//! Reports the progress of a join.

use crate::engine::{Control, Stopped};

/// Collects the pairs joined and reports them now and then.
pub(super) struct JoinProgress<'a> {
    control: &'a Control,
    pairs: u64,
    reported: u64,
}

impl<'a> JoinProgress<'a> {
    /// Pairs between two reports: a millisecond's work with AVX-512, 50 times that in plain code.
    const INTERVAL: u64 = 1 << 28;

    pub(super) fn new(control: &'a Control) -> Self {
        Self { control, pairs: 0, reported: 0 }
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
