//! `nqueens table` and `nqueens bench`: counts by every way of counting.

use crate::stdout;
use insta::assert_snapshot;

/// The table with zeros for its times, which must have their form.
fn without_times(table: &str) -> String {
    let (titles, lines) = table.split_once('\n').expect("titles");
    assert!(titles.ends_with("  hh:mm:ss.ms  published"), "{titles}");
    let cut = |line: &str| {
        let Some(at) = line.find(':') else { return line.to_owned() };
        let (counts, time, check) = (&line[..at - 2], &line[at - 2..at + 9], &line[at + 9..]);
        let form: String = time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        assert_eq!(form, "00:00:00.00", "{line}");
        format!("{counts}{form}{check}")
    };
    let lines: Vec<_> = lines.lines().map(cut).collect();
    format!("{titles}\n{}", lines.join("\n"))
}

#[test]
fn the_fastest() {
    assert_snapshot!(without_times(&stdout("table --to 12")), @r"
     N    TOTAL   UNIQUE   COUNT2   COUNT4   COUNT8  hh:mm:ss.ms  published
        A000170  A002562  A260318  A260319  A260320
     1        1        1        0        0        0  00:00:00.00  equal
     2        0        0        0        0        0  00:00:00.00  equal
     3        0        0        0        0        0  00:00:00.00  equal
     4        2        1        1        0        0  00:00:00.00  equal
     5       10        2        1        0        1  00:00:00.00  equal
     6        4        1        0        1        0  00:00:00.00  equal
     7       40        6        0        2        4  00:00:00.00  equal
     8       92       12        0        1       11  00:00:00.00  equal
     9      352       46        0        4       42  00:00:00.00  equal
    10      724       92        0        3       89  00:00:00.00  equal
    11    2,680      341        0       12      329  00:00:00.00  equal
    12   14,200    1,787        4       18    1,765  00:00:00.00  equal

     N  HALF TURN  QUARTER TURN
          A032522       A033148
     1          1             1
     2          0             0
     3          0             0
     4          2             2
     5          2             2
     6          4             0
     7          8             0
     8          4             0
     9         16             0
    10         12             0
    11         48             0
    12         80             8
    ");
}

#[test]
fn every_algorithm_prints_the_same_table() {
    let known = without_times(&stdout("table --to 7"));
    for rung in ["brute-force", "backtracking", "flags", "bitmap", "mirror", "symmetry"] {
        for form in ["", "--iterative"] {
            let table = stdout(&format!("table --to 7 --algorithm {rung} {form}"));
            assert_eq!(without_times(&table), known, "{rung} {form}");
        }
    }
}

#[test]
fn a_part_of_the_table() {
    let table = stdout("table --from 6 --to 8 --algorithm symmetry");
    assert_snapshot!(without_times(&table), @r"
     N    TOTAL   UNIQUE   COUNT2   COUNT4   COUNT8  hh:mm:ss.ms  published
        A000170  A002562  A260318  A260319  A260320
     6        4        1        0        1        0  00:00:00.00  equal
     7       40        6        0        2        4  00:00:00.00  equal
     8       92       12        0        1       11  00:00:00.00  equal

    N  HALF TURN  QUARTER TURN
         A032522       A033148
    6          4             0
    7          8             0
    8          4             0
    ");
    let table = stdout("table --from 8 --to 8");
    assert_eq!(table.lines().count(), 3 + 1 + 3);
    assert!(table.lines().all(|line| line.len() <= 80), "{table}");
}

#[test]
fn bench_measures_and_checks() {
    for (plan, threads) in [("", 1), ("--plan rows", 2), ("--plan border", 3), ("--plan colours", 2)] {
        let line = stdout(&format!("bench --n 11 {plan} --threads {threads} --kernel scalar --json"));
        let figures: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(figures["n"], 11);
        assert_eq!(figures["kernel"], "scalar");
        assert_eq!(figures["threads"], threads);
        assert_eq!(figures["total"], "2680");
        assert!(figures["states"].as_str().unwrap().parse::<u64>().unwrap() > 2680 / 8);
        assert!(figures["elapsed_s"].as_f64().unwrap() > 0.0);
        assert_eq!(figures.as_object().unwrap().len(), 7);
    }
    let text = stdout("bench --n 11");
    assert!(text.starts_with("N = 11: 2,680 solutions in ") && text.lines().count() == 2, "{text}");
}

#[test]
fn small_boards_have_no_jobs_and_are_counted_all_the_same() {
    for (n, total) in [(1, "1"), (2, "0"), (3, "0"), (4, "2")] {
        let figures: serde_json::Value =
            serde_json::from_str(&stdout(&format!("bench --n {n} --json"))).unwrap();
        assert_eq!(figures["total"], total, "N = {n}");
    }
}
