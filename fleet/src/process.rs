//! Runs commands of a batch system: they may hang, fail, or say more than anybody can read.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// A command that takes longer is killed. Slurm's own commands give up after 10 seconds by default.
pub const TIMEOUT: Duration = Duration::from_secs(40);

/// The most that a command may print, in bytes: a line of `squeue` for each of 100,000 jobs.
const OUTPUT_MAX: u64 = 16 << 20;

/// The most of its complaint that is kept, in bytes.
const COMPLAINT_MAX: usize = 500;

/// Pause between two looks at a process that has closed its output and not ended.
const POLL: Duration = Duration::from_millis(10);

/// Why a command gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error("{program} does not start: {source}")]
    Start { program: String, source: io::Error },
    #[error("{program}: {complaint}")]
    Failed {
        program: String,
        /// What it printed on stderr, or its exit code.
        complaint: String,
    },
    /// It did not end in time, and was killed.
    #[error("{program} did not answer within {} s", timeout.as_secs())]
    TimedOut { program: String, timeout: Duration },
    /// Its answer is too long or makes no sense.
    #[error("{program}: {problem}")]
    Answer { program: String, problem: String },
}

/// Runs a command to its end and returns what it printed; [`TIMEOUT`] is its time. It has its own process group: Ctrl-C does
/// not end it halfway through a submit.
pub fn run(command: &mut Command, input: Option<&str>) -> Result<String, CommandError> {
    run_within(command, input, TIMEOUT)
}

/// Like [`run`], with a time of the caller's choice.
pub fn run_within(
    command: &mut Command,
    input: Option<&str>,
    timeout: Duration,
) -> Result<String, CommandError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let start = |source| CommandError::Start { program: program.clone(), source };
    without_settings(command);
    command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    let until = Instant::now() + timeout;
    let mut child = command.spawn().map_err(start)?;
    if let (Some(mut pipe), Some(input)) = (child.stdin.take(), input.map(str::to_owned)) {
        // A command that reads nothing is no reason to hang or to fail here: its exit code tells.
        thread::spawn(move || drop(pipe.write_all(input.as_bytes())));
    }
    let (stdout, stderr) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let outcome = finish(&mut child, &stdout, &stderr, until);
    let Ok((code, stdout, stderr)) = outcome else {
        kill(&mut child);
        return Err(CommandError::TimedOut { program, timeout });
    };
    if stdout.len() as u64 > OUTPUT_MAX {
        let problem = format!("it printed more than {OUTPUT_MAX} bytes");
        return Err(CommandError::Answer { program, problem });
    }
    if code == Some(0) {
        return Ok(String::from_utf8_lossy(&stdout).into_owned());
    }
    Err(CommandError::Failed { program, complaint: complaint(&String::from_utf8_lossy(&stderr), code) })
}

/// A command that gets no `NQUEENS_*` variable: these are meant for this process, and could hold a token.
pub(crate) fn without_settings(command: &mut Command) {
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("NQUEENS_")) {
        command.env_remove(name);
    }
}

/// What a failed command has to say, in one line.
fn complaint(stderr: &str, code: Option<i32>) -> String {
    let mut line =
        stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
    line.retain(|c| !c.is_control());
    if line.is_empty() {
        return code.map_or_else(|| "a signal ended it".to_owned(), |code| format!("exit code {code}"));
    }
    if let Some((end, _)) = line.char_indices().find(|(at, _)| *at >= COMPLAINT_MAX) {
        line.truncate(end);
    }
    line
}

type Collected = (Option<i32>, Vec<u8>, Vec<u8>);

fn finish(
    child: &mut Child,
    stdout: &Receiver<Vec<u8>>,
    stderr: &Receiver<Vec<u8>>,
    until: Instant,
) -> Result<Collected, RecvTimeoutError> {
    let left = || until.saturating_duration_since(Instant::now());
    let stdout = stdout.recv_timeout(left())?;
    let stderr = stderr.recv_timeout(left())?;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok((status.code(), stdout, stderr)),
            Ok(None) if !left().is_zero() => thread::sleep(POLL),
            _ => return Err(RecvTimeoutError::Timeout),
        }
    }
}

/// Reads a pipe to its end on a thread of its own, and keeps a byte more than is allowed at most.
fn reader(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (send, receive) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // A pipe that breaks ends here.
            drop(pipe.by_ref().take(OUTPUT_MAX + 1).read_to_end(&mut bytes));
        }
        drop(send.send(bytes));
    });
    receive
}

fn kill(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // Fails where it has ended by now.
        let _ = kill_process_group(group, Signal::KILL);
    }
    drop(child.wait());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn commands_answer_fail_hang_and_flood() {
        assert_eq!(run(&mut shell("cat; echo end"), Some("text\n")).expect("it answers"), "text\nend\n");
        let failed = run(&mut shell("echo no >&2; echo never >&2; exit 3"), None).expect_err("it fails");
        assert_eq!(failed.to_string(), "sh: no; never");
        assert_eq!(run(&mut shell("exit 3"), None).expect_err("it fails").to_string(), "sh: exit code 3");
        let hung = run_within(&mut shell("sleep 1000"), None, Duration::from_millis(50));
        assert!(matches!(hung, Err(CommandError::TimedOut { .. })), "{hung:?}");
        // It has closed its output, and stays.
        let stays = run_within(&mut shell("exec >&- 2>&-; sleep 1000"), None, Duration::from_millis(50));
        assert!(matches!(stays, Err(CommandError::TimedOut { .. })), "{stays:?}");
        let flood = run(&mut shell("head -c 20000000 /dev/zero"), None).expect_err("too much");
        assert!(matches!(flood, CommandError::Answer { .. }), "{flood}");
        let missing = run(&mut Command::new("/no/such/program"), None).expect_err("there is none");
        assert!(matches!(missing, CommandError::Start { .. }), "{missing}");
    }
}
