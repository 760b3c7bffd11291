//! The reputation of machines: how often their results are checked, and which machines are untrusted.

use std::collections::{BTreeMap, BTreeSet};

use super::Machine;

/// Past results of a machine that are counted again at least, once it was wrong: were one in a hundred of them wrong, so
/// many would miss it in one case of twenty.
const SUSPECTS_MIN: u64 = 300;

/// What a machine has shown so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Checks in which it agreed with another machine.
    pub passed: u64,
    /// Checks in which two other machines agreed against it.
    pub failed: u64,
    /// Why it gets no more jobs; `None` while it is trusted.
    pub distrusted: Option<String>,
    /// Open checks of its results.
    pub open: u64,
}

impl Standing {
    /// The share of its results to check, at least the run's `base`: all results of a new machine, fewer with each
    /// check that it passed or that is pending.
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    pub fn share(&self, base: f64) -> f64 {
        (1.0 / (1 + self.passed + self.open) as f64).max(base)
    }

    /// The number of past results to count again after a wrong one. It was wrong once in its checks so far; a sample
    /// of three times that size misses a machine with this error rate in 1 of 20 cases.
    pub fn suspects(&self) -> usize {
        let suspects = self.passed.saturating_mul(3).max(SUSPECTS_MIN);
        usize::try_from(suspects).unwrap_or(usize::MAX)
    }
}

#[derive(Debug, Default)]
pub(super) struct Trust {
    machines: BTreeMap<Machine, Standing>,
    /// Those whose standing differs from the database's.
    dirty: BTreeSet<Machine>,
}

impl Trust {
    /// Takes up what the database has.
    pub(super) fn add(&mut self, machine: Machine, standing: Standing) {
        self.machines.insert(machine, standing);
    }

    pub(super) fn of(&self, machine: &str) -> Standing {
        self.machines.get(machine).cloned().unwrap_or_default()
    }

    pub(super) fn distrusts(&self, machine: &str) -> Option<&str> {
        self.machines.get(machine)?.distrusted.as_deref()
    }

    /// A check of a result of its is opened or ended.
    pub(super) fn count_open(&mut self, machine: &Machine, change: i64) {
        let standing = self.machines.entry(Machine::clone(machine)).or_default();
        standing.open = standing.open.checked_add_signed(change).expect("what ends has begun");
    }

    /// Changes what is stored of a machine.
    pub(super) fn change(&mut self, machine: &Machine) -> &mut Standing {
        self.dirty.insert(Machine::clone(machine));
        self.machines.entry(Machine::clone(machine)).or_default()
    }

    /// The standings that changed since the last call.
    pub(super) fn take_dirty(&mut self) -> Vec<(Machine, Standing)> {
        let dirty = std::mem::take(&mut self.dirty);
        dirty.into_iter().map(|machine| (Machine::clone(&machine), self.of(&machine))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newcomers_are_checked_most() {
        let share = |passed, open| Standing { passed, open, ..Standing::default() }.share(0.01).to_bits();
        assert_eq!(
            [share(0, 0), share(1, 0), share(0, 1), share(2, 1)],
            [1.0, 0.5, 0.5, 0.25].map(f64::to_bits)
        );
        assert_eq!(share(1_000_000, 0), 0.01_f64.to_bits());
    }
}
