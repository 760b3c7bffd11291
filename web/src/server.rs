//! The HTTP listener for browsers and Prometheus. Each connection has limits on size and time; the coordinator's listener
//! limits how many there are.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn, from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use nqueens_coordinator::{CallerLimits, Connection, Operator, Rate, connections};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_stream::{Stream, StreamExt};
use tracing::debug;

use crate::auth::{Admission, enter, keep};
use crate::headers::{FILES, LOGIN, STYLE, guard};
use crate::history::Histories;
use crate::live::{STREAM_LIFE, live};
use crate::metrics::metrics;
use crate::shared::PageState;
use crate::solutions::solution;

/// Limits on callers that have at most this many connections: a quarter of these is left to callers that were let in,
/// whatever the others do, and an eighth to other addresses, whatever one does.
fn limits(connections: usize) -> CallerLimits {
    CallerLimits {
        connections,
        peer_connections: connections - connections / 8,
        unauthenticated: connections - connections / 4,
        first_call: PATIENCE,
        // More than a browser or a scrape ever needs.
        calls: Rate::a_second(100),
        peer_calls: Rate::a_second(1_000),
        // Nobody registers here, and the life of a connection bounds that of an answer.
        peer_registrations: Rate::an_hour(0),
        write_timeout: Duration::MAX,
    }
}

/// Bytes of a request's head, and of its body.
const HEAD_BYTES_MAX: usize = 16 << 10;
const BODY_BYTES_MAX: usize = 1 << 10;

/// A request's head comes within this time, and its answer begins within it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Maximum time by which a connection outlasts its stream, however slow the reader.
const LINGER: Duration = Duration::from_secs(10);

/// Serves the page and the metrics on `listener`, to at most `connections_max` connections at once, until `stop`.
pub async fn serve(
    listener: TcpListener,
    connections_max: usize,
    operator: Operator,
    admission: Admission,
    stop: impl Future<Output = ()> + Send,
) {
    let (stopping, stopped) = watch::channel(false);
    let histories = Histories::default();
    let following = tokio::spawn(histories.clone().keep(operator.watch()));
    let refused = Arc::<AtomicU64>::default();
    let connections = connections(listener, limits(connections_max), Arc::clone(&refused));
    let app = router(Arc::new(PageState::new(operator, admission, histories, refused, stopped)));
    tokio::select! {
        () = accept(connections, &app) => {}
        () = stop => {}
    }
    stopping.send_replace(true);
    following.abort();
}

fn router(shared: Arc<PageState>) -> Router {
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
        .with_state(Arc::clone(&shared.auth));
    inside
        .route_layer(from_fn_with_state(Arc::clone(&shared.auth), keep))
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

async fn accept(mut connections: impl Stream<Item = io::Result<Connection>> + Unpin, app: &Router) {
    while let Some(connection) = connections.next().await {
        match connection {
            Ok(connection) => drop(tokio::spawn(converse(connection, app.clone()))),
            Err(error) => debug!(%error, "a connection to the page failed"),
        }
    }
}

/// Serves one connection, up to its maximum duration. Each request knows its caller.
async fn converse(connection: Connection, app: Router) {
    let (caller, app) = (connection.caller(), TowerToHyperService::new(app));
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(caller.clone());
        app.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(connection), service);
    match timeout(STREAM_LIFE + LINGER, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!(%error, "a connection to the page ended"),
        Err(_) => debug!("a connection to the page reached its maximum duration"),
    }
}
