//! Who is connected: how many, from where, and for how long without an allowed call.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tonic::Status;

use super::CallerLimits;
use super::bucket::Bucket;

/// After this many refused calls, an unauthenticated connection is closed.
const REFUSALS_MAX: u32 = 16;

/// Connections beyond the limit while others are on their way out.
const LEAVING_MAX: usize = 64;

/// A peer whose last allowed call is at most this old is a known one: its new connections stay longer than strangers'.
const KNOWN_FOR: Duration = Duration::from_hours(1);

/// Answers to calls without the right token: when the first of a peer leaves, the time to the next one of this peer, and
/// the longest wait.
const REFUSAL_AFTER: Duration = Duration::from_millis(500);
const REFUSAL_EVERY: Duration = Duration::from_millis(100);
const REFUSAL_WITHIN: Duration = Duration::from_secs(5);

/// Peers without a connection that are remembered at most, for what they have used up of their rates.
const ABSENT_MAX: usize = 10_000;

/// Whose connections are counted together: an address, or a network of IPv6, for one host has all addresses of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Peer(IpAddr);

impl Peer {
    fn of(address: SocketAddr) -> Self {
        Self(match address.ip().to_canonical() {
            IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)).into(),
            ip @ IpAddr::V4(_) => ip,
        })
    }
}

/// A connection with no call that was let in.
struct Unauthenticated {
    since: Instant,
    /// Whether it kept us waiting. One that was not looked at yet may have a request that will be let in.
    is_slow: Arc<AtomicBool>,
    stay: oneshot::Sender<()>,
}

/// What there is to know of a peer.
struct Record {
    connections: usize,
    /// Connections with no call that was let in, oldest first. A line that is struck out hangs up.
    unauthenticated: BTreeMap<u64, Unauthenticated>,
    /// The last call that was let in.
    admitted: Option<Instant>,
    /// When the latest answer to a call without the right token leaves.
    refused: Instant,
    calls: Bucket,
    /// Calls that need no token, which take nothing away from those that show one.
    open_calls: Bucket,
    registrations: Bucket,
}

impl Record {
    fn new(limits: &CallerLimits, now: Instant) -> Self {
        Self {
            connections: 0,
            unauthenticated: BTreeMap::new(),
            admitted: None,
            refused: now,
            calls: Bucket::new(limits.peer_calls, now),
            open_calls: Bucket::new(limits.peer_calls, now),
            registrations: Bucket::new(limits.peer_registrations, now),
        }
    }

    fn is_known(&self, now: Instant) -> bool {
        self.admitted.is_some_and(|admitted| now.saturating_duration_since(admitted) < KNOWN_FOR)
    }

    /// Whether nothing is lost with it.
    fn is_blank(&mut self, now: Instant) -> bool {
        self.connections == 0
            && !self.is_known(now)
            && self.refused <= now
            && self.calls.is_full(now)
            && self.open_calls.is_full(now)
            && self.registrations.is_full(now)
    }
}

struct Books {
    connections: usize,
    unauthenticated: usize,
    peers: HashMap<Peer, Record>,
    next: u64,
}

/// All connections.
pub(crate) struct ConnectionTable {
    limits: CallerLimits,
    refused: Arc<AtomicU64>,
    books: Mutex<Books>,
}

/// Why a connection is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Full {
    #[error("the limit of --connections-max is reached")]
    House,
    #[error("this peer has reached the limit of --peer-connections-max")]
    Peer,
    #[error("those who came before have to be looked at first")]
    ForNow,
}

