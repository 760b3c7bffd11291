//! Tests of the keys.

use super::*;

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
    app.hear(FeedMessage::Answer(Err("it is over".to_owned())));
    assert!(screen(&app, 80, 24).to_string().contains("it is over"));
}

#[test]
fn the_order_is_for_what_the_question_named() {
    let mut app = app();
    type_in(&mut app, "p");
    let mut changed = picture();
    changed.runs.remove(0);
    app.hear(FeedMessage::Picture(changed));
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
    assert_eq!(app.notice, Some(Err("worker 3 is already draining".to_owned())));

    let mut empty = App::new(String::new(), false, ClusterView::default());
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
    assert!(shown.contains("read-only") && shown.contains("nothing can be changed"), "{shown}");
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
    app.hear(FeedMessage::Picture(next));
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
fn a_history_stays_until_its_run_is_gone() {
    let mut app = app();
    assert!(app.speeds(run_id(0), 10).is_empty());
    let moment = |states_per_s| Moment { at: NOW, share_done: 0.5, states_per_s, total: None };
    let moments = [0.0, 4e9, 6e9, 8e9, 1e9].map(moment);
    let detail = RunDetail { moments: moments.into(), ..RunDetail::default() };
    let details = HashMap::from([(run_id(0), detail)]);
    app.hear(FeedMessage::Picture(ClusterView { details, ..picture() }));
    // Not every picture has every history.
    app.hear(FeedMessage::Picture(ClusterView { details: HashMap::new(), ..picture() }));
    assert_eq!(app.speeds(run_id(0), 10), [0, 4_000_000_000, 6_000_000_000, 8_000_000_000, 1_000_000_000]);
    assert_eq!(app.speeds(run_id(0), 3), [2_000_000_000, 7_000_000_000, 1_000_000_000]);
    app.hear(FeedMessage::Picture(ClusterView::default()));
    assert!(app.speeds(run_id(0), 10).is_empty());
}
