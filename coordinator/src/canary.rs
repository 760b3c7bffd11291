//! Canaries: the coordinator counts a few jobs itself, with another engine, and compares its counts with the workers'
//! results.
//!
//! It uses one thread for 5 % of the time. A worker can't recognise such a job, because it is chosen after it was
//! counted. Workers that agreed on a wrong count meet an independent one here. The coordinator's count is one vote
//! like any other: if it differs, the job is quarantined and a third machine decides.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nqueens_evidence::recount::{Recount, recount};
use nqueens_evidence::sample::Claim;
use nqueens_kernel::engine::{Control, cpu};
use nqueens_kernel::plan::PlanKind;
use nqueens_model::id::LeaseToken;
use nqueens_model::message::JobResult;
use nqueens_model::operator::RunState;
use nqueens_proto::random_bytes;
use nqueens_scheduler::request::Compare;
use tracing::{error, info};

use crate::error::Error;
use crate::ledger;
use crate::operator::Operator;

/// Counting takes this part of one thread's time.
const SHARE: u32 = 20;

/// Jobs of more estimated states than this take too long to count the slow way.
const STATES_MAX: u64 = 1 << 34;

/// Jobs of colours never do: of large ones a part is counted the slow way, and the whole as fast as others do.
const COLOURS_MAX: u64 = i64::MAX.unsigned_abs();

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

/// Counts jobs of runs with second counts, until the coordinator ends.
pub(crate) async fn count(operator: Operator) {
    let counting = Counting(Arc::default());
    let mut counted = HashSet::new();
    loop {
        let begun = Instant::now();
        let found = match pick(&operator).await {
            Ok(Some((token, claim))) if counted.insert(token.job) => Some((token, claim)),
            Ok(_) => None,
            Err(error) => {
                error!(%error, "can't read a job for a canary count");
                return;
            }
        };
        let Some((token, claim)) = found else {
            tokio::time::sleep(REST).await;
            continue;
        };
        if !compare(&operator, token, claim, &counting.0).await {
            return;
        }
        tokio::time::sleep((begun.elapsed() * (SHARE - 1)).max(BREATH)).await;
    }
}

/// Any job with a result, of any run that goes on and is checked.
async fn pick(operator: &Operator) -> Result<Option<(LeaseToken, Claim)>, Error> {
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
    ledger::accepted_from(operator.reader.pool(), run.id, first, states_max).await
}

/// Counts a job and reports what came out; false if there is nobody to take it, or it is not believed any more.
async fn compare(operator: &Operator, token: LeaseToken, claim: Claim, control: &Arc<Control>) -> bool {
    let (control, begun) = (Arc::clone(control), Instant::now());
    let counting = tokio::task::spawn_blocking(move || {
        let mut counted = None;
        recount(&[claim], None, NonZeroUsize::MIN, &cpu, &control, |recount| counted = Some(recount));
        counted
    });
    let Ok(Some(Recount { kernel, found: Ok(counts), states, .. })) = counting.await else { return false };
    let elapsed_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
    info!(job = %token.job, %kernel, elapsed_us, "canary counted");
    let kernel = kernel.into();
    let result = JobResult { token, counts, parts: Vec::new(), kernel, states, elapsed_us };
    let build = operator.build.to_string();
    let compared = operator.writer.ask(Compare { build, secret: random_bytes(), result }).await;
    if let Err(error) = &compared
        && let Error::Refused(refusal) = &**error
    {
        error!(%refusal, "no more canary counts on this machine");
    }
    compared.is_ok()
}
