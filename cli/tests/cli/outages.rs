//! Long stories: a coordinator and three workers that are killed, stopped, paused, drained and started again, and
//! count exactly all the same.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::known::published;
use serde_json::Value;

use crate::processes::{Background, Coordinator, OPERATOR_TOKEN, WORKER_TOKEN, eventually};
use crate::{Outcome, Place};

const LOG: (&str, &str) = ("NQUEENS_LOG", "debug");

/// A cluster, as its operator has it at hand.
struct Cluster {
    place: Place,
    coordinator: Coordinator,
    /// What was said by processes that have ended.
    logs: String,
}

impl Cluster {
    const VARIABLES: [(&str, &str); 3] =
        [LOG, ("NQUEENS_WORKER_TOKEN", WORKER_TOKEN), ("NQUEENS_OPERATOR_TOKEN", OPERATOR_TOKEN)];

    fn start(pace: &str) -> Self {
        let place = Place::new();
        let coordinator = Coordinator::start(&place, &Self::VARIABLES, pace);
        Self { place, coordinator, logs: String::new() }
    }

    /// `kill -9`.
    fn kill_coordinator(&mut self) {
        self.logs += &self.coordinator.process.kill();
    }

    /// On the same database and port.
    fn restart_coordinator(&mut self, pace: &str) {
        let address = self.coordinator.address.clone();
        self.coordinator = Coordinator::start_at(&address, &self.place, &Self::VARIABLES, pace);
    }

    fn worker(&self, name: &str, spool: &str) -> Background {
        self.coordinator.worker_on(&self.place, name, spool, &[LOG, ("NQUEENS_TOKEN", WORKER_TOKEN)])
    }

    /// A worker that multiplies colours.
    fn multiplier(&self, name: &str) -> Background {
        let arguments = self.coordinator.worker_arguments("http", name, name).replace("scalar", "portable");
        let variables = [LOG, ("NQUEENS_TOKEN", WORKER_TOKEN)];
        Background::start(self.place.command(&arguments).envs(variables))
    }

    /// Waits for the end of a worker that was told to go: it ends well. The line that says so; those of its connection
    /// may come after.
    fn farewell(&mut self, mut worker: Background) -> String {
        let outcome = worker.end();
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        self.logs += &outcome.stderr;
        outcome
            .stderr
            .lines()
            .rfind(|line| line.contains("worker has stopped"))
            .expect("a farewell")
            .to_owned()
    }

    /// Sends a worker away from its work.
    fn drain(&mut self, name: &str, worker: Background) {
        let id = eventually("it works", || {
            let workers = self.workers();
            let worker = workers.iter().find(|worker| worker["name"] == name && worker["leases"] != 0)?;
            worker["id"].as_u64()
        });
        self.operator(&format!("workers --drain {id}"));
        let last_words = self.farewell(worker);
        assert!(last_words.contains("worker has stopped reason=\"an operator\" "), "{last_words}");
        assert!(last_words.ends_with(" unreported=0 unreturned=0"), "{last_words}");
    }

    /// What an operator's command prints.
    fn operator(&mut self, arguments: &str) -> String {
        let arguments = format!("{arguments} --coordinator {}", self.coordinator.url());
        let outcome = self.place.run_with(&Self::VARIABLES, &arguments);
        assert_eq!(outcome.code, 0, "{arguments}: {}", outcome.stderr);
        self.logs += &outcome.stderr;
        outcome.stdout.trim_end().to_owned()
    }

    fn run(&mut self, id: &str) -> Value {
        let status = self.operator(&format!("status {id} --json"));
        serde_json::from_str::<Value>(&status).expect("JSON")["runs"][0].take()
    }

    /// The workers that the coordinator has heard of in this life.
    fn workers(&mut self) -> Vec<Value> {
        let workers = self.operator("workers --json");
        let mut workers: Value = serde_json::from_str(&workers).expect("JSON");
        workers["workers"].as_array_mut().map(std::mem::take).expect("a list")
    }

    fn number(&self, query: &str) -> u64 {
        self.place.number("queens.db", query)
    }

    /// Jobs leased to workers of this name.
    fn leases(&self, name: &str) -> u64 {
        self.number(&format!("SELECT count(*) FROM job JOIN worker ON id = job.worker WHERE name = '{name}'"))
    }

    /// Results of workers of this name, with this verdict or any (`%`).
    fn results(&self, name: &str, verdict: &str) -> u64 {
        self.number(&format!(
            "SELECT count(*) FROM result JOIN worker ON worker.id = result.worker
             WHERE name = '{name}' AND verdict LIKE '{verdict}'"
        ))
    }

    fn spool(&self, name: &str) -> Vec<u8> {
        fs::read(self.place.path(name).join("results")).expect("a spool")
    }

    /// Lets a stopped worker go on without a coordinator, until it has put a result into its spool.
    fn count_alone(&self, name: &str, worker: &Background) {
        // What an earlier report has in it may be acknowledged already; only what is added now can't be.
        let mut least = self.spool(name).len();
        worker.signal("-CONT");
        eventually("a result is spooled", || {
            let now = self.spool(name).len();
            let grown = now > least;
            least = least.min(now);
            grown.then_some(())
        });
    }

