//! Operators over real sockets: what each call does, and what is refused without a trace.

mod common;

use std::time::Duration;

use common::{
    ALL, House, Ledger, change, falsified, honest, operator, registration, rows_8, submission, submitted,
    watching,
};
use nqueens_coordinator::{Access, Policy, Reader};
use nqueens_model::credential::Credential;
use nqueens_model::id::RunId;
use nqueens_model::operator::Event;
use nqueens_proto::v1::operator_service_client::OperatorServiceClient;
use nqueens_proto::v1::worker_service_client::WorkerServiceClient;
use nqueens_proto::{MESSAGE_BYTES_MAX, Token, v1};
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

#[tokio::test]
async fn a_run_is_submitted_once_watched_and_counted() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy::default()).await;
    let mut client = operator(&house).await;
    // Both at once, and once more later: it is the same request.
    let mut other = operator(&house).await;
    let (one, two) = tokio::join!(client.submit(submission(1)), other.submit(submission(1)));
    let run = one.unwrap().into_inner().run.unwrap();
    assert_eq!(two.unwrap().into_inner().run.as_ref(), Some(&run));
    let progress = run.progress.clone().unwrap();
    assert_eq!((progress.n, progress.jobs, progress.done, progress.state()), (8, 8, 0, v1::RunState::Active));
    assert_eq!((&*run.plan, run.states_per_job, run.result), ("rows", rows_8().states_per_job(), None));
    assert_eq!(ledger.ask("SELECT count(*) FROM run").await, ["1"]);
    assert_eq!(ledger.ask("SELECT count(*) FROM job").await, ["8"]);

    let mut pictures = client.watch_progress(watching(0, 200)).await.unwrap().into_inner();
    let first = pictures.message().await.unwrap().unwrap();
    assert_eq!((first.runs, first.busy_workers), (vec![progress.clone()], 0));
    house.worker(1).await.count_all().await;
    let last = loop {
        let picture = pictures.message().await.unwrap().unwrap();
        if picture.runs[0].state() == v1::RunState::Done {
            break picture.runs[0].clone();
        }
    };
    assert_eq!((last.done, last.leased, last.share_done), (8, 0, 1.0));

    let again = client.submit(submission(1)).await.unwrap().into_inner().run.unwrap();
    let result = again.result.clone().unwrap();
    assert_eq!((&*result.total, result.check()), ("92", v1::Check::Published));
    assert!(again.finished_at_ms.is_some());
    let listed = client.list_runs(v1::ListRunsRequest {}).await.unwrap().into_inner().runs;
    assert_eq!(listed, std::slice::from_ref(&again));
    let got = client.get_run(v1::GetRunRequest { run: progress.run }).await.unwrap().into_inner();
    assert_eq!(got.run, Some(again));
    let refusal = client.set_run_state(change(progress.run, v1::RunState::Paused)).await.unwrap_err();
    assert_eq!(refusal.code(), Code::FailedPrecondition);
    // Its stream is still open: that must not keep it from closing.
    house.close().await;
    while pictures.message().await.expect("it ends in good order").is_some() {}
    ledger.audit().await;
}

