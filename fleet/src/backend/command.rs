//! Any batch system, by three shell commands. Tried with Grid Engine 8.1.9; `docs/fleet.md` has them for others.
//!
//! | command | its environment | its answer |
//! |---|---|---|
//! | submit | `SCRIPT`, `NAME` | submits one job of this name that runs the script; prints its id as the last line's first word |
//! | list | `NAME` | prints a line for each job of this name: id, state, node |
//! | cancel | `IDS` | removes these jobs; where that sends a signal first, workers drain |

use std::process::Command;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{Backend, SubmitError, submit_error};
use crate::process::{CommandError, run};
use crate::script::WorkerScript;
use crate::state::{AllocationId, AllocationState, QueueEntry};

/// Submits go on for so long, one allocation each; the rest is for the next look.
const SUBMIT_FOR: Duration = Duration::from_secs(10);

/// Jobs in one call: their ids have to fit into the environment.
const CANCELLED_AT_ONCE: usize = 500;

/// The commands, for `sh`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Templates {
    pub submit: String,
    pub list: String,
    pub cancel: String,
}

pub struct CommandBackend {
    worker: WorkerScript,
    templates: Templates,
}

impl CommandBackend {
    pub fn new(worker: WorkerScript, templates: Templates) -> Self {
        Self { worker, templates }
    }

    pub fn describe(&self) -> String {
        let (path, name) = (self.worker.path(), self.worker.name());
        let script = self.worker.script();
        format!("SCRIPT={} NAME={name}\n{}\n\n{script}", path.display(), self.templates.submit)
    }

    fn run(&self, template: &str, ids: &str) -> Result<String, CommandError> {
        let mut shell = Command::new("sh");
        shell.args(["-c", template]).env("SCRIPT", self.worker.path()).env("NAME", self.worker.name());
        run(shell.env("IDS", ids), None)
    }

    fn submit_one(&self) -> Result<AllocationId, SubmitError> {
        let answer = self.run(&self.templates.submit, "").map_err(submit_error)?;
        let id = answer.lines().last().and_then(|line| AllocationId::new(line.split_whitespace().next()?));
        id.ok_or_else(|| {
            SubmitError::Uncertain(format!("the submit command printed {answer:?}, no id of a job"))
        })
    }
}

