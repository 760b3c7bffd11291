//! Where allocations come from: any batch system, by shell commands. Those for Slurm are here, tried with 22.05; `docs/fleet.md`
//! has some for others.
//!
//! *Submit* (`SCRIPT`, `NAME`, with arrays `LAST`) submits one job, or an array from 0 to `LAST`, and prints its id as the last line's first
//! word. *List* (`NAME`) prints a line for each job: id, state, node; or, between `|`, id, state, reason, node. *Cancel* (`IDS`) removes
//! these, with a signal some seconds before: their workers drain.

use std::process::Command;
use std::time::{Duration, Instant};

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::process::{CommandError, TIMEOUT, run};
use crate::script::{WorkerScript, quote};
use crate::state::{Allocation, AllocationId, AllocationState, Queue};

/// Reasons of a pending job that Slurm itself holds: it could not start it.
const HELD: [&str; 2] = ["launch failed requeued held", "JobHoldMaxRequeue"];

/// Parts of what batch systems say of a submit limit of a user, an account, a queue or a partition, or of the size of an
/// array: Slurm, Grid Engine, PBS, LSF, `HTCondor`.
const LIMITS: [&str; 6] =
    ["limit", "policy", "exceed", "are allowed per", "maximum", "job array specification"];

/// Parts of what they say where the answer got lost, and the job may be in the queue.
const SILENCES: [&str; 2] = ["timed out", "zero bytes were transmitted"];

/// Whether a submit was refused as there would be too many jobs.
pub(crate) fn is_limit(complaint: &str) -> bool {
    has(complaint, &LIMITS) && !has(complaint, &["time limit is invalid"])
}

fn has(complaint: &str, parts: &[&str]) -> bool {
    let text = complaint.to_ascii_lowercase();
    parts.iter().any(|part| text.contains(part))
}

/// A batch system. Calls return within [`SETTLE_S`](crate::decide::SETTLE_S) seconds.
pub trait Backend {
    /// Submits so many allocations, or the first few of them, each with one worker. They carry the name of this fleet.
    fn submit(&mut self, count: u32) -> Result<Vec<AllocationId>, CommandError>;

    /// Lists the allocations of this fleet, those of earlier lives included; of these `known` ones also how they ended.
    fn list(&mut self, known: &[AllocationId]) -> Result<Queue, CommandError>;

    /// Removes these, whatever they are at. Those that have ended are no error.
    fn end(&mut self, ids: &[AllocationId]) -> Result<(), CommandError>;
}

#[derive(Clone, Debug, PartialEq, Eq, Args, Serialize, Deserialize)]
pub struct Templates {
    /// Submits a job NAME that runs SCRIPT; its id is the first word of the last line that this prints
    #[arg(long, value_name = "SHELL")]
    pub submit: String,

    /// Prints a line for each job NAME: id, state, and perhaps node
    #[arg(long, value_name = "SHELL")]
    pub list: String,

    /// Cancels the jobs IDS
    #[arg(long, value_name = "SHELL")]
    pub cancel: String,
}

impl Templates {
    /// Those of Slurm, with a time limit and an operator's own options of `sbatch`. The fleet's come after these, and hold.
    pub fn slurm(time_limit: Option<Duration>, options: &[String]) -> Self {
        let time = time_limit.map(|limit| format!("--time={}", limit.as_secs().div_ceil(60)));
        let words = ["sbatch"].into_iter().chain(time.as_deref());
        let sbatch = quote(words.chain(options.iter().map(String::as_str)));
        Self {
            // A requeued job goes on in the same log.
            submit: format!(
                "{sbatch} --parsable --array=0-$LAST --job-name=\"$NAME\" \
                 --output=\"${{SCRIPT%/*}}/logs/%A_%a.log\" --open-mode=append \"$SCRIPT\""
            ),
            list: "squeue --me --noheader --array --all --states=all --name=\"$NAME\" --format='%i|%T|%r|%N'"
                .to_owned(),
            // Quiet: those that have ended are no error. SIGTERM comes at once, SIGKILL after Slurm's KillWait.
            cancel: "scancel --quiet $IDS".to_owned(),
        }
    }

