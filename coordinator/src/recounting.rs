//! What the coordinator counts itself, on one thread: `nqueens_scheduler` says which jobs, and what follows.
//!
//! It counts by a search that multiplies nothing. A job can be too large for that. Then its result tells what was found in each
//! of its [parts](Job::parts), which add up to the whole: one part is counted that was drawn, or in which two results differ.
//! Jobs of colours are multiplied again with other instructions where the search would take too long, and parts of them are
//! searched. A drawn job whose result does not tell its parts is counted whole: who reports a result has no say in whether it is
//! recounted. What is too large for all of that is counted by the fastest engine.
//!
//! A count that differs from a worker's is made twice before it is told: this machine may have bad memory as well.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use nqueens_evidence::recount::{Recount, recount};
use nqueens_evidence::sample::Claim;
use nqueens_kernel::counts::Counts;
use nqueens_kernel::engine::{Control, Kernel, cpu};
use nqueens_kernel::job::{Class, Job};
use nqueens_kernel::solver::Solver;
use nqueens_kernel::unit::UnitTally;
use nqueens_ledger::{self as ledger, SecondCount, Subject};
use nqueens_model::id::{RunId, WorkerId};
use nqueens_model::message::EncodedJob;
use nqueens_proto::random_bytes;
use nqueens_scheduler::request::{Recounted, give_up};
use nqueens_scheduler::{Dispatch, Task, Why};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tracing::{error, info};

use crate::error::Error;
use crate::operator::Operator;

/// While there is nothing to count.
const REST: Duration = Duration::from_secs(2);

/// Between two looks for something.
const BREATH: Duration = Duration::from_millis(50);

/// After an error.
const RECOVERY: Duration = Duration::from_mins(1);

/// Bytes that the fast way may take.
const MEMORY_MAX: u64 = 1 << 30;

/// The lowest priority, of jobs that were drawn of a run that goes on anyway: whatever else runs on this machine gets the
/// processor first.
const NICENESS: i32 = 19;

/// What takes more estimated states is not searched: half an hour. Colours are, or a few bits of them, whatever their size.
const fn states_max(class: Class) -> u64 {
    match class {
        Class::Corner | Class::Edge | Class::Border | Class::Cells => 1 << 34,
        Class::Colours => u64::MAX,
    }
}

/// What takes more of them is not counted because it was drawn: as many as 64 parts have that are searched.
const DRAWN_STATES_MAX: u64 = 1 << 40;

/// Counts what there is to count, until the coordinator ends.
pub(crate) async fn count(operator: Operator) {
    let mut snapshot = operator.watch();
    loop {
        match count_next(&operator).await {
            Ok(true) => {}
            Ok(false) => {
                // An error means that the coordinator closes.
                let _ = timeout(REST, snapshot.changed()).await;
                sleep(BREATH).await;
            }
            Err(error) => {
                error!(%error, "counting here came to nothing");
                sleep(RECOVERY).await;
            }
        }
    }
}

/// What is to be counted of a job, and by what.
struct Work {
    claim: Claim,
    part: Option<u8>,
    /// What second counts say of it.
    seconds: Vec<(WorkerId, Counts)>,
    /// The search would take too long: the fastest engine counts.
    is_slow: bool,
}

/// False if there is nothing to count.
async fn count_next(operator: &Operator) -> Result<bool, Arc<Error>> {
    let Some(Task { job, why }) = operator.writer.look(Dispatch::task).await? else {
        return Ok(false);
    };
    let subject = ledger::subject(operator.reader.pool(), job).await.map_err(Error::from)?;
    let of = subject.accepted.and_then(|(worker, epoch)| Some((worker, NonZeroU32::new(epoch)?)));
    let work = match plan(why, subject) {
        Ok(work) => work,
        Err(reason) => {
            operator.ask(give_up(job, why, reason)).await?;
            return Ok(true);
        }
    };
    let drawn = matches!(why, Why::Drawn(_));
    let part = work.part;
    let said = work.claim.counts;
    let is_counted = operator.watch().borrow().run(job.run).is_some_and(|run| run.sums.done == run.jobs);
    let found = match count_surely(operator, job.run, &work, of.map(|_| said), drawn && !is_counted).await {
        None => return Ok(true),
        Some(Ok(found)) => found,
        Some(Err(reason)) => {
            operator.ask(give_up(job, why, reason)).await?;
            return Ok(true);
        }
    };
    let Counted { counts, kernel, states, time } = found;
    let elapsed_us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX >> 1);
    info!(%job, part, ?why, %kernel, elapsed_us, agrees = of.is_none() || counts == said, "counted here");
    let (build, secret, kernel) = (operator.build.to_string(), random_bytes(), kernel.into());
    let seconds = work.seconds;
    let recounted =
        Recounted { build, secret, job, of, part, drawn, counts, said, seconds, kernel, states, elapsed_us };
    operator.ask(recounted).await?;
    Ok(true)
}

