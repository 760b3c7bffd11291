//! Ledgers that were changed, cut off or made up; what `nqueens verify` says of each is in `snapshots/`.

use std::collections::BTreeMap;

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{BOARD, BORDER, CELLS, COLOURS, Ledger, ROWS, add, faults};

/// What somebody did to the lines of a run's ledger. The chain is made new, so that it fits.
type Damage = (&'static str, &'static str, fn(&mut Vec<Value>));

/// What is said of each.
fn told(damages: &[Damage], options: &str) -> String {
    let mut ledgers = BTreeMap::new();
    let mut told = Vec::new();
    for (what, run, change) in damages {
        let ledger = ledgers.entry(run).or_insert_with(|| {
            let ledger = Ledger::of(run);
            assert_ne!(ledger.place.run("verify ledger").code, 1, "it was whole");
            ledger
        });
        let whole = ledger.lines.clone();
        change(&mut ledger.lines);
        let found = faults(&ledger.verify_text(&ledger.sealed(), options));
        ledger.lines = whole;
        told.push(format!("{what}, {}:", run.split(" --job").next().expect("a board")));
        told.extend(found.iter().map(|fault| format!("  {fault}")));
    }
    told.join("\n")
}

/// The result on a line.
fn result(line: &mut Value) -> &mut Value {
    &mut line["result"]
}

fn add_to(line: &mut Value, count: &str, more: i128) {
    add(&mut result(line)["counts"][count], more);
}

fn position(lines: &[Value], is_it: impl Fn(&Value) -> bool) -> usize {
    lines.iter().position(is_it).expect("such a line")
}

fn last(lines: &mut [Value]) -> &mut Value {
    lines.last_mut().expect("lines")
}

/// Another result of a job that stands below it.
fn insert_other(lines: &mut Vec<Value>, number: u32, verdict: &str, more: i128) {
    let mut line = lines[1].clone();
    for field in ["class", "bound1", "bytes"] {
        line.as_object_mut().expect("an object").remove(field);
    }
    (line["line"], line["number"], line["verdict"]) = (json!("other"), json!(number), json!(verdict));
    add_to(&mut line, "count8", more);
    lines.insert(2, line);
}

/// Half of the jobs are another worker's; all sums fit.
fn split_among_two_workers(lines: &mut Vec<Value>) {
    let at = position(lines, |line| line["line"] == "worker");
    lines.insert(at + 1, lines[at].clone());
    for worker in [1, 2] {
        let (mut jobs, mut sums) = (0, [0; 2]);
        for (number, line) in
            lines[1..at].iter_mut().enumerate().filter(|(number, _)| number % 2 == worker - 1)
        {
            let result = result(line);
            result["worker"] = json!(1 + number % 2);
            jobs += 1;
            for (sum, count) in sums.iter_mut().zip(["count4", "count8"]) {
                *sum += result["counts"][count]
                    .as_str()
                    .and_then(|text| text.parse::<u64>().ok())
                    .expect("a count");
            }
        }
        let line = &mut lines[at + worker - 1];
        (line["worker"], line["jobs"]) = (json!(worker), json!(jobs));
        (line["counts"]["count4"], line["counts"]["count8"]) =
            (json!(sums[0].to_string()), json!(sums[1].to_string()));
    }
}

/// An orbit moves from a job of one worker to a job of the other.
fn move_between_workers(lines: &mut Vec<Value>) {
    split_among_two_workers(lines);
    let from = position(&lines[1..], |line| line["result"]["counts"]["count8"] != "0") + 1;
    add_to(&mut lines[from], "count8", -1);
    add_to(&mut lines[from + 1], "count8", 1);
}

fn remove_last_job(lines: &mut Vec<Value>) {
    let at = lines.iter().rposition(|line| line["line"] == "job").expect("a job");
    lines.remove(at);
}

/// A liar who thinks of the sums and the total, too.
fn add_everywhere(lines: &mut [Value]) {
    add_to(&mut lines[1], "count8", 1);
    add(&mut lines[0]["total"], 8);
    let [.., worker, last] = &mut lines[..] else { panic!("lines") };
    add(&mut worker["counts"]["count8"], 1);
    add(&mut last["counts"]["count8"], 1);
    add(&mut last["orbits"]["count8"], 1);
    add(&mut last["total"], 8);
}

