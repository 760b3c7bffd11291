//! Texts and numbers that all forms of a report share.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::Duration;

use nqueens_evidence::finding::{Check, CheckResult};
use nqueens_model::operator::{Recounts, RunState};

use super::super::status::describe_recounts;
use super::facts::{Facts, WorkSums};
use crate::output::{duration, harmless, local_time, percent, quantity, thousands};

/// `N = 16: 14,772,512 solutions`, or that there is no total.
pub(super) fn title(facts: &Facts) -> String {
    let subject = facts.run.progress.plan.subject();
    match &facts.run.outcome {
        Some(outcome) => format!("{subject}: {} solutions", thousands(outcome.total)),
        None => format!("{subject}: no total"),
    }
}

/// How the run stands, in a sentence or two.
pub(super) fn reputation(facts: &Facts) -> String {
    let progress = &facts.run.progress;
    let (done, jobs, share) =
        (thousands(progress.done), thousands(progress.jobs), percent(progress.share_done));
    if let Some(standing) = facts.run.standing() {
        let sentence = match standing.is_confirmed() {
            _ if facts.is_in_doubt() => "Do not trust this total: a check failed.",
            true => "The run is done, and its total is confirmed.",
            false => "The run is done. Its total is counted, and not confirmed.",
        };
        return sentence.to_owned();
    }
    let state = match (progress.state, &facts.run.reason) {
        (RunState::Failed, reason) => {
            let reason = reason.as_deref().map_or_else(|| "a check failed".to_owned(), harmless);
            return format!("The run failed and has no total: {reason}.");
        }
        (RunState::Cancelled, _) => {
            return format!(
                "The run was cancelled with {done} of {jobs} jobs done, {share} of the work; it has no total."
            );
        }
        (RunState::Paused, _) => "paused",
        (RunState::Planning | RunState::Active | RunState::Done, _) => "not done",
    };
    let sentences = [
        Some(format!(
            "The run is {state}. {done} of {jobs} jobs are done, {share} of the work; there is no total yet."
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

/// What was counted, why it can be believed, by what machines, in how long: a heading and sentences for each.
pub(super) fn story(facts: &Facts) -> [(&'static str, Vec<String>); 4] {
    [
        ("What was counted", what(facts)),
        ("Why it can be believed", why(facts)),
        ("By what machines", by_what(facts)),
        ("In how long", how_long(facts)),
    ]
}

fn what(facts: &Facts) -> Vec<String> {
    let (run, n) = (&facts.run, facts.run.progress.plan.n());
    let is_whole = run.progress.plan.cells().is_none();
    let placements = match n.get() {
        _ if !is_whole => format!("All solutions of the board {}", run.progress.plan.subject()),
        1 => "All placements of 1 queen on the 1 × 1 board".to_owned(),
        n => format!("All placements of {n} queens on the {n} × {n} board in which no two attack each other"),
    };
    let counted = match &run.outcome {
        Some(outcome) => {
            let unique =
                outcome.totals.unique(n).ok().filter(|_| is_whole).map_or_else(String::new, |unique| {
                    format!(" Up to rotation and reflection they are {}.", thousands(unique))
                });
            format!("{placements}: {}.{unique}", thousands(outcome.total))
        }
        None => format!("{placements}. There is no total."),
    };
    let (jobs, done) = (run.progress.jobs, run.progress.done);
    let split = match jobs {
        0 => format!("Plan {} finds no work in this board.", run.progress.plan.kind()),
        _ => format!(
            "Plan {} splits the board into {} independent jobs; {} of them are done.",
            run.progress.plan.kind(),
            thousands(jobs),
            if jobs == done { "all".to_owned() } else { thousands(done) }
        ),
    };
    vec![counted, split]
}

fn why(facts: &Facts) -> Vec<String> {
    let mut why = Vec::new();
    if let Some(standing) = facts.run.standing() {
        why.push(match standing {
            _ if facts.is_in_doubt() => "It can't: a check failed.".to_owned(),
            standing => format!("The total is {standing}."),
        });
    }
    let outcomes = |wanted: &str| checks(facts).iter().filter(|(_, outcome, _)| *outcome == wanted).count();
    let (passed, failed) = (outcomes("ok"), outcomes("FAILED"));
    why.push(match (passed, failed) {
        (0, 0) => UNCHECKED.to_owned(),
        (passed, 0) => format!("For this report, {passed} checks of the ledger were made again; all passed."),
        (passed, failed) => format!(
            "For this report, checks of the ledger were made again: {failed} failed, {passed} passed."
        ),
    });
    let checks = facts.run.progress.checks;
    if checks.agreed > 0 || checks.confirmed > 0 {
        why.push(format!(
            "Second counts that agree with the first: {}. Results that were counted alike under another credential or by the \
             coordinator: {} of {}.",
            thousands(checks.agreed),
            thousands(checks.confirmed),
            thousands(facts.work.jobs)
        ));
    }
    let wrong: Vec<_> = [
        ("implausible", "with counts that can't be right"),
        ("conflict", "that differed from another result"),
        ("voided", "withdrawn after they were accepted"),
    ]
    .into_iter()
    .filter_map(|(verdict, what)| Some(format!("{} {what}", thousands(facts.others.get(verdict)?))))
    .collect();
    if !wrong.is_empty() {
        why.push(format!("Results that do not stand: {}. Their jobs are counted again.", wrong.join(", ")));
    }
    why
}

fn by_what(facts: &Facts) -> Vec<String> {
    if facts.hosts.is_empty() {
        return vec!["No result came from a machine.".to_owned()];
    }
    let hosts = facts.hosts.len();
    let processes: usize = facts.hosts.values().map(|host| host.workers.len()).sum();
    let plural = |number: usize, one: &str, many: &str| match number {
        1 => format!("1 {one}"),
        number => format!("{} {many}", thousands(number)),
    };
    let mut kernels: Vec<_> = facts.kernels.iter().collect();
    kernels.sort_by_key(|(_, work)| Reverse(work.states));
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let share = |work: &WorkSums| 100.0 * work.states as f64 / facts.work.states.max(1) as f64;
    let kernels: Vec<_> = kernels.iter().map(|(name, work)| format!("{name} {:.1} %", share(work))).collect();
    let mut machines = vec![
        format!(
            "{}, in {}.",
            plural(hosts, "machine", "machines"),
            plural(processes, "worker process", "worker processes")
        ),
        format!("Counting engines, by visited states: {}.", kernels.join(", ")),
    ];
    if !facts.devices.is_empty() {
        machines.push(format!("Devices: {}.", list(&facts.devices, "; ")));
    }
    machines
}

fn how_long(facts: &Facts) -> Vec<String> {
    let run = &facts.run;
    let Some(started) = run.started_at else {
        return vec!["No job was leased.".to_owned()];
    };
    let (counted, interrupted) = (facts.effort.counted(), facts.effort.interrupted());
    let end = run.finished_at.map_or_else(String::new, |at| format!(" to {}", local_time(at)));
    let mut time = vec![format!(
        "Counted in {} by the clock, from {}{end}; {} of processor time ({} core-hours).",
        duration(counted),
        local_time(started),
        duration(facts.all.cpu()),
        quantity(facts.all.core_hours())
    )];
    if let (Some(finished), Some((_, last))) = (run.finished_at, facts.results) {
        let after = Duration::from_millis(u64::try_from(finished.saturating_sub(last)).unwrap_or(0));
        if after > counted / 10 {
            time.push(format!(
                "Of that, {} came after the last result: second counts and checks.",
                duration(after)
            ));
        }
    }
    if !interrupted.is_zero() {
        let breaks = facts.effort.spells.len() - 1;
        let times = if breaks == 1 { "once".to_owned() } else { format!("{breaks} times") };
        time.push(format!(
            "It was interrupted {times}, for {} in all; that time is left out.",
            duration(interrupted)
        ));
    }
    if let Some(waited) = run.waited().filter(|waited| *waited > counted) {
        time.push(format!("Before that, it waited {} in the queue.", duration(waited)));
    }
    if has_others(facts) {
        time.push(format!(
            "Of the core-hours, {} went into the results that stand, the rest into {} others: second counts, and results that \
             do not stand.",
            quantity(facts.work.core_hours()),
            thousands(facts.all.jobs - facts.work.jobs)
        ));
    }
    time
}

/// Whether there are results that do not stand for their jobs.
fn has_others(facts: &Facts) -> bool {
    facts.all.jobs > facts.work.jobs
}

fn list(texts: &BTreeSet<String>, separator: &str) -> String {
    texts.iter().map(String::as_str).collect::<Vec<_>>().join(separator)
}

/// The orbits and the total, by name.
pub(super) fn counts(facts: &Facts) -> Vec<(&'static str, String)> {
    let Some(outcome) = &facts.run.outcome else { return Vec::new() };
    let orbits = outcome.totals;
    if facts.run.progress.plan.cells().is_some() {
        return vec![("TOTAL", thousands(outcome.total))];
    }
    let mut counts = vec![("COUNT2", orbits.count2), ("COUNT4", orbits.count4), ("COUNT8", orbits.count8)];
    counts.extend(orbits.unique(facts.run.progress.plan.n()).ok().map(|unique| ("UNIQUE", unique)));
    counts.push(("TOTAL", outcome.total));
    counts.into_iter().map(|(name, count)| (name, thousands(count))).collect()
}

/// What was done and what it took, by name.
pub(super) fn figures(facts: &Facts) -> Vec<(&'static str, String)> {
    let (run, work, all) = (&facts.run, &facts.work, &facts.all);
    let plan = format!(
        "{}, {} jobs of about {} states each",
        run.progress.plan.kind(),
        thousands(run.progress.jobs),
        thousands(run.progress.plan.states_per_job())
    );
    let mut figures = vec![("Run", run.progress.run.to_string()), ("Plan", plan)];
    if let Some(cells) = run.progress.plan.cells() {
        figures.push(("Board", cells.to_string().replace('\n', " / ")));
    }
    figures.extend([
        ("Fingerprint", run.fingerprint.map_or_else(|| "-".to_owned(), |print| print.to_string())),
        ("Submitted", local_time(run.created_at)),
    ]);
    figures.extend(run.started_at.map(|started| ("Started", local_time(started))));
    if let Some((first, last)) = facts.results {
        figures.extend([("First result", local_time(first)), ("Last result", local_time(last))]);
    }
    if let Some(finished) = run.finished_at {
        figures.push(("Finished", local_time(finished)));
    }
    if let Some(waited) = run.waited() {
        figures.push(("Time in the queue", duration(waited)));
    }
    figures.push(("Time of counting", duration(facts.effort.counted())));
    let interrupted = facts.effort.interrupted();
    if !interrupted.is_zero() {
        figures.push(("Interrupted for", duration(interrupted)));
    }
    let core_hours = |work: &WorkSums| match work.unmeasured {
        0 => quantity(work.core_hours()),
        results => format!(
            "{}, with time by the clock for {} results whose processor time was not measured",
            quantity(work.core_hours()),
            thousands(results)
        ),
    };
    figures.extend([
        ("Visited states", thousands(work.states)),
        ("Core-hours, results that stand", core_hours(work)),
        ("Core-hours, with second counts", core_hours(all)),
        ("States/s per core", quantity(work.states_per_s())),
    ]);
    if let Some(watts) = facts.watts {
        let energy = quantity(all.core_hours() * watts / 1e3);
        figures.push(("Energy", format!("{energy} kWh, at {} W per core", quantity(watts))));
    }
    if run.recounts != Recounts::default() {
        figures.push(("Checks by parts", describe_recounts(run.recounts, run.parts_estimate())));
    }
    if !facts.devices.is_empty() {
        figures.push(("Devices", list(&facts.devices, "; ")));
    }
    if !facts.builds.is_empty() {
        figures.push(("Programs", list(&facts.builds, ", ")));
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
    let (run, plan, stem) =
        (facts.run.progress.run, facts.run.progress.plan, facts.run.progress.plan.file_stem());
    let db = facts.db.as_ref().map(|db| quoted(&db.to_string_lossy()));
    let recount = db.as_ref().map(|db| {
        (format!("nqueens verify {run} --db {db} --sample 300"), "recounts 300 jobs by another search")
    });
    if facts.run.outcome.is_none() {
        return recount.into_iter().collect();
    }
    let ledger = format!("{stem}.ledger");
    let export = db.as_ref().map(|db| {
        (
            format!("nqueens export {run} --db {db} --format ledger --output {ledger}"),
            "writes the whole run to one file that everyone can check",
        )
    });
    let from_ledger = [
        (
            format!("nqueens verify {ledger} --sample 300"),
            "repeats the checks above from the file alone, and recounts 300 jobs",
        ),
        (format!("python3 docs/recompute.py {ledger}"), "computes the same total with another program"),
    ];
    let (option, how_again) = match plan.cells() {
        Some(_) => (" --cells board", "counts the board again, which has to be drawn in the file 'board'"),
        None => ("", "counts the board again; --plan and --kernel select other methods"),
    };
    let again = (format!("nqueens run {}{option} --db {stem}-again.db", plan.n()), how_again);
    export.into_iter().chain(from_ledger).chain(recount).chain([again]).collect()
}

/// A word of a shell.
fn quoted(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+,:@%=".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", harmless(text).replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_one_word_of_a_shell() {
        assert_eq!(quoted("runs/nqueens-16.db"), "runs/nqueens-16.db");
        assert_eq!(quoted("my queens.db"), "'my queens.db'");
        assert_eq!(quoted("$(x)'s"), r"'$(x)'\''s'");
    }
}
