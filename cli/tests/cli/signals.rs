//! SIGTERM and Ctrl-C at moments when a coordinator or a run has its hands full: it ends, and nothing is lost.

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{Connection, Executor};

use crate::processes::{Background, Coordinator, ended, eventually, own_address};
use crate::{NQUEENS, Outcome, Place, block_on};

/// More than a million jobs: planning takes a minute in a debug build.
const LARGE: &str = "17 --plan rows --job-states 1000";

const INTERRUPTED: &str =
    "interrupted; progress is kept in queens.db; run the same command again to continue\n";

/// The program in the background, which prints nothing that is waited for.
fn start(place: &Place, arguments: &str) -> Background {
    Background::start(&mut place.command(arguments))
}

fn start_coordinator(place: &Place) -> Background {
    start(place, &format!("coordinator --db queens.db --listen {}:0", own_address()))
}

/// Waits until jobs of a run that is being planned are stored.
fn wait_for_planning(place: &Place) {
    eventually("a part of the plan is stored", || {
        // At first there is no database yet, or half of one.
        place.try_sql("queens.db", "SELECT 1 FROM job").ok()?;
        let planned = "SELECT count(*) FROM job JOIN run ON run.id = run WHERE run.state = 'planning'";
        (place.ask("queens.db", planned) != ["0"]).then_some(())
    });
}

/// Sends a signal to a process, which ends.
fn stop(mut process: Background, signal: &str) -> Outcome {
    process.signal(signal);
    ended(&mut process)
}

/// Keeps all others from writing to `queens.db`, until it is dropped.
pub(crate) struct WriteLock(SqliteConnection);

impl WriteLock {
    pub(crate) fn take(place: &Place) -> Self {
        let options = SqliteConnectOptions::new().filename(place.path("queens.db"));
        Self(block_on(async {
            let mut connection = SqliteConnection::connect_with(&options).await.expect("a database");
            connection.execute("BEGIN IMMEDIATE").await.expect("the lock");
            connection
        }))
    }

    pub(crate) fn release(self) {
        block_on(self.0.close()).expect("closed");
    }
}

/// Also as a shell without job control starts it in the background: with SIGINT ignored.
#[test]
fn while_a_run_is_being_planned() {
    for (signal, ignored) in [("-TERM", ""), ("-INT", "trap '' INT;")] {
        let place = Place::new();
        let script = format!("{ignored} exec \"$0\" run {LARGE} --db queens.db");
        let run = Background::start(place.program("sh").args(["-c", &script, NQUEENS]));
        wait_for_planning(&place);
        let outcome = stop(run, signal);
        assert_eq!((outcome.code, &*outcome.stdout, &*outcome.said()), (130, "", INTERRUPTED), "{signal}");
        // It left nothing that another run would have to bear with.
        let outcome = place.run("run 8 --db queens.db --json");
        assert!(outcome.stdout.contains(r#""total":"92""#), "{}", outcome.stderr);
    }
}

#[test]
fn while_a_coordinator_plans() {
    for (signal, code) in [("-TERM", 0), ("-INT", 130)] {
        let place = Place::new();
        let coordinator = Coordinator::start(&place, &[], "");
        let mut operator = start(&place, &format!("submit {LARGE} --coordinator {}", coordinator.url()));
        wait_for_planning(&place);
        let outcome = stop(coordinator.process, signal);
        assert_eq!(outcome.code, code, "{}", outcome.stderr);
        assert_eq!(operator.end().code, 1, "whoever has asked is told");
    }
}

#[test]
fn while_the_database_is_being_opened() {
    let place = Place::new();
    place.stdout("run 5 --db queens.db --plan rows");
    // A start writes: for a while, it waits for whoever writes already.
    let lock = WriteLock::take(&place);
    for signal in ["-TERM", "-INT"] {
        let coordinator = start_coordinator(&place);
        eventually("it listens to signals", || listens(&coordinator).then_some(()));
        let outcome = stop(coordinator, signal);
        assert_eq!(outcome.code, if signal == "-INT" { 130 } else { 0 }, "{}", outcome.stderr);
        assert!(outcome.stderr.contains("coordinator is stopped before it was up"), "{}", outcome.stderr);
        let run = start(&place, "run 5 --db queens.db");
        eventually("it listens to signals", || listens(&run).then_some(()));
        let outcome = stop(run, signal);
        assert_eq!((outcome.code, &*outcome.stdout, &*outcome.said()), (130, "", INTERRUPTED));
    }
    lock.release();
    assert_eq!(place.json("run 5 --db queens.db --json")["total"], "10");
}

#[test]
fn while_the_database_can_not_be_written() {
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &[("NQUEENS_LOG", "nqueens=debug")], "");
    let lock = WriteLock::take(&place);
    let call = start(&place, &format!("distrust west --coordinator {}", coordinator.url()));
    eventually("a change waits", || coordinator.process.said().contains("/v1/trust").then_some(()));
    let outcome = stop(coordinator.process, "-TERM");
    assert_eq!(outcome.code, 130, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("stopping takes too long: the process ends now"), "{}", outcome.stderr);
    drop(call);
    lock.release();
    assert_eq!(place.json("run 5 --db queens.db --json")["total"], "10");
}

/// Whether a process catches SIGTERM, by its mask in /proc.
fn listens(process: &Background) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).expect("a process");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("a mask");
    u64::from_str_radix(mask.trim(), 16).expect("a number") & 1 << 14 != 0
}
