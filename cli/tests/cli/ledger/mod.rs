//! `nqueens export --format ledger` and `nqueens verify`: what is exported is believed, and what was damaged is not.

mod damage;
mod sample;
mod verdict;

use nqueens_evidence::chain::ChainWriter;
use serde_json::{Value, json};

use crate::http::is_here;
use crate::{Outcome, Place};

/// A ledger that was exported, to be damaged.
struct Ledger {
    place: Place,
    lines: Vec<Value>,
}

impl Ledger {
    fn of(run: &str) -> Self {
        let place = Place::new().with_file("board", BOARD);
        place.stdout(&format!("run {run} --threads 1 --db run.db"));
        let exported = place.run("export --db run.db --format ledger");
        assert_eq!(exported.code, 0, "{}", exported.stderr);
        let lines: Vec<Value> =
            exported.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let hash = lines.last().expect("lines")["chain"].as_str().expect("a hash");
        assert_eq!(
            exported.stderr,
            format!(
                "nqueens: {} lines; publish the last hash, so that every later change is detected: {hash}\n",
                lines.len()
            )
        );
        std::fs::write(place.path("ledger"), exported.stdout).expect("writable");
        Self { place, lines }
    }

    fn jobs(&self) -> usize {
        self.lines.iter().filter(|line| line["line"] == "job").count()
    }

    /// The lines as they are now, under a chain of their own.
    fn sealed(&self) -> String {
        let mut text = Vec::new();
        let mut writer = ChainWriter::new(&mut text);
        for line in &self.lines {
            let mut line = line.clone();
            line.as_object_mut().expect("an object").remove("chain");
            writer.write(&line).expect("to memory");
        }
        writer.finish().expect("to memory");
        String::from_utf8(text).expect("text")
    }

    /// What `verify` says of these lines.
    fn verify_text(&self, text: &str, options: &str) -> Outcome {
        std::fs::write(self.place.path("damaged"), text).expect("writable");
        self.place.run(&format!("verify damaged {options}"))
    }
}

/// The lines that failed, their blanks made one; the exit code has to fit.
fn faults(outcome: &Outcome) -> Vec<String> {
    let failed = outcome.stdout.lines().filter_map(|line| line.strip_prefix("FAILED"));
    let faults: Vec<_> = failed.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(outcome.code, i32::from(!faults.is_empty()), "{}{}", outcome.stdout, outcome.stderr);
    assert_eq!(outcome.stderr, "");
    faults
}

/// Adds to a count, which is text.
fn add(count: &mut Value, more: i128) {
    let number: i128 = count.as_str().expect("text").parse().expect("a number");
    *count = json!((number + more).to_string());
}

/// A board for runs with `--cells`: a queen in the second column of the last row.
const BOARD: &str = "........\n........\n........\n........\n........\n........\n........\n.Q......\n";
/// Small jobs of N = 8.
const ROWS: &str = "8 --plan rows --job-states 100";
const BORDER: &str = "8 --plan border --job-states 100";
/// A board whose count nobody has published.
const CELLS: &str = "8 --cells board --job-states 10";
const COLOURS: &str = "8 --plan colours --job-states 5";

#[test]
fn every_check_is_told() {
    for run in [ROWS, BORDER, COLOURS, "1", "3", "7 --kernel reference", "9 --plan colours --kernel scalar"] {
        let ledger = Ledger::of(run);
        let outcome = ledger.place.run("verify ledger --sample 1000");
        assert_eq!(faults(&outcome), [""; 0], "{run}");
        let checks = outcome.stdout.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1));
        let checks = checks.take(14).collect::<Vec<_>>().join(" ");
        let expected = "form chain jobs plan fingerprint bounds workers work others sums orbits symmetric published total";
        assert_eq!(checks, expected, "{run}");
        // Where there are no jobs there is nothing to count again, and no worker. Colours have symmetric ones in their sums,
        // and nobody knows how many.
        let jobs = ledger.jobs();
        let expected = 15 - usize::from(jobs == 0) - usize::from(run.contains("colours"));
        assert_eq!(outcome.stdout.matches("\nok ").count(), expected, "{}", outcome.stdout);
        let counted = format!(" sample       {jobs} of {jobs} jobs recounted");
        assert!(jobs == 0 || outcome.stdout.contains(&counted), "{}", outcome.stdout);
        assert!(outcome.stdout.contains("\nBELIEVABLE: "), "{run}");
    }
}

