//! Results that are not acknowledged yet, in memory and in the spool.

use std::collections::VecDeque;
use std::time::Duration;

use nqueens_model::message::{BATCH_MAX, JobResult, ResultAck, Verdict};
use tracing::{error, info, warn};

use crate::{CallError, Moment, SpoolContents, Write};

/// How long results are gathered before they go to disk together.
const GATHER: Duration = Duration::from_millis(100);

/// Pause after a failed write.
const DISK_RETRY: Duration = Duration::from_mins(1);

/// The spool is rewritten when it holds this many acknowledged results, about a megabyte, and more of them than of others.
pub(crate) const REWRITE_FROM: usize = 10_000;

/// Results in the order in which they were counted; with a spool, on disk before they are reported.
pub(crate) struct Outbox {
    results: VecDeque<JobResult>,
    /// Number of results that have left it.
    gone: u64,
    spool: Option<SpoolState>,
}

/// What is known of the spool.
#[derive(Default)]
struct SpoolState {
    name: String,
    /// Number of results, of all that there ever were in the outbox, that were put there or needed not be.
    stored: u64,
    /// Results in it, acknowledged or not.
    held: usize,
    /// When results are to be put there.
    store_at: Option<Moment>,
    /// Whether the disk failed the last time.
    failing: bool,
    /// Whether results were acknowledged since it was last checked whether it can be cleared.
    untidy: bool,
    /// It is rewritten when this many results in it are acknowledged.
    rewrite_from: usize,
    /// To be set aside. Until they are, they stay in the spool.
    rejected: Vec<JobResult>,
    /// When to try that again, and how many of them the log has, once it has failed.
    reject_at: Option<Moment>,
    logged: usize,
    /// Whether a change is on its way to the disk.
    writing: bool,
}

impl Outbox {
    /// Begins with what an earlier process left in the spool.
    pub(crate) fn new(spool: Option<SpoolContents>) -> Self {
        let Some(SpoolContents { name, results }) = spool else {
            return Self { results: VecDeque::new(), gone: 0, spool: None };
        };
        if !results.is_empty() {
            info!(results = results.len(), spool = %name, "reporting results of an earlier worker");
        }
        let (stored, held) = (results.len() as u64, results.len());
        let spool = SpoolState { name, stored, held, rewrite_from: REWRITE_FROM, ..SpoolState::default() };
        Self { results: results.into(), gone: 0, spool: Some(spool) }
    }

