//! The terms of OEIS sequences: published (`nqueens known`), and counted (`nqueens export --format bfile`).

use insta::assert_snapshot;
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::known::published;
use nqueens_kernel::sequence::Sequence;
use serde_json::{Value, json};

use crate::processes::Coordinator;
use crate::{Place, stdout};

fn term(sequence: &str, n: u32) -> String {
    let n = BoardSize::new(n).expect("a board");
    let orbits = published(n).expect("published").orbits;
    sequence.parse::<Sequence>().expect("a sequence").term(n, orbits).expect("no overflow").to_string()
}

#[test]
fn all_that_is_known_fits_a_terminal() {
    let known = stdout("known");
    let (table, sources) = known.split_once("\n\n").expect("two parts");
    for line in known.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let rows: Vec<Vec<_>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["N", "TOTAL", "UNIQUE", "COUNT2", "COUNT4", "COUNT8"]);
    assert_eq!(rows.len(), 2 + 27);
    for (row, n) in rows[2..].iter().zip(1..) {
        assert_eq!(row[0], n.to_string());
        for (cell, sequence) in row[1..].iter().zip(&rows[1]) {
            // The OEIS counts the single queen among those equal to their quarter turn.
            let expected = if (n, *sequence) == (1, "A260318") { "0".to_owned() } else { term(sequence, n) };
            assert_eq!(*cell, expected, "{sequence}, N = {n}");
        }
    }
    let (symmetric, sources) = sources.split_once("\n\n").expect("two parts");
    let rows: Vec<Vec<_>> = symmetric.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["N", "HALF", "TURN", "QUARTER", "TURN"]);
    assert_eq!(rows[1], ["A032522", "A033148"]);
    assert_eq!(rows.len(), 2 + 27);
    for (row, n) in rows[2..].iter().zip(1..) {
        assert_eq!(row[..], [n.to_string(), term("A032522", n), term("A033148", n)]);
    }
    for number in Sequence::ALL.map(Sequence::name) {
        assert!(sources.contains(number), "{sources}");
    }
    assert!(sources.contains("https://oeis.org/") && sources.contains("N = 27: project Q27"), "{sources}");
}

#[test]
fn what_is_known_of_one_board() {
    assert_snapshot!(stdout("known 12"), @r"
    N = 12
    A000170  14,200  TOTAL: all solutions
    A002562   1,787  UNIQUE: solutions up to rotation and reflection
    A260318       4  COUNT2: orbits of 2, solutions equal to their quarter turn
    A260319      18  COUNT4: orbits of 4, solutions equal to their half turn only
    A260320   1,765  COUNT8: orbits of 8, solutions without symmetry
    A032522      80  all solutions equal to their half turn: 2 COUNT2 + 4 COUNT4
    A033148       8  all solutions equal to their quarter turn: 2 COUNT2
    source: https://oeis.org/ and the number
    ");
    assert!(stdout("known 26").contains("\nfirst counted by project Queens@TUD, 2009"));
    let only = "A260318 has 1 here; this program's three counts leave out the only queen\n";
    assert!(
        stdout("known 1").contains(only)
            && stdout("known").contains(only)
            && !stdout("known 2").contains(only)
    );
    let board = &Place::new().json("known 12 --json")["boards"][0];
    assert_eq!(board["n"], json!(12));
    for sequence in Sequence::ALL.map(Sequence::name) {
        assert_eq!(board[sequence], json!(term(sequence, 12)));
    }
    assert_snapshot!(stdout("known 29"), @r"
    N = 29
    nothing is published: the counts end at 27; 'nqueens estimate 29' estimates
    source: https://oeis.org/ and the number
    ");
    let known = Place::new().json("known --json");
    assert_eq!(known["boards"].as_array().expect("boards").len(), 31);
    assert_eq!(known["boards"][28]["A000170"], Value::Null);
    assert_eq!(known["sequences"].as_array().expect("sequences").len(), 7);
}

#[test]
fn a_b_file_has_a_line_for_each_board_counted() {
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &[], "--sync-seconds 1");
    let submit = |board: &str| place.stdout(&format!("submit {board} --coordinator {}", coordinator.url()));
    let runs = ["12 --plan colours", "1", "5 --plan rows", "12 --plan border", "2"].map(submit);
    let mut worker = coordinator.worker(&place, "one", &[]);
    place.stdout(&format!("watch all --plain --interval 0.2 --coordinator {}", coordinator.url()));
    worker.signal("-TERM");
    assert_eq!(worker.end().code, 0);
    for sequence in Sequence::ALL.map(Sequence::name) {
        let file = place.stdout(&format!("export --db queens.db --format bfile --sequence {sequence}"));
        let (comment, lines) = file.split_once('\n').expect("a comment");
        assert!(comment.starts_with(&format!("# {sequence} (")), "{comment}");
        let expected = [1, 2, 5, 12].map(|n| format!("{n} {}\n", term(sequence, n)));
        assert_eq!(lines, expected.concat());
    }
    assert_snapshot!(place.stdout(&format!("export {} --db queens.db --format bfile", runs[0].trim_end())), @r"
    # A000170 (TOTAL: all solutions)
    12 14200
    ");
    let open = submit("11");
    let outcome = place.run("export --db queens.db --format bfile");
    assert_eq!(outcome.stderr, "nqueens: 1 of 6 runs have no total and are left out\n");
    assert_snapshot!(place.failure(&format!("export {} --db queens.db --format bfile", open.trim_end())), @"no run here has a total that is a term of A000170; 'nqueens status' lists the runs");
    assert_eq!(coordinator.stop().code, 0);
    assert_eq!(place.run("export --db queens.db --format bfile --by class").code, 2);
}

#[test]
fn the_single_queen_is_one_solution_in_none_of_the_three_counts() {
    let place = Place::new();
    let run = place.json("run 1 --json --db 1.db");
    let status = &place.json("status --db 1.db --json")["runs"][0];
    assert_eq!([&run["total"], &run["unique"], &status["total"]], ["1", "1", "1"]);
    for count in ["count2", "count4", "count8"] {
        assert_eq!([&run[count], &status[count]], ["0", "0"], "{count}");
    }
    assert_eq!(place.json("bench --n 1 --json")["total"], "1");
    assert_eq!(place.stdout("solutions 1 --unique --format rows"), "0  quarter-turn\n");
    for table in [place.stdout("table --to 1"), place.stdout("known")] {
        let first: Vec<_> = table.lines().nth(2).expect("a row").split_whitespace().take(6).collect();
        assert_eq!(first, ["1", "1", "1", "0", "0", "0"]);
    }
}
