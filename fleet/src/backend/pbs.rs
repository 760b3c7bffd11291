//! PBS Professional (`OpenPBS`), by `qsub`, `qselect`, `qstat`, `qsig` and `qdel`.

use std::collections::BTreeMap;
use std::process::Command;

use serde::Deserialize;

use super::{Backend, QueueEntry, SubmitError};
use crate::process::{CommandError, run};
use crate::script::{WorkerScript, command_line, quote};
use crate::state::{AllocationId, AllocationState, Ending};

/// The variable of a job that holds its fleet's folder. PBS has no comment of the user's.
const MARK: &str = "NQUEENS_FLEET";

/// What PBS says of a job that it holds by itself, after 20 attempts to start it.
const HELD: &str = "too many failed attempts";

/// What PBS makes the name of a job of.
const ID: &str = "$PBS_JOBID";

/// A fleet in PBS.
pub struct Pbs {
    worker: WorkerScript,
    job_name: String,
    /// Time limit in seconds.
    time_limit: Option<u64>,
    /// The operator's own options of `qsub`.
    options: Vec<String>,
}

impl Pbs {
    /// A fleet whose jobs have this name. `options` go to `qsub` as they are. An error if the folder has a name that
    /// `qsub -v` would take apart.
    pub fn new(
        worker: WorkerScript,
        job_name: String,
        time_limit: Option<u64>,
        options: Vec<String>,
    ) -> Result<Self, String> {
        let folder = worker.folder.to_string_lossy();
        if !folder.chars().all(|c| c.is_ascii_alphanumeric() || "_-./+@".contains(c)) {
            return Err(format!(
                "PBS needs a folder without blanks, commas and quotes in its name, not {folder}"
            ));
        }
        Ok(Self { worker, job_name, time_limit, options })
    }

    fn submit_arguments(&self) -> Vec<String> {
        let mut arguments = vec![
            "-N".to_owned(),
            self.job_name.clone(),
            "-v".to_owned(),
            format!("{MARK}={}", self.worker.folder.display()),
            // The script writes its log itself: PBS would copy it at the end only.
            "-j".to_owned(),
            "oe".to_owned(),
            "-o".to_owned(),
            "/dev/null".to_owned(),
        ];
        if let Some(seconds) = self.time_limit {
            arguments.extend(["-l".to_owned(), format!("walltime={seconds}")]);
        }
        arguments.extend(self.options.iter().cloned());
        arguments
    }

    fn script(&self) -> String {
        let logs = quote(&self.worker.logs().to_string_lossy());
        self.worker.script(ID).replacen('\n', &format!("\nexec >> {logs}/\"{ID}\".log 2>&1\n"), 1)
    }

    /// The command and the script of one allocation, for people.
    pub fn describe(&self) -> String {
        let command = command_line("qsub", &self.submit_arguments());
        format!("{command} << 'END'\n{}END", self.script())
    }

    fn submit_one(&self) -> Result<AllocationId, SubmitError> {
        let mut command = Command::new("qsub");
        let answer = run(command.args(self.submit_arguments()), Some(&self.script()));
        let answer = answer.map_err(|error| match error {
            CommandError::Failed { complaint, .. } => SubmitError::Refused(complaint),
            CommandError::Start { .. } => SubmitError::Refused(error.to_string()),
            other => SubmitError::Uncertain(other.to_string()),
        })?;
        let id = answer.lines().last().and_then(|line| AllocationId::new(line.trim()));
        id.ok_or_else(|| SubmitError::Uncertain(format!("qsub said {answer:?}")))
    }

