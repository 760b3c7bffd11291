//! Slurm, by `sbatch`, `squeue` and `scancel`. Tried with 22.05.

use std::process::Command;

use super::{Backend, SubmitError, submit_error};
use crate::process::{CommandError, run};
use crate::script::{WorkerScript, command_line};
use crate::state::{AllocationId, AllocationState, Ending, QueueEntry};

/// Columns of `squeue`, in this order.
const COLUMNS: &str = "%i|%T|%r|%N";

/// Reasons of a pending job that Slurm itself holds: it could not start it. Blanks may be underlines.
const HELD: [&str; 2] = ["launch failed requeued held", "JobHoldMaxRequeue"];

/// Options of `sbatch` by which a fleet finds its jobs again.
const OWN: [&str; 10] =
    ["--job-name", "-J", "--array", "-a", "--output", "-o", "--error", "-e", "--parsable", "--wrap"];

/// Jobs in one call of `scancel`: their names have to fit into a command line.
const CANCELLED_AT_ONCE: usize = 500;

pub struct Slurm {
    worker: WorkerScript,
    time_limit: Option<u64>,
    /// The operator's own options of `sbatch`.
    options: Vec<String>,
}

impl Slurm {
    /// `options` go to `sbatch` as they are; an error if one is the fleet's own.
    pub fn new(worker: WorkerScript, time_limit: Option<u64>, options: Vec<String>) -> Result<Self, String> {
        let is_own = |option: &&String| {
            let name = option.split('=').next().unwrap_or_default();
            // Also a short option with its value attached.
            OWN.iter().any(|own| name == *own || (own.len() == 2 && option.starts_with(own)))
        };
        match options.iter().find(is_own) {
            Some(own) => Err(format!("{own} is set by the fleet itself: leave it out")),
            None => Ok(Self { worker, time_limit, options }),
        }
    }

    /// Processors of a task as the options of `sbatch` ask for them; Slurm's default is 1.
    pub fn threads(options: &[String]) -> Option<u64> {
        let mut found = None;
        let mut options = options.iter();
        while let Some(option) = options.next() {
            let value = match option.as_str() {
                "-c" | "--cpus-per-task" => options.next().map(String::as_str),
                other => other.strip_prefix("--cpus-per-task=").or_else(|| other.strip_prefix("-c")),
            };
            found = value.and_then(|value| value.parse().ok()).filter(|threads| *threads > 0).or(found);
        }
        found
    }

    /// Arguments of `sbatch` for so many allocations.
    fn submit_arguments(&self, count: u32) -> Vec<String> {
        let mut arguments = vec![
            "--parsable".to_owned(),
            format!("--array=0-{}", count.saturating_sub(1)),
            format!("--job-name={}", self.worker.name()),
            // What Slurm itself has to say of a job.
            format!("--output={}", self.worker.folder.join("logs/%A_%a.log").display()),
            // A requeued job goes on in the same file.
            "--open-mode=append".to_owned(),
        ];
        arguments.extend(self.time_limit.map(|seconds| format!("--time={}", time(seconds))));
        arguments.extend(self.options.iter().cloned());
        arguments.push(self.worker.path().display().to_string());
        arguments
    }

    /// The command and the script for so many allocations, for people.
    pub fn describe(&self, count: u32) -> String {
        let command = command_line("sbatch", &self.submit_arguments(count));
        format!("{command}\n\n{}", self.worker.script())
    }

    /// Has Slurm check the options without submitting anything.
    pub fn test(&self) -> Result<(), CommandError> {
        let mut command = Command::new("sbatch");
        let mut arguments = self.submit_arguments(1);
        // The script need not be there yet.
        arguments.pop();
        run(command.arg("--test-only").args(arguments), Some("#!/bin/sh\n")).map(drop)
    }

    fn cancel(options: &[&str], ids: &[AllocationId]) -> Result<(), CommandError> {
        for ids in ids.chunks(CANCELLED_AT_ONCE) {
            let mut command = Command::new("scancel");
            // Quiet: those that have ended are no error.
            command.arg("--quiet").args(options).args(ids.iter().map(AllocationId::as_str));
            run(&mut command, None)?;
        }
        Ok(())
    }
}

