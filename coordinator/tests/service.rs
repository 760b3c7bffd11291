//! A coordinator from the outside: workers over real sockets, the ledger by plain SQL on its file.

mod common;

use common::{ALL, House, Ledger, board, falsified, honest, registration, rows_8};
use nqueens_coordinator::dispatch::{Policy, RunState};
use nqueens_coordinator::{Checked, Coordinator, Error, Pace};
use nqueens_kernel::known::published;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_proto::v1::{self, Verdict};
use nqueens_proto::{BATCH_MAX, PROTOCOL_VERSION};
use sqlx::{Connection, Executor};
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

fn ids(leases: &[v1::Lease]) -> Vec<Option<v1::LeaseToken>> {
    leases.iter().map(|lease| lease.token).collect()
}

fn returned(lease: &v1::Lease, failure: &str) -> v1::ReturnedLease {
    v1::ReturnedLease { token: lease.token, failure: failure.to_owned() }
}

fn nothing() -> v1::SyncRequest {
    v1::SyncRequest::default()
}

#[tokio::test]
async fn registering_is_checked_and_happens_once() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy::default()).await;
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
    let good = || registration(1);
    let malformed = [
        ("instance", v1::RegisterRequest { instance: vec![1; 15], ..good() }),
        ("instance", v1::RegisterRequest { instance: vec![], ..good() }),
        ("name", v1::RegisterRequest { name: "x".repeat(65), ..good() }),
        ("name", v1::RegisterRequest { name: "two\nlines".into(), ..good() }),
        ("build", v1::RegisterRequest { build: "x".repeat(65), ..good() }),
        ("kernels", v1::RegisterRequest { kernels: vec![], ..good() }),
        ("kernels", v1::RegisterRequest { kernels: vec!["abacus".into()], ..good() }),
        ("kernels", v1::RegisterRequest { kernels: vec!["scalar".into(); 65], ..good() }),
        ("threads", v1::RegisterRequest { threads: 0, ..good() }),
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
    house.close().await;
    ledger.audit().await;
}

#[tokio::test]
async fn a_worker_that_nobody_knows_is_told_to_register() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy::default()).await;
    let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    let mut stranger = house.known_worker(77).await;
    let refusal = stranger.sync(v1::SyncRequest { wanted_states: ALL, wanted_jobs: 1, ..nothing() }).await;
    let refusal = refusal.unwrap_err();
    assert_eq!(refusal.code(), Code::NotFound);
    assert_eq!(refusal.message(), "worker 77 is not registered here; register again");
    assert_eq!(house.progress(run.id).sums.leased, 0);
    house.close().await;
}

#[tokio::test]
async fn leases_that_got_lost_are_sent_again_and_others_are_not() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy::default()).await;
    let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    let (mut one, mut two) = (house.worker(1).await, house.worker(2).await);
    let leases = one.take(3).await;
    assert_eq!(leases.len(), 3);
    assert!(leases.iter().all(|lease| lease.n == 8 && lease.token.unwrap().epoch == 1));
    // It got none of the answers, and asks again: the very same.
    let sync = v1::SyncRequest { wanted_states: ALL, wanted_jobs: 3, ..nothing() };
    let v1::SyncResponse { leases: again, next_sync_ms, .. } = one.sync(sync).await.unwrap();
    assert_eq!(next_sync_ms, 1_234);
    let by_job = |leases: &[v1::Lease]| {
        let mut leases = leases.to_vec();
        leases.sort_by_key(|lease| lease.token.unwrap().job);
        leases
    };
    assert_eq!(by_job(&again), by_job(&leases));
    // It lost one of the three only.
    let (revoked, sent) = one.hold(&leases[1..]).await;
    assert_eq!((revoked, sent), (vec![], vec![leases[0].clone()]));
    // The other gets what is left, the small wish at least one job.
    let small = v1::SyncRequest { wanted_states: 1, wanted_jobs: 1_000, ..nothing() };
    let first = two.sync(small).await.unwrap().leases;
    assert_eq!(first.len(), 1);
    let rest = two.take_more(&first, 1_000).await;
    assert_eq!(rest.len(), 4);
    let mut all: Vec<_> =
        [&leases, &first, &rest].into_iter().flatten().map(|l| l.token.unwrap().job).collect();
    all.sort_unstable();
    assert_eq!(all, (0..8).collect::<Vec<_>>(), "every job once");
    // Nobody holds another's leases, and nobody gives them back.
    let (revoked, _) = one.hold(&first).await;
    assert_eq!(revoked.into_iter().map(Some).collect::<Vec<_>>(), ids(&first));
    let theft = v1::SyncRequest { returned: vec![returned(&first[0], "")], ..nothing() };
    one.sync(theft).await.unwrap();
    assert_eq!(two.hold(&first).await.0, vec![]);
    assert_eq!(house.progress(run.id).sums.leased, 8);
    house.close().await;
    ledger.audit().await;
}

