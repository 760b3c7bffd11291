//! What a fleet does next. No I/O, no clock, no randomness: the same sights always lead to the same actions.
//!
//! | seen | taken for |
//! |---|---|
//! | completed, time limit | a good end |
//! | cancelled, preempted, queued again | no failure |
//! | failed | a failure, unless the coordinator is away or the fleet itself told the allocation to go |
//! | node failed, no longer listed for a minute | a loss: replaced, no failure |
//! | held by the batch system, which could not start it | ended and replaced; later and later while no job is done |
//! | leaving (Slurm's COMPLETING) | neither running nor failed; not replaced for 30 seconds, as it may be queued again |
//! | a state that this version does not know | alive for every limit, and no failure |

mod stop;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use self::stop::{stop, tell};
use crate::UnixSeconds;
use crate::backend::{QueueEntry, SubmitError};
use crate::state::{
    Allocation, AllocationId, AllocationState, Demand, Ending, FleetState, OpenSubmit, Retry,
};

/// A submit without an answer has reached the batch system within so many seconds, or never does. A backend gives up
/// waiting for an answer before that.
pub const SETTLE_S: u64 = 60;

/// An allocation that is not listed for so many seconds is gone.
const VANISH_S: u64 = 60;

/// Queued allocations are withdrawn after so many seconds without work.
const IDLE_S: u64 = 60;

/// An allocation that leaves keeps its place for so many seconds: after a preemption it is queued again.
const LEAVE_S: u64 = 30;

/// Refused submits in a row that pause a fleet.
const REFUSED_MAX: u32 = 10;

/// Failed allocations in a row that pause a fleet.
const FAILED_MAX: u32 = 3;

/// Allocations in one submit: Slurm's default is an array of 1,000 at most.
const ARRAY_MAX: u64 = 1_000;

/// How large a fleet gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetLimits {
    /// Allocations that are alive, queued ones included.
    pub workers_max: u64,
    /// Allocations that are queued.
    pub backlog: u64,
    /// Counting threads of an allocation, at least 1.
    pub threads: u64,
}

/// Something to do now, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FleetAction {
    /// Submit so many allocations.
    Submit(u32),
    /// Send these SIGTERM: their workers drain and end.
    Terminate(Vec<AllocationId>),
    /// Remove these from the batch system, whatever they are at.
    End(Vec<AllocationId>),
}

/// The outcome of a look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// What to do.
    pub actions: Vec<FleetAction>,
    /// What happened and what is done about it, a line each, for the log.
    pub notes: Vec<String>,
}

/// Looks at the batch system's `queue`, which was asked for at `asked_at`, and at the coordinator's `demand`; `None` where
/// there was no answer.
pub fn decide(
    now: UnixSeconds,
    asked_at: UnixSeconds,
    state: &mut FleetState,
    limits: &FleetLimits,
    queue: Option<&[QueueEntry]>,
    demand: Option<Demand>,
) -> Decision {
    let mut decision = Decision::default();
    note_coordinator(now, state, demand, &mut decision);
    let Some(queue) = queue else { return decision };
    state.queue_seen_at = Some(now);
    let fruitless = observe(now, state, queue, demand, &mut decision);
    judge(now, state, fruitless, demand, &mut decision);
    if state.open_submit.is_some_and(|open| open.until <= asked_at) {
        state.open_submit = None;
    }
    if state.stopping.is_some() {
        stop(now, state, &mut decision);
    } else {
        give_up_held(now, state, &mut decision);
        withdraw(now, state, limits, demand, &mut decision);
        grow(now, state, limits, demand, &mut decision);
    }
    state.demand = demand.or(state.demand);
    state.forget();
    decision
}

/// Learns how a submit of [`FleetAction::Submit`] ended; a line for the log.
pub fn submitted(
    now: UnixSeconds,
    state: &mut FleetState,
    answer: Result<Vec<AllocationId>, SubmitError>,
) -> String {
    let why = match answer {
        Ok(ids) => {
            state.open_submit = None;
            state.refused = Retry::default();
            let names: Vec<_> = ids.iter().map(AllocationId::as_str).collect();
            let note = format!("submitted {}", names.join(", "));
            for id in ids {
                state.allocations.entry(id).or_insert_with(|| Allocation::queued(now));
            }
            return note;
        }
        Err(SubmitError::Refused(why)) => {
            state.open_submit = None;
            format!("the submit was refused: {why}")
        }
        Err(SubmitError::Uncertain(why)) => {
            state.open_submit = Some(OpenSubmit { until: now.saturating_add(SETTLE_S) });
            format!("the submit had no answer: {why}")
        }
    };
    state.refused.again(now);
    if state.refused.times >= REFUSED_MAX {
        state.pause(now, format!("{REFUSED_MAX} submits in a row failed; the last: {why}"));
        return format!("{why}; paused after {REFUSED_MAX} in a row");
    }
    format!("{why}; the next is in {} s at the earliest", state.refused.not_before.saturating_sub(now))
}

