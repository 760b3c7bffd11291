//! What is counted and not yet acknowledged.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use nqueens_proto::message::{JobResult, ResultAck, Verdict};
use nqueens_proto::{BATCH_MAX, InvalidMessage};
use tokio::time::Instant;
use tracing::{error, info, warn};

use crate::spool::Spool;

/// Results wait so long for company on their way to the disk.
const GATHER: Duration = Duration::from_millis(100);

/// A disk that took nothing is tried again after so long.
const DISK_RETRY: Duration = Duration::from_mins(1);

/// Results in the order in which they were counted; with a spool, on disk before they are reported.
pub(crate) struct Outbox {
    results: VecDeque<JobResult>,
    /// So many of them, from the front, are in the spool.
    stored: usize,
    /// When the others are to be put there.
    store_at: Option<Instant>,
    /// Whether the disk failed the last time.
    failing: bool,
    /// Whether anything is in the spool, acknowledged or not.
    dirty: bool,
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
        let dirty = stored > 0;
        Self { results, stored, store_at: None, failing: false, dirty, spool: spool.map(Arc::new) }
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
        let (failed_before, dir) = (self.failing, spool.dir().display());
        let outcome = on_disk(spool, move |spool| spool.append(&new)).await;
        self.failing = outcome.is_err();
        match outcome {
            Ok(()) => {
                if failed_before {
                    info!(spool = %dir, "the spool takes results again");
                }
                (self.stored, self.store_at, self.dirty) = (self.results.len(), None, true);
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
        }
        Ok(())
    }

    async fn clear(&mut self) {
        let Some(spool) = self.spool.as_ref().filter(|_| self.dirty) else { return };
        match on_disk(spool, Spool::clear).await {
            Ok(()) => self.dirty = false,
            // What is in it is reported again at the next start, and recognised.
            Err(error) => warn!(spool = %spool.dir().display(), %error, "can't empty the spool"),
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
