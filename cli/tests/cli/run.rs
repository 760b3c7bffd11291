//! `nqueens run` where all goes well.

use insta::assert_snapshot;
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::known::published;
use nqueens_kernel::plan::PlanKind;
use serde_json::{Value, json};

use crate::{Place, stdout};

#[test]
fn for_people() {
    // How long it took differs from time to time.
    let text = stdout("run 12 --plan rows --kernel reference --threads 3");
    let (counts, how) = text.trim_end().rsplit_once("counted in ").expect("a last line");
    let (took, rest) = how.split_once(" s on ").expect("a time");
    assert!(took.parse::<f64>().is_ok(), "{how}");
    assert_snapshot!(format!("{counts}counted in TIME on {rest}"), @r"
    N = 12
    COUNT2       4
    COUNT4      18
    COUNT8   1,765
    UNIQUE   1,787
    TOTAL   14,200
    equal to the published count
    counted in TIME on 3 threads, kernel reference, plan rows, 14 jobs
    ");
}

#[test]
fn for_programs() {
    let place = Place::new();
    let printed = place.stdout("run 10 --json --plan rows --threads 2 --kernel reference");
    assert_eq!(printed.lines().count(), 1, "one line: {printed}");
    let mut result: Value = serde_json::from_str(&printed).expect("JSON");
    assert!(result["elapsed_s"].as_f64().expect("seconds") > 0.0);
    for time in ["elapsed_s", "interrupted_s", "kernel"] {
        result.as_object_mut().expect("an object").remove(time).expect(time);
    }
    assert_eq!(result, place.json("status --db nqueens-10.db --json")["runs"][0], "and nothing else");
    assert_eq!(place.files().into_keys().collect::<Vec<_>>(), ["nqueens-10.db"]);
}

#[test]
fn totals_by_every_plan() {
    let place = Place::new();
    for n in BoardSize::MIN.up_to(BoardSize::new(11).expect("a board")) {
        for kind in PlanKind::ALL {
            let outcome = place.run(&format!("run {n} --plan {kind} --db {n}-{kind}.db --json"));
            let too_small = kind == PlanKind::Colours && n.get() < 4;
            assert_eq!((outcome.code, outcome.stderr.contains("is too small for")), (0, too_small));
            let result: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON");
            let known = published(n).expect("small boards are published");
            let counts = [known.orbits.count2, known.orbits.count4, known.orbits.count8];
            let expected = [known.total, known.unique, counts[0], counts[1], counts[2]];
            let names = ["total", "unique", "count2", "count4", "count8"];
            assert_eq!(names.map(|name| &result[name]), expected.map(|count| count.to_string()).each_ref());
            assert_eq!((&result["plan"], &result["check"]), (&json!(kind.name()), &json!("published")));
        }
    }
}

#[test]
fn a_finished_run_is_printed_and_not_counted_again() {
    let place = Place::new();
    let arguments = "run 9 --json --job-states 50 --kernel reference";
    let first = place.json(arguments);
    let kept = || ["export --db nqueens-9.db", "status --db nqueens-9.db --json"].map(|it| place.stdout(it));
    let before = kept();
    // Neither another size of jobs nor another engine matters any more.
    for again in [arguments, "run 9 --json", "run 9 --json --plan border --kernel portable"] {
        assert_eq!(place.json(again), first, "time and engine are those of the counting");
    }
    let how = place.run_with(&[("TZ", "UTC")], "run 9").stdout;
    let how = how.lines().last().expect("a line");
    assert!(how.starts_with("counted already on 20") && how.contains(" +00:00, in "), "{how}");
    assert!(how.contains(" s, kernel reference, plan "), "{how}");
    assert_eq!(kept(), before);
}

#[test]
fn a_database_wherever_one_likes_it() {
    let place = Place::new();
    place.stdout("run 6 --db six");
    let six = place.run_with(&[("NQUEENS_DB", "six")], "run 6");
    assert_eq!((six.code, &*six.stderr), (0, ""));
    // An empty file is as good as none.
    place.with_file("empty.db", "").stdout("run 7 --db empty.db");
}

#[test]
fn little_memory_takes_longer_and_counts_the_same() {
    let place = Place::new();
    for memory in ["1MB", "64MiB", "4GiB"] {
        let result = place.json(&format!("run 12 --plan colours --memory {memory} --db {memory}.db --json"));
        assert_eq!(result["total"], "14200", "{memory}");
    }
}
