//! The workers' door: gRPC in, requests to the writer out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nqueens_model::message::{Registration, SyncRequest, SyncResponse};
use nqueens_proto::v1::worker_service_server::WorkerService;
use nqueens_proto::{InvalidMessage, PLANS, PROTOCOL_VERSION, v1};
use tokio::sync::watch;
use tonic::{Request, Response, Status};

use crate::door::Caller;
use crate::error::Error;
use crate::progress::Snapshot;
use crate::writer::{self, Handle};

/// Answers workers.
pub(crate) struct Workers {
    pub(crate) writer: Handle,
    pub(crate) snapshot: watch::Receiver<Arc<Snapshot>>,
    /// Turns true when the server is to go.
    pub(crate) stopping: watch::Receiver<bool>,
}

impl Workers {
    /// Waits for work to hand out, but no longer than until the worker is to be heard of again.
    async fn work_or_timeout(&self, wait_ms: u32) {
        let (mut snapshot, mut stopping) = (self.snapshot.clone(), self.stopping.clone());
        let before = snapshot.borrow().checks_waiting;
        tokio::select! {
            // An error means that the coordinator closes, which the writer will tell.
            _ = snapshot.wait_for(|now| now.has_ready || now.checks_waiting > before) => {}
            _ = stopping.wait_for(|stopping| *stopping) => {}
            () = tokio::time::sleep(Duration::from_millis(wait_ms.into())) => {}
        }
    }

    async fn answer(&self, sync: SyncRequest) -> Result<SyncResponse, Status> {
        let worker = sync.worker;
        match self.writer.ask(writer::Request::Sync(sync)).await.map_err(unavailable)? {
            writer::Response::Sync(Some(answer)) => Ok(answer),
            writer::Response::Sync(None) => {
                Err(Status::not_found(format!("worker {worker} is not registered here; register again")))
            }
            writer::Response::Refused(error) => Err(Status::permission_denied(error.to_string())),
            _ => unreachable!("a sync is answered with a sync"),
        }
    }
}

fn invalid(error: InvalidMessage) -> Status {
    Status::invalid_argument(error.to_string())
}

/// Nothing was stored; the worker keeps what it has and comes again.
fn unavailable(error: Arc<Error>) -> Status {
    Status::unavailable(error.to_string())
}

#[tonic::async_trait]
impl WorkerService for Workers {
    async fn register(
        &self,
        request: Request<v1::RegisterRequest>,
    ) -> Result<Response<v1::RegisterResponse>, Status> {
        if let Some(Caller(visit)) = request.extensions().get() {
            visit.register(Instant::now())?;
        }
        let wire = request.into_inner();
        if wire.protocol_version != PROTOCOL_VERSION {
            return Err(Status::failed_precondition(format!(
                "this coordinator speaks protocol {PROTOCOL_VERSION}, the worker {}; \
                 install the same version of nqueens on both",
                wire.protocol_version
            )));
        }
        if wire.plans != PLANS.0 {
            return Err(Status::failed_precondition(
                "this coordinator and the worker cut boards into jobs in different ways; \
                 install the same version of nqueens on both",
            ));
        }
        let worker = Registration::try_from(wire).map_err(invalid)?;
        match self.writer.ask(writer::Request::Register(worker)).await.map_err(unavailable)? {
            writer::Response::Worker(id) => Ok(Response::new(v1::RegisterResponse { worker_id: id.get() })),
            writer::Response::Refused(error) => Err(Status::permission_denied(error.to_string())),
            _ => unreachable!("a registration is answered with an id"),
        }
    }

    async fn sync(&self, request: Request<v1::SyncRequest>) -> Result<Response<v1::SyncResponse>, Status> {
        let sync = SyncRequest::try_from(request.into_inner()).map_err(invalid)?;
        // A worker with nothing to do and nothing to say is kept waiting until there is work, instead of asking again
        // and again.
        let idle = sync.results.is_empty() && sync.held.is_empty() && sync.returned.is_empty();
        let again = (idle && sync.wanted_jobs > 0).then(|| sync.clone());
        let mut answer = self.answer(sync).await?;
        if let Some(again) = again
            && answer.leases.is_empty()
            && !answer.drain
        {
            self.work_or_timeout(answer.next_sync_ms).await;
            answer = self.answer(again).await?;
        }
        Ok(Response::new(answer.into()))
    }
}
