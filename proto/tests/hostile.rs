//! Messages that nobody honest has made: random bytes, and real ones with damage. A fuzzer makes the same checks (`fuzz/`).

#[path = "../../fuzz/src/damage.rs"]
mod damage;
#[path = "../../fuzz/src/wire.rs"]
mod wire;

use std::num::NonZeroU32;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::Counts;
use nqueens_kernel::engine::Kernel;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_model::id::{JobId, LeaseToken, RunId, WorkerId};
use nqueens_model::kernel::{Capability, KernelName};
use nqueens_model::message::{
    EncodedJob, HeldLease, JobResult, Lease, Registration, ResultAck, ReturnedLease, Session, SyncRequest,
    SyncResponse, Verdict, Wanted,
};
use nqueens_model::operator::Submission;
use nqueens_proto::v1;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use prost::Message;

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::with_cases(4_000) })]

    #[test]
    fn whatever_comes_is_judged(bytes in damage::bytes("wire")) {
        wire::check(&bytes);
    }
}

/// Messages of every kind that a program has to read, as the target `wire` takes them.
fn messages() -> Vec<(&'static str, Vec<u8>)> {
    let job = JobId { run: RunId::from_random(0xabc), number: 7 };
    let token = |epoch| LeaseToken { job, epoch: NonZeroU32::new(epoch).expect("not 0"), ticket: u64::MAX };
    let name = |text: &str| text.parse::<KernelName>().expect("a name");
    let registration = Registration {
        instance: *b"12345678abcdefgh",
        name: "west".to_owned(),
        build: "1.0".to_owned(),
        kernels: Kernel::ALL.map(KernelName::from).to_vec(),
        capability: Some(Capability {
            family: name("block-search"),
            device: "x86_64 avx2".to_owned(),
            states_per_s: 14,
        }),
        threads: 16,
    };
    let counts = Counts { count2: 1, count4: 0, count8: u64::MAX >> 1, solutions: 0 };
    let parts = vec![Counts { count8: counts.count8 - 7, ..counts }, Counts::only8(7)];
    let result = JobResult {
        token: token(1),
        counts,
        parts,
        kernel: name("cuda-sm90"),
        states: 10,
        elapsed_us: 11,
        cpu_us: Some(9),
    };
    let sync = SyncRequest {
        session: Session { worker: WorkerId::new(7).expect("in range"), secret: registration.instance },
        results: vec![result; 2],
        held: vec![HeldLease { token: token(2), states: 12 }],
        returned: vec![ReturnedLease { token: token(3), failure: Some("no luck".to_owned()) }],
        wanted: Wanted { states: u64::MAX, jobs: 1_000, job_states_max: 14 },
        leaving: true,
        faults: vec!["an abacus (beads) is left alone from now on: it was lost".to_owned()],
    };
    let leases = PlanKind::ALL.into_iter().chain([PlanKind::Cells]).map(|kind| {
        let plan = Plan::new(BoardSize::new(13).expect("in range"), kind);
        let job = plan.jobs().next().expect("a job");
        let encoded =
            EncodedJob { n: plan.n(), class: job.class(), bound1: job.bound1(), prefixes: job.encode() };
        Lease { token: token(4), job: encoded, states: 13, mirrored: false }
    });
    let ack = ResultAck { token: token(5), verdict: Verdict::Conflict, reason: "they differ".to_owned() };
    let answer = SyncResponse {
        acks: vec![ack],
        leases: leases.collect(),
        revoked: vec![token(6)],
        next_sync_ms: 5_000,
        drain: true,
    };
    let n = BoardSize::new(27).expect("in range");
    let submission = Submission {
        request: registration.instance,
        plan: Plan::with_states_per_job(n, PlanKind::Cells, 1_000),
        priority: -7,
        replicate_ppm: 0,
    };
    vec![
        ("register", [vec![0], v1::RegisterRequest::from(registration).encode_to_vec()].concat()),
        ("sync", [vec![1], v1::SyncRequest::from(sync).encode_to_vec()].concat()),
        ("answer", [vec![2], v1::SyncResponse::from(answer).encode_to_vec()].concat()),
        ("submit", [vec![3], serde_json::to_vec(&submission).expect("JSON")].concat()),
    ]
}

#[test]
fn the_corpus_is_what_is_written_today() {
    let folder = format!("{}/../fuzz/corpus/wire", env!("CARGO_MANIFEST_DIR"));
    for (name, bytes) in messages() {
        let file = format!("{folder}/{name}");
        if std::env::var_os("WRITE_CORPUS").is_some() {
            std::fs::create_dir_all(&folder).expect("a folder");
            std::fs::write(&file, &bytes).expect("a file");
        }
        let written = std::fs::read(&file).expect(&file);
        assert_eq!(written, bytes, "run this test with WRITE_CORPUS=1, and keep {file}");
        wire::check(&bytes);
    }
}
