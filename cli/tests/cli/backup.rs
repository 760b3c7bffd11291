//! Backups: taken while the ledger is written to, and restored while the workers live on.

use std::fs;
use std::time::{Duration, SystemTime};

use insta::assert_snapshot;
use serde_json::Value;

use crate::Place;
use crate::processes::{Coordinator, end_well, eventually};

/// Q(16).
const TOTAL: &str = "95815104";

fn done(place: &Place, db: &str) -> u64 {
    place.number(db, "SELECT count(*) FROM job WHERE state = 2")
}

#[test]
fn a_backup_is_whole_and_a_run_restored_from_it_ends_well() {
    let place = Place::new();
    let mut coordinator = Coordinator::start(&place, &[], "--sync-seconds 1 --lease-seconds 3");
    let run = coordinator.submit(&place, "17 --plan border --job-states 1000000");
    let west = coordinator.worker(&place, "west", &[]);

    // Each as it was at one moment, while results come in.
    let mut before = 0;
    for backup in ["one.db", "two.db", "three.db"] {
        let now = eventually("it counts", || Some(done(&place, "queens.db")).filter(|now| *now > before));
        let said = place.stdout(&format!("backup --db queens.db {backup}"));
        let kept = done(&place, backup);
        assert!(now <= kept && kept <= done(&place, "queens.db"));
        place.check_rules(backup);
        let status = &place.json(&format!("status --db {backup} --json"))["runs"][0];
        assert_eq!((&status["run"], &status["done"]), (&run.as_str().into(), &kept.into()));
        let [head, of_run] = said.lines().collect::<Vec<_>>()[..] else { panic!("{said}") };
        assert!(head.starts_with(&format!("{backup}: a checked copy of queens.db, ")), "{said}");
        assert!(of_run.starts_with(&format!("run {run}: N = 17, active, ")), "{said}");
        before = kept;
    }
    let files = fs::read_dir(place.path("")).expect("a folder").map(|file| file.expect("a file").file_name());
    let files: Vec<_> = files.map(|name| name.into_string().expect("a name")).collect();
    let copies = |name: &&String| ["one", "two", "three"].iter().any(|copy| name.starts_with(copy));
    assert_eq!(files.iter().filter(copies).count(), 3, "nothing else is left: {files:?}");

    // More is done and leased after the latest backup, also while the coordinator is away. Then the disk is gone.
    let east = coordinator.worker(&place, "east", &[]);
    eventually("more is done", || (done(&place, "queens.db") > before + 10).then_some(()));
    let spool = || fs::metadata(place.path("west/results")).map_or(0, |file| file.len());
    let address = coordinator.address.clone();
    coordinator.process.kill();
    let unreported = spool();
    eventually("results wait for a coordinator", || (spool() > unreported).then_some(()));
    let lost = done(&place, "queens.db");
    for file in ["queens.db", "queens.db-wal", "queens.db-shm"] {
        drop(fs::remove_file(place.path(file)));
    }
    fs::copy(place.path("three.db"), place.path("queens.db")).expect("a file");
    assert!(before < lost, "what is restored is older");

    let pace = "--sync-seconds 1 --lease-seconds 3 --grace-seconds 1";
    let coordinator = Coordinator::start_at(&address, &place, &[], pace);
    let status = coordinator.done(&place);
    assert_eq!((&status["total"], &status["check"]), (&TOTAL.into(), &"published".into()));
    assert_eq!(status["done"], status["jobs"]);
    [west, east].into_iter().for_each(end_well);
    assert_eq!(coordinator.stop().code, 0);
    place.check_rules("queens.db");
    let jobs = status["jobs"].as_u64().expect("jobs");
    assert_eq!(place.number("queens.db", "SELECT count(*) FROM result WHERE verdict = 'accepted'"), jobs);
    // What was counted under leases of the lost life is not lost.
    let results = place.number("three.db", "SELECT count(*) FROM result");
    let late = format!("SELECT count(*) FROM result WHERE verdict = 'accepted' AND id > {results}");
    assert!(place.number("queens.db", &late) > 0);
}

#[test]
fn a_backup_replaces_nothing() {
    let place = Place::new().with_file("there.db", "mine").with_file("stale.db-wal", "of another database");
    place.stdout("run 5 --db five.db");
    let before = place.files();
    // Of a log that is left SQLite would play things back into the copy.
    assert_snapshot!(place.session(
        "backup --db five.db there.db
        backup --db five.db five.db
        backup --db five.db stale.db
        backup --db there.db copy.db"
    ));
    let nowhere = place.failure("backup --db five.db none/five.db");
    assert!(nowhere.starts_with("can't open the database none/five.db: No such file"), "{nowhere}");
    assert!(place.files() == before, "nothing came and nothing changed: {:?}", place.files().keys());
    // And a good one is a database like any other.
    place.stdout("backup --db five.db copy.db");
    assert_eq!(place.json("run 5 --db copy.db --json")["total"], "10");
}

