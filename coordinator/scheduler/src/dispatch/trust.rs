//! Machines and credentials, and which of them are out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use nqueens_model::credential::Credential;
use nqueens_model::operator::MachineName;

/// What workers are trusted by: a credential, and the name that they register under, which is their host's unless told
/// otherwise. Workers of one name share their faults: they don't check each other. Names tell accidents apart, credentials lies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Machine {
    pub credential: Credential,
    /// What they call themselves; empty for all machines of the credential together.
    pub name: Arc<str>,
}

impl Machine {
    pub fn new(credential: Credential, name: &str) -> Self {
        Self { credential, name: name.into() }
    }

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
        match name {
            _ if credential.is_own() => None,
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
        if credential.is_shared() || credential.is_own() {
            f.write_str(name)
        } else {
            write!(f, "{name} of {credential}")
        }
    }
}

/// What a machine has shown so far, or all of a credential.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineReputation {
    /// Its results that were counted a second time, or recounted, to the same.
    pub passed: u64,
    /// Its results that were found wrong by the coordinator's own count.
    pub failed: u64,
    /// Its results that were refused and not kept: without a ticket, or beyond what can be.
    pub refused: u64,
    /// Why it gets no more jobs; `None` while it is trusted.
    pub distrusted: Option<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Trust {
    machines: BTreeMap<Machine, MachineReputation>,
    /// Those whose reputation differs from the database's.
    dirty: BTreeSet<Machine>,
}

impl Trust {
    pub(super) fn add(&mut self, machine: Machine, reputation: MachineReputation) {
        self.machines.insert(machine, reputation);
    }

    pub(super) fn of(&self, machine: &Machine) -> MachineReputation {
        self.machines.get(machine).cloned().unwrap_or_default()
    }

    /// Why a machine is out: by itself, or with all others of its credential.
    pub(super) fn distrusts(&self, machine: &Machine) -> Option<&str> {
        let reason = |machine: &Machine| self.machines.get(machine)?.distrusted.as_deref();
        reason(machine).or_else(|| reason(&Machine::all_of(machine.credential.clone())))
    }

    /// Whether a credential was wrong under two of its names. One token for all tells nobody apart: there somebody's lies
    /// would send everyone away.
    pub(super) fn is_wrong(&self, credential: &Credential) -> bool {
        let wrong = self.machines.iter().filter(|(machine, reputation)| {
            machine.credential == *credential && !machine.name.is_empty() && reputation.failed > 0
        });
        !credential.is_shared() && wrong.count() > 1
    }

    pub(super) fn change(&mut self, machine: &Machine) -> &mut MachineReputation {
        self.dirty.insert(machine.clone());
        self.machines.entry(machine.clone()).or_default()
    }

    pub(crate) fn take_dirty(&mut self) -> Vec<(Machine, MachineReputation)> {
        let dirty = std::mem::take(&mut self.dirty);
        dirty.into_iter().map(|machine| (machine.clone(), self.of(&machine))).collect()
    }
}
