//! The operators' gRPC service: calls in, methods of [`Operator`] out.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use nqueens_ledger::RunRow;
use nqueens_model::id::RunId;
use nqueens_model::operator::{Progress, RunStatus, Submission};
use nqueens_proto::v1::operator_service_server::OperatorService;
use nqueens_proto::{InvalidMessage, PROTOCOL_VERSION, run_id, v1, worker_id};
use nqueens_scheduler::Refusal;
use nqueens_scheduler::request::{Drain, Requeue, RetryQuarantined, SetTrust};
use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use crate::error::Error;
use crate::operator::Operator;
use crate::progress::{RunProgress, Snapshot};

pub(crate) struct Operators {
    pub(crate) operator: Operator,
    /// True, or its sender gone, once the coordinator stops.
    pub(crate) stopping: watch::Receiver<bool>,
}

fn invalid(error: InvalidMessage) -> Status {
    Status::invalid_argument(error.to_string())
}

fn refused(error: &Error) -> Status {
    let text = error.to_string();
    match error {
        Error::Refused(Refusal::NoRun(_) | Refusal::NoWorker(_) | Refusal::NoMachine { .. }) => {
            Status::not_found(text)
        }
        Error::Refused(Refusal::RunIsOver { .. }) | Error::BeingPlanned(_) => {
            Status::failed_precondition(text)
        }
        Error::OtherSubmission(_) => Status::already_exists(text),
        Error::PlanTooLarge { .. } => Status::invalid_argument(text),
        Error::TooManyPlans(_) => Status::resource_exhausted(text),
        Error::PlanCancelled(_) => Status::aborted(text),
        _ => Status::unavailable(text),
    }
}

impl From<&RunProgress> for Progress {
    fn from(run: &RunProgress) -> Self {
        Self {
            run: run.id,
            n: run.plan.n(),
            state: run.state,
            jobs: run.jobs,
            planned: run.planned,
            done: run.sums.done,
            leased: run.sums.leased,
            quarantined: run.sums.quarantined,
            share_done: run.share_done(),
            states: run.sums.accepted.states,
            estimated_states: run.sums.estimate,
            estimated_total: run.estimated_total(),
            speed: run.measured.map(|measured| measured.speed),
            time_left_s: run.time_left_s(),
            checks: run.sums.checks,
            workers: (run.workers > 0).then(|| u32::try_from(run.workers).unwrap_or(u32::MAX)),
        }
    }
}

impl RunProgress {
    /// The run in full; its state is the row's.
    pub fn status(&self, row: RunRow) -> RunStatus {
        RunStatus {
            progress: Progress { state: row.state, ..self.into() },
            plan: row.plan,
            fingerprint: Some(row.fingerprint),
            priority: row.priority,
            replicate_ppm: row.replicate_ppm,
            reason: row.reason,
            created_at: row.created_at,
            started_at: row.started_at,
            finished_at: row.finished_at,
            recounts: row.recounts,
            outcome: row.outcome,
        }
    }
}

impl Operators {
    async fn run(&self, id: RunId) -> Result<v1::Run, Status> {
        Ok(self.operator.run(id).await.map_err(|error| refused(&error))?.into())
    }
}

