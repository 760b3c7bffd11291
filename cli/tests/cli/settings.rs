//! Settings: a flag wins over its variable, that over the default; a misspelt variable is an error.

use crate::Place;
use insta::assert_snapshot;

/// N and the threads that `bench` says it used.
fn used(variables: &[(&str, &str)], arguments: &str) -> (u64, u64) {
    let outcome = Place::new().run_with(variables, arguments);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let figures: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    (figures["n"].as_u64().unwrap(), figures["threads"].as_u64().unwrap())
}

#[test]
fn each_source_wins_over_the_next() {
    let variables = [("NQUEENS_THREADS", "3"), ("NQUEENS_JSON", "true")];
    assert_eq!(used(&variables[..0], "bench 7 --json"), (7, 1));
    assert_eq!(used(&variables[..1], "bench 8 --json"), (8, 3));
    assert_eq!(used(&variables, "bench 9"), (9, 3));
    assert_eq!(used(&variables, "bench 9 --threads 4"), (9, 4));
}

#[test]
fn a_misspelt_variable_is_an_error() {
    let with = |name| Place::new().run_with(&[(name, "2")], "table --published");
    let outcome = with("NQUEENS_THREDS");
    assert_eq!((outcome.code, &*outcome.stdout), (2, ""));
    assert_snapshot!(outcome.stderr, @"error: the variable NQUEENS_THREDS sets nothing; did you mean NQUEENS_THREADS? If not, unset it");
    assert_eq!(with("NQUEENS_THREADS").code, 0, "a setting of another command");
    assert_eq!(with("NQUEENS_WORKER_TOKEN").code, 0, "of a coordinator");
    assert_eq!(Place::new().run_with(&[("NQUEENS_THREDS", "2")], "run --help").code, 0);
}

/// Of two options that exclude each other, the environment may give one.
#[test]
fn a_variable_can_name_a_workers_cluster() {
    let cluster = |variable: (&str, &str), arguments: &str| {
        let said = Place::new().run_with(&[variable], &format!("worker {arguments}")).stderr;
        let places = ["its file", "flag://", "variable://"];
        places.into_iter().filter(|place| said.contains(place)).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(cluster(("NQUEENS_JOIN", "its file"), ""), "its file");
    assert_eq!(cluster(("NQUEENS_COORDINATOR", "variable://"), ""), "variable://");
    assert_eq!(cluster(("NQUEENS_THREADS", "1"), "--coordinator flag://"), "flag://");
    // A flag beats the other's variable.
    assert_eq!(cluster(("NQUEENS_JOIN", "its file"), "--coordinator flag://"), "flag://");
    assert_eq!(cluster(("NQUEENS_COORDINATOR", "variable://"), "--join flag://"), "flag://");
    // A worker's, and nobody else's: here is another flag --join, and an argument that says worker.
    let fleet = "fleet slurm --dry-run --workers-max 1 --join cluster.join -- -p worker";
    let place = Place::new().with_file("cluster.join", "");
    let said = place.run_with(&[("NQUEENS_COORDINATOR", "variable://")], fleet).stderr;
    assert!(said.contains("variable://"), "{said}");
}

#[test]
fn variables_that_do_not_go_together_with_options_are_named() {
    for (variable, value, arguments) in [
        ("NQUEENS_SEED", "5", "verify x"),
        ("NQUEENS_JSON", "1", "doctor"),
        ("NQUEENS_FORCE", "1", "report --db x"),
        ("NQUEENS_PLAN", "border", "run 4 --cells f"),
        ("NQUEENS_READY", "1", "doctor --coordinator http://127.0.0.1:1 --protocol"),
    ] {
        let place = Place::new().with_file("f", "Q...\n....\n....\n....\n");
        let outcome = place.run_with(&[(variable, value), ("NQUEENS_UNIQUE", "1")], arguments);
        let tip = format!("\n\n  tip: variables that count as options here: {variable}\n");
        assert!(outcome.code == 2 && outcome.stderr.contains(&tip), "{arguments}: {}", outcome.stderr);
    }
    let without = Place::new().run_with(&[("NQUEENS_UNIQUE", "1")], "verify").stderr;
    assert!(!without.contains("tip:"), "{without}");
}
