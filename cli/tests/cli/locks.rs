//! One coordinator a database, whatever path leads there: the second one is refused, and one that another has taken the
//! place of ends.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use crate::processes::{Background, Coordinator, ended, eventually, own_address};
use crate::{Outcome, Place};

/// Q(15).
const TOTAL: &str = "2279184";

/// What starts a coordinator on this database.
fn coordinator(db: &str) -> String {
    format!("coordinator --db {db} --listen {}:0", own_address())
}

/// What a process says last that ends because it fails.
fn complaint(process: &mut Background) -> String {
    let Outcome { code, stderr, .. } = ended(process);
    assert_eq!(code, 1, "{stderr}");
    stderr.lines().last().and_then(|line| line.strip_prefix("nqueens: ")).expect("a complaint").to_owned()
}

/// The same, of the program with these arguments.
fn refusal(place: &Place, arguments: &str) -> String {
    complaint(&mut Background::start(&mut place.command(arguments)))
}

/// Has a coordinator that plans a run of N = 15, and a worker that has begun to count it.
fn counting(place: &Place) -> (Coordinator, Background) {
    let coordinator = Coordinator::start(place, &[], "--sync-seconds 1 --lease-seconds 3 --grace-seconds 1");
    coordinator.submit(place, "15 --plan rows --job-states 20000 --replicate 0");
    let worker = coordinator.worker(place, "west", &[]);
    eventually("a job is done", || {
        (place.number("queens.db", "SELECT count(*) FROM job WHERE state = 2") > 0).then_some(())
    });
    (coordinator, worker)
}

/// Waits until the run of a coordinator is done, with the right total, in a sound ledger.
fn check_done(place: &Place, coordinator: &Coordinator) {
    assert_eq!(coordinator.done(place)["total"], TOTAL);
    place.check_rules("queens.db");
}

#[test]
fn whatever_path_leads_to_it() {
    let place = Place::new();
    let (first, worker) = counting(&place);
    fs::create_dir(place.path("folder")).expect("a folder");
    symlink("queens.db", place.path("symbolic.db")).expect("a link");
    symlink("../symbolic.db", place.path("folder/twice.db")).expect("a link");
    fs::hard_link(place.path("queens.db"), place.path("hard.db")).expect("a link");
    let absolute = place.path("queens.db").display().to_string();
    for db in ["symbolic.db", "folder/twice.db", "hard.db", "folder/../queens.db", &absolute] {
        let expected =
            format!("another nqueens process is using {db}; wait for it or stop it, or choose another --db");
        for command in [coordinator(db), format!("run 8 --db {db}")] {
            assert_eq!(refusal(&place, &command), expected, "{command}");
        }
    }
    let files: Vec<_> =
        fs::read_dir(place.path("")).expect("a folder").map(|file| file.expect("a file")).collect();
    let besides = files.iter().filter(|file| file.file_name().to_string_lossy().contains("db-"));
    assert_eq!(besides.count(), 2, "the log and the index of the first, nothing of another: {files:?}");
    // The first goes on unharmed.
    check_done(&place, &first);
    drop(worker);
    assert_eq!(first.stop().code, 0);
    // And whoever comes later may take any of them.
    let outcome = place.run("run 15 --db symbolic.db --json");
    assert!(outcome.stdout.contains(TOTAL), "{}", outcome.stderr);
}

/// Records another life of a coordinator, as one does that no lock has stopped, and how much is stored at that moment.
const TAKE_OVER: &str = "
    BEGIN IMMEDIATE;
    INSERT INTO coordinator (incarnation, build, started_at, life)
    SELECT 4711, 'another', 0, 1 + max(life) FROM coordinator;
    CREATE TABLE stored AS SELECT (SELECT count(*) FROM result) AS results, (SELECT sum(epoch) FROM job) AS leases;
    COMMIT";

/// What is stored is what was stored then.
fn check_nothing_more_is_stored(place: &Place) {
    let changed = "SELECT count(*) FROM stored WHERE (results, leases)
                   IS NOT ((SELECT count(*) FROM result), (SELECT sum(epoch) FROM job))";
    assert_eq!(place.number("queens.db", changed), 0);
    place.sql("queens.db", "DROP TABLE stored");
}

const TAKEN_OVER: &str = "another nqueens process has taken over queens.db, so this one stores nothing more and ends; \
                          everything acknowledged so far is safe; run one coordinator on a database";

#[test]
fn a_coordinator_that_another_has_taken_the_place_of_ends() {
    let place = Place::new();
    let (mut first, _worker) = counting(&place);
    place.sql("queens.db", TAKE_OVER);
    assert_eq!(complaint(&mut first.process), TAKEN_OVER);
    check_nothing_more_is_stored(&place);
    // The worker still looks for it, and brings what it has counted meanwhile.
    let next = Coordinator::start_at(
        &first.address,
        &place,
        &[],
        "--sync-seconds 1 --lease-seconds 3 --grace-seconds 1",
    );
    check_done(&place, &next);
    assert_eq!(next.stop().code, 0);
}

const REPLACED: &str = "queens.db was moved, removed or replaced while in use, so this process stores nothing more and \
                        ends; stop a coordinator before you move or restore its database";

#[test]
fn a_backup_moved_over_the_database_does_not_meet_the_log_of_another() {
    let place = Place::new();
    let (mut first, worker) = counting(&place);
    drop(worker);
    place.stdout("backup --db queens.db copy.db");
    let backup = fs::read(place.path("copy.db")).expect("a file");
    // While it is stopped, it can't notice.
    first.process.signal("-STOP");
    fs::rename(place.path("copy.db"), place.path("queens.db")).expect("a file");
    let expected =
        "another nqueens process is using queens.db; wait for it or stop it, or choose another --db";
    assert_eq!(refusal(&place, &coordinator("queens.db")), expected);
    first.process.signal("-CONT");
    assert_eq!(complaint(&mut first.process), REPLACED);
    let log = fs::metadata(place.path("queens.db-wal"));
    assert!(log.is_ok_and(|log| log.len() == 0), "its log went to the file that it belongs to");
    assert!(fs::read(place.path("queens.db")).expect("a file") == backup, "the backup is as it was");
    let next = Coordinator::start_at(&first.address, &place, &[], "--grace-seconds 1");
    let _worker = next.worker(&place, "east", &[]);
    check_done(&place, &next);
    assert_eq!(next.stop().code, 0);
}

#[test]
fn a_coordinator_whose_database_was_moved_away_harms_no_other() {
    let place = Place::new();
    let (mut first, worker) = counting(&place);
    drop(worker);
    place.stdout("backup --db queens.db copy.db");
    first.process.signal("-STOP");
    for file in ["queens.db", "queens.db-wal", "queens.db-shm"] {
        fs::rename(place.path(file), place.path(&format!("old-{file}"))).expect("a file");
    }
    fs::rename(place.path("copy.db"), place.path("queens.db")).expect("a file");
    let next = Coordinator::start(&place, &[], "--grace-seconds 1");
    let log = || fs::metadata(place.path("queens.db-wal")).expect("a log").ino();
    let log_before = log();
    first.process.signal("-CONT");
    assert_eq!(complaint(&mut first.process), REPLACED);
    assert_eq!(log(), log_before, "the log of the second is in its place");
    let _worker = next.worker(&place, "east", &[]);
    check_done(&place, &next);
    assert_eq!(next.stop().code, 0);
}
