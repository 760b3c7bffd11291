//! The reputation of machines and credentials: how often results are checked, whose votes count, and who is untrusted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use nqueens_model::credential::Credential;
use nqueens_model::operator::MachineName;

use super::Millis;

/// What workers are trusted by: a credential, and the name that they register under, which is their host's unless told
/// otherwise. Workers of one name share their faults: they don't check each other. Names tell accidents apart, credentials lies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Machine {
    /// What its workers have shown.
    pub credential: Credential,
    /// What they call themselves; empty for all machines of the credential together.
    pub name: Arc<str>,
}

impl Machine {
    /// One machine.
    pub fn new(credential: Credential, name: &str) -> Self {
        Self { credential, name: name.into() }
    }

    /// All machines of a credential together.
    pub fn all_of(credential: Credential) -> Self {
        Self { credential, name: "".into() }
    }

    /// What names it on the command line of `nqueens distrust`.
    pub fn arguments(&self) -> String {
        let Self { credential, name } = self;
        match (name.is_empty(), credential.is_shared()) {
            (true, _) => format!("--credential '{credential}'"),
            (false, true) => format!("'{name}'"),
            (false, false) => format!("'{name}' --credential '{credential}'"),
        }
    }

    /// The machine, or all of its credential, that an operator names so; `None` for another one.
    pub(crate) fn named(&self, name: &MachineName) -> Option<Self> {
        let Self { credential, name: own } = self;
        let is_own = self.is_own();
        match name {
            _ if is_own => None,
            MachineName::All { credential: named } => {
                (credential == named).then(|| Self::all_of(credential.clone()))
            }
            MachineName::One { name: named, credential: of } => {
                let fits = **own == **named && of.as_ref().is_none_or(|of| of == credential);
                fits.then(|| self.clone())
            }
        }
    }

    /// Whether another is this machine, or one of these.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self == other || self.name.is_empty() && self.credential == other.credential
    }

    /// Whether it is the coordinator, where it counts itself.
    pub(super) fn is_own(&self) -> bool {
        self.credential.is_own()
    }
}

impl fmt::Display for Machine {
    /// Its name; where that is not enough its credential, too. The alternate form says that it is a machine.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { credential, name } = self;
        if name.is_empty() {
            return write!(f, "every machine of {credential}");
        }
        if f.alternate() {
            f.write_str("machine ")?;
        }
        if credential.is_shared() || self.is_own() {
            f.write_str(name)
        } else {
            write!(f, "{name} of {credential}")
        }
    }
}

/// Past results of a machine that are counted again at least, once it was wrong: were one in a hundred of them wrong, so
/// many would miss it in one case of twenty.
const SUSPECTS_MIN: u64 = 300;

/// A credential's vote decides once so many of its results are confirmed.
const STANDING_MIN: u64 = 10;

/// A credential is untrusted once so many of its machines are, ...
const UNTRUSTED_MAX: usize = 3;

/// ... if that is at least one in so many: among thousands some have bad memory.
const UNTRUSTED_ONE_IN: usize = 10;

/// A machine that fails job after job gets none for a second, after the next failure for two, up to this.
const REST_MAX_MS: Millis = 600_000;

/// Failures in a row after which a machine rests.
const FAILURES_IN_A_ROW: u32 = 3;

/// What a machine has shown so far, or all of a credential.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineReputation {
    /// Checks in which it agreed with another machine.
    pub passed: u64,
    /// Checks in which its result was found wrong.
    pub failed: u64,
    /// Its results that somebody of another credential, or the coordinator, counted alike.
    pub confirmed: u64,
    /// Why it gets no more jobs; `None` while it is trusted.
    pub distrusted: Option<String>,
    /// Open checks of its results.
    pub open: u64,
}

impl MachineReputation {
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

/// Failures of a machine since its last accepted result.
#[derive(Clone, Copy, Debug, Default)]
struct Setback {
    failures: u32,
    rests_until: Millis,
}

#[derive(Debug, Default)]
pub(super) struct Trust {
    machines: BTreeMap<Machine, MachineReputation>,
    /// Those whose reputation differs from the database's.
    dirty: BTreeSet<Machine>,
    setbacks: BTreeMap<Machine, Setback>,
}

impl Trust {
    /// Takes up what the database has.
    pub(super) fn add(&mut self, machine: Machine, reputation: MachineReputation) {
        self.machines.insert(machine, reputation);
    }

    pub(super) fn of(&self, machine: &Machine) -> MachineReputation {
        self.machines.get(machine).cloned().unwrap_or_default()
    }

    /// Why a machine is untrusted: by itself, or with all others of its credential.
    pub(super) fn distrusts(&self, machine: &Machine) -> Option<&str> {
        let reason = |machine: &Machine| self.machines.get(machine)?.distrusted.as_deref();
        reason(machine).or_else(|| reason(&Machine::all_of(machine.credential.clone())))
    }

