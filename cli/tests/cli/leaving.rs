//! How workers join, what they may use, and how they end.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Place;
use crate::http::{get, page_of, skip};
use crate::processes::{
    Background, Coordinator, OPERATOR_TOKEN, WORKER_TOKEN, cpu_us, end_well, ended, eventually,
};

/// A cluster with tokens, and a join file for its workers.
fn cluster(more: &str) -> (Place, Coordinator) {
    let place =
        Place::new().with_file("worker.token", WORKER_TOKEN).with_file("operator.token", OPERATOR_TOKEN);
    let tokens = "--worker-token-file worker.token --operator-token-file operator.token";
    let coordinator = Coordinator::start(&place, &[], &format!("{tokens} --sync-seconds 1 {more}"));
    let url = coordinator.url();
    place.stdout(&format!("join create --coordinator {url} --worker-token-file worker.token --output join"));
    (place, coordinator)
}

fn worker(place: &Place, arguments: &str) -> Background {
    Background::start(
        &mut place.command(&format!("worker --join join --threads 1 --kernel scalar {arguments}")),
    )
}

fn operator(place: &Place, coordinator: &Coordinator, arguments: &str) -> String {
    place.stdout(&format!(
        "{arguments} --coordinator {} --operator-token-file operator.token",
        coordinator.url()
    ))
}

fn workers(place: &Place, coordinator: &Coordinator, more: &str) -> Vec<Value> {
    let listed = operator(place, coordinator, &format!("workers --json {more}"));
    let mut listed: Value = serde_json::from_str(&listed).expect("JSON");
    listed["workers"].as_array_mut().map(std::mem::take).expect("a list")
}

#[test]
fn exit_codes_tell_why_a_worker_ended() {
    let (place, coordinator) = cluster("");
    let wrong = Place::new().with_file("token", "another-token-0123456789");
    let refused = format!("worker --coordinator {} --token-file token", coordinator.url());
    let cases = [
        (worker(&place, "--spool idle --idle-timeout 1s"), 0, "reason=\"no more work\""),
        (worker(&place, "--spool over --time-limit 11s"), 0, "reason=\"time is up\""),
        (Background::start(&mut wrong.command(&refused)), 5, "the coordinator refused"),
    ];
    for (mut worker, code, words) in cases {
        let outcome = ended(&mut worker);
        assert_eq!(outcome.code, code, "{}", outcome.stderr);
        assert!(outcome.stderr.contains(words), "{}", outcome.stderr);
    }
    eventually("they are gone", || workers(&place, &coordinator, "").is_empty().then_some(()));
    // On a busy machine the second one's time may be up before it has registered.
    assert!(!workers(&place, &coordinator, "--all").is_empty());
}

#[test]
fn a_signal_returns_all_leases_another_sigterm_changes_nothing_and_a_second_ctrl_c_ends_it() {
    let (place, coordinator) = cluster("");
    // Jobs of minutes.
    operator(&place, &coordinator, "submit 20 --plan border --job-states 100000000000");
    // The second Ctrl-C comes while the worker waits, however late that is.
    for (first, second, drain, code, returns) in [
        ("-TERM", Some("-TERM"), 1, 0, true),
        ("-INT", None, 1, 130, true),
        ("-INT", Some("-INT"), 600, 130, false),
    ] {
        let mut worker = worker(&place, &format!("--spool busy --drain-seconds {drain}"));
        eventually("it has jobs", || {
            workers(&place, &coordinator, "").iter().any(|worker| worker["leases"] != 0).then_some(())
        });
        // A worker that has begun none of them has nothing to wait for.
        let before = cpu_us(&worker);
        eventually("it counts", || (cpu_us(&worker) > before + 500_000.0).then_some(()));
        worker.signal(first);
        if let Some(second) = second {
            eventually("it was told", || worker.said().contains("stopping").then_some(()));
            worker.signal(second);
        }
        let outcome = ended(&mut worker);
        assert_eq!(outcome.code, code, "{}", outcome.stderr);
        // The smallest job may be done in that second.
        let has_left = outcome.stderr.contains("worker has stopped reason=\"a signal\" accepted=");
        let is_clean = has_left && outcome.stderr.contains(" unreported=0 unreturned=0");
        assert_eq!(is_clean, returns, "{}", outcome.stderr);
        if returns {
            let status: Value =
                serde_json::from_str(&operator(&place, &coordinator, "status --json")).expect("JSON");
            assert_eq!(status["runs"][0]["leased"], 0, "all are back");
        }
    }
}

