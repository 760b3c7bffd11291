//! The kinds of plans.

use strum::{Display, EnumString, IntoStaticStr, VariantNames};

use crate::names::UnknownName;

/// The ways to cut a board into jobs.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Display, EnumString, IntoStaticStr, VariantNames,
)]
#[strum(serialize_all = "snake_case", parse_err_ty = UnknownName, parse_err_fn = unknown)]
pub enum PlanKind {
    /// The classic BOUND1/BOUND2 classes with their first rows placed.
    Rows,
    /// Canonical border configurations, with inner rows placed where one is too heavy.
    Border,
    /// Rows whose queens stand on white cells. Below [`RowSets::N_MIN`](crate::colours::RowSets::N_MIN) its jobs are
    /// those of `border`.
    Colours,
    /// For a board with given queens and blocked cells: the first rows placed, one after the other.
    Cells,
}

impl PlanKind {
    /// All kinds for the whole board.
    pub const ALL: [Self; 3] = [Self::Rows, Self::Border, Self::Colours];

    /// The name used on the command line, the wire and in the database.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

fn unknown(name: &str) -> UnknownName {
    UnknownName::new("plan", name, PlanKind::VARIANTS)
}
