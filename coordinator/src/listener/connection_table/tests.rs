use super::*;
use crate::listener::Rate;

const LIMITS: CallerLimits = CallerLimits {
    connections: 6,
    peer_connections: 4,
    unauthenticated: 3,
    first_call: Duration::from_secs(10),
    calls: Rate::a_second(3),
    peer_calls: Rate::a_second(5),
    peer_registrations: Rate::an_hour(2),
    write_timeout: Duration::from_secs(30),
};

fn table(limits: CallerLimits) -> Arc<ConnectionTable> {
    Arc::new(ConnectionTable::new(limits, Arc::default()))
}

fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], 7))
}

#[test]
fn strangers_make_place_and_known_callers_stay() {
    let (connection_table, now) = (table(LIMITS), Instant::now());
    let enter = |host| connection_table.enter(address(host), now);
    let (known, mut known_ended) = enter(1).expect("it is empty");
    known.admit(now).unwrap();
    let mut unauthenticated: Vec<_> = (2..5).map(|host| enter(host).expect("room")).collect();
    assert_eq!(connection_table.count(), (4, 3));
    assert_eq!(enter(5).err(), Some(Full::ForNow), "those have not been looked at");
    for (connection_guard, _) in &unauthenticated {
        connection_guard.set_slow();
    }
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
fn who_takes_most_makes_place_first_and_known_peers_last() {
    let (connection_table, now) = (table(LIMITS), Instant::now());
    let enter = |host, now| {
        let (connection_guard, ended) = connection_table.enter(address(host), now).expect("room");
        connection_guard.set_slow();
        (connection_guard, ended)
    };
    let is_open =
        |ended: &mut oneshot::Receiver<()>| ended.try_recv() == Err(oneshot::error::TryRecvError::Empty);
    enter(1, now).0.admit(now).unwrap();

    // The oldest is of a peer that is known, the next of one that has fewer than the third.
    let (_known, mut known) = enter(1, now);
    let (_modest, mut modest) = enter(2, now);
    let (_first, mut first) = enter(3, now);
    assert!(is_open(&mut first));
    let (gone, mut second) = enter(3, now);
    assert!(!is_open(&mut modest), "of peers that have as many, the oldest");
    let (going, mut third) = enter(2, now);
    assert!(!is_open(&mut first), "of the peer that has most, the oldest");
    assert!(is_open(&mut known) && is_open(&mut second) && is_open(&mut third));
    drop((gone, going));
    // After an hour without a call it is like any other.
    let later = now + KNOWN_FOR;
    let _others = [enter(4, later), enter(5, later), enter(6, later)];
    assert!(!is_open(&mut known));
}

#[test]
fn a_peer_with_too_many_makes_place_itself() {
    let limits = CallerLimits { unauthenticated: 6, ..LIMITS };
    let (connection_table, now) = (table(limits), Instant::now());
    let (_other, mut other) = connection_table.enter(address(1), now).expect("room");
    let mut own: Vec<_> = (0..4).map(|_| connection_table.enter(address(2), now).expect("room")).collect();
    assert_eq!(connection_table.enter(address(2), now).err(), Some(Full::ForNow));
    own[2].0.set_slow();
    own.push(connection_table.enter(address(2), now).expect("a slow one makes place"));
    let is_open =
        |ended: &mut oneshot::Receiver<()>| ended.try_recv() == Err(oneshot::error::TryRecvError::Empty);
    assert!(is_open(&mut other) && !is_open(&mut own[2].1) && is_open(&mut own[1].1));
}

#[test]
fn answers_without_a_token_leave_one_after_the_other() {
    let (connection_table, now) = (table(LIMITS), Instant::now());
    let [one, same, other] =
        [1, 1, 2].map(|host| connection_table.enter(address(host), now).expect("room").0);
    let in_ms = |guard: &ConnectionGuard, now| guard.slow_down(now).as_millis();
    assert_eq!([in_ms(&one, now), in_ms(&same, now), in_ms(&one, now)], [500, 600, 700]);
    assert_eq!(in_ms(&other, now), 500, "another peer has a turn of its own");
    assert_eq!((0..1_000).map(|_| in_ms(&one, now)).max(), Some(5_000));
    assert_eq!(in_ms(&one, now + Duration::from_mins(1)), 500);
    assert_eq!(connection_table.refused.load(Ordering::Relaxed), 1_005);
}

#[test]
fn a_full_house_stays_as_it_is() {
    let (connection_table, now) = (table(LIMITS), Instant::now());
    let enter = |host| {
        let (connection_guard, ended) = connection_table.enter(address(host), now).expect("room");
        connection_guard.admit(now).unwrap();
        (connection_guard, ended)
    };
    let mut here: Vec<_> = (0..6).map(enter).collect();
    assert_eq!(connection_table.enter(address(9), now).err(), Some(Full::House));
    here.pop();
    connection_table.enter(address(9), now).expect("one has gone");
}

#[test]
fn a_peer_has_its_share_and_no_more() {
    let (connection_table, now) = (table(LIMITS), Instant::now());
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
fn calls_that_need_no_token_have_rates_of_their_own() {
    let (connection_table, now) = (table(LIMITS), Instant::now());
    let enter = || connection_table.enter(address(1), now).expect("room");
    let (known, _known_ended) = enter();
    known.admit(now).unwrap();
    let (first, _first_ended) = enter();
    for _ in 0..3 {
        first.admit_open(now).unwrap();
    }
    assert!(first.admit_open(now).unwrap_err().message().contains("this connection"));
    let (second, mut ended) = enter();
    second.admit_open(now).unwrap();
    second.admit_open(now).unwrap();
    assert!(second.admit_open(now).unwrap_err().message().contains("this address"), "the sixth of all");
    known.admit(now).expect("those with a token lose nothing by it");
    assert_eq!(connection_table.count(), (3, 2));
    connection_table.dismiss(now + LIMITS.first_call);
    assert_eq!(ended.try_recv(), Err(oneshot::error::TryRecvError::Closed), "it is not authenticated");
}

#[test]
fn whoever_is_refused_too_often_is_hung_up_on() {
    let (connection_table, now) = (table(LIMITS), Instant::now());
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
    let limits = CallerLimits { connections: 2, ..LIMITS };
    let (connection_table, now) = (table(limits), Instant::now());
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
