//! Databases that are not what they should be: one clear line, exit code 1, and nothing is changed.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use crate::Place;
use crate::processes::own_address;

/// What the three commands that take a database say of this one, which none of them may change.
fn refused(place: &Place, db: &str) -> String {
    let before = place.files();
    let said = place.failure(&format!("run 5 --db {db}"));
    for command in ["status", "export"] {
        assert_eq!(place.failure(&format!("{command} --db {db}")), said);
    }
    assert!(place.files() == before, "{db}: files changed, or came, or went: {:?}", place.files().keys());
    said
}

/// A file of this program with a finished run of N = 5.
fn finished() -> Place {
    let place = Place::new();
    place.stdout("run 5 --plan rows --db five.db");
    place
}

#[test]
fn of_another_program() {
    let place = Place::new();
    place.sql("music.db", "CREATE TABLE track (name TEXT); INSERT INTO track VALUES ('Queen II')");
    let expected = "music.db is not a database of this program; it was left as it is, choose another --db";
    assert_eq!(refused(&place, "music.db"), expected);
    // One with a mark of its own, and tables with our names.
    place.sql("marked.db", "PRAGMA application_id = 1; CREATE TABLE run (id INTEGER PRIMARY KEY)");
    assert_eq!(refused(&place, "marked.db"), expected.replace("music", "marked"));
}

#[test]
fn no_database_at_all() {
    let mut place =
        Place::new().with_file("notes.txt", &"Eight queens puzzle, by Max Bezzel, 1848\n".repeat(99));
    let expected = "notes.txt is not an SQLite database; it was left as it is, choose another --db";
    assert_eq!(refused(&place, "notes.txt"), expected);
    place = place.with_file("short", "x");
    assert_eq!(refused(&place, "short"), expected.replace("notes.txt", "short"));
}

#[test]
fn of_a_newer_schema() {
    let place = finished();
    place.sql(
        "five.db",
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
             VALUES (4711, 'what we will know one day', TRUE, x'00', 1);
         PRAGMA wal_checkpoint(TRUNCATE)",
    );
    let before = std::fs::read(place.path("five.db")).expect("a file");
    let said = place.failure("run 5 --db five.db");
    assert_eq!(
        said,
        "five.db has schema 4711, newer than this program's 1; use the nqueens that made it, or a later one"
    );
    for command in ["status", "export"] {
        assert_eq!(place.failure(&format!("{command} --db five.db")), said);
    }
    assert!(std::fs::read(place.path("five.db")).expect("a file") == before, "the file is as it was");
}

