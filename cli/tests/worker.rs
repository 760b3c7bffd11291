//! `nqueens worker` as a process, and a coordinator in this one: signals, and what a killed worker leaves behind.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::Duration;

use nqueens_coordinator::progress::RunProgress;
use nqueens_coordinator::{Coordinator, Policy, RunRow, Timing, listen};
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::plan::{Plan, PlanKind};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A coordinator with one run.
struct Service {
    coordinator: Coordinator,
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    server: JoinHandle<()>,
}

impl Service {
    async fn start(db: &Path, address: &str) -> Self {
        // A long beat: a worker takes all the work of a small run at once.
        let pace = Timing { policy: Policy { beat_ms: 20_000, ..Policy::default() }, ..Timing::default() };
        let coordinator = Coordinator::open(db, pace, "test").await.expect("a database");
        let (listener, address) = listen(address).await.expect("a port");
        let (stop, stopped) = oneshot::channel();
        let server = coordinator
            .serve(listener, &nqueens_coordinator::Access::default(), async { drop(stopped.await) });
        Self { coordinator, address, stop, server }
    }

    async fn submit(&self, n: u32, states_per_job: u64) -> RunRow {
        let n = BoardSize::new(n).expect("a board");
        let plan = Plan::with_states_per_job(n, PlanKind::Border, states_per_job);
        self.coordinator.operator().submit(plan, 0).await.expect("planned")
    }

    /// Waits until the run is as wanted.
    async fn until(&self, wanted: impl Fn(&RunProgress) -> bool) -> RunProgress {
        let mut snapshots = self.coordinator.operator().watch();
        let there = snapshots.wait_for(|snapshot| snapshot.runs.iter().any(&wanted)).await;
        there.expect("the coordinator lives").runs[0].clone()
    }

    async fn stop(self) {
        drop(self.stop);
        self.server.await.expect("no panic");
        self.coordinator.close().await;
    }
}

fn command(place: &TempDir, address: SocketAddr, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nqueens"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("NQUEENS_")) {
        command.env_remove(name);
    }
    command.current_dir(place.path()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.env("NQUEENS_LOG", "info").args([
        "worker",
        "--threads",
        "1",
        "--coordinator",
        &format!("http://{address}"),
    ]);
    command.args(arguments.split_whitespace());
    command
}

/// A worker's process; killed with the test that started it.
struct Worker {
    process: Child,
    stderr: BufReader<ChildStderr>,
}

