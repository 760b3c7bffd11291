//! What a fleet knows, from one look to the next and across restarts.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::UnixSeconds;

/// Ended allocations that are kept for `fleet status`.
const ENDED_KEPT: usize = 100;

/// The batch system's name of an allocation, such as `1234_5`. It is part of file names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct AllocationId(String);

impl AllocationId {
    /// Reads a name: letters, digits, and `_`, `-`, `.`, `[`, `]`, at most 100 bytes.
    pub fn new(text: &str) -> Option<Self> {
        let is_good = |c: char| c.is_ascii_alphanumeric() || "_-.[]".contains(c);
        let is_name =
            !text.is_empty() && text.len() <= 100 && text.chars().all(is_good) && !text.starts_with('.');
        is_name.then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for AllocationId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::new(&text).ok_or_else(|| format!("{text:?} is no name of an allocation"))
    }
}

impl fmt::Display for AllocationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What an allocation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AllocationState {
    /// Waits for its turn, also after a requeue.
    Queued,
    /// The batch system could not start it, and keeps it for an operator. One that somebody holds on purpose is queued.
    Held,
    Running,
    /// Its processes are stopped, and know nothing of it. It runs again, or ends.
    Suspended,
    /// Its processes end, or its node does not answer. It may end, or be queued again.
    Leaving,
    /// In a state that this version does not know.
    Unknown,
    Ended(Ending),
}

/// How an allocation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Its worker had no more work, no more time, or was told to go.
    Completed,
    /// Somebody cancelled it, or a job with more priority took its place.
    Cancelled,
    TimeLimit,
    Failed,
    /// The coordinator refused its worker: perhaps one of the two is of another version for a while.
    Refused,
    NodeLost,
    /// The batch system does not list it any more, and nobody saw its end.
    Vanished,
}

impl AllocationState {
    /// Whether it has processors or will get some.
    pub fn is_alive(self) -> bool {
        matches!(self, Self::Queued | Self::Running | Self::Suspended | Self::Unknown)
    }

    /// Whether it ended by no decision of its worker, of an operator or of the batch system's rules.
    pub fn is_lost(self) -> bool {
        matches!(self, Self::Ended(Ending::NodeLost | Ending::Vanished))
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Held => "held",
            Self::Running => "running",
            Self::Suspended => "suspended",
            Self::Leaving => "leaving",
            Self::Unknown => "unknown",
            Self::Ended(Ending::Completed) => "completed",
            Self::Ended(Ending::Cancelled) => "cancelled",
            Self::Ended(Ending::TimeLimit) => "time limit",
            Self::Ended(Ending::Failed) => "failed",
            Self::Ended(Ending::Refused) => "refused",
            Self::Ended(Ending::NodeLost) => "lost: its node failed",
            Self::Ended(Ending::Vanished) => "lost: no longer listed",
        }
    }
}

/// An allocation as the batch system shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueEntry {
    pub id: AllocationId,
    pub state: AllocationState,
    /// Where it runs or ran; empty if that is not known.
    pub node: String,
    pub why: String,
}

impl QueueEntry {
    /// An allocation that has not failed.
    pub fn new(id: AllocationId, state: AllocationState, node: &str) -> Self {
        Self { id, state, node: node.chars().take(100).collect(), why: String::new() }
    }
}

/// One job of the batch system, with one worker in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    pub state: AllocationState,
    pub since: UnixSeconds,
    pub node: String,
    pub restarts: u32,
    /// Since when the batch system has not listed it.
    pub absent_since: Option<UnixSeconds>,
    /// When it was told to stop or end.
    pub told_at: Option<UnixSeconds>,
    /// Jobs done in all runs when it began to run.
    pub done_at_start: Option<u64>,
    pub why: String,
    /// Counting threads, as its worker has reported; 0 until it has.
    pub threads: u64,
}

impl Allocation {
    pub(crate) fn queued(now: UnixSeconds) -> Self {
        Self {
            state: AllocationState::Queued,
            since: now,
            node: String::new(),
            restarts: 0,
            absent_since: None,
            told_at: None,
            done_at_start: None,
            why: String::new(),
            threads: 0,
        }
    }
}

/// Why a fleet submits nothing until somebody resumes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    pub at: UnixSeconds,
    pub reason: String,
}

/// A submit limit of the batch system, as its refusals teach it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cap {
    pub most: u64,
    /// One more is tried then.
    pub probe_at: UnixSeconds,
    pub why: String,
}

