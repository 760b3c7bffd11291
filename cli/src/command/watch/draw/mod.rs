//! Draws the picture, whatever the size of the terminal.

mod lists;
mod popup;
mod run;
mod text;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};

use self::text::wrapped;
use super::app::{App, Mode, Pane};
use crate::output::thousands;

/// What stands out, and how: by colours, unless somebody wants none.
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

    fn title(self, focused: bool) -> Style {
        let style = self.colour(Color::Cyan).add_modifier(Modifier::BOLD);
        if focused { style.add_modifier(Modifier::REVERSED) } else { style }
    }
}

/// What matters less.
const QUIET: Style = Style::new().add_modifier(Modifier::DIM);

/// What keys are about.
const SELECTED: Style = Style::new().add_modifier(Modifier::REVERSED);

/// Lines of the part that has the selected run, and where there are few.
const RUN_LINES: u16 = 7;
const RUN_LINES_MIN: u16 = 6;

/// Lines that a warning or an answer takes at most.
const ALARM_LINES: usize = 4;

/// With fewer lines than this, only the list in focus is shown.
const LINES_MIN: u16 = 10;

/// With fewer lines than this, the lists go before the selected run.
const LINES_FOR_RUN: u16 = 14;

/// With fewer lines than this, the selected run has fewer, too.
const LINES_FOR_MUCH: u16 = 20;

/// Lines for the runs, the selected run, the workers and the events, of so many.
fn share_out(lines: u16, focus: Pane, runs: usize) -> [u16; 4] {
    if lines < LINES_MIN {
        return match focus {
            Pane::Runs => [lines, 0, 0, 0],
            Pane::Workers => [0, 0, lines, 0],
            Pane::Events => [0, 0, 0, lines],
        };
    }
    let run = match lines {
        LINES_FOR_MUCH.. => RUN_LINES,
        LINES_FOR_RUN.. => RUN_LINES_MIN,
        _ => 0,
    };
    let lists = lines - run;
    let events = lists / 4;
    // A title and a head; one empty row, where there are no runs, is enough to see that.
    let wanted = u16::try_from(runs.max(1)).unwrap_or(u16::MAX).saturating_add(2);
    let runs = wanted.min((lists - events) / 2);
    [runs, run, lists - events - runs, events]
}

pub(super) fn draw(frame: &mut Frame, app: &App, palette: Palette) {
    let width = frame.area().width;
    let alarm = alarm(app).map(|alarm| wrapped(&alarm, width, ALARM_LINES)).unwrap_or_default();
    let foot = footer(app, width, palette);
    let rows = [
        Constraint::Length(1),
        Constraint::Length(lines(alarm.len())),
        Constraint::Fill(1),
        Constraint::Length(lines(foot.lines.len())),
    ];
    let [head, warning, middle, bottom] = Layout::vertical(rows).areas(frame.area());
    frame.render_widget(headline(app, palette), head);
    frame.render_widget(Text::styled(alarm.join("\n"), palette.bad()), warning);
    let shares = share_out(middle.height, app.focus, app.picture.runs.len());
    let [runs, run, workers, events] = Layout::vertical(shares.map(Constraint::Length)).areas(middle);
    lists::runs(frame, runs, app, palette);
    run::selected(frame, run, app, palette);
    lists::workers(frame, workers, app, palette);
    lists::events(frame, events, app, palette);
    frame.render_widget(foot, bottom);
    popup::draw(frame, app, palette);
}

fn lines(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

/// What is wrong with the whole.
fn alarm(app: &App) -> Option<String> {
    let lost = app.lost.as_ref().map(|reason| format!("out of date; trying again: {reason}"));
    lost.or_else(|| app.picture.disk.clone())
}

/// Whom the picture is of, and how fast all of it goes.
fn headline(app: &App, palette: Palette) -> Line<'_> {
    let text = if app.read_only {
        format!("  read-only, {} worker(s)", thousands(app.picture.workers.len()))
    } else {
        // Untrusted ones are listed, also those that are gone.
        let present = app.picture.workers.iter().filter(|worker| worker.is_present());
        let (workers, threads) = present.fold((0_u64, 0), |(workers, threads), worker| {
            (workers + 1, threads + u64::from(worker.threads))
        });
        let speed = app.picture.speed().map_or_else(String::new, |speed| format!(", {speed:.2e} states/s"));
        format!("  {} worker(s), {} threads{speed}", thousands(workers), thousands(threads))
    };
    Line::from(vec![Span::styled("nqueens ", palette.title(false)), Span::raw(&*app.place), Span::raw(text)])
}

/// What keys do, or what came of them.
fn footer(app: &App, width: u16, palette: Palette) -> Text<'_> {
    if app.mode == Mode::Filter {
        return Text::from(Line::from(vec![
            Span::styled("filter: ", palette.title(false)),
            Span::raw(&*app.table(app.focus).filter),
            Span::styled(" ", SELECTED),
            Span::styled("  Enter keeps it, Esc clears it", QUIET),
        ]));
    }
    match &app.notice {
        Some(Ok(done)) => Text::styled(wrapped(done, width, ALARM_LINES).join("\n"), palette.good()),
        Some(Err(refused)) => Text::styled(wrapped(refused, width, ALARM_LINES).join("\n"), palette.bad()),
        None if app.read_only => Text::styled("Tab list  s sort  o invert  / filter  ? help  q quit", QUIET),
        None => Text::styled(
            "Tab list  s sort  o invert  / filter  p pause  r resume  d drain  ? help  q quit",
            QUIET,
        ),
    }
}

/// A list's title with how it is sorted and filtered.
fn title(app: &App, pane: Pane, name: &str, all: usize, palette: Palette) -> Line<'static> {
    let (table, focused) = (app.table(pane), app.focus == pane);
    let mark = if focused { '▸' } else { ' ' };
    let shown = app.shown(pane).len();
    let count = if shown == all { thousands(all) } else { format!("{shown} of {all}") };
    let filter = if table.filter.is_empty() { String::new() } else { format!(" with '{}'", table.filter) };
    let order = match (pane.orders()[table.order], table.reversed) {
        (_, false) if table.order == 0 => String::new(),
        (order, false) => format!(", by {order}"),
        (order, true) => format!(", by {order}, reversed"),
    };
    let name = Span::styled(format!("{mark}{name} "), palette.title(focused));
    Line::from(vec![name, Span::styled(format!(" {count}{filter}{order}"), QUIET)])
}

/// The first line of an area, and the rest.
fn under_title(area: Rect) -> [Rect; 2] {
    Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area)
}
