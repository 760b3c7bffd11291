//! A report as one HTML page. All text of a run passes through maud, which escapes it.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use nqueens_coordinator::wall_time;
use nqueens_kernel::counts::Totals;

use super::facts::{Facts, WorkSums};
use super::pictures::{shares, throughput};
use super::summary::{UNCHECKED, checks, counts, figures, reputation, title, verification};
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
                    h1 { (title) }
                    p class={ "reputation " (class) } { (reputation(facts)) }
                    (section("Result", pairs(&counts(facts))))
                    (section("Checks", checks_made(facts)))
                    (section("Figures", pairs(&figures(facts))))
                    (section("Throughput", throughput(&facts.timeline)))
                    (section("Classes", classes(facts)))
                    (section("Hosts", html! { (shares(facts)) (hosts(facts)) }))
                    (section("Kernels", kernels(facts)))
                    (section("How to verify it", commands(facts)))
                }
                footer { "Written " (local_time(wall_time())) " by nqueens " (BUILD) "." }
            }
        }
    };
    page.into_string() + "\n"
}

/// A heading with what stands under it; nothing if that is nothing.
fn section(heading: &str, content: Markup) -> Markup {
    html! {
        @if !content.0.is_empty() {
            section { h2 { (heading) } (content) }
        }
    }
}

fn pairs(pairs: &[(&str, String)]) -> Markup {
    html! {
        @if !pairs.is_empty() {
            table class="pairs" {
                tbody {
                    @for (name, value) in pairs {
                        tr { th scope="row" { (name) } td { (value) } }
                    }
                }
            }
        }
    }
}

fn checks_made(facts: &Facts) -> Markup {
    let checks = checks(facts);
    html! {
        @if checks.is_empty() {
            p { (UNCHECKED) }
        } @else {
            p { "All were repeated for this report, as by " code { "nqueens verify" } " on the exported ledger." }
            table {
                thead { tr { th scope="col" { "Check" } th scope="col" { "Outcome" } th scope="col" { "What was found" } } }
                tbody {
                    @for (name, outcome, what) in checks {
                        tr { th scope="row" { (name) } td class={ "outcome " (outcome) } { (outcome) } td class="found" { (what) } }
                    }
                }
            }
        }
    }
}

/// A table of numbers, whose first `texts` columns are text; nothing without rows.
fn numbers(columns: &[&str], texts: usize, rows: &[Vec<String>]) -> Markup {
    html! {
        @if !rows.is_empty() {
            table {
                thead { tr { @for (at, name) in columns.iter().enumerate() { th scope="col" class=[(at >= texts).then_some("number")] { (name) } } } }
                tbody {
                    @for row in rows {
                        tr { @for (at, cell) in row.iter().enumerate() { td class=[(at >= texts).then_some("number")] { (cell) } } }
                    }
                }
            }
        }
    }
}

const WORK: [&str; 4] = ["Jobs", "Core-hours", "States", "States/s per core"];

fn work_cells(work: &WorkSums) -> [String; 4] {
    let (hours, speed) = (quantity(work.core_hours()), quantity(work.states_per_s()));
    [thousands(work.jobs), hours, thousands(work.states), speed]
}

fn classes(facts: &Facts) -> Markup {
    let columns = ["Class", "COUNT2", "COUNT4", "COUNT8", "Plain solutions", "Jobs", "Core-hours", "States"];
    let row = |(class, (work, sum)): (&nqueens_kernel::job::Class, &(WorkSums, Totals))| {
        let Totals { count2, count4, count8, solutions } = *sum;
        let mut row = vec![class.name().to_owned()];
        row.extend([count2, count4, count8, solutions].map(thousands));
        row.extend(work_cells(work).into_iter().take(3));
        row
    };
    numbers(&columns, 1, &facts.classes.iter().map(row).collect::<Vec<_>>())
}

fn hosts(facts: &Facts) -> Markup {
    let columns: Vec<_> = ["Host", "Kernels", "Processes"].into_iter().chain(WORK).collect();
    let rows = facts.busiest_hosts().into_iter().map(|(name, host)| {
        let kernels = host.kernels.iter().cloned().collect::<Vec<_>>().join(", ");
        let mut row = vec![name.to_owned(), kernels, thousands(host.workers.len())];
        row.extend(work_cells(&host.work));
        row
    });
    numbers(&columns, 2, &rows.collect::<Vec<_>>())
}

fn kernels(facts: &Facts) -> Markup {
    let columns: Vec<_> = ["Kernel"].into_iter().chain(WORK).collect();
    let rows = facts.kernels.iter().map(|(name, work)| {
        let mut row = vec![name.clone()];
        row.extend(work_cells(work));
        row
    });
    numbers(&columns, 1, &rows.collect::<Vec<_>>())
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
