//! Given queens and blocked cells: counted here and on a cluster, listed, exported.

use insta::assert_snapshot;
use serde_json::json;

use crate::Place;
use crate::processes::{Coordinator, end_well, eventually};

const DRAWING: &str = ". . . . . #\n. . # . . .\n. . . . . .\n. . . . . .\nQ . . . . .\n. . . . . .\n";

/// All but the last line, which has times.
fn without_times(text: &str) -> &str {
    text.trim_end().rsplit_once('\n').expect("lines").0
}

/// A drawing of the open board with a queen in the first row.
fn with_queen(n: usize, column: usize) -> String {
    let row = ".".repeat(n);
    format!("{}Q{}\n{}", &row[..column], &row[column + 1..], format!("{row}\n").repeat(n - 1))
}

#[test]
fn for_people_and_for_programs() {
    let place = Place::new().with_file("board", DRAWING);
    assert_snapshot!(without_times(&place.stdout("run 6 --cells board --threads 3")), @r"
    N = 6 with 29 of 36 cells open
    TOTAL   1
    counted, not confirmed: 0 of 1 second counts under another credential and recounts agree (export the ledger; 'nqueens verify --sample 1' counts more); 0 of 1 recounts agree (only a coordinator without --no-recounts makes them)
    ");
    let result = place.json("run 6 --cells board --json --kernel scalar --db other.db");
    let facts =
        ["n", "subject", "cells", "total", "count8", "unique", "plan", "kernel", "check", "confirmed"];
    let expected = json!([
        6,
        "N = 6 with 29 of 36 cells open",
        ".....#\n..#...\n......\n......\nQ.....\n......",
        "1",
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
    for (n, column) in [(9, 3), (8, 0), (4, 1)] {
        let place = Place::new().with_file("given", &with_queen(n, column));
        let listed = place.stdout(&format!("solutions {n} --cells given --format rows")).lines().count();
        let total = &place.json(&format!("run {n} --cells given --json"))["total"];
        assert_eq!(*total, listed.to_string(), "{n}");
    }
    let place = Place::new().with_file("board", DRAWING);
    assert_snapshot!(place.stdout("solutions 6 --cells board"), @r"
    1:
    . . Q . . .
    . . . . . Q
    . Q . . . .
    . . . . Q .
    Q . . . . .
    . . . Q . .
    ");
    // What is printed can be read again.
    let printed = place.stdout("solutions 8 --limit 1");
    let (_, drawing) = printed.split_once('\n').expect("a number, then a board");
    let place = place.with_file("solution", drawing).with_file("corner", &with_queen(4, 0));
    assert_eq!(place.stdout("solutions 8 --cells solution"), printed);
    let none = place.run("solutions 4 --cells corner");
    assert_eq!(none.stderr, "nqueens: there is no solution for N = 4 with 13 of 16 cells open\n");
}

#[test]
fn what_is_no_drawing() {
    let place = Place::new().with_file("board", "..\n..\n").with_file("wrong", "..\n.x\n");
    for (misuse, why) in [
        ("run 3 --cells board", "--cells: a drawing of the 2 by 2 board, not of N = 3"),
        ("run 2 --cells board", "--cells: all cells are open: this is the whole board"),
        ("run 2 --cells wrong", "'wrong' for '--cells <FILE>': row 2 of the drawing, from the top, has 'x'"),
        ("run 3 --cells missing", "'missing' for '--cells <FILE>': No such file"),
        ("solutions 8 --cells board --unique", "cannot be used with"),
        ("submit 2 --cells board --plan rows", "cannot be used with"),
    ] {
        let outcome = place.run(misuse);
        assert_eq!(outcome.code, 2);
        assert!(outcome.stderr.contains(why), "{}", outcome.stderr);
    }
}

#[test]
fn the_page_shows_what_is_printed() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/counting.md"));
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
    assert_eq!(shown, 2);
}

#[test]
fn tables() {
    let place = Place::new().with_file("given", &with_queen(7, 0));
    place.stdout("run 7 --cells given --db given.db");
    let table = place.stdout("export --db given.db --by class");
    assert_eq!(table, "class,n,count2,count4,count8,solutions\ncells,7,0,0,0,4\n");
    let why = place.failure("export --db given.db --by bound1");
    assert!(
        why.starts_with("a job of plan cells counts boards with the first row's queen in several"),
        "{why}"
    );
}

#[test]
fn runs_are_not_mixed_up() {
    let place = Place::new().with_file("one", &with_queen(7, 0)).with_file("two", &with_queen(7, 1));
    place.stdout("run 7 --cells one --db one.db");
    let other = |wanted| {
        format!("one.db holds a run of N = 7 with 43 of 49 cells open, not of {wanted}; choose another --db")
    };
    assert_eq!(place.failure("run 7 --cells two --db one.db"), other("N = 7 with 43 of 49 cells open"));
    assert_eq!(place.failure("run 7 --db one.db"), other("N = 7"));
    // By default each has a file of its own.
    for run in ["--cells one", "--cells two", ""] {
        place.stdout(&format!("run 7 {run}"));
    }
    let files: Vec<_> = place.files().into_keys().filter(|name| name.starts_with("nqueens-7")).collect();
    assert_eq!(files.len(), 3, "{files:?}");
}

#[test]
fn a_cluster_counts_a_board_though_a_worker_is_killed() {
    let place = Place::new().with_file(
        "board",
        &format!(
            "#..........\n{}...Q.......\n...........\n...........\n...........\n",
            "...........\n".repeat(6)
        ),
    );
    let coordinator = Coordinator::start(&place, &[], "--sync-seconds 1 --lease-seconds 3");
    let url = coordinator.url();
    let cells = coordinator.submit(&place, "11 --cells board --job-states 2000 --replicate 100 --priority 1");
    let mut west = coordinator.worker(&place, "west", &[]);
    eventually("it has counted something", || {
        let status = place.json(&format!("status {cells} --coordinator {url} --json"));
        (status["runs"][0]["done"].as_u64() > Some(0)).then_some(())
    });
    west.kill();
    let workers = [coordinator.worker(&place, "north", &[]), coordinator.worker(&place, "south", &[])];
    let watched = place.stdout(&format!("watch --interval 0.2 --coordinator {url}"));
    let listed = place.stdout("solutions 11 --cells board --format rows").lines().count();
    let status = place.json(&format!("status {cells} --coordinator {url} --json"));
    assert_eq!(status["runs"][0]["total"], listed.to_string());
    assert!(
        watched.contains(&format!("{cells}  N = 11 with 110 of 121 cells open: done, TOTAL {listed}")),
        "{watched}"
    );
    let status = place.stdout(&format!("status --coordinator {url}"));
    assert!(status.contains(&format!("{cells}: N = 11 with 110 of 121 cells open\n")), "{status}");
    workers.into_iter().for_each(end_well);
    assert_eq!(coordinator.stop().code, 0);
}