#[tokio::test]
async fn leases_come_back_and_leave_again_under_a_new_epoch() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy::default()).await;
    let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    let (mut one, mut two) = (house.worker(1).await, house.worker(2).await);
    let leases = one.take(2).await;
    let back = vec![returned(&leases[0], ""), returned(&leases[1], "panicked: out of luck")];
    one.sync(v1::SyncRequest { returned: back.clone(), ..nothing() }).await.unwrap();
    assert_eq!(house.progress(run.id).sums.leased, 0);
    let again = two.take(2).await;
    let key = |lease: &v1::Lease| (lease.token.unwrap().job, lease.token.unwrap().epoch);
    let expected: Vec<_> = leases.iter().map(|lease| (key(lease).0, 2)).collect();
    assert_eq!(again.iter().map(key).collect::<Vec<_>>(), expected, "what came back leaves first");
    // The old tokens are worth nothing: neither to give back, nor to hold.
    one.sync(v1::SyncRequest { returned: back, ..nothing() }).await.unwrap();
    assert_eq!(one.hold(&leases).await.0.into_iter().map(Some).collect::<Vec<_>>(), ids(&leases));
    assert_eq!(two.hold(&again).await.0, vec![]);
    let failures = "SELECT sum(failures) || ' ' || sum(lapses) || ' ' || sum(epoch) FROM job";
    assert_eq!(ledger.ask(failures).await, ["1 0 4"], "giving back costs nothing, failing one attempt");
    house.close().await;
    ledger.audit().await;
}

#[tokio::test]
async fn a_result_counts_once_however_often_it_comes() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy::default()).await;
    let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    let (mut one, mut two) = (house.worker(1).await, house.worker(2).await);
    let results: Vec<_> = one.take(2).await.iter().map(honest).collect();
    let [first, second] = &results[..] else { panic!("two leases") };
    assert_eq!(one.report(std::slice::from_ref(first)).await, [Verdict::Accepted]);
    assert_eq!(one.report(std::slice::from_ref(first)).await, [Verdict::Accepted], "the answer got lost");
    // Twice in one message, and once more by another worker.
    assert_eq!(one.report(&[second.clone(), second.clone()]).await, [Verdict::Accepted; 2]);
    assert_eq!(ledger.verdicts().await, ["accepted"; 2]);
    assert_eq!(two.report(&results).await, [Verdict::Duplicate; 2]);
    assert_eq!(ledger.verdicts().await, ["accepted", "accepted", "duplicate", "duplicate"]);
    let sums = house.progress(run.id).sums;
    assert_eq!((sums.done, sums.leased, sums.quarantined), (2, 0, 0));
    assert_eq!(sums.found.count8, u128::from(first.count8 + second.count8));
    assert_eq!(sums.states, u128::from(first.states + second.states));
    house.close().await;
    ledger.audit().await;
}

