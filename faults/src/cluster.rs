//! A coordinator and its workers as real processes, and everything around them that can be broken.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

use nqueens_kernel::random::Random;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::ledger::open_runs;
use crate::process::{self, Background, Outcome, eventually};
use crate::proxy::{Proxy, Weather};
use crate::recording_proxy::RecordingProxy;
use crate::sandbox::Rooms;

/// Leases are short, so that they run out within a round. The reserve is small, as the disk is.
const PACE: &str = "--sync-seconds 1 --lease-seconds 3 --grace-seconds 2 --disk-reserve 1MiB";

/// Room on the cluster's disk, in MiB, where it has one of its own.
const DISK_MIB: u32 = 160;

/// A command of the program that takes longer hangs.
const COMMAND_SECONDS: &str = "300";

/// The configuration of a cluster.
pub(crate) struct Setup {
    /// The program `nqueens`.
    pub(crate) program: PathBuf,
    /// What it counts, as arguments of `run` and `submit`.
    pub(crate) board: String,
    pub(crate) kernel: String,
    pub(crate) workers: usize,
    pub(crate) sandbox: Rooms,
}

/// A place where a worker runs.
pub(crate) struct Station {
    pub(crate) name: String,
    /// Its only way to the coordinator.
    pub(crate) proxy: Proxy,
    /// None while it is down.
    pub(crate) process: Option<Background>,
}

