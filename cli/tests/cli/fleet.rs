//! Fleets: real workers, by way of a batch system of three small scripts.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::processes::{Background, Coordinator, end_well, eventually};
use crate::{Outcome, Place};

/// The processes of the workers of the fleet there.
fn workers(place: &Place) -> Vec<String> {
    let folder = place.path("cluster.join").display().to_string();
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

/// A batch system that starts jobs at once, as processes of this machine, and forgets them when they end.
const SUBMIT: &str = "#!/bin/sh
setsid sh -c 'exec sh \"$SCRIPT\" $$' < /dev/null > /dev/null 2>&1 &
echo $! >> jobs
echo submitted >&2
echo $! $NAME
";
const LIST: &str = "#!/bin/sh
for job in $(cat jobs 2> /dev/null); do
    case $(ps -o stat= -p $job) in '' | Z*) ;; *) echo $job r here ;; esac
done
";
const CANCEL: &str = "#!/bin/sh
for job in $IDS; do kill -s TERM -- -$job; done 2> /dev/null
true
";

const COMMANDS: &str = "--submit ./submit --list ./list --cancel ./cancel";

/// A coordinator, a join file, a batch system, and the folder of a fleet.
struct Site {
    place: Place,
    coordinator: Coordinator,
}

impl Site {
    fn new() -> Self {
        let mut place = Place::new();
        for (name, script) in [("submit", SUBMIT), ("list", LIST), ("cancel", CANCEL)] {
            place = place.with_file(name, script);
            place.set_mode(name, 0o700);
        }
        let coordinator = Coordinator::start(&place, &[], "--sync-seconds 1");
        place.stdout(&format!("join create --coordinator {} --output cluster.join", coordinator.url()));
        Self { place, coordinator }
    }

    fn lead(&self, more: &str) -> Background {
        let url = self.coordinator.url();
        let arguments = format!(
            "fleet command {COMMANDS} --dir fleet --join cluster.join --coordinator {url} --interval 1 --threads 1 {more}"
        );
        let process = Background::start(&mut self.place.command(&arguments));
        let state = self.place.path("fleet/state.json");
        eventually("it has begun", || state.exists().then_some(()));
        process
    }

    fn status(&self) -> Value {
        self.place.json("fleet status --dir fleet --json")
    }

    /// The states of all allocations.
    fn states(&self) -> Vec<Value> {
        let status = self.status();
        let all = status["state"]["allocations"].as_object().expect("a table");
        all.values().map(|allocation| allocation["state"].clone()).collect()
    }

    fn count(&self, state: &Value) -> usize {
        self.states().iter().filter(|is| *is == state).count()
    }

    fn submit(&self, arguments: &str) -> String {
        self.coordinator.submit(&self.place, arguments)
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
    eventually("the fleet has looked", || site.status()["state"]["demand"]["open"].as_u64());
    assert_eq!(site.states(), Vec::<Value>::new(), "no work, no workers");
    // All workers here are one machine: nobody else could count a job a second time.
    let run = site.submit("12 --job-states 20000 --replicate 0");
    eventually("the run is done", || (site.run(&run)["state"] == "done").then_some(()));
    assert_eq!(site.run(&run)["total"], "14200");
    // Each worker that came has left by itself.
    let completed = json!("completed");
    eventually("the workers have left", || site.states().iter().all(|is| *is == completed).then_some(()));
    let state = site.status()["state"].clone();
    for id in state["allocations"].as_object().expect("a table").keys() {
        let log = std::fs::read_to_string(site.place.path(&format!("fleet/logs/{id}.log"))).expect("a log");
        assert!(log.contains("worker has stopped"), "{log}");
    }
    // While there is no list, the log and the status say so.
    std::fs::write(site.place.path("list"), "#!/bin/sh\necho down for today >&2; exit 3\n").expect("a file");
    site.submit("12 --job-states 20000 --replicate 0");
    eventually("there is no list", || {
        let status = site.place.stdout("fleet status --dir fleet");
        (status.contains("no list of allocations: ") && status.contains("down for today")).then_some(())
    });
    fleet.signal("-TERM");
    let outcome = fleet.end();
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("allocations go on"), "{}", outcome.stderr);
    let warning = outcome.stderr.lines().find(|line| line.contains("no list of allocations"));
    assert!(warning.is_some_and(|line| line.contains(" WARN ")), "{}", outcome.stderr);
}

