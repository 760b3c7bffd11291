//! `nqueens verify --sample`: jobs counted again, of a ledger and of a database.

use std::io::BufRead;

use nqueens_kernel::engine::Kernel;
use serde_json::Value;

use crate::Place;
use crate::processes::Background;

#[test]
fn a_database_and_its_ledger_give_the_same_sample() {
    let best = Kernel::best().name();
    for (run, road) in [
        ("9 --plan rows --kernel reference --job-states 50", best),
        ("10 --plan border --kernel portable --job-states 500", "scalar"),
        ("11 --plan colours --kernel portable --job-states 1000", "scalar"),
        ("11 --plan colours --kernel scalar --job-states 1000", "scalar"),
    ] {
        let place = Place::new();
        place.stdout(&format!("run {run} --threads 1 --db run.db"));
        place.run("export --db run.db --format ledger --output ledger");
        let of_database = place.stdout("verify --db run.db --sample 5 --seed 7");
        assert_eq!(of_database, place.stdout("verify ledger --sample 5 --seed 7"));
        let [.., sample, verdict] = &of_database.lines().collect::<Vec<_>>()[..] else { panic!("lines") };
        assert!(sample.starts_with("ok      sample       5 of "), "{sample}");
        let proof = format!(" jobs recounted by {road}, all equal (seed 7). Too few to say more: --sample ");
        assert!(sample.contains(&proof), "{sample}");
        assert!(verdict.starts_with("BELIEVABLE: the jobs add up to "), "{verdict}");
        assert!(verdict.contains(", the published count, and 5 of "), "{verdict}");
        for kernel in ["reference", "scalar", "portable"] {
            let options = format!("--sample 1000 --seed 1 --recount-kernel {kernel} --threads 2");
            let by_hand = place.stdout(&format!("verify --db run.db {options}"));
            assert!(by_hand.contains(&format!(" recounted by {kernel}, all equal (seed 1)\n")), "{by_hand}");
        }
    }
}

/// What is printed as JSON, as it is printed for people.
fn as_text(json: &str) -> String {
    let text = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let text = |name: &str| line[name].as_str().expect("text").to_owned();
        if line["verdict"].is_string() {
            let verdict = match &*text("verdict") {
                "believable" => "BELIEVABLE",
                "counted" => "COUNTED, NOT CONFIRMED",
                _ => "WRONG",
            };
            return format!("{verdict}: {}\n", text("detail"));
        }
        if line["check"].is_null() {
            let [run, subject, plan] = ["run", "subject", "plan"].map(text);
            return format!("run {run}, {subject}, plan {plan}, {} jobs\n", line["jobs"]);
        }
        let outcome = line["passed"].as_bool().map_or("-", |passed| if passed { "ok" } else { "FAILED" });
        format!("{outcome:<7} {:<12} {}\n", text("check"), text("detail"))
    };
    json.lines().map(text).collect()
}

#[test]
fn programs_read_the_same_as_people() {
    let place = Place::new().with_file("board", ".....\n.....\n.....\n.....\nQ....\n");
    place.stdout("run 9 --plan border --job-states 1000 --threads 1 --kernel portable --db run.db");
    place.stdout("run 5 --cells board --job-states 1 --threads 1 --db cells.db");
    place.run("export --db run.db --format ledger --output good");
    let bad = std::fs::read_to_string(place.path("good")).expect("a ledger").replacen(
        "\"count8\":\"",
        "\"count8\":\"1",
        1,
    );
    let place = place.with_file("bad", &bad).with_file("none", "nothing");
    for (command, code) in [
        ("verify --db run.db --sample 4 --seed 1", 0),
        ("verify good --sample 4 --seed 1", 0),
        ("verify --db cells.db", 3),
        ("verify --db cells.db --sample 300 --seed 1", 0),
        ("verify bad --sample 1000 --seed 1", 1),
        ("verify none", 1),
    ] {
        let [people, programs] = ["", " --json"].map(|json| place.run(&format!("{command}{json}")));
        assert_eq!((people.code, programs.code), (code, code), "{command}: {}", people.stderr);
        assert_eq!(as_text(&programs.stdout), people.stdout, "{command}");
    }
}

