//! `nqueens doctor`: this machine, its kernels, a coordinator, and a database.

use std::net::TcpListener;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::plan::{Fingerprinter, Plan, PlanKind};
use nqueens_proto::{PLANS, PROTOCOL_VERSION};
use serde_json::Value;

use crate::http::skip;
use crate::processes::{Coordinator, OPERATOR_TOKEN, WORKER_TOKEN, end_well};
use crate::{NO_DEVICES, Place, stdout};

#[test]
fn the_doctor_looks_at_kernels_and_databases() {
    let report = stdout("doctor");
    for line in [
        "program           nqueens ",
        "processor         ",
        "fastest kernel    ",
        "kernel portable   passed its test; ",
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
    assert_eq!(about("five.db"), (0, "five.db: the file and its ledger are consistent; 1 run".to_owned()));
    for (db, failure) in
        [("none.db", "there is no database at"), ("notes.db", "notes.db is not an SQLite database")]
    {
        let (code, said) = about(db);
        assert_eq!(code, 1, "{db}");
        assert!(said.starts_with(&format!("FAILED: {failure}")), "{said}");
    }
}

/// No driver is no failure: a machine without devices is well.
#[test]
fn the_doctor_says_what_opencl_lacks() {
    let place = Place::new();
    std::fs::create_dir(place.path("vendors")).expect("a new folder");
    let vendors = format!("{}/", place.path("vendors").display());
    let outcome = place.run_with(&[("OCL_ICD_VENDORS", &vendors)], "doctor");
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let said = outcome.stdout.lines().find_map(|line| line.strip_prefix("OpenCL            "));
    let said = said.expect("a line of its own");
    if said.starts_with("no OpenCL library (libOpenCL.so.1) can be loaded: ") {
        return skip("an OpenCL library");
    }
    assert!(said.starts_with("OpenCL is here, but no driver: "), "{said}");
    let alone = place.run_with(&[("OCL_ICD_VENDORS", &vendors)], "run 8 --kernel opencl");
    assert_eq!((alone.code, alone.stderr), (1, format!("nqueens: {said}\n")));
}

#[test]
fn the_doctor_finds_bounds_that_are_not_the_plan_s() {
    let place = Place::new();
    let kinds = [("rows", "count2"), ("border", "count4"), ("border", "count8"), ("colours", "solutions")];
    for (plan, count) in kinds {
        let db = format!("{plan}-{count}.db");
        place.stdout(&format!("run 12 --plan {plan} --job-states 2000 --db {db}"));
        let run = place.ask(&db, "SELECT printf('%012x', id) FROM run").remove(0);
        // What a job can count, and what it is expected to cost. Neither shows in the plan's fingerprint.
        let changes = [
            (format!("{count}_max"), "= 7", format!("{run}/7")),
            ("states".to_owned(), "IN (3, 4, 5, 6, 8)", format!("{run}/3, {run}/4, {run}/5 and 2 more")),
        ];
        for (column, jobs, named) in changes {
            place.sql(&db, &format!("UPDATE job SET {column} = {column} + 1 WHERE number {jobs}"));
            let rule = "a job's estimate and the most that it can count are the plan's";
            let expected = format!(
                "the database is damaged: {db}: it does not hold that {rule}: {named}; restore it from a backup"
            );
            assert_eq!(place.failure(&format!("backup --db {db} copy.db")), expected, "{plan} {column}");
            place.sql(&db, &format!("UPDATE job SET {column} = {column} - 1 WHERE number {jobs}"));
        }
        place.stdout(&format!("backup --db {db} {db}.copy"));
    }
    // The doctor has the same rules.
    place.sql("rows-count2.db", "UPDATE job SET count2_max = count2_max + 1");
    let outcome = place.run("doctor --db rows-count2.db");
    assert!(
        outcome.code == 1 && outcome.stdout.contains("FAILED: the database is damaged"),
        "{}",
        outcome.stdout
    );
}

#[test]
fn bounds_of_a_plan_of_another_version_are_left_alone() {
    let place = Place::new();
    place.stdout("run 10 --plan border --job-states 300 --db ten.db");
    // Another version may have made these jobs of another plan.
    let plan =
        |states| Plan::with_states_per_job(BoardSize::new(10).expect("a board"), PlanKind::Border, states);
    let mut fingerprint = Fingerprinter::new(&plan(9_000));
    plan(300).jobs().for_each(|job| fingerprint.add(&job));
    let fingerprint = fingerprint.finish();
    place.sql("ten.db", &format!("UPDATE run SET states_per_job = 9000, fingerprint = x'{fingerprint}'"));
    let outcome = place.run("doctor --db ten.db");
    assert_eq!(outcome.code, 0, "{}", outcome.stdout);
    assert!(outcome.stderr.contains("the bounds of its jobs are not checked"), "{}", outcome.stderr);
}

#[test]
fn the_doctor_tells_what_a_worker_must_present() {
    let plans = PLANS.to_string();
    assert_eq!(
        stdout("doctor --protocol"),
        format!("protocol          {PROTOCOL_VERSION}\nplans             {plans}\n")
    );
    let told: Value = serde_json::from_str(&stdout("doctor --protocol --json")).expect("JSON");
    assert_eq!((&told["protocol"], &told["plans"]), (&PROTOCOL_VERSION.into(), &plans.into()));
    // Whatever else is set, for other commands.
    let place = Place::new();
    let set = [("NQUEENS_COORDINATOR", "http://127.0.0.1:1")];
    assert_eq!(place.run_with(&set, "doctor --protocol").code, 0);
}

#[test]
fn the_doctor_asks_a_coordinator() {
    let place =
        Place::new().with_file("operator.token", OPERATOR_TOKEN).with_file("worker.token", WORKER_TOKEN);
    let tokens = "--worker-token-file worker.token --operator-token-file operator.token";
    let coordinator = Coordinator::start(&place, &[], tokens);
    let url = coordinator.url();
    let at = format!("--coordinator {url} --operator-token-file operator.token");
    let run = place.stdout(&format!("submit 8 {at}")).trim_end().to_owned();
    let worker = coordinator.worker(&place, "west", &[("NQUEENS_TOKEN", WORKER_TOKEN)]);
    place.stdout(&format!("watch {run} --interval 0.2 {at}"));

    let about = |variables: &[(&str, &str)], arguments: &str| {
        let variables = [variables, &[NO_DEVICES]].concat();
        let outcome = place.run_with(&variables, &format!("doctor {arguments}"));
        let report = outcome.stdout.lines().skip_while(|line| !line.starts_with("coordinator "));
        // How much room there is changes from look to look.
        let report =
            report.map(|line| line[18..].to_owned()).filter(|line| !line.starts_with("its disk has "));
        let report: Vec<_> = report.collect();
        assert!(!report.is_empty(), "{}{}", outcome.stdout, outcome.stderr);
        (outcome.code, report)
    };
    let (code, report) = about(&[], &at);
    assert_eq!(code, 0, "{report:?}");
    assert!(report[0].starts_with(&format!("{url}: answers, nqueens 0.")), "{report:?}");
    assert!(report[0].ends_with(&format!(", protocol {PROTOCOL_VERSION}")), "{report:?}");
    let rest = [
        "it accepts the operator token".to_owned(),
        "1 run, 1 worker seen since it started".to_owned(),
        format!("run {run}: N = 8, done, 100.0 % done"),
    ];
    assert_eq!(report[1..], rest);
    let by_variables = [("NQUEENS_COORDINATOR", &*url), ("NQUEENS_OPERATOR_TOKEN", OPERATOR_TOKEN)];
    assert_eq!(about(&by_variables, ""), (0, report));

    let (code, said) = about(&[], &format!("--coordinator {url}"));
    let why = "FAILED: the coordinator refused: the operator's token is missing or wrong; give a token by ";
    assert!(code == 1 && said[0].starts_with(why), "{said:?}");
    let (code, said) = about(&[], &format!("--coordinator {url} --operator-token-file none.token"));
    assert_eq!((code, said.len()), (1, 1));
    assert!(said[0].starts_with("FAILED: the token file none.token: No such file"), "{said:?}");

    end_well(worker);
    assert_eq!(coordinator.stop().code, 0);
    let (code, said) = about(&[], &at);
    assert_eq!((code, said.len()), (1, 1));
    assert!(said[0].starts_with(&format!("FAILED: can't reach a coordinator at {url} (Connection refused")));
    // Something that takes calls and says nothing an operator understands.
    let stranger = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", stranger.local_addr().expect("bound"));
    let listening = std::thread::spawn(move || drop(stranger.accept()));
    let (code, said) = about(&[], &format!("--coordinator {url}"));
    assert_eq!((code, said.len()), (1, 1));
    assert!(said[0].starts_with("FAILED: ") && said[0].contains(&url), "{said:?}");
    listening.join().expect("it was called");
}
