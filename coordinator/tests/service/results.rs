//! Results: the first, the second, the late, the wrong.

use nqueens_coordinator::Policy;
use nqueens_model::operator::RunState;
use nqueens_proto::v1::{self, Verdict};

use crate::common::{House, Ledger, falsified, honest, registration, rows_8};

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
    assert_eq!(sums.accepted.found.count8, u128::from(first.count8 + second.count8));
    assert_eq!(sums.accepted.states, u128::from(first.states + second.states));
    house.close().await;
    ledger.audit().await;
}

/// Whoever counts by an engine that is not known here counts all the same, and the ledger has the engine's name.
#[tokio::test]
async fn engines_of_other_programs_keep_their_names() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy::default()).await;
    let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    let device = "NVIDIA H200".to_owned();
    let capability = v1::Capability { family: "dancing-links".to_owned(), device, states_per_s: 1 << 40 };
    let kernels = ["cuda-sm90", "scalar"].map(str::to_owned).to_vec();
    let foreign = v1::RegisterRequest { kernels, capability: Some(capability), ..registration(1) };
    let mut worker = house.register(foreign).await;
    let named = |lease| v1::JobResult { kernel: "cuda-sm90".to_owned(), ..honest(lease) };
    let results: Vec<_> = worker.take(4).await.iter().map(named).collect();
    assert_eq!(worker.report(&results).await, [Verdict::Accepted; 4]);
    house.close().await;
    // The next life of the coordinator reads all that, and the rest is counted by another.
    let house = House::open(&ledger.path, Policy::default()).await;
    house.worker(2).await.count_all().await;
    house.wait_for(run.id, |run| run.state == RunState::Done).await;
    let workers = "SELECT json_array(kernels, family, device, states_per_s) FROM worker ORDER BY id";
    let foreign = format!(r#"["cuda-sm90,scalar","dancing-links","NVIDIA H200",{}]"#, 1_u64 << 40);
    assert_eq!(ledger.ask(workers).await, [foreign.as_str(), r#"["reference",null,null,null]"#]);
    let kernels = ledger.ask("SELECT kernel || ' ' || count(*) FROM result GROUP BY kernel").await;
    assert_eq!(kernels, ["cuda-sm90 4", "reference 4"]);
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
    assert_eq!(sums.accepted.found.count8, 11 - u128::from(results[0].count8));
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
    assert_eq!(worker.take(8).await, [], "its machine rests");
    let rest = house.worker(2).await.take(8).await;
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