#[tokio::test]
async fn results_that_disagree_quarantine_the_job_and_leave_no_total() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy::default()).await;
    let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    let (mut one, mut two) = (house.worker(1).await, house.worker(2).await);
    let leases = one.take(8).await;
    let results: Vec<_> = leases.iter().map(honest).collect();
    assert_eq!(one.report(&results[..7]).await, [Verdict::Accepted; 7]);
    let other = falsified(&results[0]);
    let ack = two.report_for_reasons(std::slice::from_ref(&other)).await.remove(0);
    assert_eq!(ack.verdict(), Verdict::Conflict);
    for part in [
        format!("worker {} counted", one.id),
        format!("worker {} with reference counted", two.id),
        format!("count8: {}", results[0].count8),
        format!("count8: {}", other.count8),
    ] {
        assert!(ack.reason.contains(&part), "{part} in {}", ack.reason);
    }
    assert_eq!(one.report(&results[7..]).await, [Verdict::Accepted]);
    // More of either kind is kept and settles nothing.
    assert_eq!(two.report(&results[..1]).await, [Verdict::Duplicate]);
    let sums = house.progress(run.id).sums;
    assert_eq!((sums.done, sums.leased, sums.quarantined), (7, 0, 1));
    assert_eq!(sums.found.count8, 11 - u128::from(results[0].count8));
    let kept = "SELECT worker || ' ' || count8 || ' ' || verdict FROM result WHERE job = ";
    let expected = [
        format!("{} {} accepted", one.id, results[0].count8),
        format!("{} {} conflict", two.id, other.count8),
        format!("{} {} duplicate", two.id, results[0].count8),
    ];
    let job = leases[0].token.unwrap().job;
    assert_eq!(ledger.ask(&format!("{kept}{job} ORDER BY id")).await, expected);
    house.close().await;

    let house = House::open(&ledger.path, Policy::default()).await;
    let progress = house.progress(run.id);
    assert_eq!((progress.state, progress.sums), (RunState::Active, sums), "a restart settles nothing either");
    assert_eq!(house.worker(1).await.take(1).await, [], "a job in quarantine is not handed out");
    assert_eq!(house.coordinator.operator().reader().run(run.id).await.unwrap().outcome, None);
    house.close().await;
    ledger.audit().await;
}

#[tokio::test]
async fn a_total_is_withdrawn_when_a_late_result_disagrees() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy::default()).await;
    let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    let mut one = house.worker(1).await;
    let results: Vec<_> = one.take(8).await.iter().map(honest).collect();
    one.report(&results).await;
    house.wait_for(run.id, |run| run.state == RunState::Done).await;
    assert_eq!(ledger.ask("SELECT state || ' ' || total FROM run").await, ["done 92"]);
    let mut two = house.worker(2).await;
    assert_eq!(two.report(&[falsified(&results[3])]).await, [Verdict::Conflict]);
    assert_eq!(house.progress(run.id).state, RunState::Active);
    assert_eq!(ledger.ask("SELECT state || ' ' || coalesce(total, 'none') FROM run").await, ["active none"]);
    house.close().await;
    let house = House::open(&ledger.path, Policy::default()).await;
    assert_eq!(house.progress(run.id).state, RunState::Active);
    house.close().await;
    ledger.audit().await;
}

