//! Given queens, blocked cells and the torus: counted here and on a cluster, listed, exported.

use insta::assert_snapshot;
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::known::toroidal;
use serde_json::{Value, json};

use crate::processes::{Background, Coordinator, ended, eventually};
use crate::{Place, stdout};

/// Counts for a second or so on one thread, in some thousand jobs.
const LONG: &str = "run 15 --given c4 --kernel reference --threads 1 --job-states 5000 --db long.db --json";

/// What [`LONG`] comes to.
const LONG_TOTAL: &str = "159121";

const DRAWING: &str = ". . . . . #\n. . # . . .\n. . . . . .\n. . . . . .\nQ . . . . .\n. . . . . .\n";

/// All but the last line, which has times.
fn without_times(text: &str) -> &str {
    text.trim_end().rsplit_once('\n').expect("lines").0
}

#[test]
fn for_people() {
    assert_snapshot!(without_times(&stdout("run 8 --given a1,c5 --threads 3")), @r"
    N = 8, 2 queens given
    TOTAL   1
    counted, not confirmed: 0 of 1 results were counted a second time under another credential or by the coordinator (export the ledger; 'nqueens verify --sample 1' counts more)
    ");
    assert_snapshot!(without_times(&stdout("run 13 --torus")), @r"
    N = 13 on a torus
    TOTAL   4,524
    equal to the published count
    ");
    let drawn = Place::new().with_file("board", DRAWING);
    assert!(
        drawn
            .stdout("run 6 --blocked board")
            .starts_with("N = 6, 1 queen given, 2 cells blocked\nTOTAL   1\n")
    );
}

#[test]
fn for_programs() {
    let place = Place::new().with_file("board", DRAWING);
    let result = place.json("run 6 --blocked board --given c1 --json --kernel scalar");
    let facts =
        ["n", "subject", "cells", "total", "count8", "unique", "plan", "kernel", "check", "confirmed"];
    let expected = json!([
        6,
        "N = 6, 2 queens given, 2 cells blocked",
        ".....#\n..#...\n......\n......\nQ.....\n..Q...",
        "0",
        null,
        null,
        "cells",
        "scalar",
        "none",
        false
    ]);
    assert_eq!(json!(facts.map(|fact| &result[fact])), expected);
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
    assert_snapshot!(complaint("run 7 --torus --plan rows"), @"error: the argument '--plan <PLAN>' cannot be used with:");
    assert_snapshot!(complaint("submit 7 --torus --plan rows"), @"error: the argument '--plan <PLAN>' cannot be used with:");
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
        let (found, shown_here) = (place.stdout(command), output);
        if command.starts_with("run") {
            assert_eq!(without_times(&found), without_times(shown_here), "{command}");
        } else {
            assert_eq!(found, shown_here, "{command}");
        }
        shown += 1;
    }
    assert_eq!(shown, 3);
}

#[test]
fn tables_of_variants() {
    let place = Place::new();
    place.stdout("run 7 --given a2 --db given.db");
    place.stdout("run 7 --torus --db torus.db");
    let plain = |db: &str, class: &str, total: u32| {
        let table = place.stdout(&format!("export --db {db}.db --by class"));
        assert_eq!(table, format!("class,n,count2,count4,count8,solutions\n{class},7,0,0,0,{total}\n"));
    };
    plain("given", "cells", 7);
    plain("torus", "torus", 28);
    let why = place.failure("export --db given.db --by bound1");
    assert!(
        why.starts_with("a job of plan cells counts boards with the first row's queen in several"),
        "{why}"
    );
    assert!(why.ends_with("count once for each cell of the first row: --given a7 and so on"), "{why}");
    let why = place.failure("export --db torus.db --by bound1");
    assert!(why.contains("every column of the first row has TOTAL / N of them"), "{why}");
}

fn done(place: &Place) -> u64 {
    let status = place.run("status --db long.db --json");
    let status: Value = serde_json::from_str(&status.stdout).unwrap_or_default();
    status["runs"][0]["done"].as_u64().unwrap_or(0)
}

/// Starts [`LONG`], and waits until more than so many jobs are done.
fn start(place: &Place, before: u64) -> Background {
    let mut program = Background::start(&mut place.command(LONG));
    eventually("some jobs are done", || {
        assert!(program.is_running(), "it ended too early");
        (done(place) > before).then_some(())
    });
    program
}

#[test]
fn stopped_in_any_way_it_goes_on() {
    let place = Place::new();
    start(&place, 0).kill();
    let mut program = start(&place, done(&place));
    program.signal("-INT");
    let outcome = program.end();
    assert_eq!((outcome.code, &*outcome.stdout), (130, ""), "{}", outcome.stderr);
    let expected = "interrupted; progress is kept in long.db; run the same command again to continue\n";
    assert_eq!(outcome.stderr, expected);
    assert_eq!(place.json(LONG)["total"], LONG_TOTAL);
    // Now it is printed, and not counted again.
    let again = place.stdout("run 15 --given c4 --db long.db");
    assert!(again.contains("TOTAL   159,121\n") && again.contains("counted already"), "{again}");
}

#[test]
fn runs_are_not_mixed_up() {
    let place = Place::new();
    place.stdout("run 7 --given a2 --db given.db");
    place.stdout("run 7 --db whole.db");
    let fails = |arguments: &str, expected: &str| assert_eq!(place.failure(arguments), expected);
    let other = "whole.db holds a run of N = 7, not of N = 7 on a torus; choose another --db";
    fails("run 7 --torus --db whole.db", other);
    let other = |wanted| {
        format!("given.db holds a run of N = 7, 1 queen given, not of {wanted}; choose another --db")
    };
    fails("run 7 --given a3 --db given.db", &other("N = 7, 1 queen given"));
    fails("run 7 --db given.db", &other("N = 7"));
    // By default each has a file of its own.
    for run in ["--given a2", "--given a3", "--torus", ""] {
        place.stdout(&format!("run 7 {run}"));
    }
    let files: Vec<_> = place.files().into_keys().filter(|name| name.starts_with("nqueens-7")).collect();
    assert_eq!(files.len(), 4, "{files:?}");
    assert!(files.contains(&"nqueens-7-torus.db".to_owned()), "{files:?}");
}

#[test]
fn a_cluster_counts_a_board_though_a_worker_is_killed() {
    let place = Place::new().with_file("board", &format!("#..........\n{}", "...........\n".repeat(10)));
    let coordinator = Coordinator::start(&place, &[], "--sync-seconds 1 --lease-seconds 3");
    let url = coordinator.url();
    let run = |arguments: &str| place.stdout(arguments).trim_end().to_owned();
    let first = "submit 11 --blocked board --given d4 --job-states 2000 --replicate 100 --priority 1";
    let cells = run(&format!("{first} --coordinator {url}"));
    let torus = run(&format!("submit 11 --torus --coordinator {url}"));
    let mut west = coordinator.worker(&place, "west", &[]);
    eventually("it has counted something", || {
        let status = place.json(&format!("status {cells} --coordinator {url} --json"));
        (status["runs"][0]["done"].as_u64() > Some(0)).then_some(())
    });
    west.kill();
    let workers = [coordinator.worker(&place, "north", &[]), coordinator.worker(&place, "south", &[])];
    let watched = place.stdout(&format!("watch all --interval 0.2 --coordinator {url}"));
    let listed = place.stdout("solutions 11 --blocked board --given d4 --format rows").lines().count();
    let status = place.json(&format!("status {cells} --coordinator {url} --json"));
    assert_eq!(status["runs"][0]["total"], listed.to_string());
    assert!(
        watched.contains(&format!("{cells}  N = 11, 1 queen given, 1 cell blocked: done, TOTAL {listed}")),
        "{watched}"
    );
    assert!(
        watched
            .contains(&format!("{torus}  N = 11 on a torus: done, TOTAL 88, equal to the published count")),
        "{watched}"
    );
    let status = place.stdout(&format!("status --coordinator {url}"));
    assert!(status.contains(&format!("{cells}: N = 11, 1 queen given, 1 cell blocked\n")), "{status}");
    for mut worker in workers {
        worker.signal("-TERM");
        assert_eq!(ended(&mut worker).code, 0);
    }
    assert_eq!(coordinator.stop().code, 0);
    let exported = place.run(&format!("export {cells} --db queens.db --format ledger --output ledger"));
    assert_eq!(exported.code, 0, "{}", exported.stderr);
    let verified = place.run("verify ledger --sample 100000");
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
    assert!(
        verified
            .stdout
            .starts_with(&format!("run {cells}, N = 11, 1 queen given, 1 cell blocked, plan cells,"))
    );
    assert!(
        verified
            .stdout
            .contains("BELIEVABLE: the jobs add up to 226, as an estimate made here, and 4 of 4 jobs"),
        "{}",
        verified.stdout
    );
}

#[test]
fn ledgers_are_verified_and_damage_is_found() {
    let place = Place::new().with_file("board", DRAWING);
    for (run, plan) in [
        ("6 --blocked board", "cells"),
        ("1 --given a1", "cells"),
        ("11 --torus", "torus"),
        ("1 --torus", "torus"),
    ] {
        let file = run.replace([' ', '-'], "");
        place.stdout(&format!("run {run} --db {file}.db --job-states 10"));
        place.run(&format!("export --db {file}.db --format ledger --output {file}.ledger"));
        let verified = place.run(&format!("verify {file}.ledger --sample 300"));
        assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
        assert!(verified.stdout.contains(&format!("plan {plan}")) && !verified.stdout.contains("FAILED"));
        let recomputed = place
            .program("python3")
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/recompute.py"))
            .arg(format!("{file}.ledger"))
            .output()
            .expect("Python");
        assert!(recomputed.status.success(), "{run}: {}", String::from_utf8_lossy(&recomputed.stderr));
        let text = place.stdout(&format!("report --db {file}.db"));
        let named = if plan == "torus" { "on a torus" } else { "given" };
        assert!(text.contains(named) && !text.contains("UNIQUE"), "{text}");
    }
    let text = std::fs::read_to_string(place.path("6blockedboard.ledger")).expect("a ledger");
    for (from, to) in [
        (".....#", "....#."),
        ("\"plan\":\"cells\"", "\"plan\":\"torus\""),
        ("\"n\":6", "\"n\":7"),
        ("\"cells\":", "\"other\":"),
    ] {
        assert!(text.contains(from), "{from}");
        let damaged = place.path("damaged");
        std::fs::write(&damaged, text.replacen(from, to, 1)).expect("writable");
        let verified = place.run("verify damaged");
        assert_eq!(verified.code, 1, "{from}: {}", verified.stdout);
    }
}
