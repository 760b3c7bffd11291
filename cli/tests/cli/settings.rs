//! Settings: a flag wins over a variable, that over the settings file, that over the default.

use crate::Place;
use insta::assert_snapshot;

const FILE: &str = "threads = 2\n\n[bench]\nn = 7\njson = true\n\n[table]\nto = 5\n";

fn place() -> Place {
    Place::new().with_file("nqueens.toml", FILE)
}

/// N and the threads that `bench --json` says it used.
fn used(variables: &[(&str, &str)], arguments: &str) -> (u64, u64) {
    let outcome = place().run_with(variables, arguments);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let figures: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("the file asks for JSON");
    (figures["n"].as_u64().unwrap(), figures["threads"].as_u64().unwrap())
}

#[test]
fn each_source_wins_over_the_next() {
    assert_eq!(used(&[], "bench"), (7, 2));
    assert_eq!(used(&[("NQUEENS_N", "8")], "bench"), (8, 2));
    assert_eq!(used(&[("NQUEENS_N", "8"), ("NQUEENS_THREADS", "3")], "bench --n 9"), (9, 3));
    assert_eq!(used(&[("NQUEENS_N", "8"), ("NQUEENS_THREADS", "3")], "bench --n 9 --threads 4"), (9, 4));
}

#[test]
fn a_table_of_the_file_is_for_its_command_alone() {
    assert_eq!(place().run("table").stdout.lines().count(), 2 * (2 + 5) + 1);
    assert_eq!(place().run("table --to 3").stdout.lines().count(), 2 * (2 + 3) + 1);
    assert_eq!(place().run("solutions 4 --format rows").stdout, "1 3 0 2\n2 0 3 1\n");
}

#[test]
fn the_file_can_be_chosen() {
    let place = place().with_file("other.toml", "[bench]\nn = 6\njson = true\n");
    for outcome in [
        place.run("bench --config other.toml"),
        place.run("--config other.toml bench"),
        place.run_with(&[("NQUEENS_CONFIG", "other.toml")], "bench"),
    ] {
        assert!(outcome.stdout.starts_with(r#"{"n":6,"#), "{}{}", outcome.stdout, outcome.stderr);
    }
}

#[test]
fn config_shows_which_source_won() {
    let outcome = place().run_with(&[("NQUEENS_THREADS", "3")], "config bench --log info");
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert_snapshot!(outcome.stdout, @r"
    settings file: nqueens.toml
    COMMAND  SETTING     VALUE   SOURCE    VARIABLE
    (all)    log         info    flag      NQUEENS_LOG
    (all)    log-format  text    default   NQUEENS_LOG_FORMAT
    (all)    config      (none)  default   NQUEENS_CONFIG
    bench    n           7       file      NQUEENS_N
    bench    plan        auto    default   NQUEENS_PLAN
    bench    kernel      auto    default   NQUEENS_KERNEL
    bench    threads     3       variable  NQUEENS_THREADS
    bench    device      (none)  default   NQUEENS_DEVICE
    bench    memory      (none)  default   NQUEENS_MEMORY
    bench    json        true    file      NQUEENS_JSON
    ");
}

/// A worker needs one of two options; the file can give it, and a flag or variable with the other one wins.
#[test]
fn the_file_can_name_a_workers_cluster() {
    let cluster = |table: &str, variables: &[(&str, &str)], arguments: &str| {
        let place = Place::new().with_file("nqueens.toml", table);
        let said = place.run_with(variables, &format!("worker {arguments}")).stderr;
        let places = ["its file", "file://", "flag://", "variable://"];
        places.into_iter().filter(|place| said.contains(place)).collect::<Vec<_>>().join(" ")
    };
    let (join, address) = ("[worker]\njoin = 'its file'\n", "coordinator = 'file://'\n");
    assert_eq!(cluster(address, &[], ""), "file://");
    assert_eq!(cluster(join, &[], ""), "its file");
    assert_eq!(cluster(join, &[], "--coordinator flag://"), "flag://");
    assert_eq!(cluster(join, &[("NQUEENS_COORDINATOR", "variable://")], ""), "variable://");
    assert_eq!(cluster(address, &[("NQUEENS_JOIN", "its file")], ""), "its file");
    assert_eq!(cluster(&format!("{address}{join}"), &[], ""), "its file");
}

#[test]
fn config_speaks_json() {
    let outcome = place().run_with(&[("NQUEENS_N", "8")], "config --json bench");
    let report: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(report["file"], "nqueens.toml");
    let settings = report["settings"].as_array().unwrap();
    let find = |name| settings.iter().find(|setting| setting["setting"] == name).unwrap();
    assert_eq!((&find("n")["value"], &find("n")["source"]), (&"8".into(), &"variable".into()));
    assert_eq!((&find("threads")["value"], &find("threads")["source"]), (&"2".into(), &"file".into()));
    assert_eq!(
        (&find("log")["command"], &find("log")["source"]),
        (&serde_json::Value::Null, &"default".into())
    );
    assert_eq!(find("kernel")["variable"], "NQUEENS_KERNEL");
}

#[test]
fn config_without_a_command_shows_all() {
    let outcome = Place::new().run("config");
    assert!(outcome.stdout.starts_with("settings file: none\n"));
    for command in ["run", "bench", "table", "solutions", "doctor"] {
        assert!(outcome.stdout.lines().any(|line| line.starts_with(&format!("{command} "))), "{command}");
    }
}