type RpcResult<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl OperatorService for Operators {
    async fn get_coordinator(
        &self,
        _request: Request<v1::GetCoordinatorRequest>,
    ) -> RpcResult<v1::GetCoordinatorResponse> {
        let build = self.operator.build.to_string();
        let disk = self.operator.snapshot.borrow().room.map(|room| v1::DiskRoom {
            free_bytes: room.free,
            reserve_bytes: room.reserve,
            is_short: room.is_short,
        });
        Ok(Response::new(v1::GetCoordinatorResponse { build, protocol_version: PROTOCOL_VERSION, disk }))
    }

    async fn submit(&self, request: Request<v1::SubmitRequest>) -> RpcResult<v1::SubmitResponse> {
        let submission = Submission::try_from(request.into_inner()).map_err(invalid)?;
        let mut stopping = self.stopping.clone();
        let begun = async {
            match self.operator.begin(submission).await? {
                Some(planning) => planning.underway().await,
                None => Ok(()),
            }
        };
        let begun = tokio::select! {
            begun = begun => begun,
            _ = stopping.wait_for(|stopping| *stopping) => Err(Arc::new(Error::ShuttingDown)),
        };
        begun.map_err(|error| refused(&error))?;
        Ok(Response::new(v1::SubmitResponse { run: Some(self.run(submission.run()).await?) }))
    }

    async fn list_runs(&self, _request: Request<v1::ListRunsRequest>) -> RpcResult<v1::ListRunsResponse> {
        let runs = self.operator.runs().await.map_err(|error| refused(&error))?;
        let runs = runs.into_iter().map(Into::into).collect();
        Ok(Response::new(v1::ListRunsResponse { runs }))
    }

    async fn get_run(&self, request: Request<v1::GetRunRequest>) -> RpcResult<v1::GetRunResponse> {
        let run = self.run(run_id("run", request.get_ref().run).map_err(invalid)?).await?;
        Ok(Response::new(v1::GetRunResponse { run: Some(run) }))
    }

    async fn set_run_state(
        &self,
        request: Request<v1::SetRunStateRequest>,
    ) -> RpcResult<v1::SetRunStateResponse> {
        let (run, state) = request.get_ref().change().map_err(invalid)?;
        let run = self.operator.set_run_state(run, state).await.map_err(|error| refused(&error))?;
        Ok(Response::new(v1::SetRunStateResponse { run: Some(run.into()) }))
    }

    async fn retry_quarantined(
        &self,
        request: Request<v1::RetryQuarantinedRequest>,
    ) -> RpcResult<v1::RetryQuarantinedResponse> {
        let run = run_id("run", request.get_ref().run).map_err(invalid)?;
        self.operator.ask(RetryQuarantined(run)).await.map_err(|error| refused(&error))?;
        Ok(Response::new(v1::RetryQuarantinedResponse { run: Some(self.run(run).await?) }))
    }

    async fn requeue(&self, request: Request<v1::RequeueRequest>) -> RpcResult<v1::RequeueResponse> {
        let (run, of) = request.get_ref().subject().map_err(invalid)?;
        let jobs = self.operator.ask(Requeue { run, of }).await.map_err(|error| refused(&error))?;
        Ok(Response::new(v1::RequeueResponse { run: Some(self.run(run).await?), jobs: jobs as u64 }))
    }

    async fn set_trust(&self, request: Request<v1::SetTrustRequest>) -> RpcResult<v1::SetTrustResponse> {
        let (machines, trusted) = request.into_inner().subject().map_err(invalid)?;
        self.operator.ask(SetTrust { machines, trusted }).await.map_err(|error| refused(&error))?;
        Ok(Response::new(v1::SetTrustResponse {}))
    }

    async fn list_workers(
        &self,
        _request: Request<v1::ListWorkersRequest>,
    ) -> RpcResult<v1::ListWorkersResponse> {
        let workers = self.operator.workers().await.map_err(|error| refused(&error))?;
        let workers = workers.into_iter().map(Into::into).collect();
        Ok(Response::new(v1::ListWorkersResponse { workers }))
    }

    async fn drain_worker(
        &self,
        request: Request<v1::DrainWorkerRequest>,
    ) -> RpcResult<v1::DrainWorkerResponse> {
        let worker = worker_id("worker_id", request.get_ref().worker_id).map_err(invalid)?;
        self.operator.ask(Drain(worker)).await.map_err(|error| refused(&error))?;
        Ok(Response::new(v1::DrainWorkerResponse {}))
    }

    async fn get_history(
        &self,
        request: Request<v1::GetHistoryRequest>,
    ) -> RpcResult<v1::GetHistoryResponse> {
        let run = run_id("run", request.get_ref().run).map_err(invalid)?;
        let detail = self.operator.detail(run).await.map_err(|error| refused(&error))?;
        Ok(Response::new(detail.into()))
    }

    async fn list_events(
        &self,
        request: Request<v1::ListEventsRequest>,
    ) -> RpcResult<v1::ListEventsResponse> {
        let after = request.get_ref().after;
        let events = self.operator.events().borrow().clone();
        let events = events.iter().filter(|event| event.number > after).cloned();
        Ok(Response::new(v1::ListEventsResponse { events: events.map(Into::into).collect() }))
    }

    type WatchProgressStream = Pin<Box<dyn Stream<Item = Result<v1::WatchProgressResponse, Status>> + Send>>;

    async fn watch_progress(
        &self,
        request: Request<v1::WatchProgressRequest>,
    ) -> RpcResult<Self::WatchProgressStream> {
        let (run, interval_ms) = request.get_ref().subject().map_err(invalid)?;
        let snapshots = self.operator.watch();
        if let Some(run) = run
            && snapshots.borrow().run(run).is_none()
        {
            // It may be too new for the picture; or gone, for a reason.
            self.run(run).await?;
        }
        // One message waits at most: who reads slowly misses pictures, not memory.
        let (sender, receiver) = mpsc::channel(1);
        let mut stopping = self.stopping.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = tell(snapshots, run, Duration::from_millis(interval_ms.into()), sender.clone()) => {}
                _ = stopping.wait_for(|stopping| *stopping) => {}
                () = sender.closed() => {}
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }
}

/// Sends a picture at each interval, until the caller goes.
async fn tell(
    snapshots: watch::Receiver<Arc<Snapshot>>,
    run: Option<RunId>,
    interval: Duration,
    sender: mpsc::Sender<Result<v1::WatchProgressResponse, Status>>,
) {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // Room first, so that what is sent is fresh.
        let Ok(room) = sender.reserve().await else { return };
        let snapshot = snapshots.borrow().clone();
        let wanted = snapshot.runs.iter().filter(|progress| run.is_none_or(|run| run == progress.id));
        room.send(Ok(v1::WatchProgressResponse {
            runs: wanted.map(|progress| Progress::from(progress).into()).collect(),
            busy_workers: u32::try_from(snapshot.busy_workers).unwrap_or(u32::MAX),
        }));
    }
}
