//! Draws the view: runs, the run that is shown, workers, events.

use nqueens_model::numbers;
use nqueens_model::operator::{
    Event, Interval, Moment, Outcome, Progress, RunDetail, RunState, RunStatus, WallTime, WorkerStatus,
};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Paragraph, Row as TableRow, Sparkline, Table, TableState, Wrap};

use super::source::Command;
use super::view::{Row, View};
use crate::output::{clock, counted, harmless, percent, quantity, span, thousands};
use crate::progress::{describe, describe_planning};

/// Lines of the run that is shown: title, bar, text, curve.
const DETAIL: [u16; 4] = [1, 1, 5, 1];

/// Lines of a warning, and of a question or an answer.
const ALARM: u16 = 3;
const ANSWER: u16 = 2;

const QUIET: Style = Style::new().add_modifier(Modifier::DIM);

/// Colours, unless they are not wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Palette {
    pub(super) colours: bool,
}

impl Palette {
    fn colour(self, colour: Color) -> Style {
        if self.colours { Style::new().fg(colour) } else { Style::new() }
    }

    fn good(self) -> Style {
        self.colour(Color::Green)
    }

    fn doubtful(self) -> Style {
        self.colour(Color::Yellow)
    }

    fn bad(self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD)
    }

    fn title(self) -> Style {
        self.colour(Color::Cyan).add_modifier(Modifier::BOLD)
    }
}

pub(super) fn draw(frame: &mut Frame, view: &View, palette: Palette) {
    let lost = view.lost.as_ref().map(|reason| format!("out of date; trying again: {reason}"));
    let alarm = lost.or_else(|| view.snapshot.disk.clone());
    let events = events(view, palette);
    let foot = footer(view, palette);
    let alarm_lines = if alarm.is_some() { ALARM } else { 0 };
    let foot_lines = if view.notice.is_some() || view.question.is_some() { ANSWER } else { 1 };
    let detail_lines = DETAIL.iter().sum::<u16>();
    let rest = frame.area().height.saturating_sub(1 + alarm_lines + detail_lines + foot_lines);
    let [runs, workers] = heights(view, &events, Rect { height: rest, ..frame.area() });
    let lines = [1, alarm_lines, runs, detail_lines, workers].map(Constraint::Length);
    let lines = lines.into_iter().chain([Constraint::Fill(1), Constraint::Length(foot_lines)]);
    let [head, warning, runs, detail, workers, log, bottom] = Layout::vertical(lines).areas(frame.area());
    frame.render_widget(headline(view, palette), head);
    frame.render_widget(wrapped(Text::styled(alarm.unwrap_or_default(), palette.bad())), warning);
    draw_runs(frame, runs, view, palette);
    if let Some(run) = view.shown_run() {
        draw_detail(frame, detail, view, run, palette);
    }
    draw_workers(frame, workers, view, palette);
    frame.render_widget(wrapped(events), log);
    frame.render_widget(wrapped(foot), bottom);
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
fn headline(view: &View, palette: Palette) -> Line<'_> {
    let text = if view.read_only {
        "  read-only".to_owned()
    } else {
        // Untrusted ones are listed, also those that are gone.
        let present = view.snapshot.workers.iter().filter(|worker| worker.present);
        let (workers, threads) = present.fold((0_u64, 0), |(workers, threads), worker| {
            (workers + 1, threads + u64::from(worker.threads))
        });
        let speeds = view.snapshot.runs.iter().filter_map(|run| Some(run.progress.speed?.states_per_s));
        let speed = speeds.reduce(|a, b| a + b).map(|speed| format!(", {}", numbers::speed(speed)));
        let speed = speed.unwrap_or_default();
        format!("  {}, {}{speed}", counted(workers, "worker"), counted(threads, "thread"))
    };
    Line::from(vec![Span::styled("nqueens ", palette.title()), Span::raw(&*view.place), Span::raw(text)])
}

