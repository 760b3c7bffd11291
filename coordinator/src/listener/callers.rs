//! Who is connected: strangers, until one of their calls is allowed, and holders of tokens.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use axum::extract::Request;
use nqueens_model::credential::Credential;
use tokio::sync::Notify;
use tonic::Status;

use super::CallerLimits;
use super::bucket::Bucket;

/// After this many refused calls, a stranger's connection is closed.
const REFUSALS_MAX: u32 = 16;

/// Whose connection it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Holder {
    Operators,
    Workers(Credential),
    /// Of those who look at a public page: together they take up less than anybody with a token.
    Public,
}

/// The address of a caller; of IPv6 its network, for one host has all addresses of it.
fn peer(address: SocketAddr) -> IpAddr {
    match address.ip().to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)).into(),
        ip @ IpAddr::V4(_) => ip,
    }
}

#[derive(Default)]
struct Book {
    next: u64,
    /// Oldest first.
    strangers: BTreeMap<u64, (IpAddr, Arc<Notify>)>,
    /// Strangers' connections of each address.
    of_peer: HashMap<IpAddr, usize>,
    /// Connections of all holders.
    held: usize,
    holders: HashMap<Holder, Held>,
}

/// What one holder takes up.
struct Held {
    connections: usize,
    registrations: Bucket,
}

impl Book {
    fn remove(&mut self, number: u64) -> Option<Arc<Notify>> {
        let (peer, close) = self.strangers.remove(&number)?;
        if let Some(count) = self.of_peer.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                self.of_peer.remove(&peer);
            }
        }
        Some(close)
    }

    /// The oldest connection of the address that has most of them.
    fn first_to_go(&self) -> Option<u64> {
        let (most, _) = self.of_peer.iter().max_by_key(|(_, count)| **count)?;
        self.strangers.iter().find(|(_, (peer, _))| peer == most).map(|(number, _)| *number)
    }
}

/// All connections.
pub(crate) struct Callers {
    limits: CallerLimits,
    refused: Arc<AtomicU64>,
    book: Mutex<Book>,
}