fn take_symmetric(lines: &mut [Value]) {
    let at = position(lines, |line| line["result"]["counts"]["count4"] == "1");
    add_to(&mut lines[at], "count4", -1);
}

fn swap_plans(lines: &mut [Value]) {
    let bytes = lines[1]["bytes"].take();
    lines[1]["bytes"] = lines[2]["bytes"].take();
    lines[2]["bytes"] = bytes;
}

const COUNTS: &[Damage] = &[
    ("a count is off by one", BORDER, |lines| add_to(&mut lines[1], "count8", 1)),
    ("so are all sums", BORDER, |lines| add_everywhere(lines)),
    ("a count is off by one", COLOURS, |lines| add_to(&mut lines[1], "solutions", 1)),
    ("a symmetric orbit is missing", ROWS, |lines| take_symmetric(lines)),
    ("two workers", ROWS, split_among_two_workers),
    ("an orbit moves from one to the other", ROWS, move_between_workers),
    ("more than a job can have", ROWS, |lines| add_to(&mut lines[2], "count8", 1 << 32)),
    ("plain solutions", ROWS, |lines| add_to(&mut lines[1], "solutions", 8)),
    ("no states", ROWS, |lines| {
        let at = position(lines, |line| line["result"]["counts"]["count4"] == "1");
        result(&mut lines[at])["states"] = json!("0");
    }),
    ("before the run", ROWS, |lines| result(&mut lines[2])["reported_at_ms"] = json!(1)),
    ("after the run", ROWS, |lines| result(&mut lines[2])["reported_at_ms"] = json!(9_000_000_000_000_u64)),
    ("an hour", ROWS, |lines| result(&mut lines[2])["elapsed_us"] = json!("3600000000")),
    ("another first total", ROWS, |lines| lines[0]["total"] = json!("93")),
    ("another last total", ROWS, |lines| last(lines)["total"] = json!("93")),
    ("other orbits", ROWS, |lines| add(&mut last(lines)["orbits"]["count8"], 1)),
    ("an unknown worker", ROWS, |lines| result(&mut lines[2])["worker"] = json!(7)),
    ("no worker", ROWS, |lines| lines.retain(|line| line["line"] != "worker")),
    ("a worker twice", ROWS, |lines| lines.insert(9, lines[9].clone())),
    ("an equal duplicate", BORDER, |lines| insert_other(lines, 0, "duplicate", 0)),
    ("a conflict", BORDER, |lines| insert_other(lines, 0, "conflict", 1)),
    ("a voided result", BORDER, |lines| insert_other(lines, 0, "voided", 1)),
    ("a duplicate that differs", BORDER, |lines| insert_other(lines, 0, "duplicate", 1)),
    ("a conflict that is none", BORDER, |lines| insert_other(lines, 0, "conflict", 0)),
    ("a result below another job", BORDER, |lines| insert_other(lines, 1, "voided", 0)),
];

