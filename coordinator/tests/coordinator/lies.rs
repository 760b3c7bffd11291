//! Workers that are wrong, by accident or on purpose, among honest ones: the run gets its exact total, and the wrong
//! workers get no more jobs.

use std::collections::HashMap;

use crate::common::{ALL, House, Ledger, Worker, board, falsified, honest, registration, rows_8};
use nqueens_coordinator::Policy;
use nqueens_coordinator::request::{self, Request, Requeue};
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_model::id::WorkerId;
use nqueens_model::operator::{Blamed, CheckCounts, EventKind, MachineName, RunState};
use nqueens_proto::v1;
use tonic::Code;

const ALWAYS: u32 = 1_000_000;

fn set_trust(name: &str, trusted: bool) -> impl Request<Answer = ()> {
    request::set_trust(MachineName::One { name: name.to_owned(), credential: None }, trusted)
}

/// N = 9 in small jobs.
fn rows_9() -> Plan {
    Plan::with_states_per_job(board(9), PlanKind::Border, 300)
}

/// A coordinator that counts itself.
async fn counting(ledger: &Ledger) -> House {
    House::open(&ledger.path, Policy { arbiter: true, ..Policy::default() }).await
}

/// What a liar makes of a right result; it remembers the one before.
type Lie = fn(right: v1::JobResult, before: &v1::JobResult) -> v1::JobResult;

/// Counts two jobs at a time until the coordinator wants no more of it, or the run is done.
async fn work(mut worker: Worker, lie: Option<Lie>) -> Result<(), tonic::Status> {
    let mut results: Vec<v1::JobResult> = Vec::new();
    let mut before = v1::JobResult::default();
    // Far more than it takes: a test ends by itself.
    for _ in 0..5_000 {
        let sync = v1::SyncRequest {
            results: std::mem::take(&mut results),
            wanted_states: ALL,
            wanted_jobs: 2,
            ..v1::SyncRequest::default()
        };
        let leases = worker.sync(sync).await?.leases;
        for right in leases.iter().map(honest) {
            let result = lie.map_or_else(|| right.clone(), |lie| lie(right.clone(), &before));
            before = right;
            results.push(result);
        }
    }
    panic!("worker {} is kept busy for ever", worker.id);
}