#[tokio::test]
async fn counts_that_cannot_be_right_fail_the_attempt() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy::default()).await;
    let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    let mut worker = house.worker(1).await;
    let mut seen = Vec::new();
    let absurd = [
        // More orbits of 8 than the board has; symmetric ones where there are none; both at the limit of the wire.
        |honest: v1::JobResult| v1::JobResult { count8: 12, ..honest },
        |honest: v1::JobResult| v1::JobResult { count2: 1, ..honest },
        |honest: v1::JobResult| v1::JobResult { count4: i64::MAX as u64, count8: i64::MAX as u64, ..honest },
    ];
    for (attempt, spoil) in absurd.into_iter().enumerate() {
        let leases = worker.take(1).await;
        let token = leases[0].token.unwrap();
        seen.push(token.job);
        assert_eq!(token.epoch as usize, attempt + 1);
        let ack = worker.report_for_reasons(&[spoil(honest(&leases[0]))]).await.remove(0);
        assert_eq!(ack.verdict(), Verdict::Implausible);
        assert_eq!(ack.reason, "these counts can't be right for the job");
        // Sent again, for the answer got lost: it is one failed attempt all the same.
        assert_eq!(worker.report(&[spoil(honest(&leases[0]))]).await.len(), 1);
        let quarantined = u32::from(attempt == 2);
        let sums = house.progress(run.id).sums;
        assert_eq!((sums.done, sums.leased, sums.quarantined), (0, 0, quarantined), "attempt {attempt}");
    }
    assert!(seen.iter().all(|job| *job == seen[0]), "a job that came back leaves first: {seen:?}");
    let stored = format!("SELECT state || ' ' || failures FROM job WHERE number = {}", seen[0]);
    assert_eq!(ledger.ask(&stored).await, ["3 3"]);
    // The right counts come too late: they are kept, and somebody has to look.
    let rest = worker.take(8).await;
    assert_eq!(rest.len(), 7);
    let mut late = honest(&rest[0]);
    late.token.as_mut().unwrap().job = seen[0];
    late.token.as_mut().unwrap().epoch = 1;
    assert_eq!(worker.report(&[late]).await, [Verdict::SetAside]);
    house.close().await;
    ledger.audit().await;
}

#[tokio::test]
async fn results_of_nothing_that_was_given_out_are_not_kept() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy::default()).await;
    let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    let mut worker = house.worker(1).await;
    let lease = worker.take(1).await.remove(0);
    let before = ledger.everything().await;
    let right = honest(&lease);
    let token = lease.token.unwrap();
    let strange = [
        v1::LeaseToken { run: token.run ^ 1, ..token },
        v1::LeaseToken { job: 8, ..token },
        v1::LeaseToken { job: u32::MAX, ..token },
        v1::LeaseToken { epoch: 2, ..token },
        v1::LeaseToken { epoch: u32::MAX, ..token },
    ];
    let results = strange.map(|token| v1::JobResult { token: Some(token), ..right.clone() });
    for ack in worker.report_for_reasons(&results).await {
        assert_eq!(ack.verdict(), Verdict::Unknown);
        assert!(["no such run or job here", "this lease was never given out"].contains(&&*ack.reason));
    }
    assert_eq!(ledger.everything().await, before);
    assert_eq!(worker.report(&[right]).await, [Verdict::Accepted]);
    assert_eq!(house.progress(run.id).sums.done, 1);
    house.close().await;
    ledger.audit().await;
}

#[tokio::test]
async fn late_work_is_not_thrown_away() {
    let ledger = Ledger::new();
    let policy = Policy { lease_ms: 1, ..Policy::default() };
    let house = House::open(&ledger.path, policy).await;
    let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    let (mut one, mut two) = (house.worker(1).await, house.worker(2).await);
    let slow = one.take(2).await;
    house.wait_for(run.id, |run| run.sums.leased == 0).await;
    assert_eq!(ledger.ask("SELECT sum(lapses) || ' ' || sum(failures) FROM job").await, ["2 0"]);
    // Nobody has the first again, somebody else the second.
    let hasty = two.take(1).await;
    let same = slow.iter().position(|lease| lease.token.unwrap().job == hasty[0].token.unwrap().job).unwrap();
    assert_eq!(hasty[0].token.unwrap().epoch, 2);
    let results: Vec<_> = slow.iter().map(honest).collect();
    assert_eq!(one.report(&results).await, [Verdict::Accepted; 2]);
    assert_eq!(one.report(&results).await, [Verdict::Accepted; 2]);
    assert_eq!(two.hold(&hasty).await.0, [hasty[0].token.unwrap()], "its work is done: stop");
    let late = v1::JobResult { token: hasty[0].token, ..results[same].clone() };
    assert_eq!(two.report(&[late]).await, [Verdict::Duplicate]);
    assert_eq!(ledger.verdicts().await, ["accepted", "accepted", "duplicate"]);
    assert_eq!(house.progress(run.id).sums.done, 2);
    house.close().await;
    ledger.audit().await;
}