/// Repeated bad luck, and the time to wait because of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    pub times: u32,
    pub not_before: UnixSeconds,
}

impl Retry {
    /// Waiting times in seconds after one failure, two, and so on.
    const PAUSES: [u64; 5] = [0, 60, 900, 1_800, 3_600];

    pub(crate) fn again(&mut self, now: UnixSeconds) {
        let pause = Self::PAUSES.get(self.times as usize).unwrap_or(&3_600);
        self.times = self.times.saturating_add(1);
        self.not_before = now.saturating_add(*pause);
    }
}

/// How a fleet stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopping {
    /// Allocations that are left then are ended.
    pub deadline: UnixSeconds,
    pub is_over: bool,
}

/// What the coordinator's open runs can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demand {
    /// Jobs and second counts that are not done, waiting or leased: the number of threads that have something to do.
    pub open: u64,
    /// Jobs and second counts that are done, in all runs.
    pub done: u64,
    /// Counting threads of all connected workers.
    pub threads: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetState {
    /// Its allocations, and the last that have ended.
    pub allocations: BTreeMap<AllocationId, Allocation>,
    /// Set before a submit, removed after its answer: if the batch system's list shows nothing of it from then on, it has not
    /// arrived.
    pub open_submit: Option<UnixSeconds>,
    /// Refused submits in a row, limits aside.
    pub refused: Retry,
    /// The batch system's submit limit, if it has met one.
    pub cap: Option<Cap>,
    /// Allocations that may be queued: doubles while they start at once. 0: as many as the fleet's limits say.
    pub ramp: u64,
    /// When the backlog was filled up and how large it was, until half of it has started.
    pub filled: Option<(UnixSeconds, u64)>,
    /// Allocations in a row that ended without a job done by anybody since they began.
    pub fruitless: Retry,
    pub failed: u32,
    /// Set: it submits nothing.
    pub pause: Option<Pause>,
    /// Set: it ends its allocations.
    pub stopping: Option<Stopping>,
    pub demand: Option<Demand>,
    pub coordinator_seen_at: Option<UnixSeconds>,
    /// Since when there has been nothing to count.
    pub idle_since: Option<UnixSeconds>,
    /// When to look at the batch system again, at the latest.
    pub look_at: UnixSeconds,
    /// Counting threads of an allocation, as a worker reported last; 0 until one has.
    pub threads: u64,
}

impl FleetState {
    /// Pauses the fleet, or leaves the pause that it is in.
    pub fn pause(&mut self, now: UnixSeconds, reason: String) {
        self.pause.get_or_insert(Pause { at: now, reason });
    }

    /// Submits again, with nothing held against anybody.
    pub fn resume(&mut self) {
        self.pause = None;
        self.failed = 0;
        self.refused = Retry::default();
        self.fruitless = Retry::default();
        (self.cap, self.look_at) = (None, 0);
    }

    /// Stops the fleet: allocations that are left after `drain_s` seconds are ended. The same again changes nothing.
    pub fn stop(&mut self, now: UnixSeconds, drain_s: u64) {
        if self.stopping.is_none_or(|stopping| stopping.is_over) {
            self.stopping = Some(Stopping { deadline: now.saturating_add(drain_s), is_over: false });
            self.look_at = 0;
            self.allocations.values_mut().for_each(|allocation| allocation.told_at = None);
        }
    }

    pub fn count(&self, is_meant: impl Fn(AllocationState) -> bool) -> u64 {
        self.allocations.values().filter(|allocation| is_meant(allocation.state)).count() as u64
    }

    /// Learns how many threads the worker of an allocation has.
    pub(crate) fn report_threads(&mut self, id: &AllocationId, threads: u64) {
        if let Some(allocation) = self.allocations.get_mut(id) {
            (allocation.threads, self.threads) = (threads, threads);
        }
    }

    /// Forgets the allocations that ended first, beyond those kept for people.
    pub(crate) fn forget(&mut self) {
        let ended = |(id, allocation): (&AllocationId, &Allocation)| {
            matches!(allocation.state, AllocationState::Ended(_)).then(|| (allocation.since, id.clone()))
        };
        let mut ended: Vec<_> = self.allocations.iter().filter_map(ended).collect();
        ended.sort_unstable();
        for (_, id) in ended.iter().take(ended.len().saturating_sub(ENDED_KEPT)) {
            self.allocations.remove(id);
        }
    }
}
