//! The page for browsers that run no scripts: the figures themselves, as of one moment.

use maud::{Markup, html};
use nqueens_model::id::RunId;
use nqueens_model::operator::{
    Event, Interval, RunStatus, WallTime, WorkerStatus, percent, quantity, span, thousands,
};

use crate::headers::INDEX;
use crate::picture::{EVENTS_SHOWN, Overview, ShownRun};
use crate::words;

/// What stands in the page for the figures, and for the words that explain a table.
const FIGURES: &str = "<!-- figures -->";
const WORDS: &str = "<!-- words -->";

/// Headings of the tables.
const RUNS: [&str; 8] = ["Run", "N", "Plan", "State", "Done", "Jobs", "Time left", "TOTAL"];
const WORKERS: [&str; 7] = ["Name", "Kernel", "Threads", "Holds", "Results", "Pace", "Last contact"];

/// The page, with the figures of this run, or of the one that is shown to one who did not choose. It has none if there is no
/// overview.
pub(crate) fn index_with(overview: Option<&Overview>, chosen: Option<RunId>) -> String {
    let page = INDEX.replace(WORDS, words::WORKERS);
    let Some(overview) = overview else { return page };
    let run = |id| overview.runs.iter().find(|run| run.status.progress.run == id);
    let shown = chosen.and_then(run).or_else(|| run(overview.foremost?));
    page.replace(FIGURES, &figures(overview, shown).into_string())
}

/// The figures of all runs, with those of one run first.
fn figures(overview: &Overview, chosen: Option<&ShownRun>) -> Markup {
    html! {
        noscript {
            section aria-label="How to read this page" {
                p { "As of " (time(overview.at)) ". This page updates itself every 10 seconds; with scripts it has charts, too." }
            }
            @if let Some(run) = chosen { (facts(run, overview)) }
            (table("Runs", &RUNS, overview.runs.iter().rev().map(|run| row(&run.status))))
            (table("Workers", &WORKERS, overview.workers.iter().map(worker)))
            p class="muted words" { (words::WORKERS) }
            section {
                h2 { "Events" }
                ol class="events" {
                    @for event in overview.events.iter().rev().take(EVENTS_SHOWN) { (told(event)) }
                }
            }
        }
    }
}

fn facts(
    ShownRun { status: run, core_hours, core_hours_standing }: &ShownRun,
    overview: &Overview,
) -> Markup {
    let (progress, now) = (&run.progress, overview.at);
    let bounds = |Interval { low, high, .. }: Interval, write: fn(f64) -> String| {
        format!("{} to {}", write(low), write(high))
    };
    let total_bounds = progress.estimated_total.map(|total| bounds(total, |count| format!("{count:.4e}")));
    let standing = run.standing().map(|standing| standing.to_string()).or_else(|| run.reason.clone());
    let mut facts = vec![("TOTAL", total(run), standing.or(total_bounds))];
    let fact = |name, value| (name, value, None);
    // The solutions of a variant are not sorted into orbits.
    if let Some(outcome) = run.outcome.as_ref().filter(|_| run.plan.variant().is_none()) {
        let orbits = outcome.totals;
        facts.push(fact("COUNT2", thousands(orbits.count2)));
        facts.push(fact("COUNT4", thousands(orbits.count4)));
        facts.push(fact("COUNT8", thousands(orbits.count8)));
        if let Ok(unique) = orbits.unique(progress.n) {
            facts.push(fact("UNIQUE", thousands(unique)));
        }
    }
    if let Some(took) = run.took() {
        facts.push(fact("Took", span(took.as_secs_f64())));
    } else if let Some(started) = run.started_at.filter(|_| progress.state.is_open()) {
        facts.push(fact("Counting since", time(started)));
        facts.push(fact("Elapsed", span(seconds(now.saturating_sub(started)))));
    }
    if let Some(left) = progress.time_left_s {
        facts.push(("Time left", span(left.value), Some(bounds(left, span))));
        let end = left.map(|seconds| 1e3 * seconds);
        let at = |ms: f64| time(now.saturating_add(whole(ms).try_into().unwrap_or(i64::MAX)));
        facts.push(("Ends about", at(end.value), Some(format!("{} to {}", at(end.low), at(end.high)))));
    }
    if let Some(speed) = progress.speed {
        facts.push(fact("States/s", thousands(whole(speed.states_per_s))));
    }
    let open = [(progress.leased, "leased"), (progress.quarantined, "in quarantine")];
    let open = open.into_iter().filter(|(jobs, _)| *jobs > 0);
    let open: Vec<_> = open.map(|(jobs, state)| format!("{} {state}", thousands(jobs))).collect();
    let jobs = format!("{} of {}", thousands(progress.done), thousands(progress.jobs));
    facts.push(("Jobs done", jobs, (!open.is_empty()).then(|| open.join(", "))));
    let standing = format!("{} of them for results that stand", quantity(*core_hours_standing));
    facts.push(("Core-hours", quantity(*core_hours), Some(standing)));
    facts.extend(words::checks(run).map(|(outcome, more)| ("Checks", outcome.to_owned(), Some(more))));
    facts.push(("Plan", run.plan.kind().to_string(), Some(words::plan(run.plan.kind()).to_owned())));
    html! {
        section {
            h2 { (run.plan.subject()) ", " (progress.state.name()) ", " (percent(progress.share_done)) }
            p class="muted" { "run " (progress.run) }
            dl class="facts" {
                @for (name, value, more) in &facts {
                    div { dt { (name) } dd { (value) } @if let Some(more) = more { dd class="muted" { (more) } } }
                }
            }
            @if run.outcome.is_some() { (documents(run, overview.has_documents)) }
        }
    }
}