#[tokio::test]
async fn total_and_time_left_are_estimated_while_it_counts() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy::default()).await;
    let mut client = operator(&house).await;
    let fine = v1::SubmitRequest { states_per_job: 4, ..submission(1) };
    let run = client.submit(fine).await.unwrap().into_inner().run.unwrap().progress.unwrap();
    assert!(run.jobs > 30 && run.estimated_states.parse::<u128>().unwrap() > u128::from(run.jobs), "{run:?}");
    assert_eq!((run.estimated_total, run.speed, run.time_left_s), (None, None, None), "nothing is known");
    let id = RunId::new(run.run).unwrap();
    let mut worker = house.worker(1).await;
    let leases = worker.take(30).await;
    let (counted, open) = leases.split_at(25);
    let results: Vec<_> = counted.iter().map(honest).collect();
    worker.report(&results).await;
    let found: u64 =
        results.iter().map(|result| 2 * result.count2 + 4 * result.count4 + 8 * result.count8).sum();
    worker.hold(open).await;

    house.wait_for(id, |run| run.measured.is_some()).await;
    let seen = progress(&mut client, run.run).await;
    let total = seen.estimated_total.expect("25 jobs are enough");
    #[expect(clippy::cast_precision_loss, reason = "at most 92")]
    let found = found as f64;
    assert!(found <= total.low && total.low <= 92.0 && 92.0 <= total.high, "{found}, {total:?}");
    let (speed, left) = (seen.speed.unwrap(), seen.time_left_s.unwrap());
    assert!(speed.threads > 0.0 && speed.states_per_s > 0.0, "{speed:?}");
    assert!(left.low <= left.value && left.value <= left.high && left.low > 0.0, "{left:?}");
    let mut pictures = client.watch_progress(watching(run.run, 200)).await.unwrap().into_inner();
    let picture = pictures.message().await.unwrap().unwrap().runs.remove(0);
    assert_eq!(picture.estimated_total, Some(total), "the stream tells the same");
    let reader = Reader::open(&ledger.path).await.unwrap();
    let offline = reader.progress(&reader.run(id).await.unwrap()).await.unwrap();
    assert_eq!(
        offline.estimated_total().map(|offline| offline.value),
        Some(total.value),
        "so does the ledger alone"
    );
    assert_eq!((offline.measured, offline.time_left_s()), (None, None), "which can't tell a speed");

    client.set_run_state(change(run.run, v1::RunState::Paused)).await.unwrap();
    let paused = progress(&mut client, run.run).await;
    assert_eq!((paused.estimated_total, paused.speed, paused.time_left_s), (Some(total), None, None));
    client.set_run_state(change(run.run, v1::RunState::Active)).await.unwrap();
    worker.count_all().await;
    house.wait_for(id, |run| run.state.name() == "done").await;
    let done = progress(&mut client, run.run).await;
    assert_eq!((done.estimated_total, done.speed, done.time_left_s), (None, None, None), "all is known");
    house.close().await;
    ledger.audit().await;
}

async fn progress(client: &mut OperatorServiceClient<Channel>, run: u64) -> v1::RunProgress {
    client.get_run(v1::GetRunRequest { run }).await.unwrap().into_inner().run.unwrap().progress.unwrap()
}

#[tokio::test]
async fn runs_are_paused_resumed_and_cancelled() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy::default()).await;
    let mut client = operator(&house).await;
    let run = submitted(&mut client, 1).await.run;
    let mut worker = house.worker(1).await;
    let held = worker.take(2).await;
    assert_eq!(held.len(), 2);
    for _ in 0..2 {
        let paused = client.set_run_state(change(run, v1::RunState::Paused)).await.unwrap().into_inner();
        let progress = paused.run.unwrap().progress.unwrap();
        assert_eq!((progress.state(), progress.leased), (v1::RunState::Paused, 2));
    }
    let mut idle = house.worker(2).await;
    assert_eq!(idle.take(8).await, []);
    assert_eq!(worker.report(&[honest(&held[0])]).await, [v1::Verdict::Accepted]);
    client.set_run_state(change(run, v1::RunState::Active)).await.unwrap();
    assert!(!idle.take(8).await.is_empty());
    let cancelled = client.set_run_state(change(run, v1::RunState::Cancelled)).await.unwrap().into_inner();
    assert_eq!(cancelled.run.unwrap().progress.unwrap().state(), v1::RunState::Cancelled);
    assert_eq!(worker.report(&[honest(&held[1])]).await, [v1::Verdict::Duplicate]);
    let refusal = client.set_run_state(change(run, v1::RunState::Active)).await.unwrap_err();
    assert_eq!(refusal.code(), Code::FailedPrecondition);
    assert!(refusal.message().ends_with("is cancelled; only active and paused runs can be changed"));
    house.close().await;
    ledger.audit().await;
}

