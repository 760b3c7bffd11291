//! Draws the view: runs, the run that is shown, workers, events.

use std::iter;

use nqueens_model::numbers;
use nqueens_model::operator::{Event, Progress, RunState, RunStatus, WallTime, Worker, WorkerStatus};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Paragraph, Row as TableRow, Table, TableState, Wrap};

use super::source::Command;
use super::view::{Row, View};
use crate::command::{status, workers};
use crate::output::{counted, harmless, percent, span, thousands};
use crate::progress::{conclusion, describe};

/// Lines of the run that is shown: title, bar, text.
const DETAIL: [u16; 3] = [1, 1, 5];

/// Lines of a warning, and of a question or an answer.
const ALARM: u16 = 3;
const ANSWER: u16 = 2;

const QUIET: Style = Style::new().add_modifier(Modifier::DIM);
const GOOD: Style = Style::new().fg(Color::Green);
const DOUBTFUL: Style = Style::new().fg(Color::Yellow);
const BAD: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
const TITLE: Style = Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD);
const HEAD: Style = Style::new().add_modifier(Modifier::UNDERLINED);

pub(super) fn draw(frame: &mut Frame, view: &View, with_colours: bool) {
    let lost = view.lost.as_ref().map(|reason| format!("out of date; trying again: {reason}"));
    let alarm = lost.or_else(|| view.snapshot.disk.clone());
    let events = events(view);
    let foot = footer(view);
    let alarm_lines = if alarm.is_some() { ALARM } else { 0 };
    let foot_lines = if view.notice.is_some() || view.question.is_some() { ANSWER } else { 1 };
    let detail_lines = DETAIL.iter().sum::<u16>();
    let rest = frame.area().height.saturating_sub(1 + alarm_lines + detail_lines + foot_lines);
    let [runs, workers] = heights(view, &events, Rect { height: rest, ..frame.area() });
    let lines = [1, alarm_lines, runs, detail_lines, workers].map(Constraint::Length);
    let lines = lines.into_iter().chain([Constraint::Fill(1), Constraint::Length(foot_lines)]);
    let [head, warning, runs, detail, workers, log, bottom] = Layout::vertical(lines).areas(frame.area());
    frame.render_widget(headline(view), head);
    frame.render_widget(wrapped(Text::styled(alarm.unwrap_or_default(), BAD)), warning);
    draw_runs(frame, runs, view);
    if let Some(run) = view.shown_run() {
        draw_detail(frame, detail, run);
    }
    draw_workers(frame, workers, view);
    frame.render_widget(wrapped(events), log);
    frame.render_widget(wrapped(foot), bottom);
    if !with_colours {
        frame.buffer_mut().content.iter_mut().for_each(|cell| cell.fg = Color::Reset);
    }
}

fn wrapped(text: Text<'_>) -> Paragraph<'_> {
    Paragraph::new(text).wrap(Wrap { trim: true })
}

/// Lines of the runs and of the workers; the events have the rest. A list gets what the others leave, or a fair part.
fn heights(view: &View, events: &Text, rest: Rect) -> [u16; 2] {
    let lines = |rows: usize| u16::try_from(rows + 1).unwrap_or(u16::MAX);
    let [runs, workers] = [view.snapshot.runs.len(), view.snapshot.workers.len()].map(lines);
    let width = usize::from(rest.width.max(1));
    let events = lines(events.lines.iter().skip(1).map(|event| event.width().div_ceil(width)).sum());
    let share = |wanted: u16, all: u16, parts: u16, others: u16| {
        wanted.min((all / parts).max(all.saturating_sub(others)))
    };
    let runs = share(runs, rest.height, 3, workers.saturating_add(events));
    [runs, share(workers, rest.height - runs, 2, events)]
}

/// Whom the picture is of, and how fast all of it goes.
fn headline(view: &View) -> Line<'_> {
    let text = if view.read_only {
        "  read-only".to_owned()
    } else {
        // Untrusted ones are listed, also those that are gone.
        let present = view.snapshot.workers.iter().filter(|worker| worker.present);
        let (workers, threads) = present.fold((0_u64, 0), |(workers, threads), worker| {
            (workers + 1, threads + u64::from(worker.about.threads))
        });
        let speeds = view.snapshot.runs.iter().filter_map(|run| Some(run.progress.speed?.states_per_s));
        let speed = speeds.reduce(|a, b| a + b).map(|speed| format!(", {}", numbers::speed(speed)));
        let speed = speed.unwrap_or_default();
        format!("  {}, {}{speed}", counted(workers, "worker"), counted(threads, "thread"))
    };
    Line::from(vec![Span::styled("nqueens ", TITLE), Span::raw(&*view.place), Span::raw(text)])
}

