//! Texts and numbers that all forms of a report share.

use nqueens_evidence::finding::{Check, CheckResult};
use nqueens_model::operator::{Recounts, RunState};

use super::super::status::describe_recounts;
use super::super::variant::count_again;
use super::facts::Facts;
use crate::output::{harmless, hours, local_time, quantity, thousands};

/// `N = 16: 14,772,512 solutions`, or that there is no total.
pub(super) fn title(facts: &Facts) -> String {
    let subject = facts.run.plan.subject();
    match &facts.run.outcome {
        Some(outcome) => format!("{subject}: {} solutions", thousands(outcome.total)),
        None => format!("{subject}: no total"),
    }
}

/// How the run stands, in a sentence or two.
pub(super) fn reputation(facts: &Facts) -> String {
    let progress = &facts.run.progress;
    let (done, jobs, share) =
        (thousands(progress.done), thousands(progress.jobs), 100.0 * progress.share_done);
    if let Some(standing) = facts.run.standing() {
        return if facts.is_in_doubt() {
            "Do not trust this total: a check failed.".to_owned()
        } else {
            format!("The run is done; its total is {standing}.")
        };
    }
    let state = match (progress.state, &facts.run.reason) {
        (RunState::Failed, reason) => {
            let reason = reason.as_deref().map_or_else(|| "a check failed".to_owned(), harmless);
            return format!("The run failed and has no total: {reason}.");
        }
        (RunState::Cancelled, _) => {
            return format!(
                "The run was cancelled with {done} of {jobs} jobs done, {share:.1} % of the work; it has no total."
            );
        }
        (RunState::Paused, _) => "paused",
        (RunState::Planning | RunState::Active | RunState::Done, _) => "not done",
    };
    let sentences = [
        Some(format!(
            "The run is {state}. {done} of {jobs} jobs are done, {share:.1} % of the work; there is no total yet."
        )),
        (progress.quarantined > 0).then(|| {
            let quarantined = thousands(progress.quarantined);
            format!("Jobs in quarantine, which need an operator: {quarantined}.")
        }),
        progress.estimated_total.map(|total| {
            let total = total.describe_count();
            format!("The jobs that are done give an estimated total of {total}.")
        }),
    ];
    sentences.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The orbits and the total, by name.
pub(super) fn counts(facts: &Facts) -> Vec<(&'static str, String)> {
    let Some(outcome) = &facts.run.outcome else { return Vec::new() };
    let orbits = outcome.totals;
    if facts.run.plan.variant().is_some() {
        return vec![("TOTAL", thousands(outcome.total))];
    }
    let mut counts = vec![("COUNT2", orbits.count2), ("COUNT4", orbits.count4), ("COUNT8", orbits.count8)];
    counts.extend(orbits.unique(facts.run.progress.n).ok().map(|unique| ("UNIQUE", unique)));
    counts.push(("TOTAL", outcome.total));
    counts.into_iter().map(|(name, count)| (name, thousands(count))).collect()
}

/// What was done and what it took, by name.
pub(super) fn figures(facts: &Facts) -> Vec<(&'static str, String)> {
    let (run, work) = (&facts.run, &facts.work);
    let plan = format!(
        "{}, {} jobs of about {} states each",
        run.plan.kind(),
        thousands(run.progress.jobs),
        thousands(run.plan.states_per_job())
    );
    let mut figures = vec![("Run", run.progress.run.to_string()), ("Plan", plan)];
    if let Some(cells) = run.plan.cells() {
        figures.push(("Board", cells.to_string().replace('\n', " / ")));
    }
    figures.extend([
        ("Fingerprint", run.fingerprint.map_or_else(|| "-".to_owned(), |print| print.to_string())),
        ("Submitted", local_time(run.created_at)),
    ]);
    figures.extend(run.started_at.map(|started| ("Started", local_time(started))));
    if let Some((first, last)) = facts.timeline.results() {
        figures.extend([("First result", local_time(first)), ("Last result", local_time(last))]);
    }
    if let Some(finished) = run.finished_at {
        figures.push(("Finished", local_time(finished)));
    }
    if let Some(waited) = run.waited() {
        figures.push(("Time in the queue", hours(waited)));
    }
    if let Some(took) = run.took() {
        figures.push(("Time of counting", hours(took)));
    }
    let core_hours = match work.unmeasured {
        0 => quantity(work.core_hours()),
        jobs => format!(
            "{}, with time by the clock for {} jobs whose processor time was not measured",
            quantity(work.core_hours()),
            thousands(jobs)
        ),
    };
    figures.extend([
        ("States", thousands(work.states)),
        ("Core-hours", core_hours),
        ("States/s per core", quantity(work.states_per_s())),
    ]);
    if let Some(watts) = facts.watts {
        let energy = quantity(work.core_hours() * watts / 1e3);
        figures.push(("Energy", format!("{energy} kWh, at {} W per core", quantity(watts))));
    }
    if run.recounts != Recounts::default() {
        figures.push(("Checks by parts", describe_recounts(run.recounts, run.parts_estimate())));
    }
    if !facts.devices.is_empty() {
        figures.push(("Devices", facts.devices.iter().cloned().collect::<Vec<_>>().join("; ")));
    }
    if !facts.builds.is_empty() {
        figures.push(("Programs", facts.builds.iter().cloned().collect::<Vec<_>>().join(", ")));
    }
    figures
}

/// The checks, each with its outcome and what there is to say of it.
pub(super) fn checks(facts: &Facts) -> Vec<(&'static str, &'static str, String)> {
    let told = |(check, verdict): &(Check, CheckResult)| {
        let (outcome, what) = verdict.told();
        (check.name(), outcome, harmless(what))
    };
    facts.findings.iter().flatten().map(told).collect()
}

/// What stands where checks would.
pub(super) const UNCHECKED: &str =
    "No checks yet: a run is checked, and gets its total, when all its jobs are done.";

/// Commands that verify the run, each with its purpose.
pub(super) fn verification(facts: &Facts) -> Vec<(String, &'static str)> {
    let (run, n) = (facts.run.progress.run, facts.run.progress.n);
    let audit = (
        format!("nqueens audit {run} --db FILE --sample 300"),
        "counts 300 jobs again with another engine, and states the confidence that this gives",
    );
    if facts.run.outcome.is_none() {
        return vec![audit];
    }
    let ledger = format!("nqueens-{n}.ledger");
    let how_again = match facts.run.plan.cells() {
        Some(cells) if cells.blocked() > 0 => {
            "counts the board again, which has to be drawn in the file 'board'"
        }
        _ if facts.run.plan.variant().is_some() => "counts the board again; --kernel selects another search",
        _ => "counts the board again; --plan and --kernel select other methods",
    };
    vec![
        (
            format!("nqueens export {run} --db FILE --format ledger > {ledger}"),
            "writes the whole run to one file that everyone can check",
        ),
        (
            format!("nqueens verify {ledger} --sample 300"),
            "repeats the checks above from the file alone, and counts 300 jobs again",
        ),
        (format!("python3 docs/recompute.py {ledger}"), "computes the same total with another program"),
        audit,
        (count_again(&facts.run.plan), how_again),
    ]
}
