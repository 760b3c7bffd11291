//! The selected run: its jobs by state, what there is to say of it, its speed over time.

use nqueens_model::operator::{Interval, Outcome, Progress, RunDetail, RunStatus, WallTime, span};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Paragraph, Sparkline, Wrap};

use super::text::wrapped;
use super::{Palette, QUIET, lines};
use crate::command::watch::app::App;
use crate::output::{clock, percent, quantity, thousands};
use crate::progress::describe;

/// Lines of each fact at most.
const FACT_LINES: usize = 2;

pub(super) fn selected(frame: &mut Frame, area: Rect, app: &App, palette: Palette) {
    let Some(run) = app.selected_run() else { return };
    let progress = &run.progress;
    let states = jobs_line(progress, app, palette);
    let states_lines = if states.width() > usize::from(area.width) { 2 } else { 1 };
    let facts: Vec<_> =
        facts(run, app).iter().flat_map(|fact| wrapped(fact, area.width, FACT_LINES)).collect();
    let rows = [1, 1, states_lines, lines(facts.len())].map(Constraint::Length);
    let rows = rows.into_iter().chain([Constraint::Fill(1)]);
    let [top, bar, jobs, told, speeds] = Layout::vertical(rows).areas(area);
    let text = format!(" Run {}, {}, plan {} ", progress.run, run.plan.subject(), run.plan.kind());
    frame.render_widget(Line::styled(text, palette.title(false)), top);
    frame.render_widget(jobs_bar(progress, bar.width, palette), bar);
    frame.render_widget(Paragraph::new(states).wrap(Wrap { trim: true }), jobs);
    frame.render_widget(Text::raw(facts.join("\n")), told);
    speed(frame, speeds, app, run, palette);
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

/// The jobs as a bar. What there is any of at all, can be seen.
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

/// The same in numbers. Of the leased jobs, those that are being counted are told apart: the others wait in queues of workers.
fn jobs_line(progress: &Progress, app: &App, palette: Palette) -> Line<'static> {
    let being_counted = app.detail(progress.run).and_then(|detail| detail.being_counted);
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

/// What there is to say of a run, by topic: its counts and what they took; or what is expected, and when.
fn facts(run: &RunStatus, app: &App) -> Vec<String> {
    let progress = &run.progress;
    let cost = app.detail(progress.run).and_then(RunDetail::core_hours);
    let cost = cost.map(|hours| format!("{} core-hours", quantity(hours)));
    let took = || run.took().map(|took| format!("took {}", span(took.as_secs_f64())));
    let facts = match (run.outcome.as_ref().zip(run.standing()), &run.reason) {
        (Some((outcome, standing)), _) => vec![
            format!("TOTAL {}, {standing}", thousands(outcome.total)),
            orbits(run, outcome),
            listed([took(), cost]),
        ],
        (None, Some(reason)) => vec![format!("failed: {reason}"), listed([took(), cost])],
        (None, None) if progress.planned.is_some() => vec![describe(progress)],
        (None, None) if !progress.state.is_open() => vec!["no TOTAL: cancelled".to_owned(), listed([cost])],
        (None, None) => {
            let total = progress.estimated_total.map_or_else(|| "?".to_owned(), Interval::describe_count);
            vec![times(run, app), listed([Some(format!("TOTAL about {total}")), cost])]
        }
    };
    facts.into_iter().filter(|fact| !fact.is_empty()).collect()
}

fn listed<const N: usize>(parts: [Option<String>; N]) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The solutions by symmetry; nothing of a variant, whose solutions are not sorted.
fn orbits(run: &RunStatus, outcome: &Outcome) -> String {
    if run.plan.variant().is_some() {
        return String::new();
    }
    let orbits = outcome.totals;
    let unique = orbits.unique(run.progress.n).ok();
    listed([
        Some(format!("COUNT2 {}", thousands(orbits.count2))),
        Some(format!("COUNT4 {}", thousands(orbits.count4))),
        Some(format!("COUNT8 {}", thousands(orbits.count8))),
        unique.map(|unique| format!("UNIQUE {}", thousands(unique))),
    ])
}

/// How long a run has been counted, how long it will be, and when it will end.
fn times(run: &RunStatus, app: &App) -> String {
    let now = app.picture.at;
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let since = |at: WallTime| span(now.saturating_sub(at).max(0) as f64 / 1e3);
    let elapsed = match run.started_at {
        Some(started) => format!("elapsed {}", since(started)),
        None => format!("not begun, submitted {} ago", since(run.created_at)),
    };
    let Some(left) = run.progress.time_left_s else { return format!("{elapsed}, time left unknown") };
    #[expect(clippy::cast_possible_truncation, reason = "saturates")]
    let at = |seconds: f64| clock(now.saturating_add((1e3 * seconds) as i64), now, &app.zone);
    let end = format!("ends {} ({}..{})", at(left.value), at(left.low), at(left.high));
    format!("{elapsed}, {} left, {end}", left.describe_time())
}

/// The speed now beside the speed over time, a column a picture.
fn speed(frame: &mut Frame, area: Rect, app: &App, run: &RunStatus, palette: Palette) {
    let progress = &run.progress;
    let [now, history] = Layout::horizontal([Constraint::Length(20), Constraint::Fill(1)]).areas(area);
    let text = match progress.speed {
        Some(speed) => format!("{:.2e} states/s\n{:.1} threads", speed.states_per_s, speed.threads),
        None if !progress.state.is_open() => String::new(),
        None if app.read_only => "speed: unknown".to_owned(),
        None if progress.leased > 0 => "not measured yet".to_owned(),
        None => "no worker counts it".to_owned(),
    };
    frame.render_widget(Paragraph::new(text), now);
    let speeds = app.speeds(progress.run, history.width.into());
    // New ones come in from the right.
    let lead = usize::from(history.width) - speeds.len();
    let speeds = std::iter::repeat_n(0, lead).chain(speeds);
    frame.render_widget(Sparkline::default().data(speeds).style(palette.good()), history);
}
