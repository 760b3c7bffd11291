//! What the coordinator counts itself, with another engine than the workers: what has to be decided, and canaries. It counts
//! on one thread, and stops when the run ends.
//!
//! It decides where results differ, where a job fails on workers, and where nobody makes a check: at once, for the run waits
//! for it. No votes outweigh its count.
//!
//! Canaries are jobs that it compares with the workers' results, for 5 % of the thread's time and with the lowest
//! priority. A worker can't recognise such a job, because it is chosen after it was counted. Workers that agreed on a
//! wrong count meet an independent one here.
//!
//! A job can be too large for a canary. Then its result tells what was found in each of its [parts](Job::parts), which add
//! up to the whole, and one part is counted. Parts are drawn when nothing can be changed any more; so no part may be wrong. A
//! result that does not tell its parts is counted by another machine.
//!
//! A count that differs from a worker's is made twice before it is told: this machine may have bad memory as well.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nqueens_evidence::recount::{Recount, recount};
use nqueens_evidence::sample::Claim;
use nqueens_kernel::counts::Counts;
use nqueens_kernel::engine::{Control, Kernel, cpu};
use nqueens_kernel::job::{Class, Job};
use nqueens_kernel::solver::Solver;
use nqueens_kernel::unit::UnitTally;
use nqueens_ledger::{self as ledger, AcceptedResult};
use nqueens_model::id::{JobId, LeaseToken, RunId};
use nqueens_model::message::{EncodedJob, JobResult};
use nqueens_proto::random_bytes;
use nqueens_scheduler::request::{CheckWhole, Compare, GiveUp, Recounted, Refute};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::oneshot;
use tracing::{error, info, warn};

use crate::error::Error;
use crate::operator::Operator;

/// Counting takes this part of one thread's time.
const SHARE: u32 = 20;

/// Times in a row that a job is decided.
const TRIES_MAX: u32 = 5;

/// While there is nothing to count.
const REST: Duration = Duration::from_secs(2);

/// Between two jobs at least.
const BREATH: Duration = Duration::from_millis(200);

/// After an error.
const RECOVERY: Duration = Duration::from_mins(1);

/// Bytes that the fast way may take.
const MEMORY_MAX: u64 = 1 << 30;

/// The lowest priority, of canaries: whatever else runs on this machine gets the processor first.
const NICENESS: i32 = 19;

/// What takes more estimated states is not counted. Colours are multiplied as fast as by others, and a bit of them is searched.
const fn states_max(class: Class) -> u64 {
    match class {
        Class::Corner | Class::Edge | Class::Border | Class::Cells => 1 << 34,
        Class::Colours => u64::MAX,
    }
}

/// Stops the counting when nobody waits for it any more.
struct Counting(Arc<Control>);

impl Drop for Counting {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// What for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// Somebody waits for it.
    Decision {
        /// Whether an engine of another family would take too long.
        is_slow: bool,
    },
    /// To find out whether a result is right.
    Canary,
}

/// What is to be counted of a job.
enum Subject {
    /// All of it.
    Whole,
    /// A part, by its number.
    Part(u8, Job),
    /// It has parts, but its result does not tell them.
    Untold,
}

/// What has been tried to be decided.
#[derive(Default)]
struct Tries {
    /// The latest job, and how often it was tried in a row.
    latest: Option<(JobId, u32)>,
    /// Jobs that are not tried again: each has been in vain.
    given_up: Arc<HashSet<JobId>>,
}

impl Tries {
    /// A job is tried once more.
    fn note(&mut self, job: JobId) {
        let before = self.latest.filter(|(latest, _)| *latest == job).map_or(0, |(_, times)| times);
        self.latest = Some((job, before + 1));
        if before + 1 >= TRIES_MAX {
            self.give_up(job);
        }
    }

    fn give_up(&mut self, job: JobId) {
        Arc::make_mut(&mut self.given_up).insert(job);
    }
}

/// Counts what has to be decided, and else jobs of runs with second counts, until the coordinator ends.
pub(crate) async fn count(operator: Operator) {
    let (mut counted, mut tries) = (HashSet::new(), Tries::default());
    loop {
        let outcome = match decide_one(&operator, &mut tries).await {
            Ok(true) => Ok(Duration::ZERO),
            Ok(false) => check_one(&operator, &mut counted)
                .await
                .map(|time| time.map_or(REST, |time| (time * (SHARE - 1)).max(BREATH))),
            Err(error) => Err(error),
        };
        let pause = outcome.unwrap_or_else(|error| {
            error!(%error, "counting here came to nothing");
            RECOVERY
        });
        tokio::time::sleep(pause).await;
    }
}

