//! What keys do to the state, and what the screen looks like.

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::plan::{Fingerprint, Plan, PlanKind};
use nqueens_proto::id::{RunId, WorkerId};
use nqueens_proto::operator::{Event, EventKind, Interval, Progress, RunState, RunStatus, Speed};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::app::{App, Effect, Mode, Pane};
use super::draw::{Palette, draw};
use super::feed::{News, Order};
use super::picture::{Live, Picture, Worker};

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
        n,
        state,
        jobs: 40_572,
        done,
        leased: if going { 96 } else { 0 },
        quarantined: 0,
        share_done: f64::from(done) / 40_572.0,
        states: 1,
        estimated_states: 2,
        estimated_total: going.then(|| about(2.6733e12)),
        speed: going.then_some(Speed { threads: 11.8, states_per_s: 8.01e9 }),
        time_left_s: going.then(|| about(12_000.0)),
    };
    RunStatus {
        progress,
        plan: Plan::with_states_per_job(n, PlanKind::Border, 1_000_000_000),
        fingerprint: Fingerprint([7; 32]),
        priority: 0,
        reason: (state == RunState::Failed).then(|| "COUNT2 is not what it has to be".to_owned()),
        created_at: NOW,
        finished_at: None,
        outcome: None,
    }
}

fn worker(number: u64, name: &str, states_per_s: f64) -> Worker {
    let live = Live {
        states_per_s: Some(states_per_s).filter(|speed| *speed > 0.0),
        leases: 32,
        accepted: 7_118 * number,
        silent_ms: 900 * number,
        draining: number == 3,
    };
    Worker {
        id: worker_id(number),
        name: name.to_owned(),
        kernel: "avx512".to_owned(),
        threads: 4,
        live: Some(live),
    }
}

fn event(number: u64, kind: EventKind, about: u64, text: &str) -> Event {
    let (run, worker) = match kind {
        EventKind::WorkerLost => (None, Some(worker_id(about))),
        _ => (Some(run_id(about)), None),
    };
    let at = NOW - 100_000 + 1_000 * i64::try_from(number).expect("a few");
    Event { number, at, kind, run, worker, text: text.to_owned() }
}

fn picture() -> Picture {
    Picture {
        at: NOW,
        runs: vec![
            run(0, 22, RunState::Active, 21_354),
            run(1, 20, RunState::Paused, 12),
            run(2, 18, RunState::Failed, 40_572),
        ],
        workers: vec![worker(1, "east", 2.0e9), worker(2, "west", 6.0e9), worker(3, "attic", 0.0)],
        events: vec![
            event(1, EventKind::RunPlanned, 0, "N = 22: planned, 40,572 jobs."),
            event(2, EventKind::WorkerLost, 3, "'attic' was not heard of in time: its jobs go to others."),
        ],
        disk: None,
    }
}

fn app() -> App {
    App::new("http://head:7327".to_owned(), false, picture())
}

/// Presses keys that are letters; what the last leaves to do.
fn type_in(app: &mut App, letters: &str) -> Option<Effect> {
    letters.chars().map(|letter| press(app, KeyCode::Char(letter))).last().flatten()
}

fn press(app: &mut App, code: KeyCode) -> Option<Effect> {
    app.press(KeyEvent::new(code, KeyModifiers::NONE))
}

fn screen(app: &App, width: u16, height: u16) -> TestBackend {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("no terminal can fail here");
    terminal.draw(|frame| draw(frame, app, Palette { colours: true })).expect("nor this");
    terminal.backend().clone()
}

#[test]
fn the_picture_at_80_by_24() {
    let mut app = app();
    for picture_number in 0..30 {
        let mut next = picture();
        let speed = Speed { threads: 11.8, states_per_s: 8.01e9 + 1e8 * f64::from(picture_number % 10) };
        next.runs[0].progress.speed = Some(speed);
        app.hear(News::Picture(next));
    }
    insta::assert_snapshot!(screen(&app, 80, 24));
}

#[test]
fn the_picture_at_120_by_40() {
    insta::assert_snapshot!(screen(&app(), 120, 40));
}

#[test]
fn a_question_and_the_keys_lie_over_it() {
    let mut app = app();
    type_in(&mut app, "p");
    insta::assert_snapshot!(screen(&app, 80, 24));
    type_in(&mut app, "n?");
    insta::assert_snapshot!(screen(&app, 80, 24));
}

