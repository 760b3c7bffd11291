//! Messages that can't be meant so: refused, and nothing changes.

use std::time::Duration;

use nqueens_coordinator::Policy;
use nqueens_model::message::BATCH_MAX;
use nqueens_proto::v1::{self, Verdict};
use nqueens_proto::{MESSAGE_BYTES_MAX, PROTOCOL_VERSION};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;
use tonic_prost::prost::bytes::BufMut;

use super::{nothing, returned};
use crate::common::{ALL, House, falsified, honest, registration, rows_8};

#[tokio::test]
async fn registering_is_checked_and_happens_once() {
    let (ledger, house) = House::fresh().await;
    let mut client = house.client().await;
    for protocol_version in [0, PROTOCOL_VERSION + 1] {
        let stranger = v1::RegisterRequest { protocol_version, ..registration(1) };
        let refusal = client.register(stranger).await.unwrap_err();
        assert_eq!(refusal.code(), Code::FailedPrecondition);
        assert_eq!(
            refusal.message(),
            format!(
                "this coordinator speaks protocol {PROTOCOL_VERSION}, the worker {protocol_version}; \
                 install the same version of nqueens on both"
            )
        );
    }
    for plans in [vec![], vec![0; 32]] {
        let refusal = client.register(v1::RegisterRequest { plans, ..registration(1) }).await.unwrap_err();
        assert_eq!(refusal.code(), Code::FailedPrecondition);
        assert!(refusal.message().contains("split boards into jobs in different ways"), "{refusal:?}");
    }
    let good = || registration(1);
    let capability =
        || v1::Capability { family: "row-masks".into(), device: "abacus".into(), states_per_s: 1 };
    let with = |capability| v1::RegisterRequest { capability: Some(capability), ..good() };
    let malformed = [
        ("instance", v1::RegisterRequest { instance: vec![1; 15], ..good() }),
        ("instance", v1::RegisterRequest { instance: vec![], ..good() }),
        ("name", v1::RegisterRequest { name: "x".repeat(65), ..good() }),
        ("name", v1::RegisterRequest { name: "two\nlines".into(), ..good() }),
        ("name", v1::RegisterRequest { name: String::new(), ..good() }),
        ("name", v1::RegisterRequest { name: " west".into(), ..good() }),
        ("name", v1::RegisterRequest { name: "west\u{200b}".into(), ..good() }),
        ("name", v1::RegisterRequest { name: "\u{202e}tsew".into(), ..good() }),
        ("build", v1::RegisterRequest { build: "x".repeat(65), ..good() }),
        ("build", v1::RegisterRequest { build: "1.0\u{2066}".into(), ..good() }),
        ("kernels", v1::RegisterRequest { kernels: vec![], ..good() }),
        ("kernels", v1::RegisterRequest { kernels: vec!["an abacus".into()], ..good() }),
        ("kernels", v1::RegisterRequest { kernels: vec!["scalar".into(); 65], ..good() }),
        ("threads", v1::RegisterRequest { threads: 0, ..good() }),
        ("threads", v1::RegisterRequest { threads: 4_097, ..good() }),
        ("family", with(v1::Capability { family: "a family".into(), ..capability() })),
        ("device", with(v1::Capability { device: "x".repeat(65), ..capability() })),
        ("device", with(v1::Capability { device: "aba\u{ad}cus".into(), ..capability() })),
        ("states_per_s", with(v1::Capability { states_per_s: 0, ..capability() })),
        ("states_per_s", with(v1::Capability { states_per_s: u64::MAX, ..capability() })),
    ];
    for (field, request) in malformed {
        let refusal = client.register(request).await.unwrap_err();
        assert_eq!(refusal.code(), Code::InvalidArgument, "{refusal:?}");
        assert!(refusal.message().starts_with(&format!("invalid message: {field} ")), "{refusal:?}");
    }
    assert_eq!(ledger.ask("SELECT count(*) FROM worker").await, ["0"]);

    let first = house.worker(1).await.id;
    assert_eq!(house.worker(1).await.id, first, "the same process is the same worker");
    assert_ne!(house.worker(2).await.id, first);
    assert_eq!(ledger.ask("SELECT count(*) FROM worker").await, ["2"]);
    house.close().await;
    let house = House::open(&ledger.path, Policy::default()).await;
    assert_eq!(house.worker(1).await.id, first, "in the coordinator's next life too");
    house.end(&ledger).await;
}

