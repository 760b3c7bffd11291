//! The way to the coordinator: register, sync, and what their errors mean.

use std::time::Duration;

use nqueens_proto::id::WorkerId;
use nqueens_proto::message::{Registration, SyncRequest, SyncResponse};
use nqueens_proto::v1::worker_service_client::WorkerServiceClient;
use nqueens_proto::{InvalidMessage, v1};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

/// A call without an answer for so long has failed.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Why a worker can't go on.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The address is no URL.
    #[error("'{url}' is no coordinator's address ({reason}); write it like http://host:7327")]
    InvalidUrl {
        /// As given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The coordinator will never take this worker's calls as they are.
    #[error("the coordinator refused: {0}")]
    Refused(String),
    /// The coordinator can't be reached, or can't store anything, for now.
    #[error("the coordinator did not answer: {0}")]
    Unavailable(String),
    /// The coordinator has forgotten this worker.
    #[error("the coordinator does not know this worker")]
    Unregistered,
    /// An answer that makes no sense.
    #[error("the coordinator's answer is wrong: {0}")]
    Answer(#[from] InvalidMessage),
    /// No engine passed its test.
    #[error("no counting engine of this machine passed its test; see the log")]
    NoEngine,
}

impl WorkerError {
    /// Whether the same call may go through later.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

impl From<Status> for WorkerError {
    fn from(status: Status) -> Self {
        let text = status.message().to_owned();
        match status.code() {
            Code::NotFound => Self::Unregistered,
            Code::InvalidArgument
            | Code::FailedPrecondition
            | Code::Unauthenticated
            | Code::PermissionDenied
            | Code::Unimplemented => Self::Refused(text),
            _ => Self::Unavailable(text),
        }
    }
}

/// A connection to one coordinator; made anew whenever it breaks.
#[derive(Clone, Debug)]
pub struct Client {
    inner: WorkerServiceClient<Channel>,
}

impl Client {
    /// Connects at the first call, and again after every break.
    pub fn new(url: &str) -> Result<Self, WorkerError> {
        let invalid = |error: tonic::transport::Error| {
            let reason =
                std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            WorkerError::InvalidUrl { url: url.to_owned(), reason }
        };
        let endpoint = Endpoint::from_shared(url.to_owned())
            .map_err(invalid)?
            .connect_timeout(Duration::from_secs(5))
            .http2_keep_alive_interval(Duration::from_secs(20))
            .keep_alive_timeout(Duration::from_secs(20))
            .keep_alive_while_idle(true)
            .tcp_nodelay(true);
        Ok(Self { inner: WorkerServiceClient::new(endpoint.connect_lazy()) })
    }

    pub(crate) async fn register(&mut self, worker: &Registration) -> Result<WorkerId, WorkerError> {
        let answer = self.inner.register(timed(v1::RegisterRequest::from(worker.clone()))).await?;
        let invalid = || WorkerError::Unavailable("it gave an impossible worker id".into());
        WorkerId::new(answer.into_inner().worker_id).ok_or_else(invalid)
    }

    pub(crate) async fn sync(&mut self, sync: SyncRequest) -> Result<SyncResponse, WorkerError> {
        let answer = self.inner.sync(timed(v1::SyncRequest::from(sync))).await?;
        Ok(SyncResponse::try_from(answer.into_inner())?)
    }
}

fn timed<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(CALL_TIMEOUT);
    request
}