#[test]
fn a_lost_coordinator_is_told_of_until_it_is_back() {
    let mut app = app();
    app.hear(News::Lost("can't reach a coordinator".to_owned()));
    let alarm = "out of date; trying again: can't reach a coordinator";
    assert!(screen(&app, 80, 24).to_string().contains(alarm));
    app.hear(News::Picture(picture()));
    assert!(!screen(&app, 80, 24).to_string().contains("out of date"));
}

#[test]
fn no_size_is_too_small() {
    let mut app = app();
    for keys in ["", "?", "?p", "nj/x"] {
        type_in(&mut app, keys);
        for (width, height) in
            [0, 1, 2, 5, 13, 39].into_iter().flat_map(|width| (0..16).map(move |height| (width, height)))
        {
            screen(&app, width, height);
        }
    }
    let empty = App::new(String::new(), false, Picture::default());
    for (width, height) in [(0, 0), (1, 1), (7, 3), (80, 24), (400, 100)] {
        screen(&empty, width, height);
    }
}

#[test]
fn without_colours_nothing_is_coloured() {
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).expect("no terminal can fail here");
    let colours = |terminal: &Terminal<TestBackend>| {
        let cells = terminal.backend().buffer().content();
        cells
            .iter()
            .any(|cell| cell.fg != ratatui::style::Color::Reset || cell.bg != ratatui::style::Color::Reset)
    };
    let mut app = app();
    type_in(&mut app, "p");
    terminal.draw(|frame| draw(frame, &app, Palette { colours: false })).expect("nor this");
    assert!(!colours(&terminal));
    terminal.draw(|frame| draw(frame, &app, Palette { colours: true })).expect("nor this");
    assert!(colours(&terminal));
}

#[test]
fn a_name_cannot_command_the_terminal() {
    let mut picture = picture();
    picture.workers[0].name = "\x1b[2J\x07evil".to_owned();
    picture.events[0].text = "\x1b]0;title\x07".to_owned();
    let app = App::new(String::new(), false, picture);
    let screen = screen(&app, 80, 24);
    let text: String = screen.buffer().content().iter().map(ratatui::buffer::Cell::symbol).collect();
    assert!(text.contains("evil") && !text.contains(char::is_control));
}

#[test]
fn a_run_is_paused_only_by_a_yes() {
    let mut app = app();
    for no in [KeyCode::Char('n'), KeyCode::Esc, KeyCode::Char('q')] {
        assert_eq!(type_in(&mut app, "p"), None);
        assert_eq!(app.mode, Mode::Confirm(Order::Pause(run_id(0))));
        // Neither a slip nor Enter is an answer.
        assert_eq!((press(&mut app, KeyCode::Enter), type_in(&mut app, "xjpd")), (None, None));
        assert_eq!(app.mode, Mode::Confirm(Order::Pause(run_id(0))));
        assert_eq!(press(&mut app, no), None);
        assert_eq!((app.mode, &app.notice), (Mode::Look, &Some(Ok("nothing was changed".to_owned()))));
    }
    assert_eq!(type_in(&mut app, "py"), Some(Effect::Obey(Order::Pause(run_id(0)))));
    assert_eq!(app.mode, Mode::Look);
    app.hear(News::Answer(Err("it is over".to_owned())));
    assert!(screen(&app, 80, 24).to_string().contains("it is over"));
}

#[test]
fn the_order_is_for_what_the_question_named() {
    let mut app = app();
    type_in(&mut app, "p");
    let mut changed = picture();
    changed.runs.remove(0);
    app.hear(News::Picture(changed));
    assert_eq!(type_in(&mut app, "y"), Some(Effect::Obey(Order::Pause(run_id(0)))));
}