impl Backend for Slurm {
    fn submit(&mut self, count: u32) -> Result<Vec<AllocationId>, SubmitError> {
        let mut command = Command::new("sbatch");
        let answer = run(command.args(self.submit_arguments(count)), None).map_err(submit_error)?;
        let job = job_id(&answer).ok_or_else(|| SubmitError::Uncertain(format!("sbatch said {answer:?}")))?;
        Ok((0..count).filter_map(|task| AllocationId::new(&format!("{job}_{task}"))).collect())
    }

    fn list(&mut self) -> Result<Vec<QueueEntry>, CommandError> {
        let mut command = Command::new("squeue");
        command.args(["--me", "--noheader", "--array", "--all", "--states=all", "--format", COLUMNS]);
        let text = run(command.arg(format!("--name={}", self.worker.name())), None)?;
        let mut entries = parse_queue(&text)
            .map_err(|problem| CommandError::Answer { program: "squeue".to_owned(), problem })?;
        for entry in &mut entries {
            if entry.state == AllocationState::Ended(Ending::Failed) {
                match self.worker.ended(&entry.id) {
                    Some(ended) if ended.state != AllocationState::Ended(Ending::Completed) => *entry = ended,
                    // Slurm or the kernel ended the script, too.
                    _ => {
                        let said = self.worker.last_line(&entry.id);
                        entry.why = format!("killed on {}: {said}", entry.node);
                    }
                }
            }
        }
        Ok(entries)
    }

    fn terminate(&mut self, ids: &[AllocationId]) -> Result<(), CommandError> {
        // Full: to the script and the worker in it. A plain `scancel` would kill after Slurm's KillWait. With a suspended job
        // this would hang.
        Self::cancel(&["--signal=TERM", "--full"], ids)
    }

    fn end(&mut self, ids: &[AllocationId]) -> Result<(), CommandError> {
        Self::cancel(&[], ids)
    }

    fn threads(&mut self, id: &AllocationId) -> Option<u64> {
        self.worker.threads(id)
    }
}

/// The number of a job, as `sbatch --parsable` prints it: `1234` or `1234;cluster`, possibly after messages of the site.
fn job_id(answer: &str) -> Option<u64> {
    answer.lines().last()?.split(';').next()?.trim().parse().ok()
}