#[test]
fn a_restarted_fleet_goes_on_with_its_workers_and_a_stop_ends_them() {
    let site = Site::new();
    let run = site.submit("18 --job-states 1000000");
    let mut fleet = site.lead("--workers-max 2 --drain-seconds 1");
    let running = json!("running");
    eventually("both workers count", || (site.count(&running) == 2).then_some(()));
    let before = workers(&site.place);
    assert_eq!(before.len(), 2);
    fleet.kill();
    assert_eq!(site.status()["led"], false);
    // Without its state it finds them by their name.
    std::fs::remove_file(site.place.path("fleet/state.json")).expect("a file");
    let mut again = site.lead("--workers-max 2 --drain-seconds 1");
    eventually("the next process leads", || (site.status()["led"] == true).then_some(()));
    let second = site.place.failure(&format!(
        "fleet command {COMMANDS} --dir fleet --join cluster.join --workers-max 2 --coordinator {}",
        site.coordinator.url()
    ));
    assert!(second.contains("another process leads the fleet"), "{second}");
    eventually("it has found them", || (site.count(&running) == 2).then_some(()));
    assert_eq!(workers(&site.place), before, "the same workers");
    let stop = site.place.run("fleet stop --dir fleet");
    assert_eq!(stop.code, 0, "{}", stop.stderr);
    assert_eq!(again.end().code, 0, "the process that leads has stopped it");
    assert_eq!(workers(&site.place), Vec::<String>::new());
    assert_eq!(site.status()["state"]["has_stopped"], true);
    // What the workers held is free again, and nothing was lost.
    eventually("no lease is left", || (site.run(&run)["leased"] == 0).then_some(()));
    assert_eq!(site.run(&run)["quarantined"], 0);
    // A stop without a process that leads does it itself.
    let mut third = site.lead("--workers-max 1 --drain-seconds 1");
    eventually("a worker counts again", || (site.count(&running) == 1).then_some(()));
    third.kill();
    let stop = site.place.run("fleet stop --dir fleet");
    assert_eq!(stop.code, 0, "{}", stop.stderr);
    assert_eq!(workers(&site.place), Vec::<String>::new());
}

#[test]
fn workers_that_fail_slow_a_fleet_down_and_it_says_why() {
    let site = Site::new();
    site.submit("16 --plan border");
    let mut fleet = site.lead("--workers-max 5 --backlog 5 --program /bin/false");
    let waits = || {
        (site.status()["state"]["in_vain"]["times"] == 2).then(|| site.status()["state"]["in_vain"].clone())
    };
    let waits = eventually("it waits", waits);
    let why = waits["why"].as_str().expect("a reason");
    assert!(why.contains(" failed: exit code 1 on ") && why.ends_with(": an empty log"), "{why}");
    let text = site.place.stdout("fleet status --dir fleet");
    assert!(text.contains(&format!("2 in a row: {why}; the next submit is in ")), "{text}");
    assert!(text.contains("  exit code 1 on "), "{text}");
    fleet.signal("-INT");
    assert_eq!(fleet.end().code, 130);
    // Another start is another try.
    let failed = site.count(&json!("failed"));
    let _fleet = site.lead("--workers-max 5 --backlog 5 --program /bin/false");
    eventually("they fail again", || (site.count(&json!("failed")) > failed).then_some(()));
}