#[test]
fn what_makes_no_sense_is_refused_with_a_reason() {
    let mut app = app();
    type_in(&mut app, "r");
    assert_eq!((app.mode, &app.notice), (Mode::Look, &Some(Err("run 60a1651823b0 is active".to_owned()))));
    assert_eq!(type_in(&mut app, "jry"), Some(Effect::Obey(Order::Resume(run_id(1)))));
    assert_eq!(type_in(&mut app, "dy"), Some(Effect::Obey(Order::Drain(worker_id(1)))));
    press(&mut app, KeyCode::Tab);
    type_in(&mut app, "Gd");
    assert_eq!(app.notice, Some(Err("worker 3 is asked to go already".to_owned())));

    let mut empty = App::new(String::new(), false, Picture::default());
    for key in ["p", "r", "d"] {
        assert_eq!(type_in(&mut empty, key), None);
        assert!(matches!(empty.notice, Some(Err(_))) && empty.mode == Mode::Look);
    }
}

#[test]
fn a_database_is_only_looked_at() {
    let mut app = App::new("queens.db".to_owned(), true, picture());
    for key in ["p", "jr", "d"] {
        assert_eq!(type_in(&mut app, key), None);
        assert_eq!(app.mode, Mode::Look);
        assert!(app.notice.as_ref().is_some_and(Result::is_err));
    }
    let shown = screen(&app, 80, 24).to_string();
    assert!(shown.contains("read only") && shown.contains("nothing can be changed"), "{shown}");
}

#[test]
fn lists_are_sorted_and_the_selection_stays_on_its_row() {
    let mut app = app();
    press(&mut app, KeyCode::Tab);
    assert_eq!((app.focus, app.shown(Pane::Workers)), (Pane::Workers, vec![1, 2, 3]));
    press(&mut app, KeyCode::Down);
    type_in(&mut app, "s");
    assert_eq!((app.shown(Pane::Workers), app.position(Pane::Workers)), (vec![3, 1, 2], 2));
    type_in(&mut app, "s");
    assert_eq!((app.shown(Pane::Workers), app.position(Pane::Workers)), (vec![2, 1, 3], 0));
    type_in(&mut app, "o");
    assert_eq!((app.shown(Pane::Workers), app.position(Pane::Workers)), (vec![3, 1, 2], 2));
    // A worker that comes or goes does not move the selection either.
    let mut next = picture();
    next.workers.remove(0);
    next.workers.push(worker(4, "south", 9e9));
    app.hear(News::Picture(next));
    assert_eq!((app.shown(Pane::Workers), app.position(Pane::Workers)), (vec![3, 2, 4], 1));
    type_in(&mut app, "ss");
    assert_eq!(app.shown(Pane::Workers), [4, 3, 2], "by number, reversed");
    press(&mut app, KeyCode::BackTab);
    assert_eq!(app.focus, Pane::Runs);
}

#[test]
fn a_filter_is_typed_kept_and_dropped() {
    let mut app = app();
    press(&mut app, KeyCode::Tab);
    assert_eq!(type_in(&mut app, "/WeSq"), None, "q is a letter here");
    press(&mut app, KeyCode::Backspace);
    assert_eq!(app.shown(Pane::Workers), [2]);
    press(&mut app, KeyCode::Enter);
    assert_eq!((app.mode, app.shown(Pane::Workers)), (Mode::Look, vec![2]));
    assert!(screen(&app, 80, 24).to_string().contains("1 of 3 with 'WeS'"));
    press(&mut app, KeyCode::Esc);
    assert_eq!(app.shown(Pane::Workers), [1, 2, 3]);
    type_in(&mut app, "/nothing");
    press(&mut app, KeyCode::Esc);
    assert_eq!((app.mode, app.shown(Pane::Workers)), (Mode::Look, vec![1, 2, 3]));
}

#[test]
fn q_leaves_and_control_c_interrupts() {
    let mut app = app();
    assert_eq!(type_in(&mut app, "?q"), None, "it only puts the help away");
    assert_eq!(type_in(&mut app, "q"), Some(Effect::Leave));
    let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    for keys in ["", "p", "n/", "?"] {
        type_in(&mut app, keys);
        assert_eq!(app.press(control_c), Some(Effect::Interrupt));
    }
}

#[test]
fn the_history_is_bounded_and_forgets_runs_that_are_gone() {
    let mut app = app();
    for _ in 0..1_000 {
        app.hear(News::Picture(picture()));
    }
    assert_eq!(app.speeds(run_id(0), 10_000).len(), 400);
    assert_eq!(app.speeds(run_id(0), 3), [8_010_000_000; 3]);
    app.hear(News::Picture(Picture::default()));
    assert!(app.speeds(run_id(0), 10).is_empty());
}
