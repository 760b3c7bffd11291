//! The HTTP listener for browsers and Prometheus. Each connection has limits on size and time.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn, from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use nqueens_coordinator::Operator;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use crate::door::{Admission, enter, keep};
use crate::headers::{FILES, LOGIN, STYLE, guard};
use crate::history::Histories;
use crate::live::{STREAM_LIFE, live};
use crate::metrics::metrics;
use crate::shared::Shared;
use crate::solutions::solution;

/// Connections at once; who comes later waits.
const CONNECTIONS_MAX: usize = 128;

/// Bytes of a request's head, and of its body.
const HEAD_BYTES_MAX: usize = 16 << 10;
const BODY_BYTES_MAX: usize = 1 << 10;

/// A request's head comes within this time, and its answer begins within it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Maximum time by which a connection outlasts its stream, however slow the reader.
const LINGER: Duration = Duration::from_secs(10);

/// Serves the page and the metrics on `listener` until `stop`.
pub async fn serve(
    listener: TcpListener,
    operator: Operator,
    admission: Admission,
    stop: impl Future<Output = ()> + Send,
) {
    let (stopping, stopped) = watch::channel(false);
    let histories = Histories::default();
    let following = tokio::spawn(histories.clone().keep(operator.watch()));
    let app = router(Arc::new(Shared::new(operator, admission, histories, stopped)));
    tokio::select! {
        () = accept(listener, &app) => {}
        () = stop => {}
    }
    stopping.send_replace(true);
    following.abort();
}

fn router(shared: Arc<Shared>) -> Router {
    let mut inside = Router::new()
        .route("/live", get(live))
        .route("/metrics", get(metrics))
        .route("/solution", get(solution));
    for file in FILES {
        inside = inside.route(file.path, get(move || async move { file }));
    }
    let inside = inside.fallback(|| async { (StatusCode::NOT_FOUND, "there is no such page here") });
    let outside = Router::new()
        .route(STYLE.path, get(|| async { STYLE }))
        .route(LOGIN.path, get(|| async { LOGIN }).post(enter))
        .with_state(Arc::clone(&shared.door));
    inside
        .route_layer(from_fn_with_state(Arc::clone(&shared.door), keep))
        .merge(outside)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(from_fn(in_time))
        .layer(map_response(guard))
        .with_state(shared)
}

/// Gives up on requests whose body does not come.
async fn in_time(request: Request, next: Next) -> Response {
    let answer = timeout(PATIENCE, next.run(request)).await;
    answer.unwrap_or_else(|_| (StatusCode::REQUEST_TIMEOUT, "the request took too long").into_response())
}

async fn accept(listener: TcpListener, app: &Router) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let place = Arc::clone(&places).acquire_owned().await.expect("nobody closes it");
        match listener.accept().await {
            Ok((stream, _)) => {
                let app = app.clone();
                tokio::spawn(async move {
                    converse(stream, app).await;
                    drop(place);
                });
            }
            // Too many open files, most likely; or the caller has gone.
            Err(error) => {
                warn!(%error, "the page's listener can't accept a connection");
                sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

/// Serves one connection, up to its maximum duration.
async fn converse(stream: TcpStream, app: Router) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(app));
    match timeout(STREAM_LIFE + LINGER, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!(%error, "a connection to the page ended"),
        Err(_) => debug!("a connection to the page reached its maximum duration"),
    }
}
