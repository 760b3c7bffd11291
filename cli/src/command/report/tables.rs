//! What a report says: a title, a sentence, tables, and the commands that verify the run.

use std::collections::BTreeSet;

use nqueens_coordinator::wall_time;
use nqueens_fleet::script::quote;
use nqueens_model::operator::{Recounts, RunState};
use serde::Serialize;

use super::facts::{Facts, Host, WorkSums};
use crate::build::BUILD;
use crate::command::status::describe_recounts;
use crate::output::{counted, duration, harmless, local_time, percent, quantity, thousands};

#[derive(Serialize)]
pub(super) struct Report {
    pub(super) title: String,
    pub(super) reputation: String,
    in_doubt: bool,
    pub(super) tables: Vec<Table>,
    /// Commands that verify the run, each with its purpose.
    pub(super) commands: Vec<(String, &'static str)>,
    written: String,
}

/// The first `texts` columns are text, the others numbers.
#[derive(Serialize)]
pub(super) struct Table {
    pub(super) heading: &'static str,
    texts: usize,
    pub(super) columns: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Report {
    pub(super) fn new(facts: &Facts) -> Self {
        let plan = facts.run.progress.plan;
        let total =
            facts.run.outcome.as_ref().map(|outcome| format!("{} solutions", thousands(outcome.total)));
        let tables = [figures(facts), checks(facts), machines(facts)];
        Self {
            title: format!("{}: {}", plan.subject(), total.as_deref().unwrap_or("no total")),
            reputation: reputation(facts),
            in_doubt: facts.is_in_doubt(),
            tables: tables.into_iter().filter(|table| !table.rows.is_empty()).collect(),
            commands: verification(facts),
            written: format!("Written {} by nqueens {BUILD}.", local_time(wall_time())),
        }
    }
}

fn reputation(facts: &Facts) -> String {
    let progress = &facts.run.progress;
    if let Some(standing) = facts.run.standing() {
        return if facts.is_in_doubt() {
            "Do not trust this total: a check failed.".to_owned()
        } else {
            format!("The run is done. The total is {standing}.")
        };
    }
    let (done, jobs, share) =
        (thousands(progress.done), thousands(progress.jobs), percent(progress.share_done));
    let state = match (progress.state, &facts.run.reason) {
        (RunState::Failed, reason) => {
            let reason = reason.as_deref().map_or_else(|| "a check failed".to_owned(), harmless);
            return format!("The run failed and has no total: {reason}.");
        }
        (RunState::Cancelled, _) => "cancelled",
        (RunState::Paused, _) => "paused",
        (RunState::Planning | RunState::Active | RunState::Done, _) => "not done",
    };
    format!("The run is {state}. {done} of {jobs} jobs are done, {share} of the work; there is no total.")
}

/// What was counted, what was done for it, and what it took, by name.
fn figures(facts: &Facts) -> Table {
    let (run, progress, work, all) = (&facts.run, &facts.run.progress, &facts.work, &facts.all);
    let plan = progress.plan;
    let mut figures = Vec::new();
    let counts = run.outcome.iter().flat_map(|outcome| outcome.counts(plan.n()));
    figures.extend(counts.map(|(name, count)| (name, thousands(count))));
    let (jobs, states) = (thousands(progress.jobs), thousands(plan.states_per_job()));
    figures.push(("Run", progress.run.to_string()));
    figures.push(("Plan", format!("{}, {jobs} jobs of about {states} states each", plan.kind())));
    figures.extend(plan.cells().map(|cells| ("Board", cells.to_string().replace('\n', " / "))));
    figures.extend(run.fingerprint.map(|print| ("Fingerprint", print.to_string())));
    let estimated = progress.estimated_total.filter(|_| run.outcome.is_none());
    figures.extend(estimated.map(|total| ("Estimated total", total.describe_count())));
    if progress.quarantined > 0 {
        let jobs = thousands(progress.quarantined);
        figures.push(("Jobs in quarantine", format!("{jobs}; they need an operator")));
    }
    if all.jobs > work.jobs {
        figures.push(("Results", format!("{}; {} stand", thousands(all.jobs), thousands(work.jobs))));
    }
    let wrong = [
        ("implausible", "with counts that can't be right"),
        ("conflict", "that differed from another result"),
        ("voided", "withdrawn after they were accepted"),
    ];
    let wrong = wrong.into_iter().filter_map(|(verdict, what)| Some((facts.others.get(verdict)?, what)));
    let wrong: Vec<_> = wrong.map(|(count, what)| format!("{} {what}", thousands(count))).collect();
    if !wrong.is_empty() {
        figures.push(("Results that do not stand", wrong.join(", ")));
    }
    figures.extend(progress.checks.told().map(|told| ("Second counts", told)));
    if run.recounts != Recounts::default() {
        figures.push(("Checks by parts", describe_recounts(run.recounts, run.parts_estimate())));
    }
    times(facts, &mut figures);
    let core_hours = |work: &WorkSums| {
        let hours = quantity(work.core_hours());
        match work.unmeasured {
            0 => hours,
            some => format!("{hours}, with time by the clock for {} unmeasured results", thousands(some)),
        }
    };
    figures.extend([
        ("Visited states", thousands(work.states)),
        ("Core-hours, results that stand", core_hours(work)),
        ("Core-hours, with second counts", core_hours(all)),
        ("States/s per core", quantity(work.states_per_s())),
    ]);
    figures.extend([("Devices", list(&facts.devices, "; ")), ("Programs", list(&facts.builds, ", "))]);
    let rows = figures.into_iter().filter(|(_, value)| !value.is_empty());
    let rows = rows.map(|(name, value)| vec![name.to_owned(), value]).collect();
    Table { heading: "Figures", texts: 2, columns: vec!["", ""], rows }
}

fn times(facts: &Facts, figures: &mut Vec<(&'static str, String)>) {
    let (run, counted, interrupted) = (&facts.run, facts.effort.counted(), facts.effort.interrupted());
    let moments =
        [("Submitted", Some(run.created_at)), ("Started", run.started_at), ("Finished", run.finished_at)];
    figures.extend(moments.into_iter().filter_map(|(name, at)| Some((name, local_time(at?)))));
    figures.extend(run.waited().map(|waited| ("Time in the queue", duration(waited))));
    figures.push(("Time of counting", duration(counted)));
    if !interrupted.is_zero() {
        let times = self::counted(facts.effort.spells.len() - 1, "interruption");
        figures.push(("Time left out", format!("{} in {times}", duration(interrupted))));
    }
}

fn list(texts: &BTreeSet<String>, separator: &str) -> String {
    texts.iter().map(String::as_str).collect::<Vec<_>>().join(separator)
}

fn checks(facts: &Facts) -> Table {
    let rows = facts.findings.iter().flatten().map(|(check, result)| {
        let (outcome, what) = result.told();
        vec![check.name().to_owned(), outcome.to_owned(), harmless(what)]
    });
    Table {
        heading: "Checks",
        texts: 3,
        columns: vec!["Check", "Outcome", "What was found"],
        rows: rows.collect(),
    }
}

/// Those that worked most come first.
fn machines(facts: &Facts) -> Table {
    let rows = facts.busiest_hosts().into_iter().map(|(name, Host { work, kernels, threads, workers })| {
        vec![
            name.to_owned(),
            list(kernels, ", "),
            thousands(workers.len()),
            thousands(threads),
            thousands(work.jobs),
            quantity(work.core_hours()),
            thousands(work.states),
            quantity(work.states_per_s()),
        ]
    });
    let columns = vec![
        "Machine",
        "Engines",
        "Processes",
        "Threads",
        "Jobs",
        "Core-hours",
        "Visited states",
        "States/s per core",
    ];
    Table { heading: "Machines", texts: 2, columns, rows: rows.collect() }
}

fn verification(facts: &Facts) -> Vec<(String, &'static str)> {
    let (run, plan) = (facts.run.progress.run, facts.run.progress.plan);
    let (n, stem) = (plan.n(), plan.file_stem());
    let db = facts.db.as_ref().map(|db| quote([&*harmless(&db.to_string_lossy())]));
    let mut commands = Vec::new();
    if facts.run.outcome.is_some() {
        commands.extend(db.as_ref().map(|db| {
            let export = format!("nqueens export {run} --db {db} --format ledger --output {stem}.ledger");
            (export, "writes the whole run to one file that everyone can check")
        }));
        commands.extend([
            (
                format!("nqueens verify {stem}.ledger --sample 300"),
                "repeats the checks above from the file alone, and recounts 300 jobs",
            ),
            (
                format!("python3 docs/recompute.py {stem}.ledger"),
                "computes the same total with another program",
            ),
        ]);
    }
    commands.extend(db.map(|db| {
        (format!("nqueens verify {run} --db {db} --sample 300"), "recounts 300 jobs by another search")
    }));
    if facts.run.outcome.is_some() {
        let (option, how) = match plan.cells() {
            Some(_) => {
                (" --cells board", "counts the board again, which has to be drawn in the file 'board'")
            }
            None => ("", "counts the board again; --plan and --kernel select other methods"),
        };
        commands.push((format!("nqueens run {n}{option} --db {stem}-again.db"), how));
    }
    commands
}
