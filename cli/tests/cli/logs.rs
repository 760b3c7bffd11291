//! Logs for programs: an object a line.

use nqueens_model::PROGRESS;
use serde_json::Value;

use crate::Place;
use crate::processes::{Coordinator, eventually};

/// Every line of a log, each an object with what all lines have.
fn lines(log: &str) -> Vec<Value> {
    let parse = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        for field in ["timestamp", "level", "target", "message"] {
            assert!(line[field].is_string(), "no {field} in {line}");
        }
        line
    };
    log.lines().map(parse).collect()
}

fn messages(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["message"].as_str().expect("text")).collect()
}

#[test]
fn logs_of_coordinator_and_worker_in_json() {
    let (place, json) = (Place::new(), [("NQUEENS_LOG_FORMAT", "json")]);
    let coordinator = Coordinator::start(&place, &json, "--progress-seconds 1 --sync-seconds 1");
    // More work than any test waits for, in short jobs.
    let id = coordinator.submit(&place, "20 --plan border --job-states 50000000");
    let small = coordinator.submit(&place, "8 --priority 1");
    let debug = [json[0], ("NQUEENS_LOG", "debug")];
    let mut worker = coordinator.worker(&place, "west", &debug);
    // A line may lack any of them: what is not known is not there.
    let estimates = [
        "states_per_s",
        "time_left_low_s",
        "time_left_high_s",
        "estimated_total_low",
        "estimated_total_high",
    ];
    let has_all = |line: &Value| estimates.iter().all(|field| !line[field].is_null());
    eventually("speed and time left are in the log", || {
        let said = coordinator.process.said();
        // The last line may be half written.
        let told = said.lines().filter_map(|line| serde_json::from_str(line).ok());
        told.into_iter().any(|line: Value| has_all(&line)).then_some(())
    });
    worker.signal("-TERM");
    let worker = worker.end();
    let outcome = coordinator.stop();

    let log = lines(&outcome.stderr);
    for message in [
        "coordinator is up",
        "worker registered",
        "run is done",
        "the total is equal to the published count",
        "coordinator is down",
    ] {
        assert!(messages(&log).contains(&message), "no '{message}' in\n{}", outcome.stderr);
    }
    let met = log.iter().find(|line| line["message"] == "worker registered").expect("seen above");
    let name = met["span"]["request"].as_str().expect("the name of the call that led to it");
    let done = log.iter().find(|line| line["message"] == "run is done").expect("seen above");
    assert_eq!((&done["run"], &done["n"], &done["total"]), (&small.into(), &8.into(), &"92".into()));
    let progress = |line: &&Value| line["target"] == PROGRESS;
    let last = log.iter().rfind(progress).expect("one a second");
    assert_eq!((&last["run"], &last["n"], &last["level"]), (&id.into(), &20.into(), &"INFO".into()));
    for field in ["done", "jobs", "quarantined"] {
        assert!(last[field].is_u64(), "{field}: {last}");
    }
    let told = log.iter().rfind(|line| has_all(line)).expect("seen above");
    for field in ["workers", "states_per_s", "time_left_low_s", "time_left_high_s"] {
        assert!(told[field].is_u64(), "{field}: {told}");
    }
    for field in ["share", "threads"] {
        assert!(told[field].as_f64().is_some_and(|number| number > 0.0), "{field}: {told}");
    }
    for field in ["estimated_total", "estimated_total_low", "estimated_total_high"] {
        let decimal = told[field].as_str().is_some_and(|text| text.parse::<u128>().is_ok());
        assert!(decimal, "{field}: {told}");
    }

    let log = lines(&worker.stderr);
    let called = |line: &&Value| line["message"] == "calling" && line["call"] == "register";
    let called = log.iter().find(called).expect("a call");
    assert_eq!((&called["request"], name.len()), (&name.into(), 16), "both ends have one name for it");
    let registered = log.iter().find(|line| line["message"] == "registered").expect("it did");
    assert_eq!((&registered["worker"], &registered["name"]), (&"1".into(), &"west".into()));
    assert!(messages(&log).contains(&"worker has stopped"), "{}", worker.stderr);
}

#[test]
fn a_failure_in_json() {
    let place = Place::new();
    let outcome = place.run_with(&[("NQUEENS_LOG_FORMAT", "json")], "status --db none.db --log off");
    assert_eq!((outcome.code, &*outcome.stdout), (1, ""));
    let line: Value = serde_json::from_str(&outcome.stderr).expect("one line of JSON");
    assert_eq!(line["level"], "ERROR");
    assert_eq!(
        line["message"],
        "there is no database at none.db; check the path, or start a run to create one"
    );
    for level in ["inof", "info,debgu", "nqueens=loud"] {
        let outcome = place.run(&format!("status --db none.db --log {level}"));
        assert_eq!(outcome.code, 2, "{level}");
        assert!(
            outcome.stderr.contains("write error, warn, info, debug, trace or off"),
            "{}",
            outcome.stderr
        );
    }
    let outcome = place.run("status --db none.db --log-format xml");
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("[possible values: text, json]"), "{}", outcome.stderr);
}
