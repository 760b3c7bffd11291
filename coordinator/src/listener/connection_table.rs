//! Who is connected: how many, from where, and for how long without an allowed call.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tonic::Status;

use super::Limits;
use super::bucket::Bucket;
use super::tls::Certified;

/// After this many refused calls, an unauthenticated connection is closed.
const REFUSALS_MAX: u32 = 16;

/// Connections beyond the limit while others are on their way out.
const LEAVING_MAX: usize = 64;

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

/// What there is to know of a peer.
struct Record {
    connections: usize,
    calls: Bucket,
    registrations: Bucket,
}

struct Books {
    connections: usize,
    peers: HashMap<Peer, Record>,
    /// Connections with no call that was let in, oldest first. A line that is struck out hangs up.
    unauthenticated: BTreeMap<u64, (Instant, oneshot::Sender<()>)>,
    next: u64,
}

/// All connections.
pub(crate) struct ConnectionTable {
    limits: Limits,
    books: Mutex<Books>,
}

/// Why a connection is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Full {
    #[error("the limit of --connections-max is reached")]
    House,
    #[error("this peer has reached the limit of --peer-connections-max")]
    Peer,
}

impl ConnectionTable {
    pub(crate) fn new(limits: Limits) -> Self {
        let books =
            Books { connections: 0, peers: HashMap::new(), unauthenticated: BTreeMap::new(), next: 0 };
        Self { limits, books: Mutex::new(books) }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a connection; the receiver resolves when the connection must be closed.
    ///
    /// If there are too many unauthenticated connections, the oldest of them is closed.
    pub(crate) fn enter(
        self: &Arc<Self>,
        address: SocketAddr,
        now: Instant,
    ) -> Result<(ConnectionGuard, oneshot::Receiver<()>), Full> {
        let (peer, limits, mut books) = (Peer::of(address), &self.limits, self.books());
        let is_full = books.connections >= limits.connections;
        let makes_place = (is_full || books.unauthenticated.len() >= limits.unauthenticated)
            .then(|| books.unauthenticated.pop_first())
            .flatten()
            .is_some();
        // Those who were hung up on are counted until they have gone.
        let most = limits.connections + if makes_place { LEAVING_MAX } else { 0 };
        if books.connections >= most {
            return Err(Full::House);
        }
        books.forget(limits.connections + ABSENT_MAX, now);
        let record = books.peers.entry(peer).or_insert_with(|| Record {
            connections: 0,
            calls: Bucket::new(limits.peer_calls, now),
            registrations: Bucket::new(limits.peer_registrations, now),
        });
        if record.connections >= limits.peer_connections {
            return Err(Full::Peer);
        }
        record.connections += 1;
        books.connections += 1;
        let number = books.next;
        books.next += 1;
        let (stay, ended) = oneshot::channel();
        books.unauthenticated.insert(number, (now, stay));
        let connection_guard = ConnectionGuard {
            connection_table: Arc::clone(self),
            address,
            peer,
            number,
            certified: OnceLock::new(),
            is_known: AtomicBool::new(false),
            stay: Mutex::new(None),
            refusals: AtomicU32::new(0),
            calls: Mutex::new(Bucket::new(limits.calls, now)),
        };
        Ok((connection_guard, ended))
    }

    /// Closes unauthenticated connections whose time is over.
    pub(crate) fn dismiss(&self, now: Instant) {
        let mut books = self.books();
        while let Some(oldest) = books.unauthenticated.first_entry()
            && now.saturating_duration_since(oldest.get().0) >= self.limits.first_call
        {
            oldest.remove();
        }
    }

    /// All connections, and the unauthenticated ones.
    #[cfg(test)]
    fn count(&self) -> (usize, usize) {
        let books = self.books();
        (books.connections, books.unauthenticated.len())
    }
}

impl Books {
    /// Makes room for another peer, if there are too many. Forgets peers that have no connection and full buckets,
    /// and if that is not enough, all peers without a connection.
    fn forget(&mut self, most: usize, now: Instant) {
        if self.peers.len() >= most {
            self.peers.retain(|_, peer| {
                peer.connections > 0 || !peer.calls.is_full(now) || !peer.registrations.is_full(now)
            });
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
    /// What its certificate says, if it showed one.
    certified: OnceLock<Certified>,
    /// Whether one of its calls was let in.
    is_known: AtomicBool,
    /// Hangs up when it is dropped, once it is no stranger any more.
    stay: Mutex<Option<oneshot::Sender<()>>>,
    refusals: AtomicU32,
    calls: Mutex<Bucket>,
}

impl ConnectionGuard {
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Notes what its certificate says.
    pub(crate) fn set_certified(&self, certified: Certified) {
        self.certified.set(certified).expect("there is one handshake");
    }

    /// What its certificate says; `None` if it showed none.
    pub(crate) fn certified(&self) -> Option<&Certified> {
        self.certified.get()
    }

    /// A call was let in, as far as the caller's rates allow.
    pub(crate) fn admit(&self, now: Instant) -> Result<(), Status> {
        if !self.is_known.swap(true, Ordering::Relaxed) {
            let stay = self.connection_table.books().unauthenticated.remove(&self.number);
            *self.stay.lock().unwrap_or_else(PoisonError::into_inner) = stay.map(|(_, stay)| stay);
        }
        let own = self.calls.lock().unwrap_or_else(PoisonError::into_inner).take(now);
        let all = own
            && self
                .connection_table
                .books()
                .peers
                .get_mut(&self.peer)
                .is_none_or(|peer| peer.calls.take(now));
        let refuse =
            |whose: &str| Status::resource_exhausted(format!("too many calls of this {whose}; make fewer"));
        match (own, all) {
            (true, true) => Ok(()),
            (true, false) => Err(refuse("address")),
            (false, _) => Err(refuse("connection")),
        }
    }

    pub(crate) fn refuse(&self) {
        let refusals = self.refusals.fetch_add(1, Ordering::Relaxed) + 1;
        if refusals >= REFUSALS_MAX && !self.is_known.load(Ordering::Relaxed) {
            self.connection_table.books().unauthenticated.remove(&self.number);
        }
    }

    /// A worker wants to register.
    pub(crate) fn register(&self, now: Instant) -> Result<(), Status> {
        let mut books = self.connection_table.books();
        let may = books.peers.get_mut(&self.peer).is_none_or(|peer| peer.registrations.take(now));
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
        self.connection_table.books().unauthenticated.remove(&self.number);
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
        books.unauthenticated.remove(&self.number);
        books.connections -= 1;
        let record = books.peers.get_mut(&self.peer).expect("whoever is here is on record");
        record.connections -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listener::Rate;

    const LIMITS: Limits = Limits {
        connections: 6,
        peer_connections: 4,
        unauthenticated: 3,
        first_call: Duration::from_secs(10),
        calls: Rate::a_second(3),
        peer_calls: Rate::a_second(5),
        peer_registrations: Rate::an_hour(2),
        write_timeout: Duration::from_secs(30),
    };

    fn address(host: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, host], 7))
    }

