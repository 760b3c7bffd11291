//! What a run came to.

use nqueens_kernel::counts::Totals;

use super::decimal;
use crate::convert::{InvalidMessage, invalid};
use crate::v1;

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Orbits by size.
    pub totals: Totals,
    /// All solutions.
    pub total: u128,
    /// What they were held against.
    pub checked: Checked,
}

/// What a result was held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// The published counts.
    Published,
    /// The separately counted symmetric solutions; there is no published count.
    Symmetric,
}

impl Checked {
    /// The name used in the database and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Symmetric => "symmetric",
        }
    }

    /// What was checked, for people.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Published => "equal to the published count",
            Self::Symmetric => {
                "no count is published; COUNT2 and COUNT4 equal the separately counted symmetric solutions"
            }
        }
    }
}

impl From<Outcome> for v1::RunResult {
    fn from(outcome: Outcome) -> Self {
        let check = match outcome.checked {
            Checked::Published => v1::Check::Published,
            Checked::Symmetric => v1::Check::Symmetric,
        };
        Self {
            count2: outcome.totals.count2.to_string(),
            count4: outcome.totals.count4.to_string(),
            count8: outcome.totals.count8.to_string(),
            total: outcome.total.to_string(),
            check: check.into(),
        }
    }
}

impl TryFrom<v1::RunResult> for Outcome {
    type Error = InvalidMessage;

    fn try_from(wire: v1::RunResult) -> Result<Self, Self::Error> {
        let checked = match wire.check() {
            v1::Check::Published => Checked::Published,
            v1::Check::Symmetric => Checked::Symmetric,
            v1::Check::Unspecified => return Err(invalid("check", "is missing or of a later version")),
        };
        let totals = Totals {
            count2: decimal("count2", &wire.count2)?,
            count4: decimal("count4", &wire.count4)?,
            count8: decimal("count8", &wire.count8)?,
            solutions: 0,
        };
        Ok(Self { totals, total: decimal("total", &wire.total)?, checked })
    }
}