/// Three honest workers and a liar count a run of which so much is checked; returns what became of the liar.
async fn count_with_a_liar(lie: Lie, replicate_ppm: u32) -> tonic::Status {
    let ledger = Ledger::new();
    let house = counting(&ledger).await;
    let run = house.submit(rows_9(), replicate_ppm).await;
    let liar = house.worker(9).await;
    let honest = [house.worker(1).await, house.worker(2).await, house.worker(3).await];
    let (liar_id, liar) = (liar.id, tokio::spawn(work(liar, Some(lie))));
    // Or there might be nothing left to lie about.
    house.wait_for(run.id, |run| run.sums.leased + run.sums.done > 0).await;
    let honest = honest.map(|worker| tokio::spawn(work(worker, None)));
    let refusal = liar.await.unwrap().unwrap_err();
    house.wait_for(run.id, |run| run.state == RunState::Done).await;
    for worker in honest {
        worker.abort();
    }
    let row = house.coordinator.operator().reader().run(run.id).await.unwrap();
    assert_eq!(row.outcome.unwrap().total, 352);
    for worker in house.coordinator.operator().workers().await.unwrap() {
        let is_liar = worker.about.id.get() == liar_id;
        assert_eq!(
            (worker.about.distrusted.is_some(), worker.checks_failed > 0),
            (is_liar, is_liar),
            "{worker:?}"
        );
    }
    let events = house.coordinator.operator().events();
    let told = events.borrow().iter().filter(|event| event.kind == EventKind::MachineDistrusted).count();
    assert_eq!(told, 1, "{:?}", events.borrow());
    house.end(&ledger).await;
    refusal
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_liar_is_found_out_whatever_its_lie() {
    // Some of these are the truth by chance: all are looked at. Who is never right is found out by its first result.
    let lies: [(&str, u32, Lie); 5] = [
        ("off by one", ALWAYS, |right, _| falsified(&right)),
        ("off by one, seldom counted twice", 10_000, |right, _| falsified(&right)),
        // As 32 bits would do to larger counts.
        ("wrapped", ALWAYS, |right, _| v1::JobResult { count8: right.count8 & 1, count4: 0, ..right }),
        ("of another job", ALWAYS, |right, before| v1::JobResult {
            count2: before.count2,
            count4: before.count4,
            count8: before.count8,
            ..right
        }),
        ("invented", ALWAYS, |right, _| v1::JobResult {
            count2: 0,
            count4: 0,
            count8: 0,
            elapsed_us: 0,
            states: 1,
            ..right
        }),
    ];
    for (kind, replicate_ppm, lie) in lies {
        let refusal = count_with_a_liar(lie, replicate_ppm).await;
        assert_eq!(refusal.code(), Code::PermissionDenied, "{kind}: {refusal}");
        for part in ["machine worker 9 is untrusted", "nqueens distrust --undo 'worker 9'"] {
            assert!(refusal.message().contains(part), "{kind}: {refusal}");
        }
    }
}

/// Leases everything, and reports all of it as it is told.
async fn count_all(worker: &mut Worker, lie: impl Fn(v1::JobResult) -> v1::JobResult) -> Vec<v1::Lease> {
    let leases = worker.take(1_000).await;
    let results: Vec<_> = leases.iter().map(|lease| lie(honest(lease))).collect();
    worker.report(&results).await;
    leases
}

#[tokio::test]
async fn every_job_is_counted_by_two_machines_each_its_own_image() {
    let (ledger, house) = House::fresh().await;
    let run = house.submit(rows_8(), ALWAYS).await;
    let (mut one, mut two) = (house.worker(1).await, house.worker(2).await);
    let first = count_all(&mut one, |right| right).await;
    assert_eq!(house.progress(run.id).sums.checks.open, 8);
    assert_eq!(house.progress(run.id).state, RunState::Active, "no total before the checks are made");
    assert_eq!(one.take(8).await, [], "nobody checks itself");
    let second = count_all(&mut two, |right| right).await;
    let image = |leases: &[v1::Lease]| -> HashMap<_, _> {
        leases.iter().map(|lease| (lease.token.unwrap().job, lease.mirrored)).collect()
    };
    let (first_images, second_images) = (image(&first), image(&second));
    assert!((0..8).all(|job| first_images[&job] != second_images[&job]), "one of both is the mirror image");
    let checks = house.wait_for(run.id, |run| run.state == RunState::Done).await.sums.checks;
    assert_eq!((checks.open, checks.agreed, checks.settled, checks.unmade), (0, 8, 0, 0));
    assert_eq!(ledger.verdicts().await, [vec!["accepted"; 8], vec!["duplicate"; 8]].concat());
    house.end(&ledger).await;
}

/// A second count that differs is decided by nobody but the coordinator, also after a restart.
#[tokio::test]
async fn the_coordinator_decides_what_two_dispute() {
    // Whoever of both was wrong.
    for first_lies in [true, false] {
        let ledger = Ledger::new();
        let house = House::open(&ledger.path, Policy::default()).await;
        let run = house.submit(rows_8(), ALWAYS).await;
        let (mut one, mut two) = (house.worker(1).await, house.worker(2).await);
        let lie = |lies: bool| move |right| if lies { falsified(&right) } else { right };
        count_all(&mut one, lie(first_lies)).await;
        house.close().await;

        let house = House::open(&ledger.path, Policy::default()).await;
        assert_eq!(house.progress(run.id).sums.checks.open, 8, "a restart forgets no second count");
        (one, two) = (house.known_worker(&one).await, house.known_worker(&two).await);
        count_all(&mut two, lie(!first_lies)).await;
        let sums = house.progress(run.id).sums;
        assert_eq!((sums.done, sums.quarantined, sums.checks.open), (0, 8, 8));
        house.close().await;

        let house = House::open(&ledger.path, Policy::default()).await;
        assert_eq!(house.progress(run.id).sums, sums);
        let mut three = house.worker(3).await;
        assert_eq!(count_all(&mut three, |right| right).await, [], "a third one is not asked");
        house.close().await;

        let house = counting(&ledger).await;
        house.wait_for(run.id, |run| run.sums.quarantined == 0).await;
        let liar = if first_lies { one.id } else { two.id };
        let distrusted = ledger.ask("SELECT name FROM machine WHERE distrusted IS NOT NULL").await;
        assert_eq!(distrusted, [format!("worker {liar}")]);
        let mut three = house.known_worker(&three).await;
        while house.progress(run.id).state != RunState::Done {
            count_all(&mut three, |right| right).await;
        }
        assert_eq!(ledger.ask("SELECT total FROM run").await, ["92"]);
        house.end(&ledger).await;
    }
}

#[tokio::test]
async fn a_distrusted_machine_is_refused_under_every_process_until_it_is_readmitted() {
    let ledger = Ledger::new();
    let house = counting(&ledger).await;
    let run = house.submit(rows_8(), ALWAYS).await;
    let (mut one, mut two) = (house.worker(1).await, house.worker(2).await);
    let held = one.take(2).await;
    one.report(&[falsified(&honest(&held[0]))]).await;
    count_all(&mut two, |right| right).await;
    house
        .wait_for(run.id, |_| {
            !house
                .coordinator
                .operator()
                .events()
                .borrow()
                .iter()
                .all(|event| event.kind != EventKind::MachineDistrusted)
        })
        .await;
    let denied = |status: tonic::Status| assert_eq!(status.code(), Code::PermissionDenied, "{status}");
    denied(one.sync(v1::SyncRequest::default()).await.unwrap_err());
    let again = v1::RegisterRequest { instance: vec![77; 16], ..registration(1) };
    denied(house.client().await.register(again.clone()).await.unwrap_err());
    // Its process can't take another name either.
    let renamed = v1::RegisterRequest { name: "honest".to_owned(), ..registration(1) };
    denied(house.client().await.register(renamed).await.unwrap_err());
    denied(one.sync(v1::SyncRequest::default()).await.unwrap_err());
    house.close().await;

    let house = House::open(&ledger.path, Policy::default()).await;
    denied(house.client().await.register(again.clone()).await.unwrap_err());
    let operator = house.coordinator.operator();
    assert!(
        operator
            .ask(set_trust("worker 2", true))
            .await
            .unwrap_err()
            .to_string()
            .contains("no untrusted machine")
    );
    operator.ask(set_trust("worker 1", true)).await.unwrap();
    house.client().await.register(again).await.unwrap();
    // And an operator can send one away.
    assert!(
        operator
            .ask(set_trust("nobody", false))
            .await
            .unwrap_err()
            .to_string()
            .contains("no machine of the name")
    );
    operator.ask(set_trust("worker 2", false)).await.unwrap();
    denied(house.known_worker(&two).await.sync(v1::SyncRequest::default()).await.unwrap_err());
    assert!(house.progress(run.id).sums.done > 0);
    house.end(&ledger).await;
}

#[tokio::test]
async fn second_counts_stay_unmade_where_there_is_one_machine_alone() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy { lease_ms: 10_000, ..Policy::default() }).await;
    let run = house.submit(rows_8(), ALWAYS).await;
    let mut one = house.worker(1).await;
    // Another process on the same machine checks nothing.
    let twin = v1::RegisterRequest { name: "worker 1".to_owned(), ..registration(2) };
    let mut twin = house.register(twin).await;
    let leases = one.take(8).await;
    let results: Vec<_> = leases.iter().map(honest).collect();
    one.report(&results[..7]).await;
    assert_eq!(twin.take(8).await, []);
    assert_eq!(house.progress(run.id).sums.checks.unmade, 0, "there may still come somebody");
    one.report(&results[7..]).await;
    let checks = house.wait_for(run.id, |run| run.state == RunState::Done).await.sums.checks;
    assert_eq!((checks.open, checks.unmade), (0, 8));
    house.end(&ledger).await;

    // Later somebody comes, and an operator asks again. A voided result takes its second count along.
    let house = House::open(&ledger.path, Policy::default()).await;
    assert_eq!(house.progress(run.id).sums.checks.unmade, 8);
    let requeue = async |of| house.coordinator.operator().ask(Requeue { run: run.id, of }).await.unwrap();
    assert_eq!(requeue(Blamed::Job(leases[0].token.unwrap().job)).await, 1);
    let checks = house.progress(run.id).sums.checks;
    assert_eq!((checks.open, checks.unmade), (0, 7));
    assert_eq!(requeue(Blamed::Unmade).await, 7);
    assert_eq!(requeue(Blamed::Unmade).await, 0);
    let checks = house.progress(run.id).sums.checks;
    assert_eq!((checks.open, checks.unmade), (7, 0));
    for number in [3, 1] {
        let mut worker = house.worker(number).await;
        let results: Vec<_> = worker.take(8).await.iter().map(honest).collect();
        worker.report(&results).await;
    }
    let run = house.wait_for(run.id, |run| run.state == RunState::Done).await;
    assert_eq!(run.sums.checks, CheckCounts { agreed: 8, ..run.sums.checks });
    assert_eq!((run.sums.checks.open, run.sums.checks.unmade), (0, 0));
    house.end(&ledger).await;
}

