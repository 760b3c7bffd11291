//! Pop-ups over the picture: a question, or the keys.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};

use super::Palette;
use super::text::shortened;
use crate::command::watch::app::{App, Mode};
use crate::command::watch::feed::Order;
use crate::command::watch::keys::KEYS;

/// Holds the longest of its lines, and fits on a terminal of 80 columns.
const WIDTH: u16 = 74;

/// Columns of a name in a question.
const NAME_MAX: usize = 40;

pub(super) fn draw(frame: &mut Frame, app: &App, palette: Palette) {
    let (title, lines) = match app.mode {
        Mode::Look | Mode::Filter => return,
        Mode::Confirm(order) => (" Are you sure? ", question(app, order, palette)),
        Mode::Help => (" Keys ", help(palette)),
    };
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX);
    let text = Paragraph::new(lines);
    let area = middle(frame.area(), WIDTH, height);
    frame.render_widget(Clear, area);
    frame.render_widget(text.block(Block::bordered().title(title).border_style(palette.title(false))), area);
}

fn question(app: &App, order: Order, palette: Palette) -> Vec<Line<'static>> {
    let run_name = |run| {
        let found = app.picture.runs.iter().find(|known| known.progress.run == run);
        found.map_or_else(|| format!("run {run}"), |known| format!("run {run}, {}", known.plan.subject()))
    };
    let (what, meaning) = match order {
        Order::Pause(run) => (
            format!("Pause {}?", run_name(run)),
            "No more of its jobs are leased; workers finish the jobs they hold.",
        ),
        Order::Resume(run) => (format!("Resume {}?", run_name(run)), "Its jobs are leased again."),
        Order::Drain(worker) => {
            let found = app.picture.workers.iter().find(|known| known.id == worker);
            let name =
                found.map_or_else(String::new, |known| format!(", {}", shortened(&known.name, NAME_MAX)));
            let meaning = "It gets no more jobs, finishes or returns those it holds, and stops.";
            (format!("Drain worker {worker}{name}?"), meaning)
        }
    };
    let answer = |key, what| [Span::styled(key, palette.title(true)), Span::raw(what)];
    let answers = [answer(" y ", " yes   "), answer(" n ", " no")].into_iter().flatten().collect::<Vec<_>>();
    vec![Line::raw(what), Line::raw(meaning), Line::raw(""), Line::from(answers)]
}

fn help(palette: Palette) -> Vec<Line<'static>> {
    KEYS.into_iter()
        .map(|(keys, what)| {
            Line::from(vec![Span::styled(format!("{keys:<12} "), palette.title(false)), Span::raw(what)])
        })
        .collect()
}

/// A place in the middle of `area`, within it.
fn middle(area: Rect, width: u16, height: u16) -> Rect {
    area.centered(width.min(area.width).into(), height.min(area.height).into())
}
