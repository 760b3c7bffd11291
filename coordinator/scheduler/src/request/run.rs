//! Start and end of a run.

use nqueens_kernel::job::{Job, Weight};
use nqueens_kernel::plan::Fingerprint;
use nqueens_model::id::RunId;
use nqueens_model::numbers::thousands;
use nqueens_model::operator::{EventKind, Outcome, RunState};
use tracing::{error, info};

use super::Request;
use crate::change::Change;
use crate::dispatch::{Basis, CheckOutcome, Run, RunSettings};
use crate::new_event::NewEvent;
use crate::refusal::Refusal;
use crate::transaction::Transaction;

/// Begins to store a run.
pub fn plan_run(settings: RunSettings) -> impl Request<Answer = ()> {
    move |transaction: &mut Transaction<'_>| {
        transaction.has_room()?;
        transaction.change(Change::RunPlanned(settings));
        Ok(())
    }
}

/// Stores jobs of a run that is being planned.
pub fn plan_jobs(run: RunId, first: u32, jobs: Vec<(Job, Weight)>) -> impl Request<Answer = ()> {
    move |transaction: &mut Transaction<'_>| {
        transaction.has_room()?;
        transaction.change(Change::JobsPlanned { run, first, jobs });
        Ok(())
    }
}

/// All jobs of a run are stored: hands them out from now on. The estimates are of each job, in states.
pub fn activate_run(
    settings: RunSettings,
    fingerprint: Fingerprint,
    estimates: Vec<u64>,
) -> impl Request<Answer = ()> {
    move |transaction: &mut Transaction<'_>| {
        let run = Run::planned(&settings, &estimates);
        let RunSettings { id, plan, priority, .. } = settings;
        let jobs = run.jobs();
        info!(run = %id, n = plan.n().get(), plan = %plan.kind(), jobs, priority, "run is planned");
        transaction.change(Change::RunActivated { run: id, jobs, fingerprint });
        let what = format!("planned, {} jobs.", thousands(jobs));
        transaction.tell([NewEvent::of(&run, EventKind::RunPlanned, what)]);
        transaction.scheduler.dispatch.add_run(run);
        Ok(())
    }
}

/// Stores a run of few jobs, and hands them out from now on: what was asked for, all its jobs with what they weigh, and
/// the fingerprint of its plan.
pub fn plan_small_run(
    settings: RunSettings,
    jobs: Vec<(Job, Weight)>,
    fingerprint: Fingerprint,
) -> impl Request<Answer = ()> {
    move |transaction: &mut Transaction<'_>| {
        let estimates = jobs.iter().map(|(_, weight)| weight.states).collect();
        transaction.apply(plan_run(settings))?;
        transaction.apply(plan_jobs(settings.id, 0, jobs))?;
        transaction.apply(activate_run(settings, fingerprint, estimates))
    }
}

/// All jobs of a run are done: the total, or the check that was not passed. Nothing happens if they no longer are.
///
/// The answer is whether the run came to an end: not if a result was withdrawn meanwhile.
pub fn finish_run(id: RunId, basis: Basis, outcome: Result<Outcome, String>) -> impl Request<Answer = bool> {
    move |transaction: &mut Transaction<'_>| {
        let (now, dispatch) = (transaction.now, &mut transaction.scheduler.dispatch);
        let known = dispatch.run(id).ok_or(Refusal::NoRun(id))?;
        let (is_over, left) = (dispatch.is_over(now, known), dispatch.recounts_left(known));
        let run = dispatch.run_mut(id).ok_or(Refusal::NoRun(id))?;
        if !is_over || !run.state().is_open() || run.basis() != basis {
            return Ok(false);
        }
        let n = run.plan().n().get();
        let (change, news) = match outcome {
            Ok(mut outcome) => {
                if let Some(grounds) = outcome.grounds.as_mut().filter(|_| left > 0) {
                    grounds.recounts_wanted = grounds.recounts_wanted.max(run.sums.checks.recounted + left);
                }
                run.state = RunState::Done;
                info!(run = %id, n, total = %outcome.total, "run is done");
                let (total, check) = (thousands(outcome.total), outcome.checked.describe());
                let what = format!("done, TOTAL {total}: {check}.");
                (Change::RunDone(id, outcome), NewEvent::of(run, EventKind::RunDone, what))
            }
            Err(reason) => {
                run.state = RunState::Failed;
                error!(run = %id, n, reason, "run has no total: a check failed");
                let what = format_args!("no total, because a check failed: {reason}.");
                let news = NewEvent::of(run, EventKind::RunFailed, what);
                (Change::RunState { run: id, state: RunState::Failed, reason: Some(reason) }, news)
            }
        };
        dispatch.end_checks(id, CheckOutcome::Unmade);
        // A run has no open check when it is done, and keeps the sum of its recounts.
        transaction.give_out_all();
        transaction.change(change);
        transaction.tell([news]);
        Ok(true)
    }
}