/// Whoever takes a cluster's database to count on alone knows that nobody else will come.
#[tokio::test]
async fn nobody_is_waited_for_who_is_known_to_be_gone() {
    let (ledger, house) = House::fresh().await;
    let run = house.submit(rows_8(), ALWAYS).await;
    let (mut one, _two) = (house.worker(1).await, house.worker(2).await);
    let results: Vec<_> = one.take(8).await.iter().map(honest).collect();
    one.report(&results).await;
    house.close().await;

    let endless = Policy { lease_ms: u64::MAX, ..Policy::default() };
    let house = House::open(&ledger.path, endless).await;
    assert_eq!(house.progress(run.id).sums.checks.unmade, 0);
    house.coordinator.operator().ask(request::release_all()).await.unwrap();
    let checks = house.wait_for(run.id, |run| run.state == RunState::Done).await.sums.checks;
    assert_eq!((checks.open, checks.unmade), (0, 8));
    house.end(&ledger).await;
}

#[tokio::test]
async fn results_are_taken_back_and_stay_in_the_ledger() {
    let (ledger, house) = House::fresh().await;
    let run = house.submit(rows_8(), 0).await;
    let (mut one, mut two) = (house.worker(1).await, house.worker(2).await);
    let some = one.take(3).await;
    one.report(&some.iter().map(honest).collect::<Vec<_>>()).await;
    count_all(&mut two, |right| right).await;
    house.wait_for(run.id, |run| run.state == RunState::Done).await;
    let operator = house.coordinator.operator();
    let worker = |worker: &Worker| Blamed::Worker(WorkerId::new(worker.id).unwrap());
    assert_eq!(operator.ask(Requeue { run: run.id, of: worker(&one) }).await.unwrap(), 3);
    let progress = house.progress(run.id);
    assert_eq!((progress.state, progress.sums.done), (RunState::Active, 5));
    assert_eq!(ledger.ask("SELECT state || ' ' || coalesce(total, 'none') FROM run").await, ["active none"]);
    assert_eq!(
        operator.ask(Requeue { run: run.id, of: worker(&one) }).await.unwrap(),
        0,
        "there are no more"
    );
    assert_eq!(
        operator.ask(Requeue { run: run.id, of: Blamed::Job(some[0].token.unwrap().job) }).await.unwrap(),
        0
    );
    assert_eq!(count_all(&mut two, |right| right).await.len(), 3);
    house.wait_for(run.id, |run| run.state == RunState::Done).await;
    assert_eq!(operator.ask(Requeue { run: run.id, of: Blamed::Job(0) }).await.unwrap(), 1);
    house.close().await;

    let house = House::open(&ledger.path, Policy::default()).await;
    assert_eq!(house.progress(run.id).sums.done, 7, "a restart takes nothing back");
    count_all(&mut house.known_worker(&two).await, |right| right).await;
    house.wait_for(run.id, |run| run.state == RunState::Done).await;
    assert_eq!(ledger.ask("SELECT total FROM run").await, ["92"]);
    let verdicts =
        ledger.ask("SELECT verdict || ' ' || count(*) FROM result GROUP BY verdict ORDER BY verdict").await;
    assert_eq!(verdicts, ["accepted 8", "voided 4"]);
    house.end(&ledger).await;
}

