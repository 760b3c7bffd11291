//! The lists: runs, workers, events.

use nqueens_model::operator::{RunState, RunStatus, span};
use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::widgets::{Row, Table, TableState};

use super::text::{shortened, wrapped};
use super::{Palette, QUIET, SELECTED, lines, title, under_title};
use crate::command::watch::app::{App, Pane, about};
use crate::command::watch::picture::WorkerView;
use crate::output::{percent, thousands};
use crate::progress::describe_planning;

/// From this width on, workers are shown with everything that is known of them.
const WIDE: u16 = 100;

/// Columns of a worker's name at most, however wide the terminal is: its numbers stand beside it.
const NAME_MAX: u16 = 32;

/// Columns of an event's age, and of what it is about.
const AGE: u16 = 10;
const ABOUT: u16 = 16;

/// Lines of an event's text at most.
const EVENT_LINES: usize = 3;

pub(super) fn runs(frame: &mut Frame, area: Rect, app: &App, palette: Palette) {
    let [top, rest] = under_title(area);
    frame.render_widget(title(app, Pane::Runs, "Runs", app.picture.runs.len(), palette), top);
    let rows = app.runs().into_iter().map(|run| run_row(run, palette));
    let widths = [12, 2, 7, 9, 7, 9].map(Constraint::Length).into_iter().chain([Constraint::Fill(1)]);
    let table =
        Table::new(rows, widths).header(head(["RUN", "N", "PLAN", "STATE", "DONE", "TIME LEFT", "TOTAL"]));
    rows_of(frame, rest, table, app, Pane::Runs);
}

fn run_row(run: &RunStatus, palette: Palette) -> Row<'static> {
    let progress = &run.progress;
    let total = match (&run.outcome, &run.reason) {
        (Some(outcome), _) => thousands(outcome.total),
        (None, Some(reason)) => reason.clone(),
        (None, None) if progress.quarantined > 0 => {
            format!("{} jobs in quarantine", thousands(progress.quarantined))
        }
        (None, None) if progress.planned.is_some() => describe_planning(progress),
        (None, None) => progress
            .estimated_total
            .map_or_else(|| "-".to_owned(), |total| format!("about {:.4e}", total.value)),
    };
    let row = Row::new([
        progress.run.to_string(),
        progress.n.to_string(),
        run.plan.kind().to_string(),
        progress.state.name().to_owned(),
        percent(progress.share_done),
        progress.time_left_s.map_or_else(|| "-".to_owned(), |left| span(left.value)),
        total,
    ]);
    row.style(match progress.state {
        RunState::Active if progress.quarantined > 0 => palette.bad(),
        RunState::Active => palette.good(),
        RunState::Planning | RunState::Paused => palette.doubtful(),
        RunState::Failed => palette.bad(),
        RunState::Done => Style::new(),
        RunState::Cancelled => QUIET,
    })
}

pub(super) fn workers(frame: &mut Frame, area: Rect, app: &App, palette: Palette) {
    let [top, rest] = under_title(area);
    frame.render_widget(title(app, Pane::Workers, "Workers", app.picture.workers.len(), palette), top);
    let wide = area.width >= WIDE;
    let all = app.picture.pace();
    let mut heads = vec!["WORKER", "NAME", "KERNEL", "THREADS", "PACE", "SHARE", "JOBS", "SEEN", "STATE"];
    let mut widths = vec![6, 0, 10, 7, 8, 7, 5, 7, 10];
    if wide {
        heads.insert(7, "RESULTS");
        widths.insert(7, 11);
    }
    // The names have what the others leave, and a space after each column.
    let taken = widths.iter().sum::<u16>() + lines(widths.len()) - 1;
    widths[1] = area.width.saturating_sub(taken).min(NAME_MAX);
    let name = usize::from(widths[1]);
    let rows = app.workers().into_iter().map(|worker| worker_row(worker, all, (name, wide), palette));
    let table = Table::new(rows, widths.into_iter().map(Constraint::Length)).header(head(heads));
    rows_of(frame, rest, table, app, Pane::Workers);
}

fn worker_row(worker: &WorkerView, all: f64, (name, wide): (usize, bool), palette: Palette) -> Row<'static> {
    let live = worker.live.as_ref();
    let pace = live.and_then(|live| live.states_per_s);
    let unknown = || "-".to_owned();
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let seen = worker.silent_ms().map(|silent| silent as f64 / 1e3);
    let mut cells = vec![
        worker.id.to_string(),
        shortened(&worker.name, name),
        worker.kernel.clone(),
        worker.threads.to_string(),
        pace.map_or_else(unknown, |pace| format!("{pace:.2e}")),
        pace.filter(|_| all > 0.0).map_or_else(unknown, |pace| format!("{:.1} %", 100.0 * pace / all)),
        live.map_or_else(unknown, |live| live.leases.to_string()),
        seen.map_or_else(unknown, span),
        worker.state().to_owned(),
    ];
    if wide {
        cells.insert(7, live.map_or_else(unknown, |live| thousands(live.accepted)));
    }
    Row::new(cells).style(match live {
        Some(live) if live.distrusted.is_some() => palette.bad(),
        Some(live) if live.draining => palette.doubtful(),
        _ => Style::new(),
    })
}

pub(super) fn events(frame: &mut Frame, area: Rect, app: &App, palette: Palette) {
    let [top, rest] = under_title(area);
    frame.render_widget(title(app, Pane::Events, "Events", app.picture.events.len(), palette), top);
    // A row that is higher than the list would not be seen.
    let lines_max = EVENT_LINES.min(rest.height.into());
    let rows = app.events().into_iter().map(|event| {
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let age = app.picture.at.saturating_sub(event.at).max(0) as f64 / 1e3;
        let style = if event.kind.is_problem() { palette.bad() } else { Style::new() };
        let text = wrapped(&event.text, area.width.saturating_sub(AGE + ABOUT + 2), lines_max);
        let height = lines(text.len());
        Row::new([format!("{} ago", span(age)), about(event), text.join("\n")]).height(height).style(style)
    });
    let widths = [Constraint::Length(AGE), Constraint::Length(ABOUT), Constraint::Fill(1)];
    rows_of(frame, rest, Table::new(rows, widths), app, Pane::Events);
}

fn head<'a>(names: impl IntoIterator<Item = &'a str>) -> Row<'a> {
    Row::new(names).style(Style::new().add_modifier(Modifier::UNDERLINED))
}

/// Draws the rows, scrolled to where the selected one can be seen; it is marked in the list in focus.
fn rows_of(frame: &mut Frame, area: Rect, table: Table, app: &App, pane: Pane) {
    let table = if app.focus == pane { table.row_highlight_style(SELECTED) } else { table };
    let mut state = TableState::new().with_selected(app.position(pane));
    frame.render_stateful_widget(table, area, &mut state);
}