#[test]
fn a_second_fleet_of_a_coordinator_is_named_and_has_to_be_wanted() {
    let site = Site::new();
    let first = site.lead("--workers-max 1");
    eventually("it has asked", || site.status()["state"]["demand"]["open"].as_u64());
    let url = site.coordinator.url();
    let other = |dir: &str, more: &str| {
        let arguments = format!("--dir {dir} --join cluster.join --coordinator {url} --workers-max 1 {more}");
        site.place.command(&format!("fleet command {COMMANDS} {arguments}"))
    };
    let refused = || {
        let outcome = Outcome::of(&mut other("second", ""));
        assert_eq!(outcome.code, 1, "{}", outcome.stderr);
        let folder = site.place.path("fleet").canonicalize().expect("a folder");
        let name = format!("did a minute ago: {} on ", folder.display());
        assert!(outcome.stderr.contains(&name) && outcome.stderr.contains("--also"), "{}", outcome.stderr);
    };
    let comes = |dir: &str| {
        eventually("it has asked", || {
            let status = site.place.run(&format!("fleet status --dir {dir} --json"));
            let status: Value = serde_json::from_str(&status.stdout).ok()?;
            status["state"]["demand"]["open"].as_u64()
        })
    };
    refused();
    let both = Background::start(&mut other("second", "--also"));
    comes("second");
    // Whoever was there before comes back, and who was not told of others still does not.
    drop(first);
    let mut again = site.lead("--workers-max 1");
    eventually("it leads again", || (site.status()["led"] == true).then_some(()));
    end_well(both);
    refused();
    // One that has stopped makes room at once.
    assert_eq!(site.place.run("fleet stop --dir fleet").code, 0);
    assert_eq!(again.end().code, 0);
    let _third = Background::start(&mut other("third", ""));
    comes("third");
}

#[test]
fn a_dry_run_submits_nothing() {
    let site = Site::new();
    site.submit("12 --job-states 20000 --replicate 0");
    let url = site.coordinator.url();
    let dry_run = |more: &str| {
        site.place.stdout(&format!(
            "fleet command {COMMANDS} --dry-run --workers-max 3 --threads 2 --join cluster.join --coordinator {url} {more}"
        ))
    };
    let shown = dry_run("--time-limit 2h --device 0,1");
    assert!(
        shown.contains("2 allocations would be submitted first") && shown.contains("worker --join /"),
        "{shown}"
    );
    assert!(
        shown.contains("--time-limit 7200s --device '0,1' --threads 2 ") && shown.contains("\n./submit\n"),
        "{shown}"
    );
    assert!(!site.place.path("nqueens-fleet").exists());
    // A fleet behind a link has the name of its folder, which need not be there yet.
    let folder = site.place.path("").canonicalize().expect("a folder");
    symlink(&folder, folder.join("link")).expect("a link");
    let script = format!("SCRIPT={}/worker.sh ", folder.join("new/fleet").display());
    let shown = dry_run("--dir link/new/fleet");
    assert!(shown.contains(&script), "{shown}");
    std::fs::create_dir_all(folder.join("new/fleet")).expect("a folder");
    assert_eq!(dry_run("--dir link/new/fleet"), shown);
}

#[test]
fn what_is_wrong_is_said() {
    let place = Place::new().with_file("cluster.join", "{\"coordinator\": \"http://127.0.0.1:9\"}");
    let missing = place.failure("fleet status");
    assert!(missing.starts_with("there is no fleet in nqueens-fleet"), "{missing}");
    let no_join = place.failure(&format!("fleet command {COMMANDS} --workers-max 1 --join nothing"));
    assert!(no_join.starts_with("the join file nothing"), "{no_join}");
    let device = place.run(&format!("fleet command {COMMANDS} --workers-max 1 --join x --device gpu"));
    assert!(
        device.code == 2 && device.stderr.contains("it must be auto, all, or numbers"),
        "{}",
        device.stderr
    );
}
