//! What an operator can ask of a coordinator, over gRPC or on a database file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nqueens_kernel::plan::Plan;
use nqueens_model::id::RunId;
use nqueens_model::kernel::KernelName;
use nqueens_model::message::Registration;
use nqueens_model::operator::{RunStatus, Submission, WorkerStatus};
use nqueens_proto::random_bytes;
use nqueens_scheduler::request::{ActivateRun, PlanJobs, PlanRun};
use nqueens_scheduler::{Dispatch, Millis, Refusal, Request, RunSettings};
use tokio::sync::{Mutex, watch};

use crate::error::Error;
use crate::events::Events;
use crate::ledger::{RunRow, WorkerRow};
use crate::planner::Planner;
use crate::progress::Snapshot;
use crate::reader::Reader;
use crate::writer::Handle;

/// More jobs than this are more than a coordinator can keep in memory and hand out.
const JOBS_MAX: usize = 8_000_000;

/// An operator's hands and eyes; cheap to clone.
#[derive(Clone)]
pub struct Operator {
    pub(crate) writer: Handle,
    pub(crate) reader: Reader,
    pub(crate) snapshot: watch::Receiver<Arc<Snapshot>>,
    pub(crate) events: watch::Receiver<Events>,
    /// Names the program for the record.
    pub(crate) build: Arc<str>,
    /// One plan is made at a time.
    pub(crate) planning: Arc<Mutex<()>>,
    /// Calls without the right token or certificate.
    pub(crate) refused: Arc<AtomicU64>,
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

    /// The program that answers here.
    pub fn build(&self) -> &str {
        &self.build
    }

    /// Calls of workers and operators since the start that were refused without the right token or certificate.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// All runs in full, oldest first.
    pub async fn runs(&self) -> Result<Vec<RunStatus>, Error> {
        let rows = self.reader.runs().await?;
        let snapshot = self.snapshot.borrow().clone();
        // A run that was committed this moment may not be in the picture yet.
        let status = |row: RunRow| Some(snapshot.run(row.id)?).map(|progress| row.status(progress));
        Ok(rows.into_iter().filter_map(status).collect())
    }

    /// The jobs of a run in plan order, in at most this many groups of equal size (the last may be smaller): for each
    /// group, the number of jobs in each [`JobState`](crate::JobState).
    pub async fn job_state_histogram(
        &self,
        run: RunId,
        groups_max: usize,
    ) -> Result<Vec<[u32; 4]>, Arc<Error>> {
        let groups =
            move |dispatch: &Dispatch, _| dispatch.run(run).map(|run| run.job_state_histogram(groups_max));
        self.writer.look(groups).await?.ok_or_else(|| Arc::new(Refusal::NoRun(run).into()))
    }

    /// Plans a run and stores its jobs. They can be leased once all are stored; runs of higher priority go first. A
    /// repeated request finds the same run.
    pub async fn submit(&self, plan: Plan, priority: i32) -> Result<RunRow, Arc<Error>> {
        self.submit_once(Submission { request: random_bytes(), plan, priority, replicate_ppm: 0 }).await
    }

    /// As [`submit`](Self::submit), but the same submission again is the same run. Given up half-way, it leaves nothing.
    pub async fn submit_once(&self, submission: Submission) -> Result<RunRow, Arc<Error>> {
        let Submission { plan, priority, replicate_ppm, .. } = submission;
        let (id, seed) = (submission.run(), submission.seed());
        let settings = RunSettings { id, plan, seed, priority, replicate_ppm };
        let _planning = self.planning.lock().await;
        match self.reader.run(id).await {
            Ok(run) if run.plan == plan && run.seed == seed => return Ok(run),
            Ok(_) => return Err(Arc::new(Error::OtherSubmission(id))),
            Err(Error::Refused(Refusal::NoRun(_))) => {}
            Err(error) => return Err(Arc::new(error)),
        }
        let mut planner = Planner::start(plan);
        self.ask(PlanRun(settings)).await?;
        let mut estimates = Vec::new();
        while let Some(jobs) = planner.next().await {
            let first = u32::try_from(estimates.len()).expect("checked below");
            estimates.extend(jobs.iter().map(|(_, weight)| weight.states));
            if estimates.len() > JOBS_MAX {
                return Err(Arc::new(Error::PlanTooLarge(JOBS_MAX)));
            }
            self.ask(PlanJobs { run: id, first, jobs }).await?;
        }
        let fingerprint = planner.finish().await;
        self.ask(ActivateRun { settings, fingerprint, estimates }).await?;
        self.reader.run(id).await.map_err(Arc::new)
    }

    /// Asks for something, and waits until it is on disk; [`request`](crate::request) has what can be asked for.
    pub async fn ask<R: Request>(&self, request: R) -> Result<R::Answer, Arc<Error>> {
        self.writer.ask(request).await
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
fn status(row: WorkerRow, dispatch: &Dispatch, now: Millis) -> Option<WorkerStatus> {
    let worker = dispatch.worker(row.id)?;
    let Registration { name, build, kernels, threads, .. } = row.registration;
    let reputation = dispatch.reputation(&worker.machine);
    let seen = worker.seen.or(reputation.distrusted.as_ref().map(|_| 0))?;
    Some(WorkerStatus {
        id: row.id,
        name,
        build,
        kernels: kernels.iter().map(KernelName::to_string).collect(),
        threads,
        registered_at: row.registered_at,
        silent_ms: now.saturating_sub(seen),
        leases: worker.leases() as u64,
        states_per_s: worker.states_per_s(),
        accepted: worker.accepted,
        draining: worker.draining,
        checks_passed: reputation.passed,
        checks_failed: reputation.failed,
        checks_open: reputation.open,
        distrusted: reputation.distrusted,
    })
}