    #[test]
    fn strangers_make_place_and_known_callers_stay() {
        let (connection_table, now) = (Arc::new(ConnectionTable::new(LIMITS)), Instant::now());
        let enter = |host| connection_table.enter(address(host), now);
        let (known, mut known_ended) = enter(1).expect("it is empty");
        known.admit(now).unwrap();
        let mut unauthenticated: Vec<_> = (2..5).map(|host| enter(host).expect("room")).collect();
        assert_eq!(connection_table.count(), (4, 3));
        let (latest, mut latest_ended) = enter(5).expect("room");
        assert_eq!(connection_table.count(), (5, 3), "the oldest is hung up on, and still here");
        let ended: Vec<_> = unauthenticated.iter_mut().map(|(_, ended)| ended.try_recv()).collect();
        assert_eq!(ended[0], Err(oneshot::error::TryRecvError::Closed));
        assert!(ended[1..].iter().all(|ended| *ended == Err(oneshot::error::TryRecvError::Empty)));
        let others: Vec<_> = (6..8).map(|host| enter(host).expect("the oldest makes place")).collect();
        assert_eq!(
            connection_table.count(),
            (7, 3),
            "one more than there may be, until those have gone who have to"
        );
        drop((unauthenticated, others));
        assert_eq!(connection_table.count(), (2, 1));

        connection_table.dismiss(now + Duration::from_millis(9_999));
        assert!(latest_ended.try_recv() == Err(oneshot::error::TryRecvError::Empty));
        connection_table.dismiss(now + Duration::from_secs(10));
        assert_eq!(latest_ended.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert_eq!(known_ended.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        known.end();
        assert_eq!(known_ended.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        drop((known, latest));
        assert_eq!(connection_table.count(), (0, 0));
    }

    #[test]
    fn a_full_house_stays_as_it_is() {
        let (connection_table, now) = (Arc::new(ConnectionTable::new(LIMITS)), Instant::now());
        let mut here: Vec<_> =
            (0..6).map(|host| connection_table.enter(address(host), now).expect("room")).collect();
        here.drain(..3);
        here.extend((0..3).map(|host| connection_table.enter(address(host), now).expect("room")));
        for (connection_guard, _) in &here {
            connection_guard.admit(now).unwrap();
        }
        assert_eq!(connection_table.enter(address(9), now).err(), Some(Full::House));
        here.pop();
        connection_table.enter(address(9), now).expect("one has gone");
    }

    #[test]
    fn a_peer_has_its_share_and_no_more() {
        let (connection_table, now) = (Arc::new(ConnectionTable::new(LIMITS)), Instant::now());
        let visits: Vec<_> = (0..4)
            .map(|_| {
                let (connection_guard, ended) = connection_table.enter(address(1), now).expect("room");
                connection_guard.admit(now).unwrap();
                (connection_guard, ended)
            })
            .collect();
        assert_eq!(connection_table.enter(address(1), now).err(), Some(Full::Peer));
        let (first, _) = &visits[0];
        first.admit(now).unwrap();
        assert!(first.admit(now).unwrap_err().message().contains("this address"), "the sixth of all");
        let (other, _ended) = connection_table.enter(address(2), now).expect("room");
        for _ in 0..3 {
            other.admit(now).unwrap();
        }
        assert!(other.admit(now).unwrap_err().message().contains("this connection"));
        other.register(now).unwrap();
        other.register(now).unwrap();
        other.register(now).unwrap_err();
        first.register(now).unwrap();
        first.register(now + Duration::from_mins(31)).unwrap();
    }

    #[test]
    fn whoever_is_refused_too_often_is_hung_up_on() {
        let (connection_table, now) = (Arc::new(ConnectionTable::new(LIMITS)), Instant::now());
        let (connection_guard, mut ended) = connection_table.enter(address(1), now).expect("room");
        for _ in 1..REFUSALS_MAX {
            connection_guard.refuse();
        }
        assert_eq!(ended.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        connection_guard.refuse();
        assert_eq!(ended.try_recv(), Err(oneshot::error::TryRecvError::Closed));
    }

    #[test]
    fn peers_are_forgotten_when_there_are_too_many() {
        let limits = Limits { connections: 2, ..LIMITS };
        let (connection_table, now) = (Arc::new(ConnectionTable::new(limits)), Instant::now());
        let (here, _ended) = connection_table.enter(address(1), now).expect("room");
        for host in 0..30_000_u32 {
            let address = SocketAddr::from((std::net::Ipv4Addr::from_bits(0x0b00_0000 + host), 7));
            let (connection_guard, _ended) = connection_table.enter(address, now).expect("room");
            connection_guard.register(now).unwrap();
        }
        assert!(connection_table.books().peers.len() <= limits.connections + ABSENT_MAX);
        here.register(now).unwrap();
        let network = |text: &str| Peer::of(SocketAddr::new(text.parse().expect("an address"), 7));
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:1"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_eq!(network("::ffff:10.0.0.1"), network("10.0.0.1"));
    }
}
