//! What a fleet knows, from one look to the next and across restarts.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::UnixSeconds;

/// Ended allocations that are kept for `fleet status`.
const ENDED_KEPT: usize = 100;

/// The batch system's name of an allocation, such as `1234_5`. It is part of file names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AllocationId(String);

impl AllocationId {
    /// Reads a name: a digit, letters, digits, and `_`, `-`, `.`, `[`, `]`, at most 100 bytes.
    pub fn new(text: &str) -> Option<Self> {
        let is_good = |c: char| c.is_ascii_alphanumeric() || "_-.[]".contains(c);
        let has_digit = text.contains(|c: char| c.is_ascii_digit());
        let is_name = has_digit && text.len() <= 100 && text.chars().all(is_good) && !text.starts_with('.');
        is_name.then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AllocationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What an allocation does, or how it ended: from `Completed` on.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum AllocationState {
    /// Waits for its turn, also after a requeue.
    #[default]
    Queued,
    /// The batch system could not start it, and keeps it for an operator. One that somebody holds on purpose is queued.
    Held,
    Running,
    /// Its processes are stopped, and know nothing of it. It runs again, or ends.
    Suspended,
    /// Its processes end, or its node does not answer. It may end, or be queued again.
    Leaving,
    /// In a state that this version does not know: alive for every limit.
    Unknown,
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

    pub fn has_ended(self) -> bool {
        self >= Self::Completed
    }

    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// An allocation as the batch system shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueEntry {
    pub id: AllocationId,
    pub state: AllocationState,
    /// Where it runs or ran; empty if that is not known.
    pub node: String,
    /// Why it failed.
    pub why: String,
}

impl QueueEntry {
    /// An allocation that has not failed.
    pub fn new(id: AllocationId, state: AllocationState, node: &str) -> Self {
        Self { id, state, node: node.chars().take(100).collect(), why: String::new() }
    }
}

/// One job of the batch system, with one worker in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    pub state: AllocationState,
    pub since: UnixSeconds,
    pub node: String,
    pub restarts: u32,
    /// Since when the batch system has not listed it.
    pub absent_since: Option<UnixSeconds>,
    /// When it was told to stop or end.
    pub told_at: Option<UnixSeconds>,
    pub why: String,
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
        self.not_before = now + Self::PAUSES.get(self.times as usize).unwrap_or(&3_600);
        self.times += 1;
    }
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
    /// Allocations in a row that ended without a job done by anybody since they began.
    pub fruitless: Retry,
    /// Failed allocations in a row.
    pub failed: u32,
    /// Why it submits nothing until somebody resumes it.
    pub pause: Option<String>,
    /// Set: it stops; what is left then is ended.
    pub stop_by: Option<UnixSeconds>,
    /// Nothing is left of it.
    pub has_stopped: bool,
    pub demand: Option<Demand>,
    /// When a job was done last.
    pub progress_at: UnixSeconds,
    /// Since when there has been nothing to count.
    pub idle_since: Option<UnixSeconds>,
    /// When to look at the batch system again, at the latest.
    pub look_at: UnixSeconds,
    /// Counting threads of an allocation, as its worker has reported; 0 until one has.
    pub threads: u64,
}

impl FleetState {
    /// Submits again, with nothing held against anybody.
    pub fn resume(&mut self) {
        (self.pause, self.cap, self.failed, self.look_at) = (None, None, 0, 0);
        (self.refused, self.fruitless) = (Retry::default(), Retry::default());
    }

    /// Stops the fleet: allocations that are left after `drain_s` seconds are ended. The same again changes nothing.
    pub fn stop(&mut self, now: UnixSeconds, drain_s: u64) {
        if self.stop_by.is_none() || self.has_stopped {
            (self.stop_by, self.has_stopped, self.look_at) = (Some(now + drain_s), false, 0);
            self.allocations.values_mut().for_each(|allocation| allocation.told_at = None);
        }
    }

    pub fn count(&self, is_meant: impl Fn(AllocationState) -> bool) -> u64 {
        self.allocations.values().filter(|allocation| is_meant(allocation.state)).count() as u64
    }

    /// How many of them do what, for people.
    pub fn summary(&self) -> String {
        let mut counts = BTreeMap::<_, u64>::new();
        self.allocations.values().for_each(|allocation| *counts.entry(allocation.state).or_default() += 1);
        let counts: Vec<_> =
            counts.iter().map(|(state, count)| format!("{count} {}", state.name())).collect();
        if counts.is_empty() { "no allocations".to_owned() } else { counts.join(", ") }
    }

    /// Those that the batch system should list, or tell the end of.
    pub(crate) fn not_ended(&self) -> Vec<AllocationId> {
        let not_ended = self.allocations.iter().filter(|(_, allocation)| !allocation.state.has_ended());
        not_ended.map(|(id, _)| id.clone()).collect()
    }

    /// Forgets the allocations that ended first, beyond those kept for people.
    pub(crate) fn forget(&mut self) {
        let ended = self.allocations.iter().filter(|(_, allocation)| allocation.state.has_ended());
        let mut ended: Vec<_> = ended.map(|(id, allocation)| (allocation.since, id.clone())).collect();
        ended.sort_unstable();
        for (_, id) in ended.iter().take(ended.len().saturating_sub(ENDED_KEPT)) {
            self.allocations.remove(id);
        }
    }
}
