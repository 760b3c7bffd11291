//! Where a job stands.

use strum::{FromRepr, IntoStaticStr};

use super::Policy;

/// All of a job was recounted, as it was drawn.
pub(super) const WHOLE: u8 = u8::MAX;

/// All of a job was counted by the coordinator, but not drawn: others may have had a hand in which it is.
pub(super) const OWN: u8 = u8::MAX - 1;

/// Where a job stands; the discriminants are the database's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, FromRepr, IntoStaticStr)]
#[repr(u8)]
#[strum(serialize_all = "snake_case")]
pub enum JobState {
    #[default]
    Ready = 0,
    Leased = 1,
    Done = 2,
    /// Failed too often or is disputed: waits for somebody's eye.
    Quarantined = 3,
}

impl JobState {
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The state of a job in the ledger, without its content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobStatus {
    pub state: JobState,
    /// Number of its latest lease; 0 before the first.
    pub epoch: u32,
    pub failures: u16,
    pub lapses: u16,
    /// Its result was counted alike under another credential.
    pub confirmed: bool,
    /// Parts of it that the coordinator has recounted to the same; 255 if all of it. 254 if it has counted all of it, but has
    /// not drawn it.
    pub recounted: u8,
    /// Estimated work in states, at least 1.
    pub estimate: u64,
}

impl JobStatus {
    pub fn planned(estimate: u64) -> Self {
        Self { estimate, ..Self::default() }
    }

    /// Whether the coordinator has counted all of it itself, to the same.
    pub fn is_recounted(&self) -> bool {
        self.recounted >= OWN
    }

    /// Whether it has failed or run out so often that it may be the job.
    pub(super) fn is_failing(&self, policy: &Policy) -> bool {
        u32::from(self.failures) >= policy.failures_max || u32::from(self.lapses) >= policy.lapses_max
    }

    /// Recounts that agree with its result: none of 254, one of 255.
    pub(super) fn recounts(&self) -> u32 {
        u32::from(self.recounted % OWN)
    }
}