#[tokio::test]
async fn a_worker_that_nobody_knows_is_told_to_register() {
    let (_ledger, house) = House::fresh().await;
    let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    let mut stranger = house.worker(1).await;
    stranger.id = 77;
    let refusal = stranger.sync(v1::SyncRequest { wanted_states: ALL, wanted_jobs: 1, ..nothing() }).await;
    let refusal = refusal.unwrap_err();
    assert_eq!(refusal.code(), Code::NotFound);
    assert_eq!(refusal.message(), "worker 77 is not registered here; register again");
    assert_eq!(house.progress(run.id).sums.leased, 0);
    house.close().await;
}

/// Worker ids ascend, so that anybody can guess them. They are worth nothing without the secret.
#[tokio::test]
async fn nobody_speaks_for_another_worker() {
    let (ledger, house) = House::fresh().await;
    let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    let mut victim = house.worker(1).await;
    let leases = victim.take(3).await;
    let forged: Vec<_> = leases.iter().map(|lease| falsified(&honest(lease))).collect();
    let before = ledger.everything().await;

    let mut attacker = house.worker(2).await;
    assert_ne!(attacker.secret, victim.secret);
    let registered = ledger.everything().await;
    attacker.id = victim.id;
    for (secret, code) in [
        (attacker.secret.clone(), Code::NotFound),
        (vec![0; 16], Code::NotFound),
        (registration(1).instance, Code::NotFound),
        (victim.secret[..8].to_vec(), Code::InvalidArgument),
        (vec![], Code::InvalidArgument),
    ] {
        attacker.secret = secret;
        let theft = v1::SyncRequest {
            results: forged.clone(),
            returned: vec![returned(&leases[0], "")],
            wanted_states: ALL,
            wanted_jobs: 5,
            ..nothing()
        };
        assert_eq!(attacker.sync(theft).await.unwrap_err().code(), code);
    }
    assert_eq!(ledger.everything().await, registered);
    assert!(before.iter().all(|row| registered.contains(row)), "only a worker came");
    assert_eq!(victim.hold(&leases).await, (vec![], vec![]), "it has all its leases");
    assert_eq!(house.progress(run.id).sums.leased, 3);
    // The same process gets the same session again, in another life of the coordinator, too.
    house.close().await;
    let house = House::open(&ledger.path, Policy::default()).await;
    let again = house.worker(1).await;
    assert_eq!((again.id, again.secret), (victim.id, victim.secret));
    house.close().await;
}

/// The coordinator counts as a process that no worker can be.
#[tokio::test]
async fn no_worker_is_the_coordinator() {
    let (ledger, house) = House::fresh().await;
    let own = v1::RegisterRequest { instance: vec![0; 16], ..registration(1) };
    let refusal = house.client().await.register(own).await.unwrap_err();
    assert_eq!(refusal.code(), Code::PermissionDenied);
    assert_eq!(refusal.message(), "no worker's instance may be all zeros; draw 16 random bytes");
    assert_eq!(ledger.ask("SELECT name FROM worker").await, Vec::<String>::new());
    house.close().await;
}

