//! What an operator can ask of a coordinator, by the JSON API or on a database file.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nqueens_kernel::job::{Job, Weight};
use nqueens_kernel::plan::Plan;
use nqueens_model::id::RunId;
use nqueens_model::operator::{
    Moment, Progress, RunDetail, RunState, RunStatus, Submission, Worker, WorkerStatus,
};
use nqueens_proto::random_bytes;
use nqueens_scheduler::request::{activate_run, plan_jobs, plan_run, plan_small_run, set_run_state};
use nqueens_scheduler::{Dispatch, Millis, Refusal, Request, RunSettings};
use tokio::sync::watch;
use tracing::{Instrument, info};

use crate::clock::wall_time;
use crate::error::Error;
use crate::history::{Events, Histories};
use crate::planner::{BATCH, Planner};
use crate::plans::{Planning, Plans, UnplannedRun};
use crate::progress::Snapshot;
use crate::reader::Reader;
use crate::writer::Handle;
use nqueens_ledger::RunRow;

/// The writer commits every second, if only to look for leases that have run out. A coordinator whose latest commit is older
/// than this is not ready.
const COMMIT_AGE_MAX: Duration = Duration::from_secs(10);

/// An operator's hands and eyes; cheap to clone.
#[derive(Clone)]
pub struct Operator {
    pub(crate) writer: Handle,
    pub(crate) reader: Reader,
    pub(crate) snapshot: watch::Receiver<Arc<Snapshot>>,
    pub(crate) events: watch::Receiver<Events>,
    pub(crate) histories: Histories,
    /// When the writer committed last.
    pub(crate) committed: watch::Receiver<Instant>,
    /// Names the program for the record.
    pub(crate) build: Arc<str>,
    pub(crate) plans: Plans,
    /// A plan of more jobs is refused.
    pub(crate) jobs_max: u32,
}

impl Operator {
    /// For looking at the ledger.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// The state as it changes.
    pub fn watch(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.snapshot.clone()
    }

    /// Events for operators.
    pub fn events(&self) -> watch::Receiver<Events> {
        self.events.clone()
    }

    /// How a run went over time, oldest moment first.
    pub async fn history(&self, run: RunId) -> Result<Vec<Moment>, Arc<Error>> {
        let reader = self.reader.clone();
        self.histories.of(run, async move { reader.history(run).await }).await.map_err(Arc::new)
    }

    /// Whether the writer can commit: it did in the last 10 seconds.
    pub fn is_ready(&self) -> bool {
        self.committed.borrow().elapsed() <= COMMIT_AGE_MAX
    }

    /// The program that answers here.
    pub fn build(&self) -> &str {
        &self.build
    }

    /// All runs in full, oldest first; those that are being planned come last.
    pub async fn runs(&self) -> Result<Vec<RunStatus>, Arc<Error>> {
        // In this order: what has been planned meanwhile is seen at least once.
        let unplanned = self.plans.runs();
        let rows = self.reader.runs().await?;
        let unplanned = unplanned.into_iter().filter(|run| rows.iter().all(|row| row.id != run.id()));
        let unplanned: Vec<_> = unplanned.map(|run| run.status()).collect();
        let snapshot = self.snapshot.borrow().clone();
        // A run that was committed this moment may not be in the picture yet.
        let status = |row: RunRow| Some(snapshot.run(row.id)?).map(|progress| progress.status(row));
        Ok(rows.into_iter().filter_map(status).chain(unplanned).collect())
    }

    /// One run in full. The error of one that was not planned to its end says why.
    pub async fn run(&self, id: RunId) -> Result<RunStatus, Arc<Error>> {
        let run = self.runs().await?.into_iter().find(|run| run.progress.run == id);
        run.ok_or_else(|| self.plans.failure(id).unwrap_or_else(|| Arc::new(Refusal::NoRun(id).into())))
    }

    /// The jobs of a run in plan order, in at most this many groups of equal size (the last may be smaller): for each
    /// group, the number of jobs in each [`JobState`](crate::JobState). None of a run that is being planned.
    pub async fn job_state_histogram(
        &self,
        run: RunId,
        groups_max: usize,
    ) -> Result<Vec<[u32; 4]>, Arc<Error>> {
        if self.plans.get(run).is_some() {
            return Ok(Vec::new());
        }
        let groups =
            move |dispatch: &Dispatch, _| dispatch.run(run).map(|run| run.job_state_histogram(groups_max));
        self.writer.look(groups).await?.ok_or_else(|| Arc::new(Refusal::NoRun(run).into()))
    }