#[tokio::test]
async fn an_ended_lease_is_revived_by_its_holder_and_fenced_from_others() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy { lease_ms: 1, ..Policy::default() }).await;
    let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    let (mut one, mut two) = (house.worker(1).await, house.worker(2).await);
    let leases = one.take(8).await;
    house.wait_for(run.id, |run| run.sums.leased == 0).await;
    let other = two.take(1).await;
    let (revoked, again) = one.hold(&leases).await;
    let taken = other[0].token.unwrap().job;
    assert_eq!(revoked.iter().map(|token| token.job).collect::<Vec<_>>(), [taken]);
    assert_eq!(again, []);
    // What it goes on with is finished under the lease that it had.
    let results: Vec<_> = leases.iter().filter(|l| l.token.unwrap().job != taken).map(honest).collect();
    assert_eq!(one.report(&results).await, [Verdict::Accepted; 7]);
    assert_eq!(ledger.ask("SELECT max(epoch) FROM result").await, ["1"]);
    house.close().await;
    ledger.audit().await;
}

#[tokio::test]
async fn messages_beyond_the_limits_change_nothing() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy::default()).await;
    house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    let mut worker = house.worker(1).await;
    let lease = worker.take(1).await.remove(0);
    let before = ledger.everything().await;
    let (right, token) = (honest(&lease), lease.token.unwrap());
    let held = v1::HeldLease { token: lease.token, states: 0 };
    let many = BATCH_MAX + 1;
    let report = |result: v1::JobResult| v1::SyncRequest { results: vec![result], ..nothing() };
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
        ("kernel", report(v1::JobResult { kernel: "abacus".into(), ..right.clone() })),
        ("token", report(v1::JobResult { token: None, ..right.clone() })),
        ("token.run", with(v1::LeaseToken { run: 0, ..token })),
        ("token.run", with(v1::LeaseToken { run: 1 << 48, ..token })),
        ("token.epoch", with(v1::LeaseToken { epoch: 0, ..token })),
        ("token.incarnation", with(v1::LeaseToken { incarnation: 0, ..token })),
        ("token.incarnation", with(v1::LeaseToken { incarnation: 1 << 63, ..token })),
        ("failure", v1::SyncRequest { returned: vec![returned(&lease, &"x".repeat(201))], ..nothing() }),
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
    house.known_worker(0).await.sync(nothing()).await.unwrap_err();
    assert_eq!(ledger.everything().await, before);
    // At the limits everything is welcome.
    let full = v1::SyncRequest {
        results: vec![right; BATCH_MAX],
        returned: vec![returned(&lease, ""); BATCH_MAX],
        held: vec![held; 10 * BATCH_MAX],
        wanted_jobs: 1_000,
        wanted_states: ALL,
        ..nothing()
    };
    let answer = worker.sync(full).await.unwrap();
    assert!(answer.acks.iter().all(|ack| ack.verdict() == Verdict::Accepted));
    assert_eq!((answer.acks.len(), answer.leases.len()), (BATCH_MAX, 7));
    assert_eq!(ledger.verdicts().await, ["accepted"]);
    house.close().await;
    ledger.audit().await;
}

#[tokio::test]
async fn a_run_driven_to_its_end_has_the_published_total() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy::default()).await;
    let (rows, border) = (rows_8(), Plan::with_states_per_job(board(8), PlanKind::Border, 20));
    for plan in [rows, border] {
        let run = house.coordinator.operator().submit(plan, 0).await.unwrap();
        assert_eq!((run.jobs as usize, run.fingerprint), (plan.jobs().count(), plan.fingerprint()));
        house.worker(1).await.count_all().await;
        house.wait_for(run.id, |run| run.state == RunState::Done).await;
        let row = house.coordinator.operator().reader().run(run.id).await.unwrap();
        let outcome = row.outcome.unwrap();
        assert_eq!((outcome.total, outcome.checked), (92, Checked::Published));
        assert_eq!(outcome.totals, published(board(8)).unwrap().orbits);
        assert!(row.finished_at.unwrap() >= row.created_at);
    }
    house.close().await;
    ledger.audit().await;
}

