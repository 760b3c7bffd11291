//! What the writer can be asked, what it answers, and the way to it.

use std::sync::Arc;

use nqueens_kernel::job::{Job, Weight};
use nqueens_kernel::plan::Plan;
use nqueens_model::id::{RunId, WorkerId};
use nqueens_model::message::{JobResult, Registration, SyncRequest, SyncResponse};
use nqueens_model::operator::{Blamed, Outcome, RunState};
use tokio::sync::{mpsc, oneshot};
use tracing::Span;

use crate::dispatch::{Machine, Millis, Standing};
use crate::error::Error;
use crate::store::RunRow;

/// Requests that may wait; who comes later waits for a place.
const QUEUE_MAX: usize = 1_024;

/// What the writer can be asked.
pub(crate) enum Request {
    Register(Registration),
    Sync(SyncRequest),
    /// Starts to store a run.
    PlanRun {
        id: RunId,
        plan: Plan,
        seed: u64,
        priority: i32,
        replicate_ppm: u32,
    },
    /// Stores jobs of a run that is being planned, from number `first` on.
    PlanJobs {
        run: RunId,
        first: u32,
        jobs: Vec<(Job, Weight)>,
    },
    /// All jobs are stored: hands them out from now on.
    ActivateRun {
        row: RunRow,
        estimates: Vec<u64>,
    },
    /// All jobs are done: the total, or the check that was not passed.
    FinishRun {
        run: RunId,
        outcome: Result<Outcome, String>,
    },
    /// Takes back every lease: all workers are known to be gone.
    ReleaseAll,
    /// Looks for leases that have run out, and at the disk.
    Expire,
    /// Changes what a run is doing, at an operator's word.
    SetRunState {
        run: RunId,
        state: RunState,
    },
    /// Opens the quarantined jobs of a run again.
    RetryQuarantined(RunId),
    /// Takes back the accepted results of one job of a run, or of one worker.
    Requeue {
        run: RunId,
        of: Blamed,
    },
    /// Believes a machine no longer, or again.
    SetTrust {
        machine: Machine,
        trusted: bool,
    },
    /// What the coordinator counted itself; it gets no leases.
    Compare {
        own: Registration,
        result: JobResult,
    },
    /// Asks a worker to go.
    Drain(WorkerId),
    /// Who has been heard of.
    LiveWorkers,
    /// How a run's jobs stand, in at most so many groups.
    Census {
        run: RunId,
        groups_max: usize,
    },
    /// Takes no more requests, whoever holds a handle; ends once those that wait are answered.
    Close,
}

/// What the writer answers, after the commit.
pub(crate) enum Response {
    Done,
    Worker(WorkerId),
    /// `None`: the worker is not registered here.
    Sync(Option<SyncResponse>),
    /// So many jobs are concerned.
    Jobs(usize),
    LiveWorkers(Vec<LiveWorker>),
    /// By job state, in the plan's order.
    Census(Vec<[u32; 4]>),
    /// It can't be done, which is no fault of the others in the transaction.
    Refused(Error),
}

/// A worker that has been heard of since the coordinator started, or is distrusted.
#[derive(Clone, Debug)]
pub(crate) struct LiveWorker {
    /// Its name in the ledger.
    pub(crate) id: WorkerId,
    /// Since it was last heard of, in milliseconds.
    pub(crate) silent_ms: Millis,
    /// Jobs leased to it.
    pub(crate) leases: usize,
    /// States that all its threads visit in a second; `None` while it counts nothing, and before its first result.
    pub(crate) states_per_s: Option<f64>,
    /// Results accepted from it since the coordinator started.
    pub(crate) accepted: u64,
    /// An operator wants it to go.
    pub(crate) draining: bool,
    /// What its machine has shown.
    pub(crate) standing: Standing,
}

/// An answer, or the error of the transaction that the request was in with others.
pub(super) type Answer = Result<Response, Arc<Error>>;

pub(super) struct Envelope {
    pub(super) request: Request,
    /// Of the call that asks, if one does.
    pub(super) span: Span,
    pub(super) answer: oneshot::Sender<Answer>,
}

/// The way to the writer; cheap to clone.
#[derive(Clone)]
pub(crate) struct Handle {
    queue: mpsc::Sender<Envelope>,
}

impl Handle {
    /// A way to a writer, and where what comes that way arrives.
    pub(super) fn new() -> (Self, mpsc::Receiver<Envelope>) {
        let (queue, requests) = mpsc::channel(QUEUE_MAX);
        (Self { queue }, requests)
    }

    /// Asks for something and waits for the commit.
    pub(crate) async fn ask(&self, request: Request) -> Answer {
        let (answer, answered) = oneshot::channel();
        let gone = || Arc::new(Error::ShuttingDown);
        self.queue.send(Envelope { request, span: Span::current(), answer }).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}
