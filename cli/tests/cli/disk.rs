//! Disks that are full: one clear line, and with more room the same command ends well.

use crate::processes::{Coordinator, end_well, eventually};
use crate::{NO_DEVICES, NQUEENS, Outcome, Place};

const ARGUMENTS: &str = "run 12 --db twelve.db --job-states 300 --threads 1";

/// Ends with code 1 and this line, before which there is nothing but progress.
fn assert_fails(outcome: &Outcome, expected: &str) {
    assert_eq!((outcome.code, &*outcome.stdout), (1, ""), "{}", outcome.stderr);
    assert_eq!(outcome.said(), format!("{expected}\n"));
}

#[test]
fn files_that_may_not_grow() {
    // Too small for the schema, for the plan, and for the results.
    for kib in [16, 64, 150] {
        let place = Place::new();
        // The signal would end the program before it can say anything; ignored, the write fails.
        let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" {ARGUMENTS}", kib * 2);
        let limited = Outcome::of(place.program("sh").args(["-c", &script, NQUEENS]));
        assert_fails(
            &limited,
            "nqueens: twelve.db can't be read or written (disk I/O error); check the disk and its quota and start \
             again, everything acknowledged so far is safe",
        );
        assert_eq!(place.json(&format!("{ARGUMENTS} --json"))["total"], "14200", "{kib} KiB");
    }
}

#[test]
fn a_small_disk() {
    // Too small for the schema, for the plan, and for the results. The disk is gone when the shell ends.
    for kib in [64, 128, 160] {
        let place = Place::new();
        let script = format!(
            "cd disk && \"$0\" {ARGUMENTS}; code=$?
             mount -o remount,size=10m . && \"$0\" {ARGUMENTS} --json > ../result.json && exit $code"
        );
        let Some(outcome) = place.with_disk(&format!("{kib}k"), &script) else { return };
        assert_fails(
            &outcome,
            "nqueens: the disk with twelve.db is full; free some space and start again, everything acknowledged so far \
             is safe",
        );
        let result = std::fs::read_to_string(place.path("result.json")).expect("the second one's result");
        assert!(result.contains("\"total\":\"14200\""), "{kib} KiB: {result}");
    }
}

#[test]
fn a_document_without_room_leaves_the_old_one() {
    let place = Place::new();
    place.stdout("run 12 --job-states 300");
    let script =
        "echo mine > disk/old.csv; \"$0\" export --db nqueens-12.db --output disk/old.csv --force; code=$?
         ls -A disk; cat disk/old.csv; exit $code";
    let Some(outcome) = place.with_disk("16k", script) else { return };
    assert_eq!((outcome.code, &*outcome.stdout), (1, "old.csv\nmine\n"), "{}", outcome.stderr);
    assert!(
        outcome.stderr.ends_with("disk/old.csv: No space left on device (os error 28)\n"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn a_coordinator_logs_what_its_disk_refused_and_serves_on() {
    let place = Place::new();
    let script = "trap '' XFSZ; ulimit -f 600; exec \"$0\" coordinator --db queens.db --listen 127.0.0.1:0 --progress-seconds 9";
    let coordinator = Coordinator::of(place.program("sh").args(["-c", script, NQUEENS]));
    let at = format!("--coordinator {}", coordinator.url());
    let refused = "queens.db can't be read or written (disk I/O error); check the disk and its quota and start again, \
                   everything acknowledged so far is safe";
    assert_eq!(place.failure(&format!("submit 16 --job-states 10000 {at}")), refused);
    assert_eq!(
        place.json(&format!("status --json {at}"))["runs"],
        serde_json::json!([]),
        "nothing of it is stored"
    );
    let log = coordinator.stop().stderr;
    let errors: Vec<_> = log.lines().filter(|line| line.contains("ERROR")).collect();
    assert_eq!(errors.len(), 1, "{log}");
    assert!(
        errors[0].contains("the database failed; nothing acknowledged is lost error=queens.db can't be"),
        "{log}"
    );
}

#[test]
fn a_coordinator_without_room_takes_results_and_hands_out_nothing() {
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &[], "--sync-seconds 1 --lease-seconds 86400");
    let at = format!("--coordinator {}", coordinator.url());
    let address = coordinator.address.clone();
    let status = || place.json(&format!("status --json {at}"));
    place.stdout(&format!("submit 17 --plan border --job-states 200000 {at}"));
    let worker = coordinator.worker(&place, "west", &[]);
    eventually("it counts", || (status()["runs"][0]["done"] != 0).then_some(()));
    assert_eq!(status()["disk"]["is_short"], false);
    assert_eq!(coordinator.stop().code, 0);

    // No disk has so much room. What is out comes in, and nothing else goes out.
    let pace = "--sync-seconds 1 --lease-seconds 86400 --disk-reserve 1000PB";
    let coordinator = Coordinator::start_at(&address, &place, &[], pace);
    let [now, run] = eventually("all that was out is reported", || {
        let mut now = status();
        let run = now["runs"][0].take();
        (run["leased"] == 0).then_some([now, run])
    });
    let left = run["jobs"].as_u64().expect("jobs") - run["done"].as_u64().expect("done");
    assert!(left > 0 && run["state"] == "active");
    assert_eq!(now["disk"]["is_short"], true);
    let line = place.stdout(&format!("status {at}"));
    let line = line.lines().last().expect("a line");
    assert!(line.starts_with("no jobs are leased: the coordinator's disk has "), "{line}");
    let doctor = place.run_with(&[NO_DEVICES], &format!("doctor {at}"));
    assert!(
        doctor.code == 1 && doctor.stdout.contains("FAILED: no jobs are leased: the coordinator's disk has "),
        "{}",
        doctor.stdout
    );
    assert_eq!(
        place.failure(&format!("submit 8 {at}")),
        "the coordinator's disk has less free space than its --disk-reserve; free some space and submit again"
    );
    let log = coordinator.stop().stderr;
    assert_eq!(log.matches("the disk is nearly full: no more jobs are leased").count(), 1, "{log}");

    let coordinator = Coordinator::start_at(&address, &place, &[], "--sync-seconds 1 --disk-reserve 1KB");
    assert_eq!(coordinator.done(&place)["total"], "95815104");
    end_well(worker);
    assert_eq!(coordinator.stop().code, 0);
}
