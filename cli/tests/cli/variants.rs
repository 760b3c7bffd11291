//! Given queens, blocked cells and the torus: counted, listed, kept in a file.

use insta::assert_snapshot;
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::known::toroidal;
use serde_json::{Value, json};

use crate::processes::{Background, eventually};
use crate::{Place, stdout};

/// Counts for a second or so on one thread, in some thousand pieces.
const LONG: &str = "run 15 --given c4 --kernel reference --threads 1 --job-states 5000 --db long --json";

/// What [`LONG`] comes to.
const LONG_TOTAL: &str = "159121";

const DRAWING: &str = ". . . . . #\n. . # . . .\n. . . . . .\n. . . . . .\nQ . . . . .\n. . . . . .\n";

#[test]
fn for_people() {
    assert_snapshot!(stdout("run 8 --given a1,c5 --threads 3"), @r"
    N = 8, 2 queens given
    TOTAL   1
    counted, not confirmed: no count of such a board is published
    ");
    assert_snapshot!(stdout("run 13 --torus"), @r"
    N = 13 on a torus
    TOTAL   4,524
    equal to the published count
    ");
    let drawn = Place::new().with_file("board", DRAWING);
    assert_snapshot!(drawn.stdout("run 6 --blocked board"), @r"
    N = 6, 1 queen given, 2 cells blocked
    TOTAL   1
    counted, not confirmed: no count of such a board is published
    ");
}

#[test]
fn for_programs() {
    let place = Place::new().with_file("board", DRAWING);
    let mut result = place.json("run 6 --blocked board --given c1 --json --kernel scalar");
    assert!(result["elapsed_s"].as_f64().expect("seconds") > 0.0);
    result["elapsed_s"] = Value::Null;
    let expected = json!({
        "n": 6, "variant": "cells", "given": ["a2", "c1"], "blocked": 2, "total": "0", "pieces": 1,
        "elapsed_s": null, "kernel": "scalar", "check": "none", "confirmed": false,
    });
    assert_eq!(result, expected);
}

#[test]
fn totals_are_those_of_the_boards_that_are_printed() {
    let place = Place::new().with_file("board", DRAWING);
    let boards =
        ["6 --blocked board", "9 --given d4", "9 --given d4,a5", "7 --torus", "11 --torus", "4 --given b1"];
    for board in boards {
        let listed = place.stdout(&format!("solutions {board} --format rows")).lines().count();
        assert_eq!(place.json(&format!("run {board} --json"))["total"], listed.to_string(), "{board}");
    }
    assert_snapshot!(place.stdout("solutions 6 --blocked board"), @r"
    1:
    . . Q . . .
    . . . . . Q
    . Q . . . .
    . . . . Q .
    Q . . . . .
    . . . Q . .
    ");
    assert_snapshot!(place.stdout("solutions 5 --torus --limit 2 --format rows"), @r"
    0 2 4 1 3
    0 3 1 4 2
    ");
    // What is printed can be read again.
    let printed = place.stdout("solutions 8 --given a1 --limit 1");
    let (_, drawing) = printed.split_once('\n').expect("a number, then a board");
    let place = place.with_file("solution", drawing);
    assert_eq!(place.stdout("solutions 8 --blocked solution"), printed);
    let none = place.run("solutions 4 --given a1");
    assert_eq!(none.stderr, "nqueens: there is no solution for N = 4, 1 queen given\n");
}

#[test]
fn every_torus_of_up_to_17_is_as_published() {
    let place = Place::new();
    for n in BoardSize::MIN.up_to(BoardSize::new(17).expect("a board")) {
        let result = place.json(&format!("run {n} --torus --json"));
        let expected = (&json!(toroidal(n).to_string()), &json!("published"));
        assert_eq!((&result["total"], &result["check"]), expected, "N = {n}");
        assert_eq!((&result["variant"], &result["kernel"]), (&json!("torus"), &Value::Null));
    }
}

#[test]
fn what_is_no_variant() {
    let complaint = |arguments: &str| {
        let place = Place::new().with_file("open", "..\n..\n");
        let outcome = place.run(arguments);
        assert_eq!((outcome.code, &*outcome.stdout), (2, ""), "{arguments}: {}", outcome.stderr);
        assert_eq!(place.files().len(), 1, "{arguments} leaves no file behind");
        outcome.stderr.lines().next().expect("a line").to_owned()
    };
    assert_snapshot!(complaint("run 8 --given a1,a2"), @"error: the queens given on a1 and a2 attack each other");
    assert_snapshot!(complaint("run 8 --given j1"), @"error: 'j1' is no cell of the 8 by 8 board, whose cells are a1 to h8");
    assert_snapshot!(complaint("run 2 --blocked open"), @"error: no queen is given and no cell is blocked: this is the whole board");
    assert_snapshot!(complaint("run 8 --given a1 --torus"), @"error: the argument '--given <CELLS>' cannot be used with '--torus'");
    assert_snapshot!(complaint("solutions 8 --given a1 --unique"), @"error: the argument '--unique' cannot be used with:");
    assert_snapshot!(complaint("run 8 --given a1 --kernel opencl"), @"error: devices count no variants; choose another --kernel");
    for plain in ["--plan rows", "--device all", "--unpublished", "--checks-min 3", "--memory 1GB"] {
        let option = plain.split(' ').next().expect("an option");
        assert!(complaint(&format!("run 7 --torus {plain}")).contains(option));
    }
    let place = Place::new().with_file("board", "..\n..\n");
    assert_eq!(
        place.failure("run 3 --blocked board"),
        "board: a drawing of the 3 by 3 board has 3 rows, not 2"
    );
    assert!(place.failure("run 3 --blocked missing").starts_with("missing: No such file"));
}

#[test]
fn the_page_shows_what_is_printed() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/variants.md"));
    let page = page.expect("the page");
    let (_, rest) = page.split_once("```console\n$ cat board\n").expect("an example");
    let (example, _) = rest.split_once("```").expect("its end");
    let mut commands = example.split("$ nqueens ");
    let place = Place::new().with_file("board", commands.next().expect("a drawing"));
    let mut shown = 0;
    for (command, output) in commands.filter_map(|text| text.split_once('\n')) {
        assert_eq!(place.stdout(command), output, "{command}");
        shown += 1;
    }
    assert_eq!(shown, 3);
}

fn lines(place: &Place, file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(place.path(file)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Starts [`LONG`], and waits until more than so many lines are kept.
fn start(place: &Place, kept: usize) -> Background {
    let mut program = Background::start(&mut place.command(LONG));
    eventually("so many pieces are counted", || {
        assert!(program.is_running(), "it ended too early");
        (lines(place, "long").len() > kept + 5).then_some(())
    });
    program
}

#[test]
fn stopped_in_any_way_it_goes_on() {
    let place = Place::new();
    start(&place, 0).kill();
    let first = lines(&place, "long");
    for signal in ["-INT", "-TERM"] {
        let mut program = start(&place, lines(&place, "long").len());
        program.signal(signal);
        let outcome = program.end();
        assert_eq!((outcome.code, &*outcome.stdout), (130, ""), "{}", outcome.stderr);
        let expected = "interrupted; progress is kept in long; run the same command again to continue\n";
        assert_eq!(outcome.stderr, expected);
    }
    assert_eq!(place.json(LONG)["total"], LONG_TOTAL);
    let all = lines(&place, "long");
    // The last line may have been cut off.
    assert_eq!(all[..first.len() - 1], first[..first.len() - 1], "what was counted stays");
    // Now it is printed, and not counted again, with any engine.
    let again = place.json("run 15 --given c4 --db long --json");
    assert_eq!((&again["total"], &again["kernel"]), (&LONG_TOTAL.into(), &Value::Null));
    assert_eq!(lines(&place, "long"), all);
    assert_eq!(
        place.json("run 15 --given c4 --json --db other")["total"],
        LONG_TOTAL,
        "another engine, other pieces"
    );
}

#[test]
fn one_process_at_a_time() {
    let place = Place::new();
    let mut program = start(&place, 0);
    // Or it might have ended before another looks.
    program.signal("-STOP");
    let expected = "another nqueens process is using long; wait for it or stop it, or choose another --db";
    assert_eq!(place.failure(LONG), expected);
    program.signal("-CONT");
    assert!(program.end().stdout.contains(LONG_TOTAL));
}

#[test]
fn files_are_not_mixed_up() {
    let place = Place::new();
    place.stdout("run 7 --torus --db torus");
    place.stdout("run 7 --db whole.db");
    place.stdout("run 7 --given a2 --db given");
    let fails = |arguments: &str, expected: &str| assert_eq!(place.failure(arguments), expected);
    fails("run 7 --torus --db whole.db", "whole.db is no progress file of a variant; choose another --db");
    fails("run 7 --db torus", "torus is not an SQLite database; it was left as it is, choose another --db");
    let other = |what| format!("given: it holds another variant than {what}; choose another --db");
    fails("run 7 --given a3 --db given", &other("N = 7, 1 queen given"));
    fails("run 8 --given a2 --db given", &other("N = 8, 1 queen given"));
    fails("run 7 --torus --db given", &other("N = 7 on a torus"));
    fails("run 7 --torus --db .", ". is not a file");
    for command in ["status", "export", "report"] {
        assert!(place.failure(&format!("{command} --db torus")).contains("is not an SQLite database"));
    }
}

#[test]
fn a_file_that_was_changed_is_told() {
    let place = Place::new();
    let run = "run 10 --given c4 --job-states 100 --db kept --json";
    let total = place.json(run)["total"].clone();
    let text = String::from_utf8(place.files()["kept"].clone()).expect("text");
    let fails = |changed: &str, expected: &str| {
        let place = Place::new().with_file("kept", changed);
        assert_eq!(place.failure(run), expected);
        assert_eq!(place.files()["kept"], changed.as_bytes(), "it stays as it is");
    };
    let all: Vec<_> = text.lines().collect();
    let third = all[2].replace("\"solutions\":\"", "\"solutions\":\"1");
    fails(&text.replace(all[2], &third), "kept: damaged: the hash does not fit on line 3");
    fails(&text.replace(&format!("{}\n", all[1]), ""), "kept: damaged: the hash does not fit on line 2");
    // A file that was cut off anywhere is counted to its end.
    for end in [0, 5, all[0].len() - 1, all[0].len() + 30, text.len() - 1] {
        let place = Place::new().with_file("kept", &text[..end]);
        assert_eq!(place.json(run)["total"], total, "cut off after {end} bytes");
        let (again, before) = (lines(&place, "kept").len(), all.len());
        assert_eq!(again, before);
    }
}