#[tokio::test]
async fn quarantined_jobs_are_counted_anew() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy::default()).await;
    let mut client = operator(&house).await;
    let run = submitted(&mut client, 1).await.run;
    let (mut one, mut two) = (house.worker(1).await, house.worker(2).await);
    let leases = one.take(1).await;
    assert_eq!(one.report(&[honest(&leases[0])]).await, [v1::Verdict::Accepted]);
    assert_eq!(two.report(&[falsified(&honest(&leases[0]))]).await, [v1::Verdict::Conflict]);
    let asked = v1::GetRunRequest { run };
    let quarantined = |run: Option<v1::Run>| run.unwrap().progress.unwrap().quarantined;
    assert_eq!(quarantined(client.get_run(asked).await.unwrap().into_inner().run), 1);
    let retry = v1::RetryQuarantinedRequest { run };
    assert_eq!(quarantined(client.retry_quarantined(retry).await.unwrap().into_inner().run), 0);
    one.count_all().await;
    house.wait_for(RunId::new(run).unwrap(), |run| run.state.name() == "done").await;
    house.close().await;
    ledger.audit().await;
}

#[tokio::test]
async fn workers_are_listed_and_drained() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy::default()).await;
    let mut client = operator(&house).await;
    submitted(&mut client, 1).await;
    let mut worker = house.worker(7).await;
    let leases = worker.take(3).await;
    worker.report(&[honest(&leases[0])]).await;
    worker.hold(&leases[1..]).await;
    let list = v1::ListWorkersRequest {};
    let workers = client.list_workers(list).await.unwrap().into_inner().workers;
    let [listed] = &workers[..] else { panic!("one worker: {workers:?}") };
    let seen = (listed.id, &*listed.name, listed.threads, listed.accepted, listed.draining);
    assert_eq!(seen, (worker.id, "worker 7", 100, 1, false));
    assert_eq!(listed.kernels, ["reference"]);
    client.drain_worker(v1::DrainWorkerRequest { worker_id: worker.id }).await.unwrap();
    assert!(client.list_workers(list).await.unwrap().into_inner().workers[0].draining);
    let answer =
        worker.sync(v1::SyncRequest { wanted_states: ALL, wanted_jobs: 9, ..Default::default() }).await;
    assert!(answer.unwrap().drain);
    house.close().await;
    ledger.audit().await;
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy::default()).await;
    let mut client = operator(&house).await;
    let run = submitted(&mut client, 1).await.run;
    let before = ledger.everything().await;

    let good = || submission(2);
    let malformed = [
        ("request_id", v1::SubmitRequest { request_id: vec![1; 15], ..good() }),
        ("n", v1::SubmitRequest { n: 0, ..good() }),
        ("n", v1::SubmitRequest { n: 32, ..good() }),
        ("plan", v1::SubmitRequest { plan: "luck".to_owned(), ..good() }),
        ("states_per_job", v1::SubmitRequest { states_per_job: 0, ..good() }),
        ("states_per_job", v1::SubmitRequest { states_per_job: 1 << 63, ..good() }),
    ];
    for (field, request) in malformed {
        let refusal = client.submit(request).await.unwrap_err();
        assert_eq!(refusal.code(), Code::InvalidArgument, "{refusal:?}");
        assert!(refusal.message().starts_with(&format!("invalid message: {field} ")), "{refusal:?}");
    }
    let reused = v1::SubmitRequest { n: 9, ..submission(1) };
    assert_eq!(client.submit(reused).await.unwrap_err().code(), Code::AlreadyExists);
    let oversized = v1::SubmitRequest { plan: "x".repeat(MESSAGE_BYTES_MAX), ..good() };
    assert_eq!(client.submit(oversized).await.unwrap_err().code(), Code::OutOfRange);

    for state in [v1::RunState::Unspecified, v1::RunState::Done, v1::RunState::Failed] {
        let refusal = client.set_run_state(change(run, state)).await.unwrap_err();
        assert_eq!(refusal.code(), Code::InvalidArgument, "{refusal:?}");
    }
    for interval_ms in [0, 199, 3_600_001] {
        let refusal = client.watch_progress(watching(0, interval_ms)).await.unwrap_err();
        assert_eq!(refusal.code(), Code::InvalidArgument, "{refusal:?}");
    }
    for (run, code) in [(0, Code::InvalidArgument), (1 << 48, Code::InvalidArgument), (77, Code::NotFound)] {
        let get = client.get_run(v1::GetRunRequest { run }).await.unwrap_err();
        let set = client.set_run_state(change(run, v1::RunState::Paused)).await.unwrap_err();
        let retry = client.retry_quarantined(v1::RetryQuarantinedRequest { run }).await.unwrap_err();
        assert_eq!([get.code(), set.code(), retry.code()], [code; 3], "{run}");
    }
    assert_eq!(client.watch_progress(watching(77, 200)).await.unwrap_err().code(), Code::NotFound);
    for (worker_id, code) in [(0, Code::InvalidArgument), (77, Code::NotFound)] {
        let refusal = client.drain_worker(v1::DrainWorkerRequest { worker_id }).await.unwrap_err();
        assert_eq!(refusal.code(), code);
    }
    assert_eq!(ledger.everything().await, before);
    house.close().await;
    ledger.audit().await;
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
        token(text).attach(request.metadata_mut());
    }
    request
}

