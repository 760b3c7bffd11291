//! Workers with a valid token who mean no good: what they can do to others, and to a run.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::common::{
    ALL, House, Ledger, Worker, access_of, board, falsified, honest, registration, rows_8, token,
};
use nqueens_coordinator::{Policy, RunRow, Timing};
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_model::credential::Credential;
use nqueens_model::operator::{MachineName, RunState};
use nqueens_proto::v1;
use tonic::Code;

/// A coordinator that counts itself, with a token for each of two owners.
async fn house(ledger: &Ledger) -> House {
    let policy =
        Policy { beat_ms: 100, workers_max: 20, lease_ms: 10_000, arbiter: true, ..Policy::default() };
    let pace = Timing { policy, ..Timing::default() };
    House::timed(&ledger.path, pace, &access_of(&["lab", "club"])).await
}

async fn worker(house: &House, of: &str, number: u8) -> Worker {
    house.register_by(Some(&token(of)), registration(number)).await.unwrap()
}

/// A run of eight jobs, of which all results are checked.
async fn submit(house: &House) -> RunRow {
    house.submit(rows_8(), 1_000_000).await
}

/// Sixty names of one process had an honest machine distrusted within 276 milliseconds.
#[tokio::test]
async fn names_of_one_credential_outvote_nobody() {
    let ledger = Ledger::new();
    let house = house(&ledger).await;
    let run = submit(&house).await;
    let mut victim = worker(&house, "club", 1).await;
    let right: Vec<_> = victim.take(8).await.iter().map(honest).collect();
    victim.report(&right).await;
    for number in 2..20 {
        // Once some of them are found out, no other is let in.
        let name = house.register_by(Some(&token("lab")), registration(number)).await;
        let Ok(mut name) = name else { break };
        let sync = v1::SyncRequest { wanted_states: ALL, wanted_jobs: 8, ..v1::SyncRequest::default() };
        let Ok(answer) = name.sync(sync).await else { break };
        let results = answer.leases.iter().map(|lease| falsified(&honest(lease))).collect();
        let _ = name.sync(v1::SyncRequest { results, ..v1::SyncRequest::default() }).await;
        // Results of leases that it never had decide nothing either.
        let leaseless: Vec<_> = right.iter().map(falsified).collect();
        let _ = name.sync(v1::SyncRequest { results: leaseless, ..v1::SyncRequest::default() }).await;
    }
    house.wait_for(run.id, |run| run.state == RunState::Done).await;
    let row = house.coordinator.operator().reader().run(run.id).await.unwrap();
    assert_eq!(row.outcome.unwrap().total, 92);
    let workers = house.coordinator.operator().workers().await.unwrap();
    let untrusted: Vec<_> = workers.iter().filter(|worker| worker.about.distrusted.is_some()).collect();
    assert!(!untrusted.is_empty());
    assert!(untrusted.iter().all(|worker| worker.about.credential.as_str() == "lab"), "{untrusted:?}");
    house.end(&ledger).await;
}

