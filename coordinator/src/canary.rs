//! What the coordinator counts itself, with another engine than the workers: what has to be decided, and canaries.
//!
//! It decides where results differ, where a job fails on workers, and where nobody makes a check: at once, on one thread. No
//! votes outweigh its count.
//!
//! Canaries are jobs that it compares with the workers' results, for 5 % of one thread's time. A worker can't recognise such
//! a job, because it is chosen after it was counted. Workers that agreed on a wrong count meet an independent one here.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nqueens_evidence::recount::{Recount, recount};
use nqueens_evidence::sample::Claim;
use nqueens_kernel::counts::Counts;
use nqueens_kernel::engine::{Control, Kernel, cpu};
use nqueens_kernel::halves::SharedTables;
use nqueens_kernel::plan::PlanKind;
use nqueens_kernel::solver::Solver;
use nqueens_model::id::LeaseToken;
use nqueens_model::message::JobResult;
use nqueens_model::operator::RunState;
use nqueens_proto::random_bytes;
use nqueens_scheduler::request::{Compare, GiveUp};
use tracing::{error, info};

use crate::error::Error;
use crate::ledger;
use crate::operator::Operator;

/// Counting takes this part of one thread's time.
const SHARE: u32 = 20;

/// Jobs of more estimated states than this take too long to count the slow way: no canaries, and decided the fast way.
const STATES_MAX: u64 = 1 << 34;

/// Jobs of colours never do: of large ones a part is counted the slow way, and the whole as fast as others do.
const COLOURS_MAX: u64 = i64::MAX.unsigned_abs();

/// Bytes that the fast way may take.
const MEMORY_MAX: u64 = 1 << 30;

/// While there is nothing to count.
const REST: Duration = Duration::from_secs(2);

/// Between two jobs at least.
const BREATH: Duration = Duration::from_millis(200);

/// Stops the counting when its owner is gone.
struct Counting(Arc<Control>);

impl Drop for Counting {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Counts what the coordinator has to decide, and else a few jobs of runs with second counts, until the coordinator ends.
pub(crate) async fn count(operator: Operator) {
    let counting = Counting(Arc::default());
    let (mut counted, mut failed) = (HashSet::new(), HashSet::new());
    loop {
        let begun = Instant::now();
        let undecided = operator.writer.look(|dispatch, now| dispatch.undecided(now)).await;
        let Ok(undecided) = undecided else { return };
        let undecided = undecided.filter(|(token, _)| !failed.contains(&token.job));
        let is_decision = undecided.is_some();
        let found = match undecided {
            Some((token, has_result)) => subject(&operator, token, has_result).await.map(Some),
            None => pick(&operator).await.map(|found| found.filter(|found| counted.insert(found.token.job))),
        };
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                error!(%error, "can't read a job to count it here");
                return;
            }
        };
        let Some(found) = found else {
            tokio::time::sleep(REST).await;
            continue;
        };
        let job = found.token.job;
        match decide(&operator, found, &counting.0).await {
            Ok(true) => {}
            Ok(false) => drop(failed.insert(job)),
            Err(Closed) => return,
        }
        let rest = if is_decision { BREATH } else { (begun.elapsed() * (SHARE - 1)).max(BREATH) };
        tokio::time::sleep(rest).await;
    }
}

/// A job to count.
struct Subject {
    token: LeaseToken,
    /// What it is, and what was counted by which engine; nothing if it has no result.
    claim: Claim,
    has_result: bool,
    /// Estimated work.
    states: u64,
}

/// The coordinator ends.
struct Closed;

/// What has to be decided.
async fn subject(operator: &Operator, token: LeaseToken, has_result: bool) -> Result<Subject, Error> {
    let (claim, states) = ledger::claim(operator.reader.pool(), token.job).await?;
    Ok(Subject { token, claim, has_result, states })
}

