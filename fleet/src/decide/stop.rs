//! How a fleet stops.

use super::{FleetAction, Look};
use crate::UnixSeconds;
use crate::state::{Allocation, AllocationId, AllocationState};

/// An allocation that did not do as told is told again after so many seconds.
const REPEAT_S: u64 = 30;

impl Look<'_> {
    /// Ends everything: what waits or is suspended at once, what runs by SIGTERM, and what is left at the deadline. It is over
    /// when nothing is leaving either: what leaves may be queued again.
    pub(super) fn stop(&mut self) {
        let Self { now, state, decision, .. } = self;
        let now = *now;
        let Some(mut stopping) = state.stopping else { return };
        let is_late = now >= stopping.deadline;
        let mut waiting = Vec::new();
        let mut running = Vec::new();
        for (id, allocation) in &mut state.allocations {
            if is_late {
                // At the deadline everyone is told anew, and in other words.
                allocation.told_at = allocation.told_at.filter(|told| *told >= stopping.deadline);
            }
            match allocation.state {
                AllocationState::Running if !is_late => running.push((id, allocation)),
                AllocationState::Leaving | AllocationState::Ended(_) => {}
                _ => waiting.push((id, allocation)),
            }
        }
        let (running, waiting) = (tell(now, running.into_iter()), tell(now, waiting.into_iter()));
        if !running.is_empty() {
            decision.notes.push(format!("telling {} running allocations to drain", running.len()));
            decision.actions.push(FleetAction::Terminate(running));
        }
        if !waiting.is_empty() {
            decision.notes.push(format!("ending {} allocations", waiting.len()));
            decision.actions.push(FleetAction::End(waiting));
        }
        let left = state.count(|state| !matches!(state, AllocationState::Ended(_)));
        stopping.is_over = left == 0 && state.open_submit.is_none();
        state.stopping = Some(stopping);
    }
}

/// Those that are listed and were not told lately; they are now.
pub(super) fn tell<'a>(
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
