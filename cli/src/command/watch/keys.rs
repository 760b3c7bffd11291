//! What each key does.

use nqueens_model::id::RunId;
use nqueens_model::operator::RunState;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::app::{App, Effect, Mode, Pane};
use super::feed::Order;

/// The keys, as the help shows them.
pub(super) const KEYS: [(&str, &str); 11] = [
    ("Tab", "go to the next list: runs, workers, events"),
    ("Up Down k j", "select a row; PgUp PgDn Home End g G: move further"),
    ("s", "sort the list by the next column"),
    ("o", "invert the order"),
    ("/", "filter rows by text; Enter keeps the filter, Esc clears it"),
    ("p", "pause the selected run (asks first)"),
    ("r", "resume the selected run (asks first)"),
    ("d", "drain the selected worker (asks first)"),
    ("?", "show these keys"),
    ("q", "quit; runs and workers continue"),
    ("Ctrl-C", "the same, with exit code 130"),
];

/// Rows that a page key goes.
const PAGE: isize = 10;

/// A filter longer than this finds nothing anyway.
const FILTER_MAX: usize = 60;

impl App {
    /// Does what a key says, and tells what is left to do.
    pub(super) fn press(&mut self, key: KeyEvent) -> Option<Effect> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let effect = match (self.mode, key.code) {
            (_, KeyCode::Char('c')) if control => Some(Effect::Interrupt),
            (_, KeyCode::Char(_)) if control => None,
            (Mode::Look, code) => self.look(code),
            (Mode::Filter, code) => {
                self.edit_filter(code);
                None
            }
            (Mode::Confirm(order), code) => self.confirm(order, code),
            (Mode::Help, _) => {
                self.mode = Mode::Look;
                None
            }
        };
        self.settle();
        effect
    }

    fn look(&mut self, code: KeyCode) -> Option<Effect> {
        self.notice = None;
        let focus = self.focus;
        match code {
            KeyCode::Char('q') => return Some(Effect::Leave),
            KeyCode::Char('?') | KeyCode::F(1) => self.mode = Mode::Help,
            KeyCode::Char('/') => self.mode = Mode::Filter,
            KeyCode::Esc => self.table_mut(focus).filter.clear(),
            KeyCode::Tab => self.focus = Pane::ALL[(focus as usize + 1) % Pane::ALL.len()],
            KeyCode::BackTab => {
                self.focus = Pane::ALL[(focus as usize + Pane::ALL.len() - 1) % Pane::ALL.len()];
            }
            KeyCode::Char('s') => {
                let table = self.table_mut(focus);
                table.order = (table.order + 1) % focus.orders().len();
            }
            KeyCode::Char('o') => {
                let table = self.table_mut(focus);
                table.reversed = !table.reversed;
            }
            KeyCode::Up | KeyCode::Char('k') => self.step(-1),
            KeyCode::Down | KeyCode::Char('j') => self.step(1),
            KeyCode::PageUp => self.step(-PAGE),
            KeyCode::PageDown => self.step(PAGE),
            KeyCode::Home | KeyCode::Char('g') => self.step(isize::MIN),
            KeyCode::End | KeyCode::Char('G') => self.step(isize::MAX),
            KeyCode::Char('p') => self.ask_about_run(RunState::Active, Order::Pause),
            KeyCode::Char('r') => self.ask_about_run(RunState::Paused, Order::Resume),
            KeyCode::Char('d') => self.ask_about_worker(),
            _ => {}
        }
        None
    }

    fn step(&mut self, rows: isize) {
        let (focus, shown) = (self.focus, self.shown(self.focus));
        self.table_mut(focus).step(&shown, rows);
    }

    fn edit_filter(&mut self, code: KeyCode) {
        let filter = &mut self.table_mut(self.focus).filter;
        match code {
            KeyCode::Enter => self.mode = Mode::Look,
            KeyCode::Esc => {
                filter.clear();
                self.mode = Mode::Look;
            }
            KeyCode::Backspace => drop(filter.pop()),
            KeyCode::Char(letter) if filter.chars().count() < FILTER_MAX => filter.push(letter),
            _ => {}
        }
    }

    fn confirm(&mut self, order: Order, code: KeyCode) -> Option<Effect> {
        match code {
            KeyCode::Char('y' | 'Y') => {
                self.mode = Mode::Look;
                self.notice = Some(Ok("request sent".to_owned()));
                return Some(Effect::Obey(order));
            }
            KeyCode::Char('n' | 'N' | 'q') | KeyCode::Esc => {
                self.mode = Mode::Look;
                self.notice = Some(Ok("nothing was changed".to_owned()));
            }
            // A slip of the finger is no answer.
            _ => {}
        }
        None
    }

    /// Asks whether the selected run is to change, if it is in the state in which it can.
    fn ask_about_run(&mut self, from: RunState, order: impl Fn(RunId) -> Order) {
        let Some(progress) = self.selected_run().map(|run| &run.progress) else {
            return self.refuse("there is no run here".to_owned());
        };
        if progress.state != from {
            let (run, state) = (progress.run, progress.state.name());
            return self.refuse(format!("run {run} is {state}"));
        }
        self.ask(order(progress.run));
    }

    fn ask_about_worker(&mut self) {
        match self.selected_worker() {
            Some(worker) if worker.live.as_ref().is_some_and(|live| live.draining) => {
                let id = worker.id;
                self.refuse(format!("worker {id} is already draining"));
            }
            Some(worker) => self.ask(Order::Drain(worker.id)),
            None => self.refuse("there is no worker here".to_owned()),
        }
    }

    fn ask(&mut self, order: Order) {
        if self.read_only {
            return self.refuse("a database is read-only here: nothing can be changed".to_owned());
        }
        self.mode = Mode::Confirm(order);
    }

    fn refuse(&mut self, reason: String) {
        self.notice = Some(Err(reason));
    }
}