#[tokio::test]
async fn several_runs_and_workers_share_a_coordinator() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy::default()).await;
    let mut runs = Vec::new();
    // The small boards have no job at all.
    for (n, states) in [(7, 10), (9, 100), (10, 300), (1, 1), (3, 1)] {
        for kind in PlanKind::ALL {
            let plan = Plan::with_states_per_job(board(n), kind, states);
            runs.push(house.coordinator.operator().submit(plan, 0).await.unwrap());
        }
    }
    let mut workers = Vec::new();
    for number in 1..=6 {
        let mut worker = house.worker(number).await;
        workers.push(tokio::spawn(async move { worker.count_all().await }));
    }
    for worker in workers {
        worker.await.unwrap();
    }
    for run in &runs {
        house.wait_for(run.id, |run| run.state == RunState::Done).await;
        let row = house.coordinator.operator().reader().run(run.id).await.unwrap();
        assert_eq!(row.outcome.unwrap().total, published(run.plan.n()).unwrap().total, "{:?}", run.plan);
    }
    assert_eq!(house.coordinator.operator().reader().runs().await.unwrap().len(), runs.len());
    let verdicts = ledger.verdicts().await;
    let jobs: u32 = runs.iter().map(|run| run.jobs).sum();
    assert_eq!(verdicts.len(), jobs as usize, "nothing is counted twice where nothing goes wrong");
    house.close().await;
    ledger.audit().await;
}

#[tokio::test]
async fn a_plausible_lie_leaves_a_run_without_a_total() {
    type Lie = fn(&mut v1::JobResult);
    let lies: [(&str, Lie); 2] = [
        ("the total 84 differs from the published count 92", |result| result.count8 -= 1),
        (
            "COUNT2 = 0 and COUNT4 = 0 differ from the separately counted symmetric solutions, 0 and 1",
            |result| result.count4 -= 1,
        ),
    ];
    for (reason, lie) in lies {
        let ledger = Ledger::new();
        let house = House::open(&ledger.path, Policy::default()).await;
        let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
        let mut worker = house.worker(1).await;
        let mut results: Vec<_> = worker.take(8).await.iter().map(honest).collect();
        // The edge class has both kinds of orbits in one of its jobs.
        let victim = results.iter_mut().find(|result| result.count4 > 0 && result.count8 > 0).unwrap();
        lie(victim);
        assert_eq!(worker.report(&results).await, [Verdict::Accepted; 8]);
        house.wait_for(run.id, |run| run.state == RunState::Failed).await;
        house.close().await;

        let house = House::open(&ledger.path, Policy::default()).await;
        let row = house.coordinator.operator().reader().run(run.id).await.unwrap();
        assert_eq!((row.state, row.reason.as_deref(), row.outcome), (RunState::Failed, Some(reason), None));
        assert_eq!(house.worker(1).await.take(8).await, []);
        house.close().await;
        ledger.audit().await;
    }
}

#[tokio::test]
async fn a_run_is_added_up_from_what_the_disk_has_not_from_memory() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy::default()).await;
    let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    let mut worker = house.worker(1).await;
    let leases = worker.take(8).await;
    let results: Vec<_> = leases.iter().map(honest).collect();
    worker.report(&results[1..]).await;
    // Somebody exchanges a job for another: the sum fits, the plan does not.
    let job = leases.iter().find(|lease| lease.class == "corner").unwrap().token.unwrap().job;
    let mut connection = ledger.connect().await;
    let update =
        format!("UPDATE job SET bound1 = 1, class = 'edge', prefixes = x'0101' WHERE number = {job}");
    connection.execute(sqlx::AssertSqlSafe(update)).await.unwrap();
    connection.close().await.unwrap();
    worker.report(&results[..1]).await;
    house.wait_for(run.id, |run| run.state == RunState::Failed).await;
    let reason = house.coordinator.operator().reader().run(run.id).await.unwrap().reason.unwrap();
    assert_eq!(reason, "the 8 stored jobs are not the plan that the run began with");
    house.close().await;
}

