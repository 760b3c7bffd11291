//! The selected run: its jobs by state, its estimates, its speed over time.

use nqueens_model::operator::{Interval, Progress, RunStatus, span};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Paragraph, Sparkline};

use super::text::wrapped;
use super::{Palette, QUIET, lines};
use crate::command::watch::app::App;
use crate::output::thousands;
use crate::progress::describe;

/// Lines of the estimates, or of why a run failed, at most.
const PROSPECTS_LINES: usize = 2;

pub(super) fn selected(frame: &mut Frame, area: Rect, app: &App, palette: Palette) {
    let Some(run) = app.selected_run() else { return };
    let progress = &run.progress;
    let prospects = wrapped(&prospects(run), area.width, PROSPECTS_LINES);
    let rows =
        [1, 1, 1, lines(prospects.len())].map(Constraint::Length).into_iter().chain([Constraint::Fill(1)]);
    let [top, bar, jobs, estimates, speeds] = Layout::vertical(rows).areas(area);
    let text = format!(" Run {}, {}, plan {} ", progress.run, run.plan.subject(), run.plan.kind());
    frame.render_widget(Line::styled(text, palette.title(false)), top);
    frame.render_widget(jobs_bar(progress, bar.width, palette), bar);
    frame.render_widget(jobs_line(progress, palette), jobs);
    frame.render_widget(Text::raw(prospects.join("\n")), estimates);
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

fn jobs_line(progress: &Progress, palette: Palette) -> Line<'static> {
    let mut spans = vec![Span::raw(format!("{:.1} %", 100.0 * progress.share_done))];
    for (count, sign, name, style) in states(progress, palette) {
        spans.push(Span::raw(", "));
        spans.push(Span::styled(sign.to_string(), style));
        spans.push(Span::raw(format!(" {} {name}", thousands(count))));
    }
    Line::from(spans)
}

/// The total of the run, or its estimate and the time left.
fn prospects(run: &RunStatus) -> String {
    match (run.outcome.zip(run.standing()), &run.reason) {
        (Some((outcome, standing)), _) => format!("TOTAL {}, {standing}", thousands(outcome.total)),
        (None, Some(reason)) => format!("failed: {reason}"),
        (None, None) if run.progress.planned.is_some() => describe(&run.progress),
        (None, None) if !run.progress.state.is_open() => "no TOTAL: cancelled".to_owned(),
        (None, None) => {
            let left = run.progress.time_left_s.map_or_else(|| "?".to_owned(), Interval::describe_time);
            let total = run.progress.estimated_total;
            let total = total.map_or_else(|| "?".to_owned(), Interval::describe_count);
            format!("{left} left, TOTAL about {total}")
        }
    }
}

/// The speed now beside the speed over time, a column a picture.
fn speed(frame: &mut Frame, area: Rect, app: &App, run: &RunStatus, palette: Palette) {
    let progress = &run.progress;
    let [now, history] = Layout::horizontal([Constraint::Length(20), Constraint::Fill(1)]).areas(area);
    let text = match progress.speed {
        Some(speed) => format!("{:.2e} states/s\n{:.1} threads", speed.states_per_s, speed.threads),
        None if app.read_only => "speed: unknown".to_owned(),
        None if !progress.state.is_open() => {
            run.took().map_or_else(String::new, |took| format!("took {}", span(took.as_secs_f64())))
        }
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