/// A time for `sbatch`: hours, minutes, seconds.
fn time(seconds: u64) -> String {
    format!("{}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

fn parse_queue(text: &str) -> Result<Vec<QueueEntry>, String> {
    let mut entries = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let bad =
            || format!("a line that is none of a queue: {:?}", line.chars().take(200).collect::<String>());
        let columns: Vec<_> = line.split('|').collect();
        let [id, state, reason, node] = columns[..] else { return Err(bad()) };
        let id = AllocationId::new(id).ok_or_else(bad)?;
        entries.push(QueueEntry::new(id, parse_state(state, reason), node));
    }
    Ok(entries)
}

/// Slurm's states (squeue(1), job state codes), with the reason of a pending one.
fn parse_state(name: &str, reason: &str) -> AllocationState {
    match name {
        "PENDING" if HELD.contains(&reason.replace('_', " ").as_str()) => AllocationState::Held,
        "PENDING" | "CONFIGURING" | "REQUEUED" | "REQUEUE_FED" | "REQUEUE_HOLD" | "RESV_DEL_HOLD"
        | "SPECIAL_EXIT" => AllocationState::Queued,
        "RUNNING" | "SIGNALING" | "RESIZING" => AllocationState::Running,
        "SUSPENDED" | "STOPPED" => AllocationState::Suspended,
        "COMPLETING" | "STAGE_OUT" => AllocationState::Leaving,
        "COMPLETED" => AllocationState::Ended(Ending::Completed),
        "CANCELLED" | "PREEMPTED" | "REVOKED" => AllocationState::Ended(Ending::Cancelled),
        "TIMEOUT" | "DEADLINE" => AllocationState::Ended(Ending::TimeLimit),
        "FAILED" | "OUT_OF_MEMORY" => AllocationState::Ended(Ending::Failed),
        "NODE_FAIL" | "BOOT_FAIL" => AllocationState::Ended(Ending::NodeLost),
        _ => AllocationState::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The part of the recorded outputs of Slurm 22.05 with this title.
    fn recorded(title: &str) -> &'static str {
        let all = include_str!("../../tests/recorded/squeue.txt");
        let part = all.split("== ").find_map(|part| part.strip_prefix(title)?.strip_prefix('\n'));
        part.expect("recorded")
    }

    #[test]
    fn recorded_queues() {
        let of = |title: &str| {
            let entries = parse_queue(recorded(title)).expect("a queue");
            let lines =
                entries.iter().map(|entry| format!("{} {} {}", entry.id, entry.state.name(), entry.node));
            lines.collect::<Vec<_>>().join(", ")
        };
        let begun = "1_2 queued , 1_3 queued , 1_0 running n1, 1_1 running n2";
        assert_eq!(of("mixed_pending_running"), begun);
        let suspended = "1_3 queued , 1_2 running n1, 1_1 running n2, 1_0 suspended n1";
        assert_eq!(of("suspended"), suspended);
        let preempted = "1_2 completed n1, 1_1 completed n2, 1_3 queued , 1_0 queued ";
        assert_eq!(of("preempted"), preempted, "and queued again; job 5 took their place");
        let cancelled = "1_3 cancelled n1, 1_2 completed n1, 1_1 completed n2, 1_0 completed n1";
        assert_eq!(of("cancelled_pending"), cancelled);
        let requeued = "6_2 completed n2, 6_1 failed n1, 6_3 queued , 6_0 running n1";
        assert_eq!(of("node_failed"), requeued, "a lost node's job is queued again");
        let lost = "1_1 lost: its node failed n2, 2 queued , 1_0 running n1";
        assert_eq!(of("node_fail"), lost, "or not");
        let leaving =
            "2 cancelled , 4_0 leaving n1, 5_0 failed n2, 1_1 lost: its node failed n2, 1_0 time limit n1";
        assert_eq!(of("completing"), leaving);
    }

    #[test]
    fn what_is_no_queue_is_an_error() {
        assert_eq!(parse_queue(""), Ok(Vec::new()));
        for damaged in ["slurm_load_jobs error: Socket timed out", "7_0|RUNNING|n1", "../x|RUNNING|None|"] {
            parse_queue(damaged).expect_err("it is no queue");
        }
    }

    #[test]
    fn a_state_of_another_version_is_unknown() {
        assert_eq!(parse_state("EXPEDITING", "None"), AllocationState::Unknown);
        assert_eq!(parse_state("", ""), AllocationState::Unknown);
    }

    #[test]
    fn a_job_that_slurm_can_t_start_is_held_and_one_that_somebody_holds_is_queued() {
        let state = |reason| parse_state("PENDING", reason);
        for reason in ["launch failed requeued held", "launch_failed_requeued_held", "JobHoldMaxRequeue"] {
            assert_eq!(state(reason), AllocationState::Held);
        }
        for reason in ["JobHeldUser", "JobHeldAdmin", "Resources", "BeginTime", ""] {
            assert_eq!(state(reason), AllocationState::Queued);
        }
    }

    #[test]
    fn answers_of_sbatch() {
        assert_eq!(job_id("1234\n"), Some(1_234));
        assert_eq!(job_id("Welcome to the cluster!\n1234;west\n"), Some(1_234));
        assert_eq!(job_id(""), None);
        assert_eq!(job_id("Submitted batch job 7"), None);
        assert_eq!(time(7_200), "2:00:00");
        assert_eq!(time(90_061), "25:01:01");
    }

    #[test]
    fn options_of_the_operator() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let threads = |text: &str| Slurm::threads(&words(text));
        assert_eq!(threads("--partition short --cpus-per-task 16"), Some(16));
        assert_eq!(threads("-c 4 --cpus-per-task=8"), Some(8));
        assert_eq!(threads("-c12 --mem 4G"), Some(12));
        assert_eq!(threads("--mem 4G"), None);
        let worker = WorkerScript { program: "nqueens".into(), folder: "/x".into(), arguments: Vec::new() };
        let slurm = |text: &str| Slurm::new(worker.clone(), Some(7_200), words(text));
        for own in ["--array=0-3", "-J name", "-Jname", "-o log", "--wrap true"] {
            assert!(slurm(own).is_err(), "{own}");
        }
        let slurm = slurm("--partition short --account=a --overcommit").expect("good options");
        assert_eq!(
            slurm.submit_arguments(3).join(" "),
            "--parsable --array=0-2 --job-name=nq57d1f0d2 --output=/x/logs/%A_%a.log --open-mode=append \
             --time=2:00:00 --partition short --account=a --overcommit /x/worker.sh"
        );
    }
}
