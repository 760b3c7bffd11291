//! What a run is doing.

use crate::convert::{InvalidMessage, invalid};
use crate::v1;

/// What a run is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunState {
    /// Hands out jobs.
    Active,
    /// Hands out nothing; takes results.
    Paused,
    /// Given up; results are set aside.
    Cancelled,
    /// All jobs done, all checks passed, has a total.
    Done,
    /// All jobs done, but a check did not pass: it has no total.
    Failed,
}

impl RunState {
    /// All states.
    pub const ALL: [Self; 5] = [Self::Active, Self::Paused, Self::Cancelled, Self::Done, Self::Failed];

    /// The state's name in the database and for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Cancelled => "cancelled",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }

    /// The state with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Whether there is still work: the run is neither done nor failed nor cancelled.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Active | Self::Paused)
    }
}

impl From<RunState> for v1::RunState {
    fn from(state: RunState) -> Self {
        match state {
            RunState::Active => Self::Active,
            RunState::Paused => Self::Paused,
            RunState::Cancelled => Self::Cancelled,
            RunState::Done => Self::Done,
            RunState::Failed => Self::Failed,
        }
    }
}

impl TryFrom<v1::RunState> for RunState {
    type Error = InvalidMessage;

    fn try_from(wire: v1::RunState) -> Result<Self, Self::Error> {
        match wire {
            v1::RunState::Active => Ok(Self::Active),
            v1::RunState::Paused => Ok(Self::Paused),
            v1::RunState::Cancelled => Ok(Self::Cancelled),
            v1::RunState::Done => Ok(Self::Done),
            v1::RunState::Failed => Ok(Self::Failed),
            v1::RunState::Unspecified => Err(invalid("state", "is missing or of a later version")),
        }
    }
}
