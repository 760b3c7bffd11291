//! How far the runs are: a picture for whoever shows it.

use nqueens_kernel::board::BoardSize;
use nqueens_proto::id::RunId;

use crate::dispatch::{Dispatch, Run, RunState, Sums};

/// All runs at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Each run, by id.
    pub runs: Vec<RunProgress>,
    /// Workers that hold a lease.
    pub busy_workers: usize,
}

impl Snapshot {
    pub(crate) fn of(dispatch: &Dispatch) -> Self {
        Self { runs: dispatch.runs().map(RunProgress::of).collect(), busy_workers: dispatch.busy_workers() }
    }

    /// The runs whose jobs are all done, and that have no total yet.
    pub(crate) fn complete(&self) -> Vec<RunId> {
        let waiting = |run: &&RunProgress| {
            matches!(run.state, RunState::Active | RunState::Paused) && run.sums.done == run.jobs
        };
        self.runs.iter().filter(waiting).map(|run| run.id).collect()
    }

    /// One run.
    pub fn run(&self, id: RunId) -> Option<&RunProgress> {
        self.runs.iter().find(|run| run.id == id)
    }
}

/// One run at one moment.
#[derive(Clone, Debug)]
pub struct RunProgress {
    /// Its name.
    pub id: RunId,
    /// The board that it counts.
    pub n: BoardSize,
    /// What it is doing.
    pub state: RunState,
    /// Number of jobs.
    pub jobs: u32,
    /// What they come to.
    pub sums: Sums,
}

impl RunProgress {
    pub(crate) fn of(run: &Run) -> Self {
        Self { id: run.id(), n: run.n(), state: run.state(), jobs: run.jobs(), sums: *run.sums() }
    }

    /// Share of the estimated work that is done, `0.0..=1.0`.
    pub fn share_done(&self) -> f64 {
        if self.jobs == self.sums.done {
            return 1.0;
        }
        #[expect(clippy::cast_precision_loss, reason = "a share, for people")]
        let share = self.sums.estimate_done as f64 / self.sums.estimate as f64;
        share
    }
}
