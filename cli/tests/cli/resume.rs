//! Runs that are cut short, by Ctrl-C or without a word, and go on.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::Value;

use crate::Place;
use crate::processes::{Background, eventually};

/// Counts for a second or so on one thread, in some thousand jobs.
const LONG: &str = "run 15 --db long.db --plan rows --kernel reference --threads 1 --job-states 20000 --json";

/// Q(15).
const LONG_TOTAL: &str = "2279184";

/// The run in the background.
fn start(place: &Place) -> Background {
    Background::start(&mut place.command(LONG))
}

/// What a run says for programs at its end. On stderr is a line of progress for each ten seconds at most, and nothing else.
fn result(place: &Place, run: &str) -> Value {
    let begun = Instant::now();
    let outcome = place.run(run);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert_eq!(outcome.said(), "");
    assert!(outcome.stderr.lines().count() as u64 <= begun.elapsed().as_secs() / 10, "{}", outcome.stderr);
    serde_json::from_str(&outcome.stdout).expect("JSON")
}

/// Waits until at least `jobs` jobs of a run in the background are done; says how many.
fn wait_for_done(program: &mut Background, place: &Place, jobs: u64) -> u64 {
    eventually("so many jobs are done", || {
        assert!(program.is_running(), "it ended too early");
        // At first there is no database yet, or half of one.
        let status = place.run("status --db long.db --json");
        let status: Value = serde_json::from_str(&status.stdout).ok()?;
        status["runs"][0]["done"].as_u64().filter(|done| *done >= jobs)
    })
}

/// The jobs that are done, with everything that the ledger says of them.
fn done_jobs(place: &Place, db: &str) -> BTreeMap<String, String> {
    let ledger = place.run(&format!("export --db {db}"));
    assert_eq!(ledger.code, 0, "{}", ledger.stderr);
    let done = ledger.stdout.lines().filter(|line| line.split(',').nth(6) == Some("done"));
    done.map(|line| (line.split(',').next().expect("a number").to_owned(), line.to_owned())).collect()
}

#[test]
fn a_paused_run_goes_on() {
    let place = Place::new();
    let mut program = start(&place);
    wait_for_done(&mut program, &place, 10);
    program.kill();
    place.stdout("pause --db long.db");
    assert_eq!(result(&place, LONG)["total"], LONG_TOTAL);
}

#[test]
fn killed_again_and_again_it_loses_nothing_that_was_done() {
    let place = Place::new();
    let mut kept = BTreeMap::new();
    for _ in 0..3 {
        let mut program = start(&place);
        let done = wait_for_done(&mut program, &place, kept.len() as u64 + 1);
        program.kill();
        let now = done_jobs(&place, "long.db");
        assert!(now.len() as u64 >= done);
        for (job, row) in &kept {
            assert_eq!(now.get(job), Some(row), "what was done stays as it was");
        }
        kept = now;
    }
    let status = &place.json("status --db long.db --json")["runs"][0];
    assert_eq!((&status["state"], &status["total"]), (&"active".into(), &Value::Null));
    // With any engine and any number of threads.
    let result = result(&place, "run 15 --db long.db --json --threads 2");
    assert_eq!((&result["total"], &result["run"]), (&LONG_TOTAL.into(), &status["run"]));
    // All the time is either of the counting or of an interruption.
    let seconds = |name: &str| result[name].as_f64().expect("seconds");
    let all = (seconds("finished_at_ms") - seconds("started_at_ms")) / 1e3;
    assert!((seconds("elapsed_s") + seconds("interrupted_s") - all).abs() < 1e-3, "{result}");
    assert!(seconds("interrupted_s") > 0.0 && seconds("elapsed_s") > 0.0, "{result}");
    let all = done_jobs(&place, "long.db");
    assert_eq!(result["jobs"], all.len());
    assert!(kept.iter().all(|(job, row)| all[job] == *row), "none of them was counted again");
}

#[test]
fn interrupted_it_says_how_to_go_on() {
    for signal in ["-INT", "-TERM"] {
        let place = Place::new();
        let mut program = start(&place);
        let done = wait_for_done(&mut program, &place, 1);
        program.signal(signal);
        let outcome = program.end();
        assert_eq!((outcome.code, &*outcome.stdout), (130, ""), "{}", outcome.stderr);
        let expected = "interrupted; progress is kept in long.db; run the same command again to continue\n";
        assert_eq!(outcome.said(), expected);
        let status = &place.json("status --db long.db --json")["runs"][0];
        assert!(status["done"].as_u64() >= Some(done));
        assert_eq!((&status["leased"], &status["quarantined"]), (&0.into(), &0.into()), "all is handed back");
        let kept = done_jobs(&place, "long.db");
        let resumed = place.run("run 15 --db long.db");
        let percent = 100.0 * status["share"].as_f64().expect("a share");
        let expected =
            format!("nqueens: run {} is resumed at {percent:.1} %", status["run"].as_str().expect("a name"));
        assert!(resumed.stderr.starts_with(&expected), "{}", resumed.stderr);
        let how = resumed.stdout.lines().last().expect("a line");
        assert!(how.contains(" and interrupted for ") && how.contains(", the last "), "{how}");
        let result = result(&place, LONG);
        assert_eq!((&result["total"], &result["run"]), (&LONG_TOTAL.into(), &status["run"]));
        let all = done_jobs(&place, "long.db");
        assert!(kept.iter().all(|(job, row)| all[job] == *row), "none of them was counted again");
    }
}

#[test]
fn an_export_of_half_a_run_says_so() {
    let place = Place::new();
    let mut program = start(&place);
    wait_for_done(&mut program, &place, 1);
    program.kill();
    let done = done_jobs(&place, "long.db").len();
    let outcome = place.run("export --db long.db --by bound1");
    let jobs = place.json("status --db long.db --json")["runs"][0]["jobs"].as_u64().expect("jobs");
    let open = jobs - done as u64;
    let expected =
        format!("nqueens: the run is not done: {open} of {jobs} jobs have no result and count as 0\n");
    assert_eq!((outcome.code, outcome.stderr.replace(',', "")), (0, expected));
}
