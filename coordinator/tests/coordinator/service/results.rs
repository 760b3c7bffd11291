//! Results: the first, the second, the late, the wrong.

use nqueens_coordinator::Policy;
use nqueens_kernel::plan::Plan;
use nqueens_model::operator::RunState;
use nqueens_proto::v1::{self, Verdict};
use tonic::Code;

use crate::common::{House, Ledger, falsified, honest, registration, rows_8};

#[tokio::test]
async fn a_result_counts_once_however_often_it_comes() {
    let (ledger, house) = House::fresh().await;
    let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    let (mut one, mut two) = (house.worker(1).await, house.worker(2).await);
    let results: Vec<_> = one.take(2).await.iter().map(honest).collect();
    let [first, second] = &results[..] else { panic!("two leases") };
    assert_eq!(one.report(std::slice::from_ref(first)).await, [Verdict::Accepted]);
    assert_eq!(one.report(std::slice::from_ref(first)).await, [Verdict::Accepted], "the answer got lost");
    // Twice in one message, and once more by another worker.
    assert_eq!(one.report(&[second.clone(), second.clone()]).await, [Verdict::Accepted; 2]);
    assert_eq!(two.report(&results).await, [Verdict::Duplicate; 2], "acknowledged, and not kept");
    assert_eq!(ledger.verdicts().await, ["accepted"; 2]);
    let sums = house.progress(run.id).sums;
    assert_eq!((sums.done, sums.leased, sums.quarantined), (2, 0, 0));
    assert_eq!(sums.accepted.found.count8, u128::from(first.count8 + second.count8));
    assert_eq!(sums.accepted.states, u128::from(first.states + second.states));
    house.end(&ledger).await;
}

/// Whoever counts by an engine that is not known here counts all the same, and the ledger has the engine's name.
#[tokio::test]
async fn engines_of_other_programs_keep_their_names() {
    let (ledger, house) = House::fresh().await;
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
    house.end(&ledger).await;
}

/// One call of results that differ reopened 999 jobs, and took a finished run's total back.
#[tokio::test]
async fn no_call_of_a_worker_takes_back_what_was_accepted_or_finished() {
    let (ledger, house) = House::fresh().await;
    let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    let (mut one, mut two) = (house.worker(1).await, house.worker(2).await);
    let results: Vec<_> = one.take(8).await.iter().map(honest).collect();
    let lies: Vec<_> = results.iter().map(falsified).collect();
    one.report(&results[..7]).await;
    let before = ledger.everything().await;
    assert_eq!(two.report(&lies[..7]).await, [Verdict::Duplicate; 7]);
    assert_eq!(one.report(&lies[..7]).await, [Verdict::Accepted; 7], "it is taken for the same, sent again");
    assert_eq!(ledger.everything().await, before);
    one.report(&results[7..]).await;
    house.wait_for(run.id, |run| run.state == RunState::Done).await;
    let before = ledger.everything().await;
    for worker in [&mut one, &mut two] {
        worker.report(&lies).await;
    }
    assert_eq!(ledger.everything().await, before);
    assert_eq!(house.progress(run.id).state, RunState::Done);
    house.end(&ledger).await;
}

/// A time of 2^63-1 microseconds made a correct run fail `verify` for ever.
#[tokio::test]
async fn absurd_times_and_states_are_refused() {
    let (ledger, house) = House::fresh().await;
    house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    let mut worker = house.worker(1).await;
    let most = i64::MAX as u64;
    let absurd = [
        |right: v1::JobResult| v1::JobResult { elapsed_us: i64::MAX as u64, ..right },
        |right: v1::JobResult| v1::JobResult { cpu_us: Some(i64::MAX as u64), ..right },
        |right: v1::JobResult| v1::JobResult { states: i64::MAX as u64, ..right },
    ];
    for spoil in absurd {
        let lease = worker.take(1).await.remove(0);
        let ack = worker.report_for_reasons(&[spoil(honest(&lease))]).await.remove(0);
        assert_eq!(ack.verdict(), Verdict::Implausible, "{most}: {}", ack.reason);
    }
    assert_eq!(ledger.verdicts().await, Vec::<String>::new());
    assert_eq!(ledger.ask("SELECT refused FROM machine").await, ["3"]);
    house.end(&ledger).await;
}

type Lie = fn(v1::JobResult) -> v1::JobResult;