#[test]
fn results_that_were_taken_back_stay_in_the_ledger() {
    let place = Place::new();
    place.stdout("run 8 --plan rows --db run.db");
    let run = place.json("status --db run.db --json")["runs"][0]["run"].as_str().expect("an id").to_owned();
    let said = place.stdout(&format!("requeue {run} --job 3 --yes --db run.db"));
    assert_eq!(said, format!("run {run} is active: 1 result voided\n"));
    let again = place.json(&format!("requeue {run} --worker 1 --db run.db --json"));
    assert_eq!((&again["requeued"], &again["done"], &again["total"]), (&json!(7), &json!(0), &Value::Null));
    assert_eq!(place.json("run 8 --db run.db --json")["total"], "92");
    let exported = place.run("export --db run.db --format ledger").stdout;
    assert_eq!(exported.matches(r#""verdict":"voided""#).count(), 8);
    let verified = place.with_file("ledger", &exported).stdout("verify ledger");
    assert!(
        verified.contains("ok      others       8 results were voided, and their jobs counted again"),
        "{verified}"
    );
}

#[test]
fn only_runs_that_are_done_are_exported() {
    let ledger = Ledger::of(ROWS);
    let place = &ledger.place;
    let run = ledger.lines[0]["run"].as_str().expect("a name");
    place.sql(
        "run.db",
        "DROP TRIGGER result_is_append_only_update; UPDATE result SET count8 = count8 + 1 WHERE job = 5",
    );
    let outcome = place.run("export --db run.db --format ledger");
    let why = format!("nqueens: the results of run {run} no longer add up to its total; ");
    assert!(outcome.code == 1 && outcome.stderr.starts_with(&why), "{}", outcome.stderr);
    // What was written till then is no ledger.
    let failed = faults(&ledger.verify_text(&outcome.stdout, ""));
    assert_eq!(failed, ["form the file ends after line 10, without the total: it is cut off"]);
    place.sql("run.db", "UPDATE run SET state = 'paused', outcome = NULL");
    let why =
        format!("run {run} is paused and has no total; only runs that are done can be exported as ledgers");
    assert_eq!(place.failure("export --db run.db --format ledger"), why);
}

#[test]
fn another_program_comes_to_the_same_total() {
    if !is_here("python3") {
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/recompute.py");
    for run in [ROWS, BORDER, COLOURS, CELLS, "1", "3", "11 --plan colours"] {
        let mut ledger = Ledger::of(run);
        let total = ledger.lines[0]["total"].as_str().expect("a total").to_owned();
        let recompute = |ledger: &Ledger, text: &str| {
            std::fs::write(ledger.place.path("copy"), text).expect("writable");
            Outcome::of(ledger.place.program("python3").args([script, "copy"]))
        };
        let outcome = recompute(&ledger, &ledger.sealed());
        let hash = ledger.lines.last().expect("lines")["chain"].as_str().expect("a hash");
        assert_eq!(outcome.stdout, format!("total {total}, last hash {hash}\n"), "{}", outcome.stderr);
        let outcome = recompute(&ledger, &ledger.sealed().replacen("\"seed\":\"", "\"seed\":\"1", 1));
        assert_eq!((outcome.code, &*outcome.stderr), (1, "WRONG: the hash does not fit on line 1\n"));
        // Nothing can be moved where there are no jobs, or no orbits.
        if ["1", "3", CELLS].contains(&run) {
            continue;
        }
        let count = if run.contains("colours") { "solutions" } else { "count8" };
        let whole = ledger.lines.clone();
        add(&mut ledger.lines[1]["result"]["counts"][count], 1);
        let outcome = recompute(&ledger, &ledger.sealed());
        let sums = "WRONG: the results of worker 1 have other sums than its line says\n";
        assert_eq!((outcome.code, &*outcome.stderr), (1, sums));
        // A liar who thinks of the worker too, and one who only moves orbits from one kind to another.
        let worker = ledger.lines.len() - 2;
        add(&mut ledger.lines[worker]["counts"][count], 1);
        let outcome = recompute(&ledger, &ledger.sealed());
        assert!(outcome.stderr.starts_with("WRONG: the jobs add up to "), "{}", outcome.stderr);
        ledger.lines = whole;
        let last = ledger.lines.last_mut().expect("lines");
        add(&mut last["orbits"]["count8"], -1);
        add(&mut last["orbits"]["count4"], 2);
        let outcome = recompute(&ledger, &ledger.sealed());
        assert!(outcome.stderr.starts_with("WRONG: "), "{}", outcome.stderr);
    }
}
