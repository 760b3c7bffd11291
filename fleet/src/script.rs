//! The script that every allocation runs: one worker, and a record of how it ended.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::state::{Allocation, AllocationState};

/// What the workers of a fleet are started with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerScript {
    pub program: PathBuf,
    /// The fleet's folder, on storage that all nodes share.
    pub folder: PathBuf,
    /// Arguments after `nqueens worker`, without `--spool`.
    pub arguments: Vec<String>,
}

impl WorkerScript {
    pub fn path(&self) -> PathBuf {
        self.folder.join("worker.sh")
    }

    /// The name of this fleet's jobs: whoever has the same folder is the same fleet. Short, as Grid Engine shows 10 letters.
    pub fn name(&self) -> String {
        let fnv = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        let hash = self.folder.to_string_lossy().bytes().fold(0x811c_9dc5, fnv);
        format!("nq{hash:08x}")
    }

    /// The script, for `sh`. The allocation's id is its first argument, or else what the batch system says of itself. A
    /// requeued allocation has the same, and with it the same spool.
    pub fn script(&self) -> String {
        let (program, folder) = (self.program.to_string_lossy(), self.folder.to_string_lossy());
        let arguments = self.arguments.iter().map(String::as_str);
        let command = quote([&*program, "worker"].into_iter().chain(arguments));
        let (folder, rest) = (quote([&*folder]), include_str!("worker.sh"));
        format!("#!/bin/sh\nworker() {{ exec {command} \"$@\"; }}\ncd {folder} || exit 2\n{rest}")
    }

    /// How the worker of an allocation ended, as its script has recorded it; `None` without a record.
    pub(crate) fn ended(&self, id: &str) -> Option<Allocation> {
        let record = fs::read_to_string(self.folder.join("ended").join(id)).ok()?;
        let (code, node) = record.trim().split_once(' ')?;
        let code: i32 = code.parse().ok()?;
        let ending = match code {
            0 => AllocationState::Completed,
            // Another version, a wrong token, untrusted.
            5 => AllocationState::Refused,
            _ => AllocationState::Failed,
        };
        let mut entry = Allocation { state: ending, node: node.to_owned(), ..Allocation::default() };
        if ending != AllocationState::Completed {
            let hint = if code == 137 { " (killed: out of memory?)" } else { "" };
            entry.why = format!("exit code {code}{hint} on {node}: {}", self.last_line(id));
        }
        Some(entry)
    }

    /// The last words in an allocation's log.
    pub(crate) fn last_line(&self, id: &str) -> String {
        let text = log_end(&log(&self.folder, id)).unwrap_or_else(|error| format!("no log: {error}"));
        let line = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("an empty log");
        line.trim().chars().filter(|c| !c.is_control()).take(300).collect()
    }
}

fn log_end(path: &Path) -> io::Result<String> {
    let most = 8 << 10;
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(file.metadata()?.len().saturating_sub(most)))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

pub fn log(folder: &Path, id: &str) -> PathBuf {
    folder.join("logs").join(format!("{id}.log"))
}

/// Arguments and paths as words for `sh`.
pub fn quote<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    shlex::try_join(words).expect("neither has a zero byte")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use tempfile::TempDir;

    use super::AllocationState::{Failed, Refused};
    use super::*;

    /// A folder with a script whose worker is this shell script.
    fn place(worker: &str) -> (TempDir, WorkerScript) {
        let place = tempfile::Builder::new().prefix("it's $HOME").tempdir().expect("a folder");
        let folder = place.path().to_owned();
        for name in ["logs", "ended", "spool"] {
            fs::create_dir(folder.join(name)).expect("a folder");
        }
        let program = folder.join("nqueens");
        fs::write(&program, format!("#!/bin/sh\n{worker}\n")).expect("a file");
        assert!(Command::new("chmod").arg("+x").arg(&program).status().expect("chmod").success());
        let arguments = ["a b", "it's", ""].map(str::to_owned).to_vec();
        let script = WorkerScript { program, folder, arguments };
        fs::write(script.path(), script.script()).expect("a file");
        (place, script)
    }

    /// The exit code of the script, and the record of it.
    fn outcome(script: &WorkerScript) -> (Option<i32>, Allocation) {
        let mut command = Command::new("sh");
        command.arg(script.path()).env("SLURM_ARRAY_JOB_ID", "12").env("SLURM_ARRAY_TASK_ID", "3");
        let code = command.status().expect("a shell").code();
        (code, script.ended("12_3").expect("a record"))
    }

    #[test]
    fn a_script_passes_its_arguments_on_and_records_its_end() {
        let (_place, script) = place("for a in \"$@\"; do echo \"<$a>\"; done");
        let (code, entry) = outcome(&script);
        let said = fs::read_to_string(log(&script.folder, "12_3")).expect("a log");
        assert_eq!(said, "<worker>\n<a b>\n<it's>\n<>\n<--spool>\n<spool/12_3>\n");
        assert_eq!((code, entry.state, &*entry.why), (Some(0), AllocationState::Completed, ""));
        for (code, ending) in [(1, Failed), (2, Failed), (5, Refused), (137, Failed)] {
            let (_place, script) = place(&format!("echo why; exit {code}"));
            let (is, entry) = outcome(&script);
            assert_eq!((is, entry.state), (Some(code), ending), "{code}");
            assert!(entry.why.ends_with(&format!("on {}: why", entry.node)), "{entry:?}");
        }
    }

    #[test]
    fn a_spool_with_results_stays() {
        for (results, stays) in [("", false), ("r", true)] {
            let (_place, script) =
                place(&format!("mkdir spool/12_3; printf '{results}' > spool/12_3/results"));
            outcome(&script);
            assert_eq!(script.folder.join("spool/12_3").exists(), stays, "{results}");
        }
    }

    #[test]
    fn the_shell_waits_for_a_worker_that_drains_and_passes_on_what_reaches_it_alone() {
        let drains = "trap 'echo drained; exit 0' TERM; kill -SIG $PPID; while :; do sleep 0.01; done";
        for signal in ["TERM", "USR2"] {
            let (_place, script) = place(&drains.replace("SIG", signal));
            let (code, _) = outcome(&script);
            assert_eq!((code, script.last_line("12_3")), (Some(0), "drained".to_owned()), "{signal}");
        }
    }
}