#[test]
fn not_made_to_the_end() {
    // First it is an empty database, then a marked one, then it gets its tables.
    for statements in ["PRAGMA journal_mode = WAL", "PRAGMA application_id = 0x4e516e73"] {
        let place = Place::new();
        place.sql("five.db", statements);
        let expected =
            "five.db has schema 0, older than this program's 1; 'nqueens run' brings it up to date";
        assert_eq!(place.failure("status --db five.db"), expected);
        assert_eq!(place.failure("export --db five.db"), expected);
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
    assert_eq!(
        place.failure("run 5 --db five.db --plan border"),
        "five.db holds a run with plan 'rows', not 'border'; leave --plan out to resume it, or choose another --db"
    );
    assert_eq!(place.stdout("status --db five.db --json"), status);
}

#[test]
fn not_there() {
    let place = Place::new();
    let expected = "there is no database at none.db; check the path, or start a run to create one";
    assert_eq!(place.failure("status --db none.db"), expected);
    assert_eq!(place.failure("export --db none.db"), expected);
    assert!(place.files().is_empty());
}

#[test]
fn where_nothing_can_be_written() {
    let place = Place::new().with_file("file", "");
    for (db, reason) in [
        ("missing/five.db", "No such file or directory (os error 2)"),
        ("file/five.db", "Not a directory (os error 20)"),
    ] {
        let before = place.files();
        let expected = format!(
            "can't open the database {db}: {reason}; check that the directory exists and is writable"
        );
        assert_eq!(place.failure(&format!("run 5 --db {db}")), expected);
        assert!(place.files() == before);
    }
}

#[test]
fn no_file_at_all() {
    let place = Place::new();
    std::fs::create_dir(place.path("folder")).expect("a folder");
    assert!(place.program("mkfifo").arg("pipe").status().expect("mkfifo").success());
    let _socket = UnixListener::bind(place.path("socket")).expect("a socket");
    symlink("pipe", place.path("link")).expect("a link");
    let refused = [
        ("folder", "a directory"),
        ("pipe", "a FIFO"),
        ("link", "a FIFO"),
        ("socket", "a socket"),
        ("/dev/null", "a device"),
    ];
    for (db, kind) in refused {
        let expected = format!("{db} is {kind}, not a database file; choose another --db");
        for command in ["run 5", "status", "export", "backup copy.db", "watch --plain", "pause 123456789abc"]
        {
            assert_eq!(place.failure(&format!("{command} --db {db}")), expected, "{command}");
        }
        let outcome = place.run(&format!("coordinator --db {db} --listen {}:0", own_address()));
        let last = outcome.stderr.lines().last();
        assert_eq!((outcome.code, last), (1, Some(&*format!("nqueens: {expected}"))));
        let outcome = place.run(&format!("doctor --db {db}"));
        assert_eq!(outcome.code, 1);
        assert!(outcome.stdout.contains(&format!("FAILED: {expected}")), "{}", outcome.stdout);
    }
    // All that takes a database says so.
    for command in [
        "workers",
        "resume 123456789abc",
        "cancel 123456789abc --yes",
        "requeue 123456789abc --job 1 --yes",
        "distrust west",
        "verify --sample 3",
        "report",
        "export --format ledger",
        "export --format bfile",
    ] {
        let expected = "folder is a directory, not a database file; choose another --db";
        assert_eq!(place.failure(&format!("{command} --db folder")), expected, "{command}");
    }
    let left: Vec<_> = std::fs::read_dir(place.path("")).expect("a folder").collect();
    assert_eq!(left.len(), 4, "nothing has come: {left:?}");
}

#[test]
fn damaged() {
    let damages = [
        ("DELETE FROM job WHERE number = 2", "has 2 jobs instead of 3; restore it from a backup"),
        ("DELETE FROM job WHERE number = 0", "stands where 0 should; restore it from a backup"),
        (
            "DROP TRIGGER result_is_append_only_delete; DELETE FROM result WHERE job = 1",
            "has 3 jobs done but 2 accepted results; restore it from a backup",
        ),
        (
            "DROP TABLE result",
            "the database failed: error returned from database: (code: 1) no such table: result",
        ),
    ];
    for (damage, expected) in damages {
        let place = finished();
        place.sql("five.db", &format!("PRAGMA foreign_keys = OFF; {damage}"));
        let said = place.failure("run 5 --db five.db");
        assert!(said.ends_with(expected), "{damage}: {said}");
    }
    let place = finished();
    place.sql("five.db", "UPDATE job SET prefixes = x'' WHERE number = 0");
    let said = place.failure("export --db five.db");
    assert_eq!(
        said,
        "job 0 in the database is damaged; restore it from a backup: a job has at least one prefix, not none"
    );
}

#[test]
fn with_a_run_that_has_no_total() {
    // A job that somebody, or something, made a plausible mistake in.
    let place = finished();
    place.sql(
        "five.db",
        "UPDATE run SET state = 'failed', reason = 'the sum is odd', count2 = NULL, count4 = NULL, count8 = NULL,
             total = NULL, checked = NULL",
    );
    let run = place.json("status --db five.db --json")["runs"][0]["run"].as_str().expect("a name").to_owned();
    let expected = format!("run {run} has no total because a check failed: the sum is odd");
    assert_eq!(place.failure("run 5 --db five.db"), expected);
    let status = &place.json("status --db five.db --json")["runs"][0];
    assert_eq!((&status["state"], &status["reason"]), (&"failed".into(), &"the sum is odd".into()));
    assert!(status["total"].is_null());

    // A job in quarantine: all others are counted, and then it is said.
    let place = finished();
    place.sql(
        "five.db",
        "UPDATE run SET state = 'active', count2 = NULL, count4 = NULL, count8 = NULL, total = NULL, checked = NULL;
         UPDATE job SET state = 3 WHERE number = 1",
    );
    let run = place.json("status --db five.db --json")["runs"][0]["run"].as_str().expect("a name").to_owned();
    let expected = format!(
        "run {run} has no total: 1 of 3 jobs are in quarantine because attempts failed or results disagree; 'nqueens \
         export --by job' lists them"
    );
    assert_eq!(place.failure("run 5 --db five.db --json"), expected);
    assert_eq!(place.json("status --db five.db --json")["runs"][0]["quarantined"], 1);
}

#[test]
fn with_results_that_someone_has_tampered_with() {
    let place = finished();
    place.sql(
        "five.db",
        "DROP TRIGGER result_is_append_only_update;
         UPDATE result SET count8 = 1 - count8 WHERE job = 0;
         UPDATE run SET state = 'active', count2 = NULL, count4 = NULL, count8 = NULL, total = NULL, checked = NULL",
    );
    let run = place.json("status --db five.db --json")["runs"][0]["run"].as_str().expect("a name").to_owned();
    let outcome = place.run("run 5 --db five.db");
    assert_eq!((outcome.code, &*outcome.stdout), (1, ""));
    let expected = format!(
        "nqueens: run {run} has no total because a check failed: the total 2 differs from the published count 10"
    );
    assert_eq!(outcome.stderr.lines().last(), Some(&*expected), "{}", outcome.stderr);
    assert_eq!(place.json("status --db five.db --json")["runs"][0]["state"], "failed");
}

#[test]
fn whoever_only_looks_leaves_everything_as_it_was() {
    let place = Place::new();
    assert_eq!(place.run("run 7 --db seven.db").code, 0);
    let before = place.files();
    assert_eq!(before.keys().collect::<Vec<_>>(), ["seven.db"]);
    for command in ["status", "status --json", "workers", "export --by job", "doctor"] {
        let outcome = place.run(&format!("{command} --db seven.db"));
        assert_eq!(outcome.code, 0, "{command}: {}", outcome.stderr);
        assert!(place.files() == before, "{command}: {:?}", place.files().keys());
    }
}