#[tokio::test]
async fn messages_beyond_the_limits_change_nothing() {
    let (ledger, house) = House::fresh().await;
    house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    let mut worker = house.worker(1).await;
    let lease = worker.take(1).await.remove(0);
    let before = ledger.everything().await;
    let (right, token) = (honest(&lease), lease.token.unwrap());
    let held = v1::HeldLease { token: lease.token, states: 0 };
    let many = BATCH_MAX + 1;
    let report = |result: v1::JobResult| v1::SyncRequest { results: vec![result], ..nothing() };
    let all = [right.count2, right.count4, right.count8, right.solutions];
    let of_parts = |parts| report(v1::JobResult { parts, ..right.clone() });
    let with = |token: v1::LeaseToken| report(v1::JobResult { token: Some(token), ..right.clone() });
    let refused = [
        ("results", v1::SyncRequest { results: vec![right.clone(); many], ..nothing() }),
        ("held", v1::SyncRequest { held: vec![held; 10 * BATCH_MAX + 1], ..nothing() }),
        ("returned", v1::SyncRequest { returned: vec![returned(&lease, ""); many], ..nothing() }),
        ("wanted_jobs", v1::SyncRequest { wanted_jobs: 1_001, wanted_states: 1, ..nothing() }),
        ("count2", report(v1::JobResult { count2: 1 << 63, ..right.clone() })),
        ("count4", report(v1::JobResult { count4: 1 << 63, ..right.clone() })),
        ("count8", report(v1::JobResult { count8: u64::MAX, ..right.clone() })),
        ("states", report(v1::JobResult { states: 1 << 63, ..right.clone() })),
        ("elapsed_us", report(v1::JobResult { elapsed_us: 1 << 63, ..right.clone() })),
        ("parts", of_parts(vec![0; 3])),
        ("parts", of_parts(all.to_vec())),
        ("parts", of_parts([all, [0, 0, 1, 0]].concat())),
        ("parts", of_parts([&all[..], &[0; 4 * 64]].concat())),
        ("parts", of_parts([all, [u64::MAX; 4]].concat())),
        ("kernel", report(v1::JobResult { kernel: "an abacus".into(), ..right.clone() })),
        ("token", report(v1::JobResult { token: None, ..right.clone() })),
        ("token.run", with(v1::LeaseToken { run: 0, ..token })),
        ("token.run", with(v1::LeaseToken { run: 1 << 48, ..token })),
        ("token.epoch", with(v1::LeaseToken { epoch: 0, ..token })),
        ("failure", v1::SyncRequest { returned: vec![returned(&lease, &"x".repeat(201))], ..nothing() }),
        ("failure", v1::SyncRequest { returned: vec![returned(&lease, "\u{202e}kcul on")], ..nothing() }),
        ("faults", v1::SyncRequest { faults: vec!["x".to_owned(); 17], ..nothing() }),
        ("faults", v1::SyncRequest { faults: vec!["x".repeat(201)], ..nothing() }),
        ("faults", v1::SyncRequest { faults: vec!["\u{202e}kcul on".to_owned()], ..nothing() }),
        ("faults", v1::SyncRequest { faults: vec![String::new()], ..nothing() }),
    ];
    for (field, mut request) in refused {
        // A right result beside the wrong one is not taken either: the message is refused as a whole.
        if field != "results" {
            request.results.insert(0, right.clone());
        }
        let refusal = worker.sync(request).await.unwrap_err();
        assert_eq!(refusal.code(), Code::InvalidArgument, "{field}: {refusal:?}");
        assert!(refusal.message().starts_with(&format!("invalid message: {field} ")), "{refusal:?}");
    }
    let mut nobody = house.known_worker(&worker).await;
    nobody.id = 0;
    assert_eq!(nobody.sync(nothing()).await.unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(ledger.everything().await, before);
    // At the limits everything is welcome.
    let full = v1::SyncRequest {
        results: vec![right; BATCH_MAX],
        returned: vec![returned(&lease, ""); BATCH_MAX],
        held: vec![held; 10 * BATCH_MAX],
        wanted_jobs: 1_000,
        wanted_states: ALL,
        faults: vec!["x".repeat(200); 16],
        ..nothing()
    };
    let answer = worker.sync(full).await.unwrap();
    assert!(answer.acks.iter().all(|ack| ack.verdict() == Verdict::Accepted));
    assert_eq!((answer.acks.len(), answer.leases.len()), (BATCH_MAX, 7));
    assert_eq!(ledger.verdicts().await, ["accepted"]);
    house.end(&ledger).await;
}

#[tokio::test]
async fn messages_that_are_too_long_or_none_at_all_change_nothing() {
    let (ledger, house) = House::fresh().await;
    house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    let mut worker = house.worker(1).await;
    let lease = worker.take(1).await.remove(0);
    let before = ledger.everything().await;

    let long = "x".repeat(MESSAGE_BYTES_MAX);
    let back = v1::SyncRequest { returned: vec![returned(&lease, &long)], ..nothing() };
    let named = v1::RegisterRequest { name: long, ..registration(2) };
    let refusals =
        [worker.sync(back).await.unwrap_err(), house.client().await.register(named).await.unwrap_err()];
    for refusal in refusals {
        assert_eq!(refusal.code(), Code::OutOfRange, "{refusal:?}");
        assert!(refusal.message().contains("the limit is: 4194304 bytes"), "{refusal:?}");
    }

    // The message of one call under the name of another; and names that are none.
    let paths = [
        ("/nqueens.v1.WorkerService/Sync", Code::InvalidArgument),
        ("/nqueens.v1.WorkerService/Guess", Code::Unimplemented),
        ("/nqueens.v1.Oracle/Guess", Code::Unimplemented),
    ];
    for (path, code) in paths {
        let mut client = tonic::client::Grpc::new(house.channel().await);
        client.ready().await.unwrap();
        let codec = ProstCodec::<v1::RegisterRequest, v1::SyncResponse>::default();
        let request = Request::new(registration(2));
        let refusal = client.unary(request, PathAndQuery::from_static(path), codec).await.unwrap_err();
        assert_eq!(refusal.code(), code, "{path}: {refusal:?}");
    }

    // What is no HTTP/2 at all.
    let mut stranger = tokio::net::TcpStream::connect(house.address()).await.unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\nHost: nobody\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let hung_up = tokio::time::timeout(Duration::from_mins(1), stranger.read_to_end(&mut answer));
    // With an error or without one.
    drop(hung_up.await.expect("it is hung up on"));

    assert_eq!(ledger.everything().await, before);
    assert_eq!(worker.report(&[honest(&lease)]).await, [Verdict::Accepted]);
    house.end(&ledger).await;
}

/// Sends bytes as they are, and leaves answers unread.
#[derive(Default)]
struct Raw;

impl Codec for Raw {
    type Encode = &'static [u8];
    type Decode = ();
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = &'static [u8];
    type Error = Status;

    fn encode(&mut self, bytes: Self::Item, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put_slice(bytes);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = ();
    type Error = Status;

    fn decode(&mut self, _: &mut DecodeBuf<'_>) -> Result<Option<()>, Status> {
        Ok(Some(()))
    }
}

/// Bytes that no message of protobuf begins with, whatever its fields.
const MALFORMED: [&[u8]; 6] = [
    // A tag without an end, one of field 0, and one of a wire type that does not exist.
    &[0xff; 11],
    &[0x00],
    &[0x0f],
    // A group that never ends, one that never began, and 5 bytes that do not come.
    &[0x0b],
    &[0x0c],
    &[0xfa, 0x7f, 0x05],
];

/// The calls of workers.
const CALLS: [&str; 2] = ["WorkerService/Register", "WorkerService/Sync"];

#[tokio::test]
async fn bytes_that_are_no_message_are_their_sender_s_mistake() {
    let (ledger, house) = House::fresh().await;
    let before = ledger.everything().await;
    for call in CALLS {
        for bytes in MALFORMED {
            let mut client = tonic::client::Grpc::new(house.channel().await);
            client.ready().await.unwrap();
            let path = PathAndQuery::try_from(format!("/nqueens.v1.{call}")).unwrap();
            let refusal = client.unary(Request::new(bytes), path, Raw).await.unwrap_err();
            assert_eq!(refusal.code(), Code::InvalidArgument, "{call}, {bytes:x?}: {refusal:?}");
            assert!(refusal.message().starts_with("failed to decode Protobuf message: "), "{refusal:?}");
        }
    }
    assert_eq!(ledger.everything().await, before);
    house.close().await;
}
