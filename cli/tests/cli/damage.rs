//! Databases that a disk has changed: a clear error, or an exact total; never a wrong one.

use std::fs;

use crate::Place;
use crate::processes::{Background, Coordinator};

/// Fourteen jobs.
const RUN: &str = "run 10 --plan border --job-states 300 --threads 1 --json";

/// Makes of a finished run one with half of its jobs open.
const HALF: &str = "
    DROP TRIGGER result_is_append_only_delete;
    DELETE FROM result WHERE job % 2 = 0;
    UPDATE job SET state = 0 WHERE number % 2 = 0;
    UPDATE run SET state = 'active', finished_at = NULL, outcome = NULL;
    CREATE TRIGGER result_is_append_only_delete BEFORE DELETE ON result BEGIN
        SELECT RAISE(ABORT, 'results are append-only');
    END;";

/// What the program makes of a database: well, or one line that says why not.
fn try_it(place: &Place, arguments: &str) -> Option<String> {
    let outcome = place.run(arguments);
    assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    let said = outcome.stderr.lines().last().unwrap_or_default();
    match outcome.code {
        0 => Some(outcome.stdout),
        1 if said.starts_with("nqueens: ") => None,
        code => panic!("{arguments}: {code}, {}", outcome.stderr),
    }
}

/// Where a run is done its total is not added up again; and yet it is not taken on trust.
#[test]
fn a_flipped_digit_of_a_stored_total_is_no_total() {
    let place = Place::new();
    place.stdout(&format!("{RUN} --db done.db"));
    let whole = fs::read(place.path("done.db")).expect("a file");
    let row = br#"{"count2":"0","count4":"3","count8":"89","total":"724","#;
    let begin = whole.windows(row.len()).position(|bytes| bytes == row).expect("a run that is done");
    for at in
        (0..row.len()).filter(|at| row[*at].is_ascii_digit() && row[at - 1] != b't').map(|at| begin + at)
    {
        for bit in 0..8 {
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << bit;
            fs::write(place.path("x.db"), &flipped).expect("a file");
            assert_eq!(try_it(&place, &format!("{RUN} --db x.db")), None, "bit {bit} of byte {at}");
        }
    }
}

/// What the schema says of a column is read by the driver as text, and this is none.
#[test]
fn a_schema_that_is_no_text_is_told() {
    let place = Place::new();
    place.stdout(&format!("{RUN} --db done.db"));
    let whole = fs::read(place.path("done.db")).expect("a file");
    let mut flipped = whole.clone();
    // Pages that are no longer in use have such text, too.
    let column = b"INTEGER NOT NULL";
    for (at, _) in whole.windows(column.len()).enumerate().filter(|(_, bytes)| bytes == column) {
        flipped[at] ^= 0x80;
    }
    fs::write(place.path("x.db"), &flipped).expect("a file");
    for command in [format!("{RUN} --db x.db"), "backup --db x.db copy.db".to_owned()] {
        assert_eq!(try_it(&place, &command), None, "{command}");
    }
    let said = place.failure("status --db x.db");
    assert!(said.contains("the database is damaged"), "{said}");
}

#[test]
fn what_does_not_hold_is_found_before_a_copy_is_made() {
    for (change, finding) in [
        (
            "DROP TRIGGER result_is_append_only_update; UPDATE result SET count8 = count8 + 1 WHERE id = 3",
            "it does not hold that a run is done only if all its jobs are, and they come to its total",
        ),
        (
            "UPDATE job SET state = 0 WHERE number = 5",
            "it does not hold that a job is done, or in dispute, if and only if it has one accepted result",
        ),
        ("UPDATE job SET bound1 = bound1 + 1 WHERE number = 5", "are not the plan that it began with"),
        ("UPDATE run SET jobs = jobs + 1", "it does not hold that a planned run has all its jobs"),
        (
            "PRAGMA ignore_check_constraints = ON; UPDATE worker SET threads = 0",
            "it does not hold that the file is sound: CHECK constraint failed in worker",
        ),
    ] {
        let place = Place::new();
        place.stdout(&format!("{RUN} --db queens.db"));
        place.sql("queens.db", change);
        let said = place.failure("backup --db queens.db copy.db");
        assert!(said.starts_with("the database is damaged: queens.db: ") && said.contains(finding), "{said}");
        assert!(!place.path("copy.db").exists(), "a backup that is not sound is none");
    }
}

#[test]
fn a_coordinator_does_not_go_on_with_a_damaged_file() {
    let place = Place::new();
    place.stdout(&format!("{RUN} --db queens.db"));
    place.sql("queens.db", "PRAGMA ignore_check_constraints = ON; UPDATE worker SET threads = 0");
    let mut coordinator =
        Background::start(&mut place.command("coordinator --db queens.db --listen 127.0.0.1:0"));
    let outcome = coordinator.end();
    let expected = "nqueens: the database is damaged: queens.db: CHECK constraint failed in worker; restore it from a \
                    backup";
    assert_eq!((outcome.code, outcome.stderr.lines().last()), (1, Some(expected)), "{}", outcome.stderr);
    place.sql("queens.db", "UPDATE worker SET threads = 1");
    assert_eq!(Coordinator::start(&place, &[], "").stop().code, 0);
}

/// Workers ask again when a call fails; why the coordinator can't answer must reach whoever started the run.
#[test]
fn damage_met_on_the_way_ends_a_run() {
    for (change, finding) in [
        (
            "UPDATE job SET class = CAST(x'FF' AS TEXT) WHERE state = 0",
            "the database is damaged: half.db: error occurred while decoding column 3: invalid utf-8",
        ),
        (
            "UPDATE job SET class = 'centre' WHERE state = 0",
            "the database is damaged: unknown class 'centre'",
        ),
        // A row that is found in one way and not in another.
        (
            "CREATE TRIGGER lost BEFORE UPDATE ON job WHEN NEW.number = 4 BEGIN SELECT RAISE(IGNORE); END",
            "the database is damaged: it does not hold that every job is there, and no epoch goes back",
        ),
    ] {
        let place = Place::new();
        place.stdout(&format!("{RUN} --db half.db"));
        place.sql("half.db", HALF);
        place.sql("half.db", &format!("PRAGMA ignore_check_constraints = ON; {change}"));
        let said = place.run(&format!("{RUN} --db half.db")).stderr;
        let said = said.lines().last().expect("a reason");
        assert!(said.starts_with(&format!("nqueens: {finding}")), "{said}");
    }
}

/// Results that stand in the wrong order lead whoever reads them back to where he was.
#[test]
fn a_table_in_the_wrong_order_is_not_read_for_ever() {
    let place = Place::new();
    place.stdout(&format!("{RUN} --db queens.db"));
    let root =
        place.ask("queens.db", "SELECT CAST(rootpage AS TEXT) FROM sqlite_schema WHERE name = 'result'");
    let root: usize = root[0].parse().expect("a number");
    let mut bytes = fs::read(place.path("queens.db")).expect("a file");
    let page = &mut bytes[(root - 1) * 4096..][..4096];
    assert_eq!(page[0], 13, "a leaf that has the whole table");
    // Two bytes a row behind the page's head of 8 tell where the row stands.
    let rows = usize::from(u16::from_be_bytes([page[3], page[4]]));
    page[8..8 + 2 * rows].rotate_right(4);
    fs::write(place.path("queens.db"), &bytes).expect("a file");
    for command in ["status", "export"] {
        let said = place.failure(&format!("{command} --db queens.db"));
        assert!(said.starts_with("the database is damaged: "), "{command}: {said}");
    }
}
