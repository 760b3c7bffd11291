//! What is counted and not yet acknowledged.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use nqueens_model::message::{BATCH_MAX, JobResult, ResultAck, Verdict};
use nqueens_proto::InvalidMessage;
use tokio::time::Instant;
use tracing::{error, info, warn};

use crate::spool::Spool;

/// Results wait so long for company on their way to the disk.
const GATHER: Duration = Duration::from_millis(100);

/// A disk that took nothing is tried again after so long.
const DISK_RETRY: Duration = Duration::from_mins(1);

/// A spool with so many acknowledged results in it, and more of them than of others, is rewritten: about a megabyte.
const REWRITE_FROM: usize = 10_000;

/// Results in the order in which they were counted; with a spool, on disk before they are reported.
pub(crate) struct Outbox {
    results: VecDeque<JobResult>,
    /// So many of them, from the front, are in the spool.
    stored: usize,
    /// When the others are to be put there.
    store_at: Option<Instant>,
    /// Whether the disk failed the last time.
    failing: bool,
    /// Results in the spool, acknowledged or not.
    spooled: usize,
    /// The spool is rewritten when so many of them are acknowledged.
    rewrite_from: usize,
    spool: Option<Arc<Spool>>,
}

impl Outbox {
    /// Begins with what an earlier process left in the spool.
    pub(crate) fn new(spool: Option<Spool>) -> Self {
        let mut spool = spool;
        let results: VecDeque<_> = spool.as_mut().map(Spool::take_recovered).unwrap_or_default().into();
        if let Some(spool) = spool.as_ref().filter(|_| !results.is_empty()) {
            let dir = spool.dir().display();
            info!(results = results.len(), spool = %dir, "reporting what an earlier worker counted");
        }
        let stored = results.len();
        Self {
            results,
            stored,
            store_at: None,
            failing: false,
            spooled: stored,
            rewrite_from: REWRITE_FROM,
            spool: spool.map(Arc::new),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.results.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// Whether all of it would survive this process.
    pub(crate) fn is_kept(&self) -> bool {
        self.stored == self.results.len()
    }

    pub(crate) fn push(&mut self, result: JobResult) {
        self.results.push_back(result);
        if self.spool.is_some() && self.store_at.is_none() {
            self.store_at = Some(Instant::now() + GATHER);
        }
    }

    /// The next report.
    pub(crate) fn batch(&self) -> impl Iterator<Item = &JobResult> {
        self.results.iter().take(BATCH_MAX)
    }

    /// What has to wait for a later report.
    pub(crate) fn later(&self) -> impl Iterator<Item = &JobResult> {
        self.results.iter().skip(BATCH_MAX)
    }

    /// When [`store`](Self::store) has something to do.
    pub(crate) fn store_at(&self) -> Option<Instant> {
        self.store_at
    }

    /// Puts on disk what is not there yet. If the disk does not take it, that is logged and tried again later:
    /// the results are still in memory.
    pub(crate) async fn store(&mut self) {
        let (Some(spool), Some(at)) = (&self.spool, self.store_at) else { return };
        if self.failing && Instant::now() < at {
            return;
        }
        let new: Vec<_> = self.results.range(self.stored..).copied().collect();
        let count = new.len();
        let (failed_before, dir) = (self.failing, spool.dir().display());
        let outcome = on_disk(spool, move |spool| spool.append(&new)).await;
        self.failing = outcome.is_err();
        match outcome {
            Ok(()) => {
                if failed_before {
                    info!(spool = %dir, "the spool takes results again");
                }
                (self.stored, self.store_at) = (self.results.len(), None);
                self.spooled += count;
            }
            Err(error) => {
                if !failed_before {
                    error!(
                        spool = %dir, %error,
                        "the spool takes nothing; results stay in memory alone until it does: make room"
                    );
                }
                self.store_at = Some(Instant::now() + DISK_RETRY);
            }
        }
    }

    /// Drops the [`batch`](Self::batch) that `acks` answers; what the coordinator does not know is set aside.
    pub(crate) async fn acknowledge(&mut self, acks: &[ResultAck]) -> Result<(), InvalidMessage> {
        if !self.batch().map(|result| result.token).eq(acks.iter().map(|ack| ack.token)) {
            let problem = "does not match the results that were sent".to_owned();
            return Err(InvalidMessage { field: "acks", problem });
        }
        let unknown = self.batch().zip(acks).filter(|(_, ack)| ack.verdict == Verdict::Unknown);
        let unknown: Vec<_> = unknown.map(|(result, _)| *result).collect();
        if !unknown.is_empty() {
            self.reject(unknown).await;
        }
        self.results.drain(..acks.len());
        self.stored = self.stored.saturating_sub(acks.len());
        if self.results.is_empty() {
            self.store_at = None;
            self.clear().await;
        } else {
            self.rewrite().await;
        }
        Ok(())
    }

    async fn clear(&mut self) {
        let Some(spool) = self.spool.as_ref().filter(|_| self.spooled > 0) else { return };
        match on_disk(spool, Spool::clear).await {
            Ok(()) => self.spooled = 0,
            // What is in it is reported again at the next start, and recognised.
            Err(error) => warn!(spool = %spool.dir().display(), %error, "can't empty the spool"),
        }
    }

    /// Keeps the spool from growing for as long as there is always something in it that waits.
    async fn rewrite(&mut self) {
        let acknowledged = self.spooled - self.stored;
        let Some(spool) = &self.spool else { return };
        if acknowledged < self.rewrite_from.max(self.stored) {
            return;
        }
        let waiting: Vec<_> = self.results.range(..self.stored).copied().collect();
        match on_disk(spool, move |spool| spool.rewrite(&waiting)).await {
            Ok(()) => (self.spooled, self.rewrite_from) = (self.stored, REWRITE_FROM),
            Err(error) => {
                warn!(spool = %spool.dir().display(), %error, "can't rewrite the spool; it grows until that is possible");
                self.rewrite_from = 2 * acknowledged;
            }
        }
    }

    async fn reject(&self, unknown: Vec<JobResult>) {
        let Some(spool) = &self.spool else {
            warn!(results = unknown.len(), "the coordinator does not know these results; they are dropped");
            return;
        };
        let (count, dir) = (unknown.len(), spool.dir().display());
        let kept = unknown.clone();
        match on_disk(spool, move |spool| spool.reject(&kept)).await {
            Ok(()) => warn!(
                results = count, spool = %dir,
                "the coordinator does not know these results, they were counted for another database; \
                 they are kept in the spool, in the file 'rejected'"
            ),
            Err(error) => {
                for result in unknown {
                    error!(?result, %error, "the coordinator does not know this result, and it can't be kept");
                }
            }
        }
    }
}

async fn on_disk(
    spool: &Arc<Spool>,
    act: impl FnOnce(&Spool) -> io::Result<()> + Send + 'static,
) -> io::Result<()> {
    let spool = Arc::clone(spool);
    tokio::task::spawn_blocking(move || act(&spool)).await.expect("writing a file does not panic")
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use nqueens_kernel::counts::Counts;
    use nqueens_kernel::engine::Kernel;
    use nqueens_model::id::{Incarnation, JobId, LeaseToken, RunId};
    use tempfile::TempDir;

    use super::*;

    fn result(number: u32) -> JobResult {
        let job = JobId { run: RunId::from_random(7), number };
        let token = LeaseToken { job, epoch: NonZeroU32::MIN, incarnation: Incarnation::from_random(7) };
        JobResult { token, counts: Counts::only8(1), kernel: Kernel::ALL[0], states: 1, elapsed_us: 1 }
    }

    fn accepted(outbox: &Outbox) -> Vec<ResultAck> {
        let ack = |result: &JobResult| ResultAck {
            token: result.token,
            verdict: Verdict::Accepted,
            reason: String::new(),
        };
        outbox.batch().map(ack).collect()
    }

    #[tokio::test]
    async fn a_spool_that_is_never_empty_does_not_grow_for_ever() {
        let place = TempDir::new().expect("a directory");
        let mut outbox = Outbox::new(Some(Spool::open(place.path()).expect("a spool")));
        let size = || std::fs::metadata(place.path().join("results")).expect("a file").len();
        outbox.push(result(0));
        outbox.store().await;
        let record = size();
        let batch = u32::try_from(BATCH_MAX).expect("small");
        for round in 0..40 {
            (1..=batch).for_each(|number| outbox.push(result(round * batch + number)));
            outbox.store().await;
            let acks = accepted(&outbox);
            outbox.acknowledge(&acks).await.expect("they match");
            assert_eq!((outbox.len(), outbox.is_kept()), (1, true), "one always waits");
            // Numbers take a few bytes more as they grow.
            let most = u64::try_from(REWRITE_FROM + BATCH_MAX).expect("small") * (record + 4);
            assert!(size() <= most, "{} bytes in round {round}", size());
        }
        drop(outbox);
        let recovered = Spool::open(place.path()).expect("a spool").take_recovered();
        assert_eq!(recovered.last(), Some(&result(40 * batch)), "what waited is there");
    }
}
