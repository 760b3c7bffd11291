//! `nqueens audit` and `nqueens verify --sample`: jobs counted again.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use nqueens_evidence::chain::ChainWriter;
use nqueens_kernel::engine::Kernel;
use nqueens_kernel::plan::{Plan, PlanKind};
use serde_json::{Value, json};

use crate::Place;

#[test]
fn a_database_and_its_ledger_give_the_same_sample() {
    let best = Kernel::best().name();
    for (run, road) in [
        ("9 --plan rows --kernel reference --job-states 50", best),
        ("10 --plan border --kernel portable --job-states 500", "scalar"),
        ("11 --plan colours --kernel portable --job-states 1000", "scalar"),
        ("11 --plan colours --kernel scalar --job-states 1000", best),
    ] {
        let place = Place::new();
        place.stdout(&format!("run {run} --threads 1 --db run.db"));
        let ledger = place.run("export --db run.db --format ledger").stdout;
        std::fs::write(place.path("ledger"), ledger).expect("writable");
        let audit = place.stdout("audit --db run.db --sample 5 --seed 7");
        let verify = place.stdout("verify ledger --sample 5 --seed 7");
        assert_eq!(audit.lines().next(), verify.lines().next());
        let sample: Vec<_> = audit.lines().skip(1).collect();
        assert!(sample[0].starts_with("ok      sample       5 of "), "{audit}");
        let proof =
            format!(" jobs counted again by {road}, all equal (seed 7): with 95 % confidence fewer than ");
        assert!(sample[0].contains(&proof), "{audit}");
        assert!(sample[0].contains("; if 1 % of all ("), "{audit}");
        assert!(sample[1].starts_with("ok      worker 1     5 of "), "{audit}");
        assert!(verify.trim_end().ends_with(&sample.join("\n")), "{verify}");
        for kernel in ["reference", "scalar", "portable"] {
            let by_hand = place
                .stdout(&format!("audit --db run.db --sample 1000 --recount-kernel {kernel} --threads 2"));
            assert!(by_hand.trim_end().ends_with("none is wrong"), "{by_hand}");
        }
    }
}

#[test]
fn a_sample_says_what_it_would_have_found() {
    let place = Place::new();
    place.stdout("run 8 --plan rows --job-states 20 --threads 1 --db run.db");
    let said = |options: &str| {
        let audit = place.stdout(&format!("audit --db run.db --seed 1 {options}"));
        audit.lines().nth(1).expect("a line").to_owned()
    };
    let jobs = place.ask("run.db", "SELECT count(*) FROM job").concat().parse::<u32>().expect("jobs");
    // 1 of 100 jobs or fewer is met by a draw of K with a probability of K among all of them.
    assert!((10..=100).contains(&jobs), "{jobs}");
    let chance = f64::floor(1e4 * 5.0 / f64::from(jobs)) / 100.0;
    let expected = format!(
        "; if 1 % of all (1 job) were wrong, this would have found one of them with a probability of {chance:.2} %"
    );
    let sample = said("--sample 5");
    assert!(sample.ends_with(&expected), "{sample}");
    let sample = said("--sample 1000");
    assert!(sample.ends_with("none is wrong"), "{sample}");
}

