//! What operators are told of a run that is being counted: how far it is, what it may come to, how long it may take.

use std::io::BufRead;

use serde_json::Value;

use crate::Place;
use crate::processes::{Background, Coordinator, eventually};

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| value.as_str().expect("decimal").parse().expect("a number"))
}

/// The bounds hold the value, and it is more than nothing.
fn assert_estimate(estimate: &Value) {
    let [value, low, high] = ["value", "low", "high"].map(|key| number(&estimate[key]));
    assert!(0.0 < value && low <= value && value <= high, "{estimate}");
}

#[test]
fn total_and_time_left_are_told_while_it_counts() {
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &[], "--sync-seconds 1");
    let at = format!("--coordinator {}", coordinator.url());
    // More work than any test waits for, in short jobs.
    let id =
        place.stdout(&format!("submit 20 --plan border --job-states 50000000 {at}")).trim_end().to_owned();
    let status = || place.json(&format!("status {id} {at} --json"))["runs"][0].clone();
    let fresh = status();
    for key in ["estimated_total", "threads", "states_per_s", "time_left_s", "total"] {
        assert_eq!(fresh[key], Value::Null, "{key}");
    }
    assert_eq!((&fresh["share"], &fresh["states"]), (&Value::from(0.0), &Value::from("0")));
    assert!(number(&fresh["estimated_states"]) > 1e9, "{fresh}");

    let mut worker = coordinator.worker(&place, "west", &[]);
    let seen = eventually("speed and time left are known", || {
        Some(status()).filter(|seen| {
            ["time_left_s", "threads", "estimated_total"].iter().all(|key| seen[key] != Value::Null)
        })
    });
    assert_estimate(&seen["time_left_s"]);
    assert_estimate(&seen["estimated_total"]);
    assert!(number(&seen["threads"]) <= 1.0 && number(&seen["states_per_s"]) > 0.0, "{seen}");
    assert!(number(&seen["share"]) > 0.0 && number(&seen["states"]) > 0.0, "{seen}");

    let table = place.stdout(&format!("status {at}"));
    let line = table.lines().nth(1).expect("one run");
    assert!(line.starts_with(&id) && line.contains(" about ") && line.contains(".."), "{table}");
    let watch = |more: &str| {
        let command = format!("watch {id} --interval 0.2 {more} {at}");
        let mut watch = Background::start(&mut place.command(&command));
        let mut line = String::new();
        watch.stdout().read_line(&mut line).expect("text");
        line
    };
    let line = watch("");
    assert!(line.contains(") left, ") && line.contains(" states/s, TOTAL about "), "{line}");
    let line: Value = serde_json::from_str(&watch("--json")).expect("JSON");
    assert_estimate(&line["time_left_s"]);
    assert_eq!(line["busy_workers"], 1);

    worker.signal("-TERM");
    assert_eq!(worker.end().code, 0);
    assert_eq!(coordinator.stop().code, 0);
    let offline = place.json("status --db queens.db --json")["runs"][0].clone();
    assert_estimate(&offline["estimated_total"]);
    for key in ["threads", "states_per_s", "time_left_s"] {
        assert_eq!(offline[key], Value::Null, "a ledger alone can't tell: {key}");
    }
}
