//! Operators over real sockets: what each call does, and what is refused without a trace.

use std::time::Duration;

use crate::common::{
    ALL, House, Ledger, Operators, falsified, honest, operator, refusal, registration, rows_8, submission,
};
use nqueens_coordinator::{Access, Policy, Reader};
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_model::credential::Credential;
use nqueens_model::id::{RunId, WorkerId};
use nqueens_model::operator::{
    Checked, CoordinatorStatus, Event, EventKind, RunDetail, RunState, Submission,
};
use nqueens_proto::v1::worker_service_client::WorkerServiceClient;
use nqueens_proto::{CallFailure, JsonClient, Token, v1};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::{Code, Request, Status};

#[tokio::test]
async fn a_run_is_submitted_once_and_counted() {
    let (ledger, house) = House::fresh().await;
    let client = operator(&house).await;
    // Both at once, and once more later: it is the same request.
    let other = operator(&house).await;
    let (one, two) = tokio::join!(client.submit(submission(1)), other.submit(submission(1)));
    let run = one.unwrap();
    assert_eq!(two.unwrap(), run);
    let progress = &run.progress;
    assert_eq!((progress.plan, progress.jobs, progress.done), (rows_8(), 8, 0));
    assert_eq!((progress.state, run.outcome), (RunState::Active, None));
    assert_eq!(ledger.ask("SELECT count(*) FROM run").await, ["1"]);
    assert_eq!(ledger.ask("SELECT count(*) FROM job").await, ["8"]);

    house.worker(1).await.count_all().await;
    house.wait_for(progress.run, |run| run.state == RunState::Done).await;
    let again = client.submit(submission(1)).await.unwrap();
    let outcome = again.outcome.unwrap();
    assert_eq!((outcome.total, outcome.checked), (92, Checked::Published));
    assert_eq!((again.progress.done, again.progress.leased), (8, 0));
    assert!(again.finished_at.is_some());
    assert_eq!(client.runs().await, std::slice::from_ref(&again));
    assert_eq!(client.run(progress.run).await.unwrap(), again);
    let detail: RunDetail = client.0.get(&format!("/v1/runs/{}/detail", progress.run)).await.unwrap();
    assert!(detail.moments.last().is_some_and(|last| last.share_done > 0.999), "{detail:?}");
    let refused = client.set(progress.run, RunState::Paused).await.unwrap_err();
    assert_eq!(refusal(refused).0, 409);
    let told: CoordinatorStatus = client.0.get("/v1/coordinator").await.unwrap();
    assert_eq!(told.build, "test 1.0");
    house.end(&ledger).await;
}

#[tokio::test]
async fn total_and_time_left_are_estimated_while_it_counts() {
    let (ledger, house) = House::fresh().await;
    let client = operator(&house).await;
    let plan = Plan::with_states_per_job(rows_8().n(), PlanKind::Rows, 4);
    let run = client.submit(Submission { plan, ..submission(1) }).await.unwrap().progress;
    assert!(run.jobs > 30 && run.estimated_states > u128::from(run.jobs), "{run:?}");
    assert_eq!((run.estimated_total, run.speed, run.time_left_s), (None, None, None), "nothing is known");
    let id = run.run;
    let mut worker = house.worker(1).await;
    let leases = worker.take(30).await;
    let (counted, open) = leases.split_at(25);
    let results: Vec<_> = counted.iter().map(honest).collect();
    worker.report(&results).await;
    let found: u64 =
        results.iter().map(|result| 2 * result.count2 + 4 * result.count4 + 8 * result.count8).sum();
    worker.hold(open).await;

    house.wait_for(id, |run| run.measured.is_some()).await;
    let seen = client.run(id).await.unwrap().progress;
    let total = seen.estimated_total.expect("25 jobs are enough");
    #[expect(clippy::cast_precision_loss, reason = "at most 92")]
    let found = found as f64;
    assert!(found <= total.low && total.low <= 92.0 && 92.0 <= total.high, "{found}, {total:?}");
    let (speed, left) = (seen.speed.unwrap(), seen.time_left_s.unwrap());
    assert!(speed.threads > 0.0 && speed.states_per_s > 0.0, "{speed:?}");
    assert!(left.low <= left.value && left.value <= left.high && left.low > 0.0, "{left:?}");
    let reader = Reader::open(&ledger.path).await.unwrap();
    let offline = reader.progress(&[reader.run(id).await.unwrap()]).await.unwrap().remove(0);
    assert_eq!(offline.estimated_total(), Some(total), "the ledger alone tells the same");
    assert_eq!((offline.measured, offline.time_left_s()), (None, None), "but for a speed");

    client.set(id, RunState::Paused).await.unwrap();
    let paused = client.run(id).await.unwrap().progress;
    assert_eq!((paused.estimated_total, paused.speed, paused.time_left_s), (Some(total), None, None));
    client.set(id, RunState::Active).await.unwrap();
    worker.count_all().await;
    house.wait_for(id, |run| run.state == RunState::Done).await;
    let done = client.run(id).await.unwrap().progress;
    assert_eq!((done.estimated_total, done.speed, done.time_left_s), (None, None, None), "all is known");
    house.end(&ledger).await;
}