    fn tell(program: &str, options: &[&str], ids: &[AllocationId]) -> Result<(), CommandError> {
        // One at a time: the first job that has ended would end the call.
        let mut failed = None;
        for id in ids {
            if let Err(error) = run(Command::new(program).args(options).arg(id.as_str()), None) {
                match error {
                    CommandError::Failed { complaint, .. } if has_ended(&complaint) => {}
                    other => failed = Some(other),
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }
}

/// Whether a command failed because its job is gone, or has no processes yet.
fn has_ended(complaint: &str) -> bool {
    ["Unknown Job", "has finished", "invalid for state"].iter().any(|why| complaint.contains(why))
}

impl Backend for Pbs {
    fn submit(&mut self, count: u32) -> Result<Vec<AllocationId>, SubmitError> {
        let mut ids = Vec::new();
        for _ in 0..count {
            match self.submit_one() {
                Ok(id) => ids.push(id),
                // What was taken counts; the rest is tried again.
                Err(SubmitError::Refused(_)) if !ids.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(ids)
    }

    fn list(&mut self) -> Result<Vec<QueueEntry>, CommandError> {
        let ids = run(Command::new("qselect").args(["-x", "-N", &self.job_name]), None)?;
        let ids: Vec<_> = ids.split_whitespace().collect();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let text = run(Command::new("qstat").args(["-x", "-f", "-F", "json"]).args(ids), None)?;
        parse_queue(&text, &self.worker.folder.to_string_lossy())
            .map_err(|problem| CommandError::Answer { program: "qstat".to_owned(), problem })
    }

    fn terminate(&mut self, ids: &[AllocationId]) -> Result<(), CommandError> {
        Self::tell("qsig", &["-s", "SIGTERM"], ids)
    }

    fn end(&mut self, ids: &[AllocationId]) -> Result<(), CommandError> {
        Self::tell("qdel", &[], ids)
    }
}

/// The part of `qstat -f -F json` that a fleet reads.
#[derive(Deserialize)]
struct JobList {
    #[serde(rename = "Jobs", default)]
    jobs: BTreeMap<String, PbsJob>,
}

#[derive(Deserialize)]
struct PbsJob {
    job_state: String,
    substate: Option<i64>,
    comment: Option<String>,
    #[serde(rename = "Exit_status")]
    exit_status: Option<i64>,
    exec_host: Option<String>,
    #[serde(rename = "Variable_List", default)]
    variables: BTreeMap<String, serde_json::Value>,
}

/// The jobs of the fleet in this folder.
fn parse_queue(text: &str, folder: &str) -> Result<Vec<QueueEntry>, String> {
    let list: JobList = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let ours = list
        .jobs
        .into_iter()
        .filter(|(_, job)| job.variables.get(MARK).and_then(serde_json::Value::as_str) == Some(folder));
    let entries = ours.map(|(id, job)| {
        let state = parse_state(&job);
        let node = job.exec_host.as_deref().unwrap_or_default().split('/').next().unwrap_or_default();
        let node = node.chars().take(100).collect();
        AllocationId::new(&id).map(|id| QueueEntry { id, state, node }).ok_or_else(|| format!("a job {id:?}"))
    });
    entries.collect()
}

/// States of qstat(1B); how a finished job ended is in `substate` and `Exit_status` (`job.h` of PBS).
fn parse_state(job: &PbsJob) -> AllocationState {
    match (job.job_state.as_str(), job.substate, job.exit_status) {
        ("H", ..) if job.comment.as_ref().is_some_and(|comment| comment.contains(HELD)) => {
            AllocationState::Held
        }
        ("Q" | "H" | "W" | "T", ..) => AllocationState::Queued,
        ("R" | "B", ..) => AllocationState::Running,
        ("S" | "U", ..) => AllocationState::Suspended,
        ("E", ..) => AllocationState::Leaving,
        ("F" | "X", _, Some(0)) => AllocationState::Ended(Ending::Completed),
        ("F" | "X", _, Some(-29)) => AllocationState::Ended(Ending::TimeLimit),
        // 91: deleted; without an exit code it never ran.
        ("F" | "X", Some(91), _) | ("F" | "X", _, None) => AllocationState::Ended(Ending::Cancelled),
        // PBS gave up the attempt: files, node or start-up of the job.
        ("F" | "X", _, Some(..0)) => AllocationState::Ended(Ending::NodeLost),
        ("F" | "X", ..) => AllocationState::Ended(Ending::Failed),
        _ => AllocationState::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue() {
        let text = include_str!("../../tests/recorded/qstat.json");
        let entries = parse_queue(text, "/home/ada/nqueens-fleet").expect("a queue");
        let entries: Vec<_> = entries
            .iter()
            .map(|entry| format!("{} {} {}", entry.id, entry.state.name(), entry.node))
            .collect();
        assert_eq!(
            entries,
            [
                "4101.pbs queued ",
                "4102.pbs running n7",
                "4103.pbs suspended n8",
                "4104.pbs leaving n9",
                "4105.pbs completed n7",
                "4106.pbs failed n7",
                "4107.pbs time limit n7",
                "4108.pbs cancelled n7",
                "4109.pbs cancelled ",
                "4110.pbs unknown ",
            ]
        );
        assert_eq!(parse_queue("{\"timestamp\":1,\"pbs_version\":\"2022\"}", "/x"), Ok(Vec::new()));
        parse_queue("qstat: cannot connect", "/x").expect_err("no JSON");
    }

    #[test]
    fn a_submit() {
        let worker = WorkerScript { program: "nqueens".into(), folder: "/x".into(), arguments: Vec::new() };
        let options = vec!["-q".to_owned(), "short".to_owned()];
        let pbs = Pbs::new(worker.clone(), "queens".to_owned(), Some(7_200), options).expect("a good folder");
        assert_eq!(
            pbs.submit_arguments().join(" "),
            "-N queens -v NQUEENS_FLEET=/x -j oe -o /dev/null -l walltime=7200 -q short"
        );
        assert!(
            pbs.script().starts_with("#!/bin/sh\nexec >> /x/logs/\"$PBS_JOBID\".log 2>&1\n"),
            "{}",
            pbs.script()
        );
        let worker = WorkerScript { folder: "/a,b".into(), ..worker };
        assert!(Pbs::new(worker, "queens".to_owned(), None, Vec::new()).is_err());
    }
}
