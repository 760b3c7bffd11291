//! The door: who gets a connection, and for how long. What is said on it is for `access` and the services.

mod bucket;
mod census;
mod connection;
mod patience;
mod tls;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tracing::{debug, warn};

pub use bucket::Rate;
pub(crate) use connection::Caller;
pub(crate) use patience::Watching;
pub(crate) use tls::{ClientAuthorities, Tls};

use bucket::Bucket;
use census::{Census, Visit};
use connection::Connection;

/// How often those are looked for who have said nothing for too long.
const DISMISS_EVERY: Duration = Duration::from_millis(500);

/// When there is nothing left to accept a connection with, it is tried again after this time.
const BREATH: Duration = Duration::from_millis(100);

/// Lines about strangers in the log at `warn`; more of them go to `debug`, or they could fill the disk.
const COMPLAINTS: Rate = Rate { most: 10, each: Duration::from_mins(1) };

/// What callers may take up, by default enough for thousands of workers behind one address.
///
/// A connection is a stranger's until one of its calls is let in. A peer is an IPv4 address or an IPv6 network of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections in all.
    pub connections: usize,
    /// Connections of one peer.
    pub peer_connections: usize,
    /// Connections of strangers; of more, the oldest are hung up on.
    pub strangers: usize,
    /// A stranger is hung up on after this time.
    pub first_call: Duration,
    /// Calls on one connection, which is one worker's.
    pub calls: Rate,
    /// Calls of one peer.
    pub peer_calls: Rate,
    /// Registrations of workers from one peer.
    pub peer_registrations: Rate,
    /// A piece of an answer that is not taken for so long ends the connection.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 16_000,
            peer_connections: 12_000,
            strangers: 4_000,
            first_call: Duration::from_secs(10),
            calls: Rate::a_second(1_000),
            peer_calls: Rate::a_second(20_000),
            peer_registrations: Rate::an_hour(20_000),
            patience: Duration::from_mins(1),
        }
    }
}

/// Takes connections from `listener` until the stream that it returns is dropped; that closes the listener.
pub(crate) fn open(
    listener: TcpListener,
    limits: Limits,
    tls: Option<Tls>,
) -> ReceiverStream<io::Result<Connection>> {
    let (sender, connections) = mpsc::channel(16);
    let complaints = std::sync::Mutex::new(Bucket::new(COMPLAINTS, Instant::now()));
    let porter = Porter { tls, complaints, sender };
    tokio::spawn(Arc::new(porter).attend(listener, Arc::new(Census::new(limits))));
    ReceiverStream::new(connections)
}

struct Porter {
    tls: Option<Tls>,
    complaints: std::sync::Mutex<Bucket>,
    sender: mpsc::Sender<io::Result<Connection>>,
}

impl Porter {
    async fn attend(self: Arc<Self>, listener: TcpListener, census: Arc<Census>) {
        let mut rounds = tokio::time::interval(DISMISS_EVERY);
        loop {
            let accepted = tokio::select! {
                () = self.sender.closed() => return,
                _ = rounds.tick() => {
                    census.dismiss(Instant::now());
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
            match census.enter(address, Instant::now()) {
                Ok((visit, ended)) => {
                    tokio::spawn(Arc::clone(&self).welcome(stream, visit, ended));
                }
                Err(full) => self.complain(&format_args!("{address} is not let in: {full}")),
            }
        }
    }

    async fn welcome(self: Arc<Self>, stream: TcpStream, visit: Visit, mut ended: oneshot::Receiver<()>) {
        let address = visit.address();
        if let Err(error) = stream.set_nodelay(true) {
            debug!(caller = %address, %error, "without TCP_NODELAY");
        }
        let stream: Box<dyn connection::Stream> = match &self.tls {
            None => Box::new(stream),
            Some(tls) => {
                let shaken = tokio::select! {
                    shaken = tls.accept(stream) => shaken,
                    _ = &mut ended => return debug!(caller = %address, "no handshake in time: hung up"),
                };
                match shaken {
                    Ok(stream) => {
                        if let Some(roles) = tls::roles(&stream) {
                            visit.set_roles(roles);
                        }
                        Box::new(stream)
                    }
                    Err(error) => {
                        return self
                            .complain(&format_args!("{address} is not let in: {}", tls::explain(&error)));
                    }
                }
            }
        };
        let connection = Connection { stream, caller: Caller(Arc::new(visit)), ended: Some(ended) };
        // An error means that the server is going.
        drop(self.sender.send(Ok(connection)).await);
    }

    fn complain(&self, what: &std::fmt::Arguments<'_>) {
        let mut complaints = self.complaints.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if complaints.take(Instant::now()) { warn!("{what}") } else { debug!("{what}") }
    }
}
