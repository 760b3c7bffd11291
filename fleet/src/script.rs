//! The script that every allocation runs: one worker, and a record of how it ended.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::state::{AllocationId, AllocationState, QueueEntry};

/// Exit code of a worker that the coordinator refused: another version, a wrong token, untrusted.
const REFUSED: i32 = 5;

/// Bytes at the beginning of a log in which a worker says that it has registered, and at the end, of which the last line
/// tells why it failed.
const LOG_PART: u64 = 8 << 10;

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
        let program = quote(&self.program.to_string_lossy());
        let folder = quote(&self.folder.to_string_lossy());
        let arguments: Vec<_> = self.arguments.iter().map(|argument| quote(argument)).collect();
        let arguments = arguments.join(" ");
        format!(
            "#!/bin/sh
# A worker of an nqueens fleet.
slurm=${{SLURM_ARRAY_JOB_ID:+${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID}}
id=${{1:-${{slurm:-${{PBS_JOBID:-${{LSB_JOBID:-$JOB_ID}}}}}}}}
[ -n \"$id\" ] || {{ echo 'no id of this job' >&2; exit 2; }}
cd {folder} || exit 2
exec >> logs/\"$id\".log 2>&1
rm -f ended/\"$id\"
# The signals that announce an end reach all processes of a job, or this shell alone. The worker drains, this waits.
worker=
told=
trap 'told=1; kill -TERM $worker 2> /dev/null' TERM USR1 USR2
(trap '' USR1 USR2; exec {program} worker {arguments} --spool spool/\"$id\") &
worker=$!
[ -z \"$told\" ] || kill -TERM $worker
while :; do
    wait $worker
    code=$?
    # More than 128 may be a signal that has come here.
    [ $code -gt 128 ] && kill -0 $worker 2> /dev/null || break
done
echo \"$code $(uname -n)\" > ended/\"~$id\" && mv ended/\"~$id\" ended/\"$id\"
# 0: told to go. 3: no more work. 4: time is up. None is a failure.
case $code in 0 | 3 | 4) exit 0 ;; esac
exit $code
"
        )
    }

    /// Writes the script, as a whole: shells read it bit by bit.
    pub fn write(&self) -> io::Result<()> {
        let new = self.folder.join("worker.sh.new");
        fs::write(&new, self.script())?;
        fs::rename(new, self.path())
    }

    /// How the worker of an allocation ended, as its script has recorded it; `None` without a record.
    pub(crate) fn ended(&self, id: &AllocationId) -> Option<QueueEntry> {
        let record = fs::read_to_string(self.folder.join("ended").join(id.as_str())).ok()?;
        let (code, node) = record.trim().split_once(' ')?;
        let code: i32 = code.parse().ok()?;
        let ending = match code {
            0 | 3 | 4 => AllocationState::Completed,
            REFUSED => AllocationState::Refused,
            _ => AllocationState::Failed,
        };
        let mut entry = QueueEntry::new(id.clone(), ending, node);
        if ending != AllocationState::Completed {
            let hint = if code == 137 { " (killed: out of memory?)" } else { "" };
            entry.why = format!("exit code {code}{hint} on {node}: {}", self.last_line(id));
        }
        Some(entry)
    }

    /// Counting threads that the worker has reported, as its log says.
    pub(crate) fn threads(&self, id: &AllocationId) -> Option<u64> {
        let text = self.log_part(id, SeekFrom::Start(0)).ok()?;
        let line = text.lines().rfind(|line| line.contains("registered"))?;
        let (_, rest) = line.split_once("threads=").or_else(|| line.split_once("\"threads\":"))?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    }

    /// The last words in an allocation's log.
    pub(crate) fn last_line(&self, id: &AllocationId) -> String {
        let length = fs::metadata(log(&self.folder, id)).map_or(0, |log| log.len());
        let part = self.log_part(id, SeekFrom::Start(length.saturating_sub(LOG_PART)));
        let text = part.unwrap_or_else(|error| format!("no log: {error}"));
        let line = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("an empty log");
        line.trim().chars().filter(|c| !c.is_control()).take(300).collect()
    }

    fn log_part(&self, id: &AllocationId, from: SeekFrom) -> io::Result<String> {
        let mut file = File::open(log(&self.folder, id))?;
        file.seek(from)?;
        let mut bytes = Vec::new();
        file.take(LOG_PART).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

pub fn log(folder: &Path, id: &AllocationId) -> PathBuf {
    folder.join("logs").join(format!("{id}.log"))
}

/// Text as one word for `sh`.
pub fn quote(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,@%+".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use tempfile::TempDir;

    use super::AllocationState::{Completed, Failed, Refused};
    use super::*;

    /// A folder with a script whose worker is this shell script.
    fn place(worker: &str) -> (TempDir, WorkerScript) {
        let place = tempfile::Builder::new().prefix("it's $HOME").tempdir().expect("a folder");
        let folder = place.path().to_owned();
        for name in ["logs", "ended"] {
            fs::create_dir(folder.join(name)).expect("a folder");
        }
        let program = folder.join("nqueens");
        fs::write(&program, format!("#!/bin/sh\n{worker}\n")).expect("a file");
        assert!(Command::new("chmod").arg("+x").arg(&program).status().expect("chmod").success());
        let arguments = ["a b", "it's", ""].map(str::to_owned).to_vec();
        let script = WorkerScript { program, folder, arguments };
        script.write().expect("a file");
        (place, script)
    }

    /// The exit code of the script, and the record of it.
    fn outcome(script: &WorkerScript) -> (Option<i32>, QueueEntry) {
        let mut command = Command::new("sh");
        command.arg(script.path()).env("SLURM_ARRAY_JOB_ID", "12").env("SLURM_ARRAY_TASK_ID", "3");
        let code = command.status().expect("a shell").code();
        (code, script.ended(&AllocationId::new("12_3").expect("a name")).expect("a record"))
    }

    #[test]
    fn a_script_passes_its_arguments_on_and_records_its_end() {
        let (_place, script) = place("for a in \"$@\"; do echo \"<$a>\"; done");
        let (code, entry) = outcome(&script);
        let said = fs::read_to_string(log(&script.folder, &entry.id)).expect("a log");
        assert_eq!(said, "<worker>\n<a b>\n<it's>\n<>\n<--spool>\n<spool/12_3>\n");
        assert_eq!((code, entry.state, &*entry.why), (Some(0), AllocationState::Completed, ""));
        let endings = [
            (1, 1, Failed),
            (2, 2, Failed),
            (3, 0, Completed),
            (4, 0, Completed),
            (5, 5, Refused),
            (137, 137, Failed),
        ];
        for (worker, code, ending) in endings {
            let (_place, script) = place(&format!("echo why; exit {worker}"));
            let (is, entry) = outcome(&script);
            assert_eq!((is, entry.state), (Some(code), ending), "{worker}");
            assert_eq!(
                entry.why.ends_with(&format!("on {}: why", entry.node)),
                ending != Completed,
                "{entry:?}"
            );
        }
    }

    #[test]
    fn the_shell_waits_for_a_worker_that_drains_and_passes_on_what_reaches_it_alone() {
        let drains = "trap 'echo drained; exit 3' TERM; kill -SIG $PPID; while :; do sleep 0.01; done";
        for signal in ["TERM", "USR2"] {
            let (_place, script) = place(&drains.replace("SIG", signal));
            let (code, entry) = outcome(&script);
            assert_eq!((code, script.last_line(&entry.id)), (Some(0), "drained".to_owned()), "{signal}");
        }
    }

    #[test]
    fn a_worker_reports_its_threads_in_its_log() {
        let line = "2026-11-24T03:00:00Z  INFO nqueens_worker_protocol::conversation: registered worker=7 name=\"n1\" threads=16";
        let (_place, script) = place(&format!("echo begins; echo '{line}'; echo more"));
        let (_, entry) = outcome(&script);
        assert_eq!(script.threads(&entry.id), Some(16));
        assert_eq!(script.threads(&AllocationId::new("1").expect("a name")), None);
    }
}
