//! Canaries: the coordinator counts a few jobs itself, with another engine, and compares its counts with the workers'
//! results.
//!
//! It uses one thread of the lowest priority for 5 % of the time, and stops when the run ends. A worker can't recognise such
//! a job, because it is chosen after it was counted. Workers that agreed on a wrong count meet an independent one here. The
//! coordinator's count is one vote like any other: if it differs, the job is quarantined and a third machine decides.
//!
//! A job can be too large for this. Then its result tells what was found in each of its [parts](Job::parts), which add up to
//! the whole, and one part is counted. Parts are drawn when nothing can be changed any more; so no part may be wrong. A
//! result that does not tell its parts is counted by another machine.

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
use nqueens_model::id::{LeaseToken, RunId};
use nqueens_model::message::{EncodedJob, JobResult};
use nqueens_proto::random_bytes;
use nqueens_scheduler::request::{CheckWhole, Compare, Recounted, Refute};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::oneshot;
use tracing::{error, info, warn};

use crate::error::Error;
use crate::ledger::{self, AcceptedResult};
use crate::operator::Operator;

/// Counting takes this part of one thread's time.
const SHARE: u32 = 20;

/// While there is nothing to count.
const REST: Duration = Duration::from_secs(2);

/// Between two jobs at least.
const BREATH: Duration = Duration::from_millis(200);

/// After an error.
const RECOVERY: Duration = Duration::from_mins(1);

/// The lowest priority: whatever else runs on this machine gets the processor first.
const NICENESS: i32 = 19;

/// What takes more estimated states is not counted. Prefixes are searched at 10^8 states a second; half boards by a block
/// engine, at 10^9. Colours are multiplied as fast as by others, and a bit of them is searched.
const fn states_max(class: Class) -> u64 {
    match class {
        Class::Corner | Class::Edge | Class::Border => 1 << 34,
        Class::Halves => 1 << 38,
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

/// What is to be counted of a job.
enum Subject {
    /// All of it.
    Whole,
    /// A part, by its number.
    Part(u8, Job),
    /// It has parts, but its result does not tell them.
    Untold,
}

/// Counts jobs of runs with second counts, until the coordinator ends.
pub(crate) async fn count(operator: Operator) {
    let mut counted = HashSet::new();
    loop {
        let pause = match check_one(&operator, &mut counted).await {
            Ok(Some(time)) => (time * (SHARE - 1)).max(BREATH),
            Ok(None) => REST,
            Err(error) if matches!(*error, Error::Refused(_)) => {
                error!(%error, "no more canary counts on this machine");
                return;
            }
            Err(error) => {
                error!(%error, "a canary count came to nothing");
                RECOVERY
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// Counts a job or a part that was not counted before, if one is found at once; tells how long that took.
async fn check_one(
    operator: &Operator,
    counted: &mut HashSet<(LeaseToken, Option<u8>)>,
) -> Result<Option<Duration>, Arc<Error>> {
    let Some(result) = pick(operator).await? else { return Ok(None) };
    let Some(subject) = draw(&result) else { return Ok(None) };
    let job = result.token.job;
    let (part, claim) = match subject {
        Subject::Whole => (None, result.claim.clone()),
        Subject::Part(number, part) => {
            let (job, counts) = (EncodedJob::from(&part), result.parts[usize::from(number)]);
            (Some(number), Claim { job, counts, ..result.claim.clone() })
        }
        Subject::Untold => {
            if !counted.insert((result.token, None)) {
                return Ok(None);
            }
            warn!(%job, "a result does not tell its parts: another machine counts the job");
            operator.ask(CheckWhole(result.token)).await?;
            return Ok(Some(Duration::ZERO));
        }
    };
    if !counted.insert((result.token, part)) {
        return Ok(None);
    }
    let (expected, begun) = (claim.counts, Instant::now());
    let Some(Counted { counts, kernel, states, time }) = recount_one(operator, job.run, claim).await else {
        return Ok(Some(begun.elapsed()));
    };
    let elapsed_us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let agrees = counts == expected;
    info!(%job, part, %kernel, elapsed_us, agrees, "canary counted");
    let compare = |counts| {
        let (token, parts, kernel, build) =
            (result.token, Vec::new(), kernel.into(), operator.build.to_string());
        let result = JobResult { token, counts, parts, kernel, states, elapsed_us };
        Compare { build, secret: random_bytes(), result }
    };
    match part {
        None => operator.ask(compare(counts)).await?,
        Some(part) if !agrees => {
            operator.ask(Refute(compare(corrected(&result.parts, part, counts)))).await?;
        }
        Some(_) => {}
    }
    operator.ask(Recounted { job, part, kernel: kernel.into(), agrees, elapsed_us }).await?;
    Ok(Some(time))
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
    ledger::accepted_from(operator.reader.pool(), run.id, first).await
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

/// What a job has if all of its parts but this one are right.
fn corrected(parts: &[Counts], part: u8, counts: Counts) -> Counts {
    let others = parts.iter().enumerate().filter(|(other, _)| *other != usize::from(part));
    let sum = others.fold(<[u64; 4]>::from(counts), |sum, (_, part)| {
        let part = <[u64; 4]>::from(*part);
        // The ledger has 63 bits for each; nothing right comes near.
        std::array::from_fn(|at| sum[at].saturating_add(part[at]).min(i64::MAX.unsigned_abs()))
    });
    sum.into()
}

/// What the coordinator counted.
struct Counted {
    counts: Counts,
    kernel: Kernel,
    states: u64,
    /// Of one processor.
    time: Duration,
}

/// Counts on a thread of its own; `None` if the run ends meanwhile, or if there is nothing to count.
async fn recount_one(operator: &Operator, run: RunId, claim: Claim) -> Option<Counted> {
    let counting = Counting(Arc::default());
    let (control, (done, counted)) = (Arc::clone(&counting.0), oneshot::channel());
    let work = move || {
        // Of this thread, and of those that it starts. Without it counting is as good.
        let _ = rustix::process::nice(NICENESS);
        let mut found = None;
        // It is told by the thread that has counted.
        let tell = |recount| found = Some((recount, time_of_thread()));
        recount(&[claim], None, NonZeroUsize::MIN, &cpu, &control, tell);
        // Nobody waits any more if the run has ended.
        let _ = done.send(found);
    };
    thread::Builder::new().name("canary".to_owned()).spawn(work).ok()?;
    let mut snapshot = operator.watch();
    let run_ends =
        snapshot.wait_for(|snapshot| !snapshot.run(run).is_some_and(|progress| progress.state.is_open()));
    tokio::select! {
        counted = counted => {
            let (Recount { kernel, found, states, .. }, time) = counted.ok()??;
            // This machine is at fault, or the job is no job.
            let counts = found.inspect_err(|reason| error!(reason, "a canary count came to nothing")).ok()?;
            Some(Counted { counts, kernel, states, time })
        }
        _ = run_ends => None,
    }
}

/// Time that this thread has had a processor.
fn time_of_thread() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_with_one_part_corrected_has_what_the_others_have_and_this() {
        let parts = [5, 7, 11].map(Counts::only8);
        assert_eq!(corrected(&parts, 1, Counts::only8(8)), Counts::only8(24));
        let beyond = [Counts::only8(i64::MAX.unsigned_abs()), Counts::ZERO];
        assert_eq!(corrected(&beyond, 1, Counts::only8(8)), beyond[0]);
    }
}
