//! Processes in the background, to be signalled and killed.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

/// What is waited for comes within this time, however busy the machine is; or it never comes.
const PATIENCE: Duration = Duration::from_mins(10);

/// Waits until there is an answer.
///
/// # Panics
/// If there is none in ten minutes.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = look() {
            return answer;
        }
        assert!(begun.elapsed() < PATIENCE, "it never came to this: {what}");
        // Who asks all the time takes the processor from those who are asked about.
        let pause = begun.elapsed() / 50;
        std::thread::sleep(pause.clamp(Duration::from_millis(10), Duration::from_millis(500)));
    }
}

/// A program with no `NQUEENS_*` variables.
pub fn program(path: &Path) -> Command {
    let mut command = Command::new(path);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("NQUEENS_")) {
        command.env_remove(name);
    }
    command
}

pub struct Outcome {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    pub fn of(command: &mut Command) -> Self {
        let output = command.output().expect("the program starts");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        let code = output.status.code().expect("no signal ended it");
        Self { code, stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// What it has said on stderr without lines of progress: on a busy machine a short run may come to some.
    pub fn said(&self) -> String {
        let is_progress = |line: &&str| {
            let n = line.strip_prefix("N=").and_then(|line| line.split_once(' '));
            n.is_some_and(|(n, _)| n.parse::<u32>().is_ok())
        };
        self.stderr.split_inclusive('\n').filter(|line| !is_progress(line)).collect()
    }
}

/// A process in the background, killed when it is no longer wanted, however that comes.
///
/// What it says goes to a file: a pipe that nobody reads would hold it up.
pub struct Background {
    child: Child,
    log: NamedTempFile,
}

impl Background {
    pub fn start(command: &mut Command) -> Self {
        let log = NamedTempFile::new().expect("a temporary file");
        command.stdout(Stdio::piped()).stderr(log.reopen().expect("it is there"));
        Self { child: command.spawn().expect("the program starts"), log }
    }

    /// A coordinator, when it has said where it listens; and that.
    ///
    /// # Panics
    /// If it says anything else.
    pub fn listening(command: &mut Command) -> (Self, String) {
        let mut process = Self::start(command);
        let mut line = String::new();
        process.stdout().read_line(&mut line).expect("text");
        match line.trim_end().strip_prefix("listening on ") {
            Some(address) => (process, address.to_owned()),
            None => panic!("a coordinator does not start: '{line}' {}", process.end().stderr),
        }
    }

    /// Sends it a signal, as `kill` names it: `-TERM`.
    pub fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.id().to_string()]).status();
        assert!(status.expect("kill").success());
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it prints from now on; to be asked for once.
    pub fn stdout(&mut self) -> BufReader<ChildStdout> {
        BufReader::new(self.child.stdout.take().expect("nobody reads it yet"))
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_none()
    }

    /// Everything that it has said so far.
    pub fn said(&self) -> String {
        std::fs::read_to_string(self.log.path()).expect("text")
    }

    pub fn end(&mut self) -> Outcome {
        let mut stdout = String::new();
        if let Some(mut pipe) = self.child.stdout.take() {
            pipe.read_to_string(&mut stdout).expect("text");
        }
        let code = self.child.wait().expect("a child").code().expect("no signal ended it");
        Outcome { code, stdout, stderr: self.said() }
    }

    /// `kill -9`: it has no chance to say or do anything. What it had said until then.
    pub fn kill(&mut self) -> String {
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
        if std::thread::panicking() {
            eprintln!("process {} had said:\n{}", self.id(), self.said());
        }
    }
}
