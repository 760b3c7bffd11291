//! A report as one HTML page. All text of a run passes through maud, which escapes it.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use nqueens_coordinator::wall_time;
use nqueens_kernel::counts::Totals;

use super::facts::{Facts, WorkSums};
use super::pictures::{over_time, shares};
use super::summary::{checks, counts, figures, reputation, story, title, verification};
use crate::build::BUILD;
use crate::output::{local_time, quantity, thousands};

const STYLE: &str = include_str!("page.css");

/// The page forbids itself to load or run anything.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

pub(super) fn write(facts: &Facts) -> String {
    let title = title(facts);
    let class = if facts.is_in_doubt() {
        "doubt"
    } else if facts.run.outcome.is_some() {
        "done"
    } else {
        "open"
    };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    header {
                        h1 { (title) }
                        p class={ "lead " (class) } { (reputation(facts)) }
                    }
                    @for ((heading, sentences), exhibit) in story(facts).iter().zip(exhibits(facts)) {
                        section {
                            h2 { (heading) }
                            @for sentence in sentences { p { (sentence) } }
                            (exhibit)
                        }
                    }
                    section { h2 { "How to verify it" } (commands(facts)) }
                    section { h2 { "All figures" } (pairs("Figures", &figures(facts))) (classes(facts)) }
                }
                footer { "Written " (local_time(wall_time())) " by nqueens " (BUILD) "." }
            }
        }
    };
    page.into_string() + "\n"
}

/// What stands under each part of the story.
fn exhibits(facts: &Facts) -> [Markup; 4] {
    [
        pairs("Counts", &counts(facts)),
        checks_made(facts),
        html! { (shares(facts)) (hosts(facts)) (kernels(facts)) },
        over_time(facts),
    ]
}

/// A table under a heading; one that is wider than the page can be scrolled, also by keys.
fn table(heading: &str, content: &Markup) -> Markup {
    html! {
        h3 { (heading) }
        div class="scroll" tabindex="0" role="region" aria-label=(heading) { (content) }
    }
}

fn pairs(heading: &str, pairs: &[(&str, String)]) -> Markup {
    let rows = html! {
        table class="pairs" {
            tbody {
                @for (name, value) in pairs {
                    tr { th scope="row" { (name) } td { (value) } }
                }
            }
        }
    };
    html! { @if !pairs.is_empty() { (table(heading, &rows)) } }
}

fn checks_made(facts: &Facts) -> Markup {
    let checks = checks(facts);
    let rows = html! {
        table {
            thead { tr { th scope="col" { "Check" } th scope="col" { "Outcome" } th scope="col" { "What was found" } } }
            tbody {
                @for (name, outcome, what) in &checks {
                    tr { th scope="row" { (name) } td class={ "outcome " (outcome) } { (outcome) } td class="found" { (what) } }
                }
            }
        }
    };
    html! { @if !checks.is_empty() { (table("Checks", &rows)) } }
}

/// A table of numbers, whose first `texts` columns are text; nothing without rows.
fn numbers(heading: &str, columns: &[&str], texts: usize, rows: &[Vec<String>]) -> Markup {
    let content = html! {
        table {
            thead { tr { @for (at, name) in columns.iter().enumerate() { th scope="col" class=[(at >= texts).then_some("number")] { (name) } } } }
            tbody {
                @for row in rows {
                    tr {
                        @for (at, cell) in row.iter().enumerate() {
                            @if at == 0 { th scope="row" { (cell) } } @else { td class=[(at >= texts).then_some("number")] { (cell) } }
                        }
                    }
                }
            }
        }
    };
    html! { @if !rows.is_empty() { (table(heading, &content)) } }
}

const WORK: [&str; 4] = ["Jobs", "Core-hours", "Visited states", "States/s per core"];

fn work_cells(work: &WorkSums) -> [String; 4] {
    let (hours, speed) = (quantity(work.core_hours()), quantity(work.states_per_s()));
    [thousands(work.jobs), hours, thousands(work.states), speed]
}

fn classes(facts: &Facts) -> Markup {
    let is_plain = facts.classes.keys().any(|class| class.counts_plainly());
    let counts: &[_] = if is_plain { &["Plain solutions"] } else { &["COUNT2", "COUNT4", "COUNT8"] };
    let columns: Vec<_> = ["Class"].iter().chain(counts).chain(&WORK[..3]).copied().collect();
    let row = |(class, (work, sum)): (&nqueens_kernel::job::Class, &(WorkSums, Totals))| {
        let Totals { count2, count4, count8, solutions } = *sum;
        let found: &[_] = if is_plain { &[solutions] } else { &[count2, count4, count8] };
        let mut row = vec![class.name().to_owned()];
        row.extend(found.iter().map(thousands));
        row.extend(work_cells(work).into_iter().take(3));
        row
    };
    numbers("Classes", &columns, 1, &facts.classes.iter().map(row).collect::<Vec<_>>())
}

fn hosts(facts: &Facts) -> Markup {
    let columns: Vec<_> = ["Machine", "Engines", "Processes", "Threads"].into_iter().chain(WORK).collect();
    let rows = facts.busiest_hosts().into_iter().map(|(name, host)| {
        let kernels = host.kernels.iter().cloned().collect::<Vec<_>>().join(", ");
        let mut row = vec![name.to_owned(), kernels, thousands(host.workers.len()), thousands(host.threads)];
        row.extend(work_cells(&host.work));
        row
    });
    numbers("Machines", &columns, 2, &rows.collect::<Vec<_>>())
}

fn kernels(facts: &Facts) -> Markup {
    let columns: Vec<_> = ["Engine"].into_iter().chain(WORK).collect();
    let rows = facts.kernels.iter().map(|(name, work)| {
        let mut row = vec![name.clone()];
        row.extend(work_cells(work));
        row
    });
    numbers("Engines", &columns, 1, &rows.collect::<Vec<_>>())
}

fn commands(facts: &Facts) -> Markup {
    html! {
        dl {
            @for (command, does) in verification(facts) {
                dt { code { (command) } }
                dd { (does) }
            }
        }
    }
}
