//! The final counts of a run, and what they are confirmed by.

use std::fmt;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::{Totals, to_f64};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};
use strum::IntoStaticStr;

use super::Interval;
use crate::json;

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Outcome {
    /// Orbits by size; none where cells are blocked, for the solutions are not sorted.
    #[serde(flatten, deserialize_with = "json::orbits")]
    pub totals: Totals,
    #[serde(with = "json::text")]
    pub total: u128,
    #[serde(rename = "check")]
    pub checked: Checked,
    /// What the total has to agree with where no published count confirms it.
    #[serde(rename = "estimate")]
    pub grounds: Option<Grounds>,
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { totals: Totals { count2, count4, count8, .. }, total, checked, grounds } = *self;
        let mut fields = serializer.serialize_struct("Outcome", 6)?;
        for (name, count) in [("count2", count2), ("count4", count4), ("count8", count8)] {
            fields.serialize_field(name, &(checked != Checked::None).then(|| count.to_string()))?;
        }
        fields.serialize_field("total", &total.to_string())?;
        fields.serialize_field("check", &checked)?;
        fields.serialize_field("estimate", &grounds)?;
        fields.end()
    }
}

impl Outcome {
    /// The counts by name; of a board with blocked cells the total alone.
    pub fn counts(&self, n: BoardSize) -> Vec<(&'static str, u128)> {
        let Totals { count2, count4, count8, .. } = self.totals;
        let orbits = [("COUNT2", count2), ("COUNT4", count4), ("COUNT8", count8)];
        let unique = self.totals.unique(n).ok().map(|unique| ("UNIQUE", unique));
        let sorted = orbits.into_iter().chain(unique).filter(|_| self.checked != Checked::None);
        sorted.chain([("TOTAL", self.total)]).collect()
    }
}

/// What a total was compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Checked {
    Published,
    /// The separately counted symmetric solutions; not a published count.
    Symmetric,
    /// Nothing: no count of a board with blocked cells is published.
    None,
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
                "COUNT2 and COUNT4 equal the separately counted symmetric solutions; 'nqueens status' says whether it is confirmed"
            }
            Self::None => {
                "no count of such a board is published; 'nqueens status' says whether it is confirmed"
            }
        }
    }
}

/// What confirms a total that is not compared with a published count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grounds {
    /// The coordinator's own.
    #[serde(flatten)]
    pub estimate: TotalEstimate,
    /// Second counts under another credential and recounts that must agree.
    pub checks_wanted: u32,
    /// So many of them must be recounts.
    pub recounts_wanted: u32,
}

/// Recounts that must agree: `min`, and as many again for each that found a wrong result. 60 without a difference find a share
/// of 5 % with a probability of 95 %; where one was found, there may be more.
pub const fn recounts_wanted(min: u32, differing: u32) -> u32 {
    min.saturating_mul(differing.saturating_add(1))
}

/// A total estimated by random descents. Whoever repeats it with the same seed comes to the same numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TotalEstimate {
    #[serde(with = "json::text")]
    pub seed: u64,
    /// Parts of the search, with two descents each.
    pub strata: u32,
    #[serde(with = "json::text")]
    pub value: u128,
    /// Half-width of its 95 % confidence interval: two standard errors.
    #[serde(with = "json::text")]
    pub reach: u128,
}

impl TotalEstimate {
    /// An estimate holds what is no more than six standard errors off, three times its reach. Chance alone puts one estimate in
    /// 500 million further off.
    const REACHES: u128 = 3;

    /// Whether it holds a total; both are rounded.
    pub fn holds(&self, total: u128) -> bool {
        total.abs_diff(self.value) <= self.reach.saturating_mul(Self::REACHES).saturating_add(1)
    }

    pub fn interval(&self) -> Interval {
        let reach = self.reach.saturating_mul(Self::REACHES);
        Interval {
            value: to_f64(self.value),
            low: to_f64(self.value.saturating_sub(reach)),
            high: to_f64(self.value.saturating_add(reach)),
        }
    }
}

/// What a total lacks to be confirmed; its text says how to get it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    Estimate,
    Agreement(TotalEstimate),
    Checks { made: u64, wanted: u32 },
    Recounts { made: u64, wanted: u32 },
    Open(u32),
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Estimate => {
                f.write_str("no estimate was made of it ('nqueens verify' makes one for an exported ledger)")
            }
            Self::Agreement(estimate) => {
                let estimate = estimate.interval().describe_count();
                write!(
                    f,
                    "it is more than six standard errors away from its estimate, {estimate} ('nqueens verify --sample 300' \
                     looks for wrong results)"
                )
            }
            Self::Checks { made, wanted } => write!(
                f,
                "{made} of {wanted} second counts under another credential and recounts agree (export the ledger; \
                 'nqueens verify --sample {wanted}' counts more)"
            ),
            Self::Recounts { made: 0, wanted } => {
                write!(
                    f,
                    "0 of {wanted} recounts agree (only a coordinator without --no-recounts makes them)"
                )
            }
            Self::Recounts { made, wanted } => write!(
                f,
                "{made} of {wanted} recounts agree (there was no time for the others, or the coordinator's log says why it can't \
                 make them)"
            ),
            Self::Open(checks) => {
                write!(
                    f,
                    "{checks} second counts were not made: nobody else was there, or had time for them ('nqueens requeue RUN \
                     --unmade' asks for them again)"
                )
            }
        }
    }
}