#[tokio::test]
async fn everything_acknowledged_outlives_the_coordinator() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy::default()).await;
    let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    let (mut one, mut two) = (house.worker(1).await, house.worker(2).await);
    let leases = one.take(5).await;
    let results: Vec<_> = leases.iter().map(honest).collect();
    one.report(&results[..3]).await;
    two.report(&[falsified(&results[0])]).await;
    one.sync(v1::SyncRequest { returned: vec![returned(&leases[3], "no luck")], ..nothing() }).await.unwrap();
    let (before, progress) = (ledger.everything().await, house.progress(run.id));
    house.close().await;
    assert_eq!(ledger.everything().await, before, "closing stores nothing that was not stored");
    let house = House::open(&ledger.path, Policy::default()).await;
    assert_eq!(ledger.everything().await, before, "opening changes nothing");
    let after = house.progress(run.id);
    assert_eq!((after.state, after.sums), (progress.state, progress.sums));
    let sums = after.sums;
    assert_eq!((sums.done, sums.leased, sums.quarantined), (2, 1, 1));
    house.close().await;
    ledger.audit().await;
}

#[tokio::test]
async fn workers_go_on_over_a_restart_with_the_leases_they_have() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy::default()).await;
    let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    let mut worker = house.worker(1).await;
    let (id, leases) = (worker.id, worker.take(6).await);
    let results: Vec<_> = leases.iter().map(honest).collect();
    house.close().await;

    // Second life: it knows the worker, and the leases are good.
    let house = House::open(&ledger.path, Policy::default()).await;
    let mut worker = house.known_worker(id).await;
    assert_eq!(worker.hold(&leases).await, (vec![], vec![]));
    assert_eq!(worker.report(&results[..2]).await, [Verdict::Accepted; 2]);
    let others = house.worker(2).await.take(8).await;
    assert_eq!(others.len(), 2, "what is leased is not handed out again");
    assert!(
        others.iter().all(|lease| lease.token.unwrap().incarnation != leases[0].token.unwrap().incarnation)
    );
    house.close().await;

    // Third life, without grace: the leases end, the work under them is welcome all the same.
    let house = House::open(&ledger.path, Policy { grace_ms: 0, ..Policy::default() }).await;
    house.wait_for(run.id, |run| run.sums.leased == 0).await;
    let mut worker = house.known_worker(id).await;
    assert_eq!(worker.report(&results[..1]).await, [Verdict::Accepted], "acknowledged in an earlier life");
    assert_eq!(worker.report(&results[2..4]).await, [Verdict::Accepted; 2]);
    let held = worker.hold(&leases[4..]).await;
    assert_eq!(
        held.0.into_iter().map(Some).collect::<Vec<_>>(),
        ids(&leases[4..]),
        "an old life's, and over"
    );
    house.worker(2).await.count_all().await;
    house.wait_for(run.id, |run| run.state == RunState::Done).await;
    assert_eq!(worker.report(&results[4..]).await, [Verdict::Duplicate; 2]);
    assert_eq!(ledger.ask("SELECT total FROM run").await, ["92"]);
    assert_eq!(ledger.ask("SELECT count(*) FROM coordinator").await, ["3"]);
    house.close().await;
    ledger.audit().await;
}

