//! Databases that are not what they should be: one clear line, exit code 1, and nothing is changed.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use crate::Place;
use crate::processes::own_address;

/// A file of this program with a finished run of N = 5.
fn finished() -> Place {
    let place = Place::new();
    place.stdout("run 5 --plan rows --db five.db");
    place
}

/// The names there.
fn names(place: &Place) -> Vec<String> {
    let entries = std::fs::read_dir(place.path("")).expect("a folder");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect();
    names.sort();
    names
}

#[test]
fn what_is_no_database_of_this_program_is_left_as_it_is() {
    let notes = "Eight queens puzzle, by Max Bezzel, 1848\n".repeat(99);
    let place = finished().with_file("notes.txt", &notes).with_file("short", "x");
    place.sql("music.db", "CREATE TABLE track (name TEXT); INSERT INTO track VALUES ('Queen II')");
    // One with a mark of its own, and tables with our names.
    place.sql("marked.db", "PRAGMA application_id = 1; CREATE TABLE run (id INTEGER PRIMARY KEY)");
    place.sql(
        "five.db",
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
             VALUES (4711, 'what we will know one day', TRUE, x'00', 1);
         PRAGMA wal_checkpoint(TRUNCATE)",
    );
    let [other, not_sqlite] = ["is not a database of this program", "is not an SQLite database"]
        .map(|what| format!("{what}; it was left as it is, choose another --db"));
    let newer = "has schema 4711, newer than this program's 1; use the nqueens that made it, or a later one";
    let before = place.files();
    for (db, why) in [
        ("music.db", &*other),
        ("marked.db", &other),
        ("notes.txt", &not_sqlite),
        ("short", &not_sqlite),
        ("five.db", newer),
    ] {
        for command in ["run 5", "status", "export"] {
            assert_eq!(place.failure(&format!("{command} --db {db}")), format!("{db} {why}"), "{command}");
        }
    }
    let mut after = place.files();
    // Who has looked into a database leaves its log there, with nothing in it.
    assert_eq!(after.remove("five.db-wal").map(|log| log.len()), Some(0));
    drop(after.remove("five.db-shm"));
    assert!(after == before, "files changed, or came, or went: {:?}", after.keys());
}

#[test]
fn no_file_at_all() {
    let place = Place::new();
    std::fs::create_dir(place.path("folder")).expect("a folder");
    assert!(place.program("mkfifo").arg("pipe").status().expect("mkfifo").success());
    let _socket = UnixListener::bind(place.path("socket")).expect("a socket");
    symlink("pipe", place.path("link")).expect("a link");
    let before = names(&place);
    let some = ["run 5", "status", "export", "backup copy.db", "watch --plain", "pause 123456789abc"];
    // All that takes a database says so.
    let others = [
        "workers",
        "resume 123456789abc",
        "cancel 123456789abc --yes",
        "requeue 123456789abc --job 1 --yes",
        "distrust west",
        "verify --sample 3",
        "report",
        "export --format ledger",
        "export --format bfile",
    ];
    for (db, kind, others) in [
        ("folder", "a directory", &others[..]),
        ("pipe", "a FIFO", &[]),
        ("link", "a FIFO", &[]),
        ("socket", "a socket", &[]),
        ("/dev/null", "a device", &[]),
    ] {
        let expected = format!("{db} is {kind}, not a database file; choose another --db");
        for command in some.iter().chain(others) {
            assert_eq!(place.failure(&format!("{command} --db {db}")), expected, "{command}");
        }
        let outcome = place.run(&format!("coordinator --db {db} --listen {}:0", own_address()));
        let last = outcome.stderr.lines().last();
        assert_eq!((outcome.code, last), (1, Some(&*format!("nqueens: {expected}"))));
    }
    assert_eq!(names(&place), before);
}

#[test]
fn not_there_or_where_nothing_can_be_written() {
    let place = Place::new().with_file("file", "");
    let before = place.files();
    for command in ["status", "export", "backup copy.db", "verify --sample 1", "pause 123456789abc"] {
        let expected = "there is no database at none.db; check the path, or start a run to create one";
        assert_eq!(place.failure(&format!("{command} --db none.db")), expected);
    }
    for (db, reason) in [
        ("missing/five.db", "No such file or directory (os error 2)"),
        ("file/five.db", "Not a directory (os error 20)"),
    ] {
        let expected = format!(
            "can't open the database {db}: {reason}; check that the directory exists and is writable"
        );
        assert_eq!(place.failure(&format!("run 5 --db {db}")), expected);
    }
    assert!(place.files() == before);
}

