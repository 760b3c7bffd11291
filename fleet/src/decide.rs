//! What a fleet does next. No I/O, no clock, no randomness: the same sights always lead to the same actions. `docs/fleet.md` has
//! a table of what may happen and what follows from it.

#[cfg(test)]
mod tests;

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::UnixSeconds;
use crate::backend::is_limit;
use crate::process::CommandError;
use crate::state::{Allocation, AllocationId, AllocationState, Demand, FleetState, Queue, Retry};

/// A submit without an answer has reached the batch system within so many seconds, or never does; an allocation that is not listed
/// for so long is gone. A backend gives up waiting for an answer before that.
pub const SETTLE_S: u64 = 60;

/// An allocation that did not do as told is told again after so many seconds.
const REPEAT_S: u64 = 30;

/// Allocations in one submit: Slurm's default is an array of 1,000 at most.
const ARRAY_MAX: u64 = 1_000;

/// What has begun to run within so many seconds lets twice as many be queued.
const START_S: u64 = 60;

/// Time between two attempts to have one more than a submit limit allowed, in seconds.
const PROBE_S: u64 = 120;

/// Time between two looks at the batch system while nothing changes, in seconds.
const QUIET_S: u64 = 30;

/// How large a fleet gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args, Serialize, Deserialize)]
pub struct FleetLimits {
    /// Most allocations at once, queued ones included
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub workers_max: u64,

    /// Allocations that are queued; more while they start at once
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=1_000), default_value_t = 2)]
    pub backlog: u64,

    /// Threads of a worker [default: as many as the batch system gives it]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=4_096))]
    pub threads: Option<u64>,

    /// Seconds between two looks at the coordinator, and at the batch system while something changes; else that is every 30
    /// seconds
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=3_600), default_value_t = 5)]
    pub interval: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Allocations to remove from the batch system now. The workers of those that run drain.
    pub end: Vec<AllocationId>,
    /// Allocations to submit then.
    pub submit: u32,
    /// What happened and what is done about it, a line each, for the log.
    pub notes: Vec<String>,
}

/// Whether it is time to look at the batch system.
pub fn is_due(now: UnixSeconds, state: &FleetState, limits: &FleetLimits, demand: Option<Demand>) -> bool {
    let is_new = |demand: Demand| {
        wanted(now, state, limits, demand) > 0
            || demand.open == 0 && state.demand.is_none_or(|before| before.open > 0)
    };
    now >= state.look_at || demand.is_some_and(is_new)
}

/// Looks at the batch system's `queue`, which was asked for at `asked_at`, and at the coordinator's `demand`; `None` where
/// there was no answer.
pub fn decide(
    now: UnixSeconds,
    asked_at: UnixSeconds,
    state: &mut FleetState,
    limits: &FleetLimits,
    queue: Option<&Queue>,
    demand: Option<Demand>,
) -> Decision {
    // A look that took a second is followed by none for ten, up to five minutes.
    let slow = now.saturating_sub(asked_at).saturating_mul(10).min(300);
    state.look_at = now + slow.max(QUIET_S);
    let mut look = Look { now, state, limits, demand, decision: Decision::default() };
    let has_news = look.note_demand();
    let Some(queue) = queue else { return look.decision };
    look.observe(queue, has_news);
    look.state.open_submit.take_if(|until| *until <= asked_at);
    if look.state.is_stopping {
        look.stop();
    } else {
        look.withdraw();
        look.grow();
    }
    let Look { state, decision, .. } = look;
    let is_young =
        |a: &Allocation| a.state == AllocationState::Queued && now.saturating_sub(a.since) < START_S;
    let has_changed = !decision.notes.is_empty() || state.allocations.values().any(is_young);
    if has_changed || state.open_submit.is_some() {
        state.look_at = now + slow.max(limits.interval);
    }
    decision
}

/// Learns how a submit of so many allocations ended. Returns a line for the log, and how many to submit at once instead.
pub fn submitted(
    now: UnixSeconds,
    state: &mut FleetState,
    count: u32,
    answer: Result<Vec<AllocationId>, CommandError>,
) -> (String, Option<u32>) {
    state.open_submit = None;
    let why = match answer {
        Ok(ids) => {
            state.refused = Retry::default();
            let first = ids.first().map_or("none", String::as_str);
            let note = format!("submitted {}, {first} first", ids.len());
            for id in ids {
                state.allocations.entry(id).or_insert(Allocation { since: now, ..Allocation::default() });
            }
            let alive = state.count(AllocationState::is_alive);
            // Whatever it was, it is no longer the limit.
            state.cap.take_if(|(most, _)| alive > *most);
            return (note, None);
        }
        Err(CommandError::Failed(why)) if is_limit(&why) => {
            let most = state.count(AllocationState::is_alive) + u64::from(count) - 1;
            state.cap = Some((most, now + PROBE_S));
            let fewer = (count > 1).then_some(count / 2);
            state.open_submit = fewer.map(|_| now + SETTLE_S);
            return (format!("a submit limit, of {most} allocations at most: {why}"), fewer);
        }
        Err(CommandError::Failed(why)) => format!("the submit was refused: {why}"),
        Err(CommandError::Unclear(why)) => {
            state.open_submit = Some(now + SETTLE_S);
            format!("the submit had no answer: {why}")
        }
    };
    (state.refused.again(now, why), None)
}