/// Counts a job that the coordinator has to decide, if there is one that it has not tried in vain: that could not be counted,
/// or that asked for a decision again and again.
async fn decide_one(operator: &Operator, tries: &mut Tries) -> Result<bool, Arc<Error>> {
    let given_up = Arc::clone(&tries.given_up);
    let undecided = operator.writer.look(move |dispatch, now| dispatch.undecided(now, &given_up)).await?;
    let Some((token, has_result)) = undecided else { return Ok(false) };
    let job = token.job;
    tries.note(job);
    let (claim, states) = ledger::claim(operator.reader.pool(), job).await.map_err(Error::from)?;
    let expected = has_result.then_some(claim.counts);
    let purpose = Purpose::Decision { is_slow: states > states_max(claim.job.class) };
    match count_surely(operator, job.run, &claim, expected, purpose).await {
        None => {}
        Some(Ok(counted)) => operator.ask(counted.compare(operator, token)).await?,
        Some(Err(reason)) if has_result => {
            error!(%job, reason, "a job that has to be decided can't be counted here");
            tries.give_up(job);
        }
        Some(Err(reason)) => operator.ask(GiveUp { job, reason }).await?,
    }
    Ok(true)
}

/// Counts a job or a part that was not counted before, if one is found at once; tells how long that took.
async fn check_one(
    operator: &Operator,
    counted: &mut HashSet<(LeaseToken, Option<u8>)>,
) -> Result<Option<Duration>, Arc<Error>> {
    let Some(result) = pick(operator).await? else { return Ok(None) };
    let Some(subject) = draw(&result) else { return Ok(None) };
    let (token, job) = (result.token, result.token.job);
    let (part, claim) = match subject {
        Subject::Whole => (None, result.claim.clone()),
        Subject::Part(number, part) => {
            let (job, counts) = (EncodedJob::from(&part), result.parts[usize::from(number)]);
            (Some(number), Claim { job, counts, ..result.claim.clone() })
        }
        Subject::Untold => {
            if !counted.insert((token, None)) {
                return Ok(None);
            }
            warn!(%job, "a result does not tell its parts: another machine counts the job");
            operator.ask(CheckWhole(token)).await?;
            return Ok(Some(Duration::ZERO));
        }
    };
    if !counted.insert((token, part)) {
        return Ok(None);
    }
    let (expected, begun) = (claim.counts, Instant::now());
    let found = match count_surely(operator, job.run, &claim, Some(expected), Purpose::Canary).await {
        None => return Ok(Some(begun.elapsed())),
        Some(Ok(found)) => found,
        Some(Err(reason)) => {
            error!(%job, part, reason, "a canary count came to nothing");
            return Ok(Some(begun.elapsed()));
        }
    };
    let (kernel, elapsed_us, agrees) = (found.kernel, found.elapsed_us(), found.counts == expected);
    info!(%job, part, %kernel, elapsed_us, agrees, "canary counted");
    match part {
        None => operator.ask(found.compare(operator, token)).await?,
        Some(part) if !agrees => {
            let counts = found.counts;
            let reason = format!("it tells {expected:?} for part {part}, the coordinator {counts:?}");
            operator.ask(Refute { token, reason }).await?;
        }
        Some(_) => {}
    }
    operator.ask(Recounted { job, part, kernel: kernel.into(), agrees, elapsed_us }).await?;
    Ok(Some(found.time))
}

/// Any result of any run that goes on and is checked.
async fn pick(operator: &Operator) -> Result<Option<AcceptedResult>, Error> {
    let runs = operator.reader.runs().await?;
    let checked = |run: &&ledger::RunRow| run.replicate_ppm > 0 && run.jobs > 0 && run.state.is_open();
    let runs: Vec<_> = runs.iter().filter(checked).collect();
    if runs.is_empty() {
        return Ok(None);
    }
    let run = runs[random_below(runs.len())];
    let first = u32::from_ne_bytes(random_bytes()) % run.jobs;
    Ok(ledger::accepted_from(operator.reader.pool(), run.id, first).await?)
}

/// What to count of a job; `None` if it would take too long.
fn draw(result: &AcceptedResult) -> Option<Subject> {
    let job = result.claim.job.decode().ok()?;
    let states_max = states_max(job.class());
    let mut parts = job.parts(result.states);
    if parts.len() == 1 {
        return (result.states <= states_max).then_some(Subject::Whole);
    }
    if parts.len() != result.parts.len() {
        return Some(Subject::Untold);
    }
    let number = random_below(parts.len());
    let part = parts.swap_remove(number);
    let number = u8::try_from(number).expect("at most 64 parts");
    (part.weight().states <= states_max).then_some(Subject::Part(number, part))
}

