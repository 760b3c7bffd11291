//! `nqueens table`, `bench` and `solutions`: boards and their counts by every way of counting.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::{Place, stdout};

/// Tables with zeros for their times, which must have their form.
fn without_times(text: &str) -> String {
    let cut = |line: &str| {
        let Some(at) = line.find(':').filter(|_| line.ends_with("equal")) else { return line.to_owned() };
        let (counts, time, check) = (&line[..at - 2], &line[at - 2..at + 9], &line[at + 9..]);
        let form: String = time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        assert_eq!(form, "00:00:00.00", "{line}");
        format!("{counts}{form}{check}")
    };
    text.lines().map(cut).collect::<Vec<_>>().join("\n")
}

#[test]
fn tables_and_boards_as_they_are_printed() {
    let text = Place::new().session(
        "table --to 12
        table --from 6 --to 8 --algorithm symmetry
        solutions 4
        solutions 4 --format json
        solutions 6 --unique
        solutions 6 --unique --format json
        solutions 6 --format rows
        solutions 5 --unique --format rows
        solutions 8 --limit 1
        solutions 1 --unique --format rows
        solutions 3",
    );
    assert_snapshot!(without_times(&text));
}

#[test]
fn every_algorithm_prints_the_same_table() {
    let known = without_times(&stdout("table --to 7"));
    for rung in ["brute-force", "backtracking", "flags", "bitmap", "mirror", "symmetry"] {
        let table = stdout(&format!("table --to 7 --algorithm {rung}"));
        assert_eq!(without_times(&table), known, "{rung}");
    }
}

#[test]
fn all_and_unique_solutions_are_complete_and_printed_as_they_are_found() {
    for (n, total, unique) in [(7, 40, 6), (8, 92, 12), (9, 352, 46)] {
        let lines = |options| stdout(&format!("solutions {n} --format rows {options}")).lines().count();
        assert_eq!((lines(""), lines("--unique"), lines("--limit 5")), (total, unique, 5));
    }
    assert_eq!(stdout("solutions 20 --limit 1 --format rows").lines().count(), 1);
}

#[test]
fn bench_measures_and_checks() {
    let bench = |arguments: &str| -> Value {
        serde_json::from_str(&stdout(&format!("bench {arguments} --json"))).expect("JSON")
    };
    for (plan, threads) in [("", 1), ("--plan rows", 2), ("--plan border", 3), ("--plan colours", 2)] {
        let figures = bench(&format!("11 {plan} --threads {threads} --kernel scalar"));
        let expected = [json!(11), json!("scalar"), json!(threads), json!("2680")];
        assert_eq!(["n", "kernel", "threads", "total"].map(|key| figures[key].clone()), expected);
        assert!(figures["states"].as_str().unwrap().parse::<u64>().unwrap() > 2680 / 8);
        assert!(figures["elapsed_s"].as_f64().unwrap() > 0.0);
        assert_eq!(figures.as_object().unwrap().len(), 7);
    }
    let text = stdout("bench 11");
    assert!(text.starts_with("N = 11: 2,680 solutions in ") && text.lines().count() == 2, "{text}");
    // Small boards have no jobs.
    for (n, total) in [(1, "1"), (2, "0"), (3, "0"), (4, "2")] {
        assert_eq!(bench(&format!("{n}"))["total"], total, "N = {n}");
    }
}
