//! Makes the jobs of a plan beside whatever is done with them.

use std::sync::Arc;

use nqueens_kernel::job::{Job, Weight};
use nqueens_kernel::plan::{Fingerprint, Fingerprinter, Plan};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::error::Error;

/// Jobs in a batch; the last has fewer.
pub(crate) const BATCH: u32 = 5_000;

/// A plan in the making, on a thread of its own. It stays two batches ahead, and stops when this is dropped.
pub(crate) struct Planner {
    batches: mpsc::Receiver<Vec<(Job, Weight)>>,
    planning: JoinHandle<Fingerprinter>,
}

impl Planner {
    pub(crate) fn start(plan: Plan) -> Self {
        let (sender, batches) = mpsc::channel(2);
        Self { batches, planning: tokio::task::spawn_blocking(move || make(&plan, &sender)) }
    }

    /// The next jobs; `None` after the last.
    pub(crate) async fn next(&mut self) -> Option<Vec<(Job, Weight)>> {
        self.batches.recv().await
    }

    /// The plan's fingerprint, once all jobs have been taken.
    pub(crate) async fn finish(self) -> Result<Fingerprint, Arc<Error>> {
        let made = self.planning.await.map_err(|panic| Error::PlanFailed(panic.to_string()))?;
        Ok(made.finish())
    }
}

fn make(plan: &Plan, batches: &mpsc::Sender<Vec<(Job, Weight)>>) -> Fingerprinter {
    let mut fingerprint = Fingerprinter::new(plan);
    let mut jobs = plan.weighed_jobs();
    loop {
        let batch: Vec<_> = jobs.by_ref().take(BATCH as usize).collect();
        for (job, _) in &batch {
            fingerprint.add(job);
        }
        if batch.is_empty() || batches.blocking_send(batch).is_err() {
            return fingerprint;
        }
    }
}
