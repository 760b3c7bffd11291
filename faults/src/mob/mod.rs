//! Attackers with valid tokens and strangers without among honest workers: the count stays exact, nobody honest is distrusted
//! or kept waiting.

mod attackers;
mod raw;
mod record;
mod scene;
mod strangers;

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use nqueens_kernel::random::Random;
use nqueens_proto::{ClientTls, Token, connect};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tonic::transport::Channel;

use self::attackers::Owner;
use self::record::{Record, results};
use self::scene::Scene;
use crate::campaign::end_by_signal;
use crate::check::Reference;
use crate::cluster::{coordinate, inquest, nqueens, program, under_test};
use crate::ledger::open_runs;
use crate::process::{Background, eventually};
use crate::sandbox;

/// Honest workers: each machine with its credential.
const HONEST: [(&str, &str); 4] = [("west", "lab"), ("east", "lab"), ("north", "club"), ("south", "club")];

/// Leases are longer than a busy machine holds a worker up.
const PACE: &str = "--sync-seconds 1 --lease-seconds 10 --disk-reserve 1MiB";

/// Limits that are reached soon.
const TIGHT: &str = "--first-call-seconds 2 --answer-seconds 1 --calls-per-second 50";

const OPERATOR_TOKEN: &str = "the-token-of-the-operators";

/// The most memory that the coordinator may take, in MiB.
const MEMORY_MAX: u64 = 500;

/// Of so many looks at the page in a row one may fail.
const LOOKS: usize = 20;

/// Limit of live workers of a credential; attackers reach it.
const WORKERS_MAX: usize = 20;

/// New attackers appear in this interval, on average.
const WAVE_SECONDS: u64 = 10;

/// The first attackers, one of each kind, are there at once.
const FIRST: u64 = 6;

/// Lets attackers with valid tokens loose on a cluster: liars, impersonators, crowds of names, those who fail every job and
/// those who let leases run out; and strangers who keep it busy. Checks that every count is exact and confirmed, that nobody
/// honest is distrusted, and that the page can be looked at all the while.
///
/// As many runs as it takes are counted one after the other. All of their results are checked. Each attacker has a token of
/// its own; those of two waves collude: they tell the same lies. When the time is over the attackers stop, and honest workers finish the run.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Example: cargo build --release && cargo run --release -p nqueens-faults -- mob --seconds 600"
)]
pub struct Mob {
    /// Everything is drawn from it
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// How long the attacks last
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,

    /// Board size
    #[arg(long, default_value_t = 18)]
    n: u32,

    /// Estimated states a job; at 450000, N = 18 has some 20,000 jobs
    #[arg(long, default_value_t = 450_000)]
    job_states: u64,

    /// The honest workers' engine
    #[arg(long, default_value = "portable")]
    kernel: String,

    /// Connections that do nothing
    #[arg(long, default_value_t = 500)]
    idle: u16,

    /// With TLS: strangers don't get far
    #[arg(long)]
    tls: bool,

    /// The program under test [default: `nqueens` beside this one]
    #[arg(long)]
    program: Option<PathBuf>,
}

