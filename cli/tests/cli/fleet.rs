//! Fleets: real workers, started as processes of this machine.

use serde_json::Value;

use crate::Place;
use crate::processes::{Background, Coordinator, eventually};

/// The processes of the workers of the fleet there.
fn workers(place: &Place) -> Vec<String> {
    let folder = place.path("fleet").display().to_string();
    let all = std::fs::read_dir("/proc").expect("Linux").filter_map(|entry| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        name.parse::<u32>().ok()?;
        let line = std::fs::read(format!("/proc/{name}/cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        // The workers themselves, not their shells.
        (line.contains(" worker --join ") && line.contains(&folder) && !line.starts_with("sh "))
            .then_some(name)
    });
    all.collect()
}

/// A coordinator, a join file and the folder of a fleet.
struct Site {
    place: Place,
    coordinator: Coordinator,
}

impl Site {
    fn new() -> Self {
        let place = Place::new();
        let coordinator = Coordinator::start(&place, &[], "--sync-seconds 1");
        place.stdout(&format!("join create --coordinator {} --output cluster.join", coordinator.url()));
        Self { place, coordinator }
    }

    fn lead(&self, more: &str) -> Background {
        let url = self.coordinator.url();
        let arguments = format!(
            "fleet local --dir fleet --join cluster.join --coordinator {url} --interval 1 --threads 1 {more}"
        );
        let process = Background::start(&mut self.place.command(&arguments));
        let state = self.place.path("fleet/state.json");
        eventually("it has begun", || state.exists().then_some(()));
        process
    }

    fn status(&self) -> Value {
        self.place.json("fleet status --dir fleet --json")
    }

    /// The allocations in a state.
    fn count(&self, state: &str) -> usize {
        let status = self.status();
        let all = status["allocations"].as_array().expect("a list");
        all.iter().filter(|allocation| allocation["state"] == state).count()
    }

    fn submit(&self, arguments: &str) -> String {
        let url = self.coordinator.url();
        self.place.stdout(&format!("submit {arguments} --coordinator {url}")).trim_end().to_owned()
    }

    fn run(&self, id: &str) -> Value {
        let status = self.place.json(&format!("status {id} --coordinator {} --json", self.coordinator.url()));
        status["runs"][0].clone()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // They outlive whoever started them, also a test that fails.
        for process in workers(&self.place) {
            drop(std::process::Command::new("kill").args(["-9", &process]).status());
        }
    }
}

#[test]
fn workers_come_for_a_run_count_it_and_leave() {
    let site = Site::new();
    let mut fleet = site.lead("--workers-max 2 --idle-timeout 1s");
    eventually("the fleet has looked", || site.status()["open"].as_u64());
    assert_eq!(site.status()["allocations"], serde_json::json!([]), "no work, no workers");
    // All workers here are one machine: nobody else could count a job a second time.
    let run = site.submit("12 --job-states 20000 --replicate 0");
    eventually("the run is done", || (site.run(&run)["state"] == "done").then_some(()));
    assert_eq!(site.run(&run)["total"], "14200");
    // Each worker that came has left by itself.
    let status = eventually("the workers have left", || {
        let status = site.status();
        let all = status["allocations"].as_array().expect("a list").clone();
        all.iter().all(|allocation| allocation["state"] == "completed").then_some(status)
    });
    for allocation in status["allocations"].as_array().expect("a list") {
        let log = allocation["log"].as_str().expect("a path");
        assert!(std::fs::read_to_string(log).expect("a log").contains("worker has stopped"), "{log}");
    }
    assert_eq!(status["paused"], Value::Null);
    fleet.signal("-TERM");
    let outcome = fleet.end();
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("allocations go on"), "{}", outcome.stderr);
}

