//! `nqueens doctor`: this machine, its kernels, and a database.

use crate::{Place, stdout};

#[test]
fn the_doctor_looks_at_kernels_and_databases() {
    let report = stdout("doctor");
    for line in [
        "program           nqueens ",
        "processor         ",
        "fastest kernel    ",
        "kernel portable   proved; ",
    ] {
        assert!(report.lines().any(|found| found.starts_with(line)), "no '{line}' in\n{report}");
    }
    let place = Place::new().with_file("notes.db", "no database, but long enough to be looked into");
    assert_eq!(place.run("run 5 --db five.db").code, 0);
    let about = |db| {
        let outcome = place.run(&format!("doctor --db {db}"));
        let begins = outcome.stdout.lines().find_map(|line| line.strip_prefix("database          "));
        (outcome.code, begins.unwrap_or_default().to_owned())
    };
    assert_eq!(about("five.db"), (0, "five.db: well, 1 run(s)".to_owned()));
    for (db, failure) in
        [("none.db", "there is no database at"), ("notes.db", "notes.db is not an SQLite database")]
    {
        let (code, said) = about(db);
        assert_eq!(code, 1, "{db}");
        assert!(said.starts_with(&format!("FAILED: {failure}")), "{said}");
    }
}