/// One worker failed every job three times within 0.08 seconds, and all were in quarantine.
#[tokio::test]
async fn who_fails_everything_stops_nothing() {
    let ledger = Ledger::new();
    let house = house(&ledger).await;
    let run = submit(&house).await;
    for number in 1..20 {
        let mut failer = worker(&house, "lab", number).await;
        for _ in 0..3 {
            let leases = failer.take_once(8).await;
            let fail = |lease: &v1::Lease| v1::ReturnedLease { token: lease.token, failure: "no".to_owned() };
            let returned = leases.iter().map(fail).collect();
            failer.sync(v1::SyncRequest { returned, ..v1::SyncRequest::default() }).await.unwrap();
        }
    }
    assert_eq!(house.progress(run.id).sums.quarantined, 0);
    // The coordinator, or somebody else, counts what failed too often.
    let mut other = worker(&house, "club", 20).await;
    let done = |run: &nqueens_coordinator::progress::RunProgress| run.state == RunState::Done;
    while !done(&house.progress(run.id)) {
        let sync = v1::SyncRequest { wanted_states: ALL, wanted_jobs: 8, ..v1::SyncRequest::default() };
        let results: Vec<_> = other.sync(sync).await.unwrap().leases.iter().map(honest).collect();
        other.report(&results).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    house.end(&ledger).await;
}

#[tokio::test]
async fn a_session_is_its_credentials_alone() {
    let ledger = Ledger::new();
    let house = house(&ledger).await;
    let mut own = worker(&house, "lab", 1).await;
    let mut stolen = house.known_worker(&own).await;
    stolen.token = Some(token("club"));
    let refusal = stolen.sync(v1::SyncRequest::default()).await.unwrap_err();
    assert_eq!(refusal.code(), Code::NotFound, "{refusal}");
    let refusal = house.register_by(Some(&token("club")), registration(1)).await.err().unwrap();
    assert_eq!(refusal.code(), Code::PermissionDenied);
    assert!(refusal.message().contains("another token"), "{refusal}");
    own.sync(v1::SyncRequest::default()).await.unwrap();
    house.close().await;
}

#[tokio::test]
async fn workers_of_a_credential_are_bounded() {
    let ledger = Ledger::new();
    let house = house(&ledger).await;
    // Some do no more than register.
    for number in 1..=20 {
        let mut worker = worker(&house, "lab", number).await;
        if number % 2 == 0 {
            worker.sync(v1::SyncRequest::default()).await.unwrap();
        }
    }
    let refusal = house.register_by(Some(&token("lab")), registration(21)).await.err().unwrap();
    assert_eq!(refusal.code(), Code::ResourceExhausted);
    assert!(refusal.message().contains("20 workers of credential lab"), "{refusal}");
    worker(&house, "club", 22).await;
    // Who is there already may introduce itself again.
    worker(&house, "lab", 7).await;
    house.close().await;
}

/// Machines of the same name under two credentials are two machines.
#[tokio::test]
async fn trust_is_of_a_name_under_a_credential() {
    let ledger = Ledger::new();
    let house = house(&ledger).await;
    let named = |number| v1::RegisterRequest { name: "west".to_owned(), ..registration(number) };
    let mut lab = house.register_by(Some(&token("lab")), named(1)).await.unwrap();
    let mut club = house.register_by(Some(&token("club")), named(2)).await.unwrap();
    let set_trust = async |machines, trusted| {
        let request = nqueens_coordinator::request::set_trust(machines, trusted);
        house.coordinator.operator().ask(request).await.unwrap();
    };
    let of_lab = Credential::named("lab").unwrap();
    let one = MachineName::One { name: "west".to_owned(), credential: Some(of_lab.clone()) };
    set_trust(one, false).await;
    assert_eq!(lab.sync(v1::SyncRequest::default()).await.unwrap_err().code(), Code::PermissionDenied);
    club.sync(v1::SyncRequest::default()).await.unwrap();
    set_trust(MachineName::One { name: "west".to_owned(), credential: None }, true).await;
    lab.sync(v1::SyncRequest::default()).await.unwrap();
    // All of a credential, under names that do not exist yet, too.
    set_trust(MachineName::All { credential: of_lab.clone() }, false).await;
    let refusal = house.register_by(Some(&token("lab")), registration(3)).await.err().unwrap();
    assert!(refusal.message().contains("distrust --undo --credential 'lab'"), "{refusal}");
    club.sync(v1::SyncRequest::default()).await.unwrap();
    set_trust(MachineName::All { credential: of_lab }, true).await;
    lab.sync(v1::SyncRequest::default()).await.unwrap();
    house.end(&ledger).await;
}

/// Results for jobs that were never leased to whoever reports them, or to anybody: 1,000 of 1,000 were accepted in one call.
#[tokio::test]
async fn a_result_needs_a_ticket_of_its_own_credential() {
    let ledger = Ledger::new();
    let house = house(&ledger).await;
    let run = submit(&house).await;
    let (mut honest_one, mut thief) = (worker(&house, "lab", 1).await, worker(&house, "club", 2).await);
    let leases = honest_one.take(4).await;
    let stolen: Vec<_> = leases.iter().map(|lease| falsified(&honest(lease))).collect();
    let guess = |job| {
        let token = v1::LeaseToken { run: run.id.get(), job, epoch: 1, ticket: 1 };
        v1::JobResult { token: Some(token), ..stolen[0].clone() }
    };
    let guessed: Vec<_> = (0..8).map(guess).collect();
    assert_eq!(thief.report(&stolen).await, [v1::Verdict::Unknown; 4]);
    assert_eq!(thief.report(&guessed).await, [v1::Verdict::Unknown; 8]);
    assert_eq!(house.progress(run.id).sums.done, 0);
    assert_eq!(ledger.ask("SELECT credential || ' ' || refused FROM machine").await, ["club 12"]);
    let right: Vec<_> = leases.iter().map(honest).collect();
    assert_eq!(honest_one.report(&right).await, [v1::Verdict::Accepted; 4], "they are still its own");
    house.end(&ledger).await;
}

/// Two owners who agreed on every lie confirmed each other.
#[tokio::test]
async fn credentials_that_collude_are_found_by_recounts() {
    let ledger = Ledger::new();
    let policy = Policy { arbiter: true, published: false, ..Policy::default() };
    let house = House::guarded(&ledger.path, policy, &access_of(&["lab", "club"])).await;
    let run = submit(&house).await;
    let mut liars = [worker(&house, "lab", 1).await, worker(&house, "club", 2).await];
    let mut refused = 0;
    while refused < 2 {
        refused = 0;
        for liar in &mut liars {
            let sync = v1::SyncRequest { wanted_states: ALL, wanted_jobs: 8, ..v1::SyncRequest::default() };
            let Ok(answer) = liar.sync(sync).await else {
                refused += 1;
                continue;
            };
            let results = answer.leases.iter().map(|lease| falsified(&honest(lease))).collect();
            let _ = liar.sync(v1::SyncRequest { results, ..v1::SyncRequest::default() }).await;
        }
    }
    assert_eq!(house.progress(run.id).state, RunState::Active, "nobody honest is there: there is no total");
    let standing = "SELECT count(*) FROM result JOIN worker ON worker.id = worker
                    WHERE verdict = 'accepted' AND credential <> '(the coordinator)'";
    assert_eq!(ledger.ask(standing).await, ["0"], "nothing stands of who is out");
    house.end(&ledger).await;
}

/// One worker held 2,461 of 2,461 jobs by claiming speed, and names of one owner held both leases of a job.
#[tokio::test]
async fn who_claims_speed_leaves_jobs_to_others_and_gets_no_second_lease_of_his_own() {
    let ledger = Ledger::new();
    let house = house(&ledger).await;
    let plan = Plan::with_states_per_job(board(12), PlanKind::Rows, 30);
    let run = house.submit(plan, 0).await;
    assert!(run.jobs > 1_500, "{} jobs", run.jobs);
    let fast = v1::Capability {
        states_per_s: 1 << 50,
        family: "block-search".to_owned(),
        device: "abacus".to_owned(),
    };
    let claims = |number| v1::RegisterRequest {
        threads: 1_024,
        capability: Some(fast.clone()),
        ..registration(number)
    };
    let mut held = Vec::new();
    // No worker of his has any result yet.
    for number in 1..=2 {
        let mut greedy = house.register_by(Some(&token("lab")), claims(number)).await.unwrap();
        held.extend(greedy.take(1_000).await);
    }
    let jobs: BTreeSet<_> = held.iter().map(|lease| lease.token.as_ref().unwrap().job).collect();
    assert_eq!(jobs.len(), held.len(), "no job twice to one owner");
    assert!(held.len() <= 1_000, "{} of {} jobs", held.len(), run.jobs);
    let mut other = worker(&house, "club", 3).await;
    assert!(!other.take(1).await.is_empty());
    house.close().await;
}

/// Somebody washed events away by the thousand.
#[tokio::test]
async fn whoever_tells_much_is_heard_ten_times_a_minute() {
    let ledger = Ledger::new();
    let house = house(&ledger).await;
    let says = |fault: String| v1::SyncRequest { faults: vec![fault], ..v1::SyncRequest::default() };
    for number in 1..=20 {
        let mut noisy = worker(&house, "lab", number).await;
        for story in 0..3 {
            noisy.sync(says(format!("story {story} of {number}"))).await.unwrap();
        }
    }
    worker(&house, "club", 30).await.sync(says("the abacus failed".to_owned())).await.unwrap();
    let events = house.coordinator.operator().events();
    let told: Vec<_> = events.borrow().iter().map(|event| event.text.clone()).collect();
    assert!(told.iter().filter(|text| text.contains("story")).count() <= 10, "{told:?}");
    assert!(told.iter().any(|text| text.contains("the abacus failed")), "{told:?}");
    house.close().await;
}
