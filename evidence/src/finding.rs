//! The checks on a ledger and their possible outcomes.

use strum::IntoStaticStr;

/// The checks, in the order of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Check {
    /// Every line is what the format says.
    Form,
    /// Every line has the hash of itself and all before it.
    Chain,
    /// Every job stands there once, in the plan's order.
    Jobs,
    /// The jobs are those of the plan, which is computed again.
    Plan,
    /// The header's fingerprint is that of the jobs.
    Fingerprint,
    /// No job found more than it can have.
    Bounds,
    /// Every result is of a worker that is listed.
    Workers,
    /// Times and states are possible.
    Work,
    /// The verdicts on results that don't stand fit their counts.
    Others,
    /// Second counts, by the word of the run's owner.
    Claims,
    /// The last line's sums are those of the jobs.
    Sums,
    Orbits,
    /// The symmetric solutions among them are those of a search of their own.
    Symmetric,
    Published,
    /// The totals of the first and the last line are that of the sums.
    Total,
    /// The total agrees with an estimate that is made here; only where no count is published.
    Estimate,
    Sample,
}

impl Check {
    pub fn name(self) -> &'static str {
        self.into()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckResult {
    Passed(String),
    Failed(String),
    /// There was nothing to hold it against, or what it needs is damaged.
    NotMade(String),
}

impl CheckResult {
    /// For people: the outcome in a word, and what there is to say of it.
    pub fn told(&self) -> (&'static str, &str) {
        match self {
            Self::Passed(what) => ("ok", what),
            Self::Failed(what) => ("FAILED", what),
            Self::NotMade(what) => ("-", what),
        }
    }
}
