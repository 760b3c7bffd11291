//! What a reader may conclude from all checks: the last line of `verify`.

use std::fmt;

use nqueens_model::numbers::thousands;
use nqueens_model::operator::{Checked, Outcome};

use crate::finding::{Check, CheckResult};
use crate::verify::{CHECKS_MIN, Report};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The total is right as far as the reader's own machine can tell.
    Believable(String),
    /// Nothing is wrong, and too little is known.
    Counted(String),
    Wrong(String),
}

impl Verdict {
    /// In one word, for programs; and why.
    pub fn told(&self) -> (&'static str, &str) {
        match self {
            Self::Believable(why) => ("believable", why),
            Self::Counted(why) => ("counted", why),
            Self::Wrong(why) => ("wrong", why),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Believable(why) => write!(f, "BELIEVABLE: {why}"),
            Self::Counted(why) => write!(f, "COUNTED, NOT CONFIRMED: {why}"),
            Self::Wrong(why) => write!(f, "WRONG: {why}"),
        }
    }
}

impl Report {
    /// What follows from the checks, and from so many jobs that this machine has counted alike. Nothing follows from what the
    /// run's owner says.
    pub fn verdict(&self, recounted: u64) -> Verdict {
        let failed = |(check, result): &(Check, CheckResult)| {
            matches!(result, CheckResult::Failed(_)).then_some(*check)
        };
        let failed: Vec<_> = self.findings.iter().filter_map(failed).collect();
        if failed.contains(&Check::Form) {
            return Verdict::Wrong(
                "this is no whole ledger; ask for the file again, or for its last hash".to_owned(),
            );
        }
        if !failed.is_empty() {
            let names: Vec<_> = failed.iter().map(|check| check.name()).collect();
            return Verdict::Wrong(format!("do not believe this total; failed: {}", names.join(", ")));
        }
        let Some(Outcome { total, checked, .. }) = self.outcome else {
            return Verdict::Counted("the run has no total yet".to_owned());
        };
        let (total, jobs) = (thousands(total), self.jobs);
        let sample = match recounted {
            0 => String::new(),
            _ => {
                format!(", and {} of {} jobs recounted here are equal", thousands(recounted), thousands(jobs))
            }
        };
        if checked == Checked::Published {
            return Verdict::Believable(format!("the jobs add up to {total}, the published count{sample}"));
        }
        let wanted = jobs.min(CHECKS_MIN.into());
        if recounted >= wanted {
            return Verdict::Believable(format!(
                "the jobs add up to {total}, as an estimate made here{sample}"
            ));
        }
        Verdict::Counted(format!(
            "the jobs add up to {total}, as an estimate made here{sample}; no count is published, so recount {wanted}: --sample {wanted}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use nqueens_kernel::counts::Totals;

    use super::*;

    fn verdict(result: CheckResult, checked: Option<Checked>, jobs: u64, recounted: u64) -> String {
        let outcome =
            checked.map(|checked| Outcome { totals: Totals::default(), total: 92, checked, grounds: None });
        let findings = vec![(Check::Chain, CheckResult::Passed(String::new())), (Check::Sums, result)];
        Report { findings, jobs, outcome, ..Report::default() }.verdict(recounted).to_string()
    }

    #[test]
    fn a_verdict_needs_a_published_count_or_jobs_counted_here() {
        let right = || CheckResult::Passed(String::new());
        let published = Some(Checked::Published);
        assert_eq!(
            verdict(right(), published, 8, 0),
            "BELIEVABLE: the jobs add up to 92, the published count"
        );
        assert_eq!(
            verdict(right(), published, 8, 2),
            "BELIEVABLE: the jobs add up to 92, the published count, and 2 of 8 jobs recounted here are equal"
        );
        for checked in [Checked::Symmetric, Checked::None] {
            let of = |jobs, recounted| verdict(right(), Some(checked), jobs, recounted);
            for (jobs, recounted) in [(8, 8), (300, 300), (3_000, 300), (3_000, 3_000), (0, 0)] {
                assert!(of(jobs, recounted).starts_with("BELIEVABLE: "), "{jobs} {recounted}");
            }
            for (jobs, recounted) in [(8, 0), (8, 7), (3_000, 299)] {
                assert!(of(jobs, recounted).starts_with("COUNTED, NOT CONFIRMED: "), "{jobs} {recounted}");
            }
            assert!(of(3_000, 0).ends_with("recount 300: --sample 300"));
        }
        assert_eq!(verdict(right(), None, 8, 8), "COUNTED, NOT CONFIRMED: the run has no total yet");
    }

    #[test]
    fn one_failed_check_is_enough() {
        let wrong = CheckResult::Failed(String::new());
        assert_eq!(
            verdict(wrong, Some(Checked::Published), 8, 8),
            "WRONG: do not believe this total; failed: sums"
        );
    }
}
