//! The program in the background: processes that serve, count, and are killed.

use std::io::{BufRead, BufReader, Read};
use std::net::Ipv4Addr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

use crate::{Outcome, Place};

pub(crate) const WORKER_TOKEN: &str = "token-for-workers-0123456789";
pub(crate) const OPERATOR_TOKEN: &str = "token-for-operators-0123456789";

/// What a test waits for comes within this time, however busy the machine is; or it never comes.
const PATIENCE: Duration = Duration::from_mins(3);

/// Waits until there is an answer.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = look() {
            return answer;
        }
        assert!(begun.elapsed() < PATIENCE, "it never came to this: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A process in the background, killed when the test is over, however that ends.
///
/// What it says goes to a file: a pipe that nobody reads would hold it up.
pub(crate) struct Background {
    child: Child,
    log: NamedTempFile,
}

impl Background {
    pub(crate) fn start(command: &mut Command) -> Self {
        let log = NamedTempFile::new().expect("a temporary file");
        command.stdout(Stdio::piped()).stderr(log.reopen().expect("it is there"));
        Self { child: command.spawn().expect("the program starts"), log }
    }

    /// Sends it a signal, as `kill` names it: `-TERM`.
    pub(crate) fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.id().to_string()]).status();
        assert!(status.expect("kill").success());
    }

    /// What the system calls it.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it prints from now on; to be asked for once.
    pub(crate) fn stdout(&mut self) -> BufReader<ChildStdout> {
        BufReader::new(self.child.stdout.take().expect("nobody reads it yet"))
    }

    /// Whether it has not ended.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_none()
    }

    /// Everything that it has said so far.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(self.log.path()).expect("text")
    }

    /// Waits until it ends.
    pub(crate) fn end(&mut self) -> Outcome {
        let mut stdout = String::new();
        if let Some(mut pipe) = self.child.stdout.take() {
            pipe.read_to_string(&mut stdout).expect("text");
        }
        let code = self.child.wait().expect("a child").code().expect("no signal ended it");
        Outcome { code, stdout, stderr: self.said() }
    }

    /// `kill -9`: it has no chance to say or do anything. What it had said until then.
    pub(crate) fn kill(&mut self) -> String {
        self.child.kill().expect("a child");
        self.child.wait().expect("a child");
        self.said()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // Fails where it has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A coordinator that serves.
pub(crate) struct Coordinator {
    pub(crate) process: Background,
    pub(crate) address: String,
}

impl Coordinator {
    /// On a free port of this machine, with `queens.db`.
    pub(crate) fn start(place: &Place, variables: &[(&str, &str)], more: &str) -> Self {
        Self::start_at(&format!("{}:0", own_address()), place, variables, more)
    }

    /// On this address, with `queens.db`.
    pub(crate) fn start_at(address: &str, place: &Place, variables: &[(&str, &str)], more: &str) -> Self {
        let arguments = format!("coordinator --db queens.db --listen {address} {more}");
        Self::of(place.command(&arguments).envs(variables.iter().copied()))
    }

    /// By this command.
    pub(crate) fn of(command: &mut Command) -> Self {
        let mut process = Background::start(command);
        let mut line = String::new();
        process.stdout().read_line(&mut line).expect("text");
        let Some(address) = line.trim_end().strip_prefix("listening on ") else {
            panic!("'{line}': {}", process.end().stderr)
        };
        Self { address: address.to_owned(), process }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A worker of one thread, on the spool of its name.
    pub(crate) fn worker(&self, place: &Place, name: &str, variables: &[(&str, &str)]) -> Background {
        self.worker_on(place, name, name, variables)
    }

    /// A worker of one thread, on a spool that another may have used before.
    pub(crate) fn worker_on(
        &self,
        place: &Place,
        name: &str,
        spool: &str,
        variables: &[(&str, &str)],
    ) -> Background {
        let arguments = self.worker_arguments("http", name, spool);
        Background::start(place.command(&arguments).envs(variables.iter().copied()))
    }

    /// What starts such a worker.
    pub(crate) fn worker_arguments(&self, scheme: &str, name: &str, spool: &str) -> String {
        let url = format!("{scheme}://{}", self.address);
        format!("worker --coordinator {url} --name {name} --spool {spool} --threads 1 --kernel scalar")
    }

    pub(crate) fn stop(mut self) -> Outcome {
        self.process.signal("-TERM");
        self.process.end()
    }
}

/// A loopback address that no other test's process uses: while a coordinator is away, nobody can take its port.
pub(crate) fn own_address() -> Ipv4Addr {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, high | 0x80, middle, low)
}
