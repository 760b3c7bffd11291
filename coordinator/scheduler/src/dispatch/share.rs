//! What one credential may take up, so that there is room for the others. Where all have one token, each name is one.

use std::collections::BTreeMap;

use super::{Dispatch, Machine, Millis};

/// Leases that somebody may hold who has no accepted result yet.
const LEASES_MIN: u64 = 1_000;

const LEASES_PER_RESULT: u64 = 2;

const LINES_MAX: u32 = 10;

/// So often what is counted by the hour or the minute begins anew.
const MINUTE_MS: Millis = 60_000;
const HOUR_MS: Millis = 60 * MINUTE_MS;

/// What somebody has taken up in this life of the coordinator.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    pub(super) leases: u64,
    pub(super) accepted: u64,
    lines: Rate,
    registrations: Rate,
}

#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    since: Millis,
    times: u32,
}

impl Rate {
    /// Counts one more; false if there were that many in this time.
    fn take(&mut self, now: Millis, every: Millis, max: u32) -> bool {
        if now.saturating_sub(self.since) >= every {
            *self = Self { since: now, times: 0 };
        }
        self.times = self.times.saturating_add(1);
        self.times <= max
    }
}

pub(super) type Shares = BTreeMap<Machine, Share>;

impl Dispatch {
    /// Whose share a machine lives by.
    fn holder(machine: &Machine) -> Machine {
        let Machine { credential, .. } = machine;
        if credential.is_shared() { machine.clone() } else { Machine::all_of(credential.clone()) }
    }

    pub(super) fn share(&mut self, machine: &Machine) -> &mut Share {
        self.shares.entry(Self::holder(machine)).or_default()
    }

    /// How many jobs more a machine may be leased.
    pub(super) fn leases_left(&self, machine: &Machine) -> usize {
        let Share { leases, accepted, .. } =
            self.shares.get(&Self::holder(machine)).copied().unwrap_or_default();
        let max = LEASES_MIN.saturating_add(accepted.saturating_mul(LEASES_PER_RESULT));
        usize::try_from(max.saturating_sub(leases)).unwrap_or(usize::MAX)
    }

    /// Whether an event or a log line about a machine is one of few.
    pub(crate) fn may_tell(&mut self, now: Millis, machine: &Machine) -> bool {
        self.share(machine).lines.take(now, MINUTE_MS, LINES_MAX)
    }

    /// Whether one more process of a credential may register: each stays in the ledger for good.
    pub(crate) fn may_register(&mut self, now: Millis, machine: &Machine) -> bool {
        let max = u32::try_from(self.policy.workers_max).unwrap_or(u32::MAX);
        let all = Machine::all_of(machine.credential.clone());
        self.shares.entry(all).or_default().registrations.take(now, HOUR_MS, max)
    }

    pub(super) fn note_refusal(&mut self, machine: &Machine) {
        self.trust.change(machine).refused += 1;
    }
}

#[cfg(test)]
impl Dispatch {
    pub(crate) fn shares(&self) -> usize {
        self.shares.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_begins_anew() {
        let mut rate = Rate::default();
        let taken: Vec<_> = [0, 1, 2, 9, 10, 11, 12].map(|now| rate.take(now, 10, 2)).into();
        assert_eq!(taken, [true, true, false, false, true, true, false]);
    }
}