/// What to count of a job; the error says why it can't be counted.
fn plan(why: Why, subject: Subject) -> Result<Work, String> {
    let Subject { claim, states, parts: told, seconds, .. } = subject;
    let job = claim.job.decode().map_err(|invalid| invalid.to_string())?;
    let is_long = |states: u64| states > states_max(job.class());
    let part_of = |number: usize| {
        let mut parts = job.parts(states);
        (number < parts.len() && parts.len() == told.len()).then(|| parts.swap_remove(number))
    };
    let work = |number: usize, part: &Job| {
        let of_part = |second: &SecondCount| {
            let is_alike = second.parts.len() == told.len();
            is_alike.then(|| (second.worker, second.parts[number]))
        };
        let seconds = seconds.iter().filter_map(of_part).collect();
        let claim = Claim { job: EncodedJob::from(part), counts: told[number], ..claim.clone() };
        let is_slow = is_long(part.weight().states);
        Work { claim, part: u8::try_from(number).ok(), seconds, is_slow }
    };
    let whole = || {
        let seconds = seconds.iter().map(|second| (second.worker, second.counts)).collect();
        Work { claim: claim.clone(), part: None, seconds, is_slow: is_long(states) }
    };
    match why {
        Why::Dispute => {
            let differing = seconds.iter().rev().find(|second| second.counts != claim.counts);
            let others = &differing.ok_or("the second count that differs is gone")?.parts;
            let at = told.iter().zip(others).position(|(one, other)| one != other);
            let part = at.filter(|_| told.len() == others.len()).and_then(|at| Some((at, part_of(at)?)));
            Ok(part.map_or_else(whole, |(at, part)| work(at, &part)))
        }
        Why::Left if is_long(states) => Err("it is too large to be counted here".to_owned()),
        Why::Left | Why::Failing => Ok(whole()),
        Why::Drawn(lot) => {
            let parts = job.parts(states).len();
            let number = usize::try_from(lot % parts as u64).expect("at most 64 parts");
            let part = part_of(number);
            if part.as_ref().map_or(states, |part| part.weight().states) > DRAWN_STATES_MAX {
                return Err("it is too large to be recounted, or does not tell its parts".to_owned());
            }
            Ok(part.map_or_else(whole, |part| work(number, &part)))
        }
    }
}

/// What the coordinator counted.
struct Counted {
    counts: Counts,
    kernel: Kernel,
    states: u64,
    /// Of one processor.
    time: Duration,
}

/// What was found, or why nothing was; `None` if the run ends meanwhile. What is not as expected is counted a second time.
async fn count_surely(
    operator: &Operator,
    run: RunId,
    work: &Work,
    expected: Option<Counts>,
    is_nice: bool,
) -> Option<Result<Counted, String>> {
    let first = match count_one(operator, run, work, is_nice).await? {
        Ok(first) if expected.is_some_and(|expected| expected != first.counts) => first,
        outcome => return Some(outcome),
    };
    let again = count_one(operator, run, work, is_nice).await?;
    Some(again.and_then(|again| {
        let is_sure = again.counts == first.counts;
        let both = Counted { time: first.time + again.time, ..again };
        is_sure
            .then_some(both)
            .ok_or_else(|| "two counts on this machine differ: check its memory".to_owned())
    }))
}

/// Stops the counting when nobody waits for it any more.
struct Counting(Arc<Control>);

impl Drop for Counting {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Counts on a thread of its own, by an engine of another family, or the fastest where that is too slow.
async fn count_one(
    operator: &Operator,
    run: RunId,
    work: &Work,
    is_nice: bool,
) -> Option<Result<Counted, String>> {
    let counting = Counting(Arc::default());
    let (control, (done, counted)) = (Arc::clone(&counting.0), oneshot::channel());
    let (claim, is_slow) = (work.claim.clone(), work.is_slow);
    let work = move || {
        if is_nice {
            // Of this thread, and of those that it starts. Without it counting is as good.
            let _ = rustix::process::nice(NICENESS);
        }
        let found = if is_slow { count_fast(&claim, &control) } else { count_independently(claim, &control) };
        // Nobody waits any more if the run has ended.
        let _ = done.send(found);
    };
    if let Err(error) = thread::Builder::new().name("recount".to_owned()).spawn(work) {
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
    let kernel = Kernel::best();
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
