//! Strangers and false friends by the hundreds, and honest workers that go on counting all the while.

mod attackers;
mod raw;

use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::Place;
use crate::processes::{Background, Coordinator, OPERATOR_TOKEN, WORKER_TOKEN, eventually};
use attackers::Siege;

const TOKENS: [(&str, &str); 3] = [
    ("NQUEENS_WORKER_TOKEN", WORKER_TOKEN),
    ("NQUEENS_TOKEN", WORKER_TOKEN),
    ("NQUEENS_OPERATOR_TOKEN", OPERATOR_TOKEN),
];

/// A coordinator, its honest workers, and an operator.
struct Cluster {
    place: Place,
    coordinator: Coordinator,
    workers: Vec<Background>,
    run: String,
}

impl Cluster {
    fn start(limits: &str, submit: &str) -> Self {
        let place = Place::new();
        let coordinator = Coordinator::start(&place, &TOKENS, &format!("--sync-seconds 1 {limits}"));
        let workers = ["west", "east"].map(|name| coordinator.worker(&place, name, &TOKENS)).into();
        let mut cluster = Self { place, coordinator, workers, run: String::new() };
        cluster.run = cluster.operator(&format!("submit {submit}"));
        cluster
    }

    fn operator(&self, arguments: &str) -> String {
        let arguments = format!("{arguments} --coordinator {}", self.coordinator.url());
        let outcome = self.place.run_with(&TOKENS, &arguments);
        assert_eq!(outcome.code, 0, "{arguments}: {}", outcome.stderr);
        outcome.stdout.trim_end().to_owned()
    }

    fn state(&self) -> Value {
        let status: Value =
            serde_json::from_str(&self.operator(&format!("status {} --json", self.run))).expect("JSON");
        status["runs"][0].clone()
    }

    fn open_files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.coordinator.process.id())).expect("it runs").count()
    }

    /// The most memory that the coordinator has had so far, in MiB.
    fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.coordinator.process.id()))
            .expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a size");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") >> 10
    }

    /// The run ends exact, nobody honest has noticed anything, and the ledger is sound.
    fn finish(mut self, total: &str) {
        eventually("the run is done", || (self.state()["state"] == "done").then_some(()));
        assert_eq!(self.state()["total"], total);
        for worker in &mut self.workers {
            worker.signal("-TERM");
            let said = worker.end().stderr;
            assert!(!said.contains("no coordinator"), "{said}");
        }
        eventually("all others are gone", || (self.open_files() < 60).then_some(()));
        let outcome = self.coordinator.stop();
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
        self.place.stdout("doctor --db queens.db");
    }
}

/// Lets this process and those that it starts open as many files as they ever may.
fn open_many_files() -> u64 {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).expect("up to the maximum");
    maximum.unwrap_or(u64::MAX)
}

fn happened(what: &AtomicU64, times: u64) -> bool {
    what.load(Ordering::Relaxed) >= times
}

/// Whether each of them has tried, and got what it deserves.
fn all_are_answered(siege: &Siege) -> bool {
    happened(&siege.idle_ended, 100)
        && happened(&siege.refused, 100)
        && happened(&siege.malformed, 30)
        && happened(&siege.oversized, 3)
        && happened(&siege.slow_writers_ended, 2)
        && happened(&siege.slow_readers_ended, 2)
        && happened(&siege.registered, 50)
        && happened(&siege.registrations_refused, 10)
        && happened(&siege.calls_refused, 10)
}

#[test]
fn honest_work_goes_on_under_attack() {
    open_many_files();
    let limits = "--strangers-max 100 --first-call-seconds 2 --answer-seconds 1 --calls-per-second 200 \
                  --peer-registrations-per-hour 100";
    let cluster = Cluster::start(limits, "16 --plan border --job-states 1000000");
    eventually("the work has begun", || (cluster.state()["done"].as_u64() > Some(0)).then_some(()));
    let runtime = Runtime::new().expect("a runtime");
    let siege = Siege::of(&cluster.coordinator.address);
    let tasks = runtime.block_on(async { siege.begin(500) });
    eventually("all attacks have been answered", || {
        assert!(!tasks.iter().any(JoinHandle::is_finished), "an attacker was surprised: {siege:?}");
        all_are_answered(&siege).then_some(())
    });
    println!("{siege:?}");
    siege.stop();
    runtime.block_on(async {
        for task in tasks {
            task.await.expect("no attacker was surprised");
        }
    });
    assert!(cluster.peak_memory() < 500, "{} MiB", cluster.peak_memory());
    cluster.finish("14772512");
}