impl ConnectionTable {
    /// Counts in `refused` the calls without the right token.
    pub(crate) fn new(limits: CallerLimits, refused: Arc<AtomicU64>) -> Self {
        let books = Books { connections: 0, unauthenticated: 0, peers: HashMap::new(), next: 0 };
        Self { limits, refused, books: Mutex::new(books) }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a connection; the receiver resolves when the connection must be closed.
    ///
    /// If there are too many connections, an unauthenticated one is closed: of the peers that are not known, and of these
    /// the one with most such connections, the oldest that kept us waiting. A peer with too many makes place itself.
    pub(crate) fn enter(
        self: &Arc<Self>,
        address: SocketAddr,
        now: Instant,
    ) -> Result<(ConnectionGuard, oneshot::Receiver<()>), Full> {
        let (peer, limits, mut books) = (Peer::of(address), &self.limits, self.books());
        books.forget(limits.connections + ABSENT_MAX, now);
        let of_peer = books.peers.entry(peer).or_insert_with(|| Record::new(limits, now)).connections;
        // Those who were hung up on are counted until they have gone.
        if books.connections >= limits.connections + LEAVING_MAX
            || of_peer >= limits.peer_connections + LEAVING_MAX
        {
            return Err(Full::ForNow);
        }
        let makes_place = if of_peer >= limits.peer_connections {
            books.close_oldest(peer)?
        } else if books.connections >= limits.connections || books.unauthenticated >= limits.unauthenticated {
            books.close_one(now)?
        } else {
            false
        };
        if !makes_place && of_peer >= limits.peer_connections {
            return Err(Full::Peer);
        }
        if !makes_place && books.connections >= limits.connections {
            return Err(Full::House);
        }
        let number = books.next;
        let record = books.record(peer);
        record.connections += 1;
        let (stay, ended) = oneshot::channel();
        let is_slow = Arc::<AtomicBool>::default();
        let unauthenticated = Unauthenticated { since: now, is_slow: Arc::clone(&is_slow), stay };
        record.unauthenticated.insert(number, unauthenticated);
        books.connections += 1;
        books.unauthenticated += 1;
        books.next += 1;
        let connection_guard = ConnectionGuard {
            connection_table: Arc::clone(self),
            address,
            peer,
            number,
            is_known: AtomicBool::new(false),
            is_slow,
            stay: Mutex::new(None),
            refusals: AtomicU32::new(0),
            calls: Mutex::new(Bucket::new(limits.calls, now)),
        };
        Ok((connection_guard, ended))
    }

    /// Closes unauthenticated connections whose time is over.
    pub(crate) fn dismiss(&self, now: Instant) {
        let Books { peers, unauthenticated, .. } = &mut *self.books();
        for record in peers.values_mut() {
            while let Some(oldest) = record.unauthenticated.first_entry()
                && now.saturating_duration_since(oldest.get().since) >= self.limits.first_call
            {
                oldest.remove();
                *unauthenticated -= 1;
            }
        }
    }

    /// All connections, and the unauthenticated ones.
    #[cfg(test)]
    fn count(&self) -> (usize, usize) {
        let books = self.books();
        (books.connections, books.unauthenticated)
    }
}

impl Books {
    /// Whoever has a connection is on record.
    fn record(&mut self, peer: Peer) -> &mut Record {
        self.peers.get_mut(&peer).expect("whoever is here is on record")
    }

    /// A connection is no longer an unauthenticated one; dropping what is returned closes it.
    fn strike_out(&mut self, peer: Peer, number: u64) -> Option<oneshot::Sender<()>> {
        let Unauthenticated { stay, .. } = self.record(peer).unauthenticated.remove(&number)?;
        self.unauthenticated -= 1;
        Some(stay)
    }

    /// Closes an unauthenticated connection; says whether there was one.
    fn close_one(&mut self, now: Instant) -> Result<bool, Full> {
        let waiting = self.peers.iter().filter(|(_, record)| !record.unauthenticated.is_empty());
        let first = waiting.min_by_key(|(_, record)| {
            let oldest = record.unauthenticated.first_key_value().map(|(number, _)| *number);
            (record.is_known(now), Reverse(record.unauthenticated.len()), oldest)
        });
        first.map(|(peer, _)| *peer).map_or(Ok(false), |peer| self.close_oldest(peer))
    }

    /// Closes the oldest slow one of a peer's unauthenticated connections; says whether it had any.
    fn close_oldest(&mut self, peer: Peer) -> Result<bool, Full> {
        let unauthenticated = &self.record(peer).unauthenticated;
        if unauthenticated.is_empty() {
            return Ok(false);
        }
        let slow = unauthenticated.iter().find(|(_, connection)| connection.is_slow.load(Ordering::Relaxed));
        let number = slow.map(|(number, _)| *number).ok_or(Full::ForNow)?;
        self.strike_out(peer, number);
        Ok(true)
    }