#[tokio::test]
async fn runs_are_paused_resumed_and_cancelled() {
    let (ledger, house) = House::fresh().await;
    let client = operator(&house).await;
    let run = client.submit(submission(1)).await.unwrap().progress.run;
    let mut worker = house.worker(1).await;
    let held = worker.take(2).await;
    assert_eq!(held.len(), 2);
    for _ in 0..2 {
        let paused = client.set(run, RunState::Paused).await.unwrap().progress;
        assert_eq!((paused.state, paused.leased), (RunState::Paused, 2));
    }
    let mut idle = house.worker(2).await;
    assert_eq!(idle.take(8).await, []);
    assert_eq!(worker.report(&[honest(&held[0])]).await, [v1::Verdict::Accepted]);
    client.set(run, RunState::Active).await.unwrap();
    assert!(!idle.take(8).await.is_empty());
    let cancelled = client.set(run, RunState::Cancelled).await.unwrap();
    assert_eq!(cancelled.progress.state, RunState::Cancelled);
    assert_eq!(worker.report(&[honest(&held[1])]).await, [v1::Verdict::Duplicate]);
    let (status, words) = refusal(client.set(run, RunState::Active).await.unwrap_err());
    assert_eq!(status, 409);
    assert!(words.ends_with("is cancelled; only active and paused runs can be changed"), "{words}");
    house.end(&ledger).await;
}

#[tokio::test]
async fn quarantined_jobs_are_counted_anew() {
    let (ledger, house) = House::fresh().await;
    let client = operator(&house).await;
    let twice = Submission { replicate_ppm: 1_000_000, ..submission(1) };
    let run = client.submit(twice).await.unwrap().progress.run;
    let (mut one, mut two) = (house.worker(1).await, house.worker(2).await);
    let leases = one.take(1).await;
    assert_eq!(one.report(&[honest(&leases[0])]).await, [v1::Verdict::Accepted]);
    let second = two.take(1).await;
    assert_eq!(second[0].token.unwrap().job, leases[0].token.unwrap().job);
    assert_eq!(two.report(&[falsified(&honest(&second[0]))]).await, [v1::Verdict::Conflict]);
    assert_eq!(client.run(run).await.unwrap().progress.quarantined, 1, "this coordinator does not count");
    assert_eq!(client.retry(run).await.unwrap().progress.quarantined, 0);
    one.count_all().await;
    two.count_all_as(v1::Verdict::Duplicate).await;
    house.wait_for(run, |run| run.state == RunState::Done).await;
    house.end(&ledger).await;
}