#[test]
fn whoever_comes_too_often_under_one_token_waits() {
    let (place, coordinator) = cluster("--registrations-per-hour 1");
    let _first = worker(&place, "--spool one");
    eventually("it is there", || (workers(&place, &coordinator, "").len() == 1).then_some(()));
    let mut second = worker(&place, "--spool two");
    let told = "too many registrations under this token";
    eventually("it is told", || second.said().contains(told).then_some(()));
    assert!(second.is_running() && workers(&place, &coordinator, "").len() == 1);
}

#[test]
fn what_a_worker_can_not_work_with_it_says() {
    const SECRET: &str = "correct-horse battery";
    let place = Place::new().with_file("token", SECRET);
    let worker = "worker --kernel scalar --coordinator http://127.0.0.1:1";
    let busy = Background::start(&mut place.command(worker));
    eventually("it runs", || busy.said().contains("no coordinator: check that it runs").then_some(()));
    for (variables, arguments, why) in [
        (&[][..], "", "nqueens: another worker uses the spool nqueens-spool;"),
        (
            &[],
            "--spool token/spool",
            "nqueens: can't use the spool token/spool: Not a directory (os error 20); choose another --spool\n",
        ),
        (&[], "--token-file token", "the token file token: a token has 16 to 256 visible ASCII"),
        (&[("NQUEENS_TOKEN", SECRET)], "", "the variable NQUEENS_TOKEN: a token has 16 to 256"),
        (&[], "--token-file none", "the token file none: No such file"),
    ] {
        let outcome = place.run_with(variables, &format!("{worker} {arguments}"));
        assert_eq!(outcome.code, 1, "{arguments}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(why) && !outcome.stderr.contains("horse"), "{}", outcome.stderr);
    }
    end_well(busy);
}

#[test]
fn a_time_limit_comes_from_slurm() {
    let (place, _coordinator) = cluster("");
    let script = "#!/bin/sh\necho \"$@\" > asked\necho 2001-02-03T04:05:06\n";
    let place = place.with_file("squeue", script);
    place.set_mode("squeue", 0o755);
    // There is nothing beside squeue, as in an image without a system.
    let path = place.path("").display().to_string();
    let arguments = "worker --join join --time-limit auto --idle-timeout 1s --threads 1 --kernel scalar";
    let asked = place.run_with(&[("PATH", &path), ("SLURM_JOB_ID", "77")], arguments);
    assert_eq!(asked.code, 0, "{}", asked.stderr);
    assert!(fs::read_to_string(place.path("asked")).expect("it was asked").contains("--jobs 77"));
    let told = place.run_with(&[("SLURM_JOB_ID", "77"), ("SLURM_JOB_END_TIME", "981173106")], arguments);
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert!(told.stderr.contains("time limit of the Slurm job end=2001-02-03T04:05:06Z"), "{}", told.stderr);
    let silent = place.run_with(&[("PATH", "/none"), ("SLURM_JOB_ID", "77")], arguments);
    assert_eq!(silent.code, 0, "{}", silent.stderr);
    assert!(silent.stderr.contains("squeue does not start"), "{}", silent.stderr);
    let without = place.run_with(&[], arguments);
    assert_eq!(without.code, 0, "{}", without.stderr);
}

#[test]
fn a_join_file_is_secret_and_complete() {
    let (place, coordinator) = cluster("");
    let mode = place.path("join").metadata().expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let create =
        format!("join create --coordinator {} --worker-token-file tokens --output two", coordinator.url());
    let place = place.with_file("tokens", &format!("lab {WORKER_TOKEN}\nclub another-token-0123456789\n"));
    assert!(place.failure(&create).contains("tokens of lab, club: choose one with --credential"));
    assert!(
        place.failure(&format!("{create} --credential pub")).contains("no token of pub, but of lab, club")
    );
    place.stdout(&format!("{create} --credential lab"));
    assert!(place.failure(&format!("{create} --credential lab")).contains("exists already"));
    let join = |name: &str| fs::read_to_string(place.path(name)).expect("a file");
    assert_eq!(join("two"), join("join"), "the same address and token");
    let place = place
        .with_file("join", "{\"coordinator\": \"http://127.0.0.1:1\",\n\"token\": [\"secret-but-a-list\"]}");
    place.set_mode("join", 0o600);
    let failure = place.failure("worker --join join");
    assert!(failure.contains("'nqueens join create' makes one") && !failure.contains("secret"), "{failure}");
    assert_eq!(
        place.run("worker --join join --coordinator http://127.0.0.1:1").code,
        2,
        "it names one itself"
    );
}

#[test]
fn series_end_with_a_worker_and_go_on_with_the_next() {
    let (place, coordinator) = cluster("--public-page");
    let page = page_of(&coordinator);
    let metric = |name: &str| {
        let body = get(&page, "/metrics").body;
        let line = body.lines().find(|line| line.starts_with(name)).map(str::to_owned)?;
        line.rsplit_once(' ')?.1.parse::<f64>().ok()
    };
    let series = "nqueens_worker_results_total{credential=\"shared\",name=\"west\"}";
    operator(&place, &coordinator, "submit 8 --plan rows --job-states 10");
    let results = |spool: &str| {
        let mut west = worker(&place, &format!("--name west --spool {spool}"));
        let results = eventually("it has reported", || metric(series).filter(|results| *results >= 2.0));
        // Its death is no goodbye.
        west.kill();
        eventually("its series end", || metric(series).is_none().then_some(()));
        assert_eq!(
            (metric("nqueens_workers_seen"), metric("nqueens_worker_threads_seen")),
            (Some(0.0), Some(0.0))
        );
        results
    };
    let first = results("one");
    operator(&place, &coordinator, "submit 9 --plan rows --job-states 10");
    assert!(results("two") >= first, "it goes on where it was");
}

/// A control group, removed in the end.
struct MemoryGroup(PathBuf);

impl MemoryGroup {
    /// With a limit on all that is in it, and a group inside for the process; `None` where that is not allowed.
    fn create(bytes: u64) -> Option<Self> {
        let group = format!("nqueens-test-{}-{bytes}", std::process::id());
        let places = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        let (place, limit) =
            places.into_iter().find(|(place, _)| Path::new(place).join("memory.stat").exists())?;
        let group = Path::new(place).join(group);
        fs::create_dir_all(group.join("inside")).ok()?;
        let made = Self(group);
        fs::write(made.0.join(limit), bytes.to_string()).ok()?;
        Some(made)
    }

    /// Runs `nqueens` in it.
    fn run(&self, place: &Place, arguments: &str) -> crate::Outcome {
        let enter = format!("echo $$ > {}/inside/cgroup.procs && exec \"$@\"", self.0.display());
        let mut command = place.program("sh");
        command
            .args(["-c", &enter, "sh", crate::NQUEENS])
            .args(arguments.split(' '))
            .envs([crate::NO_DEVICES]);
        crate::Outcome::of(&mut command)
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        for group in [self.0.join("inside"), self.0.clone()] {
            drop(fs::remove_dir(group));
        }
    }
}

#[test]
fn a_worker_has_as_many_threads_as_its_memory_is_for() {
    let (place, _coordinator) = cluster("");
    let start = "worker --join join --idle-timeout 1s --threads 16";
    let group = |megabytes: u64| MemoryGroup::create(megabytes << 20);
    let (Some(small), Some(tiny)) = (group(200), group(70)) else {
        return skip("the right to make control groups");
    };
    let fewer = small.run(&place, start);
    assert_eq!(fewer.code, 0, "{}", fewer.stderr);
    assert!(fewer.stderr.contains("3 threads count in place of 16"), "{}", fewer.stderr);
    let refused = tiny.run(&place, start);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    assert!(refused.stderr.contains("control group /"), "{}", refused.stderr);
    assert_eq!(tiny.run(&place, &format!("{start} --memory 1MB")).code, 0);
}

#[test]
fn the_limit_of_a_group_above_counts() {
    let Some(group) = MemoryGroup::create(300 << 20) else {
        return skip("the right to make control groups");
    };
    let place = Place::new();
    let run = |arguments: &str| group.run(&place, arguments);
    let doctor = run("doctor");
    assert_eq!(doctor.code, 0, "{}", doctor.stderr);
    let line = doctor.stdout.lines().find(|line| line.contains("control group")).expect("it is found");
    assert!(line.contains("300.0 MiB"), "{line}");
    // More than half of it, were it not for the limit.
    let counted = run("run 14 --plan colours --threads 2 --json");
    assert_eq!(counted.code, 0, "{}", counted.stderr);
    assert!(counted.stdout.contains("\"total\":\"365596\""), "{}", counted.stdout);
}