/// What is printed as JSON, as it is printed for people.
fn as_text(json: &str) -> String {
    let text = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let text = |name: &str| line[name].as_str().expect("text").to_owned();
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
    let place = Place::new();
    place.stdout("run 9 --plan border --job-states 1000 --threads 1 --kernel portable --db run.db");
    place.run("export --db run.db --format ledger --output good");
    let bad = std::fs::read_to_string(place.path("good")).expect("a ledger").replacen(
        "\"count8\":\"",
        "\"count8\":\"1",
        1,
    );
    let place = place.with_file("bad", &bad).with_file("none", "nothing");
    for (command, code) in [
        ("audit --db run.db --sample 4 --seed 1", 0),
        ("verify good --sample 4 --seed 1", 0),
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
    place.sql(
        "run.db",
        "DROP TRIGGER result_is_append_only_update; UPDATE result SET count8 = count8 + 1 WHERE job = 1;
         PRAGMA wal_checkpoint(TRUNCATE)",
    );
    let before = std::fs::read(place.path("run.db")).expect("a file");
    let outcome = place.run("audit --db run.db --sample 1000 --seed 1 --threads 1");
    assert_eq!((outcome.code, &*outcome.stderr), (1, ""));
    let lines: Vec<_> = outcome.stdout.lines().collect();
    let told = lines[1];
    assert!(told.starts_with("FAILED  job 1        worker 1 (this process) counted COUNT"), "{told}");
    assert!(told.contains(" by portable, recounted by scalar: COUNT"), "{told}");
    assert!(lines[2].contains("jobs counted again differ (seed 1); the run has "), "{}", lines[2]);
    assert!(lines[2].ends_with("Do not trust its total; nothing was changed"), "{}", lines[2]);
    assert!(lines[3].starts_with("FAILED  worker 1") && lines[3].ends_with(": 1 differ"), "{}", lines[3]);
    assert!(std::fs::read(place.path("run.db")).expect("a file") == before, "nothing was changed");
    assert_eq!(
        place.failure("audit --db none.db --sample 1"),
        "there is no database at none.db; check the path, or start a run to create one"
    );
}

#[test]
fn a_run_that_is_not_done_is_audited_as_far_as_it_is() {
    let place = Place::new();
    place.stdout("run 9 --plan rows --job-states 50 --threads 1 --db run.db");
    place.sql(
        "run.db",
        "UPDATE run SET state = 'paused', count2 = NULL, count4 = NULL, count8 = NULL, total = NULL, checked = NULL;
         UPDATE result SET verdict = 'voided' WHERE job < 2; UPDATE job SET state = 0 WHERE number < 2",
    );
    let audit = place.stdout("audit --db run.db --sample 1000");
    let jobs: usize = audit
        .lines()
        .next()
        .and_then(|line| line.split(' ').nth_back(1))
        .expect("a number")
        .parse()
        .expect("jobs");
    assert!(audit.contains(&format!(" {0} of {0} jobs counted again", jobs - 2)), "{audit}");
    place.sql("run.db", "UPDATE result SET verdict = 'voided' WHERE verdict = 'accepted'");
    let audit = place.run("audit --db run.db --sample 1000 --seed 3");
    assert_eq!(audit.code, 0);
    assert_eq!(audit.stdout.lines().nth(1), Some("-       sample       0 of 0 jobs counted again (seed 3)"));
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| format!("{digit:x}"))
        .collect::<Vec<_>>()
        .concat()
}

#[test]
fn an_interrupted_sample_tells_what_was_counted() {
    // A ledger with one job that takes an hour to count again; what it says that it found is made up.
    let n = "20".parse().expect("a board");
    let plan = Plan::with_states_per_job(n, PlanKind::Colours, 1 << 62);
    let job = plan.jobs().next().expect("a job");
    let counts = json!({"count2": "0", "count4": "0", "count8": "0", "solutions": "8"});
    let mut text = Vec::new();
    let mut writer = ChainWriter::new(&mut text);
    for line in [
        json!({"line": "ledger", "format": 1, "run": "00000000000a", "n": 20, "plan": "colours",
            "states_per_job": plan.states_per_job().to_string(), "jobs": 1,
            "fingerprint": plan.fingerprint().to_string(), "seed": "1", "created_at_ms": 1, "finished_at_ms": 2,
            "build": "", "total": "8"}),
        json!({"line": "job", "number": 0, "class": "colours", "bound1": 0,
            "bytes": hex(&job.encode()), "counts": counts,
            "kernel": "avx2", "worker": 1, "epoch": 1, "states": "1", "elapsed_us": "1", "reported_at_ms": 2}),
        json!({"line": "total", "counts": counts, "orbits": counts, "total": "8",
            "checks": {"recounts_agreed": 0, "recounts_differing": 0}}),
    ] {
        writer.write(&line).expect("to memory");
    }
    drop(writer);
    let place = Place::new().with_file("ledger", std::str::from_utf8(&text).expect("text"));
    let mut command = place.command("verify ledger --sample 1 --threads 1 --seed 1");
    let mut running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut lines =
        BufReader::new(running.stdout.take().expect("piped")).lines().map(|line| line.expect("text"));
    // The last check but the sample.
    let checks: Vec<_> = lines.by_ref().take_while(|line| !line.contains(" total ")).collect();
    assert_eq!(checks.len(), 14, "{checks:?}");
    let status = Command::new("kill").args(["-INT", &running.id().to_string()]).status().expect("kill");
    assert!(status.success());
    assert_eq!(lines.collect::<Vec<_>>(), ["-       sample       0 of 1 jobs counted again (seed 1)"]);
    assert_eq!(running.wait().expect("it ends").code(), Some(130));
    let mut said = String::new();
    running.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
    assert_eq!(said, "nqueens: interrupted after 0 of 1 jobs\n");
}