/// What keys do, what they are about to do, or the answer to them.
fn footer(view: &View, palette: Palette) -> Text<'static> {
    match (&view.question, &view.notice) {
        (Some(command), _) => Text::styled(question(view, *command), palette.title()),
        (None, Some(Ok(done))) => Text::styled(done.clone(), palette.good()),
        (None, Some(Err(refused))) => Text::styled(refused.clone(), palette.bad()),
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
            let found = view.snapshot.workers.iter().find(|known| known.id == worker);
            let name = found.map_or("", |worker| &worker.name);
            format!(
                "Drain worker {worker} {name}? It gets no more jobs, finishes or returns those it holds, and stops. y/n"
            )
        }
    }
}

/// Draws rows under their heads, scrolled to the selected one.
fn draw_rows<const N: usize>(
    frame: &mut Frame,
    area: Rect,
    heads: [String; N],
    widths: [Constraint; N],
    rows: Vec<TableRow>,
    selected: Option<usize>,
) {
    let head = TableRow::new(heads).style(Style::new().add_modifier(Modifier::UNDERLINED));
    let table = Table::new(rows, widths).header(head).row_highlight_style(Modifier::REVERSED);
    frame.render_stateful_widget(table, area, &mut TableState::new().with_selected(selected));
}

fn heads<const N: usize>(first: &str, rows: usize, others: [&str; N]) -> [String; N] {
    let mut heads = others.map(str::to_owned);
    heads[0] = format!("{} {first}", thousands(rows));
    heads
}

fn draw_runs(frame: &mut Frame, area: Rect, view: &View, palette: Palette) {
    let runs = &view.snapshot.runs;
    let selected = runs.iter().position(|run| view.selected() == Some(Row::Run(run.progress.run)));
    let rows = runs.iter().map(|run| run_row(run, palette)).collect();
    let heads = heads("RUNS", runs.len(), ["", "N", "PLAN", "STATE", "DONE", "TIME LEFT", "TOTAL"]);
    let [id, n, plan, state, done, left] = [12, 2, 7, 9, 7, 12].map(Constraint::Length);
    draw_rows(frame, area, heads, [id, n, plan, state, done, left, Constraint::Fill(1)], rows, selected);
}

fn run_row(run: &RunStatus, palette: Palette) -> TableRow<'static> {
    let progress = &run.progress;
    let total = match (&run.outcome, &run.reason) {
        (Some(outcome), _) => thousands(outcome.total),
        (None, Some(reason)) => harmless(reason),
        (None, None) if progress.quarantined > 0 => {
            format!("{} jobs in quarantine", thousands(progress.quarantined))
        }
        (None, None) if progress.planned.is_some() => describe_planning(progress),
        (None, None) => progress
            .estimated_total
            .map_or_else(|| "-".to_owned(), |total| format!("about {:.4e}", total.value)),
    };
    let row = TableRow::new([
        progress.run.to_string(),
        progress.plan.n().to_string(),
        run.progress.plan.kind().to_string(),
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

fn draw_workers(frame: &mut Frame, area: Rect, view: &View, palette: Palette) {
    let workers = &view.snapshot.workers;
    let selected = workers.iter().position(|worker| view.selected() == Some(Row::Worker(worker.id)));
    let rows = workers.iter().map(|worker| worker_row(worker, palette)).collect();
    let heads = heads("WORKERS", workers.len(), ["", "KERNEL", "THREADS", "PACE", "JOBS", "STATE"]);
    let [kernel, threads, pace, jobs, state] = [10, 7, 15, 5, 15].map(Constraint::Length);
    draw_rows(frame, area, heads, [Constraint::Fill(1), kernel, threads, pace, jobs, state], rows, selected);
}

fn worker_row(worker: &WorkerStatus, palette: Palette) -> TableRow<'static> {
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let (state, style) = match worker {
        WorkerStatus { distrusted: Some(_), .. } => ("untrusted".to_owned(), palette.bad()),
        WorkerStatus { present: false, silent_ms, .. } => {
            (format!("silent {}", span(*silent_ms as f64 / 1e3)), palette.bad())
        }
        WorkerStatus { draining: true, .. } => ("draining".to_owned(), palette.doubtful()),
        WorkerStatus { leases: 0, .. } => ("idle".to_owned(), QUIET),
        _ => ("counting".to_owned(), Style::new()),
    };
    let row = TableRow::new([
        format!("{} {}", worker.id, harmless(&worker.name)),
        worker.kernels.first().cloned().unwrap_or_default(),
        worker.threads.to_string(),
        worker.states_per_s.map_or_else(|| "-".to_owned(), numbers::speed),
        thousands(worker.leases),
        state,
    ]);
    row.style(style)
}

/// The events under their head, a line each.
fn events(view: &View, palette: Palette) -> Text<'static> {
    let head = format!("{} EVENTS", thousands(view.snapshot.events.len()));
    let head = Line::styled(head, Style::new().add_modifier(Modifier::UNDERLINED));
    let line = |event: &Event| {
        let about = event.run.map_or_else(String::new, |run| format!("run {run}: "));
        let text = format!("{} ago: {about}{}", since(event.at, view), harmless(&event.text));
        Line::styled(text, if event.kind.is_problem() { palette.bad() } else { Style::new() })
    };
    std::iter::once(head).chain(view.snapshot.events.iter().map(line)).collect()
}