fn note_coordinator(
    now: UnixSeconds,
    state: &mut FleetState,
    demand: Option<Demand>,
    decision: &mut Decision,
) {
    if demand.is_some() {
        state.coordinator_seen_at = Some(now);
    }
    match demand {
        Some(demand) if demand.open == 0 => {
            if state.idle_since.is_none() {
                decision.notes.push("nothing to count".to_owned());
            }
            state.idle_since.get_or_insert(now);
        }
        Some(_) => state.idle_since = None,
        None => {}
    }
}

/// Takes over what the batch system lists. Returns whether an allocation ended without a job done by anybody, or could not
/// be started.
fn observe(
    now: UnixSeconds,
    state: &mut FleetState,
    queue: &[QueueEntry],
    demand: Option<Demand>,
    decision: &mut Decision,
) -> bool {
    let mut fruitless = false;
    for QueueEntry { id, state: seen, node } in queue {
        let Some(allocation) = state.allocations.get_mut(id) else {
            // Of an earlier life of this fleet, or of a submit without an answer.
            if !matches!(seen, AllocationState::Ended(_)) {
                let mut allocation = Allocation::queued(now);
                (allocation.state, allocation.node) = (*seen, node.clone());
                state.allocations.insert(id.clone(), allocation);
                decision.notes.push(format!("{id} is ours: {}", seen.name()));
            }
            continue;
        };
        allocation.absent_since = None;
        if !node.is_empty() {
            allocation.node.clone_from(node);
        }
        if allocation.state != *seen {
            let told = allocation.told_at.is_some();
            let done_at_start = allocation.done_at_start;
            change(now, allocation, *seen, demand);
            decision.notes.push(format!("{id} is {}", seen.name()));
            match seen {
                AllocationState::Ended(Ending::Failed) if demand.is_some() && !told => state.failed += 1,
                AllocationState::Ended(Ending::Completed | Ending::TimeLimit) => {
                    state.failed = 0;
                    let done = demand.map(|demand| demand.done);
                    fruitless |= !told && done.is_some() && done_at_start == done;
                }
                AllocationState::Held => fruitless = true,
                _ => {}
            }
            if state.failed >= FAILED_MAX && state.pause.is_none() {
                let reason = format!("{FAILED_MAX} allocations in a row failed; the last: {id}");
                decision.notes.push(format!("paused: {reason}"));
                state.pause(now, reason);
            }
        }
    }
    miss(now, state, queue, decision);
    fruitless
}

fn change(now: UnixSeconds, allocation: &mut Allocation, to: AllocationState, demand: Option<Demand>) {
    if to == AllocationState::Queued && allocation.state != AllocationState::Unknown {
        allocation.restarts = allocation.restarts.saturating_add(1);
        allocation.told_at = None;
    }
    if to == AllocationState::Running {
        allocation.done_at_start = demand.map(|demand| demand.done);
    }
    (allocation.state, allocation.since) = (to, now);
}

/// Allocations that the batch system does not list.
fn miss(now: UnixSeconds, state: &mut FleetState, queue: &[QueueEntry], decision: &mut Decision) {
    let listed: BTreeSet<_> = queue.iter().map(|entry| &entry.id).collect();
    let unlisted = state.allocations.iter_mut().filter(|(id, _)| !listed.contains(id));
    for (id, allocation) in unlisted {
        if matches!(allocation.state, AllocationState::Ended(_)) {
            continue;
        }
        let since = *allocation.absent_since.get_or_insert(now);
        if now.saturating_sub(since) >= VANISH_S {
            change(now, allocation, AllocationState::Ended(Ending::Vanished), None);
            decision.notes.push(format!("{id} is {}", allocation.state.name()));
        }
    }
}

