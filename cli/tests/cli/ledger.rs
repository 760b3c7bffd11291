//! `nqueens export --format ledger` and `nqueens verify`: what is exported is believed, and what was damaged is not.

use std::process::Command;

use nqueens_evidence::chain::ChainWriter;
use serde_json::{Value, json};

use crate::{Outcome, Place};

/// A ledger that was exported, to be damaged.
struct Ledger {
    place: Place,
    lines: Vec<Value>,
}

impl Ledger {
    fn of(run: &str) -> Self {
        let place = Place::new();
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

    /// The checks that a damage fails, with what is said of each. The chain is repaired.
    fn faults_with(run: &str, damage: impl FnOnce(&mut Vec<Value>), options: &str) -> Vec<String> {
        let mut ledger = Self::of(run);
        assert_eq!(ledger.place.run("verify ledger").code, 0);
        damage(&mut ledger.lines);
        faults(&ledger.verify_text(&ledger.sealed(), options))
    }

    fn faults(run: &str, damage: impl FnOnce(&mut Vec<Value>)) -> Vec<String> {
        Self::faults_with(run, damage, "")
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

/// Small jobs of N = 8.
const ROWS: &str = "8 --plan rows --job-states 100";
const BORDER: &str = "8 --plan border --job-states 100";
const HALVES: &str = "8 --plan halves --job-states 50";
const COLOURS: &str = "8 --plan colours --job-states 5";

/// Whether a run's jobs count solutions one by one.
fn counts_plainly(run: &str) -> bool {
    run.contains("halves") || run.contains("colours")
}

#[test]
fn every_check_is_told() {
    for run in [
        ROWS,
        BORDER,
        HALVES,
        COLOURS,
        "1",
        "3",
        "5",
        "7 --kernel reference",
        "9 --plan halves --kernel scalar",
    ] {
        let ledger = Ledger::of(run);
        let outcome = ledger.place.run("verify ledger --sample 1000");
        assert_eq!(faults(&outcome), [""; 0], "{run}");
        let checks: Vec<_> =
            outcome.stdout.lines().skip(1).map(|line| line.split_whitespace().nth(1)).collect();
        let checks: Vec<_> = checks.into_iter().map(|check| check.expect("a check")).collect();
        let expected = "form chain jobs plan fingerprint bounds workers work others sums orbits symmetric published total sample";
        assert_eq!(checks[..15].join(" "), expected, "{run}");
        let jobs = ledger.jobs();
        let passed = outcome.stdout.lines().skip(1).filter(|line| line.starts_with("ok ")).count();
        // Where there are no jobs there is nothing to count again, and no worker. Half boards and colours
        // have symmetric ones in their sums, and nobody knows how many.
        let expected = 16 - if jobs > 0 { 0 } else { 2 } - usize::from(counts_plainly(run));
        assert_eq!(passed, expected, "{}", outcome.stdout);
        let counted = format!(" sample       {jobs} of {jobs} jobs counted again");
        assert!(outcome.stdout.contains(&counted), "{}", outcome.stdout);
    }
}

#[test]
fn other_results_that_are_not_what_they_are_said_to_be() {
    let other = |lines: &mut Vec<Value>, number: u32, verdict: &str, more: i128| {
        let mut line = lines[1].clone();
        for field in ["class", "bound1", "bytes"] {
            line.as_object_mut().expect("an object").remove(field);
        }
        (line["line"], line["number"], line["verdict"]) = (json!("other"), json!(number), json!(verdict));
        add(&mut line["counts"]["count8"], more);
        lines.insert(2, line);
    };
    let found = |number, verdict: &'static str, more| {
        Ledger::faults(BORDER, move |lines| other(lines, number, verdict, more)).join("; ")
    };
    for (verdict, more) in [("duplicate", 0), ("conflict", 1), ("voided", 1), ("voided", 0)] {
        assert_eq!(found(0, verdict, more), "", "{verdict}");
    }
    assert!(found(0, "duplicate", 1).starts_with("others job 0 has a duplicate result COUNT"));
    assert_eq!(found(0, "conflict", 0), "others job 0 has a conflicting result that equals the others");
    assert_eq!(found(1, "voided", 0), "others a result of job 1 does not stand below its job");
}

#[test]
fn results_that_were_taken_back_stay_in_the_ledger() {
    let place = Place::new();
    place.stdout("run 8 --plan rows --db run.db");
    let run = place.json("status --db run.db --json")["runs"][0]["id"].as_str().expect("an id").to_owned();
    let said = place.stdout(&format!("requeue {run} --job 3 --yes --db run.db"));
    assert_eq!(said, format!("run {run} is active: 1 result(s) voided\n"));
    let again = place.json(&format!("requeue {run} --worker 1 --db run.db --json"));
    assert_eq!((&again["requeued"], &again["done"], &again["total"]), (&json!(7), &json!(0), &Value::Null));
    assert_eq!(place.json("run 8 --db run.db --json")["total"], "92");
    let exported = place.run("export --db run.db --format ledger").stdout;
    assert_eq!(exported.matches(r#""verdict":"voided""#).count(), 8);
    let verified = place.with_file("ledger", &exported).stdout("verify ledger");
    assert!(verified.contains("0 jobs have an equal result from a second machine, 0 of them under another credential or from the coordinator; \
         8 results were voided"));
}

#[test]
fn a_count_that_is_off_by_one() {
    let off = |lines: &mut Vec<Value>| add(&mut lines[1]["counts"]["count8"], 1);
    assert_eq!(
        Ledger::faults(BORDER, off),
        [
            "workers the results of worker 1 have other sums than its line says",
            "sums the sums over the jobs differ from the last line",
            "published the total 100 differs from the published count 92"
        ]
    );
    // A liar who thinks of the sums and the total too.
    let consistent = |lines: &mut Vec<Value>| {
        off(lines);
        add(&mut lines[0]["total"], 8);
        let [.., worker, last] = &mut lines[..] else { panic!("lines") };
        add(&mut worker["counts"]["count8"], 1);
        add(&mut last["counts"]["count8"], 1);
        add(&mut last["orbits"]["count8"], 1);
        add(&mut last["total"], 8);
    };
    assert_eq!(
        Ledger::faults(BORDER, consistent),
        ["published the total 100 differs from the published count 92"]
    );
    assert_eq!(
        Ledger::faults(HALVES, |lines| add(&mut lines[1]["counts"]["solutions"], 1)),
        [
            "workers the results of worker 1 have other sums than its line says",
            "sums the sums over the jobs differ from the last line",
            "orbits 93 solutions less the symmetric ones, COUNT2 = 0 and COUNT4 = 1, are no multiple of 8"
        ]
    );
    let symmetric = |lines: &mut Vec<Value>| {
        let job = lines.iter_mut().find(|line| line["counts"]["count4"] == "1").expect("the symmetric orbit");
        add(&mut job["counts"]["count4"], -1);
    };
    assert_eq!(
        Ledger::faults(ROWS, symmetric),
        [
            "workers the results of worker 1 have other sums than its line says",
            "sums the sums over the jobs differ from the last line",
            "symmetric COUNT2 = 0 and COUNT4 = 0 differ from the separately counted symmetric solutions, 0 and 1"
        ]
    );
}

#[test]
fn results_of_two_jobs_that_were_swapped() {
    let mut places = (0, 0);
    let swap = |lines: &mut Vec<Value>| {
        let count = |line: &Value| line["counts"]["solutions"].clone();
        let other =
            (2..lines.len()).find(|&at| count(&lines[at]) != count(&lines[1])).expect("another count");
        let (one, two) = lines.split_at_mut(other);
        std::mem::swap(&mut one[1]["counts"], &mut two[0]["counts"]);
        places = (0, other - 1);
    };
    let faults = Ledger::faults_with(HALVES, swap, "--sample 1000 --threads 1");
    // The file alone gives no hint: only who counts again finds it.
    assert_eq!(faults.len(), 4, "{faults:?}");
    for job in [places.0, places.1] {
        let wanted = format!("job {job}: worker 1 (this process) counted ");
        assert!(faults.iter().any(|fault| fault.starts_with(&wanted)), "{faults:?}");
    }
    assert!(faults[2].starts_with("sample 2 of 3 jobs counted again differ (seed "), "{faults:?}");
    assert!(faults[3].ends_with("3 of 3 jobs of this process: 2 differ"), "{faults:?}");
}

/// Between jobs of two workers their own sums change.
#[test]
fn results_of_two_workers_that_were_swapped() {
    let two_workers = |lines: &mut Vec<Value>| {
        let jobs = lines.iter_mut().filter(|line| line["line"] == "job");
        let mut sums = [[0_u64; 2]; 2];
        for (at, job) in jobs.enumerate() {
            job["worker"] = json!(1 + at % 2);
            let count8: u64 = job["counts"]["count8"].as_str().expect("text").parse().expect("a number");
            sums[at % 2] = [sums[at % 2][0] + 1, sums[at % 2][1] + count8];
        }
        let first = lines.iter().position(|line| line["line"] == "worker").expect("a worker");
        lines.insert(first + 1, lines[first].clone());
        for (worker, [jobs, count8]) in sums.into_iter().enumerate() {
            let line = &mut lines[first + worker];
            (line["worker"], line["jobs"]) = (json!(1 + worker), json!(jobs));
            line["counts"]["count8"] = json!(count8.to_string());
            line["counts"]["count4"] = json!("0");
        }
        let symmetric = lines.iter().find(|line| line["line"] == "job" && line["counts"]["count4"] == "1");
        let holder = symmetric.expect("the symmetric orbit")["worker"].as_u64().expect("a number");
        lines[first - 1 + usize::try_from(holder).expect("1 or 2")]["counts"]["count4"] = json!("1");
    };
    assert_eq!(Ledger::faults(ROWS, two_workers), [""; 0]);
    let moved = Ledger::faults(ROWS, |lines| {
        two_workers(lines);
        let count = |at: usize, lines: &[Value]| lines[at]["counts"]["count8"].as_str().map(str::to_owned);
        let from = (1..9).find(|&at| count(at, lines).is_some_and(|count| count != "0")).expect("an orbit");
        let to = (1..9).find(|&at| lines[at]["worker"] != lines[from]["worker"]).expect("another's job");
        add(&mut lines[from]["counts"]["count8"], -1);
        add(&mut lines[to]["counts"]["count8"], 1);
    });
    let sums = "workers the results of worker 1 have other sums than its line says; and 1 more";
    assert!(moved.contains(&sums.to_owned()), "{moved:?}");
}

#[test]
fn work_that_nobody_can_have_done() {
    let work = |damage: fn(&mut Vec<Value>)| Ledger::faults(ROWS, damage);
    assert_eq!(
        work(|lines| lines[2]["states"] = json!("0")),
        ["work job 1 was counted without visiting any state"]
    );
    let outside = ["work the result of job 1 did not come in the time of the run"];
    assert_eq!(work(|lines| lines[2]["reported_at_ms"] = json!(1)), outside);
    assert_eq!(work(|lines| lines[2]["reported_at_ms"] = json!(9_000_000_000_000_u64)), outside);
    assert_eq!(
        work(|lines| lines[2]["elapsed_us"] = json!("3600000000")),
        ["work worker 1 counted for longer than its threads can in the time of the run"]
    );
}

/// Without the sums of workers.
#[test]
fn a_ledger_of_the_format_before_is_read() {
    let earlier = |lines: &mut Vec<Value>| {
        lines[0]["format"] = json!(2);
        for worker in lines.iter_mut().filter(|line| line["line"] == "worker") {
            worker.as_object_mut().expect("an object").remove("counts");
        }
    };
    assert_eq!(Ledger::faults(BORDER, earlier), [""; 0]);
    let none = Ledger::faults(BORDER, |lines| {
        earlier(lines);
        lines[0]["format"] = json!(3);
    });
    assert_eq!(none, ["workers the results of worker 1 have other sums than its line says"]);
}

/// Results of one machine, under two numbers, say nothing of each other.
#[test]
fn a_second_count_is_another_machines() {
    for (name, confirmed) in [("this process", 0), ("west", 1)] {
        let mut ledger = Ledger::of(BORDER);
        let mut other = ledger.lines[1].clone();
        for field in ["class", "bound1", "bytes"] {
            other.as_object_mut().expect("an object").remove(field);
        }
        (other["line"], other["verdict"], other["worker"]) = (json!("other"), json!("duplicate"), json!(2));
        ledger.lines.insert(2, other);
        let last = ledger.lines.len() - 1;
        let mut worker = ledger.lines[last - 1].clone();
        (worker["worker"], worker["name"], worker["jobs"]) = (json!(2), json!(name), json!(0));
        worker["counts"] = json!({"count2": "0", "count4": "0", "count8": "0", "solutions": "0"});
        ledger.lines.insert(last, worker);
        let said = ledger.verify_text(&ledger.sealed(), "").stdout;
        let expected =
            format!("ok      others       {confirmed} jobs have an equal result from a second machine");
        assert!(said.contains(&expected), "{name}: {said}");
    }
}

/// The search for symmetric solutions of N = 31 would take hours.
#[test]
fn a_board_that_takes_for_ever_is_not_searched_for_a_file_without_its_jobs() {
    for run in [ROWS, BORDER, HALVES, COLOURS] {
        let faults = Ledger::faults(run, |lines| lines[0]["n"] = json!(31));
        assert!(faults[0].starts_with("plan job 0 is not the plan's"), "{faults:?}");
        let faults = Ledger::faults(run, |lines| lines[0]["jobs"] = json!(u32::MAX));
        assert!(faults[0].contains("but the first line says 4294967295"), "{faults:?}");
    }
}

#[test]
fn jobs_that_are_missing_twice_or_out_of_order() {
    let faults = Ledger::faults(ROWS, |lines| drop(lines.remove(3)));
    assert_eq!(
        faults[0],
        "jobs job 3 stands where job 2 should: one is missing, comes twice or is out of order"
    );
    assert!(faults[1].starts_with("fingerprint the first line has "), "{faults:?}");
    let faults = Ledger::faults(ROWS, |lines| lines.insert(3, lines[3].clone()));
    assert_eq!(
        faults[0],
        "jobs job 2 stands where job 3 should: one is missing, comes twice or is out of order"
    );
    let faults = Ledger::faults(ROWS, |lines| lines.swap(3, 4));
    assert_eq!(
        faults[0],
        "jobs job 3 stands where job 2 should: one is missing, comes twice or is out of order; and 2 more"
    );
    // The last one, which leaves no gap.
    let last = |lines: &mut Vec<Value>| {
        let at = lines.iter().rposition(|line| line["line"] == "job").expect("a job");
        lines.remove(at);
    };
    assert_eq!(Ledger::faults(ROWS, last)[0], "jobs the jobs end before job 7, but the first line says 8");
    // And a first line that says so too.
    let shorter = |lines: &mut Vec<Value>| {
        last(lines);
        lines[0]["jobs"] = json!(7);
    };
    assert_eq!(Ledger::faults(ROWS, shorter)[0], "plan the plan has more than 7 jobs");
}

#[test]
fn jobs_of_another_plan() {
    // A job that counts nothing, and all others: a plan nobody made.
    let changed = Ledger::faults(HALVES, |lines| {
        let (one, two) = lines.split_at_mut(2);
        std::mem::swap(&mut one[1]["bytes"], &mut two[0]["bytes"]);
    });
    assert_eq!(changed[0], "plan job 0 is not the plan's; and 1 more");
    assert!(changed[1].starts_with("fingerprint the first line has "), "{changed:?}");
    let other_board = Ledger::faults(BORDER, |lines| lines[0]["n"] = json!(9));
    assert!(other_board[0].starts_with("plan job 0 is not the plan's; and "), "{other_board:?}");
    assert!(other_board[1].starts_with("fingerprint the first line has "), "{other_board:?}");
    assert_eq!(other_board.len(), 2, "{other_board:?}");
    let finer = Ledger::faults(BORDER, |lines| lines[0]["states_per_job"] = json!("99"));
    assert!(finer.iter().any(|fault| fault.starts_with("fingerprint ")), "{finer:?}");
    let print = Ledger::faults(ROWS, |lines| lines[0]["fingerprint"] = json!("0".repeat(64)));
    assert!(
        print[0].starts_with(&format!("fingerprint the first line has {}, the jobs have ", "0".repeat(64)))
    );
    assert_eq!(print.len(), 1);
}

#[test]
fn a_count_that_no_job_can_have() {
    let faults = Ledger::faults(ROWS, |lines| add(&mut lines[2]["counts"]["count8"], 1 << 32));
    assert!(faults[0].starts_with("bounds job 1 has COUNT8 = 429496729"), "{faults:?}");
    assert!(faults[0].contains(", more than the possible COUNT8 = "), "{faults:?}");
    let mixed = Ledger::faults(ROWS, |lines| lines[1]["counts"]["solutions"] = json!("8"));
    assert!(mixed[0].starts_with("bounds job 0 has solutions = 8, more than the possible "), "{mixed:?}");
    assert_eq!(mixed[3], "orbits some jobs found orbits and others plain solutions");
}

#[test]
fn totals_and_workers_that_are_made_up() {
    let first = Ledger::faults(ROWS, |lines| lines[0]["total"] = json!("93"));
    assert_eq!(first, ["total the first line's total 93 differs from that of the jobs, 92"]);
    let last = Ledger::faults(ROWS, |lines| lines.last_mut().expect("lines")["total"] = json!("93"));
    assert_eq!(last, ["total the last line's total 93 differs from that of the jobs, 92"]);
    let orbits =
        Ledger::faults(ROWS, |lines| add(&mut lines.last_mut().expect("lines")["orbits"]["count8"], 1));
    assert_eq!(orbits, ["total the last line's orbits differ from those of the jobs"]);
    let unknown = Ledger::faults(ROWS, |lines| lines[2]["worker"] = json!(7));
    assert_eq!(unknown, ["workers worker 1 has 7 results, not 8; and 1 more"]);
    let unlisted = Ledger::faults(ROWS, |lines| lines.retain(|line| line["line"] != "worker"));
    assert_eq!(unlisted, ["workers worker 1 has results and is not listed"]);
    let mut ledger = Ledger::of(ROWS);
    ledger.lines[9]["name"] = json!("\u{1b}[2J");
    let said = ledger.verify_text(&ledger.sealed(), "--sample 1").stdout;
    assert!(said.contains(" 1 of 8 jobs of \u{fffd}[2J: with "), "{said}");
    let twice = Ledger::faults(ROWS, |lines| lines.insert(9, lines[9].clone()));
    assert_eq!(twice, ["workers worker 1 is listed twice"]);
}

#[test]
fn a_broken_chain() {
    let ledger = Ledger::of(ROWS);
    let text = ledger.sealed();
    assert_eq!(text, std::fs::read_to_string(ledger.place.path("ledger")).expect("a file"));
    let damaged = |text: &str| faults(&ledger.verify_text(text, ""));
    // A digit of what nothing else depends on.
    let at = text.find("\"epoch\":1").expect("a lease") + "\"epoch\":".len();
    let flipped = format!("{}2{}", &text[..at], &text[at + 1..]);
    assert_eq!(damaged(&flipped), ["chain the hash does not fit on line 2"]);
    // A hash itself: the next line's is over it.
    let at = text.find("\"chain\":\"").expect("a hash") + "\"chain\":\"".len();
    let digit = if &text[at..=at] == "0" { "1" } else { "0" };
    let flipped = format!("{}{digit}{}", &text[..at], &text[at + 1..]);
    assert_eq!(damaged(&flipped), ["chain the hash does not fit on line 1, 2"]);
}

#[test]
fn files_that_are_cut_off_or_no_ledgers() {
    let ledger = Ledger::of(ROWS);
    let text = ledger.sealed();
    let lines: Vec<_> = text.lines().collect();
    let damaged = |text: &str| faults(&ledger.verify_text(text, ""));
    assert_eq!(damaged(&text[..text.len() - 1]), ["form line 11 does not end: the file is cut off"]);
    let head = lines[..5].join("\n") + "\n";
    assert_eq!(damaged(&head), ["form the file ends after line 5, without the total: it is cut off"]);
    assert_eq!(damaged(&(head + "{\"line\":")), ["form line 6 does not end: the file is cut off"]);
    assert_eq!(damaged(""), ["form the file is empty"]);
    assert_eq!(damaged("eight queens\n"), ["form line 1 does not end with its hash"]);
    assert_eq!(damaged(&format!("{}\n", lines[1])), ["form line 1 is not the header of a ledger"]);
    let longer = damaged(&format!("{text}{}\n", lines[1]));
    assert_eq!(longer[0], "form the file continues after the total, on line 11");
    let outcome = ledger.place.run("verify none");
    assert_eq!(
        (outcome.code, &*outcome.stderr),
        (1, "nqueens: none: No such file or directory (os error 2)\n")
    );

    let second = Ledger::faults(ROWS, |lines| lines.insert(4, lines[0].clone()));
    assert_eq!(second, ["form line 5 is a second header"]);
    let later = Ledger::faults(ROWS, |lines| {
        lines[0]["format"] = json!(6);
        lines[0]["novelty"] = json!(true);
    });
    assert_eq!(
        later,
        ["form format version 6 is not known here, 5 is; use the nqueens that wrote it, or a later one"]
    );
    for (name, value, said) in [
        ("kernel", json!("an abacus"), "form line 3: 'an abacus' is no such value"),
        ("states", json!("+1"), "form line 3: '+1' is no such value"),
        ("states", json!(1), "form line 3: invalid type: integer `1`, expected a string"),
        ("bytes", json!("0"), "form line 3: Odd number of digits"),
        ("surprise", json!(1), "form line 3: unknown field `surprise`, expected one of"),
    ] {
        let fault = Ledger::faults(ROWS, |lines| lines[2][name] = value);
        assert!(fault.len() == 1 && fault[0].starts_with(said), "{fault:?}");
    }
    let foreign = Ledger::faults(ROWS, |lines| lines[2]["kernel"] = json!("abacus"));
    assert!(foreign.is_empty(), "an engine that is not known here spoils nothing: {foreign:?}");
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
    assert_eq!(
        (outcome.code, &*outcome.stderr),
        (
            1,
            &*format!(
                "nqueens: the results of run {run} no longer add up to its total; 'nqueens run' or a coordinator \
                 reports which check fails\n"
            )
        )
    );
    // What was written till then is no ledger.
    let failed = faults(&ledger.verify_text(&outcome.stdout, ""));
    assert_eq!(failed, ["form the file ends after line 10, without the total: it is cut off"]);
    place.sql(
        "run.db",
        "UPDATE run SET state = 'paused', count2 = NULL, count4 = NULL, count8 = NULL, total = NULL, checked = NULL",
    );
    assert_eq!(
        place.failure("export --db run.db --format ledger"),
        format!("run {run} is paused and has no total; only runs that are done can be exported as ledgers")
    );
    let outcome = place.run("export --db run.db --format ledger --by class");
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("a ledger always has one line per job; omit --by"), "{}", outcome.stderr);
}

#[test]
fn another_program_comes_to_the_same_total() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/recompute.py");
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("there is no python3 here: not tested");
        return;
    }
    for (run, total) in [
        (ROWS, 92),
        (BORDER, 92),
        (HALVES, 92),
        (COLOURS, 92),
        ("1", 1),
        ("3", 0),
        ("11 --plan halves", 2_680),
    ] {
        let mut ledger = Ledger::of(run);
        let recompute = |ledger: &Ledger, text: &str| {
            std::fs::write(ledger.place.path("copy"), text).expect("writable");
            Outcome::of(ledger.place.program("python3").args([script, "copy"]))
        };
        let outcome = recompute(&ledger, &ledger.sealed());
        let hash = ledger.lines.last().expect("lines")["chain"].as_str().expect("a hash");
        assert_eq!(outcome.stdout, format!("total {total}, last hash {hash}\n"), "{}", outcome.stderr);
        let outcome = recompute(&ledger, &ledger.sealed().replacen("\"seed\":\"", "\"seed\":\"1", 1));
        assert_eq!((outcome.code, &*outcome.stderr), (1, "WRONG: the hash does not fit on line 1\n"));
        if total > 1 {
            let count = if counts_plainly(run) { "solutions" } else { "count8" };
            add(&mut ledger.lines[1]["counts"][count], 1);
            let outcome = recompute(&ledger, &ledger.sealed());
            let sums = "WRONG: the results of worker 1 have other sums than its line says\n";
            assert_eq!((outcome.code, &*outcome.stderr), (1, sums));
            // A liar who thinks of the worker too, and one who only moves orbits from one kind to another.
            let worker = ledger.lines.len() - 2;
            add(&mut ledger.lines[worker]["counts"][count], 1);
            let outcome = recompute(&ledger, &ledger.sealed());
            assert!(outcome.stderr.starts_with("WRONG: the jobs add up to "), "{}", outcome.stderr);
            let mut ledger = Ledger::of(run);
            let last = ledger.lines.last_mut().expect("lines");
            add(&mut last["orbits"]["count8"], -1);
            add(&mut last["orbits"]["count4"], 2);
            let outcome = recompute(&ledger, &ledger.sealed());
            assert!(outcome.stderr.starts_with("WRONG: "), "{}", outcome.stderr);
        }
    }
}