/// What a look has before it, and what it has decided so far.
struct Look<'a> {
    now: UnixSeconds,
    state: &'a mut FleetState,
    limits: &'a FleetLimits,
    demand: Option<Demand>,
    decision: Decision,
}

impl Look<'_> {
    fn note(&mut self, what: impl Into<String>) {
        self.decision.notes.push(what.into());
    }

    /// Returns whether a job was done, or there is something new to do, or nothing.
    fn note_demand(&mut self) -> bool {
        let Some(demand) = self.demand else { return true };
        let before = self.state.demand.replace(demand);
        if before.is_some_and(|before| before.done != demand.done) {
            self.state.progress_at = self.now;
        }
        if demand.open == 0 && before.is_none_or(|before| before.open > 0) {
            self.note("nothing to count");
        }
        let is_new = |before: Demand| demand.done != before.done || demand.open > before.open;
        let has_news = demand.open == 0 || before.is_none_or(is_new);
        if has_news && !self.state.has_failed {
            self.state.in_vain = Retry::default();
        }
        has_news
    }

    /// Takes over what the batch system lists.
    fn observe(&mut self, queue: &Queue, has_news: bool) {
        use AllocationState::{
            Cancelled, Completed, Failed, Held, Leaving, Lost, Queued, Refused, Running, TimeLimit, Unknown,
        };
        let now = self.now;
        let (mut has_changed, mut is_well, mut vain, mut failed) = (false, false, None, None);
        for (id, seen) in queue {
            if !seen.state.has_ended() && !self.state.allocations.contains_key(id) {
                // Of an earlier life of this fleet, or of a submit without an answer.
                self.state.allocations.insert(id.clone(), Allocation { since: now, ..seen.clone() });
                self.note(format!("found {id}, {}", seen.state));
            }
        }
        for (id, allocation) in &mut self.state.allocations {
            let told = allocation.told_at.is_some();
            let (seen, why) = if let Some(entry) = queue.get(id) {
                allocation.absent_since = None;
                if !entry.node.is_empty() {
                    allocation.node.clone_from(&entry.node);
                }
                (entry.state, &*entry.why)
            } else if allocation.state.has_ended() {
                continue;
            } else {
                let since = *allocation.absent_since.get_or_insert(now);
                match (told, now.saturating_sub(since) >= SETTLE_S) {
                    (true, _) => (Cancelled, ""),
                    (false, true) => (Lost, ""),
                    (false, false) => continue,
                }
            };
            if seen == allocation.state {
                continue;
            }
            let has_gained = self.demand.is_none() || told || self.state.progress_at > allocation.since;
            let was_brief = allocation.state != Running || now.saturating_sub(allocation.since) < START_S;
            match seen {
                Failed if self.demand.is_some() && !told => failed = Some(format!("{id} failed: {why}")),
                // So will the next be, on the same node or with the same token, whatever others count.
                Refused if self.demand.is_some() && !told && was_brief => {
                    failed = Some(format!("the coordinator refused {id} at once: {why}"));
                }
                Held => vain = Some(format!("the batch system could not start {id}")),
                Completed | TimeLimit | Refused | Lost if !has_gained => {
                    let fit = "no job was done meanwhile: do jobs fit into the time limit?";
                    vain = Some(format!("{id} is {seen}, and {fit}"));
                }
                Completed | TimeLimit => is_well = true,
                Queued if allocation.state != Unknown => allocation.told_at = None,
                _ => {}
            }
            if seen != Leaving {
                allocation.since = now;
            }
            allocation.state = seen;
            why.clone_into(&mut allocation.why);
            has_changed = true;
        }
        if has_changed {
            self.note(self.state.summary());
        }
        if is_well {
            (self.state.in_vain, self.state.has_failed) = (Retry::default(), false);
        }
        self.state.has_failed |= failed.is_some();
        if let Some(why) = failed.or(vain.filter(|_| !has_news)) {
            let note = self.state.in_vain.again(now, why);
            self.note(note);
        }
    }

    /// Ends everything. What is leaving may be queued again.
    fn stop(&mut self) {
        let ends = |state: AllocationState| state != AllocationState::Leaving && !state.has_ended();
        let left = tell(self.now, self.state.allocations.iter_mut().filter(|(_, a)| ends(a.state)));
        self.note(format!("stopping: {}", self.state.summary()));
        self.end(left, "the fleet stops");
        self.state.has_stopped = self.state.not_ended().is_empty() && self.state.open_submit.is_none();
    }

    fn end(&mut self, ids: Vec<AllocationId>, why: &str) {
        if !ids.is_empty() {
            self.note(format!("ending {} allocations: {why}", ids.len()));
            self.decision.end.extend(ids);
        }
    }

    /// Removes allocations that the batch system could not start, as they would wait for an operator, and queued ones for
    /// which there is no work or no place.
    fn withdraw(&mut self) {
        let held = self.state.allocations.iter_mut().filter(|(_, a)| a.state == AllocationState::Held);
        let held = tell(self.now, held);
        self.end(held, "the batch system could not start them");
        let alive = self.state.count(AllocationState::is_alive);
        let is_idle = self.demand.is_some_and(|demand| demand.open == 0);
        let surplus = if is_idle { alive } else { alive.saturating_sub(self.limits.workers_max) };
        let queued = self.state.allocations.iter_mut().filter(|(_, a)| a.state == AllocationState::Queued);
        let mut queued: Vec<_> = queued.collect();
        // Those that never ran, on no node, go first: a spool may have results of the others.
        queued.sort_by_key(|(_, allocation)| (!allocation.node.is_empty(), u64::MAX - allocation.since));
        queued.truncate(usize::try_from(surplus).unwrap_or(usize::MAX));
        let queued = tell(self.now, queued.into_iter());
        self.end(queued, "they are not needed");
    }

    /// Submits what the demand and the limits allow.
    fn grow(&mut self) {
        let Some(demand @ Demand { open, threads, .. }) = self.demand else { return };
        let count = wanted(self.now, self.state, self.limits, demand);
        let Some(count) = u32::try_from(count).ok().filter(|count| *count > 0) else { return };
        self.note(format!("submitting {count}: {open} threads have something to count, {threads} count"));
        self.state.open_submit = Some(self.now + SETTLE_S);
        self.decision.submit = count;
    }
}

