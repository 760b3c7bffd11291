//! The classes of solutions, by which jobs are told apart.

use strum::{Display, EnumString, IntoStaticStr, VariantNames};

use crate::names::UnknownName;
use crate::plan::kind::PlanKind;

/// The classes that solutions are sorted into.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Display, EnumString, IntoStaticStr, VariantNames,
)]
#[strum(serialize_all = "snake_case", parse_err_ty = UnknownName, parse_err_fn = unknown)]
pub enum Class {
    /// Plan `rows`: the top queen stands on column 0, the second row's on column BOUND1.
    Corner,
    /// Plan `rows`: the top queen stands on column BOUND1, and no border queen is nearer to a corner.
    Edge,
    /// Plan `border`: by the border configuration, whose canonical image has its top queen on column BOUND1.
    Border,
    /// Plan `colours`: by the set of rows whose queens stand on white cells. It has no BOUND1, which is given as 0.
    Colours,
    /// Plan `cells`: all solutions of a board with given queens and blocked cells. It has no BOUND1, which is given as 0.
    Cells,
}

impl Class {
    /// All classes.
    pub const ALL: [Self; 5] = [Self::Corner, Self::Edge, Self::Border, Self::Colours, Self::Cells];

    /// The plan that is made for its jobs; small boards of others have some, too.
    pub const fn plan(self) -> PlanKind {
        match self {
            Self::Corner | Self::Edge => PlanKind::Rows,
            Self::Border => PlanKind::Border,
            Self::Colours => PlanKind::Colours,
            Self::Cells => PlanKind::Cells,
        }
    }

    /// Whether its jobs count plain solutions; else they count orbits of solutions.
    pub const fn counts_plainly(self) -> bool {
        !matches!(self, Self::Corner | Self::Edge | Self::Border)
    }

    /// The name used on the command line, the wire and in the database.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

fn unknown(name: &str) -> UnknownName {
    UnknownName::new("class", name, Class::VARIANTS)
}