/// The report and the ledger of a finished run, or the commands that write them.
fn documents(run: &RunStatus, are_written: bool) -> Markup {
    let (id, stem) = (run.progress.run, run.plan.file_stem());
    html! {
        @if are_written {
            p {
                a href={ "/report?run=" (id) } { "Report" } " and " a href={ "/ledger?run=" (id) } { "ledger" }
                span class="muted" { " are written when you ask for them; that takes a while if the run is large." }
            }
        } @else {
            p class="muted" {
                code { "nqueens report " (id) " --db FILE --output " (stem) ".html" } " writes the report, "
                code { "nqueens export " (id) " --db FILE --format ledger --output " (stem) ".ledger" } " the ledger."
            }
        }
    }
}

/// A table with a heading for each cell, which a narrow screen shows beside it.
fn table(title: &str, heads: &[&str], rows: impl Iterator<Item = Vec<Markup>>) -> Markup {
    html! {
        section {
            table role="table" {
                caption { (title) }
                thead role="rowgroup" { tr role="row" { @for head in heads { th scope="col" { (head) } } } }
                tbody role="rowgroup" {
                    @for cells in rows {
                        tr role="row" {
                            @for (at, (head, cell)) in heads.iter().zip(cells).enumerate() {
                                @if at == 0 { th scope="row" role="rowheader" { (cell) } } @else { td role="cell" data-label=(head) { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn row(run: &RunStatus) -> Vec<Markup> {
    let progress = &run.progress;
    let id = progress.run.to_string();
    let left = progress.time_left_s.map_or_else(|| "-".to_owned(), |left| span(left.value));
    let jobs = format!("{} of {}", thousands(progress.done), thousands(progress.jobs));
    let state = progress.state.name().to_owned();
    let texts = [
        progress.n.to_string(),
        run.plan.kind().to_string(),
        state,
        percent(progress.share_done),
        jobs,
        left,
        total(run),
    ];
    let link = html! { a href={ "/?run=" (id) } { (id) } };
    std::iter::once(link).chain(texts.map(|text| html! { (text) })).collect()
}

fn worker(worker: &WorkerStatus) -> Vec<Markup> {
    let kernel = worker.kernels.first().cloned().unwrap_or_default();
    let speed = worker.states_per_s.map_or_else(|| "-".to_owned(), |speed| thousands(whole(speed)));
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let silent = format!("{} ago", span(worker.silent_ms as f64 / 1e3));
    let [threads, leases, accepted] =
        [u64::from(worker.threads), worker.leases, worker.accepted].map(thousands);
    let texts = [worker.name.clone(), kernel, threads, leases, accepted, speed, silent];
    texts.map(|text| html! { (text) }).into()
}

fn told(event: &Event) -> Markup {
    let class = event.kind.is_problem().then_some("problem");
    html! { li { time { (time(event.at)) } span class=[class] { (event.text) } } }
}

fn total(run: &RunStatus) -> String {
    let about = |total: Interval| format!("about {:.4e}", total.value);
    let estimate = || run.progress.estimated_total.map_or_else(|| "-".to_owned(), about);
    run.outcome.as_ref().map_or_else(estimate, |outcome| thousands(outcome.total))
}

/// To the second, in UTC: the reader's zone is not known here.
fn time(at: WallTime) -> String {
    let Ok(time) = jiff::Timestamp::from_millisecond(at) else { return format!("{at} ms since 1970") };
    time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn seconds(ms: i64) -> f64 {
    ms.max(0) as f64 / 1e3
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn whole(number: f64) -> u64 {
    number.round() as u64
}