#[tokio::test]
async fn counts_that_cannot_be_right_put_their_machine_out() {
    let small = Plan::of_cells_with("....\n..#.\n....\n....".parse().unwrap(), 10);
    let absurd: [(Plan, [Lie; 3]); 2] = [
        // More orbits of 8 than the board has; symmetric ones where there are none; both at the limit of the wire.
        (
            rows_8(),
            [
                |honest| v1::JobResult { count8: 12, ..honest },
                |honest| v1::JobResult { count2: 1, ..honest },
                |honest| v1::JobResult { count4: i64::MAX as u64, count8: i64::MAX as u64, ..honest },
            ],
        ),
        // More solutions than there can be; orbits where there are none.
        (
            small,
            [
                |honest| v1::JobResult { solutions: 100, ..honest },
                |honest| v1::JobResult { count8: 1, ..honest },
                |honest| v1::JobResult { count2: 1, ..honest },
            ],
        ),
    ];
    for (plan, absurd) in absurd {
        let (ledger, house) = House::fresh().await;
        house.coordinator.operator().submit(plan, 0).await.unwrap();
        for (number, spoil) in (1..).zip(absurd) {
            let mut worker = house.worker(number).await;
            let wrong = spoil(honest(&worker.take(1).await[0]));
            let ack = worker.report_for_reasons(std::slice::from_ref(&wrong)).await.remove(0);
            assert_eq!(
                (ack.verdict(), &*ack.reason),
                (Verdict::Implausible, "these counts can't be right for the job"),
                "{wrong:?}"
            );
            let refusal = worker.sync(v1::SyncRequest::default()).await.unwrap_err();
            assert_eq!(refusal.code(), Code::PermissionDenied, "it is a proof by itself");
        }
        assert_eq!(ledger.verdicts().await, Vec::<String>::new());
        house.end(&ledger).await;
    }
}

#[tokio::test]
async fn results_of_nothing_that_was_given_out_are_not_kept() {
    let (ledger, house) = House::fresh().await;
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
        v1::LeaseToken { epoch: token.epoch + 1, ..token },
        v1::LeaseToken { epoch: u32::MAX, ..token },
        v1::LeaseToken { ticket: token.ticket ^ 1, ..token },
    ];
    let results = strange.map(|token| v1::JobResult { token: Some(token), ..right.clone() });
    for ack in worker.report_for_reasons(&results).await {
        assert_eq!(ack.verdict(), Verdict::Unknown);
        assert_eq!(ack.reason, "this lease was not given to this credential here");
    }
    assert_eq!(ledger.everything().await, before);
    assert_eq!(ledger.ask("SELECT refused FROM machine").await, ["6"]);
    assert_eq!(worker.report(&[right]).await, [Verdict::Accepted]);
    assert_eq!(house.progress(run.id).sums.done, 1);
    house.end(&ledger).await;
}

#[tokio::test]
async fn late_work_is_not_thrown_away() {
    let ledger = Ledger::new();
    let policy = Policy { lease_ms: 500, ..Policy::default() };
    let house = House::open(&ledger.path, policy).await;
    let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    let mut one = house.worker(1).await;
    let slow = one.take_once(2).await;
    let mut two = house.worker(2).await;
    house.wait_for(run.id, |run| run.sums.leased == 0).await;
    assert_eq!(ledger.ask("SELECT sum(lapses) || ' ' || sum(failures) FROM job").await, ["2 0"]);
    // Nobody has the first again, somebody else the second.
    let hasty = two.take(1).await;
    let same = slow.iter().position(|lease| lease.token.unwrap().job == hasty[0].token.unwrap().job).unwrap();
    assert_eq!(hasty[0].token.unwrap().epoch, slow[same].token.unwrap().epoch + 1);
    let results: Vec<_> = slow.iter().map(honest).collect();
    assert_eq!(one.report(&results).await, [Verdict::Accepted; 2]);
    assert_eq!(one.report(&results).await, [Verdict::Accepted; 2]);
    assert_eq!(two.hold(&hasty).await.0, [hasty[0].token.unwrap()], "its work is done: stop");
    let late = v1::JobResult { token: hasty[0].token, ..results[same].clone() };
    assert_eq!(two.report(&[late]).await, [Verdict::Duplicate]);
    assert_eq!(ledger.verdicts().await, ["accepted"; 2]);
    assert_eq!(house.progress(run.id).sums.done, 2);
    house.end(&ledger).await;
}
