//! What becomes of responses. Connections that do not read theirs are closed, because unread responses take memory; those
//! to callers without the right token wait.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::task::AbortHandle;
use tokio::time::sleep;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::service::Routes;
use tonic::{Code, Status};

use super::connection::Caller;

/// All services, with an eye on what becomes of their answers.
#[derive(Clone)]
pub(crate) struct Watching(pub(crate) Routes);

impl Service<http::Request<Body>> for Watching {
    type Response = http::Response<Watched>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<http::Request<Body>>::poll_ready(&mut self.0, context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let caller = request.extensions().get::<Caller>().cloned();
        let answer = self.0.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            let status = Status::from_header_map(answer.headers());
            let is_refused = answer.status() == http::StatusCode::UNAUTHORIZED
                || status.is_some_and(|status| status.code() == Code::Unauthenticated);
            if let Some(Caller(connection_guard)) = &caller
                && is_refused
            {
                sleep(connection_guard.slow_down(Instant::now())).await;
            }
            Ok(answer.map(|body| Watched { body, caller, watch: None }))
        })
    }
}

/// A response. The caller must read each piece of it in time; waiting for the next piece does not count.
pub(crate) struct Watched {
    body: Body,
    caller: Option<Caller>,
    watch: Option<WriteDeadline>,
}

impl tonic::codegen::Body for Watched {
    type Data = <Body as tonic::codegen::Body>::Data;
    type Error = tonic::Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Self::Data>, Self::Error>>> {
        // Whoever asks for more has got rid of what there was.
        self.watch = None;
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &frame
            && frame.is_data()
        {
            self.watch = self.caller.clone().map(WriteDeadline::begin);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

/// Ends a connection, unless it is dropped in time.
struct WriteDeadline(AbortHandle);

impl WriteDeadline {
    fn begin(Caller(connection_guard): Caller) -> Self {
        let watch = async move {
            tokio::time::sleep(connection_guard.write_timeout()).await;
            tracing::debug!(caller = %connection_guard.address(), "connection closed: it does not read its responses");
            connection_guard.end();
        };
        Self(tokio::spawn(watch).abort_handle())
    }
}

impl Drop for WriteDeadline {
    fn drop(&mut self) {
        self.0.abort();
    }
}
