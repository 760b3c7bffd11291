//! The one port of a coordinator: the workers' calls, the operators' API, and pages beside them.
//!
//! It tells how the coordinator is from the start. All else waits until the coordinator is up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use nqueens_proto::request_id;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tonic::Status;
use tower::ServiceExt;
use tracing::{Instrument, Span, debug, error_span, field};

use crate::access::{Access, Guard};
use crate::listener::{self, Caller, watched};
use crate::operator::Operator;

/// A call is answered within this time, or refused. A stream counts from its first answer.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// What a coordinator that is up answers with.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) operator: Operator,
    pub(crate) routes: Router,
}

/// A listener that callers find open; closed when it is dropped.
pub struct Door {
    pub(crate) access: Access,
    pub(crate) app: watch::Sender<Option<App>>,
    pub(crate) stopping: watch::Sender<bool>,
    pub(crate) serving: JoinHandle<()>,
    refused: Arc<AtomicU64>,
}

impl Door {
    /// Accepts connections on `listener`. Until a coordinator [serves](crate::Coordinator::serve) here, callers learn that
    /// the process is alive and not ready; other calls wait.
    pub fn open(listener: TcpListener, access: &Access) -> Self {
        let (app, apps) = watch::channel(None);
        let (stopping, stopped) = watch::channel(false);
        let refused = Arc::<AtomicU64>::default();
        let entrance = entrance(apps, stopped.clone());
        let rules = (access.limits, access.tls.clone());
        let accepting = listener::serve(listener, rules, Arc::clone(&refused), entrance, stopped);
        Self { access: access.clone(), app, stopping, serving: tokio::spawn(accepting), refused }
    }

    /// Decides which requests an operator may make.
    pub fn operators(&self) -> Guard {
        self.access.operators()
    }

    /// True, or its sender gone, once the door closes.
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    /// Counts the calls that were refused without the right token.
    pub fn refused(&self) -> impl Fn() -> u64 + Send + Sync + use<> {
        let refused = Arc::clone(&self.refused);
        move || refused.load(Ordering::Relaxed)
    }
}

/// `/healthz` and `/readyz`, open to everybody, so they tell nothing else; all other calls go to the coordinator, once it is
/// up.
fn entrance(app: watch::Receiver<Option<App>>, stopped: watch::Receiver<bool>) -> Router {
    let apps = app.clone();
    let readyz = async move || {
        let is_ready = !*stopped.borrow() && app.borrow().as_ref().is_some_and(|app| app.operator.is_ready());
        if is_ready { Ok("ok") } else { Err((StatusCode::SERVICE_UNAVAILABLE, "not ready")) }
    };
    let enter = async move |request: Request| {
        let app = apps.clone().wait_for(Option::is_some).await.ok().and_then(|app| app.clone());
        match app {
            Some(App { routes, .. }) => routes.oneshot(request).await.into_response(),
            None => (StatusCode::SERVICE_UNAVAILABLE, "the coordinator stops").into_response(),
        }
    };
    Router::new()
        .route("/healthz", get(async || "ok"))
        .route("/readyz", get(readyz))
        .route_layer(from_fn(within_rates))
        .fallback(enter)
        .layer(from_fn(in_time))
        .layer(from_fn(watched))
}

async fn within_rates(request: Request, next: Next) -> Response {
    match Caller::of(&request).admit_open() {
        Ok(()) => next.run(request).await,
        Err(too_many) => (StatusCode::TOO_MANY_REQUESTS, too_many.message().to_owned()).into_response(),
    }
}

/// Names the call in the log, and gives up on it if it takes too long.
async fn in_time(request: Request, next: Next) -> Response {
    let span = call_span(request.uri().path(), request.headers());
    let grpc = request
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"));
    match timeout(CALL_TIMEOUT, next.run(request).instrument(span)).await {
        Ok(response) => response,
        Err(_) if grpc => Status::deadline_exceeded("the call took too long").into_http::<Body>(),
        Err(_) => (StatusCode::REQUEST_TIMEOUT, "the request took too long").into_response(),
    }
}

/// What all log lines of one call have in common: the name that its caller's log has for it too.
fn call_span(path: &str, headers: &HeaderMap) -> Span {
    // As high as any line in it, so that no filter that lets the line through drops the name.
    let span = error_span!("call", method = path, request = field::Empty);
    if let Some(id) = request_id::read(headers) {
        span.record("request", field::display(id));
    }
    debug!(parent: &span, "called");
    span
}
