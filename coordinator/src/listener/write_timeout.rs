//! What becomes of responses. Connections that do not read theirs are closed, because unread responses take memory; those
//! to callers without the right token wait.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;
use tokio::task::AbortHandle;
use tokio::time::sleep;
use tonic::{Code, Status};

use super::callers::Caller;

/// The answer to a call without the right token waits, so that guessing costs time.
const REFUSAL_DELAY: Duration = Duration::from_millis(500);

/// Looks at what becomes of an answer.
pub(crate) async fn watched(request: Request, next: Next) -> Response {
    let caller = Caller::of(&request);
    let answer = next.run(request).await;
    let status = Status::from_header_map(answer.headers());
    let is_refused = answer.status() == StatusCode::UNAUTHORIZED
        || status.is_some_and(|status| status.code() == Code::Unauthenticated);
    if is_refused {
        caller.count_refusal();
        sleep(REFUSAL_DELAY).await;
    }
    answer.map(|body| Body::new(Watched { body, caller, watch: None }))
}

/// A response. The caller must read each piece of it in time; waiting for the next piece does not count.
struct Watched {
    body: Body,
    caller: Caller,
    watch: Option<WriteDeadline>,
}

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = axum::Error;

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
            self.watch = Some(WriteDeadline::begin(self.caller.clone()));
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
    fn begin(caller: Caller) -> Self {
        let watch = async move {
            sleep(caller.limits().write_timeout).await;
            tracing::debug!(caller = %caller.address(), "connection closed: it does not read its responses");
            caller.close();
        };
        Self(tokio::spawn(watch).abort_handle())
    }
}

impl Drop for WriteDeadline {
    fn drop(&mut self) {
        self.0.abort();
    }
}