    pub(crate) fn len(&self) -> usize {
        self.results.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// Whether all of it would survive this process.
    pub(crate) fn is_kept(&self) -> bool {
        self.stored() == self.results.len()
    }

    pub(crate) fn push(&mut self, now: Moment, result: JobResult) {
        self.results.push_back(result);
        if let Some(spool) = &mut self.spool {
            spool.store_at.get_or_insert(now + GATHER);
        }
    }

    /// Results for the next report: what is on disk, or all if no disk takes them.
    pub(crate) fn batch(&self) -> Vec<JobResult> {
        let all = self.spool.as_ref().is_none_or(|spool| spool.failing);
        let ready = if all { self.results.len() } else { self.stored() };
        self.results.range(..ready.min(BATCH_MAX)).cloned().collect()
    }

    /// What has to wait for a later report than that of the `batch` first.
    pub(crate) fn after(&self, batch: usize) -> impl Iterator<Item = &JobResult> {
        self.results.range(batch..)
    }

    /// Drops the `sent` first results, which `acks` answers; what the coordinator does not know is set aside.
    pub(crate) fn acknowledge(&mut self, sent: usize, acks: &[ResultAck]) -> Result<(), CallError> {
        let batch = self.results.range(..sent);
        if !batch.clone().map(|result| result.token).eq(acks.iter().map(|ack| ack.token)) {
            let problem = "invalid message: acks does not match the results that were sent";
            return Err(CallError::Answer(problem.to_owned()));
        }
        let unknown = batch.zip(acks).filter(|(_, ack)| ack.verdict == Verdict::Unknown);
        let unknown: Vec<_> = unknown.map(|(result, _)| result.clone()).collect();
        self.results.drain(..sent);
        self.gone += sent as u64;
        if let Some(spool) = &mut self.spool {
            spool.rejected.extend(unknown);
            spool.untidy = true;
        } else if !unknown.is_empty() {
            warn!(results = unknown.len(), "the coordinator does not know these results; they are dropped");
        }
        Ok(())
    }

    /// When [`next_write`](Self::next_write) has something to do, unless something is on its way to the disk.
    pub(crate) fn store_at(&self) -> Option<Moment> {
        let spool = self.spool.as_ref()?;
        spool.store_at.into_iter().chain(spool.reject_at).min()
    }

    /// Whether something is on its way to the disk.
    pub(crate) fn is_writing(&self) -> bool {
        self.spool.as_ref().is_some_and(|spool| spool.writing)
    }

    /// The next change of the spool. `flush` writes results that wait for more results, but not to a disk that failed
    /// recently, because they are still in memory.
    pub(crate) fn next_write(&mut self, now: Moment, flush: bool) -> Option<Write> {
        let stored = self.stored();
        let spool = self.spool.as_mut().filter(|spool| !spool.writing)?;
        if stored == self.results.len() {
            spool.store_at = None;
        }
        let (acknowledged, waits) = (spool.held - stored, !spool.rejected.is_empty());
        let untidy = !waits && std::mem::take(&mut spool.untidy);
        let write = if waits && spool.reject_at.is_none_or(|at| at <= now) {
            Write::Reject(std::mem::take(&mut spool.rejected))
        } else if untidy && spool.held > 0 && stored == 0 {
            Write::Clear
        } else if untidy && acknowledged >= spool.rewrite_from.max(stored) {
            // Keeps the spool from growing for as long as there is always something in it that waits.
            Write::Rewrite(self.results.range(..stored).cloned().collect())
        } else if spool.store_at.is_some_and(|at| at <= now || (flush && !spool.failing)) {
            // What was acknowledged before it got there need not be there.
            spool.stored = spool.stored.max(self.gone);
            Write::Append(self.results.range(stored..).cloned().collect())
        } else {
            return None;
        };
        spool.writing = true;
        Some(write)
    }

    /// A change is on disk, or is not. A failure is logged; where it matters, there is another try.
    pub(crate) fn written(&mut self, now: Moment, change: Write, outcome: Result<(), String>) {
        let (waiting, all) = (self.stored(), self.gone + self.results.len() as u64);
        let Some(spool) = &mut self.spool else { return };
        spool.writing = false;
        let name = &spool.name;
        match (change, outcome) {
            (Write::Append(results), Ok(())) => {
                if std::mem::take(&mut spool.failing) {
                    info!(spool = %name, "the spool can be written again");
                }
                spool.stored += results.len() as u64;
                spool.held += results.len();
                spool.store_at = (spool.stored < all).then_some(now + GATHER);
            }
            (Write::Append(_), Err(error)) => {
                if !std::mem::replace(&mut spool.failing, true) {
                    error!(
                        spool = %name, %error,
                        "can't write to the spool; results stay in memory only: free some disk space"
                    );
                }
                spool.store_at = Some(now + DISK_RETRY);
            }
            (Write::Clear, Ok(())) => spool.held = 0,
            // What is in it is reported again at the next start, and recognised.
            (Write::Clear, Err(error)) => warn!(spool = %name, %error, "can't empty the spool"),
            (Write::Rewrite(results), Ok(())) => {
                (spool.held, spool.rewrite_from) = (results.len(), REWRITE_FROM);
            }
            (Write::Rewrite(_), Err(error)) => {
                warn!(spool = %name, %error, "can't rewrite the spool; it grows until that is possible");
                spool.rewrite_from = 2 * (spool.held - waiting);
            }
            (Write::Reject(unknown), Ok(())) => {
                (spool.reject_at, spool.logged) = (None, 0);
                warn!(
                    results = unknown.len(), spool = %name,
                    "the coordinator does not know these results, they were counted for another database; \
                     they are kept in the spool, in the file 'rejected'"
                );
            }
            (Write::Reject(unknown), Err(error)) => {
                for result in &unknown[spool.logged..] {
                    error!(?result, %error, "the coordinator does not know this result, and it can't be set aside yet");
                }
                (spool.reject_at, spool.logged) = (Some(now + DISK_RETRY), unknown.len());
                spool.rejected.splice(..0, unknown);
            }
        }
    }

    /// Number of results, from the front, that are in the spool.
    fn stored(&self) -> usize {
        let stored = self.spool.as_ref().map_or(0, |spool| spool.stored.saturating_sub(self.gone));
        usize::try_from(stored).expect("they are in memory")
    }
}