/// Each call of an operator with a token; each alone would change something, or tell something.
async fn operators_calls(house: &House, text: Option<&str>, run: u64) -> Vec<Result<(), Status>> {
    fn plain<T>(outcome: Result<Response<T>, Status>) -> Result<(), Status> {
        outcome.map(drop)
    }
    let mut client = operator(house).await;
    vec![
        plain(client.get_coordinator(with(text, v1::GetCoordinatorRequest {})).await),
        plain(client.submit(with(text, submission(1))).await),
        plain(client.list_runs(with(text, v1::ListRunsRequest {})).await),
        plain(client.get_run(with(text, v1::GetRunRequest { run })).await),
        plain(client.set_run_state(with(text, change(run, v1::RunState::Paused))).await),
        plain(client.retry_quarantined(with(text, v1::RetryQuarantinedRequest { run })).await),
        plain(client.list_workers(with(text, v1::ListWorkersRequest {})).await),
        plain(client.drain_worker(with(text, v1::DrainWorkerRequest { worker_id: 1 })).await),
        plain(client.watch_progress(with(text, watching(run, 200))).await),
    ]
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
    let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap().id.get();
    let before = ledger.everything().await;
    let wrong = [
        (None, Code::Unauthenticated),
        (Some("the-token-of-unauthenticated"), Code::Unauthenticated),
        (Some("the-token-of-operatorz"), Code::Unauthenticated),
    ];
    for (text, code) in wrong.into_iter().chain([(Some(WORKER), Code::PermissionDenied)]) {
        let outcomes = operators_calls(&house, text, run).await;
        assert_eq!(codes(&outcomes), [code; 9], "{text:?}");
        assert!(!format!("{outcomes:?}").contains("the-token-of"), "{outcomes:?}");
    }
    for (text, code) in wrong.into_iter().chain([(Some(OPERATOR), Code::PermissionDenied)]) {
        assert_eq!(codes(&workers_calls(&house, text).await), [code; 2], "{text:?}");
    }
    // A token is looked at before the message.
    let oversized = v1::SubmitRequest { plan: "x".repeat(MESSAGE_BYTES_MAX), ..submission(1) };
    let refusal = operator(&house).await.submit(with(None, oversized)).await.unwrap_err();
    assert_eq!(refusal.code(), Code::Unauthenticated);
    assert_eq!(ledger.everything().await, before, "no call that was refused left a trace");

    // Whether it is well, anybody may ask.
    let mut health = HealthClient::new(house.channel().await);
    for service in ["", "nqueens.v1.WorkerService", "nqueens.v1.OperatorService"] {
        let asked = HealthCheckRequest { service: service.to_owned() };
        let answer = health.check(asked).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "{service}");
    }
    assert_eq!(codes(&workers_calls(&house, Some(WORKER)).await), [Code::Ok; 2]);
    assert_eq!(codes(&operators_calls(&house, Some(OPERATOR), run).await), [Code::Ok; 9]);
    house.close().await;
    ledger.audit().await;
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
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy::default()).await;
    let silent = tokio::net::TcpStream::connect(house.address()).await.unwrap();
    let mut health = HealthClient::new(house.channel().await);
    let open = health.watch(HealthCheckRequest::default()).await.unwrap();
    let closing = tokio::time::timeout(Duration::from_mins(1), house.close());
    closing.await.expect("it cuts off what does not end");
    drop((silent, open));
    ledger.audit().await;
}