/// The cluster. Its coordinator can be reached by operators at all times; workers go through the recording proxy.
pub(crate) struct Cluster {
    pub(crate) setup: Setup,
    pub(crate) runtime: Runtime,
    pub(crate) recording_proxy: RecordingProxy,
    /// Its only way from the recording proxy.
    pub(crate) front: Proxy,
    /// None while it is down.
    pub(crate) coordinator: Option<Background>,
    pub(crate) stations: Vec<Station>,
    /// What processes get beside their arguments, from their next start on.
    pub(crate) variables: Vec<(&'static str, String)>,
    tally: RefCell<BTreeMap<&'static str, u64>>,
    address: String,
    folder: TempDir,
}

impl Cluster {
    /// Starts everything, on an empty ledger.
    pub(crate) fn start(setup: Setup, folder: TempDir, random: &mut Random) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let disk = folder.path().join("disk");
        std::fs::create_dir(&disk).expect("a folder");
        if setup.sandbox.disks {
            let size = format!("size={DISK_MIB}m");
            sh(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&disk));
        }
        let any_port = "127.0.0.1:0";
        let (coordinator, address) =
            Background::listening(&mut coordinate(&setup.program, &disk.join("queens.db"), any_port, PACE));
        let target: SocketAddr = address.parse().expect("an address");
        let (front, recording_proxy, stations) = runtime.block_on(async {
            let here = Ipv4Addr::LOCALHOST.into();
            let front = Proxy::start(here, target, random.fork()).await;
            let (recording_proxy, ear) = RecordingProxy::start(front.address, &disk.join("queens.db")).await;
            let mut stations = Vec::new();
            for number in 0..setup.workers {
                let on = if setup.sandbox.hosts { host(number) } else { here };
                let proxy = Proxy::start(on, ear, random.fork()).await;
                stations.push(Station { name: format!("w{number}"), proxy, process: None });
            }
            (front, recording_proxy, stations)
        });
        let (coordinator, variables, tally) = (Some(coordinator), Vec::new(), RefCell::default());
        let mut cluster = Self {
            setup,
            runtime,
            recording_proxy,
            front,
            coordinator,
            stations,
            variables,
            tally,
            address,
            folder,
        };
        (0..cluster.stations.len()).for_each(|at| cluster.start_worker(at));
        cluster
    }

    /// A path for whatever is no business of the cluster's.
    pub(crate) fn scratch(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A path on the cluster's disk.
    pub(crate) fn disk(&self, name: &str) -> PathBuf {
        self.folder.path().join("disk").join(name)
    }

    /// Some of the stations, one at least.
    pub(crate) fn some_stations(&self, random: &mut Random) -> Vec<usize> {
        let sure = random.index(self.stations.len());
        (0..self.stations.len()).filter(|at| *at == sure || random.permille(400)).collect()
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.disk("queens.db")
    }

    /// Counts something that the report is to tell.
    pub(crate) fn count(&self, what: &'static str, times: u64) {
        *self.tally.borrow_mut().entry(what).or_default() += times;
    }

    pub(crate) fn tally(&self) -> BTreeMap<&'static str, u64> {
        self.tally.borrow().clone()
    }

    /// Starts the coordinator on the ledger that there is, and waits until it listens.
    pub(crate) fn start_coordinator(&mut self) {
        let (process, _) = Background::listening(&mut self.coordinator_command());
        self.coordinator = Some(process);
    }

    pub(crate) fn coordinator_command(&self) -> Command {
        let mut command = coordinate(&self.setup.program, &self.database(), &self.address, PACE);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// `kill -9`.
    pub(crate) fn kill_coordinator(&mut self) {
        let mut process = self.coordinator.take().expect("it is up");
        assert!(process.is_running(), "the coordinator ended by itself: {}", process.said());
        inquest(&process.kill());
        self.count("coordinators killed", 1);
    }

    /// Has the coordinator end as it should, which leaves all in the one file.
    pub(crate) fn stop_coordinator(&mut self) {
        let mut process = self.coordinator.take().expect("it is up");
        process.signal("-TERM");
        let outcome = process.end();
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        inquest(&outcome.stderr);
    }

    pub(crate) fn start_worker(&mut self, at: usize) {
        let Station { name, proxy, .. } = &self.stations[at];
        let mut command = if self.setup.sandbox.hosts {
            let mut command = program(Path::new("ip"));
            command.args(["netns", "exec", name]).arg(&self.setup.program);
            command
        } else {
            program(&self.setup.program)
        };
        let url = format!("http://{}", proxy.address);
        command.args(["worker", "--coordinator", &url, "--name", name, "--threads", "1"]);
        command.args(["--kernel", &self.setup.kernel, "--spool"]).arg(self.disk(name));
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        self.stations[at].process = Some(Background::start(&mut command));
    }

    /// `kill -9`.
    pub(crate) fn kill_worker(&mut self, at: usize) {
        let mut process = self.stations[at].process.take().expect("it is up");
        assert!(process.is_running(), "a worker ended by itself: {}", process.said());
        inquest(&process.kill());
        self.count("workers killed", 1);
    }

    /// Sends the workers' processes a signal.
    pub(crate) fn signal_workers(&self, which: &[usize], signal: &str) {
        for at in which {
            self.stations[*at].process.as_ref().expect("it is up").signal(signal);
        }
    }

    /// Starts the processes that are down; no other may have ended.
    pub(crate) fn mend(&mut self) {
        if self.coordinator.is_none() {
            self.start_coordinator();
        }
        for at in 0..self.stations.len() {
            if self.stations[at].process.is_none() {
                self.start_worker(at);
            }
        }
        let stations = self.stations.iter_mut().filter_map(|station| station.process.as_mut());
        for process in stations.chain(&mut self.coordinator) {
            assert!(process.is_running(), "it ended by itself: {}", process.said());
        }
    }

    /// Waits until the coordinator has acknowledged this many more results; starts another run after one has ended.
    pub(crate) fn wait_for_results(&self, more: u64) {
        let enough = self.recording_proxy.seen() + more;
        eventually("more results are acknowledged", || {
            if self.tend() {
                self.submit();
            }
            (self.recording_proxy.seen() >= enough).then_some(())
        });
    }

    /// Acts like an operator: quarantined jobs are made ready again. Returns whether nothing is left to count.
    pub(crate) fn tend(&self) -> bool {
        let open = self.runtime.block_on(open_runs(&self.database()));
        for (run, quarantined) in &open {
            if *quarantined > 0 {
                let url = format!("http://{}", self.address);
                let outcome = self.nqueens(&format!("resume {run:012x} --quarantined --coordinator {url}"));
                assert_eq!(outcome.code, 0, "{}", outcome.stderr);
                self.count("jobs whose leases ran out twenty times", *quarantined);
            }
        }
        open.is_empty()
    }

    /// On all ways at once.
    pub(crate) fn set_weather(&self, weather: Weather) {
        let ways = self.stations.iter().map(|station| &station.proxy).chain([&self.front]);
        ways.for_each(|proxy| proxy.set(weather));
    }

    pub(crate) fn submit(&self) {
        let url = format!("http://{}", self.address);
        // A coordinator whose disk was short of room a moment ago takes none.
        eventually("a run is planned", || {
            let outcome = self.nqueens(&format!("submit {} --coordinator {url}", self.setup.board));
            assert!(outcome.code == 0 || outcome.stderr.contains("disk"), "{}", outcome.stderr);
            (outcome.code == 0).then_some(())
        });
        self.count("runs", 1);
    }

    /// Runs the program in the scratch folder.
    pub(crate) fn nqueens(&self, arguments: &str) -> Outcome {
        nqueens(&self.setup.program, self.folder.path(), arguments)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Nobody may use the disk any more.
        self.stations.clear();
        self.coordinator = None;
        if self.setup.sandbox.disks {
            drop(Command::new("umount").arg("--lazy").arg(self.folder.path().join("disk")).status());
        }
    }
}

