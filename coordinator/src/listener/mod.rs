//! Accepts connections, and limits how many there are and how long they stay. `access` and the services handle the
//! calls. The web page has a listener of its own with the same rules ([`connections`]).
//!
//! A connection is unauthenticated until one of its calls is allowed (health checks do not count). Unauthenticated
//! connections are closed after 10 seconds, after 16 refused calls, and when there are too many: first those of peers
//! without an allowed call in the last hour, and of these the oldest slow one of the peer that has most. One that was not
//! looked at yet is never closed: accepting waits until it was. That bounds handshakes and silent connections. Answers to calls without the right token are slow, per peer. Connections are limited in total and per peer (IPv4 address or IPv6 /64
//! network), calls by rate (token buckets per connection and per peer), registrations per peer: see [`CallerLimits`].
//! Peers without a connection are forgotten when their number exceeds the number of connections by 10,000.
//!
//! TLS is rustls with ring, version 1.3 only, without session resumption. Connections whose caller does not read a
//! response are closed. Messages over 4 MiB, headers over 16 KiB and more than 64 concurrent calls on a connection
//! are refused; a call may take 30 seconds. When the process has no file descriptors left, accepting pauses and
//! continues. Warnings about unauthenticated callers are limited to 10 per minute; the rest are logged at `debug`.

mod bucket;
mod connection;
mod connection_table;
mod tls;
mod write_timeout;

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tracing::{debug, warn};

pub use bucket::{Bucket, Rate};
pub use connection::{Caller, Connection};
pub(crate) use tls::{Certified, ClientAuthorities, Tls};
pub(crate) use write_timeout::Watching;

use connection_table::{ConnectionGuard, ConnectionTable, Full};

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

/// Takes connections without TLS from `listener` until the stream that it returns is dropped; that closes the listener.
///
/// The limits on registrations and on responses that are not read are up to the caller. `refused` counts
/// [refusals](Caller::refuse).
pub fn connections(
    listener: TcpListener,
    limits: CallerLimits,
    refused: Arc<AtomicU64>,
) -> ReceiverStream<io::Result<Connection>> {
    open(listener, limits, None, refused)
}

/// Takes connections from `listener` until the stream that it returns is dropped; that closes the listener.
pub(crate) fn open(
    listener: TcpListener,
    limits: CallerLimits,
    tls: Option<Tls>,
    refused: Arc<AtomicU64>,
) -> ReceiverStream<io::Result<Connection>> {
    let (sender, connections) = mpsc::channel(16);
    let complaints = std::sync::Mutex::new(Bucket::new(COMPLAINTS, Instant::now()));
    let porter = Porter { tls, complaints, sender };
    tokio::spawn(Arc::new(porter).attend(listener, Arc::new(ConnectionTable::new(limits, refused))));
    ReceiverStream::new(connections)
}

/// Whether a caller has reset its connection.
fn has_gone(stream: &TcpStream) -> bool {
    !matches!(stream.take_error(), Ok(None))
}

struct Porter {
    tls: Option<Tls>,
    complaints: std::sync::Mutex<Bucket>,
    sender: mpsc::Sender<io::Result<Connection>>,
}

impl Porter {
    async fn attend(self: Arc<Self>, listener: TcpListener, connection_table: Arc<ConnectionTable>) {
        let mut rounds = tokio::time::interval(DISMISS_EVERY);
        loop {
            let accepted = tokio::select! {
                () = self.sender.closed() => return,
                _ = rounds.tick() => {
                    connection_table.dismiss(Instant::now());
                    continue;
                }
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
                    tokio::spawn(Arc::clone(&self).welcome(stream, connection_guard, ended));
                }
                Err(full) => self.complain(&format_args!("connection from {address} refused: {full}")),
            }
        }
    }

    async fn welcome(
        self: Arc<Self>,
        stream: TcpStream,
        connection_guard: ConnectionGuard,
        mut ended: oneshot::Receiver<()>,
    ) {
        let address = connection_guard.address();
        if let Err(error) = stream.set_nodelay(true) {
            debug!(caller = %address, %error, "without TCP_NODELAY");
        }
        let stream: Box<dyn connection::ByteStream> = match &self.tls {
            None => Box::new(stream),
            Some(tls) => {
                // A handshake takes several steps in any case.
                connection_guard.set_slow();
                let shaken = tokio::select! {
                    shaken = tls.accept(stream) => shaken,
                    _ = &mut ended => return debug!(caller = %address, "connection closed: no handshake in time"),
                };
                match shaken {
                    Ok(stream) => {
                        if let Some(certified) = Certified::of(&stream) {
                            connection_guard.set_certified(certified);
                        }
                        Box::new(stream)
                    }
                    Err(error) => {
                        return self.complain(&format_args!(
                            "connection from {address} refused: {}",
                            tls::explain(&error)
                        ));
                    }
                }
            }
        };
        let connection =
            Connection { stream, caller: Caller(Arc::new(connection_guard)), ended: Some(ended) };
        // An error means that the server is going.
        drop(self.sender.send(Ok(connection)).await);
    }

    fn complain(&self, what: &std::fmt::Arguments<'_>) {
        let mut complaints = self.complaints.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if complaints.take(Instant::now()) { warn!("{what}") } else { debug!("{what}") }
    }
}
