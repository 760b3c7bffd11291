//! Accepts connections, and limits how many there are and how long they stay. `access` and the services handle the
//! calls.
//!
//! A connection is a stranger's until one of its calls is allowed (health checks do not count). Strangers' connections are
//! closed after 10 seconds, after 16 refused calls, and when there are too many: the oldest of the address that has most.
//! Without that, whoever holds connections open would keep everybody else out. Connections with an allowed call are counted
//! by whose token they showed, and never make place for strangers. See [`CallerLimits`].
//!
//! Hyper limits the size and the time of a request's head, the calls at once on a connection, and silent connections. It has
//! no limit on how long an answer may lie unread: connections whose caller does not read one are closed. A message has
//! 4 MiB at most; a call may take 30 seconds. When the process has no file descriptors left, accepting pauses and
//! continues. Warnings about strangers are limited to 10 per minute; the rest are logged at `debug`.

mod bucket;
mod callers;
mod tls;
mod write_timeout;

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::Request;
use axum::http::uri::Scheme;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tower::ServiceExt;
use tracing::{debug, warn};

pub use bucket::{Bucket, Rate};
pub use callers::Caller;
pub(crate) use callers::Holder;
pub(crate) use tls::Tls;
pub(crate) use write_timeout::watched;

use callers::Callers;

/// A request's head comes within this time.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Keep-alive interval of silent connections, and the time to answer.
const KEEPALIVE: Duration = Duration::from_secs(20);

/// Time for calls in progress to end, when the coordinator stops.
const DRAIN: Duration = Duration::from_secs(3);

/// Calls at once on one connection.
const CALLS_MAX: u32 = 64;

/// Bytes of a request's head.
const HEADER_BYTES_MAX: u32 = 16 << 10;

/// When there is nothing left to accept a connection with, it is tried again after this time.
const BREATH: Duration = Duration::from_millis(100);

/// Connections beyond the limits while others are on their way out.
const LEAVING_MAX: usize = 64;

/// Limit of log lines about unauthenticated callers at `warn`; the rest go to `debug`, because they could fill the
/// disk.
const COMPLAINTS: Rate = Rate { most: 10, each: Duration::from_mins(1) };

/// What callers may take up, by default enough for thousands of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallerLimits {
    /// Connections with an allowed call; three quarters of them under one token.
    pub connections: usize,
    /// Connections without one.
    pub unauthenticated: usize,
    /// These are closed after this time.
    pub first_call: Duration,
    /// Calls on one connection, which is one worker's.
    pub calls: Rate,
    /// Registrations of workers under one token.
    pub registrations: Rate,
    /// A connection is closed if its caller does not read a piece of a response within this time.
    pub write_timeout: Duration,
}

impl Default for CallerLimits {
    fn default() -> Self {
        Self {
            connections: 16_000,
            unauthenticated: 4_000,
            first_call: Duration::from_secs(10),
            calls: Rate::a_second(1_000),
            registrations: Rate::an_hour(20_000),
            write_timeout: Duration::from_mins(1),
        }
    }
}

/// Accepts connections on `listener`, and has `app` answer their requests, which carry their [`Caller`]. Once `stopped` it
/// accepts no more, and ends when those that are open have their answers, within a few seconds. `refused` counts the
/// [refusals](Caller::refuse).
pub(crate) async fn serve(
    listener: TcpListener,
    (limits, tls): (CallerLimits, Option<Tls>),
    refused: Arc<AtomicU64>,
    app: Router,
    stopped: watch::Receiver<bool>,
) {
    let complaints = std::sync::Mutex::new(Bucket::new(COMPLAINTS, Instant::now()));
    let porter = Porter { tls, complaints, http: http(), app, stopped };
    Arc::new(porter).attend(listener, limits, &Callers::new(limits, refused)).await;
}

/// What both versions of HTTP may take up on a connection.
fn http() -> auto::Builder<TokioExecutor> {
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEADER_BYTES_MAX as usize);
    http.http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(CALLS_MAX)
        .max_header_list_size(HEADER_BYTES_MAX)
        .keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE);
    http
}

struct Porter {
    tls: Option<Tls>,
    complaints: std::sync::Mutex<Bucket>,
    http: auto::Builder<TokioExecutor>,
    app: Router,
    /// True, or its sender gone, once no more is to be accepted.
    stopped: watch::Receiver<bool>,
}

impl Porter {
    async fn attend(self: Arc<Self>, listener: TcpListener, limits: CallerLimits, callers: &Arc<Callers>) {
        let (mut open, mut stopped) = (JoinSet::new(), self.stopped.clone());
        let most = limits.connections + limits.unauthenticated + LEAVING_MAX;
        loop {
            while open.try_join_next().is_some() {}
            let accepted = tokio::select! {
                _ = stopped.wait_for(|stopped| *stopped) => break,
                Some(_) = open.join_next(), if open.len() >= most => continue,
                accepted = listener.accept(), if open.len() < most => accepted,
            };
            let (stream, address) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    self.complain(&format_args!("a connection could not be accepted: {error}"));
                    tokio::time::sleep(BREATH).await;
                    continue;
                }
            };
            let (porter, caller) = (Arc::clone(&self), callers.enter(address));
            open.spawn(async move {
                let time_is_up = async {
                    tokio::time::sleep(limits.first_call).await;
                    if !caller.is_stranger() {
                        pending::<()>().await;
                    }
                };
                tokio::select! {
                    () = porter.welcome(stream, &caller) => {}
                    () = caller.closed() => debug!(caller = %address, "connection closed"),
                    () = time_is_up => debug!(caller = %address, "connection closed: no call was allowed in time"),
                }
            });
        }
        drop(listener);
        let all = async { while open.join_next().await.is_some() {} };
        if timeout(DRAIN, all).await.is_err() {
            warn!("some calls were still open and are aborted");
        }
    }

    async fn welcome(&self, stream: TcpStream, caller: &Caller) {
        let address = caller.address();
        if let Err(error) = stream.set_nodelay(true) {
            debug!(caller = %address, %error, "without TCP_NODELAY");
        }
        let Some(tls) = &self.tls else {
            return self.converse(stream, Scheme::HTTP, &self.http, caller).await;
        };
        let stream = match tls.accept(stream).await {
            Ok(stream) => stream,
            Err(error) => {
                let why = tls::explain(&error);
                return self.complain(&format_args!("connection from {address} refused: {why}"));
            }
        };
        // The version is agreed.
        let http = self.http.clone();
        let http = if tls::is_http2(&stream) { http.http2_only() } else { http.http1_only() };
        self.converse(stream, Scheme::HTTPS, &http, caller).await;
    }

    /// Answers the requests of a connection, to its end.
    async fn converse<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
        &self,
        stream: S,
        scheme: Scheme,
        http: &auto::Builder<TokioExecutor>,
        caller: &Caller,
    ) {
        let (app, address, caller) = (self.app.clone(), caller.address(), caller.clone());
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(caller.clone());
            request.extensions_mut().insert(scheme.clone());
            app.clone().oneshot(request)
        });
        let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
        let mut stopped = self.stopped.clone();
        let stopping = async { drop(stopped.wait_for(|stopped| *stopped).await) };
        let outcome = tokio::select! {
            outcome = &mut connection => outcome,
            () = stopping => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = outcome {
            debug!(caller = %address, %error, "connection ended");
        }
    }

    fn complain(&self, what: &std::fmt::Arguments<'_>) {
        let mut complaints = self.complaints.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if complaints.take(Instant::now()) { warn!("{what}") } else { debug!("{what}") }
    }
}
