//! `nqueens run` where all goes well, and the arguments that it does not take.

use insta::assert_snapshot;
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::known::published;
use nqueens_kernel::plan::PlanKind;
use serde_json::{Value, json};

use crate::{Place, stdout};

#[test]
fn for_people() {
    // How long it took differs from time to time.
    let stdout = |arguments: &str| {
        let text = stdout(arguments);
        let (counts, how) = text.trim_end().rsplit_once('\n').expect("lines");
        let (took, rest) =
            how.strip_prefix("counted in ").and_then(|how| how.split_once(" s on ")).expect(how);
        assert!(took.parse::<f64>().is_ok(), "{how}");
        format!("{counts}\ncounted in TIME on {rest}")
    };
    assert_snapshot!(stdout("run 8 --threads 1 --kernel reference --plan border"), @r"
    N = 8
    COUNT2   0
    COUNT4   1
    COUNT8  11
    UNIQUE  12
    TOTAL   92
    equal to the published count
    counted in TIME on 1 thread, kernel reference, plan border, 4 jobs
    ");
    assert_snapshot!(stdout("run 12 --plan rows --kernel reference --threads 3"), @r"
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
    let run = result["run"].as_str().expect("a name").to_owned();
    assert!(run.len() == 12 && run.bytes().all(|byte| byte.is_ascii_hexdigit()), "{run}");
    for time in ["elapsed_s", "interrupted_s", "kernel"] {
        result.as_object_mut().expect("an object").remove(time).expect(time);
    }
    assert_eq!(result, place.json("status --db nqueens-10.db --json")["runs"][0], "and nothing else");
    assert_eq!(
        (&result["total"], &result["unique"], &result["confirmed"]),
        (&json!("724"), &json!("92"), &json!(true))
    );
    let files: Vec<_> = place.files().into_keys().collect();
    assert_eq!(files, ["nqueens-10.db"]);
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
            assert_eq!((&result["n"], &result["plan"]), (&json!(n.get()), &json!(kind.name())));
            assert_eq!(result["check"], "published");
        }
    }
}

#[test]
fn a_finished_run_is_printed_and_not_counted_again() {
    let place = Place::new();
    let arguments = "run 9 --json --job-states 50 --kernel reference";
    let first = place.json(arguments);
    let ledger = place.stdout("export --db nqueens-9.db");
    let status = place.stdout("status --db nqueens-9.db --json");
    // Neither another size of jobs nor another engine matters any more.
    for again in [arguments, "run 9 --json", "run 9 --json --plan border --kernel portable"] {
        assert_eq!(place.json(again), first, "time and engine are those of the counting");
    }
    let how = place.run_with(&[("TZ", "UTC")], "run 9").stdout;
    let how = how.lines().last().expect("a line");
    assert!(how.starts_with("counted already on 20") && how.contains(" +00:00, in "), "{how}");
    assert!(how.contains(" s, kernel reference, plan "), "{how}");
    assert_eq!(place.stdout("export --db nqueens-9.db"), ledger);
    assert_eq!(place.stdout("status --db nqueens-9.db --json"), status);
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
fn what_is_wrong_with_an_argument() {
    let complaint = |arguments: &str| {
        let place = Place::new();
        let outcome = place.run(arguments);
        assert_eq!((outcome.code, &*outcome.stdout), (2, ""), "{arguments}: {}", outcome.stderr);
        assert!(place.files().is_empty(), "{arguments} leaves no file behind");
        outcome.stderr.lines().next().expect("a line").to_owned()
    };
    for n in ["0", "32", "-1", "4294967304", "8.0", "eight"] {
        let expected =
            format!("error: invalid value '{n}' for '<N>': N must be a whole number from 1 to 31, not '{n}'");
        assert_eq!(complaint(&format!("run {n}")), expected);
    }
    assert_snapshot!(complaint("run"), @"error: the following required arguments were not provided:");
    assert_snapshot!(complaint("run 8 9"), @"error: unexpected argument '9' found");
    assert_snapshot!(complaint("run 8 --plan luck"), @"error: invalid value 'luck' for '--plan <PLAN>'");
    assert_snapshot!(complaint("run 8 --kernel abacus"), @"error: invalid value 'abacus' for '--kernel <KERNEL>'");
    assert_snapshot!(complaint("run 8 --threads 0"), @"error: invalid value '0' for '--threads <COUNT>': threads must be a whole number from 1 to 4096, not '0'");
    assert_snapshot!(complaint("run 8 --job-states 0"), @"error: invalid value '0' for '--job-states <STATES>': 0 is not in 1..=4611686018427387904");
    assert_snapshot!(complaint("export"), @"error: the following required arguments were not provided:");
    assert_snapshot!(complaint("export --db x --by luck"), @"error: invalid value 'luck' for '--by <BY>'");
    assert_snapshot!(complaint("export --db x --format xml"), @"error: invalid value 'xml' for '--format <FORMAT>'");
    assert_snapshot!(complaint("export twelve --db x"), @"error: invalid value 'twelve' for '[RUN]': a run id has 12 hexadecimal digits, as 'nqueens status' shows them, not 'twelve'");
}

#[test]
fn little_memory_takes_longer_and_counts_the_same() {
    let place = Place::new();
    for memory in ["1kB", "1MiB", "4GiB"] {
        let result = place.json(&format!("run 12 --plan colours --memory {memory} --db {memory}.db --json"));
        assert_eq!(result["total"], "14200", "{memory}");
    }
    let outcome = place.run("run 12 --plan colours --memory lots");
    assert_eq!(outcome.code, 2);
    assert!(
        outcome.stderr.starts_with("error: invalid value 'lots' for '--memory <SIZE>'"),
        "{}",
        outcome.stderr
    );
}
