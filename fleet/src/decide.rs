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

use self::stop::tell;
use crate::UnixSeconds;
use crate::backend::SubmitError;
use crate::state::{
    Allocation, AllocationId, AllocationState, Cap, Demand, Ending, FleetState, QueueEntry, Retry,
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
    Submit(u32),
    /// Send these SIGTERM: their workers drain and end.
    Terminate(Vec<AllocationId>),
    /// Remove these from the batch system, whatever they are at.
    End(Vec<AllocationId>),
}

/// The outcome of a look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
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
    let mut look = Look { now, state, limits, demand, decision: Decision::default() };
    look.note_coordinator();
    let slow = now.saturating_sub(asked_at).saturating_mul(SLOWDOWN).min(PAUSE_MAX_S);
    look.state.look_at = now.saturating_add(slow.max(QUIET_S));
    let Some(queue) = queue else { return look.decision };
    let fruitless = look.observe(queue) | look.miss(queue);
    look.judge(fruitless);
    if look.state.open_submit.is_some_and(|until| until <= asked_at) {
        (look.state.open_submit, look.state.filled) = (None, None);
    }
    if look.state.stopping.is_some() {
        look.stop();
    } else {
        look.give_up_held();
        look.withdraw();
        look.ramp();
        look.grow();
    }
    let Look { state, mut decision, .. } = look;
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
            state.open_submit = fewer.map(|_| until);
            return (note, fewer);
        }
        Err(SubmitError::Refused(why)) => {
            state.open_submit = None;
            format!("the submit was refused: {why}")
        }
        Err(SubmitError::Uncertain(why)) => {
            state.open_submit = Some(now.saturating_add(SETTLE_S));
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

/// What a look has before it, and what it has decided so far.
struct Look<'a> {
    now: UnixSeconds,
    state: &'a mut FleetState,
    limits: &'a FleetLimits,
    demand: Option<Demand>,
    decision: Decision,
}

