//! What those who mean harm share: the time that they have, and what became of their tries.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nqueens_proto::v1;

/// So long after the end at most what has to happen is waited for.
const LATEST: Duration = Duration::from_mins(3);

/// Leases of others that are remembered.
const TOKENS_MAX: usize = 200;

/// What all attackers know of each other.
pub(super) struct Scene {
    end: Instant,
    /// What has to happen before the end, and how often.
    needed: &'static [(&'static str, u64)],
    /// Limit of live workers of a credential.
    pub(super) workers_max: usize,
    tally: Mutex<BTreeMap<String, u64>>,
    /// What may never be answered, and was.
    findings: Mutex<Vec<String>>,
    /// The latest leases of any of them.
    tokens: Mutex<Vec<v1::LeaseToken>>,
    /// The slowest answer, in milliseconds.
    slowest_ms: AtomicU64,
}

impl Scene {
    pub(super) fn new(end: Instant, needed: &'static [(&'static str, u64)], workers_max: usize) -> Arc<Self> {
        let (tally, findings, tokens) = (Mutex::default(), Mutex::default(), Mutex::default());
        let slowest_ms = AtomicU64::default();
        Arc::new(Self { end, needed, workers_max, tally, findings, tokens, slowest_ms })
    }

    pub(super) fn count(&self, what: &str, times: usize) {
        *self.tally.lock().expect("no panic").entry(what.to_owned()).or_default() += times as u64;
    }

    /// What they did and how they were answered.
    pub(super) fn tally(&self) -> BTreeMap<String, u64> {
        let mut tally = self.tally.lock().expect("no panic").clone();
        tally.insert("milliseconds of the slowest call".to_owned(), self.slowest_ms.load(Ordering::Relaxed));
        tally
    }

    /// What may never be answered, and was.
    pub(super) fn findings(&self) -> Vec<String> {
        self.findings.lock().expect("no panic").clone()
    }

    /// What has not happened often enough.
    pub(super) fn lacking(&self) -> Vec<&'static str> {
        let tally = self.tally.lock().expect("no panic");
        let lacks = |&&(what, times): &&(&str, u64)| tally.get(what).is_none_or(|count| *count < times);
        self.needed.iter().filter(lacks).map(|(what, _)| *what).collect()
    }

    pub(super) fn find(&self, finding: String) {
        self.findings.lock().expect("no panic").push(finding);
    }

    /// An answer that was waited for since then.
    pub(super) fn time(&self, begun: Instant) {
        let millis = u64::try_from(begun.elapsed().as_millis()).expect("short");
        self.slowest_ms.fetch_max(millis, Ordering::Relaxed);
    }

    /// The latest leases of any of them.
    pub(super) fn tokens(&self) -> Vec<v1::LeaseToken> {
        self.tokens.lock().expect("no panic").clone()
    }

    pub(super) fn remember(&self, leases: impl Iterator<Item = v1::LeaseToken>) {
        let mut tokens = self.tokens.lock().expect("no panic");
        tokens.extend(leases);
        let old = tokens.len().saturating_sub(TOKENS_MAX);
        tokens.drain(..old);
    }

    /// Until the time is over, and enough has happened.
    pub(super) fn goes_on(&self) -> bool {
        let late = Instant::now().saturating_duration_since(self.end);
        late.is_zero() || late < LATEST && !self.lacking().is_empty()
    }

    /// Waits, but not beyond the end.
    pub(super) async fn rest(&self, mut time: Duration) {
        while self.goes_on() && !time.is_zero() {
            let step = time.min(Duration::from_millis(200));
            tokio::time::sleep(step).await;
            time -= step;
        }
    }
}