    /// The run is done, with the published counts, by one accepted result for each job.
    fn check(&mut self, id: &str, n: u32) {
        let run = self.run(id);
        let known = published(BoardSize::new(n).expect("a board")).expect("published");
        let counts = [known.total, known.orbits.count2, known.orbits.count4, known.orbits.count8];
        let found = ["total", "count2", "count4", "count8"].map(|name| run[name].clone());
        assert_eq!(found, counts.map(|count| Value::from(count.to_string())), "{run}");
        assert_eq!((&run["state"], &run["check"]), (&"done".into(), &"published".into()));
        assert_eq!((&run["done"], &run["quarantined"]), (&run["jobs"], &0.into()));
        let number = u64::from_str_radix(id, 16).expect("an id");
        let accepted = self.place.ask(
            "queens.db",
            &format!("SELECT job FROM result WHERE run = {number} AND verdict = 'accepted' ORDER BY job"),
        );
        let jobs = run["jobs"].as_u64().expect("jobs");
        assert_eq!(accepted, (0..jobs).map(|job| job.to_string()).collect::<Vec<_>>(), "each job once");
        let exported = self.place.stdout(&format!("export {id} --db queens.db --by job"));
        let done = exported.lines().skip(1).filter(|row| row.split(',').nth(6) == Some("done"));
        assert_eq!(done.count() as u64, jobs);
    }

    /// Ends the last life of the coordinator, and looks through what all have left behind.
    fn close(mut self) {
        self.coordinator.process.signal("-TERM");
        let outcome = self.coordinator.process.end();
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        self.logs += &outcome.stderr;
        self.place.check_rules("queens.db");
        let wrong = "SELECT DISTINCT verdict FROM result WHERE verdict NOT IN ('accepted', 'duplicate')";
        assert_eq!(self.place.ask("queens.db", wrong), Vec::<String>::new());
        assert_eq!(self.number("SELECT count(*) FROM coordinator"), 3, "lives");
        assert!(self.logs.contains("DEBUG") && !self.logs.contains("token-for"));
    }
}

/// Results in a spool: records of a length, a checksum, and so many bytes.
fn records(mut spool: &[u8]) -> u64 {
    let mut records = 0;
    while let Some((length, rest)) = spool.split_first_chunk() {
        let end = 4 + u32::from_le_bytes(*length) as usize;
        let Some(next) = rest.get(end..) else { break };
        (spool, records) = (next, records + 1);
    }
    records
}

#[test]
fn nothing_is_lost_and_nothing_counted_twice_whoever_dies() {
    // The first life has a long beat, so that workers take all that they may have at once.
    let mut cluster = Cluster::start("--sync-seconds 20 --lease-seconds 60");
    let run = cluster.operator("submit 17 --plan border --job-states 2000000 --replicate 0");
    assert_eq!(cluster.operator(&format!("pause {run}")), format!("run {run} is paused"));
    let [mut west, east, north] = ["west", "east", "north"].map(|name| cluster.worker(name, name));
    eventually("all are there", || (cluster.workers().len() == 3).then_some(()));
    cluster.operator(&format!("resume {run}"));
    // These two stand still where they have much to do, and do it when nobody is there to take it.
    let done = eventually("all count, and some jobs are done", || {
        let signal = |signal| [&west, &east].into_iter().for_each(|worker| worker.signal(signal));
        signal("-STOP");
        let loaded = ["west", "east", "north"].iter().all(|name| cluster.leases(name) >= 5);
        let done = cluster.number("SELECT count(*) FROM result");
        let ready = loaded && done > 0;
        if !ready {
            signal("-CONT");
        }
        ready.then_some(done)
    });

    // The coordinator dies; they count on. One of them is stopped, one dies too, in the midst of a job.
    cluster.kill_coordinator();
    cluster.count_alone("east", &east);
    east.signal("-STOP");
    cluster.count_alone("west", &west);
    cluster.logs += &west.kill();
    let spooled = cluster.spool("west");
    let kept = records(&spooled);

    // The dead one's spool is reported by another process. Whoever is alive finishes what it holds and gets no more;
    // the leases of the others stay.
    cluster.restart_coordinator("--sync-seconds 1 --grace-seconds 3600");
    cluster.operator(&format!("pause {run}"));
    let heir = cluster.worker("heir", "west");
    eventually("all that can be reported is", || {
        let idle = cluster.leases("north") + cluster.leases("heir") == 0;
        (idle && cluster.spool("west").is_empty()).then_some(())
    });
    // Some may have been stored before, and the answer got lost with the coordinator.
    let inherited = cluster.results("heir", "accepted");
    assert!(
        (1..=kept).contains(&inherited),
        "{inherited} of {kept}: what was counted without a coordinator is not lost"
    );
    let (dead, stopped) = (cluster.leases("west"), cluster.leases("east"));
    assert!(dead > 0 && stopped > 0, "they were in the midst of their work");
    let state = cluster.run(&run);
    assert_eq!((&state["state"], &state["leased"]), (&"paused".into(), &(dead + stopped).into()));
    assert!(state["done"].as_u64() >= Some(done) && state["done"].as_u64() < state["jobs"].as_u64());

    // The coordinator dies again, and has no patience in its next life: the leases run out. Then the stopped one goes
    // on, and what it has to say is late and welcome.
    cluster.kill_coordinator();
    cluster.restart_coordinator("--sync-seconds 1 --lease-seconds 3 --grace-seconds 1");
    eventually("the leases have run out", || (cluster.run(&run)["leased"] == 0).then_some(()));
    assert!(cluster.number("SELECT sum(lapses) FROM job") >= 2, "each of both was in the midst of a job");
    let before = cluster.results("east", "accepted");
    east.signal("-CONT");
    eventually("all is acknowledged", || cluster.spool("east").is_empty().then_some(()));
    assert!(cluster.results("east", "accepted") > before);

    // Two runs at once; an operator sends a worker away from its work.
    let small = cluster.operator("submit 14 --plan rows --replicate 0");
    cluster.operator(&format!("resume {run}"));
    cluster.drain("north", north);
    for run in [&run, &small] {
        eventually("the runs are done", || (cluster.run(run)["state"] == "done").then_some(()));
    }

    // A copy of the dead one's spool, as from a backup: known, all of it, and dropped.
    fs::create_dir(cluster.place.path("copy")).expect("a directory");
    fs::write(cluster.place.path("copy/results"), &spooled).expect("a file");
    let copy = cluster.worker("copy", "copy");
    eventually("all is acknowledged", || cluster.spool("copy").is_empty().then_some(()));
    assert_eq!(cluster.results("copy", "%"), 0, "nothing is stored twice");
    for worker in [heir, east, copy] {
        worker.signal("-TERM");
        cluster.farewell(worker);
    }
    cluster.check(&run, 17);
    cluster.check(&small, 14);
    cluster.close();
}