    /// Whether a submit makes an array, whose tasks are called `1234_0` and so on.
    fn arrays(&self) -> bool {
        self.submit.contains("$LAST")
    }
}

/// A batch system behind shell commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandBackend {
    pub worker: WorkerScript,
    pub templates: Templates,
}

impl CommandBackend {
    fn run(&self, template: &str, variables: &[(&str, &str)]) -> Result<String, CommandError> {
        let mut shell = Command::new("sh");
        shell.args(["-c", template]).env("SCRIPT", self.worker.path()).env("NAME", self.worker.name());
        run(shell.envs(variables.iter().copied()), TIMEOUT)
    }

    /// What would be submitted, for people.
    pub fn describe(&self, count: u64) -> String {
        let (path, name) = (self.worker.path(), self.worker.name());
        let last = if self.templates.arrays() { format!(" LAST={}", count - 1) } else { String::new() };
        let (submit, script) = (&self.templates.submit, self.worker.script());
        format!("SCRIPT={} NAME={name}{last}\n{submit}\n\n{script}", path.display())
    }

    fn submit_once(&self, count: u32) -> Result<Vec<AllocationId>, CommandError> {
        let last = count.saturating_sub(1).to_string();
        let answer = self.run(&self.templates.submit, &[("LAST", &last)]).map_err(|error| match error {
            CommandError::Failed(why) if has(&why, &SILENCES) => CommandError::Unclear(why),
            error => error,
        })?;
        let strange = || CommandError::Unclear(format!("the submit printed {answer:?}, no id of a job"));
        // `1234`, or `1234;cluster`, or what is left of `Job <1234> is submitted`, possibly after messages of the site.
        let mut words = answer.lines().last().unwrap_or_default().split([' ', '\t', ';']);
        let job = words.find(|word| !word.is_empty()).filter(|job| is_id(job)).ok_or_else(strange)?;
        let name = |task| if self.templates.arrays() { format!("{job}_{task}") } else { job.to_owned() };
        Ok((0..count).map(name).collect())
    }
}

