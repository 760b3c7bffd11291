//! Tests of the drawing.

use super::*;

#[test]
fn the_picture_at_80_by_24() {
    let mut app = app();
    for picture_number in 0..30 {
        let mut next = picture();
        let speed = Speed { threads: 11.8, states_per_s: 8.01e9 + 1e8 * f64::from(picture_number % 10) };
        next.runs[0].progress.speed = Some(speed);
        app.hear(FeedMessage::Picture(next));
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
    app.hear(FeedMessage::Lost("can't reach a coordinator".to_owned()));
    let alarm = "out of date; trying again: can't reach a coordinator";
    assert!(screen(&app, 80, 24).to_string().contains(alarm));
    app.hear(FeedMessage::Picture(picture()));
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
    let empty = App::new(String::new(), false, ClusterView::default());
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
