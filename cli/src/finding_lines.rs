//! What `verify` prints: a line about the run, a line for each finding, and the verdict.

use std::fmt::Display;
use std::io;

use nqueens_evidence::finding::CheckResult;
use nqueens_evidence::verdict::Verdict;
use serde_json::json;

use crate::output::{Json, counted, harmless, print_line};

pub(crate) fn print_run(
    json: Json,
    (run, subject): (impl Display, &str),
    plan: impl Display,
    jobs: u64,
) -> io::Result<()> {
    let object =
        json!({ "run": run.to_string(), "subject": subject, "plan": plan.to_string(), "jobs": jobs });
    let jobs = counted(jobs, "job");
    json.print(object, format_args!("run {run}, {subject}, plan {plan}, {jobs}"))
}

/// Prints how a check went: in three columns, or as JSON.
pub(crate) fn print_finding(json: Json, check: &str, result: &CheckResult) -> io::Result<()> {
    let (outcome, what) = result.told();
    let (check, what) = (harmless(check), harmless(what));
    if !json.json {
        return print_line(format_args!("{outcome:<7} {check:<12} {what}"));
    }
    let passed = match result {
        CheckResult::Passed(_) => Some(true),
        CheckResult::Failed(_) => Some(false),
        CheckResult::NotMade(_) => None,
    };
    print_line(json!({ "check": check, "passed": passed, "detail": what }))
}

pub(crate) fn print_verdict(json: Json, verdict: &Verdict) -> io::Result<()> {
    let (word, why) = verdict.told();
    json.print(json!({ "verdict": word, "detail": why }), verdict)
}
