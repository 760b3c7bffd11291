//! The coordinator as a worker sees it, and its calls over gRPC.

use std::error::Error;
use std::future::Future;
use std::time::Duration;

use nqueens_model::message::{Registration, Session, SyncRequest, SyncResponse};
use nqueens_proto::v1::worker_service_client::WorkerServiceClient;
use nqueens_proto::{ClientTls, InvalidAddress, Token, connect, request_id, tls, v1};
use nqueens_worker_protocol::CallError;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// A coordinator, as its workers see it: [`Client`] over gRPC, or one in the same process.
pub trait Coordinator: Clone + Send + Sync + 'static {
    fn address(&self) -> &str;

    fn register(&self, worker: Registration) -> impl Future<Output = Result<Session, CallError>> + Send;

    /// Reports and asks for work; also the heartbeat.
    fn sync(&self, sync: SyncRequest) -> impl Future<Output = Result<SyncResponse, CallError>> + Send;
}

/// Why a worker can't go on.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// A call failed, and waiting does not mend it.
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("no counting engine passed its self-test on this machine; see the log")]
    NoEngine,
    /// Engines have failed, and no other counts their jobs.
    #[error("the engine has failed; see the log")]
    Abandoned,
}

fn call_error(status: Status) -> CallError {
    let text = in_full(&status);
    // The coordinator's own words arrive without a source. This is of a broken connection or an unreadable answer.
    if status.source().is_some() {
        return CallError::Unavailable(text);
    }
    match status.code() {
        Code::NotFound => CallError::Unregistered,
        Code::InvalidArgument
        | Code::FailedPrecondition
        | Code::Unauthenticated
        | Code::PermissionDenied
        | Code::Unimplemented => CallError::Refused(text),
        _ => CallError::Unavailable(text),
    }
}

/// What a status says, and the deepest cause of it, in words that help where certificates are wrong: that a connection
/// was refused stands only there.
fn in_full(status: &Status) -> String {
    if let Some(explanation) = tls::explain(status) {
        return explanation;
    }
    let causes = std::iter::successors(status.source(), |&cause| cause.source());
    match causes.last().map(ToString::to_string) {
        Some(cause) if !status.message().contains(&cause) => format!("{}: {cause}", status.message()),
        _ => status.message().to_owned(),
    }
}

/// A connection to one coordinator; renewed whenever it breaks.
#[derive(Clone, Debug)]
pub struct Client {
    url: String,
    token: Option<Token>,
    inner: WorkerServiceClient<Channel>,
}

impl Client {
    /// Connects at the first call, and again after every break. `token` goes with every call; an `https://` address wants
    /// `tls`.
    pub fn new(url: &str, token: Option<Token>, tls: Option<&ClientTls>) -> Result<Self, InvalidAddress> {
        let inner = WorkerServiceClient::new(connect(url, tls)?);
        Ok(Self { url: url.to_owned(), token, inner })
    }

    /// A call with its time limit, its token, and a name by which both sides' logs can be held together.
    fn request<T>(&self, call: &str, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(CALL_TIMEOUT);
        request_id::identify(request.metadata_mut().as_mut(), call, self.token.as_ref());
        request
    }
}

impl Coordinator for Client {
    fn address(&self) -> &str {
        &self.url
    }

    async fn register(&self, worker: Registration) -> Result<Session, CallError> {
        let request = self.request("register", v1::RegisterRequest::from(worker));
        let answer = self.inner.clone().register(request).await.map_err(call_error)?;
        Session::try_from(answer.into_inner()).map_err(|error| CallError::Answer(error.to_string()))
    }

    async fn sync(&self, sync: SyncRequest) -> Result<SyncResponse, CallError> {
        let request = self.request("sync", v1::SyncRequest::from(sync));
        let answer = self.inner.clone().sync(request).await.map_err(call_error)?;
        SyncResponse::try_from(answer.into_inner()).map_err(|error| CallError::Answer(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn an_answer_that_can_t_be_read_is_no_refusal() {
        let refused = call_error(Status::invalid_argument("wrong"));
        assert_eq!(refused.to_string(), "the coordinator refused: wrong");
        let mut unreadable = Status::invalid_argument("no message");
        unreadable.set_source(Arc::new(std::io::Error::other("no message")));
        assert_eq!(call_error(unreadable).to_string(), "the coordinator did not answer: no message");
    }
}
