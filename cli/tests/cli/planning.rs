//! Plans that take their time: seen, cancelled, interrupted, refused.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::Place;
use crate::http::{page_of, send};
use crate::processes::{Coordinator, eventually};

/// A million jobs: planning takes a minute in a debug build.
const LARGE: &str = "17 --plan rows --job-states 1000";

/// `nqueens submit` of something large, which has printed the run's id.
struct Submitting {
    program: Child,
    run: String,
}

impl Submitting {
    fn start(place: &Place, at: &str) -> Self {
        let mut command = place.command(&format!("submit {LARGE} {at}"));
        let program = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut program = program.expect("the program starts");
        let mut run = String::new();
        let stdout = program.stdout.as_mut().expect("piped");
        BufReader::new(stdout).read_line(&mut run).expect("text");
        Self { program, run: run.trim_end().to_owned() }
    }

    /// Its exit code, and what it has said on stderr.
    fn end(self) -> (i32, String) {
        let output = self.program.wait_with_output().expect("a child");
        (output.status.code().expect("no signal"), String::from_utf8(output.stderr).expect("text"))
    }
}

#[test]
fn a_plan_is_seen_cancelled_and_gone() {
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &[], "");
    let at = format!("--coordinator {}", coordinator.url());
    let submitting = Submitting::start(&place, &at);
    let id = submitting.run.clone();
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
    // The page has a picture of all runs, then what there is to tell of this one.
    let stream = send(&page_of(&coordinator), &format!("GET /live?run={id}"), &[], "");
    let events = BufReader::new(stream).lines().map_while(Result::ok);
    let mut events =
        events.filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data:")?).ok());
    let mut event = || events.next().expect("an event");
    let (picture, detail) = (event(), event());
    assert_eq!((&picture["runs"][0]["run"], &picture["runs"][0]["state"]), (&run["run"], &"planning".into()));
    assert_eq!((&detail["run"], &detail["map"]["cells"]), (&run["run"], &"".into()));
    let refused = format!("run {id} is being planned; wait for its end, or cancel it");
    assert_eq!(place.failure(&format!("pause {id} {at}")), refused);
    assert_eq!(place.run(&format!("cancel {id} {at}")).code, 2, "nobody confirms it");

    assert_eq!(place.stdout(&format!("cancel {id} --yes {at}")), format!("run {id} is cancelled\n"));
    let why = format!("run {id} was cancelled while it was being planned; nothing of it is kept");
    assert_eq!(submitting.end(), (1, format!("nqueens: {why}\n")));
    assert_eq!(place.failure(&format!("status {id} {at}")), why);
    assert_eq!(place.json(&format!("status --json {at}"))["runs"], Value::Array(Vec::new()));
    eventually("nothing of it is stored", || {
        (place.ask("queens.db", "SELECT 1 FROM run").is_empty()).then_some(())
    });
    assert_eq!(place.ask("queens.db", "SELECT count(*) FROM job"), ["0"]);
    place.stdout(&format!("submit 8 {at}"));
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
    let submitting = Submitting::start(&place, &at);
    let id = submitting.run.clone();
    let told = Command::new("kill").args(["-INT", &submitting.program.id().to_string()]).status();
    assert!(told.expect("kill").success());
    let said = format!(
        "interrupted; the coordinator goes on planning run {id}: 'nqueens status {id}' shows how far it is, 'nqueens \
         cancel {id}' cancels it\n"
    );
    assert_eq!(submitting.end(), (130, said));
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
    assert_eq!(place.json(&format!("status --json {at}"))["runs"], Value::Array(Vec::new()));
    let log = coordinator.stop().stderr;
    assert!(
        log.contains(&format!("the planning of this run was cut short: submit it again run={id}")),
        "{log}"
    );
}

#[test]
fn a_plan_of_too_many_jobs_is_refused() {
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &[], "--jobs-max 20");
    let at = format!("--coordinator {}", coordinator.url());
    for arguments in [format!("submit 10 {at}"), "run 10 --jobs-max 20 --db run.db".to_owned()] {
        let said = place.failure(&format!("{arguments} --plan rows --job-states 50"));
        assert!(
            said.contains("more than --jobs-max 20 allows; give a larger --job-states, such as "),
            "{said}"
        );
    }
    place.stdout(&format!("submit 8 --plan rows --job-states 100000 {at}"));
}

#[test]
fn a_total_is_withdrawn_if_somebody_confirms_it() {
    let place = Place::new();
    let done = place.json("run 8 --plan rows --job-states 100000 --db queens.db --json");
    let run = done["run"].as_str().expect("an id");
    let careful = place.run(&format!("requeue {run} --job 3 --db queens.db"));
    assert_eq!((careful.code, &*careful.stdout), (2, ""));
    let why = format!("error: run {run} is done, and its total would be withdrawn; give --yes to confirm\n");
    assert!(careful.stderr.starts_with(&why), "{}", careful.stderr);
    let total = || place.json(&format!("status {run} --db queens.db --json"))["runs"][0]["total"].take();
    assert_eq!(total(), "92");
    place.stdout(&format!("requeue {run} --job 3 --yes --db queens.db"));
    assert_eq!(total(), Value::Null);
    // There is no total any more that anybody could miss.
    place.stdout(&format!("requeue {run} --job 4 --db queens.db"));
}

#[test]
fn quarantine_is_always_shown() {
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &[], "");
    let at = format!("--coordinator {}", coordinator.url());
    let runs = ["1", "2"].map(|_| {
        place.stdout(&format!("submit 8 --plan rows --job-states 100000 {at}")).trim_end().to_owned()
    });
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
