//! The workers' door: gRPC in, requests to the writer out.

use std::sync::Arc;

use nqueens_proto::message::{Registration, SyncRequest};
use nqueens_proto::v1::worker_service_server::WorkerService;
use nqueens_proto::{InvalidMessage, PROTOCOL_VERSION, v1};
use tonic::{Request, Response, Status};

use crate::error::Error;
use crate::writer::{self, Handle};

/// Answers workers.
pub(crate) struct Workers {
    pub(crate) writer: Handle,
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
        let wire = request.into_inner();
        if wire.protocol_version != PROTOCOL_VERSION {
            return Err(Status::failed_precondition(format!(
                "this coordinator speaks protocol {PROTOCOL_VERSION}, the worker {}; \
                 install the same version of nqueens on both",
                wire.protocol_version
            )));
        }
        let worker = Registration::try_from(wire).map_err(invalid)?;
        match self.writer.ask(writer::Request::Register(worker)).await.map_err(unavailable)? {
            writer::Response::Worker(id) => Ok(Response::new(v1::RegisterResponse { worker_id: id.get() })),
            _ => unreachable!("a registration is answered with an id"),
        }
    }

    async fn sync(&self, request: Request<v1::SyncRequest>) -> Result<Response<v1::SyncResponse>, Status> {
        let sync = SyncRequest::try_from(request.into_inner()).map_err(invalid)?;
        let worker = sync.worker;
        match self.writer.ask(writer::Request::Sync(sync)).await.map_err(unavailable)? {
            writer::Response::Sync(Some(answer)) => Ok(Response::new(answer.into())),
            writer::Response::Sync(None) => {
                Err(Status::not_found(format!("worker {worker} is not registered here; register again")))
            }
            _ => unreachable!("a sync is answered with a sync"),
        }
    }
}