/// The search for symmetric solutions of N = 31 would take hours: it is not begun for a file without its jobs.
const LINES: &[Damage] = &[
    ("N = 31", ROWS, |lines| lines[0]["n"] = json!(31)),
    ("N = 31", BORDER, |lines| lines[0]["n"] = json!(31)),
    ("N = 31", COLOURS, |lines| lines[0]["n"] = json!(31)),
    ("many jobs", COLOURS, |lines| lines[0]["jobs"] = json!(u32::MAX)),
    ("a job is missing", ROWS, |lines| drop(lines.remove(3))),
    ("a job comes twice", ROWS, |lines| lines.insert(3, lines[3].clone())),
    ("jobs change places", ROWS, |lines| lines.swap(3, 4)),
    ("the last job is missing", ROWS, remove_last_job),
    ("and is not expected", ROWS, |lines| {
        remove_last_job(lines);
        lines[0]["jobs"] = json!(7);
    }),
    ("jobs of a plan nobody made", COLOURS, |lines| swap_plans(lines)),
    ("N = 9", BORDER, |lines| lines[0]["n"] = json!(9)),
    ("a finer plan", BORDER, |lines| lines[0]["states_per_job"] = json!("99")),
    ("another fingerprint", ROWS, |lines| lines[0]["fingerprint"] = json!("0".repeat(64))),
    ("a second header", ROWS, |lines| lines.insert(4, lines[0].clone())),
    ("another format", ROWS, |lines| lines[0]["format"] = json!(0)),
    ("recounts that the owner claims", ROWS, |lines| last(lines)["checks"] = json!({"recounts_agreed": 9})),
    ("no engine", ROWS, |lines| result(&mut lines[2])["kernel"] = json!("an abacus")),
    ("an engine of others", ROWS, |lines| result(&mut lines[2])["kernel"] = json!("abacus")),
    ("a number with a sign", ROWS, |lines| result(&mut lines[2])["states"] = json!("+1")),
    ("a number that is no text", ROWS, |lines| result(&mut lines[2])["states"] = json!(1)),
    ("another drawing", CELLS, |lines| lines[0]["cells"] = json!(BOARD.replacen('Q', ".", 1))),
    ("no drawing", CELLS, |lines| drop(lines[0]["cells"].take())),
    ("N = 9", CELLS, |lines| lines[0]["n"] = json!(9)),
    ("half a byte", ROWS, |lines| lines[2]["bytes"] = json!("0")),
    ("a surprise", ROWS, |lines| result(&mut lines[2])["surprise"] = json!(1)),
];

#[test]
fn counts_work_and_totals_that_were_changed() {
    assert_snapshot!(told(COUNTS, ""));
}

#[test]
fn lines_that_are_missing_moved_or_made_up() {
    assert_snapshot!(told(LINES, ""));
}

const PORTABLE: &str = "8 --plan colours --job-states 5 --kernel portable";

/// The file alone gives no hint: only who counts again finds it. And a name that would clear a screen does not.
#[test]
fn results_that_only_a_recount_finds() {
    let swapped: Damage = ("results of two jobs change places", PORTABLE, |lines| {
        let counts = |line: &Value| line["result"]["counts"]["solutions"].clone();
        let other = position(&lines[1..], |line| counts(line) != counts(&lines[1])) + 1;
        let (one, two) = lines.split_at_mut(other);
        std::mem::swap(&mut one[1]["result"], &mut two[0]["result"]);
        let worker = position(lines, |line| line["line"] == "worker");
        lines[worker]["name"] = json!("\u{1b}[2J");
    });
    assert_snapshot!(told(&[swapped], "--sample 1000 --seed 1 --recount-kernel scalar --threads 1"));
}

#[test]
fn files_with_a_broken_chain_cut_off_or_no_ledgers() {
    let mut ledger = Ledger::of(ROWS);
    let text = ledger.sealed();
    assert_eq!(text, std::fs::read_to_string(ledger.place.path("ledger")).expect("a file"));
    let lines: Vec<_> = text.lines().collect();
    // A digit of what nothing else depends on; and a hash, which the next line's is over.
    let [epoch, hash] = ["\"epoch\":", "\"chain\":\""].map(|name| text.find(name).expect(name) + name.len());
    let flipped = |at: usize, digit: &str| format!("{}{digit}{}", &text[..at], &text[at + 1..]);
    let other = |at: usize| if &text[at..=at] == "1" { "2" } else { "1" };
    let head = lines[..5].join("\n") + "\n";
    let all = [
        flipped(epoch, other(epoch)),
        flipped(hash, other(hash)),
        text[..text.len() - 1].to_owned(),
        head.clone() + "{\"line\":",
        head,
        String::new(),
        "eight queens\n".to_owned(),
        format!("{}\n", lines[1]),
        format!("{text}{}\n", lines[1]),
    ];
    let said = all.map(|text| faults(&ledger.verify_text(&text, "")).join("; "));
    assert_snapshot!(said.join("\n"));
    assert_eq!(ledger.place.failure("verify none"), "none: No such file or directory (os error 2)");
    // Nothing is known of what a later program writes, so no verdict is given.
    (ledger.lines[0]["format"], ledger.lines[0]["novelty"]) = (json!(2), json!(true));
    std::fs::write(ledger.place.path("later"), ledger.sealed()).expect("room");
    assert_eq!(
        ledger.place.failure("verify later"),
        "later: format version 2 is not known here, 1 is; use the nqueens that wrote it, or a later one"
    );
}