impl Backend for CommandBackend {
    fn submit(&mut self, count: u32) -> Result<Vec<AllocationId>, CommandError> {
        if self.templates.arrays() {
            return self.submit_once(count);
        }
        // The rest is for the next look.
        let until = Instant::now() + Duration::from_secs(10);
        let mut ids = Vec::new();
        while ids.len() < count as usize && (ids.is_empty() || Instant::now() < until) {
            match self.submit_once(1) {
                Ok(id) => ids.extend(id),
                // What has begun counts; the rest is tried again.
                Err(CommandError::Failed(_)) if !ids.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(ids)
    }

    fn list(&mut self, known: &[AllocationId]) -> Result<Queue, CommandError> {
        let mut queue = parse_queue(&self.run(&self.templates.list, &[])?)?;
        for (id, entry) in queue.iter_mut().filter(|(_, entry)| entry.state == AllocationState::Failed) {
            match self.worker.ended(id) {
                Some(ended) if ended.state != AllocationState::Completed => *entry = ended,
                // Slurm or the kernel ended the script, too.
                _ => entry.why = format!("killed on {}: {}", entry.node, self.worker.last_line(id)),
            }
        }
        // Most batch systems forget a job when it ends. Its script has not.
        let unlisted: Vec<_> = known.iter().filter(|id| !queue.contains_key(*id)).collect();
        queue.extend(unlisted.into_iter().filter_map(|id| Some((id.clone(), self.worker.ended(id)?))));
        Ok(queue)
    }

    fn end(&mut self, ids: &[AllocationId]) -> Result<(), CommandError> {
        // They have to fit into the environment.
        for ids in ids.chunks(500) {
            self.run(&self.templates.cancel, &[("IDS", &ids.join(" "))])?;
        }
        Ok(())
    }
}

/// Jobs whose end the batch system does not explain are left out: their scripts tell how.
fn parse_queue(text: &str) -> Result<Queue, CommandError> {
    let mut queue = Queue::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let by_bars: Vec<_> = line.split('|').map(str::trim).collect();
        let by_blanks: Vec<_> = line.split_whitespace().collect();
        let (id, state, reason, node) = match (&by_bars[..], &by_blanks[..]) {
            ([id, state, reason, node], _) => (*id, *state, *reason, *node),
            ([_], [id, state, rest @ ..]) => (*id, *state, "", rest.first().copied().unwrap_or_default()),
            _ => Default::default(),
        };
        if !is_id(id) {
            let line: String = line.chars().take(200).collect();
            return Err(CommandError::Unclear(format!("a line without id and state: {line:?}")));
        }
        if let Some(state) = parse_state(state, reason) {
            let node = node.chars().take(100).collect();
            queue.insert(id.to_owned(), Allocation { state, node, ..Allocation::default() });
        }
    }
    Ok(queue)
}

/// A digit, letters, digits, and `_`, `-`, `.`, `[`, `]`, at most 100 bytes: an id is part of file names.
fn is_id(text: &str) -> bool {
    let is_good = |c: char| c.is_ascii_alphanumeric() || "_-.[]".contains(c);
    let has_digit = text.contains(|c: char| c.is_ascii_digit());
    has_digit && text.len() <= 100 && text.chars().all(is_good) && !text.starts_with('.')
}

/// States of `squeue` (Slurm), `qstat` (Grid Engine, PBS), `bjobs` (LSF) and `condor_q` (`JobStatus`).
const STATES: [(AllocationState, &str); 10] = [
    (
        AllocationState::Queued,
        "PENDING CONFIGURING REQUEUED REQUEUE_FED REQUEUE_HOLD RESV_DEL_HOLD SPECIAL_EXIT qw hqw Rq Q H W PEND PSUSP 1 queued",
    ),
    (AllocationState::Held, "Eqw 5 held"),
    (AllocationState::Running, "RUNNING SIGNALING RESIZING t r Rr Rt hr R B RUN 2 6 running"),
    (AllocationState::Suspended, "SUSPENDED STOPPED s S T Rs USUSP SSUSP 7 suspended"),
    (AllocationState::Leaving, "COMPLETING STAGE_OUT dr dt dRr E leaving"),
    (AllocationState::Completed, "COMPLETED"),
    (AllocationState::Cancelled, "CANCELLED PREEMPTED REVOKED"),
    (AllocationState::TimeLimit, "TIMEOUT DEADLINE"),
    (AllocationState::Failed, "FAILED OUT_OF_MEMORY"),
    (AllocationState::Lost, "NODE_FAIL BOOT_FAIL"),
];

/// Those of a job that has ended in a way that nobody tells.
const ENDED: &str = "X F C DONE EXIT 3 4 ended";

/// `None` for a job that has ended in a way that nobody tells.
fn parse_state(name: &str, reason: &str) -> Option<AllocationState> {
    // Blanks may be underlines.
    if name == "PENDING" && HELD.contains(&&*reason.replace('_', " ")) {
        return Some(AllocationState::Held);
    }
    let is_among = |names: &str| names.split(' ').any(|known| known == name);
    let state = STATES.iter().find(|(_, names)| is_among(names)).map(|(state, _)| *state);
    state.or_else(|| (!is_among(ENDED)).then_some(AllocationState::Unknown))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::AllocationState::*;
    use super::*;

    fn backend(folder: &std::path::Path, submit: &str, list: &str) -> CommandBackend {
        for name in ["logs", "ended"] {
            std::fs::create_dir_all(folder.join(name)).expect("a folder");
        }
        let worker =
            WorkerScript { program: "nqueens".into(), folder: folder.to_owned(), arguments: Vec::new() };
        let cancel = "echo $IDS > cancelled".to_owned();
        let [submit, list] = [submit, list].map(str::to_owned);
        let templates = Templates { submit, list, cancel };
        CommandBackend { worker, templates }
    }

    fn id(name: &str) -> AllocationId {
        name.to_owned()
    }

    #[test]
    fn ids_come_from_the_last_line() {
        let place = tempfile::tempdir().expect("a folder");
        let submit = |template: &str, count| backend(place.path(), template, "").submit(count);
        assert_eq!(submit("echo welcome; echo 7.server $NAME", 1), Ok(vec![id("7.server")]));
        let of_lsf = "echo 'Job <123> is submitted to queue <normal>.' | tr -dc '0-9 \\n'";
        assert_eq!(submit(of_lsf, 1), Ok(vec![id("123")]));
        assert!(matches!(submit("true", 1), Err(CommandError::Unclear(_))));
        assert!(matches!(submit("echo no such queue >&2; exit 1", 1), Err(CommandError::Failed(_))));
        assert!(matches!(submit("echo job limit >&2; exit 1", 1), Err(CommandError::Failed(_))));
        let counter = place.path().join("counter");
        let counts = format!("echo x >> {0}; n=$(wc -l < {0}); [ $n -le 3 ] && echo $n", counter.display());
        assert_eq!(submit(&counts, 5), Ok(["1", "2", "3"].map(id).to_vec()), "what has begun counts");
        let array = |template: &str| submit(template, 3);
        let ids = ["12_0", "12_1", "12_2"].map(id).to_vec();
        assert_eq!(array("[ $LAST = 2 ]; echo Welcome!; echo '12;west'"), Ok(ids));
        assert!(matches!(array("echo Submitted batch job 7, $LAST"), Err(CommandError::Unclear(_))));
    }

    #[test]
    fn what_is_listed_comes_before_what_scripts_have_recorded() {
        let place = tempfile::tempdir().expect("a folder");
        let mut backend = backend(
            place.path(),
            "",
            "printf '1 r n1\n2 qw\n3 F\n4 Zz\n6_0|FAILED|None|n1\n7_0|FAILED|None|n2\n'",
        );
        for (id, code) in [("1", 0), ("3", 7), ("5", 0), ("6_0", 5)] {
            std::fs::write(place.path().join("ended").join(id), format!("{code} n2\n")).expect("a file");
        }
        std::fs::write(place.path().join("logs/7_0.log"), "said\n").expect("a file");
        let known = ["1", "3", "5", "8"].map(id);
        let entries = backend.list(&known).expect("a list");
        let states: Vec<_> = entries.iter().map(|(id, entry)| (&**id, entry.state)).collect();
        let listed = [("1", Running), ("2", Queued), ("4", Unknown), ("6_0", Refused), ("7_0", Failed)];
        let recorded = [("3", Failed), ("5", Completed)];
        assert_eq!(BTreeSet::from_iter(states), listed.into_iter().chain(recorded).collect());
        assert_eq!(entries["7_0"].why, "killed on n2: said");
        for damaged in ["error", "slurm_load_jobs error: timed out", "7_0|RUNNING|n1", "../x|RUNNING|None|"] {
            backend.templates.list = format!("echo '{damaged}'");
            backend.list(&[]).expect_err("no queue");
        }
        backend.templates.list = "true".to_owned();
        assert_eq!(backend.list(&[]), Ok(Queue::new()));
    }

    /// The part of the recorded outputs of Slurm 22.05 with this title.
    fn recorded(title: &str) -> &'static str {
        let all = include_str!("../tests/recorded/squeue.txt");
        let part = all.split("== ").find_map(|part| part.strip_prefix(title)?.strip_prefix('\n'));
        part.expect("recorded")
    }