/// The time since a moment.
#[expect(clippy::cast_precision_loss, reason = "for people")]
fn since(at: WallTime, view: &View) -> String {
    span(view.snapshot.at.saturating_sub(at).max(0) as f64 / 1e3)
}

fn draw_detail(frame: &mut Frame, area: Rect, view: &View, run: &RunStatus, palette: Palette) {
    let [top, bar, text, curve] = Layout::vertical(DETAIL.map(Constraint::Length)).areas(area);
    let title = format!(
        "Run {}, {}, plan {}",
        run.progress.run,
        run.progress.plan.subject(),
        run.progress.plan.kind()
    );
    frame.render_widget(Line::styled(title, palette.title()), top);
    frame.render_widget(jobs_bar(&run.progress, bar.width, palette), bar);
    let mut lines = vec![jobs_line(&run.progress, view.detail(), palette)];
    lines.extend(facts(run, view).into_iter().filter(|fact| !fact.is_empty()).map(Line::raw));
    frame.render_widget(wrapped(Text::from(lines)), text);
    let speeds = speeds(view.detail(), curve.width.into());
    // New ones come in from the right.
    let lead = usize::from(curve.width) - speeds.len();
    let speeds = std::iter::repeat_n(0, lead).chain(speeds);
    frame.render_widget(Sparkline::default().data(speeds).style(palette.good()), curve);
}

/// The jobs by state, with the sign and the name of each.
fn states(progress: &Progress, palette: Palette) -> [(u32, char, &'static str, Style); 4] {
    let Progress { jobs, done, leased, quarantined, .. } = *progress;
    [
        (done, '█', "done", palette.good()),
        (leased, '▒', "leased", palette.doubtful()),
        (quarantined, '!', "in quarantine", palette.bad()),
        (jobs.saturating_sub(done).saturating_sub(leased).saturating_sub(quarantined), '·', "waiting", QUIET),
    ]
}

/// The jobs as a bar, with at least one sign for each state that there is.
fn jobs_bar(progress: &Progress, width: u16, palette: Palette) -> Line<'static> {
    let (width, jobs) = (u64::from(width), u64::from(progress.jobs.max(1)));
    let mut free = width;
    let mut spans = Vec::new();
    for (count, sign, _, style) in states(progress, palette) {
        let wanted = (u64::from(count) * width / jobs).max(u64::from(count > 0));
        let columns = wanted.min(free);
        free -= columns;
        spans.push(Span::styled((0..columns).map(|_| sign).collect::<String>(), style));
    }
    Line::from(spans)
}

/// The same in numbers. Leased jobs that are not being counted wait in the queues of workers.
fn jobs_line(progress: &Progress, detail: Option<&RunDetail>, palette: Palette) -> Line<'static> {
    let being_counted = detail.and_then(|detail| detail.being_counted);
    let mut spans = vec![Span::raw(percent(progress.share_done))];
    for (at, (count, sign, name, style)) in states(progress, palette).into_iter().enumerate() {
        if at > 0 && count == 0 {
            continue;
        }
        spans.push(Span::raw(", "));
        spans.push(Span::styled(sign.to_string(), style));
        spans.push(Span::raw(format!(" {} {name}", thousands(count))));
        if let Some(counted) = being_counted.filter(|_| name == "leased") {
            spans.push(Span::raw(format!(" ({} being counted)", thousands(counted.min(count)))));
        }
    }
    Line::from(spans)
}