#[tokio::test]
async fn what_happens_is_told() {
    let ledger = Ledger::new();
    // Whoever is not heard of for a quarter of a second is lost; a run that nobody counts for so long stalls.
    let policy = Policy { lease_ms: 250, stall_ms: 250, ..Policy::default() };
    let house = House::open(&ledger.path, policy).await;
    let mut client = operator(&house).await;
    let run = submitted(&mut client, 1).await.run;
    let told = async |after: u64, wanted: v1::EventKind| {
        let mut events = house.coordinator.operator().events();
        let is_it = |event: &Event| event.number > after && v1::EventKind::from(event.kind) == wanted;
        drop(events.wait_for(|events| events.iter().any(is_it)).await.unwrap());
        let mut client = operator(&house).await;
        let events = client.list_events(v1::ListEventsRequest { after }).await.unwrap().into_inner().events;
        events.into_iter().find(|event| event.kind() == wanted).unwrap()
    };
    let planned = told(0, v1::EventKind::RunPlanned).await;
    assert_eq!((planned.number, planned.run, &*planned.text), (1, run, "N = 8: planned, 8 jobs."));
    let stalled = told(1, v1::EventKind::RunStalled).await;
    assert_eq!((stalled.number, stalled.run), (2, run));

    let mut worker = house.worker(1).await;
    let leases = worker.take(2).await;
    let lost = told(2, v1::EventKind::WorkerLost).await;
    assert_eq!(lost.worker_id, worker.id);
    assert!(
        lost.text.starts_with(&format!("Worker {} sent no heartbeat in time: ", worker.id)),
        "{}",
        lost.text
    );
    // Late results are taken; another one for the same job that differs quarantines it.
    let result = honest(&leases[0]);
    worker.report(std::slice::from_ref(&result)).await;
    worker.report(&[falsified(&result)]).await;
    let quarantined = told(lost.number, v1::EventKind::JobsQuarantined).await;
    assert_eq!(quarantined.run, run);
    let job = leases[0].token.unwrap().job;
    let what = format!("N = 8: job {}/{job} is quarantined", RunId::new(run).unwrap());
    assert!(quarantined.text.starts_with(&what), "{} instead of {what}", quarantined.text);
    client.retry_quarantined(v1::RetryQuarantinedRequest { run }).await.unwrap();
    worker.count_all().await;
    let done = told(quarantined.number, v1::EventKind::RunDone).await;
    assert_eq!(done.text, "N = 8: done, TOTAL 92: equal to the published count.");
    let after = v1::ListEventsRequest { after: done.number };
    assert!(client.list_events(after).await.unwrap().into_inner().events.is_empty());
    house.close().await;
}