/// How far a total may be believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    Published,
    Confirmed {
        estimate: TotalEstimate,
        /// Second counts that agree, each under another credential.
        second_counts: u64,
        recounts: u64,
    },
    /// It was counted, but not confirmed.
    Counted(Vec<Missing>),
}

impl Standing {
    /// Whether a total is confirmed of which so many second counts under another credential and so many recounts agree, none
    /// differs, and so many second counts were not made.
    pub fn new(outcome: &Outcome, second_counts: u64, recounts: u64, open: u32) -> Self {
        let is_open = (open > 0).then_some(Missing::Open(open));
        match outcome.grounds {
            None if outcome.checked == Checked::Published => Self::Published,
            None => Self::Counted([Some(Missing::Estimate), is_open].into_iter().flatten().collect()),
            Some(Grounds { estimate, checks_wanted, recounts_wanted }) => {
                let is_off = (!estimate.holds(outcome.total)).then_some(Missing::Agreement(estimate));
                let (made, wanted) = (second_counts + recounts, checks_wanted);
                let is_unchecked = (made < wanted.into()).then_some(Missing::Checks { made, wanted });
                let (made, wanted) = (recounts, recounts_wanted);
                let is_not_recounted = (made < wanted.into()).then_some(Missing::Recounts { made, wanted });
                let missing = [is_off, is_unchecked, is_not_recounted, is_open];
                let missing: Vec<_> = missing.into_iter().flatten().collect();
                if missing.is_empty() {
                    Self::Confirmed { estimate, second_counts, recounts }
                } else {
                    Self::Counted(missing)
                }
            }
        }
    }

    pub const fn is_confirmed(&self) -> bool {
        !matches!(self, Self::Counted(_))
    }

    pub fn missing(&self) -> &[Missing] {
        match self {
            Self::Counted(missing) => missing,
            Self::Published | Self::Confirmed { .. } => &[],
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Published => f.write_str(Checked::Published.describe()),
            Self::Confirmed { estimate, second_counts, recounts } => {
                let estimate = estimate.interval().describe_count();
                write!(
                    f,
                    "confirmed: within six standard errors of its estimate, {estimate}; {recounts} recounts and \
                     {second_counts} second counts agree, and none differs"
                )
            }
            Self::Counted(missing) => {
                let missing: Vec<_> = missing.iter().map(Missing::to_string).collect();
                write!(f, "counted, not confirmed: {}", missing.join("; "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ESTIMATE: TotalEstimate = TotalEstimate { seed: 1, strata: 10_000, value: 1_000, reach: 10 };

    fn outcome(total: u128) -> Outcome {
        let grounds = Grounds { estimate: ESTIMATE, checks_wanted: 300, recounts_wanted: 60 };
        Outcome { totals: Totals::default(), total, checked: Checked::Symmetric, grounds: Some(grounds) }
    }

    #[test]
    fn a_total_is_confirmed_if_nothing_is_missing() {
        let confirmed =
            |second_counts, recounts| Standing::Confirmed { estimate: ESTIMATE, second_counts, recounts };
        assert_eq!(Standing::new(&outcome(1_031), 240, 60, 0), confirmed(240, 60));
        assert_eq!(Standing::new(&outcome(969), 0, 300, 0), confirmed(0, 300));
        let missing = |total, second, recounts, open| {
            Standing::new(&outcome(total), second, recounts, open).missing().to_vec()
        };
        for total in [968, 1_032, 0, u128::MAX] {
            assert_eq!(missing(total, 240, 60, 0), [Missing::Agreement(ESTIMATE)]);
        }
        assert_eq!(missing(1_000, 239, 60, 0), [Missing::Checks { made: 299, wanted: 300 }]);
        assert_eq!(missing(1_000, 1_000, 59, 0), [Missing::Recounts { made: 59, wanted: 60 }]);
        assert_eq!(missing(1_000, 240, 60, 2), [Missing::Open(2)]);
        assert_eq!(missing(0, 0, 0, 1).len(), 4);
    }

    #[test]
    fn without_grounds_only_a_published_count_confirms() {
        let bare = |checked| Outcome { checked, grounds: None, ..outcome(92) };
        assert_eq!(Standing::new(&bare(Checked::Published), 0, 0, 0), Standing::Published);
        let counted = Standing::new(&bare(Checked::Symmetric), 1_000, 1_000, 0);
        assert_eq!(counted, Standing::Counted(vec![Missing::Estimate]));
        assert!(!counted.is_confirmed());
    }

    #[test]
    fn what_is_missing_is_said() {
        let told = Standing::new(&outcome(2_000), 10, 0, 0).to_string();
        let expected = "counted, not confirmed: it is more than six standard errors away from its estimate, 1.0000e3 \
                        (9.7000e2..1.0300e3) ('nqueens verify --sample 300' looks for wrong results); 10 of 300 second counts under another \
                        credential and recounts agree (export the ledger; 'nqueens verify --sample 300' counts more); 0 of 60 recounts \
                        agree (only a coordinator without --no-recounts makes them)";
        assert_eq!(told, expected);
        let told = Standing::new(&outcome(1_000), 240, 60, 0).to_string();
        let expected = "confirmed: within six standard errors of its estimate, 1.0000e3 (9.7000e2..1.0300e3); 60 recounts and \
                        240 second counts agree, and none differs";
        assert_eq!(told, expected);
    }
}