    /// What there is to tell of one run alone; of one that is not known, nothing.
    pub async fn detail(&self, run: RunId) -> Result<RunDetail, Arc<Error>> {
        let being_counted = self.writer.look(move |dispatch, now| dispatch.being_counted(now, run)).await?;
        Ok(RunDetail { moments: self.history(run).await?, being_counted: being_counted.try_into().ok() })
    }

    /// Plans a run and stores its jobs. They can be leased once all are stored; runs of higher priority go first. A
    /// repeated request finds the same run.
    pub async fn submit(&self, plan: Plan, priority: i32) -> Result<RunRow, Arc<Error>> {
        self.submit_once(Submission { request: random_bytes(), plan, priority, replicate_ppm: 0 }).await
    }

    /// As [`submit`](Self::submit), but the same submission again is the same run. Whoever gives up waiting does not keep it
    /// from being planned.
    pub async fn submit_once(&self, submission: Submission) -> Result<RunRow, Arc<Error>> {
        if let Some(planning) = self.begin(submission).await? {
            planning.ended().await?;
        }
        self.reader.run(submission.run()).await.map_err(Arc::new)
    }

    /// Begins to plan a run; `None` if it is planned already.
    pub(crate) async fn begin(&self, submission: Submission) -> Result<Option<Arc<Planning>>, Arc<Error>> {
        let Submission { plan, priority, replicate_ppm, .. } = submission;
        let (id, seed) = (submission.run(), submission.seed());
        let settings = RunSettings { id, plan, seed, priority, replicate_ppm };
        if let Some(run) = self.planned(id).await? {
            let is_same = run.plan == plan && run.seed == seed;
            return if is_same { Ok(None) } else { Err(Arc::new(Error::OtherSubmission(id))) };
        }
        let sizing = tokio::task::spawn_blocking(move || plan.size()).await;
        let size = sizing.expect("sizes do not panic");
        self.within_limit(plan, size.at_least, size.about)?;
        let run = UnplannedRun::new(settings, size, wall_time(), 0);
        let (planning, is_new) = self.plans.enter(run)?;
        if is_new {
            let planning = Arc::clone(&planning);
            let operator = self.clone();
            tokio::spawn(async move { operator.plan(&planning).await }.in_current_span());
        } else if planning.settings().plan != plan || planning.settings().seed != seed {
            return Err(Arc::new(Error::OtherSubmission(id)));
        }
        Ok(Some(planning))
    }

    async fn planned(&self, id: RunId) -> Result<Option<RunRow>, Arc<Error>> {
        match self.reader.run(id).await {
            Ok(run) => Ok(Some(run)),
            Err(Error::Refused(Refusal::NoRun(_))) => Ok(None),
            Err(error) => Err(Arc::new(error)),
        }
    }

    /// Refuses a plan of at least so many jobs if they are more than the limit.
    fn within_limit(&self, plan: Plan, at_least: u128, about: u128) -> Result<(), Arc<Error>> {
        let jobs_max = self.jobs_max;
        if at_least <= jobs_max.into() {
            return Ok(());
        }
        let states_per_job = u128::from(plan.states_per_job()) * (2 * about).div_ceil(jobs_max.into());
        Err(Arc::new(Error::PlanTooLarge { jobs: about, jobs_max, states_per_job }))
    }

    /// Plans a run when it is its turn. If that fails, nothing of it stays.
    async fn plan(&self, planning: &Planning) {
        let run = planning.settings().id;
        let Some(turn) = self.plans.turn(planning).await else {
            return self.plans.end(planning, Err(Arc::new(Error::PlanCancelled(run))));
        };
        let outcome = self.store(planning).await;
        let failure = outcome.as_ref().err().cloned();
        self.plans.end(planning, outcome);
        if let Some(error) = failure {
            info!(%run, %error, "run is not planned; what is stored of it is removed");
            // What can't be removed now, is before the next plan is stored, or at the next start.
            if let Err(error) = self.writer.discard_unplanned().await {
                info!(%run, %error, "not all of a run that is not planned could be removed");
            }
        }
        drop(turn);
    }