impl Worker {
    fn start(place: &TempDir, address: SocketAddr, arguments: &str) -> Self {
        let mut process = command(place, address, arguments).spawn().expect("the program starts");
        let stderr = BufReader::new(process.stderr.take().expect("piped"));
        Self { process, stderr }
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.process);
        kill_process(pid, signal).expect("the process is there");
    }

    /// Reads what it says up to the line with these words.
    fn read_until(&mut self, words: &str) -> String {
        let mut line = String::new();
        while !line.contains(words) {
            line.clear();
            assert!(self.stderr.read_line(&mut line).expect("text") > 0, "it never said '{words}'");
        }
        line
    }

    /// Waits for its end: its exit code and last words.
    fn end(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        std::io::Read::read_to_string(&mut self.stderr, &mut said).expect("text");
        (self.process.wait().expect("it ends").code(), said)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It has ended already where all went well.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn spool(place: &TempDir) -> PathBuf {
    place.path().join("nqueens-spool/results")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminated_worker_hands_back_its_leases() {
    let place = TempDir::new().expect("a directory");
    let service = Service::start(&place.path().join("runs.db"), "127.0.0.1:0").await;
    service.submit(20, 1 << 40).await;
    for (signal, code) in [(Signal::TERM, 0), (Signal::INT, 130)] {
        let worker = Worker::start(&place, service.address, "--drain-seconds 1");
        service.until(|run| run.sums.leased > 0).await;
        worker.signal(signal);
        let (found, said) = worker.end();
        assert_eq!(found, Some(code), "{said}");
        let farewell = "worker has stopped reason=\"a signal\" accepted=0 unreported=0 unreturned=0";
        assert!(said.contains(farewell), "{said}");
        service.until(|run| run.sums.leased == 0).await;
    }
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_worker_s_results_are_reported_by_the_next() {
    let place = TempDir::new().expect("a directory");
    let db = place.path().join("runs.db");
    let service = Service::start(&db, "127.0.0.1:0").await;
    let (run, address) = (service.submit(16, 1_000_000).await, service.address);
    let first = Worker::start(&place, address, "");
    service.until(|run| run.sums.leased + run.sums.done == run.jobs).await;
    service.stop().await;
    while fs::metadata(spool(&place)).is_ok_and(|file| file.len() == 0) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    first.signal(Signal::KILL);
    first.end();
    assert!(fs::metadata(spool(&place)).expect("a spool").len() > 0);

    // All that is not done is leased to the one that is gone: only what lies in the spool can be done now.
    let service = Service::start(&db, &address.to_string()).await;
    let before = service.until(|_| true).await.sums;
    assert_eq!(before.done + before.leased, run.jobs);
    let mut second = Worker::start(&place, address, "");
    let line = second.read_until("reporting results of an earlier worker");
    let kept =
        line.split("results=").nth(1).and_then(|rest| rest.split_whitespace().next()).expect("a number");
    let kept: u32 = kept.parse().expect("a number");
    let after = service.until(|run| run.sums.done > before.done).await.sums;
    assert_eq!((after.done, after.leased), (before.done + kept, before.leased - kept), "of {}", run.jobs);
    second.signal(Signal::TERM);
    let (code, said) = second.end();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(fs::metadata(spool(&place)).expect("a spool").len(), 0);
    service.stop().await;
}

/// What a worker that can't start says; it must not need a coordinator for that.
fn complaint(command: &mut Command, code: i32) -> String {
    let Output { status, stderr, .. } = command.output().expect("the program starts");
    let said = String::from_utf8(stderr).expect("text");
    assert_eq!(status.code(), Some(code), "{said}");
    said
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_it_can_t_work_with_it_says() {
    const SECRET: &str = "correct-horse battery";
    let place = TempDir::new().expect("a directory");
    let nobody: SocketAddr = "127.0.0.1:1".parse().expect("an address");
    let mut busy = Worker::start(&place, nobody, "");
    busy.read_until("no coordinator: check that it runs");
    let said = complaint(&mut command(&place, nobody, ""), 1);
    assert!(said.contains("nqueens: another worker uses the spool nqueens-spool;"), "{said}");
    busy.signal(Signal::TERM);
    let (code, said) = busy.end();
    assert_eq!(code, Some(0), "{said}");

    let token = place.path().join("token");
    fs::write(&token, SECRET).expect("a file");
    let said = complaint(&mut command(&place, nobody, "--spool token/spool"), 1);
    assert!(said.contains("nqueens: can't use the spool token/spool: Not a directory"), "{said}");
    let from_file = complaint(&mut command(&place, nobody, "--token-file token"), 1);
    assert!(from_file.contains("the token file token: a token has 16 to 256 visible ASCII"), "{from_file}");
    let from_variable = complaint(command(&place, nobody, "").env("NQUEENS_TOKEN", SECRET), 1);
    assert!(from_variable.contains("the variable NQUEENS_TOKEN: a token has 16 to 256"), "{from_variable}");
    assert!(!from_file.contains("horse") && !from_variable.contains("horse"));
    let missing = complaint(&mut command(&place, nobody, "--token-file none"), 1);
    assert!(missing.contains("the token file none: No such file"), "{missing}");
    for wrong in ["--coordinator localhost:7327", "--threads 0", "--drain-seconds -1"] {
        let mut command = command(&place, nobody, "");
        command.args(wrong.split_whitespace());
        complaint(&mut command, 2);
    }
}
