//! `/healthz` and `/readyz`: whether the process serves, and whether its coordinator does. Open to everybody, so they tell
//! nothing else.

use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use nqueens_coordinator::Caller;

/// The two pages, for a coordinator that is ready if `is_ready`.
pub(crate) fn health<S: Clone + Send + Sync + 'static>(
    is_ready: impl Fn() -> bool + Clone + Send + Sync + 'static,
) -> Router<S> {
    let readyz = move || {
        let answer = if is_ready() { Ok("ok") } else { Err((StatusCode::SERVICE_UNAVAILABLE, "not ready")) };
        std::future::ready(answer)
    };
    Router::new()
        .route("/healthz", get(async || "ok"))
        .route("/readyz", get(readyz))
        .route_layer(from_fn(within_rates))
}

/// All that there is to see before the coordinator is up, and while it stops.
pub(crate) fn out_of_service() -> Router {
    let fallback = async || (StatusCode::SERVICE_UNAVAILABLE, "the coordinator is starting or stopping");
    health(|| false).fallback(fallback)
}

async fn within_rates(Extension(caller): Extension<Caller>, request: Request, next: Next) -> Response {
    match caller.admit_open() {
        Ok(()) => next.run(request).await,
        Err(too_many) => (StatusCode::TOO_MANY_REQUESTS, too_many.message().to_owned()).into_response(),
    }
}