fn random_below(end: usize) -> usize {
    usize::from_ne_bytes(random_bytes()) % end
}

/// What the coordinator counted.
struct Counted {
    counts: Counts,
    kernel: Kernel,
    states: u64,
    /// Of one processor.
    time: Duration,
}

impl Counted {
    fn elapsed_us(&self) -> u64 {
        u64::try_from(self.time.as_micros()).unwrap_or(u64::MAX)
    }

    /// To be held against what others have counted.
    fn compare(&self, operator: &Operator, token: LeaseToken) -> Compare {
        let (&Self { counts, kernel, states, .. }, elapsed_us) = (self, self.elapsed_us());
        let (kernel, parts) = (kernel.into(), Vec::new());
        let result = JobResult { token, counts, parts, kernel, states, elapsed_us, cpu_us: Some(elapsed_us) };
        Compare { build: operator.build.to_string(), secret: random_bytes(), result }
    }
}

/// What was found, or why nothing was; `None` if the run ends meanwhile. What is not as expected is counted a second time.
async fn count_surely(
    operator: &Operator,
    run: RunId,
    claim: &Claim,
    expected: Option<Counts>,
    purpose: Purpose,
) -> Option<Result<Counted, String>> {
    let first = match count_one(operator, run, claim.clone(), purpose).await? {
        Ok(first) if expected.is_some_and(|expected| expected != first.counts) => first,
        outcome => return Some(outcome),
    };
    let again = count_one(operator, run, claim.clone(), purpose).await?;
    Some(again.and_then(|again| {
        let is_sure = again.counts == first.counts;
        is_sure
            .then_some(first)
            .ok_or_else(|| "two counts on this machine differ: check its memory".to_owned())
    }))
}

/// Counts on a thread of its own, by an engine of another family, or the fastest where that is too slow.
async fn count_one(
    operator: &Operator,
    run: RunId,
    claim: Claim,
    purpose: Purpose,
) -> Option<Result<Counted, String>> {
    let counting = Counting(Arc::default());
    let (control, (done, counted)) = (Arc::clone(&counting.0), oneshot::channel());
    let work = move || {
        if purpose == Purpose::Canary {
            // Of this thread, and of those that it starts. Without it counting is as good.
            let _ = rustix::process::nice(NICENESS);
        }
        let found = match purpose {
            Purpose::Decision { is_slow: true } => count_fast(&claim, &control),
            Purpose::Decision { is_slow: false } | Purpose::Canary => count_independently(claim, &control),
        };
        // Nobody waits any more if the run has ended.
        let _ = done.send(found);
    };
    if let Err(error) = thread::Builder::new().name("canary".to_owned()).spawn(work) {
        return Some(Err(format!("no thread can be started: {error}")));
    }
    let mut snapshot = operator.watch();
    let run_ends =
        snapshot.wait_for(|snapshot| !snapshot.run(run).is_some_and(|progress| progress.state.is_open()));
    tokio::select! {
        // A panic of an engine is its job's failure.
        counted = counted => counted.unwrap_or_else(|_| Some(Err("the engine broke off".to_owned()))),
        _ = run_ends => None,
    }
}

/// `None` if it was stopped.
fn count_independently(claim: Claim, control: &Control) -> Option<Result<Counted, String>> {
    let mut counted = None;
    // It is told by the thread that has counted.
    let tell = |Recount { kernel, found, states, .. }: Recount| {
        let time = time_of_thread();
        counted = Some(found.map(|counts| Counted { counts, kernel, states, time }));
    };
    recount(&[claim], None, NonZeroUsize::MIN, &cpu, control, tell);
    counted
}

/// As the workers do, by the fastest engine; `None` if it was stopped.
fn count_fast(claim: &Claim, control: &Control) -> Option<Result<Counted, String>> {
    let kernel = Kernel::ALL.into_iter().rev().find(|kernel| kernel.is_available())?;
    let job = match claim.job.decode() {
        Ok(job) => job,
        Err(invalid) => return Some(Err(invalid.to_string())),
    };
    let mut solver = Solver::new(kernel.engine()?, MEMORY_MAX);
    let tally = solver.count_job(&job, control).ok()?;
    let time = time_of_thread();
    let counted = |UnitTally { counts, states }| Counted { counts, kernel, states, time };
    Some(tally.map(counted).map_err(|overflow| overflow.to_string()))
}

/// Time that this thread has had a processor.
fn time_of_thread() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}
