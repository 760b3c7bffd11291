//! Plans that take their time: seen, cancelled, interrupted, refused.

use std::io::BufRead;

use serde_json::Value;

use crate::http::page_of;
use crate::page::shown;
use crate::processes::{Background, Coordinator, eventually};
use crate::{Outcome, Place};

/// A million jobs: planning takes a minute in a debug build.
const LARGE: &str = "17 --plan rows --job-states 1000";

/// `nqueens submit` of something large, and the run's id, which it has printed.
fn submit(place: &Place, at: &str) -> (Background, String) {
    let mut program = Background::start(&mut place.command(&format!("submit {LARGE} {at}")));
    let id = program.stdout().lines().next().expect("an id").expect("text");
    (program, id)
}

/// Its exit code, and what it has said.
fn end(mut program: Background) -> (i32, String) {
    let Outcome { code, stderr, .. } = program.end();
    (code, stderr)
}

#[test]
fn a_plan_is_seen_cancelled_and_gone() {
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &[], "");
    let at = format!("--coordinator {}", coordinator.url());
    let (submitting, id) = submit(&place, &at);
    let run = place.json(&format!("status {id} --json {at}"))["runs"][0].take();
    assert_eq!(
        (&run["run"], &run["state"], &run["done"]),
        (&Value::from(&*id), &"planning".into(), &0.into())
    );
    let number = |name: &str| run[name].as_u64().expect("a number");
    assert!(number("planned") >= 5_000 && number("jobs") > 1_000_000, "{run}");
    assert_eq!((&run["fingerprint"], &run["total"]), (&Value::Null, &Value::Null));
    let line = |options: &str| {
        let table = place.stdout(&format!("status {options}"));
        table.lines().nth(1).expect("a run").to_owned()
    };
    for options in [&*at, "--db queens.db"] {
        let line = line(options);
        let about = format!("of ~{} planned", thousands(number("jobs")));
        assert!(line.starts_with(&id) && line.contains("planning") && line.contains(&about), "{line}");
    }
    let [picture, detail] = shown(&page_of(&coordinator), &id);
    assert_eq!((&picture["runs"][0]["run"], &picture["runs"][0]["state"]), (&run["run"], &"planning".into()));
    assert_eq!((&detail["run"], &detail["map"]["cells"]), (&run["run"], &"".into()));
    let refused = format!("run {id} is being planned; wait for its end, or cancel it");
    assert_eq!(place.failure(&format!("pause {id} {at}")), refused);
    assert_eq!(place.run(&format!("cancel {id} {at}")).code, 2, "nobody confirms it");

    assert_eq!(place.stdout(&format!("cancel {id} --yes {at}")), format!("run {id} is cancelled\n"));
    let why = format!("run {id} was cancelled while it was being planned; nothing of it is kept");
    assert_eq!(end(submitting), (1, format!("nqueens: {why}\n")));
    assert_eq!(place.failure(&format!("status {id} {at}")), why);
    assert_eq!(place.json(&format!("status --json {at}"))["runs"], Value::Array(Vec::new()));
    eventually("nothing of it is stored", || {
        (place.ask("queens.db", "SELECT 1 FROM run").is_empty()).then_some(())
    });
    assert_eq!(coordinator.stop().code, 0);
}

fn thousands(number: u64) -> String {
    format!("{},{:03},{:03}", number / 1_000_000, number / 1_000 % 1_000, number % 1_000)
}

#[test]
fn who_submits_may_go_while_it_is_planned() {
    let place = Place::new();
    let mut coordinator = Coordinator::start(&place, &[], "");
    let at = format!("--coordinator {}", coordinator.url());
    let other = coordinator.submit(&place, "8");
    let (submitting, id) = submit(&place, &at);
    submitting.signal("-INT");
    let said = format!(
        "interrupted; the coordinator goes on planning run {id}: 'nqueens status {id}' shows how far it is, 'nqueens \
         cancel {id}' cancels it\n"
    );
    assert_eq!(end(submitting), (130, said));
    let planned = || {
        let run = place.json(&format!("status {id} --json {at}"))["runs"][0].take();
        run["planned"].as_u64().expect("it is being planned")
    };
    let before = planned();
    eventually("it is planned on", || (planned() > before).then_some(()));
    // Half-way, the coordinator dies: the next one says what it drops.
    coordinator.process.kill();
    let left = place.stdout("status --db queens.db");
    assert!(left.contains(&id) && left.contains("planning"), "{left}");
    let coordinator = Coordinator::start(&place, &[], "");
    let at = format!("--coordinator {}", coordinator.url());
    let runs = place.json(&format!("status --json {at}"))["runs"].take();
    assert!(runs.as_array().is_some_and(|runs| runs.len() == 1) && runs[0]["run"] == *other, "{runs}");
    assert_eq!(place.ask("queens.db", "SELECT DISTINCT printf('%012x', run) FROM job"), [other]);
    place.check_rules("queens.db");
    let log = coordinator.stop().stderr;
    assert!(
        log.contains(&format!("the planning of this run was cut short: submit it again run={id}")),
        "{log}"
    );
}

#[test]
fn quarantine_is_always_shown() {
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &[], "");
    let runs = [(); 2].map(|()| coordinator.submit(&place, "8 --plan rows --job-states 100000"));
    assert_eq!(coordinator.stop().code, 0);
    place.sql("queens.db", "UPDATE job SET state = 3 WHERE number < 2");
    place.stdout(&format!("cancel {} --yes --db queens.db", runs[1]));
    let expected = [
        format!("{0}: 2 jobs in quarantine; 'nqueens resume {0} --quarantined' counts them again", runs[0]),
        format!("{}: 2 jobs in quarantine; the run is cancelled, so they are not counted again", runs[1]),
    ];
    let coordinator = Coordinator::start(&place, &[], "");
    let at = format!("--coordinator {}", coordinator.url());
    for target in [&*at, "--db queens.db"] {
        let all = place.stdout(&format!("status {target}"));
        for (run, line) in runs.iter().zip(&expected) {
            assert!(all.lines().any(|said| said == line), "{all}");
            let one = place.stdout(&format!("status {run} {target}"));
            assert_eq!(one.lines().nth(2), Some(&**line), "{one}");
            assert_eq!(place.json(&format!("status {run} {target} --json"))["runs"][0]["quarantined"], 2);
        }
    }
    place.stdout(&format!("resume {} --quarantined {at}", runs[0]));
    assert_eq!(place.stdout(&format!("status {} {at}", runs[0])).lines().count(), 2);
}