/// What keys do, what they are about to do, or the answer to them.
fn footer(view: &View) -> Text<'static> {
    match (&view.question, &view.notice) {
        (Some(command), _) => Text::styled(question(view, *command), TITLE),
        (None, Some(Ok(done))) => Text::styled(done.clone(), GOOD),
        (None, Some(Err(refused))) => Text::styled(refused.clone(), BAD),
        (None, None) if view.read_only => Text::styled("Up Down select  q quit", QUIET),
        (None, None) => {
            Text::styled("Up Down select  Esc newest run  p pause  r resume  d drain a worker  q quit", QUIET)
        }
    }
}

fn question(view: &View, command: Command) -> String {
    let subject = |id| {
        view.snapshot.runs.iter().find(|run| run.progress.run == id).map(|run| run.progress.plan.subject())
    };
    match command {
        Command::Pause(run) => format!(
            "Pause run {run}, {}? Workers finish the jobs they hold. y/n",
            subject(run).unwrap_or_default()
        ),
        Command::Resume(run) => format!("Resume run {run}, {}? y/n", subject(run).unwrap_or_default()),
        Command::Drain(worker) => {
            let found = view.snapshot.workers.iter().find(|known| known.about.id == worker);
            let name = found.map_or("", |worker| &worker.about.name);
            format!(
                "Drain worker {worker} {name}? It gets no more jobs, finishes or returns those it holds, and stops. y/n"
            )
        }
    }
}

/// Draws rows under their heads, scrolled to the selected one; the first head has their number.
fn draw_rows<'a, const N: usize>(
    frame: &mut Frame,
    area: Rect,
    heads: [&str; N],
    widths: [Constraint; N],
    rows: impl ExactSizeIterator<Item = TableRow<'a>>,
    selected: Option<usize>,
) {
    let mut heads = heads.map(str::to_owned);
    heads[0] = format!("{} {}", thousands(rows.len()), heads[0]);
    let head = TableRow::new(heads).style(HEAD);
    let table = Table::new(rows, widths).header(head).row_highlight_style(Modifier::REVERSED);
    frame.render_stateful_widget(table, area, &mut TableState::new().with_selected(selected));
}

fn draw_runs(frame: &mut Frame, area: Rect, view: &View) {
    let runs = &view.snapshot.runs;
    let selected = runs.iter().position(|run| view.selected() == Some(Row::Run(run.progress.run)));
    let rows = runs.iter().map(run_row);
    let heads = ["RUNS", "N", "PLAN", "STATE", "DONE", "TIME LEFT", "TOTAL"];
    // Where there is room for it, "waiting for workers".
    let left = if area.width < 90 { 12 } else { 19 };
    let [id, n, plan, state, done, left] = [12, 2, 7, 9, 7, left].map(Constraint::Length);
    draw_rows(frame, area, heads, [id, n, plan, state, done, left, Constraint::Fill(1)], rows, selected);
}

fn run_row(run: &RunStatus) -> TableRow<'static> {
    let mut cells = status::row(run);
    cells[4] = percent(run.progress.share_done);
    let is_stopped = run.progress.quarantined > 0;
    TableRow::new(cells).style(match run.progress.state {
        RunState::Active if !is_stopped => GOOD,
        RunState::Planning | RunState::Paused => DOUBTFUL,
        RunState::Active | RunState::Failed => BAD,
        RunState::Done => Style::new(),
        RunState::Cancelled => QUIET,
    })
}

fn draw_workers(frame: &mut Frame, area: Rect, view: &View) {
    let workers = &view.snapshot.workers;
    let selected = workers.iter().position(|worker| view.selected() == Some(Row::Worker(worker.about.id)));
    let rows = workers.iter().map(worker_row);
    let heads = ["WORKERS", "NAME", "KERNEL", "JOBS", "PACE", "SILENT", "STATE"];
    let [id, kernel, jobs, pace, silent, state] = [11, 9, 5, 15, 10, 9].map(Constraint::Length);
    draw_rows(
        frame,
        area,
        heads,
        [id, Constraint::Fill(1), kernel, jobs, pace, silent, state],
        rows,
        selected,
    );
}