/// Any job with a result, of any run that goes on and is checked.
async fn pick(operator: &Operator) -> Result<Option<Subject>, Error> {
    let runs = operator.reader.runs().await?;
    let checked = |run: &&ledger::RunRow| {
        run.replicate_ppm > 0 && run.jobs > 0 && matches!(run.state, RunState::Active | RunState::Paused)
    };
    let runs: Vec<_> = runs.iter().filter(checked).collect();
    if runs.is_empty() {
        return Ok(None);
    }
    let run = runs[usize::from_ne_bytes(random_bytes()) % runs.len()];
    let states_max = if run.plan.kind() == PlanKind::Colours { COLOURS_MAX } else { STATES_MAX };
    let first = u32::from_ne_bytes(random_bytes()) % run.jobs;
    let found = ledger::accepted_from(operator.reader.pool(), run.id, first, states_max).await?;
    Ok(found.map(|(token, claim)| Subject { token, claim, has_result: true, states: 0 }))
}

/// Counts a job and says what came out; false if it could not be counted. A count that differs from the workers' is made
/// twice: it is final, and this machine may have bad memory as well.
async fn decide(operator: &Operator, subject: Subject, control: &Arc<Control>) -> Result<bool, Closed> {
    let begun = Instant::now();
    let Subject { token, ref claim, has_result, .. } = subject;
    let mut counted = count_one(&subject, control).await?;
    let differs = |counted: &Counted| counted.as_ref().is_ok_and(|(counts, ..)| *counts != claim.counts);
    if has_result && differs(&counted) {
        let again = count_one(&subject, control).await?;
        if again.as_ref().ok().map(|again| again.0) != counted.as_ref().ok().map(|counted| counted.0) {
            counted = Err("two counts on this machine differ: check its memory".to_owned());
        }
    }
    let (counts, kernel, states) = match counted {
        Ok(counted) => counted,
        Err(reason) if has_result => {
            error!(job = %token.job, reason, "the coordinator can't count a job");
            return Ok(false);
        }
        Err(reason) => {
            let given_up = operator.writer.ask(GiveUp { job: token.job, reason }).await;
            return given_up.map(|()| false).map_err(|_| Closed);
        }
    };
    let elapsed_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
    info!(job = %token.job, %kernel, elapsed_us, "the coordinator has counted a job");
    let result = JobResult { token, counts, kernel: kernel.into(), states, elapsed_us };
    let build = operator.build.to_string();
    let compared = operator.writer.ask(Compare { build, secret: random_bytes(), result }).await;
    compared.map(|()| true).map_err(|_| Closed)
}

/// What was found, by which engine, and the states visited; or why there was nothing to count.
type Counted = Result<(Counts, Kernel, u64), String>;

/// By an independent engine; where that would take too long, as the workers do.
async fn count_one(subject: &Subject, control: &Arc<Control>) -> Result<Counted, Closed> {
    let (claim, control) = (subject.claim.clone(), Arc::clone(control));
    let is_slow = subject.states > STATES_MAX && claim.job.class.plan() != PlanKind::Colours;
    let counting = tokio::task::spawn_blocking(move || {
        if is_slow {
            return count_fast(&claim, &control);
        }
        let mut counted = None;
        recount(&[claim], None, NonZeroUsize::MIN, &cpu, &control, |recount| counted = Some(recount));
        counted.map(|Recount { kernel, found, states, .. }| found.map(|counts| (counts, kernel, states)))
    });
    // A panic of an engine is its job's failure.
    let counted = counting.await.unwrap_or_else(|panic| Some(Err(panic.to_string())));
    counted.ok_or(Closed)
}

/// By the fastest engine; `None` if it was stopped.
fn count_fast(claim: &Claim, control: &Control) -> Option<Counted> {
    let kernel = Kernel::ALL.into_iter().rev().find(|kernel| kernel.is_available())?;
    let job = match claim.job.decode() {
        Ok(job) => job,
        Err(invalid) => return Some(Err(invalid.to_string())),
    };
    let mut solver = Solver::new(kernel.engine()?, &Arc::new(SharedTables::new(MEMORY_MAX, 1)));
    let tally = solver.count_job(&job, control).ok()?;
    Some(tally.map(|tally| (tally.counts, kernel, tally.states)).map_err(|overflow| overflow.to_string()))
}
