//! The final counts of a run.

use nqueens_kernel::counts::Totals;
use strum::{IntoStaticStr, VariantArray};

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Orbits by size.
    pub totals: Totals,
    /// All solutions.
    pub total: u128,
    /// What they were compared with.
    pub checked: Checked,
}

/// What a total was compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Checked {
    /// The published counts.
    Published,
    /// The separately counted symmetric solutions; there is no published count.
    Symmetric,
}

impl Checked {
    /// The name used in the database and in JSON.
    pub fn name(self) -> &'static str {
        self.into()
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
