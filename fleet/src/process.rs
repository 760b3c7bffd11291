//! Runs commands of a batch system: they may hang, fail, or say more than anybody can read.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// A command of a batch system that takes longer is killed. Slurm's own give up after 10 seconds by default.
pub const TIMEOUT: Duration = Duration::from_secs(40);

/// The most that a command may print, in bytes: a line of `squeue` for each of 100,000 jobs.
const OUTPUT_MAX: u64 = 16 << 20;

/// Why a command gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// It did not start, or says itself that it has failed.
    #[error("{0}")]
    Failed(String),
    /// Nobody knows what it has done: it took too long, or its answer makes no sense.
    #[error("{0}")]
    Unclear(String),
}

/// Runs a command to its end and returns what it printed. It has its own process group: Ctrl-C does not end it halfway through
/// a submit. It gets no `NQUEENS_*` variable: these are meant for this process, and could hold a token.
pub fn run(command: &mut Command, timeout: Duration) -> Result<String, CommandError> {
    let failed = |error: io::Error| CommandError::Failed(error.to_string());
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("NQUEENS_")) {
        command.env_remove(name);
    }
    let until = Instant::now() + timeout;
    // Files, as a pipe may stay open in somebody else's hands.
    let (mut stdout, mut stderr) =
        (tempfile::tempfile().map_err(failed)?, tempfile::tempfile().map_err(failed)?);
    let copies = (stdout.try_clone().map_err(failed)?, stderr.try_clone().map_err(failed)?);
    command.process_group(0).stdin(Stdio::null()).stdout(copies.0).stderr(copies.1);
    let mut child = command.spawn().map_err(|error| {
        CommandError::Failed(format!("{} does not start: {error}", command.get_program().display()))
    })?;
    let is_long = |file: &File| file.metadata().is_ok_and(|file| file.len() > OUTPUT_MAX);
    let status = loop {
        let status = child.try_wait().map_err(failed)?;
        let problem = if is_long(&stdout) || is_long(&stderr) {
            "too long an answer".to_owned()
        } else if let Some(status) = status {
            break status;
        } else if Instant::now() >= until {
            format!("no answer within {} s", timeout.as_secs())
        } else {
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            // Fails where it has ended by now.
            let _ = kill_process_group(group, Signal::KILL);
        }
        drop(child.wait());
        return Err(CommandError::Unclear(problem));
    };
    if status.success() {
        return text(&mut stdout).map_err(|error| CommandError::Unclear(error.to_string()));
    }
    let said = text(&mut stderr).unwrap_or_default();
    let lines: Vec<_> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let said = lines.join("; ").chars().filter(|c| !c.is_control()).take(500).collect::<String>();
    Err(CommandError::Failed(if said.is_empty() { status.to_string() } else { said }))
}

fn text(file: &mut File) -> io::Result<String> {
    file.rewind()?;
    let mut bytes = Vec::new();
    file.take(OUTPUT_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, timeout: Duration) -> Result<String, CommandError> {
        run(Command::new("sh").args(["-c", script]), timeout)
    }

    #[test]
    fn commands_answer_fail_hang_and_flood() {
        assert_eq!(shell("cat; echo end", TIMEOUT).expect("it answers"), "end\n");
        let failed = |script: &str| match shell(script, TIMEOUT) {
            Err(CommandError::Failed(said)) => said,
            other => panic!("{other:?}"),
        };
        assert_eq!(failed("echo no >&2; echo never >&2; exit 3"), "no; never");
        assert_eq!(failed("exit 3"), "exit status: 3");
        let hung = |script: &str| match shell(script, Duration::from_millis(50)) {
            Err(CommandError::Unclear(said)) => said,
            other => panic!("{other:?}"),
        };
        assert_eq!(hung("sleep 1000"), "no answer within 0 s");
        // It has closed its output, and stays.
        hung("exec >&- 2>&-; sleep 1000");
        // What it leaves behind does not hold it up.
        assert_eq!(shell("sleep 2 & echo end", TIMEOUT).expect("it answers"), "end\n");
        let flood = shell("head -c 20000000 /dev/zero", TIMEOUT).expect_err("too much");
        assert_eq!(flood.to_string(), "too long an answer");
        let flood = shell("cat /dev/zero >&2", TIMEOUT).expect_err("too much");
        assert_eq!(flood.to_string(), "too long an answer");
        let missing = run(&mut Command::new("/no/such/program"), TIMEOUT).expect_err("there is none");
        assert!(matches!(missing, CommandError::Failed(_)), "{missing}");
    }
}