    /// Makes room for another peer, if there are too many. Forgets peers of which there is nothing to remember, and if
    /// that is not enough, all peers without a connection.
    fn forget(&mut self, most: usize, now: Instant) {
        if self.peers.len() >= most {
            self.peers.retain(|_, peer| !peer.is_blank(now));
        }
        if self.peers.len() >= most {
            self.peers.retain(|_, peer| peer.connections > 0);
        }
    }
}

/// One connection, as far as its calls are concerned.
pub(crate) struct ConnectionGuard {
    connection_table: Arc<ConnectionTable>,
    address: SocketAddr,
    peer: Peer,
    number: u64,
    /// Whether one of its calls was let in.
    is_known: AtomicBool,
    is_slow: Arc<AtomicBool>,
    /// Hangs up when it is dropped, once it is no stranger any more.
    stay: Mutex<Option<oneshot::Sender<()>>>,
    refusals: AtomicU32,
    calls: Mutex<Bucket>,
}

impl ConnectionGuard {
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// A call was let in, as far as the caller's rates allow.
    pub(crate) fn admit(&self, now: Instant) -> Result<(), Status> {
        let own = self.takes_call(now);
        let mut books = self.connection_table.books();
        if !self.is_known.swap(true, Ordering::Relaxed) {
            let stay = books.strike_out(self.peer, self.number);
            *self.stay.lock().unwrap_or_else(PoisonError::into_inner) = stay;
        }
        let record = books.record(self.peer);
        record.admitted = Some(now);
        let all = own && record.calls.take(now);
        drop(books);
        within_rates(own, all)
    }

    /// A call came that needs no token: lets it in as far as the caller's rates allow. The connection stays unauthenticated.
    pub(crate) fn admit_open(&self, now: Instant) -> Result<(), Status> {
        let own = self.takes_call(now);
        let all = own && self.connection_table.books().record(self.peer).open_calls.take(now);
        within_rates(own, all)
    }

    fn takes_call(&self, now: Instant) -> bool {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).take(now)
    }

    /// It kept us waiting.
    pub(crate) fn set_slow(&self) {
        self.is_slow.store(true, Ordering::Relaxed);
    }

    /// A call was not let in.
    pub(crate) fn refuse(&self) {
        let refusals = self.refusals.fetch_add(1, Ordering::Relaxed) + 1;
        if refusals >= REFUSALS_MAX && !self.is_known.load(Ordering::Relaxed) {
            self.connection_table.books().strike_out(self.peer, self.number);
        }
    }

    /// A call came without the right token: counts it, and returns how long its answer must wait. Answers to one peer
    /// leave one after the other, so that many at once gain nothing. Right tokens never wait.
    pub(crate) fn slow_down(&self, now: Instant) -> Duration {
        self.connection_table.refused.fetch_add(1, Ordering::Relaxed);
        let mut books = self.connection_table.books();
        let record = books.record(self.peer);
        record.refused = (record.refused + REFUSAL_EVERY).clamp(now + REFUSAL_AFTER, now + REFUSAL_WITHIN);
        record.refused - now
    }

    /// A worker wants to register.
    pub(crate) fn register(&self, now: Instant) -> Result<(), Status> {
        let mut books = self.connection_table.books();
        let may = books.record(self.peer).registrations.take(now);
        let refusal = "too many registrations from this address; try again later, or raise the coordinator's \
                       --peer-registrations-per-hour";
        may.then_some(()).ok_or_else(|| Status::resource_exhausted(refusal))
    }

    /// How long it may leave an answer lying.
    pub(crate) fn write_timeout(&self) -> Duration {
        self.connection_table.limits.write_timeout
    }

    pub(crate) fn end(&self) {
        self.stay.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.connection_table.books().strike_out(self.peer, self.number);
    }
}

/// Refuses a call beyond the rate of its connection, or of its peer.
fn within_rates(own: bool, all: bool) -> Result<(), Status> {
    let refuse =
        |whose: &str| Status::resource_exhausted(format!("too many calls of this {whose}; make fewer"));
    match (own, all) {
        (true, true) => Ok(()),
        (true, false) => Err(refuse("address")),
        (false, _) => Err(refuse("connection")),
    }
}

impl fmt::Debug for ConnectionGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConnectionGuard({})", self.address)
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        let mut books = self.connection_table.books();
        books.strike_out(self.peer, self.number);
        books.connections -= 1;
        books.record(self.peer).connections -= 1;
    }
}

#[cfg(test)]
mod tests;
