//! The speed of runs and their time left, measured by the results that come in.
//!
//! A run's window holds its latest results. It starts anew when other workers count than before: then all that is kept of the past
//! is a speed, scaled by what is known of these workers, and the greater the change the sooner results outweigh it.

mod gauge;

use std::collections::HashMap;

use nqueens_model::id::RunId;
use nqueens_model::operator::RunState;
use nqueens_scheduler::{Busy, Dispatch, Millis, Run};

pub use self::gauge::Measured;
use self::gauge::{GATHER_MS, Gauge};

/// The speed of each run, with how far it can be trusted.
#[derive(Debug, Default)]
pub(crate) struct Speeds {
    gauges: HashMap<RunId, Gauge>,
    /// Who holds leases, ...
    busy: Busy,
    /// ... as of this time: there may be ten thousand workers to look at.
    looked: Option<Millis>,
}

impl Speeds {
    /// Looks at what has come in.
    pub(crate) fn note(&mut self, now: Millis, dispatch: &Dispatch) {
        let looks = self.looked.is_none_or(|looked| now.saturating_sub(looked) >= GATHER_MS);
        if looks {
            (self.busy, self.looked) = (dispatch.busy(now), Some(now));
        }
        for run in dispatch.runs() {
            let gauge = self.gauges.entry(run.id()).or_insert_with(|| Gauge::at(now, run.sums()));
            gauge.note(now, run.sums(), &self.busy, || looks && dispatch.is_counted(run.id()));
        }
    }

    /// Workers that are present and hold a lease, as of a second ago.
    pub(crate) fn busy_workers(&self) -> usize {
        self.busy.workers
    }

    /// The same of one run: none of a run that waits, or that is over.
    pub(crate) fn workers(&self, run: &Run) -> usize {
        let holders = self.busy.of_run.get(&run.id()).copied();
        holders.filter(|_| run.state().is_open()).unwrap_or(0)
    }

    /// Threads of the present workers that hold leases, if some of these are of a run: so many may be counting it.
    #[expect(clippy::cast_precision_loss, reason = "a speed")]
    pub(crate) fn threads(&self, run: &Run) -> Option<f64> {
        let at_work = run.state() == RunState::Active && run.sums().leased > 0 && self.busy.threads > 0;
        at_work.then_some(self.busy.threads as f64)
    }

    /// How fast a run goes; `None` while nobody counts, or too little is known.
    pub(crate) fn of(&self, run: &Run) -> Option<Measured> {
        let busy = self.threads(run)?;
        let measured = self.gauges.get(&run.id())?.read()?;
        // Results that waited for the coordinator come in faster than anybody counts.
        let too_fast = (measured.speed.threads / busy).max(1.0);
        Some(measured.slower(too_fast))
    }
}
