//! The page for browsers that run no scripts: the figures themselves, as of one moment.

use maud::{Markup, html};
use nqueens_model::operator::{
    Event, Interval, RunStatus, WallTime, WorkerStatus, quantity, span, thousands,
};

use crate::picture::{EVENTS_SHOWN, Overview, ShownRun};

/// What stands in the page for the figures.
pub(crate) const PLACE: &str = "<!-- figures -->";

/// Headings of the tables.
const RUNS: [&str; 8] = ["Run", "N", "Plan", "State", "Done", "Jobs", "Time left", "TOTAL"];
const WORKERS: [&str; 7] = ["Name", "Kernel", "Threads", "Holds", "Results", "Pace", "Last contact"];

/// The figures of all runs, with those of one run first.
pub(crate) fn figures(overview: &Overview, chosen: Option<&ShownRun>) -> Markup {
    html! {
        noscript {
            section aria-label="How to read this page" {
                p { "As of " (time(overview.at)) ". This page updates itself every 10 seconds; with scripts it has charts, too." }
            }
            @if let Some(run) = chosen { (facts(run, overview.at)) }
            (table("Runs", &RUNS, overview.runs.iter().rev().map(|run| row(&run.status))))
            (table("Workers", &WORKERS, overview.workers.iter().map(worker)))
            section {
                h2 { "Events" }
                ol class="events" {
                    @for event in overview.events.iter().rev().take(EVENTS_SHOWN) { (told(event)) }
                }
            }
        }
    }
}

fn facts(ShownRun { status: run, core_hours, core_hours_standing }: &ShownRun, now: WallTime) -> Markup {
    let progress = &run.progress;
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
    facts.push(fact("Jobs done", format!("{} of {}", thousands(progress.done), thousands(progress.jobs))));
    let standing = format!("{} of them for results that stand", quantity(*core_hours_standing));
    facts.push(("Core-hours", quantity(*core_hours), Some(standing)));
    html! {
        section {
            h2 { (run.plan.subject()) ", " (progress.state.name()) ", " (share(run)) }
            p class="muted" { "run " (progress.run) ", plan " (run.plan.kind()) }
            dl class="facts" {
                @for (name, value, more) in &facts {
                    div { dt { (name) } dd { (value) } @if let Some(more) = more { dd class="muted" { (more) } } }
                }
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
    let texts =
        [progress.n.to_string(), run.plan.kind().to_string(), state, share(run), jobs, left, total(run)];
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

fn share(run: &RunStatus) -> String {
    // What is not done is never all.
    let share = run.progress.share_done;
    format!("{:.1} %", if share < 1.0 { (100.0 * share).min(99.9) } else { 100.0 })
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
