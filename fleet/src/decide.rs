//! What a fleet does next. No I/O, no clock, no randomness: the same sights always lead to the same actions.
//!
//! | seen | taken for |
//! |---|---|
//! | completed, time limit | a good end |
//! | cancelled, preempted, queued again | no failure |
//! | failed | a failure, unless the coordinator is away or the fleet itself told the allocation to go |
//! | refused by the coordinator | no failure: during an upgrade its version and that of the workers differ |
//! | node failed, no longer listed for a minute | a loss: replaced, no failure |
//! | no longer listed, and told to go | cancelled |
//! | a submit limit | no failure: fewer are submitted, and one more when one ends, or is tried after two minutes |
//! | held by the batch system, which could not start it | ended and replaced; later and later while no job is done |
//! | leaving (Slurm's COMPLETING) | neither running nor failed; not replaced for 30 seconds, as it may be queued again |
//! | a state that this version does not know | alive for every limit, and no failure |

mod stop;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use self::stop::{stop, tell};
use crate::UnixSeconds;
use crate::backend::SubmitError;
use crate::state::{
    Allocation, AllocationId, AllocationState, Cap, Demand, Ending, FleetState, OpenSubmit, QueueEntry, Retry,
};

/// A submit without an answer has reached the batch system within so many seconds, or never does. A backend gives up
/// waiting for an answer before that.
pub const SETTLE_S: u64 = 60;

/// An allocation that is not listed for so many seconds is gone.
const VANISH_S: u64 = 60;

/// Queued allocations are withdrawn after so many seconds without work.
const IDLE_S: u64 = 15;

/// An allocation that leaves keeps its place for so many seconds: after a preemption it is queued again.
const LEAVE_S: u64 = 30;

/// Refused submits in a row that pause a fleet.
const REFUSED_MAX: u32 = 10;

/// Failed allocations in a row that pause a fleet.
const FAILED_MAX: u32 = 3;

/// Allocations in one submit: Slurm's default is an array of 1,000 at most.
const ARRAY_MAX: u64 = 1_000;

/// Half of the backlog starts at once if it does so within so many seconds.
const START_S: u64 = 60;

/// Time between two attempts to have one more than a submit limit allowed, in seconds.
const PROBE_S: u64 = 120;

/// Time between two looks at the batch system while nothing changes, in seconds.
const QUIET_S: u64 = 30;

/// A look that took a second is followed by none for so many.
const SLOWDOWN: u64 = 10;

/// The longest pause after a slow look, in seconds.
const PAUSE_MAX_S: u64 = 300;

/// How large a fleet gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetLimits {
    /// Allocations that are alive, queued ones included.
    pub workers_max: u64,
    /// Allocations that are queued, while they do not start at once.
    pub backlog: u64,
    /// Counting threads of an allocation until a worker reports them, at least 1.
    pub threads: u64,
    /// Time between two looks at the batch system while something changes, in seconds.
    pub interval_s: u64,
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
    /// A running allocation whose worker may have reported its threads by now.
    pub threads_of: Option<AllocationId>,
}

/// Whether it is time to look at the batch system.
pub fn is_due(now: UnixSeconds, state: &FleetState, limits: &FleetLimits, demand: Option<Demand>) -> bool {
    now >= state.look_at || demand.is_some_and(|demand| wanted(now, state, limits, demand) > 0)
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
    let slow = now.saturating_sub(asked_at).saturating_mul(SLOWDOWN).min(PAUSE_MAX_S);
    state.look_at = now.saturating_add(slow.max(QUIET_S));
    let Some(queue) = queue else { return decision };
    state.queue_seen_at = Some(now);
    let fruitless = observe(now, state, queue, demand, &mut decision);
    judge(now, state, fruitless, demand, &mut decision);
    if state.open_submit.is_some_and(|open| open.until <= asked_at) {
        (state.open_submit, state.filled) = (None, None);
    }
    if state.stopping.is_some() {
        stop(now, state, &mut decision);
    } else {
        give_up_held(now, state, &mut decision);
        withdraw(now, state, limits, demand, &mut decision);
        ramp(now, state);
        grow(now, state, limits, demand, &mut decision);
    }
    state.demand = demand.or(state.demand);
    state.forget();
    let is_young =
        |a: &Allocation| a.state == AllocationState::Queued && now.saturating_sub(a.since) < START_S;
    let has_changed = !decision.notes.is_empty() || state.allocations.values().any(is_young);
    if has_changed || state.stopping.is_some() || state.open_submit.is_some() {
        state.look_at = now.saturating_add(slow.max(limits.interval_s));
    }
    let is_new =
        |(_, a): &(&AllocationId, &Allocation)| a.state == AllocationState::Running && a.threads == 0;
    decision.threads_of = state.allocations.iter().rfind(is_new).map(|(id, _)| id.clone());
    decision
}