/// Each worker is killed once, and the coordinator twice.
#[test]
fn colours_are_multiplied_exactly_whoever_dies() {
    const PACE: &str = "--sync-seconds 1 --lease-seconds 3 --grace-seconds 3";
    let mut cluster = Cluster::start(PACE);
    let run = cluster.operator("submit 18 --plan colours --job-states 400000 --replicate 0");
    let mut workers = ["west", "east", "north"].map(|name| cluster.multiplier(name));
    let mut done = 0;
    for (at, name) in ["west", "east", "north"].into_iter().enumerate() {
        done = eventually("jobs are done, and it has some more", || {
            let now = cluster.run(&run)["done"].as_u64()?;
            (now > done && cluster.leases(name) > 0).then_some(now)
        });
        if at > 0 {
            cluster.kill_coordinator();
        }
        cluster.logs += &workers[at].kill();
        if at > 0 {
            cluster.restart_coordinator(PACE);
        }
        assert_ne!(cluster.run(&run)["state"], "done", "killed too late");
        workers[at] = cluster.multiplier(name);
    }
    eventually("the run is done", || {
        // Who asks all the time takes the processor from those who count.
        sleep(Duration::from_millis(500));
        (cluster.run(&run)["state"] == "done").then_some(())
    });
    for worker in workers {
        worker.signal("-TERM");
        cluster.farewell(worker);
    }
    cluster.check(&run, 18);
    let ledger = cluster.place.run(&format!("export {run} --db queens.db --format ledger"));
    assert_eq!(ledger.code, 0, "{}", ledger.stderr);
    fs::write(cluster.place.path("ledger"), ledger.stdout).expect("a file");
    let Outcome { code, stdout: verified, .. } = cluster.place.run("verify ledger --sample 20 --threads 2");
    assert_eq!(code, 0, "{verified}");
    assert!(verified.contains("20 of ") && verified.contains("all equal"), "{verified}");
    cluster.close();
}

/// `cargo test --release -p nqueens --test cli -- --ignored --nocapture workers_are_back`
#[test]
#[ignore = "500 processes, to measure"]
fn so_many_workers_are_back_after_a_kill_of_their_coordinator() {
    let mut cluster = Cluster::start("");
    cluster.operator("submit 22 --plan border --replicate 0");
    let mut workers = Vec::new();
    while workers.len() < 500 {
        let names: Vec<_> = (0..50).map(|number| format!("w{}", workers.len() + number)).collect();
        workers.extend(names.iter().map(|name| cluster.worker(name, name)));
        eventually("they have come", || (cluster.workers().len() == workers.len()).then_some(()));
    }
    cluster.kill_coordinator();
    sleep(Duration::from_secs(5));
    cluster.restart_coordinator("");
    let begun = Instant::now();
    for wanted in [450, 495, 500] {
        eventually("they are back", || (cluster.workers().len() >= wanted).then_some(()));
        println!("{wanted} of 500 workers are back after {:.1} s", begun.elapsed().as_secs_f64());
    }
}
