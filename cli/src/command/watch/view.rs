//! The state of the screen, and how keys and snapshots change it. No drawing, no calls.

use std::cmp::Reverse;

use nqueens_model::id::{RunId, WorkerId};
use nqueens_model::operator::{Event, RunState, RunStatus, Worker, WorkerStatus};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::source::{Command, Snapshot};

/// A problem comes before newer events for this time.
const RECENT_MS: i64 = 15 * 60 * 1_000;

/// A row that keys can be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Row {
    Run(RunId),
    Worker(WorkerId),
}

/// What the world has to do after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Leave,
    /// As if by a signal: Ctrl-C.
    Interrupt,
    Execute(Command),
}

#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub(super) place: String,
    /// Whether it is a database, which nothing here changes.
    pub(super) read_only: bool,
    /// Its runs, workers and events are sorted by what needs attention.
    pub(super) snapshot: Snapshot,
    /// Why there are no snapshots at present.
    pub(super) lost: Option<String>,
    /// The outcome of the latest command, or why a key does nothing.
    pub(super) notice: Option<Result<String, String>>,
    /// The command that waits for a yes.
    pub(super) question: Option<Command>,
    /// `None`: the newest open run.
    selected: Option<Row>,
}

impl View {
    pub(super) fn new(place: String, read_only: bool, snapshot: Snapshot) -> Self {
        let mut view = Self { place, read_only, ..Self::default() };
        view.update(snapshot);
        view
    }

    pub(super) fn update(&mut self, mut snapshot: Snapshot) {
        let now = snapshot.at;
        snapshot.runs.reverse();
        snapshot.runs.sort_by_key(urgency_of_run);
        snapshot
            .workers
            .sort_by_key(|worker| (urgency_of_worker(worker), worker.about.name.clone(), worker.about.id));
        let waits = |event: &Event| event.kind.is_problem() && now.saturating_sub(event.at) < RECENT_MS;
        snapshot.events.sort_by_key(|event| (!waits(event), Reverse(event.number)));
        self.snapshot = snapshot;
        self.lost = None;
        self.selected = self.selected.filter(|row| self.rows().contains(row));
    }

    pub(super) fn rows(&self) -> Vec<Row> {
        let runs = self.snapshot.runs.iter().map(|run| Row::Run(run.progress.run));
        runs.chain(self.snapshot.workers.iter().map(|worker| Row::Worker(worker.about.id))).collect()
    }

    /// The row that keys are about.
    pub(super) fn selected(&self) -> Option<Row> {
        self.selected.or_else(|| self.newest_open().map(|run| Row::Run(run.progress.run)))
    }

    /// The run that is shown in detail: the selected one, or else the newest open run.
    pub(super) fn shown_run(&self) -> Option<&RunStatus> {
        let selected =
            self.snapshot.runs.iter().find(|run| self.selected == Some(Row::Run(run.progress.run)));
        selected.or_else(|| self.newest_open())
    }

    /// Without an open run, the newest.
    fn newest_open(&self) -> Option<&RunStatus> {
        let runs = &self.snapshot.runs;
        runs.iter().max_by_key(|run| (run.progress.state.is_open(), run.created_at))
    }

    /// Does what a key says; returns what is left to do.
    pub(super) fn press(&mut self, key: KeyEvent) -> Option<Effect> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => return Some(Effect::Interrupt),
            KeyCode::Char(_) if control => return None,
            _ => {}
        }
        if let Some(command) = self.question {
            return self.answer(command, key.code);
        }
        self.notice = None;
        match key.code {
            KeyCode::Char('q') => return Some(Effect::Leave),
            KeyCode::Up | KeyCode::Char('k') => self.step(-1),
            KeyCode::Down | KeyCode::Char('j') => self.step(1),
            KeyCode::Esc => self.selected = None,
            KeyCode::Char('p') => self.ask(|view| view.run_in(RunState::Active).map(Command::Pause)),
            KeyCode::Char('r') => self.ask(|view| view.run_in(RunState::Paused).map(Command::Resume)),
            KeyCode::Char('d') => self.ask(|view| view.worker_to_drain().map(Command::Drain)),
            _ => {}
        }
        None
    }

    fn step(&mut self, by: isize) {
        let rows = self.rows();
        let at = rows.iter().position(|row| Some(*row) == self.selected()).unwrap_or(0);
        let last = rows.len().saturating_sub(1);
        self.selected = rows.get(at.saturating_add_signed(by).min(last)).copied();
    }

    fn answer(&mut self, command: Command, code: KeyCode) -> Option<Effect> {
        let (notice, effect) = match code {
            KeyCode::Char('y' | 'Y') => ("request sent", Some(Effect::Execute(command))),
            KeyCode::Char('n' | 'N' | 'q') | KeyCode::Esc => ("nothing was changed", None),
            // A slip of the finger is no answer.
            _ => return None,
        };
        self.question = None;
        self.notice = Some(Ok(notice.to_owned()));
        effect
    }

    fn ask(&mut self, command: impl Fn(&Self) -> Result<Command, String>) {
        if self.read_only {
            self.notice = Some(Err("a database is read-only here: nothing can be changed".to_owned()));
            return;
        }
        match command(self) {
            Ok(command) => self.question = Some(command),
            Err(reason) => self.notice = Some(Err(reason)),
        }
    }

    /// The run that is shown, if it is in this state.
    fn run_in(&self, state: RunState) -> Result<RunId, String> {
        let run = &self.shown_run().ok_or("there is no run")?.progress;
        if run.state == state { Ok(run.run) } else { Err(format!("run {} is {}", run.run, run.state.name())) }
    }

    fn worker_to_drain(&self) -> Result<WorkerId, String> {
        let Some(Row::Worker(id)) = self.selected() else {
            return Err("select a worker to drain".to_owned());
        };
        let is_draining = |worker: &WorkerStatus| worker.about.id == id && worker.draining;
        if self.snapshot.workers.iter().any(is_draining) {
            return Err(format!("worker {id} is draining already"));
        }
        Ok(id)
    }
}

fn urgency_of_run(run: &RunStatus) -> u8 {
    match run.progress.state {
        RunState::Failed => 0,
        state if state.is_open() && run.progress.quarantined > 0 => 0,
        RunState::Active => 1,
        RunState::Planning => 2,
        RunState::Paused => 3,
        RunState::Done => 4,
        RunState::Cancelled => 5,
    }
}

fn urgency_of_worker(worker: &WorkerStatus) -> u8 {
    match worker {
        WorkerStatus { about: Worker { distrusted: Some(_), .. }, .. } => 0,
        WorkerStatus { present: false, .. } => 1,
        WorkerStatus { draining: true, .. } => 2,
        WorkerStatus { leases: 0, .. } => 3,
        _ => 4,
    }
}
