//! Processes of this machine, each in a session of its own: they outlive the fleet that started them.
//!
//! ```text
//! DIR/local/7/begun      the line /proc/PID/stat of its shell: a process of this number that began at another time is another
//! DIR/local/7/ended      exit code of its script
//! DIR/local/7/cancelled  it was to end at once
//! ```

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use rustix::process::{Pid, Signal, kill_process_group};

use super::{Backend, QueueEntry, SubmitError};
use crate::decide::SETTLE_S;
use crate::process::{CommandError, without_settings};
use crate::script::{WorkerScript, quote};
use crate::state::{AllocationId, AllocationState, Ending};

/// Ended allocations whose folders are kept.
const KEPT: usize = 200;

/// A fleet of processes on this machine.
pub struct Local {
    worker: WorkerScript,
    /// Those that this process has started; their exit codes are to be collected.
    children: Vec<Child>,
}

impl Local {
    /// A fleet that keeps its records in the folder of `worker`.
    pub fn new(worker: WorkerScript) -> Self {
        Self { worker, children: Vec::new() }
    }

    fn folder(&self, id: &str) -> PathBuf {
        self.worker.folder.join("local").join(id)
    }

    /// The numbers of all allocations there, the latest last.
    fn numbers(&self) -> io::Result<Vec<u64>> {
        let entries = match fs::read_dir(self.worker.folder.join("local")) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut numbers = Vec::new();
        for entry in entries {
            numbers.extend(entry?.file_name().to_str().and_then(|name| name.parse::<u64>().ok()));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// What the shell of an allocation runs.
    fn script(&self, id: &str) -> String {
        let file = |name: &str| quote(&self.folder(id).join(name).to_string_lossy());
        let log = quote(&self.worker.logs().join(format!("{id}.log")).to_string_lossy());
        let (begun, ended, cancelled) = (file("begun"), file("ended"), file("cancelled"));
        // Each file gets its name when it is complete.
        format!(
            "trap : TERM\n\
             read -r stat < /proc/$$/stat && echo \"$stat\" > {begun}.new && mv {begun}.new {begun} || exit 1\n\
             [ -e {cancelled} ] && exit 1\n\
             sh -c {} < /dev/null >> {log} 2>&1\n\
             echo $? > {ended}.new && mv {ended}.new {ended}\n",
            quote(&self.worker.script(id))
        )
    }

    fn start(&mut self) -> io::Result<AllocationId> {
        let id = self.numbers()?.last().map_or(1, |last| last + 1).to_string();
        fs::create_dir_all(self.folder(&id))?;
        let mut command = Command::new("setsid");
        command.args(["sh", "-c", &self.script(&id)]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        without_settings(&mut command);
        self.children.push(command.spawn()?);
        AllocationId::new(&id).ok_or_else(|| io::Error::other("a number is a name"))
    }

    /// Removes the folders of allocations that ended long ago.
    fn prune(&self) -> io::Result<()> {
        let numbers = self.numbers()?;
        for number in numbers.iter().take(numbers.len().saturating_sub(KEPT)) {
            if matches!(self.look(&number.to_string())?.0, AllocationState::Ended(_)) {
                fs::remove_dir_all(self.folder(&number.to_string()))?;
            }
        }
        Ok(())
    }

    /// What an allocation does, and the process of its shell if that lives.
    fn look(&self, id: &str) -> io::Result<(AllocationState, Option<Pid>)> {
        let folder = self.folder(id);
        let Some(begun) = read(&folder.join("begun"))? else {
            let age = SystemTime::now().duration_since(folder.metadata()?.modified()?).unwrap_or_default();
            let is_new = age < Duration::from_secs(SETTLE_S) && !folder.join("cancelled").exists();
            let state =
                if is_new { AllocationState::Queued } else { AllocationState::Ended(Ending::Cancelled) };
            return Ok((state, None));
        };
        let process = live_process(&begun);
        // Read after the look at the process: it may have ended just now.
        let state = match read(&folder.join("ended"))?.as_deref().map(str::trim) {
            Some("0") => AllocationState::Ended(Ending::Completed),
            Some(_) => AllocationState::Ended(Ending::Failed),
            None if process.is_some() => return Ok((AllocationState::Running, process)),
            None if folder.join("cancelled").exists() => AllocationState::Ended(Ending::Cancelled),
            // Nobody was left to write its end: the machine was restarted, or everything was killed.
            None => AllocationState::Ended(Ending::NodeLost),
        };
        Ok((state, None))
    }

    fn signal(&self, ids: &[AllocationId], signal: Signal) -> Result<(), CommandError> {
        for id in ids {
            if let (_, Some(leader)) = self.look(id.as_str()).map_err(unreadable)? {
                // Fails where it has ended by now.
                let _ = kill_process_group(leader, signal);
            }
        }
        Ok(())
    }
}

impl Backend for Local {
    fn submit(&mut self, count: u32) -> Result<Vec<AllocationId>, SubmitError> {
        let mut ids = Vec::new();
        for _ in 0..count {
            match self.start() {
                Ok(id) => ids.push(id),
                // What has begun counts; the rest is tried again.
                Err(_) if !ids.is_empty() => break,
                Err(error) => return Err(SubmitError::Refused(format!("can't start a process: {error}"))),
            }
        }
        Ok(ids)
    }

    fn list(&mut self) -> Result<Vec<QueueEntry>, CommandError> {
        self.children.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        self.prune().map_err(unreadable)?;
        let numbers = self.numbers().map_err(unreadable)?;
        let entries = numbers.iter().map(|number| {
            let id = number.to_string();
            let (state, _) = self.look(&id).map_err(unreadable)?;
            Ok(AllocationId::new(&id).map(|id| QueueEntry { id, state, node: String::new() }))
        });
        entries.filter_map(Result::transpose).collect()
    }

    fn terminate(&mut self, ids: &[AllocationId]) -> Result<(), CommandError> {
        self.signal(ids, Signal::TERM)
    }

    fn end(&mut self, ids: &[AllocationId]) -> Result<(), CommandError> {
        for id in ids {
            fs::write(self.folder(id.as_str()).join("cancelled"), "").map_err(unreadable)?;
        }
        self.signal(ids, Signal::KILL)
    }
}

fn unreadable(error: io::Error) -> CommandError {
    CommandError::Answer { program: "the fleet's folder".to_owned(), problem: error.to_string() }
}

/// The content of a file, if there is one.
fn read(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The process of this line of `/proc/PID/stat`, if it is still the same and no zombie.
fn live_process(begun: &str) -> Option<Pid> {
    let (number, _, started) = parse_stat(begun)?;
    let now = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    let (_, state, started_now) = parse_stat(&now)?;
    (started == started_now && !"ZX".contains(state)).then(|| Pid::from_raw(number)).flatten()
}

/// Number, state and start time in ticks since the machine's start (proc(5)). The name in brackets may hold anything.
fn parse_stat(line: &str) -> Option<(i32, char, u64)> {
    let number = line.split(' ').next()?.parse().ok()?;
    let mut rest = line.rsplit_once(')')?.1.split_whitespace();
    let state = rest.next()?.chars().next()?;
    Some((number, state, rest.nth(18)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_start() {
        let mine = fs::read_to_string("/proc/self/stat").expect("Linux");
        let (number, _, started) = parse_stat(&mine).expect("a line of proc(5)");
        assert_eq!(number.unsigned_abs(), std::process::id());
        assert!(live_process(&mine).is_some());
        let other = mine.replace(&format!(" {started} "), &format!(" {} ", started + 1));
        assert!(live_process(&other).is_none());
        let odd = "7 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        assert_eq!(parse_stat(odd), Some((7, 'S', 4_711)));
        assert_eq!(parse_stat(""), None);
        assert_eq!(parse_stat("7 (a) S 1 2"), None);
    }
}