impl Backend for CommandBackend {
    fn submit(&mut self, count: u32) -> Result<Vec<AllocationId>, SubmitError> {
        let until = Instant::now() + SUBMIT_FOR;
        let mut ids = Vec::new();
        while ids.len() < count as usize && (ids.is_empty() || Instant::now() < until) {
            match self.submit_one() {
                Ok(id) => ids.push(id),
                // What has begun counts; the rest is tried again.
                Err(SubmitError::Limit(_) | SubmitError::Refused(_)) if !ids.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(ids)
    }

    fn list(&mut self) -> Result<Vec<QueueEntry>, CommandError> {
        let bad = |problem| CommandError::Answer { program: "the list command".to_owned(), problem };
        let text = self.run(&self.templates.list, "")?;
        let mut entries = parse_queue(&text).map_err(bad)?;
        // Most batch systems forget a job when it ends. Its script has not.
        let mut ended = self.worker.all_ended().map_err(|error| bad(error.to_string()))?;
        ended.retain(|ended| entries.iter().all(|entry| entry.id != ended.id));
        entries.extend(ended);
        Ok(entries)
    }

    fn terminate(&mut self, ids: &[AllocationId]) -> Result<(), CommandError> {
        self.end(ids)
    }

    fn end(&mut self, ids: &[AllocationId]) -> Result<(), CommandError> {
        for ids in ids.chunks(CANCELLED_AT_ONCE) {
            let ids: Vec<_> = ids.iter().map(AllocationId::as_str).collect();
            self.run(&self.templates.cancel, &ids.join(" "))?;
        }
        Ok(())
    }

    fn threads(&mut self, id: &AllocationId) -> Option<u64> {
        self.worker.threads(id)
    }
}

/// Lines of an id, a state and perhaps a node. Ended jobs are left out: their scripts tell how.
fn parse_queue(text: &str) -> Result<Vec<QueueEntry>, String> {
    let mut entries = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let mut words = line.split_whitespace();
        let id = words.next().and_then(AllocationId::new);
        let (Some(id), Some(state)) = (id, words.next()) else {
            return Err(format!(
                "a line without id and state: {:?}",
                line.chars().take(200).collect::<String>()
            ));
        };
        if let Some(state) = parse_state(state) {
            entries.push(QueueEntry::new(id, state, words.next().unwrap_or_default()));
        }
    }
    Ok(entries)
}

/// States of `qstat` (Grid Engine, PBS), `bjobs` (LSF) and `condor_q` (`JobStatus`); `None` for a job that has ended.
fn parse_state(name: &str) -> Option<AllocationState> {
    Some(match name {
        "qw" | "hqw" | "Rq" | "Q" | "H" | "W" | "PEND" | "PSUSP" | "1" | "queued" => AllocationState::Queued,
        "Eqw" | "5" | "held" => AllocationState::Held,
        "t" | "r" | "Rr" | "Rt" | "hr" | "R" | "B" | "RUN" | "2" | "6" | "running" => {
            AllocationState::Running
        }
        "s" | "S" | "T" | "Rs" | "USUSP" | "SSUSP" | "7" | "suspended" => AllocationState::Suspended,
        "dr" | "dt" | "dRr" | "E" | "leaving" => AllocationState::Leaving,
        "X" | "F" | "C" | "DONE" | "EXIT" | "3" | "4" | "ended" => return None,
        _ => AllocationState::Unknown,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::AllocationState::{Queued, Running, Unknown};
    use crate::state::Ending;

    fn backend(folder: &std::path::Path, submit: &str, list: &str) -> CommandBackend {
        for name in ["logs", "ended"] {
            std::fs::create_dir_all(folder.join(name)).expect("a folder");
        }
        let worker =
            WorkerScript { program: "nqueens".into(), folder: folder.to_owned(), arguments: Vec::new() };
        let [submit, list] = [submit, list].map(str::to_owned);
        CommandBackend::new(worker, Templates { submit, list, cancel: "echo $IDS > cancelled".to_owned() })
    }

    #[test]
    fn ids_come_from_the_last_line() {
        let place = tempfile::tempdir().expect("a folder");
        let submit = |template: &str, count| backend(place.path(), template, "").submit(count);
        let id = |name: &str| AllocationId::new(name).expect("a name");
        assert_eq!(submit("echo welcome; echo 7.server $NAME", 1), Ok(vec![id("7.server")]));
        assert!(matches!(submit("true", 1), Err(SubmitError::Uncertain(_))));
        assert!(matches!(submit("echo no such queue >&2; exit 1", 1), Err(SubmitError::Refused(_))));
        assert!(matches!(submit("echo job limit >&2; exit 1", 1), Err(SubmitError::Limit(_))));
        let counter = place.path().join("counter");
        let counts = format!("echo x >> {0}; n=$(wc -l < {0}); [ $n -le 3 ] && echo $n", counter.display());
        assert_eq!(submit(&counts, 5), Ok(["1", "2", "3"].map(id).to_vec()), "what has begun counts");
    }

    #[test]
    fn what_is_listed_comes_before_what_scripts_have_recorded() {
        let place = tempfile::tempdir().expect("a folder");
        let mut backend = backend(place.path(), "", "printf '1 r n1\\n2 qw\\n3 F\\n4 Zz\\n'");
        for (id, code) in [("1", 0), ("3", 7), ("5", 3)] {
            std::fs::write(place.path().join("ended").join(id), format!("{code} n2\n")).expect("a file");
        }
        let entries = backend.list().expect("a list");
        let states: Vec<_> = entries.iter().map(|entry| (entry.id.as_str(), entry.state)).collect();
        let ended = |ending| AllocationState::Ended(ending);
        assert_eq!(states[..3], [("1", Running), ("2", Queued), ("4", Unknown)]);
        assert!(states[3..].contains(&("3", ended(Ending::Failed))), "{states:?}");
        assert!(states[3..].contains(&("5", ended(Ending::Completed))), "{states:?}");
        backend.templates.list = "echo error".to_owned();
        backend.list().expect_err("no queue");
    }
}