/// Those that are listed and were not told lately; they are now.
fn tell<'a>(
    now: UnixSeconds,
    allocations: impl Iterator<Item = (&'a AllocationId, &'a mut Allocation)>,
) -> Vec<AllocationId> {
    let is_due = |told: UnixSeconds| now.saturating_sub(told) >= REPEAT_S;
    let due = allocations.filter(|(_, a)| a.absent_since.is_none() && a.told_at.is_none_or(is_due));
    let told = due.map(|(id, allocation)| {
        allocation.told_at = Some(now);
        id.clone()
    });
    told.collect()
}

/// Allocations to submit now, as the demand and the limits allow.
pub fn wanted(now: UnixSeconds, state: &FleetState, limits: &FleetLimits, demand: Demand) -> u64 {
    let must_wait = now < state.refused.not_before.max(state.in_vain.not_before);
    if state.is_stopping || state.open_submit.is_some() || must_wait {
        return 0;
    }
    let alive = state.count(AllocationState::is_alive);
    let cap = |(most, probe_at): (u64, UnixSeconds)| if now < probe_at { most } else { most.max(alive) + 1 };
    let cap = state.cap.map_or(u64::MAX, cap);
    let is_fresh =
        |a: &&Allocation| a.state == AllocationState::Running && now.saturating_sub(a.since) < START_S;
    let fresh = state.allocations.values().filter(is_fresh).count() as u64;
    // As many as the operator says, or as connected workers have.
    let threads = limits.threads.or(demand.threads.checked_div(demand.workers)).unwrap_or(0);
    let room = if threads == 0 {
        // The first ones will show.
        limits.backlog.saturating_sub(alive)
    } else {
        // One of a state that nobody knows may be queued.
        let queued = state.count(|is| matches!(is, AllocationState::Queued | AllocationState::Unknown));
        limits.backlog.max(2 * fresh).saturating_sub(queued)
    };
    let own = state.count(|state| state == AllocationState::Running) * threads;
    // Beside workers that are not of this fleet.
    let useful = demand.open.saturating_sub(demand.threads.saturating_sub(own)).div_ceil(threads.max(1));
    useful.min(limits.workers_max).min(cap).saturating_sub(alive).min(room).min(ARRAY_MAX)
}
