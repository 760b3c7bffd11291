//! Tests of the drawing.

use nqueens_kernel::known::published;
use nqueens_model::operator::{Checked, Outcome};

use super::*;
use crate::output::thousands;

#[test]
fn the_picture_at_80_by_24() {
    let mut view = view();
    type_in(&mut view, "k");
    insta::assert_snapshot!(screen(&view, 80, 24));
}

#[test]
fn the_picture_at_120_by_40() {
    let mut view = view();
    type_in(&mut view, "kp");
    insta::assert_snapshot!(screen(&view, 120, 40));
}

/// The largest board that was ever counted, done.
fn finished() -> Snapshot {
    let known = published(BoardSize::new(27).expect("a size")).expect("published");
    let mut done = run(3, 27, RunState::Done, 40_572);
    done.started_at = Some(NOW - 86_400_000);
    done.finished_at = Some(NOW - 600_000);
    done.outcome = Some(Outcome {
        totals: known.orbits,
        total: known.total,
        checked: Checked::Published,
        grounds: None,
    });
    Snapshot { runs: vec![done], ..snapshot() }
}

#[test]
fn a_finished_run_tells_its_counts_and_what_they_took() {
    let view = view_of(finished());
    insta::assert_snapshot!(screen(&view, 80, 24));
    let wide = screen(&view, 120, 40).to_string();
    let known = published(BoardSize::new(27).expect("a size")).expect("published");
    for fact in [
        "TOTAL 234,907,967,154,122,528, equal to the published count".to_owned(),
        format!("UNIQUE {}", thousands(known.unique)),
        "took 23 h 50 min".to_owned(),
    ] {
        assert!(wide.contains(&fact), "{fact}: {wide}");
    }
}

/// With what is long in it: names, errors, events.
fn long_winded() -> Snapshot {
    let mut snapshot = snapshot();
    snapshot.runs[2].reason = Some(
        "the sum of the counts is 365,595 and not 365,596, the published count: results of one worker may be wrong"
            .to_owned(),
    );
    snapshot.workers[0].about.name = "rack-17-node-004.batch.cluster.physics.university.example".to_owned();
    snapshot.events[1].text =
        "Untrusted: rack-17-node-004.batch.cluster.physics.university.example. It gets no more jobs; \
                              1,204 of its results are counted again. Two others counted job 17 alike."
            .to_owned();
    snapshot
}

#[test]
fn long_names_and_errors_at_80_by_24() {
    let mut view = view_of(long_winded());
    type_in(&mut view, "kk");
    view.lost = Some(
        "can't reach a coordinator at http://head.cluster.physics.university.example:7327 (Connection refused); check \
         the address, and that 'nqueens coordinator' runs there"
            .to_owned(),
    );
    insta::assert_snapshot!(screen(&view, 80, 24));
    view.lost = None;
    // Events are not cut while lines are empty.
    let whole = screen(&view, 80, 24).to_string();
    assert!(whole.contains("job 17 alike"), "{whole}");
}

#[test]
fn a_hundred_workers_leave_room_for_events() {
    let mut snapshot = snapshot();
    snapshot.workers = (10..110).map(|number| worker(number, "node", 1e9)).collect();
    let full = screen(&view_of(snapshot.clone()), 80, 24).to_string();
    assert!(full.contains("100 WORKERS") && full.contains("without a heartbeat"), "{full}");
    // Without events they have their lines, too.
    snapshot.events.clear();
    let rows = |screen: &str| screen.lines().filter(|line| line.contains(" node ")).count();
    let free = screen(&view_of(snapshot), 80, 24).to_string();
    assert!(rows(&free) > rows(&full), "{free}");
}

#[test]
fn a_lost_coordinator_is_told_of_until_it_is_back() {
    let mut view = view();
    view.lost = Some("can't reach a coordinator".to_owned());
    let alarm = "out of date; trying again: can't reach a coordinator";
    assert!(screen(&view, 80, 24).to_string().contains(alarm));
    view.update(snapshot());
    assert!(!screen(&view, 80, 24).to_string().contains("out of date"));
}

#[test]
fn the_headline_tells_of_those_who_are_there_and_of_all_runs() {
    let head = |snapshot| screen(&View::new(String::new(), false, snapshot), 80, 24).to_string();
    let mut all = snapshot();
    all.runs.push(run(3, 21, RunState::Active, 7));
    assert!(head(all.clone()).contains("3 workers, 12 threads, 16.0 G states/s"), "of both runs");
    // An untrusted worker is listed, also when it is gone.
    all.workers[1].present = false;
    assert!(head(all.clone()).contains("2 workers, 8 threads, ") && head(all.clone()).contains("west"));
    all.runs.retain(|run| run.progress.speed.is_none());
    assert!(head(all.clone()).contains("2 workers, 8 threads  "), "{}", head(all));
}

#[test]
fn no_size_is_too_small() {
    let mut view = view();
    for keys in ["", "p", "njjjd"] {
        type_in(&mut view, keys);
        for (width, height) in
            [0, 1, 2, 5, 13, 39].into_iter().flat_map(|width| (0..26).map(move |height| (width, height)))
        {
            screen(&view, width, height);
        }
    }
    let empty = View::new(String::new(), false, Snapshot::default());
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
    let mut view = view();
    type_in(&mut view, "p");
    terminal.draw(|frame| draw(frame, &view, false)).expect("nor this");
    assert!(!colours(&terminal));
    terminal.draw(|frame| draw(frame, &view, true)).expect("nor this");
    assert!(colours(&terminal));
}

#[test]
fn a_name_cannot_command_the_terminal() {
    let mut snapshot = snapshot();
    snapshot.workers[0].about.name = "\x1b[2J\x07evil".to_owned();
    snapshot.events[0].text = "\x1b]0;title\x07".to_owned();
    let view = View::new(String::new(), false, snapshot);
    let screen = screen(&view, 80, 24);
    let text: String = screen.buffer().content().iter().map(ratatui::buffer::Cell::symbol).collect();
    assert!(text.contains("evil") && !text.contains(char::is_control));
}
