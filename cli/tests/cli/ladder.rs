//! The page of the ladder, as `deploy/ladder` builds it, opened from the disk.

use std::path::Path;
use std::process::Command;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::ladder::{Form, Rung};
use serde_json::{Value, json};

use crate::browser::{Axe, Browser, END, RIGHT, fits_everywhere};
use crate::http::{has_target, is_here};
use crate::{Outcome, Place};

const TAB: char = '\u{e004}';

/// The choice of an algorithm and a board, as a reader makes it.
fn choose(browser: &Browser, rung: Rung, n: u32) {
    browser.run(&format!(
        "document.getElementById('n').value = {n}; document.getElementById('{rung}').checked = true; \
         document.getElementById('choice').dispatchEvent(new Event('change'))"
    ));
}

fn texts<const K: usize>(browser: &Browser, ids: [&str; K]) -> [String; K] {
    ids.map(|id| browser.text(&format!("#{id}")))
}

fn thousands(number: impl ToString) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

#[test]
fn the_page_climbs_the_ladder() {
    if !is_here("chromedriver") || !has_target("wasm32-unknown-unknown") {
        return;
    }
    let place = Place::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let built = Outcome::of(Command::new(root.join("deploy/ladder")).arg(place.path("page")));
    assert_eq!(built.code, 0, "{}", built.stderr);
    let browser = Browser::start();
    browser.open(&format!("file://{}#4/mirror", place.path("page/index.html").display()));
    browser.wait("document.getElementById('states-of').textContent");

    steps_as_the_kernel_does(&browser);
    counts_as_the_kernel_does(&browser);
    compares_as_in_the_documentation(&browser, &root);
    serves_every_reader(&browser);
    fits_everywhere(&browser);
    assert_eq!(browser.complaints(), Vec::<Value>::new());
    if let Some(axe) = Axe::read() {
        axe.finds_nothing(&browser, "the ladder");
    }
}

fn steps_as_the_kernel_does(browser: &Browser) {
    let mut queens = Vec::new();
    for (number, step) in (1..).zip(Rung::Mirror.steps(BoardSize::new(4).expect("a board"))) {
        browser.press(RIGHT);
        queens.truncate(step.row);
        queens.push(step.column.to_string());
        assert_eq!(
            texts(browser, ["states", "queens"]),
            [format!("{number}"), format!("Queens from the top row down in columns {}.", queens.join(", "))]
        );
        let drawn = browser.run("return document.querySelectorAll('#board .queen').length");
        assert_eq!(drawn, queens.len());
        assert!(browser.text("#said").starts_with(&browser.text("#what")), "each step is said");
    }
    assert!(browser.text("#what").ends_with("A solution, counted for itself and its mirror image."));
    browser.press(RIGHT);
    assert_eq!(browser.text("#what"), "The search is over: 2 solutions, 8 states.");

    choose(browser, Rung::Symmetry, 6);
    browser.press(END);
    let what = "A solution, counted for its 4 images.";
    assert!(browser.text("#what").ends_with(what), "{}", browser.text("#what"));
    assert!(
        browser.run("return document.querySelectorAll('#board path.left-out').length").as_u64() > Some(0)
    );
    choose(browser, Rung::BruteForce, 5);
    for _ in 0..5 {
        browser.press(RIGHT);
    }
    let what =
        "Row 4: a queen on column 0. The board is full, but the queens of rows 0 and 1 attack each other.";
    assert_eq!(browser.text("#what"), what);
}

/// Each search is played to its end.
fn counts_as_the_kernel_does(browser: &Browser) {
    browser.run("const speed = document.getElementById('speed'); speed.value = speed.max");
    for n in 4..=6 {
        for rung in Rung::ALL {
            let size = BoardSize::new(n).expect("a board");
            let count = rung.count(Form::Recursive, size);
            let unique = count.orbits.unique(size).expect("a small board");
            let figures = [thousands(count.states), thousands(count.total), thousands(unique)];
            choose(browser, rung, n);
            let of = texts(browser, ["states-of", "total-of", "unique-of"]);
            assert_eq!(of, figures.clone().map(|figure| format!("of {figure}")), "{rung}, N = {n}");
            browser.run("document.getElementById('play').click()");
            browser.wait("document.getElementById('said').textContent.startsWith('The search is over')");
            assert_eq!(texts(browser, ["states", "total", "unique"]), figures, "{rung}, N = {n}");
        }
    }
    // It rests where it is told to.
    choose(browser, Rung::BruteForce, 8);
    browser.run("document.getElementById('play').click()");
    browser.wait("document.getElementById('states').textContent.length > 3");
    assert_eq!(browser.text("#play"), "Pause");
    assert!(browser.text("#said").starts_with("An empty board"), "too fast to be said");
    browser.run("document.getElementById('play').click()");
    let paused = texts(browser, ["states", "play", "what"]);
    assert_eq!(paused[1], "Play");
    assert!(browser.text("#said").starts_with(&paused[2]));
    browser.run("document.getElementById('step').click()");
    let states = |text: &str| text.replace(',', "").parse::<u64>().expect("a number");
    assert_eq!(states(&browser.text("#states")), states(&paused[0]) + 1);
}

fn compares_as_in_the_documentation(browser: &Browser, root: &Path) {
    let text = std::fs::read_to_string(root.join("docs/ladder.md")).expect("the documentation");
    let (_, table) = text.split_once("| rung | states, N = 8 |").expect("a table");
    let lines: Vec<Vec<_>> = table.lines().skip(2).take(6).map(|line| line.split(" | ").collect()).collect();
    for (column, n) in [(1, 8), (3, 10), (5, 12)] {
        browser.run(&format!(
            "document.getElementById('compare-n').value = {n}; document.getElementById('count').click()"
        ));
        browser.wait(&format!("document.getElementById('counted').textContent.endsWith('for N = {n}.')"));
        let told = browser.run(
            "return [...document.querySelectorAll('#table tr')].map((row) => row.children[1].textContent)",
        );
        let documented: Vec<_> = lines.iter().map(|line| line[column]).collect();
        assert_eq!(told, json!(documented), "N = {n}");
    }
    let last = browser.run(
        "return [...document.querySelector('#table tr:last-child').children].slice(3, 5).map((cell) => cell.textContent)",
    );
    assert_eq!(last, json!(["14,200", "1,787"]));
}

/// Those who have a keyboard alone see where they are; those who have a screen reader are told what is what.
fn serves_every_reader(browser: &Browser) {
    let unnamed = browser.run(
        "return [...document.querySelectorAll('input, select, table, fieldset')].filter((each) => \
             !(each.labels?.[0] ?? each.caption ?? each.querySelector('legend'))?.textContent.trim()).length",
    );
    assert_eq!(unnamed, 0);
    browser.run("document.querySelector('.skip').focus()");
    let mut seen = Vec::new();
    for _ in 0..6 {
        browser.press(TAB);
        let focus = browser.run(
            "const at = document.activeElement; return [at.id, getComputedStyle(at).outlineStyle, getComputedStyle(at).outlineWidth]",
        );
        assert_eq!((&focus[1], &focus[2]), (&"solid".into(), &"3px".into()), "{focus}");
        seen.push(focus[0].as_str().expect("an id").to_owned());
    }
    assert_eq!(seen, ["brute-force", "n", "play", "step", "next", "restart"]);
}