/// The program under test: the given one, or the one beside this program.
pub(crate) fn under_test(given: Option<&Path>) -> PathBuf {
    let beside = || std::env::current_exe().expect("this program has a path").with_file_name("nqueens");
    let program = given.map_or_else(beside, Path::to_path_buf);
    let missing = |error| panic!("{}: {error}; build it: cargo build", program.display());
    program.canonicalize().unwrap_or_else(missing)
}

/// Runs `nqueens` with blank-separated arguments to its end.
pub(crate) fn nqueens(path: &Path, folder: &Path, arguments: &str) -> Outcome {
    let mut command = program(Path::new("timeout"));
    command.args(["--signal=KILL", COMMAND_SECONDS]).arg(path).args(arguments.split_whitespace());
    let outcome = Outcome::of(command.current_dir(folder));
    assert_ne!(outcome.code, 137, "it hangs: {arguments}");
    inquest(&outcome.stderr);
    outcome
}

/// A program with no `NQUEENS_*` variables but the log's level.
pub(crate) fn program(path: &Path) -> Command {
    let mut command = process::program(path);
    command.env("NQUEENS_LOG", "info");
    command
}

pub(crate) fn coordinate(path: &Path, database: &Path, address: &str, pace: &str) -> Command {
    let mut command = program(path);
    command.args(["coordinator", "--listen", address, "--db"]).arg(database).args(pace.split(' '));
    command
}

/// Whatever happens to a process, it never loses its head.
pub(crate) fn inquest(log: &str) {
    assert!(!log.contains("panicked"), "{log}");
}

/// Makes a host with a cable to this one; the address at this end of it.
fn host(number: usize) -> IpAddr {
    let (name, here, there) = (format!("w{number}"), format!("v{number}"), format!("u{number}"));
    let address = |last: u8| Ipv4Addr::new(10, 77, u8::try_from(number).expect("few workers"), last);
    let run = |arguments: &str| sh(Command::new("ip").args(arguments.split(' ')));
    run(&format!("netns add {name}"));
    run(&format!("link add {here} type veth peer name {there} netns {name}"));
    run(&format!("address add {}/24 dev {here}", address(1)));
    run(&format!("link set {here} up"));
    run(&format!("-n {name} address add {}/24 dev {there}", address(2)));
    run(&format!("-n {name} link set {there} up"));
    address(1).into()
}

/// Pulls or plugs the cables of some hosts: `down` or `up`.
pub(crate) fn set_links(which: &[usize], state: &str) {
    for at in which {
        sh(Command::new("ip").args(["link", "set", &format!("v{at}"), state]));
    }
}

fn sh(command: &mut Command) {
    let outcome = Outcome::of(command);
    assert_eq!(outcome.code, 0, "{command:?}: {}", outcome.stderr);
}