    async fn store(&self, planning: &Planning) -> Result<(), Arc<Error>> {
        let settings @ RunSettings { id, plan, .. } = *planning.settings();
        // The same submission, looked for before the last one of it had ended.
        if self.planned(id).await?.is_some() {
            return Ok(());
        }
        let mut planner = Planner::start(plan);
        if !self.reader.unplanned_runs().await?.is_empty() {
            self.writer.discard_unplanned().await?;
        }
        let mut jobs = self.batch(planning, &mut planner, 0).await?;
        if jobs.len() < BATCH as usize {
            let fingerprint = planner.finish().await?;
            return self.ask(plan_small_run(settings, jobs, fingerprint)).await;
        }
        self.ask(plan_run(settings)).await?;
        let mut estimates = Vec::new();
        while !jobs.is_empty() {
            let first = u32::try_from(estimates.len()).expect("within a limit of 32 bits");
            estimates.extend(jobs.iter().map(|(_, weight)| weight.states));
            self.ask(plan_jobs(id, first, jobs)).await?;
            planning.note_stored(u32::try_from(estimates.len()).expect("within a limit of 32 bits"));
            jobs = self.batch(planning, &mut planner, estimates.len()).await?;
        }
        let fingerprint = planner.finish().await?;
        self.ask(activate_run(settings, fingerprint, estimates)).await
    }

    /// The jobs that come after the first `before`, none at the end.
    async fn batch(
        &self,
        planning: &Planning,
        planner: &mut Planner,
        before: usize,
    ) -> Result<Vec<(Job, Weight)>, Arc<Error>> {
        let RunSettings { id, plan, .. } = *planning.settings();
        let jobs = tokio::select! {
            biased;
            () = planning.cancelled() => return Err(Arc::new(Error::PlanCancelled(id))),
            jobs = planner.next() => jobs.unwrap_or_default(),
        };
        let so_far = (before + jobs.len()) as u128;
        self.within_limit(plan, so_far, so_far.max(planning.run().expected.into()))?;
        Ok(jobs)
    }

    /// Pauses, resumes or cancels a run. Of one that is cancelled while it is being planned, nothing is kept.
    pub async fn set_run_state(&self, run: RunId, state: RunState) -> Result<RunStatus, Arc<Error>> {
        if let Some(planning) = self.plans.get(run) {
            if state != RunState::Cancelled {
                return Err(Arc::new(Error::BeingPlanned(run)));
            }
            planning.cancel();
            if planning.ended().await.is_err() {
                let run = planning.run().status();
                return Ok(RunStatus { progress: Progress { state, planned: None, ..run.progress }, ..run });
            }
            // Its last job was stored before.
        }
        self.ask(set_run_state(run, state)).await?;
        self.run(run).await
    }

    /// Asks for something, and waits until it is on disk; [`request`](crate::request) has what can be asked for.
    pub async fn ask<R: Request>(&self, request: R) -> Result<R::Answer, Arc<Error>> {
        self.writer.ask(request).await.map_err(|error| match *error {
            Error::Refused(Refusal::NoRun(run)) if self.plans.get(run).is_some() => {
                Arc::new(Error::BeingPlanned(run))
            }
            _ => error,
        })
    }

    /// The workers seen since the coordinator started, and the untrusted ones, by id.
    pub async fn workers(&self) -> Result<Vec<WorkerStatus>, Arc<Error>> {
        let rows = self.reader.workers().await?;
        let statuses = |dispatch: &Dispatch, now| {
            rows.into_iter().filter_map(|row| status(row, dispatch, now)).collect()
        };
        self.writer.look(statuses).await
    }
}

/// A worker that was seen since the start, or is untrusted.
fn status(about: Worker, dispatch: &Dispatch, now: Millis) -> Option<WorkerStatus> {
    let worker = dispatch.worker(about.id)?;
    let reputation = dispatch.reputation(&worker.machine);
    let distrusted = dispatch.distrusts(&worker.machine).map(str::to_owned);
    let seen = worker.seen.or(distrusted.as_ref().map(|_| 0))?;
    let present = dispatch.is_present(now, worker);
    Some(WorkerStatus {
        about: Worker { distrusted, ..about },
        present,
        silent_ms: now.saturating_sub(seen),
        leases: worker.leases() as u64,
        states_per_s: worker.states_per_s().filter(|_| present),
        accepted: worker.accepted,
        draining: worker.draining,
        checks_passed: reputation.passed,
        checks_failed: reputation.failed,
    })
}