/// The run by topic: its counts and what they took; or what is expected, and when.
fn facts(run: &RunStatus, view: &View) -> Vec<String> {
    let progress = &run.progress;
    let cost = view.detail().and_then(RunDetail::core_hours);
    let cost = cost.map(|hours| format!("{} core-hours", quantity(hours)));
    let took = || run.took().map(|took| format!("took {}", span(took.as_secs_f64())));
    match (run.outcome.as_ref().zip(run.standing()), &run.reason) {
        (Some((outcome, standing)), _) => vec![
            format!("TOTAL {}, {standing}", thousands(outcome.total)),
            orbits(run, outcome),
            listed([took(), cost]),
        ],
        (None, Some(reason)) => vec![format!("failed: {}", harmless(reason)), listed([took(), cost])],
        (None, None) if progress.planned.is_some() => vec![describe(progress)],
        (None, None) if !progress.state.is_open() => vec!["no TOTAL: cancelled".to_owned(), listed([cost])],
        (None, None) => {
            let total = progress.estimated_total.map_or_else(|| "?".to_owned(), Interval::describe_count);
            vec![times(run, view), listed([Some(format!("TOTAL about {total}")), cost]), speed(run, view)]
        }
    }
}

fn listed<const N: usize>(parts: [Option<String>; N]) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The solutions by symmetry; nothing where cells are blocked, for they are not sorted.
fn orbits(run: &RunStatus, outcome: &Outcome) -> String {
    if run.progress.plan.cells().is_some() {
        return String::new();
    }
    let orbits = outcome.totals;
    let unique = orbits.unique(run.progress.plan.n()).ok();
    listed([
        Some(format!("COUNT2 {}", thousands(orbits.count2))),
        Some(format!("COUNT4 {}", thousands(orbits.count4))),
        Some(format!("COUNT8 {}", thousands(orbits.count8))),
        unique.map(|unique| format!("UNIQUE {}", thousands(unique))),
    ])
}

/// How long a run has been counted, how long it will be, and when it will end.
fn times(run: &RunStatus, view: &View) -> String {
    let now = view.snapshot.at;
    let elapsed = match run.started_at {
        Some(started) => format!("elapsed {}", since(started, view)),
        None => format!("not begun, submitted {} ago", since(run.created_at, view)),
    };
    let Some(left) = run.progress.time_left_s else { return format!("{elapsed}, time left unknown") };
    #[expect(clippy::cast_possible_truncation, reason = "saturates")]
    let at = |seconds: f64| clock(now.saturating_add((1e3 * seconds) as i64), now, &view.zone);
    let end = format!("ends {} ({}..{})", at(left.value), at(left.low), at(left.high));
    format!("{elapsed}, {} left, {end}", left.describe_time())
}

fn speed(run: &RunStatus, view: &View) -> String {
    match run.progress.speed {
        Some(speed) => format!("{} on {:.1} threads", numbers::speed(speed.states_per_s), speed.threads),
        None if view.read_only => "speed unknown".to_owned(),
        None if run.progress.leased > 0 => "speed not measured yet".to_owned(),
        None => "no worker counts it".to_owned(),
    }
}

/// The speeds of a run since it began, in up to so many columns: means of some moments each.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "for a picture"
)]
fn speeds(detail: Option<&RunDetail>, columns: usize) -> Vec<u64> {
    let moments = detail.map_or(&[][..], |detail| &detail.moments);
    let each = moments.len().div_ceil(columns.max(1)).max(1);
    let mean = |some: &[Moment]| {
        let sum: f64 = some.iter().map(|moment| moment.states_per_s).sum();
        (sum / some.len() as f64) as u64
    };
    moments.chunks(each).map(mean).collect()
}