    #[test]
    fn recorded_queues_of_slurm() {
        let of = |title: &str| {
            let entries = parse_queue(recorded(title)).expect("a queue");
            let lines = entries.iter().map(|(id, entry)| format!("{id} {} {}", entry.state, entry.node));
            lines.collect::<Vec<_>>().join(", ")
        };
        let begun = "1_0 running n1, 1_1 running n2, 1_2 queued , 1_3 queued ";
        assert_eq!(of("mixed_pending_running"), begun);
        let suspended = "1_0 suspended n1, 1_1 running n2, 1_2 running n1, 1_3 queued ";
        assert_eq!(of("suspended"), suspended);
        let preempted = "1_0 queued , 1_1 completed n2, 1_2 completed n1, 1_3 queued ";
        assert_eq!(of("preempted"), preempted, "and queued again; job 5 took their place");
        let cancelled = "1_0 completed n1, 1_1 completed n2, 1_2 completed n1, 1_3 cancelled n1";
        assert_eq!(of("cancelled_pending"), cancelled);
        let requeued = "6_0 running n1, 6_1 failed n1, 6_2 completed n2, 6_3 queued ";
        assert_eq!(of("node_failed"), requeued, "a lost node's job is queued again");
        let lost = "1_0 running n1, 1_1 lost n2, 2 queued ";
        assert_eq!(of("node_fail"), lost, "or not");
        let leaving = "1_0 time_limit n1, 1_1 lost n2, 2 cancelled , 4_0 leaving n1, 5_0 failed n2";
        assert_eq!(of("completing"), leaving);
    }

