//! How values stand in JSON, for `#[serde(with = "...")]`: names are text, and so are numbers that outgrow 2^53.

use nqueens_kernel::counts::Totals;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// Values as their text, which is read back only as it would be written.
pub mod text {
    use std::str::FromStr;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<T: ToString, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&value.to_string())
    }

    pub fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: FromStr + ToString,
        D: Deserializer<'de>,
    {
        parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }

    pub fn parse<T: FromStr + ToString>(text: &str) -> Result<T, String> {
        let value = text.parse().ok().filter(|value: &T| value.to_string() == text);
        value.ok_or_else(|| format!("'{text}' is no such value"))
    }
}

/// [Text](text) of what is not always there.
pub mod optional_text {
    use std::str::FromStr;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::text;

    pub fn serialize<T: ToString, S: Serializer>(
        value: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => text::serialize(value, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub fn deserialize<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
    where
        T: FromStr + ToString,
        D: Deserializer<'de>,
    {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| text::parse(&text).map_err(D::Error::custom)).transpose()
    }
}

/// A share in millionths.
pub(crate) fn share_ppm<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let share = u32::deserialize(deserializer)?;
    if share > 1_000_000 { Err(D::Error::custom("replicate_ppm must be in 0..1000000")) } else { Ok(share) }
}

/// A plan by its board, its kind, the size of its jobs, and the cells of a plan `cells`.
pub(crate) mod plan {
    use nqueens_kernel::board::BoardSize;
    use nqueens_kernel::cells::Cells;
    use nqueens_kernel::plan::{Plan, PlanKind};
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Bytes of a drawing, at most: 31 lines of 31 cells are fewer.
    const DRAWING_MAX: usize = 1_024;

    #[derive(Serialize, Deserialize)]
    struct Fields {
        n: u32,
        plan: String,
        states_per_job: u64,
        cells: Option<String>,
    }

    pub(crate) fn serialize<S: Serializer>(plan: &Plan, serializer: S) -> Result<S::Ok, S::Error> {
        Fields {
            n: plan.n().get(),
            plan: plan.kind().name().to_owned(),
            states_per_job: plan.states_per_job(),
            cells: plan.cells().map(|cells| cells.to_string()),
        }
        .serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Plan, D::Error> {
        let Fields { n, plan, states_per_job, cells } = Fields::deserialize(deserializer)?;
        let n = BoardSize::new(n).map_err(|error| D::Error::custom(format_args!("n {error}")))?;
        let kind: PlanKind = plan.parse().map_err(|error| D::Error::custom(format_args!("plan {error}")))?;
        if states_per_job == 0 || i64::try_from(states_per_job).is_err() {
            return Err(D::Error::custom("states_per_job must be in 1..2^63"));
        }
        if cells.as_ref().is_some_and(|cells| cells.len() > DRAWING_MAX) {
            return Err(D::Error::custom(format_args!("cells must have at most {DRAWING_MAX} bytes")));
        }
        let board = cells.map(|cells| cells.parse::<Cells>()).transpose();
        let board = board.map_err(|error| D::Error::custom(format_args!("cells {error}")))?;
        let plan = Plan::stored(n, kind, board, states_per_job);
        plan.ok_or_else(|| D::Error::custom("cells are there if and only if the plan is cells"))
    }
}

/// Orbits by size. Null is read as none: the solutions of such a board are not sorted.
pub(crate) fn orbits<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Totals, D::Error> {
    #[derive(Deserialize)]
    struct Fields {
        count2: Option<String>,
        count4: Option<String>,
        count8: Option<String>,
    }
    let Fields { count2, count4, count8 } = Fields::deserialize(deserializer)?;
    let number =
        |digits: Option<String>| digits.map_or(Ok(0), |digits| digits.parse().map_err(D::Error::custom));
    Ok(Totals { count2: number(count2)?, count4: number(count4)?, count8: number(count8)?, solutions: 0 })
}
