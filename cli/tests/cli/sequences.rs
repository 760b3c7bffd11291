//! The terms of OEIS sequences: published (`nqueens table --published`), and counted (`nqueens export --format bfile`).

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::known::published;
use nqueens_kernel::sequence::Sequence;
use serde_json::{Value, json};

use crate::processes::{Coordinator, end_well};
use crate::{Place, stdout};

fn term(sequence: &str, n: u32) -> String {
    let n = BoardSize::new(n).expect("a board");
    let orbits = published(n).expect("published").orbits;
    sequence.parse::<Sequence>().expect("a sequence").term(n, orbits).expect("no overflow").to_string()
}

#[test]
fn all_that_is_known_fits_a_terminal() {
    let known = stdout("table --published");
    assert!(known.lines().all(|line| line.chars().count() <= 80), "{known}");
    let parts: Vec<_> = known.splitn(3, "\n\n").collect();
    let [orbits, symmetric, sources] = parts[..] else { panic!("{known}") };
    for (table, titles, names) in
        [(orbits, "N TOTAL UNIQUE COUNT2 COUNT4 COUNT8", 5), (symmetric, "N HALF TURN QUARTER TURN", 2)]
    {
        let rows: Vec<Vec<_>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!((rows[0].join(" "), rows[1].len(), rows.len()), (titles.to_owned(), names, 2 + 27));
        for (row, n) in rows[2..].iter().zip(1..) {
            assert_eq!(row[0], n.to_string());
            for (cell, sequence) in row[1..].iter().zip(&rows[1]) {
                // The OEIS counts the single queen among those equal to their quarter turn.
                let expected =
                    if (n, *sequence) == (1, "A260318") { "0".to_owned() } else { term(sequence, n) };
                assert_eq!(*cell, expected, "{sequence}, N = {n}");
            }
        }
    }
    for said in Sequence::ALL.iter().map(|it| it.name()).chain(["https://oeis.org/", "N = 27: project Q27"]) {
        assert!(sources.contains(said), "{sources}");
    }
}

#[test]
fn published_boards_are_told_one_by_one() {
    let table = stdout("table --published --from 26 --to 26");
    let first = "\n\nFirst counted by\nN = 26: project Queens@TUD, 2009; confirmed by project MC#, 2009\n";
    assert!(table.ends_with(first), "{table}");
    assert_eq!(table.lines().filter(|line| line.starts_with("26  ")).count(), 2, "{table}");
    let known = Place::new().json("table --published --json");
    assert_eq!(["boards", "sequences"].map(|list| known[list].as_array().expect("a list").len()), [27, 7]);
    let board = &known["boards"][11];
    assert_eq!((&board["n"], &board["first_counted"]), (&json!(12), &Value::Null));
    for sequence in Sequence::ALL.iter().map(|it| it.name()) {
        assert_eq!(board[sequence], json!(term(sequence, 12)));
    }
}

#[test]
fn a_b_file_has_a_line_for_each_board_counted() {
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &[], "--sync-seconds 1");
    let submit = |board| coordinator.submit(&place, board);
    let runs = ["12 --plan colours", "1", "5 --plan rows", "12 --plan border", "2"].map(submit);
    let worker = coordinator.worker(&place, "one", &[]);
    place.stdout(&format!("watch --plain --interval 0.2 --coordinator {}", coordinator.url()));
    end_well(worker);
    for sequence in Sequence::ALL.iter().map(|it| it.name()) {
        let file = place.stdout(&format!("export --db queens.db --format bfile --sequence {sequence}"));
        let (comment, lines) = file.split_once('\n').expect("a comment");
        assert!(comment.starts_with(&format!("# {sequence} (")), "{comment}");
        let expected = [1, 2, 5, 12].map(|n| format!("{n} {}\n", term(sequence, n)));
        assert_eq!(lines, expected.concat());
    }
    let one = place.stdout(&format!("export {} --db queens.db --format bfile", runs[0]));
    assert_eq!(one, "# A000170 (TOTAL: all solutions)\n12 14200\n");
    let table = place.run("export --db queens.db --sequence A002562");
    assert_eq!((table.code, &*table.stdout), (2, ""));
    assert!(
        table.stderr.contains("--sequence chooses what a b-file lists: give --format bfile"),
        "{}",
        table.stderr
    );
    let open = submit("11");
    let outcome = place.run("export --db queens.db --format bfile");
    assert_eq!(outcome.stderr, "nqueens: 1 of 6 runs have no total and are left out\n");
    let none = "no run here has a total that is a term of A000170; 'nqueens status' lists the runs";
    assert_eq!(place.failure(&format!("export {open} --db queens.db --format bfile")), none);
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
    for table in [place.stdout("table --to 1"), place.stdout("table --published")] {
        let first: Vec<_> = table.lines().nth(2).expect("a row").split_whitespace().take(6).collect();
        assert_eq!(first, ["1", "1", "1", "0", "0", "0"]);
    }
}
