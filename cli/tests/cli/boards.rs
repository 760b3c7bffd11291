//! `nqueens solutions`: the boards as they are printed.

use crate::{Place, stdout};
use insta::assert_snapshot;

#[test]
fn boards() {
    assert_snapshot!(stdout("solutions 4"), @r"
    1:
    . Q . .
    . . . Q
    Q . . .
    . . Q .

    2:
    . . Q .
    Q . . .
    . . . Q
    . Q . .
    ");
    assert_snapshot!(stdout("solutions 6 --unique"), @r"
    1: symmetry half-turn, orbit of 4
    . Q . . . .
    . . . Q . .
    . . . . . Q
    Q . . . . .
    . . Q . . .
    . . . . Q .
    ");
    assert_snapshot!(stdout("solutions 8 --limit 1"), @r"
    1:
    Q . . . . . . .
    . . . . Q . . .
    . . . . . . . Q
    . . . . . Q . .
    . . Q . . . . .
    . . . . . . Q .
    . Q . . . . . .
    . . . Q . . . .
    ");
}

#[test]
fn rows() {
    assert_snapshot!(stdout("solutions 6 --format rows"), @r"
    1 3 5 0 2 4
    2 5 1 4 0 3
    3 0 4 1 5 2
    4 2 0 5 3 1
    ");
    assert_snapshot!(stdout("solutions 5 --unique --format rows"), @r"
    0 2 4 1 3  none
    1 4 2 0 3  quarter-turn
    ");
    assert_snapshot!(stdout("solutions 1 --unique --format rows"), @r"0  quarter-turn");
}

#[test]
fn json() {
    assert_snapshot!(stdout("solutions 4 --format json"), @r#"
    {"queens":[1,3,0,2]}
    {"queens":[2,0,3,1]}
    "#);
    assert_snapshot!(stdout("solutions 6 --unique --format json"), @r#"{"queens":[1,3,5,0,2,4],"symmetry":"half-turn","orbit":4}"#);
}

#[test]
fn all_and_unique_are_complete() {
    for (n, total, unique) in [(7, 40, 6), (8, 92, 12), (9, 352, 46)] {
        let lines = |options| stdout(&format!("solutions {n} --format rows {options}")).lines().count();
        assert_eq!((lines(""), lines("--unique"), lines("--limit 5")), (total, unique, 5));
    }
}

#[test]
fn large_boards_are_printed_as_they_are_found() {
    assert_eq!(stdout("solutions 20 --limit 1 --format rows").lines().count(), 1);
}

#[test]
fn no_solution_is_no_error() {
    let outcome = Place::new().run("solutions 3");
    assert_eq!((outcome.code, &*outcome.stdout), (0, ""));
    assert_snapshot!(outcome.stderr, @r"nqueens: there is no solution for N = 3");
}

#[test]
fn a_reader_that_leaves_ends_it_silently() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    let mut command = Command::new(env!("CARGO_BIN_EXE_nqueens"));
    command.args(["solutions", "16", "--format", "rows"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = command.spawn().unwrap();
    let mut reader = BufReader::new(running.stdout.take().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    drop(reader);
    let output = running.wait_with_output().unwrap();
    assert_eq!(line, "0 2 4 1 12 8 13 11 14 5 15 6 3 10 7 9\n");
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}
