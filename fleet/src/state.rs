//! What a fleet knows, from one look to the next and across restarts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::Display;

use crate::UnixSeconds;

/// Ended allocations that are kept for `fleet status`.
const ENDED_KEPT: usize = 100;

/// The batch system's name of an allocation, such as `1234_5`. It is part of file names.
pub type AllocationId = String;

/// Allocations as the batch system shows them: their states, where they run, and why they failed.
pub type Queue = BTreeMap<AllocationId, Allocation>;

/// What an allocation does, or how it ended: from `Completed` on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Display, Serialize, Deserialize)]
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
    /// Its node failed, or the batch system does not list it any more.
    Lost,
}

impl AllocationState {
    /// Whether it has processors or will get some.
    pub fn is_alive(self) -> bool {
        matches!(self, Self::Queued | Self::Running | Self::Suspended | Self::Unknown)
    }

    pub fn has_ended(self) -> bool {
        self >= Self::Completed
    }
}

/// One job of the batch system, with one worker in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    pub state: AllocationState,
    pub since: UnixSeconds,
    /// Where it runs or ran; empty if that is not known.
    pub node: String,
    /// Since when the batch system has not listed it.
    pub absent_since: Option<UnixSeconds>,
    /// When it was told to stop or end.
    pub told_at: Option<UnixSeconds>,
    /// Why it failed.
    pub why: String,
}

/// Repeated bad luck, and the time to wait because of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    pub times: u32,
    pub not_before: UnixSeconds,
    /// What happened last.
    pub why: String,
}

impl Retry {
    /// Waiting times in seconds after one failure, two, and so on.
    const PAUSES: [u64; 5] = [0, 60, 900, 1_800, 3_600];

    pub(crate) fn again(&mut self, now: UnixSeconds, why: String) -> String {
        // What happens once a day is not bad luck in a row.
        if now.saturating_sub(self.not_before) > Self::PAUSES[4] {
            self.times = 0;
        }
        let pause = Self::PAUSES.get(self.times as usize).unwrap_or(&Self::PAUSES[4]);
        (self.times, self.not_before, self.why) = (self.times + 1, now + pause, why);
        format!("{}; the next submit is in {pause} s at the earliest", self.why)
    }
}

/// What the coordinator's open runs can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demand {
    /// Jobs and second counts that are not done, waiting or leased: the number of threads that have something to do.
    pub open: u64,
    /// Jobs and second counts that are done, in all runs.
    pub done: u64,
    /// Connected workers, and their counting threads.
    pub workers: u64,
    pub threads: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetState {
    /// Its allocations, and the last that have ended.
    pub allocations: Queue,
    /// Set before a submit, removed after its answer: if the batch system's list shows nothing of it from then on, it has not
    /// arrived.
    pub open_submit: Option<UnixSeconds>,
    /// Refused submits in a row, limits aside.
    pub refused: Retry,
    /// Looks in a row that showed allocations which failed, could not start, or ended without a job done by anybody.
    pub in_vain: Retry,
    /// One of these has failed: that a job is done elsewhere does not make up for it.
    pub has_failed: bool,
    /// The batch system's submit limit, if it has met one, and when one more is tried.
    pub cap: Option<(u64, UnixSeconds)>,
    /// It ends its allocations.
    pub is_stopping: bool,
    /// Nothing is left of it.
    pub has_stopped: bool,
    pub demand: Option<Demand>,
    /// Why the batch system's last list could not be read.
    pub list_error: Option<String>,
    /// When a job was done last.
    pub progress_at: UnixSeconds,
    /// When to look at the batch system again, at the latest.
    pub look_at: UnixSeconds,
}

impl FleetState {
    /// Begins another life with nothing held against anybody.
    pub fn begin(&mut self) {
        let Self { allocations, open_submit, .. } = std::mem::take(self);
        *self = Self { allocations, open_submit, ..Self::default() };
    }

    /// Stops the fleet.
    pub fn stop(&mut self) {
        (self.is_stopping, self.has_stopped, self.look_at) = (true, false, 0);
    }

    pub fn count(&self, is_meant: impl Fn(AllocationState) -> bool) -> u64 {
        self.allocations.values().filter(|allocation| is_meant(allocation.state)).count() as u64
    }

    /// How many of them do what, for people.
    pub fn summary(&self) -> String {
        let mut counts = BTreeMap::<_, u64>::new();
        self.allocations.values().for_each(|allocation| *counts.entry(allocation.state).or_default() += 1);
        let counts: Vec<_> = counts.iter().map(|(state, count)| format!("{count} {state}")).collect();
        if counts.is_empty() { "no allocations".to_owned() } else { counts.join(", ") }
    }

    /// Those that the batch system should list, or tell the end of.
    pub(crate) fn not_ended(&self) -> Vec<AllocationId> {
        let not_ended = self.allocations.iter().filter(|(_, allocation)| !allocation.state.has_ended());
        not_ended.map(|(id, _)| id.clone()).collect()
    }

    /// Forgets the allocations that ended first, beyond those kept for people, and returns them.
    pub fn forget(&mut self) -> Vec<AllocationId> {
        let ended = self.allocations.iter().filter(|(_, allocation)| allocation.state.has_ended());
        let mut ended: Vec<_> = ended.map(|(id, allocation)| (allocation.since, id.clone())).collect();
        ended.sort_unstable();
        ended.truncate(ended.len().saturating_sub(ENDED_KEPT));
        let forgotten: Vec<_> = ended.into_iter().map(|(_, id)| id).collect();
        for id in &forgotten {
            self.allocations.remove(id);
        }
        forgotten
    }
}
