//! The last line of `nqueens verify`: only what the reader's own machine can tell counts.

use serde_json::{Value, json};

use super::{CELLS, Ledger, ROWS, add};
use crate::Outcome;

/// The exit code, and the last line.
fn verdict(outcome: &Outcome) -> (i32, &str) {
    assert_eq!(outcome.stderr, "");
    (outcome.code, outcome.stdout.lines().last().expect("lines"))
}

#[test]
fn a_total_that_nobody_published_is_believable_once_it_is_recounted() {
    let ledger = Ledger::of(CELLS);
    let jobs = ledger.jobs();
    assert!(jobs > 1);
    let verify = |options: &str| ledger.verify_text(&ledger.sealed(), options);
    let total = ledger.lines[0]["total"].as_str().expect("text");
    let outcome = verify("");
    assert!(outcome.stdout.contains("ok      estimate     the total is within six standard errors"));
    let counted = format!(
        "COUNTED, NOT CONFIRMED: the jobs add up to {total}, as an estimate made here; no count is published, so recount \
         {jobs}: --sample {jobs}"
    );
    assert_eq!(verdict(&outcome), (3, &*counted));
    let (code, some) = (verify("--sample 1").code, verify("--sample 1").stdout);
    assert!(
        code == 3 && some.contains(&format!(", and 1 of {jobs} jobs recounted here are equal; no ")),
        "{some}"
    );
    let believable = format!(
        "BELIEVABLE: the jobs add up to {total}, as an estimate made here, and {jobs} of {jobs} jobs recounted here are equal"
    );
    assert_eq!(verdict(&verify("--sample 300")), (0, &*believable));
}

#[test]
fn what_the_owner_says_counts_for_nothing() {
    // Every job was counted alike under another credential, says the file.
    let mut ledger = Ledger::of(CELLS);
    let jobs = ledger.jobs();
    for at in (1..=jobs).rev() {
        let (number, mut result) = (ledger.lines[at]["number"].clone(), ledger.lines[at]["result"].clone());
        result["worker"] = json!(2);
        let other = json!({"line": "other", "number": number, "verdict": "duplicate", "result": result});
        ledger.lines.insert(at + 1, other);
    }
    let last = ledger.lines.len() - 1;
    let mut worker = ledger.lines[last - 1].clone();
    (worker["worker"], worker["credential"], worker["jobs"]) = (json!(2), json!("another"), json!(0));
    worker["counts"] = json!({"count2": "0", "count4": "0", "count8": "0", "solutions": "0"});
    ledger.lines.insert(last, worker);
    let outcome = ledger.verify_text(&ledger.sealed(), "");
    let claims = format!(
        "-       claims       by its owner's word, {jobs} of {jobs} jobs were counted alike under another credential\n"
    );
    assert!(outcome.stdout.contains(&claims), "{}", outcome.stdout);
    assert_eq!(outcome.code, 3);
}

#[test]
fn a_total_that_is_not_as_estimated_is_wrong() {
    let mut ledger = Ledger::of(CELLS);
    let more = |count: &mut Value| add(count, 2);
    let [first, job, .., worker, last] = &mut ledger.lines[..] else { panic!("lines") };
    more(&mut job["result"]["counts"]["solutions"]);
    more(&mut worker["counts"]["solutions"]);
    more(&mut last["counts"]["solutions"]);
    more(&mut last["total"]);
    more(&mut first["total"]);
    let outcome = ledger.verify_text(&ledger.sealed(), "");
    assert!(outcome.stdout.contains("FAILED  estimate     the total is not within six standard errors"));
    assert_eq!(verdict(&outcome), (1, "WRONG: do not believe this total; failed: estimate"));
}

#[test]
fn a_cut_file_says_so_once() {
    let ledger = Ledger::of(ROWS);
    let text = ledger.sealed();
    let outcome = ledger.verify_text(&text[..text.len() / 2], "");
    let said: Vec<_> = outcome.stdout.lines().skip(1).collect();
    let [form, verdict] = said[..] else { panic!("{said:?}") };
    assert!(form.starts_with("FAILED  form ") && form.ends_with(": the file is cut off"), "{form}");
    assert_eq!(verdict, "WRONG: this is no whole ledger; ask for the file again, or for its last hash");
}

#[test]
fn a_database_is_no_ledger() {
    let place = Ledger::of(ROWS).place;
    let expected = "run.db is a database, not a ledger file; use 'nqueens verify --db run.db'";
    assert_eq!(place.failure("verify run.db"), expected);
    let verified = place.stdout("verify --db run.db");
    assert!(verified.ends_with("BELIEVABLE: the jobs add up to 92, the published count\n"), "{verified}");
    let run = verified.split([' ', ',']).nth(1).expect("an id");
    assert_eq!(place.stdout(&format!("verify {run} --db run.db")), verified);
}