    #[test]
    fn a_job_that_slurm_can_t_start_is_held_and_one_that_somebody_holds_is_queued() {
        let state = |reason| parse_state("PENDING", reason);
        for reason in ["launch failed requeued held", "launch_failed_requeued_held", "JobHoldMaxRequeue"] {
            assert_eq!(state(reason), Some(Held));
        }
        for reason in ["JobHeldUser", "JobHeldAdmin", "Resources", "BeginTime", ""] {
            assert_eq!(state(reason), Some(Queued));
        }
        assert_eq!(parse_state("EXPEDITING", "None"), Some(Unknown), "of another version");
    }

    #[test]
    fn options_of_the_operator() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let slurm = Templates::slurm(Some(Duration::from_secs(90_061)), &words("-J no --comment=it's"));
        // What the shell makes of it.
        let place = tempfile::tempdir().expect("a folder");
        let mut sbatch = backend(place.path(), &slurm.submit.replace("sbatch", "printf '%s;' >&2"), "");
        sbatch.templates.submit += "; exit 1";
        let (folder, name) = (place.path().display(), sbatch.worker.name());
        let command = format!(
            "--time=1502;-J;no;--comment=it's;--parsable;--array=0-2;--job-name={name};\
             --output={folder}/logs/%A_%a.log;--open-mode=append;{folder}/worker.sh;"
        );
        assert_eq!(sbatch.submit(3), Err(CommandError::Failed(command)));
    }

    #[test]
    fn complaints_about_submits() {
        for limit in [
            "sbatch: error: AssocMaxSubmitJobLimit; sbatch: error: Batch job submission failed: Job violates \
             accounting/QOS policy (job submit limit, user's size and/or time limits)",
            "sbatch: error: QOSMaxSubmitJobPerUserLimit",
            "sbatch: error: Batch job submission failed: Invalid job array specification",
            "job rejected: Only 2 jobs are allowed per user (current job count: 2)",
            "qsub: would exceed complex's per-user limit of jobs in 'Q' state",
            "User's pending job slot limit reached. Job not submitted.",
            "ERROR: Number of submitted jobs would exceed MAX_JOBS_PER_OWNER",
        ] {
            assert!(is_limit(limit), "{limit}");
        }
        for refused in [
            "sbatch: error: Batch job submission failed: Invalid partition name specified",
            "sbatch: error: Batch job submission failed: Requested time limit is invalid (missing or exceeds some limit)",
            "exit code 1",
        ] {
            assert!(!is_limit(refused), "{refused}");
        }
        let lost = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation";
        let place = tempfile::tempdir().expect("a folder");
        let answer = backend(place.path(), &format!("echo '{lost}' >&2; exit 1"), "").submit(1);
        assert_eq!(answer, Err(CommandError::Unclear(lost.to_owned())), "it may be in the queue");
    }
}