impl Mob {
    /// Goes through with it.
    ///
    /// # Panics
    /// As soon as something does not hold.
    pub fn lead(self) {
        sandbox::enter();
        let folder = TempDir::new().expect("a temporary folder");
        let program = under_test(self.program.as_deref());
        let board = format!("{} --plan border --job-states {}", self.n, self.job_states);
        let reference = Reference::count(&program, folder.path(), &board);
        let mut random = Random::new(self.seed);
        let waves = 2 + self.seconds / WAVE_SECONDS;
        println!("seed {}: N = {}, {} jobs, {waves} waves", self.seed, self.n, reference.jobs());
        let roles = roles(waves, &mut random);
        open_many_files();
        let mut house = House::open(program, folder, board, &self, &roles);
        house.submit();
        let begun = Instant::now();
        let say = |what: &str| println!("{:>7.1} s: {what}", begun.elapsed().as_secs_f64());
        let needed = if self.tls { strangers::OUTSIDE } else { strangers::INSIDE };
        let scene = Scene::new(begun + Duration::from_secs(self.seconds), needed, WORKERS_MAX);
        // Tasks and connections belong to a runtime.
        let inside = house.runtime.enter();
        let worker = (!self.tls).then_some(&roles[0].token);
        let strangers = strangers::arrive(&scene, &house.address, self.idle.into(), worker);
        let attackers: Vec<_> = roles
            .into_iter()
            .map(|Role { kind, token, number, lie }| {
                let delay = Duration::from_secs(if number <= FIRST { 0 } else { random.below(self.seconds) });
                let (scene, channel, random) = (Arc::clone(&scene), house.channel(), random.fork());
                tokio::spawn(strike(kind, Owner { scene, channel, token, lie, random }, delay))
            })
            .collect();
        drop(inside);
        let mut failures = Vec::new();
        for look in 1.. {
            if !scene.goes_on() {
                break;
            }
            if house.is_done() {
                house.submit();
            }
            if !self.tls {
                failures.extend(strangers::look(&house.address).err());
                assert!(failures.len() <= 1 + look / LOOKS, "nobody honest can look: {failures:?}");
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        for stranger in strangers {
            house.runtime.block_on(stranger).expect("no stranger was surprised");
        }
        for attacker in attackers {
            house.runtime.block_on(attacker).expect("no attacker was surprised");
        }
        say("the attackers are gone");
        assert_eq!((scene.findings(), scene.lacking()), (Vec::new(), Vec::new()));
        if !self.tls {
            assert!(
                strangers::refused_calls(&house.address)
                    >= scene.tally()["wrong tokens of operators, refused"]
            );
        }
        house.finish();
        say("all is counted");
        house.check_honest();
        house.check_confirmed();
        let mut record = house.close(begun);
        record.check(&reference, &HONEST.map(|(_, credential)| credential));
        say("all is exact and confirmed, and nobody honest is distrusted");
        for (what, times) in record.figures().into_iter().chain(scene.tally()) {
            println!("{times:>9} {what}");
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Liar,
    Crowd,
    Impersonator,
    Failer,
    Holder,
    Chatterer,
}

struct Role {
    kind: Kind,
    token: Token,
    number: u64,
    /// By so much its results are wrong.
    lie: u64,
}

/// One who fails, one who holds jobs, and one who calls all the time; and so many waves of the others. Two waves tell the same lie.
fn roles(waves: u64, random: &mut Random) -> Vec<Role> {
    let wave = [Kind::Liar, Kind::Crowd, Kind::Impersonator];
    let kinds =
        [Kind::Failer, Kind::Holder, Kind::Chatterer].into_iter().chain((0..waves).flat_map(|_| wave));
    let two = 2 * wave.len() as u64;
    (1..)
        .zip(kinds)
        .map(|(number, kind)| Role { kind, token: token(random), number, lie: 1 + number / two })
        .collect()
}

fn token(random: &mut Random) -> Token {
    format!("{:016x}{:016x}", random.bits(), random.bits()).parse().expect("32 digits")
}

async fn strike(kind: Kind, owner: Owner, delay: Duration) {
    tokio::time::sleep(delay).await;
    match kind {
        Kind::Liar => owner.lie().await,
        Kind::Crowd => owner.crowd().await,
        Kind::Impersonator => owner.impersonate(&HONEST.map(|(name, _)| name)).await,
        Kind::Failer => owner.fail().await,
        Kind::Holder => owner.hold().await,
        Kind::Chatterer => owner.chatter().await,
    }
}

struct House {
    runtime: Runtime,
    program: PathBuf,
    folder: TempDir,
    board: String,
    coordinator: Background,
    address: String,
    is_encrypted: bool,
    workers: Vec<Background>,
}

impl House {
    fn open(path: PathBuf, folder: TempDir, board: String, mob: &Mob, roles: &[Role]) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        runtime.spawn(end_by_signal());
        let mut lines = Vec::new();
        for Role { kind, token, number, .. } in roles {
            let token = str::from_utf8(token.as_bytes()).expect("ASCII");
            lines.push(format!("{kind:?}-{number} {token}"));
        }
        for (_, credential) in HONEST.iter().step_by(2) {
            let token = format!("the-token-of-the-{credential}");
            write(folder.path(), credential, &token);
            lines.push(format!("{credential} {token}"));
        }
        let tokens = write(folder.path(), "tokens", &lines.join("\n"));
        // Where nobody looks at the page, strangers have the less room.
        let tls = "--tls --tls-host 127.0.0.1";
        let pace = format!("{PACE} {TIGHT} {}", if mob.tls { tls } else { "" });
        let mut command = coordinate(&path, &folder.path().join("queens.db"), "127.0.0.1:0", pace.trim_end());
        // Totals are confirmed as if nobody had published one.
        command.args(["--unpublished", "--workers-max", &WORKERS_MAX.to_string(), "--worker-token-file"]);
        command.arg(tokens).arg("--operator-token-file").arg(write(
            folder.path(),
            "operator",
            OPERATOR_TOKEN,
        ));
        let (coordinator, address) = Background::listening(&mut command);
        let (is_encrypted, workers) = (mob.tls, Vec::new());
        let mut house =
            Self { runtime, program: path, folder, board, coordinator, address, is_encrypted, workers };
        for (name, credential) in HONEST {
            let at = house.at();
            let arguments =
                format!("worker {at} --name {name} --threads 1 --spool {name} --token-file {credential}");
            let mut command = program(&house.program);
            command.current_dir(house.folder.path()).args(arguments.split_whitespace());
            house.workers.push(Background::start(command.args(["--kernel", &mob.kernel])));
        }
        house
    }

    /// Where it is, as arguments.
    fn at(&self) -> String {
        if self.is_encrypted {
            format!("--coordinator https://{} --tls-ca queens.db.pem", self.address)
        } else {
            format!("--coordinator http://{}", self.address)
        }
    }

    /// A connection of an attacker's own.
    fn channel(&self) -> Channel {
        if !self.is_encrypted {
            return connect(&format!("http://{}", self.address), None).expect("an address");
        }
        let pem = std::fs::read(self.folder.path().join("queens.db.pem")).expect("a certificate");
        let tls = ClientTls::new(&pem).expect("a certificate");
        connect(&format!("https://{}", self.address), Some(&tls)).expect("an address")
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join("queens.db")
    }

    /// Has an operator's command succeed.
    fn operator(&self, arguments: &str) -> String {
        self.nqueens(&format!("{arguments} --operator-token-file operator {}", self.at()))
    }

    /// Has a command of the program succeed.
    fn nqueens(&self, arguments: &str) -> String {
        let outcome = nqueens(&self.program, self.folder.path(), arguments);
        assert_eq!(outcome.code, 0, "{}{}", outcome.stdout, outcome.stderr);
        outcome.stdout
    }

    /// Begins a run of which all results are checked.
    fn submit(&self) {
        self.operator(&format!("submit {} --replicate 100", self.board));
    }

    fn is_done(&self) -> bool {
        self.runtime.block_on(open_runs(&self.database())).is_empty()
    }

    /// Lets the honest workers finish the run.
    fn finish(&mut self) {
        while !self.is_done() {
            let before = self.runtime.block_on(results(&self.database()));
            eventually("work goes on", || {
                let more = self.runtime.block_on(results(&self.database())) > before;
                (more || self.is_done()).then_some(())
            });
        }
        for process in self.workers.iter_mut().chain([&mut self.coordinator]) {
            assert!(process.is_running(), "it ended by itself: {}", process.said());
        }
    }

    fn json(&self, command: &str) -> Value {
        serde_json::from_str(&self.operator(&format!("{command} --json"))).expect("JSON")
    }

    /// The coordinator says that each total is confirmed.
    fn check_confirmed(&self) {
        for run in self.json("status")["runs"].as_array().expect("a list") {
            assert_eq!(run["confirmed"], true, "{}", run["standing"]);
        }
    }

    /// All honest machines are there, and trusted.
    fn check_honest(&self) {
        let listed = self.json("workers");
        let listed = listed["workers"].as_array().expect("a list");
        for (name, credential) in HONEST {
            let mut own = listed.iter().filter(|row| row["name"] == name && row["credential"] == credential);
            let worker = own.next().expect("it has registered");
            assert!(worker["distrusted"].is_null() && worker["checks_failed"] == 0, "{worker}");
        }
    }

    /// The most memory that the coordinator has had so far, in MiB.
    fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.coordinator.id()));
        let status = status.expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a size");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") >> 10
    }

    /// Ends all processes, and examines what they leave.
    fn close(&mut self, begun: Instant) -> Record {
        let memory = self.peak_memory();
        assert!(memory < MEMORY_MAX, "{memory} MiB");
        for process in self.workers.iter_mut().chain([&mut self.coordinator]) {
            process.signal("-TERM");
            let outcome = process.end();
            assert_eq!(outcome.code, 0, "{}", outcome.stderr);
            inquest(&outcome.stderr);
        }
        // However many strangers there are, few of them are told of.
        let log = self.coordinator.said();
        let lines = log.lines().filter(|line| line.contains("wrong token on the page")).count() as u64;
        let allowed = 10 + 10 * (begun.elapsed().as_secs() / 60 + 1);
        assert!(lines <= allowed && !log.contains("recv PING ack"), "{lines} lines of {}", log.len());
        self.nqueens("doctor --db queens.db");
        self.runtime.block_on(Record::read(&self.database()))
    }
}

/// Lets this process and those that it starts open as many files as they ever may.
fn open_many_files() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).expect("up to the maximum");
}

/// A file that nobody else can read.
fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).expect("a file");
    path
}