#[test]
fn a_restarted_fleet_goes_on_with_its_workers_and_a_stop_ends_them() {
    let site = Site::new();
    let run = site.submit("18 --job-states 1000000");
    let mut fleet = site.lead("--workers-max 2 --drain-seconds 1");
    eventually("both workers count", || (site.count("running") == 2).then_some(()));
    let before = workers(&site.place);
    assert_eq!(before.len(), 2);
    fleet.kill();
    assert_eq!(site.status()["led"], false);
    let mut again = site.lead("--workers-max 2 --drain-seconds 1");
    eventually("the next process leads", || (site.status()["led"] == true).then_some(()));
    let second = site.place.failure(&format!(
        "fleet local --dir fleet --join cluster.join --workers-max 2 --coordinator {}",
        site.coordinator.url()
    ));
    assert!(second.contains("another process leads the fleet"), "{second}");
    assert_eq!(workers(&site.place), before, "the same workers");
    let stop = site.place.run("fleet stop --dir fleet");
    assert_eq!(stop.code, 0, "{}", stop.stderr);
    assert_eq!(again.end().code, 0, "the process that leads has stopped it");
    assert_eq!(workers(&site.place), Vec::<String>::new());
    assert_eq!(site.status()["stopped"], true);
    // What the workers held is free again, and nothing was lost.
    eventually("no lease is left", || (site.run(&run)["leased"] == 0).then_some(()));
    assert_eq!(site.run(&run)["quarantined"], 0);
    // A stop without a process that leads does it itself.
    let mut third = site.lead("--workers-max 1 --drain-seconds 1");
    eventually("a worker counts again", || (site.count("running") == 1).then_some(()));
    third.kill();
    let stop = site.place.run("fleet stop --dir fleet");
    assert_eq!(stop.code, 0, "{}", stop.stderr);
    assert_eq!(workers(&site.place), Vec::<String>::new());
}

#[test]
fn workers_that_fail_pause_a_fleet_and_it_says_why() {
    let site = Site::new();
    site.submit("16");
    let mut fleet = site.lead("--workers-max 5 --backlog 5 --program /bin/false");
    let reason = eventually("it pauses", || site.status()["paused"].as_str().map(str::to_owned));
    assert!(reason.starts_with("3 allocations in a row failed; the last: "), "{reason}");
    let text = site.place.stdout("fleet status --dir fleet");
    assert!(text.contains("'nqueens fleet resume' goes on") && text.contains("/logs/1.log"), "{text}");
    assert_eq!(site.place.stdout("fleet resume --dir fleet"), "the fleet submits again\n");
    eventually("it pauses again", || (site.count("failed") > 5).then_some(()));
    fleet.signal("-INT");
    assert_eq!(fleet.end().code, 130);
}

#[test]
fn a_dry_run_submits_nothing() {
    let site = Site::new();
    site.submit("12 --job-states 20000 --replicate 0");
    let url = site.coordinator.url();
    let shown = site.place.stdout(&format!(
        "fleet local --dry-run --workers-max 3 --threads 2 --join cluster.join --coordinator {url}"
    ));
    assert!(shown.contains("2 would be submitted first") && shown.contains("worker --join /"), "{shown}");
    let shown = site.place.stdout(&format!(
        "fleet pbs --dry-run --workers-max 3 --threads 2 --time-limit 2h --join cluster.join --coordinator {url} -- -q short"
    ));
    assert!(shown.contains("-l walltime=7200 -q short -- /bin/sh /"), "{shown}");
    assert!(shown.contains("--time-limit 7200s"), "{shown}");
    assert!(!site.place.path("nqueens-fleet").exists());
}

#[test]
fn what_is_wrong_is_said() {
    let place = Place::new().with_file("cluster.join", "{\"coordinator\": \"http://127.0.0.1:9\"}");
    let missing = place.failure("fleet status");
    assert!(missing.starts_with("there is no fleet in nqueens-fleet"), "{missing}");
    let no_join = place.failure("fleet local --workers-max 1 --join nothing");
    assert!(no_join.starts_with("the join file nothing"), "{no_join}");
    let own = place.run("fleet slurm --workers-max 1 --join cluster.join -- --array=0-3");
    assert_eq!(own.code, 2);
    assert!(own.stderr.contains("--array=0-3 is set by the fleet itself"), "{}", own.stderr);
    assert_eq!(place.run("fleet slurm --workers-max 0 --join cluster.join").code, 2);
}
