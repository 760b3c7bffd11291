//! The HTTP listener for browsers and Prometheus. Each connection has limits on size and time; the coordinator's listener
//! limits how many there are.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Query, Request, State};
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
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;
use tokio_stream::{Stream, StreamExt};
use tracing::debug;

use crate::auth::{Admission, enter, keep};
use crate::documents::{Document, DocumentWriter};
use crate::headers::{FILES, LOGIN, STYLE, guard};
use crate::health::{health, out_of_service};
use crate::live::{RunQuery, STREAM_LIFE, live};
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

/// The listener for browsers and programs; closed when it is dropped.
pub struct Server {
    /// What requests are answered by.
    apps: watch::Sender<Router>,
    accepting: JoinSet<()>,
    /// Requests without the right token.
    refused: Arc<AtomicU64>,
}

impl Server {
    /// Accepts at most `connections_max` connections at once on `listener`. Until there is something to
    /// [show](Self::show), they are told that the process serves, and that the coordinator is not ready.
    pub fn start(listener: TcpListener, connections_max: usize) -> Self {
        let (apps, app) = watch::channel(guarded(out_of_service()));
        let refused = Arc::<AtomicU64>::default();
        let connections = connections(listener, limits(connections_max), Arc::clone(&refused));
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(connections, app));
        Self { apps, accepting, refused }
    }

    /// Shows the page and the metrics of a coordinator that is up, until `stop`. The task goes on until it is aborted: it
    /// tells that the coordinator is not ready.
    pub fn show(
        mut self,
        operator: Operator,
        admission: Admission,
        documents: DocumentWriter,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> JoinHandle<()> {
        let (stopping, stopped) = watch::channel(false);
        let mut snapshots = operator.watch();
        let shared = PageState::new(operator, admission, documents, Arc::clone(&self.refused), stopped);
        drop(self.apps.send_replace(guarded(router(Arc::new(shared)))));
        tokio::spawn(async move {
            tokio::select! {
                // The coordinator has gone.
                () = async { while snapshots.changed().await.is_ok() {} } => {}
                () = stop => {}
            }
            stopping.send_replace(true);
            drop(self.apps.send_replace(guarded(out_of_service())));
            self.accepting.join_next().await;
        })
    }
}

fn router(shared: Arc<PageState>) -> Router {
    let mut inside = Router::new()
        .route("/live", get(live))
        .route("/report", get(|shared, run| document(shared, run, Document::Report)))
        .route("/ledger", get(|shared, run| document(shared, run, Document::Ledger)))
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
    let operator = shared.operator.clone();
    inside
        .route_layer(from_fn_with_state(Arc::clone(&shared.auth), keep))
        .merge(outside)
        .merge(health(move || operator.is_ready()))
        .with_state(shared)
}

async fn document(
    State(shared): State<Arc<PageState>>,
    Query(wanted): Query<RunQuery>,
    document: Document,
) -> Response {
    match wanted.run() {
        Ok(Some(run)) => shared.documents.send(shared.operator.reader().clone(), run, document).await,
        Ok(None) => (StatusCode::BAD_REQUEST, "name a run: ?run=RUN").into_response(),
        Err(refusal) => refusal.into_response(),
    }
}

/// With the limits on all requests, and the headers of all answers.
fn guarded(app: Router) -> Router {
    app.layer(DefaultBodyLimit::max(BODY_BYTES_MAX)).layer(from_fn(in_time)).layer(map_response(guard))
}

/// Gives up on requests whose body does not come.
async fn in_time(request: Request, next: Next) -> Response {
    let answer = timeout(PATIENCE, next.run(request)).await;
    answer.unwrap_or_else(|_| (StatusCode::REQUEST_TIMEOUT, "the request took too long").into_response())
}

async fn accept(
    mut connections: impl Stream<Item = io::Result<Connection>> + Unpin,
    app: watch::Receiver<Router>,
) {
    while let Some(connection) = connections.next().await {
        match connection {
            Ok(connection) => drop(tokio::spawn(converse(connection, app.clone()))),
            Err(error) => debug!(%error, "a connection to the page failed"),
        }
    }
}

/// Serves one connection, up to its maximum duration. Each request knows its caller, and is answered by the current app.
async fn converse(connection: Connection, app: watch::Receiver<Router>) {
    let caller = connection.caller();
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(caller.clone());
        let current = app.borrow().clone();
        TowerToHyperService::new(current).call(request)
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

#[cfg(test)]
mod tests {
    use nqueens_coordinator::{Coordinator, Timing};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::sync::oneshot;

    use super::*;

    /// The status of an answer, on a connection that stays open.
    async fn status(stream: &mut TcpStream, path: &str) -> String {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = vec![0; 4_096];
        let length = stream.read(&mut answer).await.expect("an answer");
        String::from_utf8_lossy(&answer[..length])["HTTP/1.1 ".len()..][..3].to_owned()
    }

    #[tokio::test]
    async fn it_is_ready_from_the_start_to_the_stop_of_its_coordinator() {
        let folder = tempfile::tempdir().expect("a folder");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let server = Server::start(listener, 100);
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let mut now = async || [status(&mut stream, "/healthz").await, status(&mut stream, "/readyz").await];
        assert_eq!(now().await, ["200", "503"]);

        let path = folder.path().join("ledger.db");
        let coordinator = Coordinator::open(&path, Timing::default(), "test").await.expect("a new database");
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async { drop(stopped.await) };
        let operator = coordinator.operator().clone();
        let serving = server.show(operator, Admission::Loopback, |_, _, _, _, _| Ok(()), stopped);
        assert_eq!(now().await, ["200", "200"], "also on a connection of before");

        stop.send(()).expect("it waits");
        while now().await != ["200", "503"] {
            tokio::task::yield_now().await;
        }
        serving.abort();
        assert!(serving.await.expect_err("aborted").is_cancelled());
        coordinator.close().await;
    }
}