impl Callers {
    /// Counts in `refused` the calls without the right token.
    pub(crate) fn new(limits: CallerLimits, refused: Arc<AtomicU64>) -> Arc<Self> {
        Arc::new(Self { limits, refused, book: Mutex::default() })
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a connection as a stranger's. If there are too many, the oldest one of the address that has most is closed.
    pub(crate) fn enter(self: &Arc<Self>, address: SocketAddr) -> Caller {
        let (peer, close) = (peer(address), Arc::new(Notify::new()));
        let mut book = self.book();
        while book.strangers.len() >= self.limits.unauthenticated
            && let Some(number) = book.first_to_go()
            && let Some(closed) = book.remove(number)
        {
            closed.notify_one();
        }
        let number = book.next;
        book.next += 1;
        book.strangers.insert(number, (peer, Arc::clone(&close)));
        *book.of_peer.entry(peer).or_default() += 1;
        drop(book);
        let (holder, refusals) = (OnceLock::new(), AtomicU32::new(0));
        let calls = Mutex::new(Bucket::new(self.limits.calls, Instant::now()));
        Caller(Arc::new(Entry { callers: Arc::clone(self), address, number, close, holder, refusals, calls }))
    }
}

/// Who calls: goes with each request of a connection.
#[derive(Clone, Debug)]
pub struct Caller(Arc<Entry>);

/// One connection.
struct Entry {
    callers: Arc<Callers>,
    address: SocketAddr,
    number: u64,
    close: Arc<Notify>,
    /// Whose it is, once a call was allowed.
    holder: OnceLock<Holder>,
    refusals: AtomicU32,
    calls: Mutex<Bucket>,
}

impl Caller {
    /// Who makes a request.
    pub fn of<B>(request: &Request<B>) -> Self {
        request.extensions().get::<Self>().expect("each connection has its caller").clone()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// An operator's request was allowed, as far as the connection's rate goes.
    pub fn admit(&self) -> Result<(), Status> {
        self.admit_holder(&Holder::Operators)
    }

    /// A call was allowed, as far as the connection's rate and the holder's number of connections go.
    pub(crate) fn admit_holder(&self, holder: &Holder) -> Result<(), Status> {
        self.admit_open()?;
        let Entry { callers, number, .. } = &*self.0;
        if self.0.holder.get().is_some() {
            return Ok(());
        }
        let (mut book, limits) = (callers.book(), &callers.limits);
        let (most, all) = match holder {
            Holder::Public => ((limits.connections / 8).max(1), book.held),
            _ => (limits.connections - limits.connections / 4, book.held),
        };
        let held = book.holders.entry(holder.clone()).or_insert_with(|| Held {
            connections: 0,
            registrations: Bucket::new(limits.registrations, Instant::now()),
        });
        if all >= limits.connections || held.connections >= most {
            let refusal = "too many connections under this token; close some, or raise the coordinator's --connections-max";
            return Err(Status::resource_exhausted(refusal));
        }
        // Another call on this connection may have been faster.
        if self.0.holder.set(holder.clone()).is_ok() {
            held.connections += 1;
            book.held += 1;
            book.remove(*number);
        }
        Ok(())
    }

    /// A request came that needs no token: it is answered as far as the connection's rate goes.
    pub(crate) fn admit_open(&self) -> Result<(), Status> {
        let may = self.0.calls.lock().unwrap_or_else(PoisonError::into_inner).take(Instant::now());
        may.then_some(())
            .ok_or_else(|| Status::resource_exhausted("too many calls of this connection; make fewer"))
    }

    /// A request came without the right token.
    pub fn refuse(&self) {
        let refusals = self.0.refusals.fetch_add(1, Ordering::Relaxed) + 1;
        if refusals >= REFUSALS_MAX && matches!(self.0.holder.get(), None | Some(Holder::Public)) {
            self.close();
        }
    }

    /// An answer to a request without the right token leaves.
    pub(crate) fn count_refusal(&self) {
        self.0.callers.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// A worker wants to register.
    pub(crate) fn register(&self) -> Result<(), Status> {
        let mut book = self.0.callers.book();
        let held = self.0.holder.get().and_then(|holder| book.holders.get_mut(holder));
        let may = held.is_none_or(|held| held.registrations.take(Instant::now()));
        let refusal = "too many registrations under this token in an hour; try again later";
        may.then_some(()).ok_or_else(|| Status::resource_exhausted(refusal))
    }

    pub(crate) fn limits(&self) -> &CallerLimits {
        &self.0.callers.limits
    }

    /// Whether none of its calls was allowed.
    pub(crate) fn is_stranger(&self) -> bool {
        self.0.holder.get().is_none()
    }

    /// Closes the connection.
    pub(crate) fn close(&self) {
        self.0.close.notify_one();
    }

    /// Waits until the connection is to close.
    pub(crate) async fn closed(&self) {
        self.0.close.notified().await;
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.address)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut book = self.callers.book();
        book.remove(self.number);
        if let Some(holder) = self.holder.get() {
            book.held -= 1;
            if let Some(held) = book.holders.get_mut(holder) {
                held.connections -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::super::Rate;
    use super::*;

    const LIMITS: CallerLimits = CallerLimits {
        connections: 4,
        unauthenticated: 3,
        first_call: Duration::from_secs(10),
        calls: Rate::an_hour(5),
        registrations: Rate::an_hour(2),
        write_timeout: Duration::from_secs(30),
    };

    fn callers() -> impl Fn(u8) -> Caller {
        let callers = Callers::new(LIMITS, Arc::default());
        move |host| callers.enter(SocketAddr::from(([10, 0, 0, host], 7)))
    }

    async fn is_closed(caller: &Caller) -> bool {
        timeout(Duration::ZERO, caller.closed()).await.is_ok()
    }

    #[tokio::test]
    async fn the_oldest_stranger_of_who_has_most_makes_place() {
        let enter = callers();
        let (known, modest) = (enter(2), enter(1));
        known.admit().unwrap();
        let crowd = [enter(2), enter(2)];
        let (next, last) = (enter(2), enter(3));
        assert!(is_closed(&crowd[0]).await && is_closed(&crowd[1]).await);
        for other in [&known, &modest, &next, &last] {
            assert!(!is_closed(other).await, "{other:?}");
        }
        drop((modest, next));
        let more = enter(4);
        assert!(!is_closed(&last).await && !is_closed(&more).await, "two have left");
    }

    #[tokio::test]
    async fn holders_have_limits_of_their_own() {
        let enter = callers();
        let lab = Holder::Workers(Credential::named("lab").unwrap());
        let mut held: Vec<_> = (0..3).map(|_| enter(1)).collect();
        for caller in &held {
            caller.admit_holder(&lab).unwrap();
        }
        let fourth = enter(1);
        assert!(fourth.admit_holder(&lab).unwrap_err().message().contains("too many connections"));
        assert!(fourth.is_stranger());
        enter(1).admit().expect("operators have a quarter left");
        held.pop();
        fourth.admit_holder(&lab).expect("one has gone");
        held[0].register().unwrap();
        held[1].register().unwrap();
        held[0].register().unwrap_err();
        let operator = enter(1);
        for _ in 0..5 {
            operator.admit().unwrap();
        }
        assert!(operator.admit().unwrap_err().message().contains("too many calls"));
        assert!(operator.admit_open().is_err());
    }

    #[tokio::test]
    async fn whoever_is_refused_too_often_is_hung_up_on() {
        let enter = callers();
        let [stranger, looker, known] = [enter(1), enter(1), enter(1)];
        known.admit().unwrap();
        looker.admit_holder(&Holder::Public).unwrap();
        for _ in 0..REFUSALS_MAX {
            assert!(!is_closed(&stranger).await && !is_closed(&looker).await);
            stranger.refuse();
            looker.refuse();
            known.refuse();
        }
        assert!(is_closed(&stranger).await && is_closed(&looker).await && !is_closed(&known).await);
    }

    #[tokio::test]
    async fn those_who_look_leave_room_for_holders() {
        let enter = callers();
        let [first, second] = [enter(1), enter(2)];
        first.admit_holder(&Holder::Public).unwrap();
        second.admit_holder(&Holder::Public).unwrap_err();
        assert!(second.is_stranger(), "and goes like one");
        let mut held = vec![];
        for _ in 0..3 {
            held.push(enter(3));
            held.last().expect("just pushed").admit().unwrap();
        }
    }

    #[test]
    fn a_host_has_a_network_of_ipv6() {
        let network = |text: &str| peer(SocketAddr::new(text.parse().expect("an address"), 7));
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:1"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_eq!(network("::ffff:10.0.0.1"), network("10.0.0.1"));
    }
}