impl Look<'_> {
    fn note(&mut self, what: String) {
        self.decision.notes.push(what);
    }

    fn note_coordinator(&mut self) {
        let Some(demand) = self.demand else { return };
        self.state.coordinator_seen_at = Some(self.now);
        if demand.open > 0 {
            self.state.idle_since = None;
        } else if self.state.idle_since.is_none() {
            self.state.idle_since = Some(self.now);
            self.note("nothing to count".to_owned());
        }
    }

    /// Takes over what the batch system lists. Returns whether an allocation ended without a job done by anybody, or could
    /// not be started.
    fn observe(&mut self, queue: &[QueueEntry]) -> bool {
        let Self { now, state, demand, decision, .. } = self;
        let (now, demand) = (*now, *demand);
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
            let in_vain = is_in_vain(allocation, demand);
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
        fruitless
    }

    /// Allocations that the batch system does not list. Returns whether one of them ran in vain.
    fn miss(&mut self, queue: &[QueueEntry]) -> bool {
        let mut fruitless = false;
        let listed: BTreeSet<_> = queue.iter().map(|entry| &entry.id).collect();
        for (id, allocation) in self.state.allocations.iter_mut().filter(|(id, _)| !listed.contains(id)) {
            if matches!(allocation.state, AllocationState::Ended(_)) {
                continue;
            }
            let since = *allocation.absent_since.get_or_insert(self.now);
            let told = allocation.told_at.is_some();
            if told || self.now.saturating_sub(since) >= VANISH_S {
                let ending = if told { Ending::Cancelled } else { Ending::Vanished };
                fruitless |= is_in_vain(allocation, self.demand) && !told;
                change(self.now, allocation, AllocationState::Ended(ending), None);
                self.decision.notes.push(format!("{id} is {}", allocation.state.name()));
            }
        }
        fruitless
    }

    /// Holds it against a fleet if its allocations come and go, and nothing is counted: no job may fit into their time.
    fn judge(&mut self, fruitless: bool) {
        let Some(demand) = self.demand else { return };
        let is_new = |earlier: Demand| demand.done != earlier.done || demand.open > earlier.open;
        if demand.open == 0 || self.state.demand.is_none_or(is_new) {
            self.state.fruitless = Retry::default();
        } else if fruitless {
            self.state.fruitless.again(self.now);
            let wait = self.state.fruitless.not_before.saturating_sub(self.now);
            self.note(format!(
                "an allocation ended or could not start, and no job was done meanwhile: do jobs fit into the time limit? \
                 The next submit is in {wait} s at the earliest, or when a job is done"
            ));
        }
    }

    /// Removes allocations that the batch system could not start: they would wait for an operator.
    fn give_up_held(&mut self) {
        let held = self.state.allocations.iter_mut().filter(|(_, a)| a.state == AllocationState::Held);
        let ids = tell(self.now, held);
        if !ids.is_empty() {
            self.note(format!("ending {} allocations that could not be started", ids.len()));
            self.decision.actions.push(FleetAction::End(ids));
        }
    }

    /// Removes queued allocations that nobody needs.
    fn withdraw(&mut self) {
        let alive = self.state.count(AllocationState::is_alive);
        let is_idle = self.demand.is_some()
            && self.state.idle_since.is_some_and(|since| self.now.saturating_sub(since) >= IDLE_S);
        let surplus = if is_idle { alive } else { alive.saturating_sub(self.limits.workers_max) };
        let Ok(surplus) = usize::try_from(surplus) else { return };
        let queued = self.state.allocations.iter_mut().filter(|(_, a)| a.state == AllocationState::Queued);
        let mut queued: Vec<_> = queued.collect();
        // Those that never ran go first: a spool may have results of the others.
        queued.sort_by_key(|(_, allocation)| (allocation.restarts, u64::MAX - allocation.since));
        let ids = tell(self.now, queued.into_iter().take(surplus));
        if !ids.is_empty() {
            self.note(format!("withdrawing {} queued allocations: they are not needed", ids.len()));
            self.decision.actions.push(FleetAction::End(ids));
        }
    }

    /// Doubles the backlog when half of it has started at once, and takes it back when most of it waits.
    fn ramp(&mut self) {
        let (Some((at, full)), None) = (self.state.filled, self.state.open_submit) else { return };
        if queued(self.state) <= full / 2 {
            (self.state.ramp, self.state.filled) = (full.saturating_mul(2).min(ARRAY_MAX), None);
        } else if self.now.saturating_sub(at) > START_S {
            (self.state.ramp, self.state.filled) = (0, None);
        }
    }

    /// Submits what the demand and the limits allow.
    fn grow(&mut self) {
        let Some(demand) = self.demand else { return };
        let Ok(count) = u32::try_from(wanted(self.now, self.state, self.limits, demand)) else { return };
        if count == 0 {
            return;
        }
        let (alive, queued) = (self.state.count(AllocationState::is_alive), queued(self.state));
        self.note(format!(
            "submitting {count}: {} threads have something to count, {} count; {alive} allocations are alive, {queued} of \
             them queued",
            demand.open, demand.threads
        ));
        let full = backlog(self.state, self.limits);
        if queued + u64::from(count) >= full {
            self.state.filled.get_or_insert((self.now, full));
        }
        self.state.open_submit = Some(self.now.saturating_add(SETTLE_S));
        self.decision.actions.push(FleetAction::Submit(count));
    }
}

/// Whether no job was done anywhere since it began to run.
fn is_in_vain(allocation: &Allocation, demand: Option<Demand>) -> bool {
    demand.is_some_and(|demand| allocation.done_at_start == Some(demand.done))
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

/// The number of allocations that the open runs can use beside workers that are not of this fleet.
pub fn target(state: &FleetState, limits: &FleetLimits, demand: Demand) -> u64 {
    // As the last worker reported, or as the operator said.
    let usual = if state.threads > 0 { state.threads } else { limits.threads.max(1) };
    let running = state.allocations.values().filter(|a| a.state == AllocationState::Running);
    let own = running.map(|a| if a.threads > 0 { a.threads } else { usual }).sum();
    let others = demand.threads.saturating_sub(own);
    demand.open.saturating_sub(others).div_ceil(usual)
}
