//! The way to the coordinator: register, sync, and what their errors mean.

use std::time::Duration;

use nqueens_proto::id::WorkerId;
use nqueens_proto::message::{Registration, SyncRequest, SyncResponse};
use nqueens_proto::v1::worker_service_client::WorkerServiceClient;
use nqueens_proto::{InvalidMessage, RequestId, Token, v1};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tracing::debug;

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
        matches!(self, Self::Unavailable(_) | Self::Unregistered)
    }
}

impl From<Status> for WorkerError {
    fn from(status: Status) -> Self {
        let text = in_full(&status);
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

/// What a status says, and the deepest cause of it: that a connection was refused stands only there.
fn in_full(status: &Status) -> String {
    let causes = std::iter::successors(std::error::Error::source(status), |cause| cause.source());
    match causes.last().map(ToString::to_string) {
        Some(cause) if !status.message().contains(&cause) => format!("{}: {cause}", status.message()),
        _ => status.message().to_owned(),
    }
}

/// A connection to one coordinator; made anew whenever it breaks.
#[derive(Clone, Debug)]
pub struct Client {
    url: String,
    token: Option<Token>,
    inner: WorkerServiceClient<Channel>,
}

impl Client {
    /// Connects at the first call, and again after every break. `token` goes with every call.
    pub fn new(url: &str, token: Option<Token>) -> Result<Self, WorkerError> {
        let invalid = |reason: String| WorkerError::InvalidUrl { url: url.to_owned(), reason };
        let endpoint = Endpoint::from_shared(url.to_owned()).map_err(|error| {
            let source = std::error::Error::source(&error).map(ToString::to_string);
            invalid(source.unwrap_or_else(|| error.to_string()))
        })?;
        if endpoint.uri().scheme_str() != Some("http") {
            return Err(invalid("it does not begin with http://".to_owned()));
        }
        let endpoint = endpoint
            .connect_timeout(Duration::from_secs(5))
            .http2_keep_alive_interval(Duration::from_secs(20))
            .keep_alive_timeout(Duration::from_secs(20))
            .keep_alive_while_idle(true)
            .tcp_nodelay(true);
        let inner = WorkerServiceClient::new(endpoint.connect_lazy());
        Ok(Self { url: url.to_owned(), token, inner })
    }

    /// The coordinator's address.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) async fn register(&mut self, worker: &Registration) -> Result<WorkerId, WorkerError> {
        let request = self.request("register", v1::RegisterRequest::from(worker.clone()));
        let answer = self.inner.register(request).await?;
        let invalid = || WorkerError::Unavailable("it gave an impossible worker id".into());
        WorkerId::new(answer.into_inner().worker_id).ok_or_else(invalid)
    }

    pub(crate) async fn sync(&mut self, sync: SyncRequest) -> Result<SyncResponse, WorkerError> {
        let request = self.request("sync", v1::SyncRequest::from(sync));
        let answer = self.inner.sync(request).await?;
        Ok(SyncResponse::try_from(answer.into_inner())?)
    }

    /// A call with its time limit, its token, and a name by which both sides' logs can be held together.
    fn request<T>(&self, call: &str, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(CALL_TIMEOUT);
        if let Some(token) = &self.token {
            token.attach(request.metadata_mut());
        }
        let id = RequestId::from_random(getrandom::u64().expect("the operating system has random bits"));
        id.attach(request.metadata_mut());
        debug!(call, request = %id, "calling");
        request
    }
}
