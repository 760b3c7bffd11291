//! Accepts connections, and limits how many there are and how long they stay. `access` and the services handle the
//! calls.
//!
//! A connection is unauthenticated until one of its calls is allowed (health checks do not count). Unauthenticated
//! connections are closed after 10 seconds, after 16 refused calls, and when there are too many: first those of peers
//! without an allowed call in the last hour, and of these the oldest slow one of the peer that has most. One that was not
//! looked at yet is never closed: accepting waits until it was. That bounds handshakes and silent connections. Answers to calls without the right token are slow, per peer. Connections are limited in total and per peer (IPv4 address or IPv6 /64
//! network), calls by rate (token buckets per connection and per peer), registrations per peer: see [`CallerLimits`].
//! Peers without a connection are forgotten when their number exceeds the number of connections by 10,000.
//!
//! TLS is rustls with ring, version 1.3 only. Connections whose caller does not read a
//! response are closed. Messages over 4 MiB, headers over 16 KiB and more than 64 concurrent calls on a connection
//! are refused; a call may take 30 seconds. When the process has no file descriptors left, accepting pauses and
//! continues. Warnings about unauthenticated callers are limited to 10 per minute; the rest are logged at `debug`.

mod bucket;
mod connection;
mod connection_table;
mod tls;
mod write_timeout;

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
pub use connection::Caller;
pub(crate) use tls::Tls;
pub(crate) use write_timeout::watched;

use connection::Connection;
use connection_table::{ConnectionGuard, ConnectionTable, Full};

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

/// How often those are looked for who have said nothing for too long.
const DISMISS_EVERY: Duration = Duration::from_millis(500);

/// When there is nothing left to accept a connection with, it is tried again after this time.
const BREATH: Duration = Duration::from_millis(100);

/// When those who came before have not been looked at, the next one waits for this time.
const MOMENT: Duration = Duration::from_millis(10);

/// Limit of log lines about unauthenticated callers at `warn`; the rest go to `debug`, because they could fill the
/// disk.
const COMPLAINTS: Rate = Rate { most: 10, each: Duration::from_mins(1) };

/// What callers may take up, by default enough for thousands of workers behind one address.
///
/// A connection is unauthenticated until one of its calls is allowed. A peer is an IPv4 address or an IPv6 /64
/// network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallerLimits {
    /// Connections in all.
    pub connections: usize,
    /// Connections of one peer.
    pub peer_connections: usize,
    /// Unauthenticated connections; beyond this number, the oldest are closed.
    pub unauthenticated: usize,
    /// Unauthenticated connections are closed after this time.
    pub first_call: Duration,
    /// Calls on one connection, which is one worker's.
    pub calls: Rate,
    /// Calls of one peer.
    pub peer_calls: Rate,
    /// Registrations of workers from one peer.
    pub peer_registrations: Rate,
    /// A connection is closed if its caller does not read a piece of a response within this time.
    pub write_timeout: Duration,
}

impl Default for CallerLimits {
    fn default() -> Self {
        Self {
            connections: 16_000,
            peer_connections: 12_000,
            unauthenticated: 4_000,
            first_call: Duration::from_secs(10),
            calls: Rate::a_second(1_000),
            peer_calls: Rate::a_second(20_000),
            peer_registrations: Rate::an_hour(20_000),
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
    Arc::new(porter).attend(listener, Arc::new(ConnectionTable::new(limits, refused))).await;
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

/// Whether a caller has reset its connection.
fn has_gone(stream: &TcpStream) -> bool {
    !matches!(stream.take_error(), Ok(None))
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
    async fn attend(self: Arc<Self>, listener: TcpListener, connection_table: Arc<ConnectionTable>) {
        let (mut open, mut stopped) = (JoinSet::new(), self.stopped.clone());
        let mut rounds = tokio::time::interval(DISMISS_EVERY);
        loop {
            let accepted = tokio::select! {
                _ = stopped.wait_for(|stopped| *stopped) => break,
                _ = rounds.tick() => {
                    connection_table.dismiss(Instant::now());
                    continue;
                }
                Some(_) = open.join_next() => continue,
                accepted = listener.accept() => accepted,
            };
            let (stream, address) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    self.complain(&format_args!("a connection could not be accepted: {error}"));
                    tokio::time::sleep(BREATH).await;
                    continue;
                }
            };
            let entered = loop {
                match connection_table.enter(address, Instant::now()) {
                    // Nobody has to make place for a caller that has gone.
                    Err(Full::ForNow) if has_gone(&stream) => break None,
                    Err(Full::ForNow) => tokio::time::sleep(MOMENT).await,
                    entered => break Some(entered),
                }
            };
            let Some(entered) = entered else { continue };
            match entered {
                Ok((connection_guard, ended)) => {
                    let porter = Arc::clone(&self);
                    open.spawn(async move {
                        tokio::select! {
                            () = porter.welcome(stream, connection_guard) => {}
                            _ = ended => debug!(caller = %address, "connection closed"),
                        }
                    });
                }
                Err(full) => self.complain(&format_args!("connection from {address} refused: {full}")),
            }
        }
        drop(listener);
        let all = async { while open.join_next().await.is_some() {} };
        if timeout(DRAIN, all).await.is_err() {
            warn!("some calls were still open and are aborted");
        }
    }

    async fn welcome(&self, stream: TcpStream, connection_guard: ConnectionGuard) {
        let address = connection_guard.address();
        if let Err(error) = stream.set_nodelay(true) {
            debug!(caller = %address, %error, "without TCP_NODELAY");
        }
        let Some(tls) = &self.tls else {
            return self.converse(stream, Scheme::HTTP, &self.http, connection_guard).await;
        };
        // A handshake takes several steps in any case.
        connection_guard.set_slow();
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
        self.converse(stream, Scheme::HTTPS, &http, connection_guard).await;
    }

    /// Answers the requests of a connection, to its end.
    async fn converse<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
        &self,
        stream: S,
        scheme: Scheme,
        http: &auto::Builder<TokioExecutor>,
        connection_guard: ConnectionGuard,
    ) {
        let caller = Caller(Arc::new(connection_guard));
        let stream = TokioIo::new(Connection { stream, caller: caller.clone() });
        let (app, address) = (self.app.clone(), caller.0.address());
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(caller.clone());
            request.extensions_mut().insert(scheme.clone());
            app.clone().oneshot(request)
        });
        let mut connection = pin!(http.serve_connection(stream, service));
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