#[test]
fn not_made_to_the_end() {
    // First it is an empty database, then a marked one, then it gets its tables.
    for statements in ["PRAGMA journal_mode = WAL", "PRAGMA application_id = 0x4e516e73"] {
        let place = Place::new();
        place.sql("five.db", statements);
        let expected =
            "five.db has schema 0, older than this program's 1; 'nqueens run' brings it up to date";
        for command in ["status", "export"] {
            assert_eq!(place.failure(&format!("{command} --db five.db")), expected);
        }
        place.stdout("run 5 --db five.db");
        assert_eq!(place.json("status --db five.db --json")["runs"][0]["total"], "10");
    }
}

#[test]
fn of_another_board() {
    let place = finished();
    let status = place.stdout("status --db five.db --json");
    let said = place.failure("run 6 --db five.db");
    assert_eq!(said, "five.db holds a run of N = 5, not of N = 6; choose another --db");
    let said = place.failure("run 5 --db five.db --plan border");
    let expected = "five.db holds a run with plan 'rows', not 'border'; leave --plan out to resume it, or choose another --db";
    assert_eq!(said, expected);
    assert_eq!(place.stdout("status --db five.db --json"), status);
}

/// Takes the total back.
const ACTIVE: &str = "UPDATE run SET state = 'active', outcome = NULL;";

#[test]
fn damaged_or_with_a_run_that_has_no_total() {
    for (damage, command, expected) in [
        ("DELETE FROM job WHERE number = 2", "run 5", "has 2 jobs instead of 3; restore it from a backup"),
        ("DELETE FROM job WHERE number = 0", "run 5", "stands where 0 should; restore it from a backup"),
        (
            "DROP TRIGGER result_is_append_only_delete; DELETE FROM result WHERE job = 1",
            "run 5",
            "has 3 jobs done but 2 accepted results; restore it from a backup",
        ),
        (
            "DROP TABLE result",
            "run 5",
            "the database failed: error returned from database: (code: 1) no such table: result",
        ),
        (
            "UPDATE job SET prefixes = x'' WHERE number = 0",
            "export",
            "job 0 in the database is damaged; restore it from a backup: a job has at least one prefix, not none",
        ),
        (
            &format!("{ACTIVE} UPDATE run SET state = 'failed', reason = 'the sum is odd'"),
            "run 5",
            "has no total because a check failed: the sum is odd",
        ),
        (
            &format!("{ACTIVE} UPDATE job SET state = 3 WHERE number = 1"),
            "run 5",
            "has no total: 1 of 3 jobs are in quarantine because attempts failed or results disagree; 'nqueens export \
             --by job' lists them",
        ),
        (
            &format!(
                "{ACTIVE} DROP TRIGGER result_is_append_only_update;
                 UPDATE result SET count8 = 1 - count8 WHERE job = 0"
            ),
            "run 5",
            "has no total because a check failed: the total 2 differs from the published count 10",
        ),
    ] {
        let place = finished();
        place.sql("five.db", &format!("PRAGMA foreign_keys = OFF; {damage}"));
        let outcome = place.run(&format!("{command} --db five.db"));
        let last = outcome.stderr.lines().last().unwrap_or_default();
        assert_eq!((outcome.code, &*outcome.stdout), (1, ""), "{damage}");
        assert!(last.starts_with("nqueens: ") && last.ends_with(expected), "{damage}: {last}");
    }
}

#[test]
fn whoever_only_looks_leaves_everything_as_it_was() {
    let place = finished();
    let before = place.files();
    assert_eq!(before.keys().collect::<Vec<_>>(), ["five.db"]);
    for command in ["status", "status --json", "workers", "export --by job", "doctor"] {
        let outcome = place.run(&format!("{command} --db five.db"));
        assert_eq!(outcome.code, 0, "{command}: {}", outcome.stderr);
        assert!(place.files() == before, "{command}: {:?}", place.files().keys());
    }
}