    /// The machines of a credential that have shown something.
    fn machines_of(&self, credential: &Credential) -> impl Iterator<Item = &MachineReputation> {
        let all = Machine::all_of(credential.clone());
        let machines = self.machines.range(&all..).take_while({
            let credential = credential.clone();
            move |(machine, _)| machine.credential == credential
        });
        machines.filter(move |(machine, _)| **machine != all).map(|(_, reputation)| reputation)
    }

    /// Whether the votes of a credential decide: enough of its work is confirmed.
    pub(super) fn has_standing(&self, credential: &Credential) -> bool {
        let mut left = STANDING_MIN;
        let is_enough = |reputation: &MachineReputation| {
            left = left.saturating_sub(reputation.confirmed);
            left == 0
        };
        let is_trusted = self.distrusts(&Machine::all_of(credential.clone())).is_none();
        is_trusted && self.machines_of(credential).any(is_enough)
    }

    /// Whether so many machines of a credential are untrusted that all of them should be. One token for all tells nobody
    /// apart: there somebody's lies would send everyone away.
    pub(super) fn is_rotten(&self, credential: &Credential, machines: usize) -> bool {
        let untrusted =
            self.machines_of(credential).filter(|reputation| reputation.distrusted.is_some()).count();
        !credential.is_shared() && untrusted >= UNTRUSTED_MAX && untrusted * UNTRUSTED_ONE_IN >= machines
    }

    /// A machine failed to count a job. Returns its failures in a row and the seconds that it rests, if it does.
    pub(super) fn set_back(&mut self, now: Millis, machine: &Machine) -> Option<(u32, u64)> {
        let setback = self.setbacks.entry(machine.clone()).or_default();
        setback.failures = setback.failures.saturating_add(1);
        let beyond = setback.failures.checked_sub(FAILURES_IN_A_ROW)?;
        let rest = 1_000_u64.saturating_mul(2_u64.saturating_pow(beyond)).min(REST_MAX_MS);
        // What it had begun when it was sent to rest may fail meanwhile: that is no news.
        let is_news = setback.rests_until <= now;
        setback.rests_until = setback.rests_until.max(now.saturating_add(rest));
        is_news.then_some((setback.failures, rest / 1_000))
    }

    /// A result of a machine was accepted.
    pub(super) fn recover(&mut self, machine: &Machine) {
        self.setbacks.remove(machine);
    }

    /// How many of the jobs that a machine wants it gets: fewer with each failure, and none while it rests.
    pub(super) fn jobs_max(&self, now: Millis, machine: &Machine, wanted: usize) -> usize {
        let Some(setback) = self.setbacks.get(machine) else { return wanted };
        let fewer = wanted.checked_shr(setback.failures).unwrap_or(0).max(1).min(wanted);
        if now < setback.rests_until { 0 } else { fewer }
    }

    /// A check of a result of its is opened or ended.
    pub(super) fn count_open(&mut self, machine: &Machine, change: i64) {
        let reputation = self.machines.entry(machine.clone()).or_default();
        reputation.open = reputation.open.checked_add_signed(change).expect("what ends has begun");
    }

    /// Changes what is stored of a machine.
    pub(super) fn change(&mut self, machine: &Machine) -> &mut MachineReputation {
        self.dirty.insert(machine.clone());
        self.machines.entry(machine.clone()).or_default()
    }

    /// The reputations that changed since the last call.
    pub(super) fn take_dirty(&mut self) -> Vec<(Machine, MachineReputation)> {
        let dirty = std::mem::take(&mut self.dirty);
        dirty.into_iter().map(|machine| (machine.clone(), self.of(&machine))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newcomers_are_checked_most() {
        let share = |passed, open| {
            MachineReputation { passed, open, ..MachineReputation::default() }.share(0.01).to_bits()
        };
        assert_eq!(
            [share(0, 0), share(1, 0), share(0, 1), share(2, 1)],
            [1.0, 0.5, 0.5, 0.25].map(f64::to_bits)
        );
        assert_eq!(share(1_000_000, 0), 0.01_f64.to_bits());
    }

    #[test]
    fn rests_grow_to_ten_minutes_and_no_further() {
        let (mut trust, machine) = (Trust::default(), Machine::new(Credential::shared(), "one"));
        let mut rests = Vec::new();
        let mut now = 0;
        for _ in 0..200 {
            now += REST_MAX_MS;
            rests.extend(trust.set_back(now, &machine).map(|(_, seconds)| seconds));
        }
        assert_eq!(rests.len(), 198);
        assert_eq!(rests[..11], [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600]);
        assert!(rests[11..].iter().all(|rest| *rest == 600));
        assert_eq!(trust.jobs_max(now + REST_MAX_MS - 1, &machine, 64), 0);
        trust.recover(&machine);
        assert_eq!(trust.jobs_max(now, &machine, 64), 64);
    }
}