#[test]
fn a_wrong_result_is_told_and_left_as_it_is() {
    let place = Place::new();
    place.stdout("run 9 --plan border --job-states 1000 --threads 1 --kernel portable --db run.db");
    // Jobs 1 and 2 have an orbit less and an orbit more: only who counts again finds it.
    place.sql(
        "run.db",
        "DROP TRIGGER result_is_append_only_update;
         UPDATE result SET count8 = count8 + 1 WHERE job = 1; UPDATE result SET count8 = count8 - 1 WHERE job = 2;
         PRAGMA wal_checkpoint(TRUNCATE)",
    );
    let before = std::fs::read(place.path("run.db")).expect("a file");
    let outcome = place.run("verify --db run.db --sample 1000 --seed 1 --threads 1");
    assert_eq!((outcome.code, &*outcome.stderr), (1, ""), "{}", outcome.stdout);
    let told = outcome.stdout.lines().find(|line| line.contains(" job 1 ")).expect("a line");
    assert!(told.starts_with("FAILED  job 1        worker 1 (this process) counted COUNT"), "{told}");
    assert!(told.contains(" by portable, recounted by scalar: COUNT"), "{told}");
    let [.., sample, verdict] = &outcome.stdout.lines().collect::<Vec<_>>()[..] else { panic!("lines") };
    assert!(sample.starts_with("FAILED  sample       2 of "), "{sample}");
    assert!(sample.ends_with(" recounted jobs differ (seed 1)"), "{sample}");
    assert_eq!(*verdict, "WRONG: do not believe this total; failed: sample");
    assert!(std::fs::read(place.path("run.db")).expect("a file") == before, "nothing was changed");
    assert_eq!(
        place.failure("verify --db none.db --sample 1"),
        "there is no database at none.db; check the path, or start a run to create one"
    );
}

#[test]
fn a_run_that_is_not_done_is_recounted_as_far_as_it_is() {
    let place = Place::new();
    place.stdout("run 9 --plan rows --job-states 50 --threads 1 --db run.db");
    place.sql(
        "run.db",
        "UPDATE run SET state = 'paused', outcome = NULL;
         UPDATE result SET verdict = 'voided' WHERE job < 2; UPDATE job SET state = 0 WHERE number < 2",
    );
    let jobs = place.ask("run.db", "SELECT count(*) - 2 FROM job").concat();
    let outcome = place.run("verify --db run.db --sample 1000");
    assert_eq!(outcome.code, 3, "{}", outcome.stderr);
    assert!(outcome.stdout.contains(&format!(" {jobs} of {jobs} jobs recounted by ")), "{}", outcome.stdout);
    let verdict = "COUNTED, NOT CONFIRMED: the run has no total yet\n";
    assert!(outcome.stdout.ends_with(verdict), "{}", outcome.stdout);
    place.sql("run.db", "UPDATE result SET verdict = 'voided' WHERE verdict = 'accepted'");
    let outcome = place.run("verify --db run.db --sample 1000 --seed 3");
    assert_eq!(outcome.code, 3);
    assert!(outcome.stdout.contains("-       jobs         the run is not done: 0 of "), "{}", outcome.stdout);
    assert!(outcome.stdout.ends_with(verdict), "{}", outcome.stdout);
}

#[test]
fn an_interrupted_sample_tells_what_was_counted() {
    let place = Place::new();
    // Multiplied in a moment, and searched in many seconds.
    place.run("run 16 --plan colours --kernel portable --job-states 1000000000000 --db run.db");
    let mut verify = Background::start(
        &mut place.command("verify --db run.db --sample 1 --threads 1 --seed 1 --recount-kernel reference"),
    );
    let mut lines = verify.stdout().lines().map(|line| line.expect("text"));
    // The last check but the sample.
    lines.find(|line| line.starts_with("ok      total ")).expect("it comes");
    verify.signal("-INT");
    let verdict = "BELIEVABLE: the jobs add up to 14,772,512, the published count";
    assert_eq!(lines.collect::<Vec<_>>(), ["-       sample       0 of 1 jobs recounted (seed 1)", verdict]);
    let outcome = verify.end();
    assert_eq!((outcome.code, &*outcome.stderr), (130, "nqueens: interrupted after 0 of 1 jobs\n"));
}
