//! PBS Professional (`OpenPBS`), by `qsub`, `qselect`, `qstat`, `qsig` and `qdel`. Tried with `OpenPBS` 23.06.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;
use std::{fs, io};

use jiff::{Timestamp, ToSpan};

use super::{Backend, QueueEntry, SubmitError};
use crate::process::{CommandError, run};
use crate::script::{WorkerScript, command_line, quote};
use crate::state::{AllocationId, AllocationState, Ending};

/// The variable of a job that holds its fleet's folder. PBS has no comment of the user's.
const MARK: &str = "NQUEENS_FLEET";

/// After so many attempts to start a job PBS holds it. (It says so in a comment, which a restart of the server loses.)
const ATTEMPTS_MAX: i64 = 20;

/// Options of `qsub` by which a fleet finds its jobs and their logs again, and those that would start no worker.
const OWN: [&str; 9] = ["-N", "-v", "-J", "-j", "-o", "-e", "-I", "-z", "--"];

/// What PBS makes the name of a job of.
const ID: &str = "$PBS_JOBID";

/// Jobs that ended within so many hours are listed. PBS keeps them for two weeks, and tells 2 kB of each.
const LISTED_HOURS: i64 = 1;

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
    /// A fleet whose jobs have this name. `options` go to `qsub` as they are; an error if one is the fleet's own, or if the
    /// folder has a name that `qsub -v` would take apart.
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
        match options.iter().find(|option| OWN.iter().any(|own| option.starts_with(own))) {
            Some(own) => Err(format!("{own} is set by the fleet itself: leave it out")),
            None => Ok(Self { worker, job_name, time_limit, options }),
        }
    }

    /// The script lies in the folder and is the job's first process. One that `qsub` reads from its input would be the child of
    /// a login shell, which SIGTERM ends at once; then PBS kills what is left, and no worker could drain.
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
        arguments.extend(["--", "/bin/sh"].map(str::to_owned));
        arguments.push(self.script_path().display().to_string());
        arguments
    }

    fn script_path(&self) -> PathBuf {
        self.worker.folder.join("worker.sh")
    }

    fn script(&self) -> String {
        let logs = quote(&self.worker.logs().to_string_lossy());
        self.worker.script(ID).replacen('\n', &format!("\nexec >> {logs}/\"{ID}\".log 2>&1\n"), 1)
    }

    /// Replaces the script as a whole: shells read it bit by bit.
    fn write_script(&self) -> io::Result<()> {
        let new = self.worker.folder.join("worker.sh.new");
        fs::write(&new, self.script())?;
        fs::rename(new, self.script_path())
    }

    /// The command and the script of one allocation, for people.
    pub fn describe(&self) -> String {
        let path = self.script_path();
        let command = command_line("qsub", &self.submit_arguments());
        format!("cat > {} << 'END'\n{}END\n{command}", path.display(), self.script())
    }

    fn submit_one(&self) -> Result<AllocationId, SubmitError> {
        let answer = run(Command::new("qsub").args(self.submit_arguments()), None);
        let answer = answer.map_err(|error| match error {
            CommandError::Failed { complaint, .. } if !is_silence(&complaint) => {
                SubmitError::Refused(complaint)
            }
            CommandError::Start { .. } => SubmitError::Refused(error.to_string()),
            other => SubmitError::Uncertain(other.to_string()),
        })?;
        let id = answer.lines().last().and_then(|line| AllocationId::new(line.trim()));
        id.ok_or_else(|| SubmitError::Uncertain(format!("qsub said {answer:?}")))
    }

    /// Names of jobs with the fleet's name. Times are in UTC.
    fn select(&self, options: &[&str]) -> Result<String, CommandError> {
        run(Command::new("qselect").args(["-N", &self.job_name]).args(options).env("TZ", "UTC0"), None)
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

/// Whether `qsub` failed because the answer did not come: the job may be in the queue. Without a connection it is not.
fn is_silence(complaint: &str) -> bool {
    ["Premature end of message", "End of File", ") submitting job"]
        .iter()
        .any(|silence| complaint.contains(silence))
}

/// Whether a command failed because its job is gone, or has no processes yet.
fn has_ended(complaint: &str) -> bool {
    ["Unknown Job", "has finished", "invalid for state"].iter().any(|why| complaint.contains(why))
}

impl Backend for Pbs {
    fn submit(&mut self, count: u32) -> Result<Vec<AllocationId>, SubmitError> {
        if let Err(error) = self.write_script() {
            return Err(SubmitError::Refused(format!(
                "can't write {}: {error}",
                self.script_path().display()
            )));
        }
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
        let alive = self.select(&[])?;
        let since = format!("-tm.gt.{}", (Timestamp::now() - LISTED_HOURS.hours()).strftime("%Y%m%d%H%M"));
        // Asked after the others: one that ends meanwhile is in this list. Where PBS keeps no history, it is empty.
        let ended = self.select(&["-x", "-s", "FM", &since])?;
        let ids: BTreeSet<_> = alive.split_whitespace().chain(ended.split_whitespace()).collect();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let option = if ended.is_empty() { None } else { Some("-x") };
        let mut command = Command::new("qstat");
        let text = run(command.args(["-f", "-F", "dsv"]).args(option).args(ids), None)?;
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

/// What PBS says of a job.
type Attributes<'a> = BTreeMap<&'a str, String>;

/// What `qstat -f -F dsv` says of the jobs of the fleet in this folder. (`-F json` would tell the first of several jobs alone.)
fn parse_queue(text: &str, folder: &str) -> Result<Vec<QueueEntry>, String> {
    let mark = format!("{MARK}={folder}");
    let jobs = format!("\n{}", text.trim_end());
    let mut jobs = jobs.split("\nJob Id: ");
    let before = jobs.next().unwrap_or_default();
    if !before.is_empty() || text.is_empty() {
        return Err(format!("no list of jobs: {:?}", before.chars().take(200).collect::<String>()));
    }
    let mut entries = Vec::new();
    for job in jobs {
        let (id, attributes) = read_job(job);
        let of = |name| attributes.get(name).map_or("", String::as_str);
        if !of("Variable_List").split(',').any(|variable| variable == mark) {
            continue;
        }
        let id = AllocationId::new(id).ok_or_else(|| format!("a job {id:?}"))?;
        let node = of("exec_host").split('/').next().unwrap_or_default().chars().take(100).collect();
        entries.push(QueueEntry { id, state: parse_state(&attributes), node });
    }
    Ok(entries)
}

/// The name of a job and its attributes: `7.pbs|job_state=R|queue=short`. A `|` in a value has a `\` before it.
fn read_job(job: &str) -> (&str, Attributes<'_>) {
    let mut parts = job.split('|');
    let id = parts.next().unwrap_or_default();
    let mut attributes = Attributes::new();
    while let Some(part) = parts.next() {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let mut value = value.to_owned();
        while value.ends_with('\\') {
            value.pop();
            value.extend(["|", parts.next().unwrap_or_default()]);
        }
        attributes.insert(name, value);
    }
    (id, attributes)
}

/// States of qstat(1B); how a finished job ended is in `substate` and `Exit_status` (`job.h` of PBS).
fn parse_state(attributes: &Attributes<'_>) -> AllocationState {
    let of = |name: &str| attributes.get(name).map(String::as_str);
    let number = |name| of(name).and_then(|text| text.parse::<i64>().ok());
    match (of("job_state").unwrap_or_default(), number("substate"), number("Exit_status")) {
        // By the system; a person's hold is "u" or "o", an administrator's may be "s".
        ("H", ..) if of("Hold_Types") == Some("s") && number("run_count") > Some(ATTEMPTS_MAX) => {
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

    /// The fleet's jobs in this folder among those that `OpenPBS` 23.06 told of.
    fn recorded(folder: &str) -> Vec<String> {
        let text = include_str!("../../tests/recorded/qstat.txt");
        let entries = parse_queue(text, folder).expect("a queue");
        let lines = entries.iter().map(|entry| format!("{} {} {}", entry.id, entry.state.name(), entry.node));
        lines.collect()
    }

    #[test]
    fn recorded_queues() {
        assert_eq!(
            recorded("/home/alice/fleet"),
            [
                "23.cluster time limit cluster",
                "24.cluster failed cluster",
                // Killed; no such program.
                "25.cluster failed cluster",
                "26.cluster failed cluster",
                // Deleted before it ran.
                "31.cluster cancelled ",
                // After 21 attempts to start it.
                "34.cluster held ",
                // Its node went down, and it was not to be run again.
                "38.cluster lost: its node failed cluster",
                // Deleted while it ran, and killed.
                "2000.cluster cancelled cluster",
                "2001.cluster suspended cluster",
                "2002.cluster running cluster",
                // Held by its owner.
                "2003.cluster queued ",
                "2004.cluster queued ",
                // To begin later.
                "2005.cluster queued ",
                "2014.cluster completed cluster",
                "2015.cluster leaving cluster",
                // Held by an administrator.
                "2020.cluster queued ",
            ]
        );
        // The first was deleted and had time to drain; the last was deleted after it was held.
        let other =
            ["16.cluster completed cluster", "17.cluster completed cluster", "37.cluster cancelled cluster"];
        assert_eq!(recorded("/home/alice/other"), other);
        assert_eq!(recorded("/home/alice"), [""; 0]);
    }

    #[test]
    fn damaged_queues() {
        for damaged in ["", "\n", "qstat: cannot connect", "qstat: x\nJob Id: 7.pbs|job_state=R"] {
            parse_queue(damaged, "/x").expect_err("it is no queue");
        }
        let odd = "Job Id: ../7|job_state=R|Variable_List=NQUEENS_FLEET=/x";
        parse_queue(odd, "/x").expect_err("a name that is none");
    }

    #[test]
    fn values_hold_separators_and_line_ends() {
        let text = "Job Id: 7.pbs|comment=a\\|job_state=F\\|b|job_state=R|\
                    Variable_List=A=x\ny,NQUEENS_FLEET=/x,B=|exec_host=n7/0*16\nJob Id: 8.pbs|job_state=R\n";
        let id = AllocationId::new("7.pbs").expect("a name");
        let entry = QueueEntry { id, state: AllocationState::Running, node: "n7".to_owned() };
        assert_eq!(parse_queue(text, "/x"), Ok(vec![entry]));
        let moved = "Job Id: 7.pbs|job_state=M|substate=94|Variable_List=NQUEENS_FLEET=/x";
        assert_eq!(parse_queue(moved, "/x").expect("a queue")[0].state, AllocationState::Unknown);
    }

    #[test]
    fn complaints() {
        assert!(is_silence("qsub: Premature end of message"), "the server died after it had the job");
        for refusal in [
            "qsub: Unknown queue",
            "qsub: Queue is not enabled",
            "qsub: Illegal attribute or resource value Resource_List.walltime",
            "Connection refused; qsub: cannot connect to server cluster (errno=15010)",
        ] {
            assert!(!is_silence(refusal), "{refusal}");
        }
        for gone in [
            "qdel: Unknown Job Id 99.cluster",
            "qdel: Job has finished 16.cluster",
            "qsig: Job has finished",
            "qsig: Request invalid for state of job 1.cluster",
        ] {
            assert!(has_ended(gone), "{gone}");
        }
        assert!(!has_ended("Connection refused; qdel: cannot connect to server cluster (errno=15010)"));
    }

    #[test]
    fn a_submit() {
        let worker = WorkerScript { program: "nqueens".into(), folder: "/x".into(), arguments: Vec::new() };
        let pbs = |options: &str| {
            let options = options.split_whitespace().map(str::to_owned).collect();
            Pbs::new(worker.clone(), "queens".to_owned(), Some(7_200), options)
        };
        let short = pbs("-q short").expect("a good folder");
        assert_eq!(
            short.submit_arguments().join(" "),
            "-N queens -v NQUEENS_FLEET=/x -j oe -o /dev/null -l walltime=7200 -q short -- /bin/sh /x/worker.sh"
        );
        let script = short.script();
        assert!(script.starts_with("#!/bin/sh\nexec >> /x/logs/\"$PBS_JOBID\".log 2>&1\n"), "{script}");
        for own in ["-v A=1", "-N other", "-J 0-3", "-I", "-- /bin/true"] {
            assert!(pbs(own).is_err(), "{own}");
        }
        let worker = WorkerScript { folder: "/a,b".into(), ..worker };
        assert!(Pbs::new(worker, "queens".to_owned(), None, Vec::new()).is_err());
    }
}