#[tokio::test]
async fn workers_are_listed_and_drained() {
    let (ledger, house) = House::fresh().await;
    let client = operator(&house).await;
    client.submit(submission(1)).await.unwrap();
    let mut worker = house.worker(7).await;
    let leases = worker.take(3).await;
    worker.report(&[honest(&leases[0])]).await;
    worker.hold(&leases[1..]).await;
    let workers = client.workers().await;
    let [listed] = &workers[..] else { panic!("one worker: {workers:?}") };
    let seen =
        (listed.about.id.get(), &*listed.about.name, listed.about.threads, listed.accepted, listed.draining);
    assert_eq!(seen, (worker.id, "worker 7", 100, 1, false));
    assert_eq!(listed.about.kernels, ["reference"]);
    client.drain(listed.about.id).await.unwrap();
    assert!(client.workers().await[0].draining);
    let answer =
        worker.sync(v1::SyncRequest { wanted_states: ALL, wanted_jobs: 9, ..Default::default() }).await;
    assert!(answer.unwrap().drain);
    house.end(&ledger).await;
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let (ledger, house) = House::fresh().await;
    let client = operator(&house).await;
    let run = client.submit(submission(1)).await.unwrap().progress.run;
    let before = ledger.everything().await;

    let with = |field: &str, value: Value| {
        let mut message = serde_json::to_value(submission(2)).unwrap();
        message[field] = value;
        message
    };
    for message in [
        with("request", json!("01".repeat(15))),
        with("n", json!(0)),
        with("n", json!(32)),
        with("plan", json!("luck")),
        with("states_per_job", json!(0)),
        with("states_per_job", json!(1_u64 << 63)),
        with("cells", json!("...")),
        with("cells", json!("x".repeat(2_000))),
        with("priority", json!("high")),
        with("replicate_ppm", json!(1_000_001)),
        json!({}),
        json!(null),
    ] {
        let refused = client.0.post::<Value>("/v1/runs", &message).await.unwrap_err();
        assert!([400, 422].contains(&refusal(refused).0), "{message}");
    }
    let plan = Plan::with_states_per_job(crate::common::board(9), PlanKind::Rows, 100_000);
    let reused = client.submit(Submission { plan, ..submission(1) }).await.unwrap_err();
    assert_eq!(refusal(reused).0, 409);
    let oversized = client.0.post::<Value>("/v1/runs", &with("plan", json!("x".repeat(3_000_000)))).await;
    assert_eq!(refusal(oversized.unwrap_err()).0, 413);

    for state in [RunState::Planning, RunState::Done, RunState::Failed] {
        let refused = client.set(run, state).await.unwrap_err();
        assert_eq!(refusal(refused).0, 422);
    }
    let unknown = RunId::new(77).unwrap();
    let refused = [
        client.run(unknown).await.unwrap_err(),
        client.set(unknown, RunState::Paused).await.unwrap_err(),
        client.retry(unknown).await.unwrap_err(),
        client.drain(WorkerId::new(77).unwrap()).await.unwrap_err(),
        client
            .0
            .post::<()>("/v1/trust", &json!({ "machine": "nobody", "credential": null, "trusted": false }))
            .await
            .unwrap_err(),
        client.0.get::<Value>("/v1/nothing").await.unwrap_err(),
    ];
    assert_eq!(refused.map(|refused| refusal(refused).0), [404; 6]);
    for path in ["/v1/runs/1", "/v1/runs/1000000000000", "/v1/runs/00000000000x"] {
        assert_eq!(refusal(client.0.get::<Value>(path).await.unwrap_err()).0, 400, "{path}");
    }
    assert_eq!(refusal(client.0.post::<()>("/v1/workers/0/drain", &()).await.unwrap_err()).0, 400);
    assert_eq!(ledger.everything().await, before);
    house.end(&ledger).await;
}

const WORKER: &str = "the-token-of-workers";
const OPERATOR: &str = "the-token-of-operators";

fn token(text: &str) -> Token {
    text.parse().unwrap()
}

/// A call with this token, or none.
fn with<T>(text: Option<&str>, message: T) -> Request<T> {
    let mut request = Request::new(message);
    if let Some(text) = text {
        token(text).attach(request.metadata_mut().as_mut());
    }
    request
}

