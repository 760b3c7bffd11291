//! A worker, as operators see it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::WallTime;
use crate::credential::Credential;
use crate::id::WorkerId;

/// Whom an operator trusts or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "MachineFields", into = "MachineFields")]
pub enum MachineName {
    /// The machines that register under this name.
    One {
        name: String,
        /// Under this credential only; `None` for each.
        credential: Option<Credential>,
    },
    /// All machines of a credential.
    All { credential: Credential },
}

/// Both have to be there: a misspelt name must not make one machine all of them.
#[derive(Serialize, Deserialize)]
struct MachineFields {
    #[serde(deserialize_with = "Option::deserialize")]
    machine: Option<String>,
    #[serde(deserialize_with = "Option::deserialize")]
    credential: Option<Credential>,
}

impl From<MachineName> for MachineFields {
    fn from(name: MachineName) -> Self {
        match name {
            MachineName::One { name, credential } => Self { machine: Some(name), credential },
            MachineName::All { credential } => Self { machine: None, credential: Some(credential) },
        }
    }
}

impl TryFrom<MachineFields> for MachineName {
    type Error = &'static str;

    fn try_from(MachineFields { machine, credential }: MachineFields) -> Result<Self, Self::Error> {
        match (machine, credential) {
            (Some(name), credential) => Ok(Self::One { name, credential }),
            (None, Some(credential)) => Ok(Self::All { credential }),
            (None, None) => Err("one of machine and credential has to be given"),
        }
    }
}

impl fmt::Display for MachineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One { name, credential: None } => f.write_str(name),
            Self::One { name, credential: Some(credential) } => write!(f, "{name} of {credential}"),
            Self::All { credential } => write!(f, "every machine of {credential}"),
        }
    }
}

/// Which worker something is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerName {
    pub id: WorkerId,
    pub name: String,
}

/// A worker's process, as it has introduced itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Worker {
    pub id: WorkerId,
    pub name: String,
    pub credential: Credential,
    pub build: String,
    /// Its engines, the one in use first.
    pub kernels: Vec<String>,
    /// What these run on: instruction sets, or devices with their drivers; empty where it did not say.
    pub device: String,
    pub threads: u32,
    #[serde(rename = "registered_at_ms")]
    pub registered_at: WallTime,
    /// Why its machine gets no more jobs; `None` while it is trusted.
    pub distrusted: Option<String>,
}

/// A worker that was seen since the coordinator started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerStatus {
    #[serde(flatten)]
    pub about: Worker,
    /// Whether it has not ended, as far as is known.
    pub present: bool,
    /// Time since its last heartbeat, in milliseconds.
    pub silent_ms: u64,
    pub leases: u64,
    /// Its pace while it counts: states that all its threads visit in a second; `None` while it counts nothing or is away, and before its first result.
    pub states_per_s: Option<f64>,
    /// Results accepted from it since the coordinator started.
    pub accepted: u64,
    /// An operator wants it to go.
    pub draining: bool,
    /// Checks that its machine passed.
    pub checks_passed: u64,
    pub checks_failed: u64,
}

impl WorkerStatus {
    /// Whether lists show it: while it is present, and while its machine is untrusted.
    pub fn is_listed(&self) -> bool {
        self.present || self.about.distrusted.is_some()
    }
}
