//! Tests of the keys.

use super::*;

#[test]
fn a_run_is_paused_only_by_a_yes() {
    let mut view = view();
    type_in(&mut view, "k");
    for no in [KeyCode::Char('n'), KeyCode::Esc, KeyCode::Char('q')] {
        press(&mut view, KeyCode::Up);
        press(&mut view, KeyCode::Down);
        assert_eq!(type_in(&mut view, "p"), None);
        assert_eq!(view.question, Some(Command::Pause(run_id(0))));
        // Neither a slip nor Enter is an answer.
        assert_eq!((press(&mut view, KeyCode::Enter), type_in(&mut view, "xjpd")), (None, None));
        assert_eq!(view.question, Some(Command::Pause(run_id(0))));
        assert_eq!(press(&mut view, no), None);
        assert_eq!((view.question, &view.notice), (None, &Some(Ok("nothing was changed".to_owned()))));
    }
    assert_eq!(type_in(&mut view, "py"), Some(Effect::Execute(Command::Pause(run_id(0)))));
    assert_eq!(view.question, None);
    view.notice = Some(Err("it is over".to_owned()));
    assert!(screen(&view, 80, 24).to_string().contains("it is over"));
}

#[test]
fn the_command_is_for_what_the_question_named() {
    let mut view = view();
    type_in(&mut view, "kp");
    let mut changed = snapshot();
    changed.runs.remove(0);
    view.update(changed);
    assert_eq!(type_in(&mut view, "y"), Some(Effect::Execute(Command::Pause(run_id(0)))));
}

#[test]
fn what_makes_no_sense_is_refused_with_a_reason() {
    let mut view = view();
    // The newest open run is paused.
    type_in(&mut view, "p");
    assert_eq!((view.question, &view.notice), (None, &Some(Err("run 60a1651823b1 is paused".to_owned()))));
    assert_eq!(type_in(&mut view, "ry"), Some(Effect::Execute(Command::Resume(run_id(1)))));
    type_in(&mut view, "d");
    assert_eq!(view.notice, Some(Err("select a worker to drain".to_owned())));
    // The workers come below the runs, those that need attention first.
    assert_eq!(view.rows()[3..], [2, 3, 1].map(|number| Row::Worker(worker_id(number))));
    assert_eq!(type_in(&mut view, "jdy"), Some(Effect::Execute(Command::Drain(worker_id(2)))));
    type_in(&mut view, "jd");
    assert_eq!(view.notice, Some(Err("worker 3 is draining already".to_owned())));

    let mut empty = View::new(String::new(), false, Snapshot::default());
    for key in ["p", "r", "d", "j", "k"] {
        assert_eq!(type_in(&mut empty, key), None);
        assert!(empty.question.is_none());
    }
}

#[test]
fn a_database_is_only_looked_at() {
    let mut view = View::new("queens.db".to_owned(), true, snapshot());
    for key in ["p", "r", "d"] {
        assert_eq!(type_in(&mut view, key), None);
        assert!(view.question.is_none() && view.notice.as_ref().is_some_and(Result::is_err));
    }
    let shown = screen(&view, 80, 24).to_string();
    assert!(shown.contains("read-only") && shown.contains("nothing can be changed"), "{shown}");
}

#[test]
fn the_selection_follows_the_newest_open_run_until_a_row_is_chosen() {
    let selected = |view: &View| (view.selected(), view.shown_run().map(|run| run.progress.run));
    let run = |number| Row::Run(run_id(number));
    let mut view = view();
    assert_eq!(selected(&view), (Some(run(1)), Some(run_id(1))));
    let mut next = snapshot();
    next.runs.push(super::run(3, 19, RunState::Planning, 0));
    view.update(next.clone());
    assert_eq!(selected(&view), (Some(run(3)), Some(run_id(3))));
    // A chosen row stays chosen, wherever it goes.
    type_in(&mut view, "k");
    assert_eq!(selected(&view), (Some(run(0)), Some(run_id(0))));
    next.runs[0].progress.state = RunState::Done;
    view.update(next.clone());
    assert_eq!(selected(&view), (Some(run(0)), Some(run_id(0))));
    // Beside a worker, the newest run is shown.
    type_in(&mut view, "j");
    assert_eq!(selected(&view), (Some(Row::Worker(worker_id(2))), Some(run_id(3))));
    press(&mut view, KeyCode::Esc);
    assert_eq!(selected(&view).0, Some(run(3)));
    type_in(&mut view, "kkkkk");
    assert_eq!(selected(&view).0, Some(run(2)), "the failed one is first");
    view.update(Snapshot::default());
    assert_eq!(selected(&view), (None, None));
    next.runs.retain(|run| !run.progress.state.is_open());
    view.update(next);
    assert_eq!(selected(&view).0, Some(run(2)), "the newest, if none is open");
}

#[test]
fn what_needs_attention_comes_first() {
    let mut snapshot = snapshot();
    snapshot.runs.extend([super::run(4, 16, RunState::Done, 1), super::run(5, 17, RunState::Active, 1)]);
    snapshot.runs[0].progress.quarantined = 1;
    snapshot.workers.extend([worker(4, "gone", 0.0), worker(5, "abacus", 1e9), worker(6, "idle", 0.0)]);
    snapshot.workers[3].present = false;
    snapshot.workers[5].leases = 0;
    snapshot.events.push(event(3, EventKind::RunDone, 4, "N = 16: done."));
    let view = view_of(snapshot);
    let runs: Vec<_> = view.snapshot.runs.iter().map(|run| run.progress.run).collect();
    assert_eq!(runs, [2, 0, 5, 1, 4].map(run_id));
    let workers: Vec<_> = view.snapshot.workers.iter().map(|worker| &*worker.about.name).collect();
    assert_eq!(workers, ["west", "gone", "attic", "idle", "abacus", "east"]);
    let events: Vec<_> = view.snapshot.events.iter().map(|event| event.number).collect();
    assert_eq!(events, [2, 3, 1], "a problem, then the newest");
    let shown = screen(&view, 80, 30).to_string();
    assert!(shown.contains("4 s        gone"), "{shown}");
}

#[test]
fn q_leaves_and_control_c_interrupts() {
    let mut view = view();
    assert_eq!(type_in(&mut view, "q"), Some(Effect::Leave));
    let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    for keys in ["", "kp", "n"] {
        type_in(&mut view, keys);
        assert_eq!(view.press(control_c), Some(Effect::Interrupt));
    }
}
