//! A call has one name in the logs of both its ends.

use crate::Place;
use crate::processes::{Coordinator, eventually};

/// By what name a log has a call that was made; the latest, if there were several.
fn name_of<'a>(log: &'a str, call: &str) -> &'a str {
    let line = log.lines().rfind(|line| line.contains(&format!("calling call=\"{call}\"")));
    let line = line.unwrap_or_else(|| panic!("no {call} in {log}"));
    line.rsplit_once("request=").expect("a name").1
}

#[test]
fn both_ends_log_a_call_under_one_name() {
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &[], "--sync-seconds 1");
    let operator = |arguments: &str| {
        let url = coordinator.url();
        let outcome = place.run(&format!("{arguments} --log nqueens=debug --coordinator {url}"));
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        (outcome.stdout.trim_end().to_owned(), outcome.stderr)
    };
    let (run, submitted) = operator("submit 8");
    let (_, paused) = operator(&format!("pause {run}"));
    let mut worker = coordinator.worker(&place, "west", &[("NQUEENS_LOG", "debug")]);
    eventually("it is there", || operator("workers").0.contains("west").then_some(()));
    let (_, drained) = operator("workers --drain 1");
    let worked = worker.end().stderr;

    let served = coordinator.stop().stderr;
    let events = [
        ("run is planned", &submitted, "/v1/runs"),
        ("run changed its state", &paused, &format!("/v1/runs/{run}/state")),
        ("worker registered", &worked, "register"),
        ("worker is drained", &drained, "/v1/workers/1/drain"),
    ];
    for (event, log, call) in events {
        let (line, name) = (served.lines().find(|line| line.contains(event)), name_of(log, call));
        assert_eq!(name.len(), 16, "{name}");
        assert!(line.is_some_and(|line| line.contains(&format!("request={name}}}"))), "{name}: {served}");
    }
}