#[test]
fn a_backup_needs_room() {
    let place = Place::new();
    place.stdout("run 12 --db twelve.db --job-states 300");
    let script = "\"$0\" backup --db twelve.db disk/copy.db; code=$?; ls -A disk; exit $code";
    let Some(outcome) = place.with_disk("64k", script) else { return };
    let expected = "nqueens: the disk with disk/copy.db is full; free some space and start again, everything acknowledged \
                    so far is safe\n";
    assert_eq!((outcome.code, &*outcome.stdout, &*outcome.stderr), (1, "", expected));
    assert_eq!(place.json("status --db twelve.db --json")["runs"][0]["total"], Value::from("14200"));
}

#[test]
fn what_is_on_a_read_only_disk_is_read() {
    let place = Place::new();
    place.stdout("run 8");
    let script = "cp nqueens-8.db disk && mount -o remount,ro disk &&
         for what in status verify report export 'backup copy.db'; do \"$0\" $what --db disk/nqueens-8.db || exit; done
         ls -A disk";
    let Some(outcome) = place.with_disk("10m", script) else { return };
    assert_eq!((outcome.code, &*outcome.stderr), (0, ""), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("BELIEVABLE: the jobs add up to 92"), "{}", outcome.stdout);
    assert!(outcome.stdout.ends_with("\nnqueens-8.db\n"), "{}", outcome.stdout);
    assert_eq!(place.json("status --db copy.db --json")["runs"][0]["total"], "92");
}

#[test]
fn the_file_alone_has_the_jobs_once_they_are_planned() {
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &[], "");
    let at = format!("--coordinator {}", coordinator.url());
    place.stdout(&format!("submit 12 --plan border --job-states 300 {at}"));
    fs::copy(place.path("queens.db"), place.path("copy.db")).expect("a copy");
    let jobs = "SELECT jobs || ' of ' || count(*) FROM run JOIN job ON run = id";
    assert_eq!(place.ask("copy.db", jobs), place.ask("queens.db", jobs));
    assert_eq!(coordinator.stop().code, 0);
}

#[test]
fn a_coordinator_keeps_its_last_backups() {
    let place = Place::new();
    let options = "--backup-every 1s --backup-dir backups --no-recounts";
    let coordinator = Coordinator::start(&place, &[], options);
    let at = format!("--coordinator {}", coordinator.url());
    place.stdout(&format!("submit 8 --plan border --job-states 100 {at}"));
    let backups = || {
        let entries = fs::read_dir(place.path("backups")).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().into_string().expect("text"));
        let mut backups: Vec<_> = names.filter(|name| !name.ends_with(".partial")).collect();
        backups.sort_unstable();
        backups
    };
    let first = eventually("a backup", || backups().first().cloned());
    let partial = |name: &str, age_s| {
        let path = place.path(&format!("backups/{name}.nqueens.partial"));
        let file = fs::File::create(&path).expect("a file");
        file.set_modified(SystemTime::now() - Duration::from_secs(age_s)).expect("a time");
        path
    };
    let (stale, fresh) = (partial("killed", 4_000), partial("running", 3_000));
    fs::write(place.path("backups/queens-notes.db"), "mine").expect("a file");
    eventually("what a killed backup left has gone", || (!stale.exists()).then_some(()));
    assert!(fresh.exists());
    let kept = eventually("the first one has gone", || Some(backups()).filter(|kept| !kept.contains(&first)));
    // While one is made, there is one more.
    assert!((3..=5).contains(&kept.len()) && kept.contains(&"queens-notes.db".to_owned()), "{kept:?}");
    assert_eq!(coordinator.stop().code, 0);

    // The last one is a database to go on with.
    let last = backups().into_iter().rfind(|name| !name.contains("notes")).expect("a backup");
    for file in ["queens.db", "queens.db-wal", "queens.db-shm"] {
        drop(fs::remove_file(place.path(file)));
    }
    fs::copy(place.path(&format!("backups/{last}")), place.path("queens.db")).expect("a copy");
    let coordinator = Coordinator::start(&place, &[], options);
    let at = format!("--coordinator {}", coordinator.url());
    let _worker = coordinator.worker(&place, "west", &[]);
    let total = eventually("it is counted", || {
        place.json(&format!("status --json {at}"))["runs"][0]["total"].as_str().map(str::to_owned)
    });
    assert_eq!(total, "92");
    // The clock was ahead for a while: what is made from now on is not the last by name, and stays.
    for second in 0..3 {
        fs::write(place.path(&format!("backups/queens-29990101T00000{second}Z.db")), "").expect("a file");
    }
    let is_ahead = |name: &String| name.starts_with("queens-2999");
    eventually("the newest stays", || {
        let (ahead, made): (Vec<_>, Vec<_>) = backups().into_iter().partition(is_ahead);
        (ahead.len() == 2 && made.iter().any(|name| !name.contains("notes"))).then_some(())
    });
    assert_eq!(coordinator.stop().code, 0);

    let refused = place.failure("coordinator --db queens.db --listen 127.0.0.1:0 --backup-dir none/backups");
    assert!(refused.starts_with("the folder for backups, none/backups: No such file"), "{refused}");
}