/// Holds it against a fleet if its allocations come and go, and nothing is counted: no job may fit into their time.
fn judge(
    now: UnixSeconds,
    state: &mut FleetState,
    fruitless: bool,
    demand: Option<Demand>,
    decision: &mut Decision,
) {
    let Some(demand) = demand else { return };
    let is_new = |earlier: Demand| demand.done != earlier.done || demand.open > earlier.open;
    if demand.open == 0 || state.demand.is_none_or(is_new) {
        state.fruitless = Retry::default();
    } else if fruitless {
        state.fruitless.again(now);
        let wait = state.fruitless.not_before.saturating_sub(now);
        decision.notes.push(format!(
            "an allocation ended or could not start, and no job was done meanwhile: do jobs fit into the time limit? \
             The next submit is in {wait} s at the earliest, or when a job is done"
        ));
    }
}

/// Removes allocations that the batch system could not start: they would wait for an operator.
fn give_up_held(now: UnixSeconds, state: &mut FleetState, decision: &mut Decision) {
    let held = state.allocations.iter_mut().filter(|(_, a)| a.state == AllocationState::Held);
    let ids = tell(now, held);
    if !ids.is_empty() {
        decision.notes.push(format!("ending {} allocations that could not be started", ids.len()));
        decision.actions.push(FleetAction::End(ids));
    }
}

/// Removes queued allocations that nobody needs.
fn withdraw(
    now: UnixSeconds,
    state: &mut FleetState,
    limits: &FleetLimits,
    demand: Option<Demand>,
    decision: &mut Decision,
) {
    let alive = state.count(AllocationState::is_alive);
    let is_idle =
        demand.is_some() && state.idle_since.is_some_and(|since| now.saturating_sub(since) >= IDLE_S);
    let surplus = if is_idle { alive } else { alive.saturating_sub(limits.workers_max) };
    let Ok(surplus) = usize::try_from(surplus) else { return };
    let queued = state.allocations.iter_mut().filter(|(_, a)| a.state == AllocationState::Queued);
    let mut queued: Vec<_> = queued.collect();
    // Those that never ran go first: a spool may have results of the others.
    queued.sort_by_key(|(_, allocation)| (allocation.restarts, u64::MAX - allocation.since));
    let ids = tell(now, queued.into_iter().take(surplus));
    if !ids.is_empty() {
        decision.notes.push(format!("withdrawing {} queued allocations: they are not needed", ids.len()));
        decision.actions.push(FleetAction::End(ids));
    }
}

/// Submits what the demand and the limits allow.
fn grow(
    now: UnixSeconds,
    state: &mut FleetState,
    limits: &FleetLimits,
    demand: Option<Demand>,
    decision: &mut Decision,
) {
    let Some(demand) = demand else { return };
    let must_wait = [state.refused, state.fruitless].iter().any(|retry| now < retry.not_before);
    if state.pause.is_some() || state.open_submit.is_some() || must_wait {
        return;
    }
    let alive = state.count(AllocationState::is_alive);
    // Unknown ones may be queued.
    let queued = state.count(|state| matches!(state, AllocationState::Queued | AllocationState::Unknown));
    let leaves =
        |a: &&Allocation| a.state == AllocationState::Leaving && now.saturating_sub(a.since) < LEAVE_S;
    let taken = alive + state.allocations.values().filter(leaves).count() as u64;
    let room = limits.workers_max.saturating_sub(taken);
    let count = target(state, limits, demand)
        .saturating_sub(taken)
        .min(room)
        .min(limits.backlog.saturating_sub(queued))
        .min(ARRAY_MAX);
    let Ok(count) = u32::try_from(count) else { return };
    if count > 0 {
        decision.notes.push(format!(
            "submitting {count}: {} threads have something to count, {} count; {alive} allocations are alive, \
             {queued} of them queued",
            demand.open, demand.threads,
        ));
        state.open_submit = Some(OpenSubmit { until: now.saturating_add(SETTLE_S) });
        decision.actions.push(FleetAction::Submit(count));
    }
}

/// The number of allocations that the open runs can use beside workers that are not of this fleet.
pub fn target(state: &FleetState, limits: &FleetLimits, demand: Demand) -> u64 {
    let threads = limits.threads.max(1);
    let running = state.count(|state| state == AllocationState::Running);
    let others = demand.threads.saturating_sub(running.saturating_mul(threads));
    demand.open.saturating_sub(others).div_ceil(threads)
}
