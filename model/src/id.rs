//! Ids of runs, workers and leases.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Gives a name its numbers: not zero, and below 2 to the power of so many bits.
macro_rules! numbers {
    ($name:ident, $bits:literal) => {
        impl $name {
            const MAX: u64 = (1 << $bits) - 1;

            #[doc = concat!("The name with this number; `None` unless it is in `1..2^", $bits, "`.")]
            pub fn new(number: u64) -> Option<Self> {
                (1..=Self::MAX).contains(&number).then_some(Self(number))
            }

            /// A name from random bits.
            pub fn from_random(bits: u64) -> Self {
                Self((bits & Self::MAX).max(1))
            }

            #[doc = concat!("The number, in `1..2^", $bits, "`.")]
            pub const fn get(self) -> u64 {
                self.0
            }
        }
    };
}

numbers!(RunId, 48);
numbers!(WorkerId, 63);
numbers!(Incarnation, 63);

/// Name of a run: 48 random bits, never zero, shown as 12 hexadecimal digits.
///
/// Random, so that a result of another database is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct RunId(u64);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:012x}", self.0)
    }
}

impl FromStr for RunId {
    type Err = InvalidRunId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let well_formed = text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = well_formed.then(|| u64::from_str_radix(text, 16).ok()).flatten();
        number.and_then(Self::new).ok_or_else(|| InvalidRunId(text.to_owned()))
    }
}

impl From<RunId> for String {
    fn from(run: RunId) -> Self {
        run.to_string()
    }
}

impl TryFrom<String> for RunId {
    type Error = InvalidRunId;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a run id has 12 hexadecimal digits, as 'nqueens status' shows them, not '{0}'")]
pub struct InvalidRunId(String);

/// Name of a registered worker process, unique in one database; at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "u64", try_from = "u64")]
pub struct WorkerId(u64);

impl From<WorkerId> for u64 {
    fn from(worker: WorkerId) -> Self {
        worker.0
    }
}

impl TryFrom<u64> for WorkerId {
    type Error = InvalidWorkerId;

    fn try_from(number: u64) -> Result<Self, Self::Error> {
        Self::new(number).ok_or(InvalidWorkerId)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a worker's number is in 1..2^63")]
pub struct InvalidWorkerId;

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Name of one life of a coordinator process: 63 random bits, never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(u64);

/// A job of a run: its number in the plan, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId {
    pub run: RunId,
    pub number: u32,
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.run, self.number)
    }
}

/// Names one lease of one job and fences every other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseToken {
    pub job: JobId,
    /// Which lease of the job: numbers ascend, from any, and are never reset.
    pub epoch: NonZeroU32,
    /// A keyed hash of the two and of the holder's credential: only the coordinator can make one.
    pub ticket: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_ids_read_back_what_they_print() {
        for bits in [0, 1, 0xabc, u64::MAX] {
            let id = RunId::from_random(bits);
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        for text in ["", "1", "000000000000", "00000000000g", "+00000000001", "0000000000001"] {
            assert!(text.parse::<RunId>().is_err(), "{text}");
        }
    }
}