#[tokio::test]
async fn the_coordinator_counts_some_jobs_itself() {
    let ledger = Ledger::new();
    let house = counting(&ledger).await;
    let mut client = house.client().await;
    let reserved = v1::RegisterRequest { name: "(the coordinator)".to_owned(), ..registration(8) };
    assert_eq!(client.register(reserved).await.unwrap_err().code(), Code::PermissionDenied);
    // One lies and nobody else is there; the total waits for the last job.
    let mut one = house.worker(1).await;
    let run = house.submit(rows_8(), 1).await;
    let leases = one.take(8).await;
    let lies: Vec<_> = leases.iter().map(|lease| falsified(&honest(lease))).collect();
    one.report(&lies[..7]).await;
    // What it says is final, and nothing else of the liar stands. It is no recount that agrees.
    let progress = house.wait_for(run.id, |run| run.sums.differing == 1 && run.sums.done == 1).await;
    assert_eq!(progress.sums.checks.recounted, 0);
    let accepted = "SELECT name FROM result JOIN worker ON worker.id = worker WHERE verdict = 'accepted'";
    assert_eq!(ledger.ask(accepted).await, ["(the coordinator)"]);
    let distrusted = ledger.ask("SELECT name FROM machine WHERE distrusted IS NOT NULL").await;
    assert_eq!(distrusted, ["worker 1"]);
    house.end(&ledger).await;
}
