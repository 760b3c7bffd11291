//! Tests of the keys and of the drawing.

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::plan::{Fingerprint, Plan, PlanKind};
use nqueens_model::credential::Credential;
use nqueens_model::id::{RunId, WorkerId};
use nqueens_model::operator::{
    CheckCounts, Event, EventKind, Interval, Progress, Recounts, RunState, RunStatus, Speed, Worker,
    WorkerName, WorkerStatus,
};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::draw::draw;
use super::source::{Command, Snapshot};
use super::view::{Effect, Row, View};

mod keys;
mod pictures;

const NOW: i64 = 1_800_000_000_000;

fn run_id(number: u64) -> RunId {
    RunId::new(0x60a1_6518_23b0 + number).expect("a name")
}

fn worker_id(number: u64) -> WorkerId {
    WorkerId::new(number).expect("a name")
}

fn run(number: u64, n: u32, state: RunState, done: u32) -> RunStatus {
    let n = BoardSize::new(n).expect("a size");
    let about = |value: f64| Interval { value, low: 0.9 * value, high: 1.2 * value };
    let going = state == RunState::Active;
    let progress = Progress {
        run: run_id(number),
        plan: Plan::with_states_per_job(n, PlanKind::Border, 1_000_000_000),
        state,
        jobs: 40_572,
        planned: None,
        done,
        leased: if going { 96 } else { 0 },
        quarantined: 0,
        share_done: f64::from(done) / 40_572.0,
        states: 1,
        estimated_states: 2,
        estimated_total: going.then(|| about(2.6733e12)),
        speed: going.then_some(Speed { threads: 11.8, states_per_s: 8.01e9 }),
        checks: CheckCounts::default(),
        time_left_s: going.then(|| about(12_000.0)),
        waits_for: None,
        workers: going.then_some(3),
    };
    RunStatus {
        progress,
        fingerprint: Some(Fingerprint([7; 32])),
        priority: 0,
        replicate_ppm: 0,
        reason: (state == RunState::Failed).then(|| "COUNT2 is not what it has to be".to_owned()),
        created_at: NOW - 9_000_000 + i64::try_from(number).expect("a few"),
        started_at: going.then_some(NOW - 7_800_000),
        finished_at: None,
        recounts: Recounts::default(),
        outcome: None,
    }
}

fn worker(number: u64, name: &str, states_per_s: f64) -> WorkerStatus {
    let about = Worker {
        id: worker_id(number),
        name: name.to_owned(),
        credential: Credential::shared(),
        build: "test".to_owned(),
        kernels: vec!["avx512".to_owned()],
        device: "x86_64".to_owned(),
        threads: 4,
        registered_at: NOW,
        distrusted: (number == 2).then(|| "test".to_owned()),
    };
    WorkerStatus {
        about,
        present: true,
        silent_ms: 900 * number,
        leases: 32,
        states_per_s: Some(states_per_s).filter(|speed| *speed > 0.0),
        accepted: 7_118 * number,
        draining: number == 3,
        checks_passed: 0,
        checks_failed: 0,
    }
}

fn event(number: u64, kind: EventKind, about: u64, text: &str) -> Event {
    let (run, worker) = match kind {
        EventKind::WorkerLost => (None, Some(WorkerName { id: worker_id(about), name: "attic".to_owned() })),
        _ => (Some(run_id(about)), None),
    };
    let at = NOW - 100_000 + 1_000 * i64::try_from(number).expect("a few");
    Event { number, at, kind, run, worker, text: text.to_owned() }
}

fn snapshot() -> Snapshot {
    Snapshot {
        at: NOW,
        runs: vec![
            run(0, 22, RunState::Active, 21_354),
            run(1, 20, RunState::Paused, 12),
            run(2, 18, RunState::Failed, 40_572),
        ],
        workers: vec![worker(1, "east", 2.0e9), worker(2, "west", 6.0e9), worker(3, "attic", 0.0)],
        events: vec![
            event(1, EventKind::RunPlanned, 0, "N = 22: planned, 40,572 jobs."),
            event(2, EventKind::WorkerLost, 3, "attic lost after 60 s without a heartbeat: 64 jobs back."),
        ],
        disk: None,
    }
}

fn view_of(snapshot: Snapshot) -> View {
    View::new("http://head:7327".to_owned(), false, snapshot)
}

fn view() -> View {
    view_of(snapshot())
}

/// Presses keys that are letters; what the last leaves to do.
fn type_in(view: &mut View, letters: &str) -> Option<Effect> {
    letters.chars().map(|letter| press(view, KeyCode::Char(letter))).last().flatten()
}

fn press(view: &mut View, code: KeyCode) -> Option<Effect> {
    view.press(KeyEvent::new(code, KeyModifiers::NONE))
}

fn screen(view: &View, width: u16, height: u16) -> TestBackend {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("no terminal can fail here");
    terminal.draw(|frame| draw(frame, view, true)).expect("nor this");
    terminal.backend().clone()
}