#[tokio::test]
async fn a_transaction_that_fails_leaves_nothing_and_the_next_goes_through() {
    // ROLLBACK is what SQLite does on a full disk: it ends the transaction under the writer's feet.
    for way in ["ABORT", "ROLLBACK", "FAIL"] {
        let ledger = Ledger::new();
        let house = House::open(&ledger.path, Policy::default()).await;
        let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
        let mut worker = house.worker(1).await;
        let leases = worker.take(2).await;
        let results: Vec<_> = leases.iter().map(honest).collect();
        let before = ledger.everything().await;
        let mut connection = ledger.connect().await;
        let trap = format!(
            "CREATE TRIGGER trap BEFORE INSERT ON result BEGIN SELECT RAISE({way}, 'no luck today'); END"
        );
        connection.execute(sqlx::AssertSqlSafe(trap)).await.unwrap();
        for _ in 0..2 {
            let sync = v1::SyncRequest { results: results.clone(), ..nothing() };
            let refusal = worker.sync(sync).await.unwrap_err();
            assert_eq!(refusal.code(), Code::Unavailable, "the worker keeps them and comes again");
            assert!(refusal.message().contains("no luck today"), "{refusal:?}");
        }
        assert_eq!(house.progress(run.id).sums.leased, 2);
        let fault = house.coordinator.faults().borrow().clone().unwrap();
        assert!(fault.to_string().contains("no luck today"), "{fault}");
        connection.execute("DROP TRIGGER trap").await.unwrap();
        connection.close().await.unwrap();
        assert_eq!(ledger.everything().await, before);
        assert_eq!(worker.hold(&leases).await, (vec![], vec![]), "the leases are what they were");
        assert_eq!(worker.report(&results).await, [Verdict::Accepted; 2]);
        worker.count_all().await;
        house.wait_for(run.id, |run| run.state == RunState::Done).await;
        house.close().await;
        ledger.audit().await;
    }
}

#[tokio::test]
async fn a_plan_cut_short_leaves_no_trace() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy::default()).await;
    let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    house.close().await;
    let mut connection = ledger.connect().await;
    let unplanned = "INSERT INTO run (id, n, plan, states_per_job, seed, state, created_at)
                         VALUES (5, 9, 'rows', 1, 1, 'planning', 1);
                     INSERT INTO job (run, number, class, bound1, prefixes, states, count2_max, count4_max, count8_max)
                         VALUES (5, 0, 'edge', 1, x'0101', 1, 0, 0, 0)";
    connection.execute(unplanned).await.unwrap();
    connection.close().await.unwrap();
    let house = House::open(&ledger.path, Policy::default()).await;
    let runs = house.coordinator.operator().reader().runs().await.unwrap();
    assert_eq!(runs.iter().map(|run| run.id).collect::<Vec<_>>(), [run.id]);
    assert_eq!(ledger.ask("SELECT count(*) FROM job WHERE run = 5").await, ["0"]);
    house.close().await;
    ledger.audit().await;
}

#[tokio::test]
async fn one_coordinator_a_database() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy::default()).await;
    let second = Coordinator::open(&ledger.path, Pace::default(), "test 1.0").await;
    assert!(matches!(second.err(), Some(Error::InUse(path)) if path == ledger.path));
    // The first goes on.
    let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    house.worker(1).await.count_all().await;
    house.wait_for(run.id, |run| run.state == RunState::Done).await;
    house.close().await;
    Coordinator::open(&ledger.path, Pace::default(), "test 1.0").await.unwrap().close().await;
    ledger.audit().await;
}

#[tokio::test]
async fn the_health_service_says_serving() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy::default()).await;
    let mut health = HealthClient::new(house.channel().await);
    for service in ["", "nqueens.v1.WorkerService"] {
        let request = HealthCheckRequest { service: service.to_owned() };
        let status = health.check(request).await.unwrap().into_inner().status();
        assert_eq!(status, ServingStatus::Serving, "{service}");
    }
    let stranger = HealthCheckRequest { service: "nqueens.v1.Other".to_owned() };
    assert_eq!(health.check(stranger).await.unwrap_err().code(), Code::NotFound);
    house.close().await;
}