fn worker_row(worker: &WorkerStatus) -> TableRow<'static> {
    let style = match worker {
        WorkerStatus { about: Worker { distrusted: Some(_), .. }, .. }
        | WorkerStatus { present: false, .. } => BAD,
        WorkerStatus { draining: true, .. } => DOUBTFUL,
        WorkerStatus { leases: 0, .. } => QUIET,
        _ => Style::new(),
    };
    let cells = workers::row(worker);
    TableRow::new([0, 1, 3, 4, 6, 7, 9].map(|at| harmless(&cells[at]))).style(style)
}

/// The events under their head, a line each.
fn events(view: &View) -> Text<'static> {
    let head = format!("{} EVENTS", thousands(view.snapshot.events.len()));
    let head = Line::styled(head, HEAD);
    let line = |event: &Event| {
        let about = event.run.map_or_else(String::new, |run| format!("run {run}: "));
        let text = format!("{} ago: {about}{}", since(event.at, view), harmless(&event.text));
        Line::styled(text, if event.kind.is_problem() { BAD } else { Style::new() })
    };
    iter::once(head).chain(view.snapshot.events.iter().map(line)).collect()
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn since(at: WallTime, view: &View) -> String {
    span(view.snapshot.at.saturating_sub(at).max(0) as f64 / 1e3)
}

fn draw_detail(frame: &mut Frame, area: Rect, run: &RunStatus) {
    let [top, bar, text] = Layout::vertical(DETAIL.map(Constraint::Length)).areas(area);
    let plan = run.progress.plan;
    let title = format!("Run {}, {}, plan {}", run.progress.run, plan.subject(), plan.kind());
    frame.render_widget(Line::styled(title, TITLE), top);
    frame.render_widget(jobs_bar(&run.progress, bar.width), bar);
    let facts = conclusion(run).unwrap_or_else(|| describe(&run.progress));
    let took = run.took().map(|took| format!("took {}", span(took.as_secs_f64())));
    let more = orbits(run).into_iter().chain(took).chain(status::concerns(run)).map(Line::raw);
    let lines = [Line::raw(facts), legend(&run.progress)].into_iter().chain(more);
    frame.render_widget(wrapped(lines.collect()), text);
}

/// The jobs by state, with the sign and the name of each.
fn states(progress: &Progress) -> [(u32, char, &'static str, Style); 4] {
    let Progress { jobs, done, leased, quarantined, .. } = *progress;
    [
        (done, '█', "done", GOOD),
        (leased, '▒', "leased", DOUBTFUL),
        (quarantined, '!', "in quarantine", BAD),
        (jobs.saturating_sub(done).saturating_sub(leased).saturating_sub(quarantined), '·', "waiting", QUIET),
    ]
}

/// The jobs as a bar, with at least one sign for each state that there is.
fn jobs_bar(progress: &Progress, width: u16) -> Line<'static> {
    let (width, jobs) = (u64::from(width), u64::from(progress.jobs.max(1)));
    let mut free = width;
    let mut spans = Vec::new();
    for (count, sign, _, style) in states(progress) {
        let wanted = (u64::from(count) * width / jobs).max(u64::from(count > 0));
        let columns = wanted.min(free);
        free -= columns;
        spans.push(Span::styled((0..columns).map(|_| sign).collect::<String>(), style));
    }
    Line::from(spans)
}

fn legend(progress: &Progress) -> Line<'static> {
    let states = states(progress).into_iter().filter(|(count, ..)| *count > 0);
    let spans = states.flat_map(|(count, sign, name, style)| {
        [Span::styled(sign.to_string(), style), Span::raw(format!(" {} {name}  ", thousands(count)))]
    });
    spans.collect()
}

/// The solutions by symmetry, once they are counted.
fn orbits(run: &RunStatus) -> Option<String> {
    let counts = run.outcome?.counts(run.progress.plan.n());
    let (_total, orbits) = counts.split_last()?;
    let told = orbits.iter().map(|(name, count)| format!("{name} {}", thousands(count)));
    (!orbits.is_empty()).then(|| told.collect::<Vec<_>>().join(", "))
}
