//! The most that leased jobs can count: what their results are judged by, without a look at the ledger.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use nqueens_kernel::counts::Counts;
use nqueens_model::id::JobId;
use nqueens_scheduler::{Dispatch, JobState, Loaded, Needs, StoredJob};

/// When so many are kept, all are forgotten: the ledger has them.
const JOBS_MAX: usize = 200_000;

/// The limits of jobs that were leased of late. The writer has no part in the look-ups that find them.
#[derive(Debug, Default)]
pub(crate) struct CountLimits(Mutex<HashMap<JobId, Counts>>);

impl CountLimits {
    /// Keeps what was found of jobs that were just leased.
    pub(crate) fn keep(&self, jobs: impl Iterator<Item = (JobId, Counts)>) {
        let mut limits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if limits.len() >= JOBS_MAX {
            limits.clear();
        }
        limits.extend(jobs);
    }

    /// Moves the jobs that are open, so that no result stands for them, and whose limits are kept from what is needed to
    /// what is loaded. Limits are given out once.
    pub(crate) fn load(&self, needs: &mut Needs, dispatch: &Dispatch) -> Loaded {
        let mut limits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut loaded = Loaded::new();
        needs.reported.retain(|job| {
            let run = dispatch.run(job.run).filter(|run| run.contains(job.number));
            let state = run.map(|run| run.slot(job.number).state);
            let is_open = matches!(state, Some(JobState::Ready | JobState::Leased));
            let Some(counts_max) = limits.remove(job).filter(|_| is_open) else { return true };
            loaded.insert(*job, StoredJob { counts_max, accepted: None });
            false
        });
        loaded
    }
}