/// Learns how a submit of so many allocations ended. Returns a line for the log, and how many to submit at once instead.
pub fn submitted(
    now: UnixSeconds,
    state: &mut FleetState,
    count: u32,
    answer: Result<Vec<AllocationId>, SubmitError>,
) -> (String, Option<u32>) {
    if answer.is_err() {
        state.filled = None;
    }
    let why = match answer {
        Ok(ids) => {
            state.open_submit = None;
            state.refused = Retry::default();
            let note = match &ids[..] {
                [first, .., last] => format!("submitted {} allocations, {first} to {last}", ids.len()),
                one => format!("submitted {}", one.first().map_or("nothing", AllocationId::as_str)),
            };
            for id in ids {
                state.allocations.entry(id).or_insert_with(|| Allocation::queued(now));
            }
            let taken = taken(now, state);
            // Whatever it was, it is no longer the limit.
            state.cap.take_if(|cap| taken > cap.most);
            return (note, None);
        }
        Err(SubmitError::Limit(why)) => {
            let most = taken(now, state).saturating_add(count.into()).saturating_sub(1);
            let note = format!("a submit limit, of {most} allocations at most: {why}");
            state.cap = Some(Cap { most, probe_at: now.saturating_add(PROBE_S), why });
            let fewer = (count > 1).then_some(count / 2);
            let until = now.saturating_add(SETTLE_S);
            state.open_submit = fewer.map(|_| OpenSubmit { until });
            return (note, fewer);
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
        return (format!("{why}; paused after {REFUSED_MAX} in a row"), None);
    }
    let wait = state.refused.not_before.saturating_sub(now);
    (format!("{why}; the next is in {wait} s at the earliest"), None)
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
    let mut seen_so = BTreeMap::<&str, Vec<String>>::new();
    for QueueEntry { id, state: seen, node, why } in queue {
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
        if allocation.state == *seen {
            continue;
        }
        let told = allocation.told_at.is_some();
        let in_vain = demand.is_some_and(|demand| allocation.done_at_start == Some(demand.done));
        change(now, allocation, *seen, demand);
        allocation.why.clone_from(why);
        if why.is_empty() {
            seen_so.entry(seen.name()).or_default().push(id.to_string());
        } else {
            decision.notes.push(format!("{id} is {}: {why}", seen.name()));
        }
        match seen {
            AllocationState::Ended(Ending::Failed) if demand.is_some() && !told => state.failed += 1,
            AllocationState::Ended(Ending::Refused) => fruitless |= in_vain,
            AllocationState::Ended(Ending::Completed | Ending::TimeLimit) => {
                state.failed = 0;
                fruitless |= !told && in_vain;
            }
            AllocationState::Held => {
                fruitless = true;
                (state.ramp, state.filled) = (0, None);
            }
            _ => {}
        }
        if state.failed >= FAILED_MAX && state.pause.is_none() {
            let why = if why.is_empty() { String::new() } else { format!(", {why}") };
            let reason = format!("{FAILED_MAX} allocations in a row failed; the last: {id}{why}");
            decision.notes.push(format!("paused: {reason}"));
            state.pause(now, reason);
        }
    }
    decision.notes.extend(seen_so.into_iter().map(|(name, ids)| match ids.len() {
        1 => format!("{} is {name}", ids[0]),
        2..=3 => format!("{} are {name}", ids.join(", ")),
        count => format!("{count} allocations are {name}"),
    }));
    fruitless |= miss(now, state, queue, demand, decision);
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

/// Allocations that the batch system does not list. Returns whether one of them ran in vain.
fn miss(
    now: UnixSeconds,
    state: &mut FleetState,
    queue: &[QueueEntry],
    demand: Option<Demand>,
    decision: &mut Decision,
) -> bool {
    let mut fruitless = false;
    let listed: BTreeSet<_> = queue.iter().map(|entry| &entry.id).collect();
    let unlisted = state.allocations.iter_mut().filter(|(id, _)| !listed.contains(id));
    for (id, allocation) in unlisted {
        if matches!(allocation.state, AllocationState::Ended(_)) {
            continue;
        }
        let since = *allocation.absent_since.get_or_insert(now);
        let told = allocation.told_at.is_some();
        if told || now.saturating_sub(since) >= VANISH_S {
            let ending = if told { Ending::Cancelled } else { Ending::Vanished };
            fruitless |= demand.is_some_and(|demand| allocation.done_at_start == Some(demand.done)) && !told;
            change(now, allocation, AllocationState::Ended(ending), None);
            decision.notes.push(format!("{id} is {}", allocation.state.name()));
        }
    }
    fruitless
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

/// Allocations that may be queued.
fn backlog(state: &FleetState, limits: &FleetLimits) -> u64 {
    limits.backlog.max(state.ramp)
}

/// Allocations that may be queued; one of a state that nobody knows may be.
fn queued(state: &FleetState) -> u64 {
    state.count(|state| matches!(state, AllocationState::Queued | AllocationState::Unknown))
}

/// Allocations that have a place: they are alive, or have only just begun to leave.
fn taken(now: UnixSeconds, state: &FleetState) -> u64 {
    let leaves =
        |a: &&Allocation| a.state == AllocationState::Leaving && now.saturating_sub(a.since) < LEAVE_S;
    state.count(AllocationState::is_alive) + state.allocations.values().filter(leaves).count() as u64
}

/// Doubles the backlog when half of it has started at once, and takes it back when most of it waits.
fn ramp(now: UnixSeconds, state: &mut FleetState) {
    let (Some((at, full)), None) = (state.filled, state.open_submit) else { return };
    if queued(state) <= full / 2 {
        (state.ramp, state.filled) = (full.saturating_mul(2).min(ARRAY_MAX), None);
    } else if now.saturating_sub(at) > START_S {
        (state.ramp, state.filled) = (0, None);
    }
}

/// Allocations to submit now, as the demand and the limits allow.
pub fn wanted(now: UnixSeconds, state: &FleetState, limits: &FleetLimits, demand: Demand) -> u64 {
    let must_wait = [state.refused, state.fruitless].iter().any(|retry| now < retry.not_before);
    if state.pause.is_some() || state.stopping.is_some() || state.open_submit.is_some() || must_wait {
        return 0;
    }
    let taken = taken(now, state);
    let cap = state.cap.as_ref().map_or(u64::MAX, |cap| {
        if now < cap.probe_at { cap.most } else { cap.most.max(taken).saturating_add(1) }
    });
    target(state, limits, demand)
        .min(limits.workers_max)
        .min(cap)
        .saturating_sub(taken)
        .min(backlog(state, limits).saturating_sub(queued(state)))
        .min(ARRAY_MAX)
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
    let Ok(count) = u32::try_from(wanted(now, state, limits, demand)) else { return };
    if count > 0 {
        decision.notes.push(format!(
            "submitting {count}: {} threads have something to count, {} count; {} allocations are alive, \
             {} of them queued",
            demand.open,
            demand.threads,
            state.count(AllocationState::is_alive),
            queued(state),
        ));
        let full = backlog(state, limits);
        if queued(state) + u64::from(count) >= full {
            state.filled.get_or_insert((now, full));
        }
        state.open_submit = Some(OpenSubmit { until: now.saturating_add(SETTLE_S) });
        decision.actions.push(FleetAction::Submit(count));
    }
}

/// The number of allocations that the open runs can use beside workers that are not of this fleet.
pub fn target(state: &FleetState, limits: &FleetLimits, demand: Demand) -> u64 {
    // As the last worker reported, or as the operator said.
    let usual = if state.threads > 0 { state.threads } else { limits.threads.max(1) };
    let running = state.allocations.values().filter(|a| a.state == AllocationState::Running);
    let own = running.map(|a| if a.threads > 0 { a.threads } else { usual }).sum();
    let others = demand.threads.saturating_sub(own);
    demand.open.saturating_sub(others).div_ceil(usual)
}
