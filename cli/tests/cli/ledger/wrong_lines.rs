//! Lines that are missing, moved, made up or cut off, and a chain that breaks.

use serde_json::{Value, json};

use super::{BORDER, COLOURS, Ledger, ROWS, add, faults};

#[test]
fn other_results_that_are_not_what_they_are_said_to_be() {
    let other = |lines: &mut Vec<Value>, number: u32, verdict: &str, more: i128| {
        let mut line = lines[1].clone();
        for field in ["class", "bound1", "bytes"] {
            line.as_object_mut().expect("an object").remove(field);
        }
        (line["line"], line["number"], line["verdict"]) = (json!("other"), json!(number), json!(verdict));
        add(&mut line["result"]["counts"]["count8"], more);
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

/// The search for symmetric solutions of N = 31 would take hours.
#[test]
fn a_board_that_takes_for_ever_is_not_searched_for_a_file_without_its_jobs() {
    for run in [ROWS, BORDER, COLOURS] {
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
    let changed = Ledger::faults(COLOURS, |lines| {
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
        lines[0]["format"] = json!(2);
        lines[0]["novelty"] = json!(true);
    });
    assert_eq!(
        later,
        ["form format version 2 is not known here, 1 is; use the nqueens that wrote it, or a later one"]
    );
    for (name, value, said) in [
        ("kernel", json!("an abacus"), "form line 3: 'an abacus' is no such value"),
        ("states", json!("+1"), "form line 3: '+1' is no such value"),
        ("states", json!(1), "form line 3: invalid type: integer `1`, expected a string"),
        ("bytes", json!("0"), "form line 3: Odd number of digits"),
        ("surprise", json!(1), "form line 3: unknown field `surprise`, expected one of"),
    ] {
        let fault = Ledger::faults(ROWS, |lines| {
            let of = if name == "bytes" { &mut lines[2] } else { &mut lines[2]["result"] };
            of[name] = value;
        });
        assert!(fault.len() == 1 && fault[0].starts_with(said), "{fault:?}");
    }
    let foreign = Ledger::faults(ROWS, |lines| lines[2]["result"]["kernel"] = json!("abacus"));
    assert!(foreign.is_empty(), "an engine that is not known here spoils nothing: {foreign:?}");
}