/// What a request over HTTP/1.1 is answered, by its status.
async fn by_hand(house: &House, path: &str, headers: &str) -> u16 {
    let mut stream = TcpStream::connect(house.address()).await.unwrap();
    let request = format!("{path} HTTP/1.1\r\nconnection: close\r\ncontent-length: 0\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer["HTTP/1.1 ".len()..][..3].parse().unwrap()
}

#[tokio::test]
async fn web_pages_change_nothing_and_read_nothing() {
    let (ledger, house) = House::fresh().await;
    let _worker = house.worker(1).await;
    let before = ledger.everything().await;
    let (read, change) = ("GET /v1/runs", "POST /v1/workers/1/drain");
    for headers in [
        "host: evil.example\r\n",
        "host: localhost\r\norigin: http://evil.example\r\n",
        "host: localhost\r\norigin: null\r\n",
    ] {
        for call in [read, change] {
            assert_eq!(by_hand(&house, call, headers).await, 421, "{call} {headers}");
        }
    }
    assert_eq!(ledger.everything().await, before);
    for call in [read, change] {
        assert_eq!(by_hand(&house, call, "host: localhost\r\n").await, 200, "{call}");
    }
    house.end(&ledger).await;
}

/// Each call of an operator with a token; each alone would change something, or tell something. The status of each answer.
async fn operators_calls(house: &House, text: Option<&str>, run: RunId) -> Vec<u16> {
    let client = JsonClient::new(house.channel().await, text.map(token));
    let mut answers: Vec<Result<Value, CallFailure>> = Vec::new();
    for path in ["coordinator", "runs", "workers", "events"] {
        answers.push(client.get(&format!("/v1/{path}")).await);
    }
    answers.push(client.get(&format!("/v1/runs/{run}")).await);
    answers.push(client.get(&format!("/v1/runs/{run}/detail")).await);
    answers.push(client.post("/v1/runs", &submission(1)).await);
    answers.push(client.post(&format!("/v1/runs/{run}/state"), &RunState::Paused).await);
    answers.push(client.post(&format!("/v1/runs/{run}/retry"), &()).await);
    answers.push(client.post(&format!("/v1/runs/{run}/requeue"), &json!({ "job": 0 })).await);
    answers.push(client.post("/v1/workers/1/drain", &()).await);
    let said = format!("{answers:?}");
    assert!(!said.contains("the-token-of"), "{said}");
    answers.into_iter().map(|answer| answer.map_or_else(|failure| refusal(failure).0, |_| 200)).collect()
}

/// Each call of a worker with a token.
async fn workers_calls(house: &House, text: Option<&str>) -> Vec<Result<(), Status>> {
    let mut client = WorkerServiceClient::new(house.channel().await);
    let registered = client.register(with(text, registration(1))).await.map(tonic::Response::into_inner);
    let session = registered.clone().unwrap_or_default();
    let sync = v1::SyncRequest {
        worker_id: session.worker_id,
        secret: session.secret,
        wanted_states: ALL,
        wanted_jobs: 1,
        ..Default::default()
    };
    vec![registered.map(drop), client.sync(with(text, sync)).await.map(drop)]
}

fn codes(outcomes: &[Result<(), Status>]) -> Vec<Code> {
    outcomes.iter().map(|outcome| outcome.as_ref().map_or_else(Status::code, |()| Code::Ok)).collect()
}

#[tokio::test]
async fn tokens_open_their_own_door_and_no_other() {
    let ledger = Ledger::new();
    let access = Access::new(vec![(Credential::shared(), token(WORKER))], Some(token(OPERATOR))).unwrap();
    let house = House::guarded(&ledger.path, Policy::default(), &access).await;
    let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap().id;
    let before = ledger.everything().await;
    let wrong = [None, Some("the-token-of-unauthenticated"), Some("the-token-of-operatorz")];
    // The answers are slow: all are asked for at once.
    let refused = async |text| {
        assert_eq!(operators_calls(&house, text, run).await, [401; 11], "{text:?}");
        assert_eq!(codes(&workers_calls(&house, text).await), [Code::Unauthenticated; 2], "{text:?}");
    };
    let [none, other, alike] = wrong.map(&refused);
    tokio::join!(none, other, alike);
    assert_eq!(operators_calls(&house, Some(WORKER), run).await, [403; 11]);
    assert_eq!(codes(&workers_calls(&house, Some(OPERATOR)).await), [Code::PermissionDenied; 2]);
    // A token is looked at before the message.
    let oversized = json!({ "plan": "x".repeat(100_000) });
    let refused = operator(&house).await.0.post::<Value>("/v1/runs", &oversized).await.unwrap_err();
    assert_eq!(refusal(refused).0, 401);
    assert_eq!(ledger.everything().await, before, "no call that was refused left a trace");

    assert_eq!(codes(&workers_calls(&house, Some(WORKER)).await), [Code::Ok; 2]);
    assert_eq!(operators_calls(&house, Some(OPERATOR), run).await, [200; 11]);
    house.end(&ledger).await;
}

#[test]
fn workers_and_operators_never_share_a_token() {
    assert!(Access::new(vec![(Credential::shared(), token(WORKER))], Some(token(WORKER))).is_err());
    assert!(!Access::default().is_complete());
    assert!(!Access::new(vec![(Credential::shared(), token(WORKER))], None).unwrap().is_complete());
    let access = Access::new(vec![(Credential::shared(), token(WORKER))], Some(token(OPERATOR))).unwrap();
    assert!(access.is_complete());
    assert!(!format!("{access:?}").contains("the-token-of"));
}

#[tokio::test]
async fn connections_that_say_nothing_do_not_keep_it_from_closing() {
    let (ledger, house) = House::fresh().await;
    let silent = tokio::net::TcpStream::connect(house.address()).await.unwrap();
    let idle = house.channel().await;
    let closing = tokio::time::timeout(Duration::from_mins(1), house.close());
    closing.await.expect("it cuts off what does not end");
    drop((silent, idle));
    ledger.audit().await;
}

#[tokio::test]
async fn what_happens_is_told() {
    let ledger = Ledger::new();
    // Whoever is not heard of for a quarter of a second is lost; a run that nobody counts for so long stalls.
    let policy = Policy { lease_ms: 250, stall_ms: 250, ..Policy::default() };
    let house = House::open(&ledger.path, policy).await;
    let client: Operators = operator(&house).await;
    let twice = Submission { replicate_ppm: 1_000_000, ..submission(1) };
    let run = client.submit(twice).await.unwrap().progress.run;
    let told = async |after: u64, wanted: EventKind| {
        let mut events = house.coordinator.operator().events();
        let is_it = |event: &Event| event.number > after && event.kind == wanted;
        drop(events.wait_for(|events| events.iter().any(is_it)).await.unwrap());
        client.events().await.into_iter().find(is_it).unwrap()
    };
    let planned = told(0, EventKind::RunPlanned).await;
    assert_eq!((planned.number, planned.run, &*planned.text), (1, Some(run), "N = 8: planned, 8 jobs."));
    let stalled = told(1, EventKind::RunStalled).await;
    assert_eq!((stalled.number, stalled.run), (2, Some(run)));

    let mut worker = house.worker(1).await;
    let leases = worker.take_once(2).await;
    let lost = told(2, EventKind::WorkerLost).await;
    assert_eq!(lost.worker.as_ref().map(|worker| worker.id.get()), Some(worker.id));
    assert!(lost.text.contains(" s without a heartbeat: ") && lost.text.ends_with(" back."), "{}", lost.text);
    // Late results are taken; a second count that differs quarantines the job.
    worker.report(&[honest(&leases[0])]).await;
    let mut second = house.worker(2).await;
    let check = second.take(1).await;
    second.report(&[falsified(&honest(&check[0]))]).await;
    let quarantined = told(lost.number, EventKind::JobsQuarantined).await;
    assert_eq!(quarantined.run, Some(run));
    let job = leases[0].token.unwrap().job;
    let what = format!("N = 8: job {run}/{job} is quarantined");
    assert!(quarantined.text.starts_with(&what), "{} instead of {what}", quarantined.text);
    client.retry(run).await.unwrap();
    worker.count_all().await;
    second.count_all_as(v1::Verdict::Duplicate).await;
    let done = told(quarantined.number, EventKind::RunDone).await;
    assert_eq!(done.text, "N = 8: done, TOTAL 92: equal to the published count.");
    house.close().await;
}
