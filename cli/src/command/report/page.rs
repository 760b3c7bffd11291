//! The coordinator's page with one run and its report inside, as a file of its own.

use nqueens_coordinator::wall_time;
use nqueens_kernel::counts::Totals;
use nqueens_kernel::job::Class;
use nqueens_web::Saved;
use serde_json::{Value, json};

use super::facts::{Facts, WorkSums};
use super::summary::{checks, counts, figures, reputation, story, title, verification};
use crate::build::BUILD;
use crate::output::{local_time, quantity, thousands};

pub(super) fn write(facts: &Facts) -> String {
    let report = json!({
        "title": title(facts),
        "reputation": reputation(facts),
        "in_doubt": facts.is_in_doubt(),
        "story": story(facts),
        "tables": [
            table("Checks", 3, &["Check", "Outcome", "What was found"], checks(facts).into_iter().map(Into::into)),
            hosts(facts),
            kernels(facts),
            classes(facts),
            table("All figures", 2, &["", ""], counts(facts).into_iter().chain(figures(facts)).map(Into::into)),
        ],
        "commands": verification(facts),
        "written": format!("Written {} by nqueens {BUILD}.", local_time(wall_time())),
    });
    let Facts { run, sums, groups, moments, .. } = facts;
    Saved { run, sums, groups, moments, report }.page()
}

/// A table whose first `texts` columns are text and the others numbers.
fn table(heading: &str, texts: usize, columns: &[&str], rows: impl Iterator<Item = Row>) -> Value {
    let rows: Vec<_> = rows.map(|Row(cells)| cells).collect();
    json!({ "heading": heading, "texts": texts, "columns": columns, "rows": rows })
}

struct Row(Vec<String>);

impl From<(&str, &str, String)> for Row {
    fn from((name, outcome, what): (&str, &str, String)) -> Self {
        Self(vec![name.to_owned(), outcome.to_owned(), what])
    }
}

impl From<(&str, String)> for Row {
    fn from((name, value): (&str, String)) -> Self {
        Self(vec![name.to_owned(), value])
    }
}

const WORK: [&str; 4] = ["Jobs", "Core-hours", "Visited states", "States/s per core"];

fn work_cells(work: &WorkSums) -> [String; 4] {
    let (hours, speed) = (quantity(work.core_hours()), quantity(work.states_per_s()));
    [thousands(work.jobs), hours, thousands(work.states), speed]
}

fn classes(facts: &Facts) -> Value {
    let is_plain = facts.classes.keys().any(|class| class.counts_plainly());
    let counts: &[_] = if is_plain { &["Plain solutions"] } else { &["COUNT2", "COUNT4", "COUNT8"] };
    let columns: Vec<_> = ["Class"].iter().chain(counts).chain(&WORK[..3]).copied().collect();
    let row = |(class, (work, sum)): (&Class, &(WorkSums, Totals))| {
        let Totals { count2, count4, count8, solutions } = *sum;
        let found: &[_] = if is_plain { &[solutions] } else { &[count2, count4, count8] };
        let found = found.iter().map(thousands);
        let row = std::iter::once(class.name().to_owned()).chain(found);
        Row(row.chain(work_cells(work).into_iter().take(3)).collect())
    };
    table("Classes", 1, &columns, facts.classes.iter().map(row))
}

fn hosts(facts: &Facts) -> Value {
    let columns = [["Machine", "Engines", "Processes", "Threads"], WORK].concat();
    let rows = facts.busiest_hosts().into_iter().map(|(name, host)| {
        let kernels = host.kernels.iter().cloned().collect::<Vec<_>>().join(", ");
        let row = [name.to_owned(), kernels, thousands(host.workers.len()), thousands(host.threads)];
        Row(row.into_iter().chain(work_cells(&host.work)).collect())
    });
    table("Machines", 2, &columns, rows)
}

fn kernels(facts: &Facts) -> Value {
    let columns: Vec<_> = ["Engine"].into_iter().chain(WORK).collect();
    let row =
        |(name, work): (&String, &WorkSums)| Row([vec![name.clone()], work_cells(work).into()].concat());
    table("Engines", 1, &columns, facts.kernels.iter().map(row))
}
