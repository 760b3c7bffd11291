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
#[derive(Clone, Debug)]
pub struct PlanRun(pub RunSettings);

impl Request for PlanRun {
    type Answer = ();

    fn apply(self, transaction: &mut Transaction<'_>) -> Result<(), Refusal> {
        transaction.has_room()?;
        transaction.change(Change::RunPlanned(self.0));
        Ok(())
    }
}

/// Stores jobs of a run that is being planned.
#[derive(Clone, Debug)]
pub struct PlanJobs {
    pub run: RunId,
    pub first: u32,
    pub jobs: Vec<(Job, Weight)>,
}

impl Request for PlanJobs {
    type Answer = ();

    fn apply(self, transaction: &mut Transaction<'_>) -> Result<(), Refusal> {
        transaction.has_room()?;
        let Self { run, first, jobs } = self;
        transaction.change(Change::JobsPlanned { run, first, jobs });
        Ok(())
    }
}

/// All jobs of a run are stored: hands them out from now on.
#[derive(Clone, Debug)]
pub struct ActivateRun {
    pub settings: RunSettings,
    pub fingerprint: Fingerprint,
    /// Of each job, in states.
    pub estimates: Vec<u64>,
}

impl Request for ActivateRun {
    type Answer = ();

    fn apply(self, transaction: &mut Transaction<'_>) -> Result<(), Refusal> {
        let Self { settings, fingerprint, estimates } = self;
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

/// Stores a run of few jobs, and hands them out from now on.
#[derive(Clone, Debug)]
pub struct PlanSmallRun {
    /// What was asked for.
    pub settings: RunSettings,
    /// All its jobs, and what they weigh.
    pub jobs: Vec<(Job, Weight)>,
    /// Of the plan.
    pub fingerprint: Fingerprint,
}

impl Request for PlanSmallRun {
    type Answer = ();

    fn apply(self, transaction: &mut Transaction<'_>) -> Result<(), Refusal> {
        let Self { settings, jobs, fingerprint } = self;
        let estimates = jobs.iter().map(|(_, weight)| weight.states).collect();
        PlanRun(settings).apply(transaction)?;
        PlanJobs { run: settings.id, first: 0, jobs }.apply(transaction)?;
        ActivateRun { settings, fingerprint, estimates }.apply(transaction)
    }
}

/// All jobs of a run are done: the total, or the check that was not passed. Nothing happens if they no longer are.
#[derive(Clone, Debug)]
pub struct FinishRun {
    pub run: RunId,
    pub basis: Basis,
    pub outcome: Result<Outcome, String>,
}

impl Request for FinishRun {
    /// Whether the run came to an end: not if a result was withdrawn meanwhile.
    type Answer = bool;

    fn apply(self, transaction: &mut Transaction<'_>) -> Result<bool, Refusal> {
        let Self { run: id, basis, outcome } = self;
        let (now, dispatch) = (transaction.now, &mut transaction.scheduler.dispatch);
        let is_over = dispatch.run(id).map(|run| dispatch.is_over(now, run)).ok_or(Refusal::NoRun(id))?;
        let run = dispatch.run_mut(id).ok_or(Refusal::NoRun(id))?;
        if !is_over || !run.state().is_open() || run.basis() != basis {
            return Ok(false);
        }
        let n = run.plan().n().get();
        let (change, news) = match outcome {
            Ok(outcome) => {
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
