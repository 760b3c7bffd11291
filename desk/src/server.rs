//! The listener for browsers and Prometheus.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
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
use nqueens_model::id::RunId;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use crate::door::{Admission, Door, enter, keep};
use crate::fresh::Fresh;
use crate::headers::{FILES, LOGIN, STYLE, guard};
use crate::history::Histories;
use crate::live::{PICTURE_EVERY, STREAM_LIFE, live};
use crate::metrics::metrics;
use crate::picture::Picture;
use crate::solutions::solution;

/// Connections at once; who comes later waits.
const CONNECTIONS_MAX: usize = 128;

/// Streams at once: less than connections, so that there is always room for a look at the metrics.
const STREAMS_MAX: usize = 48;

/// Bytes of a request's head, and of its body.
const HEAD_BYTES_MAX: usize = 16 << 10;
const BODY_BYTES_MAX: usize = 1 << 10;

/// A request's head comes within this time, and its answer begins within it.
const PATIENCE: Duration = Duration::from_secs(10);

/// No connection outlasts a stream by more than this, whoever reads it how slowly.
const LINGER: Duration = Duration::from_secs(10);

/// What a map of a run's jobs may be old.
const DETAIL_AGE: Duration = Duration::from_secs(2);

/// What all requests share.
pub(crate) struct Desk {
    pub(crate) operator: Operator,
    pub(crate) door: Door,
    pub(crate) picture: Fresh<Picture>,
    pub(crate) histories: Histories,
    pub(crate) streams: Arc<Semaphore>,
    /// True once the coordinator stops.
    pub(crate) stopping: watch::Receiver<bool>,
    details: Mutex<HashMap<RunId, Arc<Fresh<Arc<str>>>>>,
}

impl Desk {
    /// Where the details of a run that exists are kept for a moment.
    pub(crate) fn detail(&self, run: RunId) -> Arc<Fresh<Arc<str>>> {
        let mut details = self.details.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(details.entry(run).or_insert_with(|| Arc::new(Fresh::new(DETAIL_AGE))))
    }
}

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
    let desk = Desk {
        operator,
        door: Door::new(admission),
        picture: Fresh::new(PICTURE_EVERY / 2),
        histories,
        streams: Arc::new(Semaphore::new(STREAMS_MAX)),
        stopping: stopped,
        details: Mutex::default(),
    };
    let app = router(Arc::new(desk));
    tokio::select! {
        () = accept(listener, &app) => {}
        () = stop => {}
    }
    stopping.send_replace(true);
    following.abort();
}

fn router(desk: Arc<Desk>) -> Router {
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
        .route(LOGIN.path, get(|| async { LOGIN }).post(enter));
    inside
        .route_layer(from_fn_with_state(Arc::clone(&desk), keep))
        .merge(outside)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(from_fn(in_time))
        .layer(map_response(guard))
        .with_state(desk)
}

/// Gives up on requests whose body does not come.
async fn in_time(request: Request, next: Next) -> Response {
    let answer = timeout(PATIENCE, next.run(request)).await;
    answer.unwrap_or_else(|_| (StatusCode::REQUEST_TIMEOUT, "that took too long").into_response())
}

/// Takes connections for ever.
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
                warn!(%error, "the page's listener can't take a connection");
                sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

/// Serves one connection, for so long.
async fn converse(stream: TcpStream, app: Router) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(app));
    match timeout(STREAM_LIFE + LINGER, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!(%error, "a connection to the page ended"),
        Err(_) => debug!("a connection to the page has lasted long enough"),
    }
}
