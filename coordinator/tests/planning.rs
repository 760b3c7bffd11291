//! Runs that are planned, over real sockets: seen, cancelled, refused where they are too large, and dropped where the disk
//! gets short.

mod common;

use common::{House, Ledger, board, change, operator, submission, submitted, watching};
use nqueens_coordinator::request::Expire;
use nqueens_coordinator::{Coordinator, Policy, Reader, Room, Timing};
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_model::id::RunId;
use nqueens_model::operator::RunState;
use nqueens_proto::v1;
use nqueens_proto::v1::operator_service_client::OperatorServiceClient;
use tonic::Code;
use tonic::transport::Channel;

/// Far more jobs than can be planned while a test looks on.
fn large(request: u8) -> v1::SubmitRequest {
    v1::SubmitRequest { n: 18, states_per_job: 1_000, ..submission(request) }
}

async fn get(client: &mut OperatorServiceClient<Channel>, run: u64) -> Result<v1::Run, tonic::Status> {
    let answer = client.get_run(v1::GetRunRequest { run }).await?;
    Ok(answer.into_inner().run.unwrap())
}

#[tokio::test]
async fn a_run_is_seen_while_it_is_planned_and_cancelled() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy::default()).await;
    let mut client = operator(&house).await;
    let run = client.submit(large(1)).await.unwrap().into_inner().run.unwrap();
    let seen = run.progress.clone().unwrap();
    assert_eq!((seen.state(), seen.done, seen.share_done), (v1::RunState::Planning, 0, 0.0));
    assert!(seen.planned.unwrap() >= 5_000 && seen.jobs > 15_000_000, "{seen:?}");
    assert_eq!((run.fingerprint.len(), run.plan.as_str()), (0, "rows"));
    let id = seen.run;

    // It goes on, and everybody sees it.
    let later = loop {
        let now = get(&mut client, id).await.unwrap().progress.unwrap();
        if now.planned > seen.planned {
            break now;
        }
    };
    let mut pictures = client.watch_progress(watching(id, 200)).await.unwrap().into_inner();
    let picture = pictures.message().await.unwrap().unwrap().runs.remove(0);
    assert!(picture.state() == v1::RunState::Planning && picture.planned.unwrap() >= 5_000, "{picture:?}");
    let listed = client.list_runs(v1::ListRunsRequest {}).await.unwrap().into_inner().runs;
    assert!(listed.len() == 1 && listed[0].progress.as_ref().unwrap().planned >= later.planned, "{listed:?}");
    let reader = Reader::open(&ledger.path).await.unwrap();
    let stored = reader.unplanned_runs().await.unwrap()[0].status();
    assert_eq!((stored.progress.run.get(), stored.progress.jobs), (id, seen.jobs));
    assert!(stored.progress.planned >= later.planned, "{stored:?}");
    assert!(house.worker(1).await.take(8).await.is_empty(), "no job leaves before all are stored");

    // The same request finds it, another one waits for it, and neither can be paused.
    let again = client.submit(large(1)).await.unwrap().into_inner().run.unwrap();
    assert_eq!(again.progress.unwrap().run, id);
    let reused = v1::SubmitRequest { n: 17, ..large(1) };
    assert_eq!(client.submit(reused).await.unwrap_err().code(), Code::AlreadyExists);
    let waiting = client.submit(submission(2)).await.unwrap().into_inner().run.unwrap().progress.unwrap();
    assert_eq!((waiting.state(), waiting.planned), (v1::RunState::Planning, Some(0)));
    for run in [id, waiting.run] {
        let refusal = client.set_run_state(change(run, v1::RunState::Paused)).await.unwrap_err();
        assert_eq!(refusal.code(), Code::FailedPrecondition);
        assert!(refusal.message().ends_with("is being planned; wait for its end, or cancel it"));
    }

    let cancelled = client.set_run_state(change(id, v1::RunState::Cancelled)).await.unwrap().into_inner();
    let cancelled = cancelled.run.unwrap();
    assert!(cancelled.fingerprint.is_empty());
    let progress = cancelled.progress.unwrap();
    assert_eq!((progress.state(), progress.planned), (v1::RunState::Cancelled, None));
    let gone = get(&mut client, id).await.unwrap_err();
    assert_eq!(gone.code(), Code::Aborted);
    assert!(gone.message().ends_with("was cancelled while it was being planned; nothing of it is kept"));
    // The next one's turn comes when all of it is removed.
    house.wait_for(RunId::new(waiting.run).unwrap(), |run| run.state == RunState::Active).await;
    assert_eq!(ledger.ask("SELECT id FROM run").await, [waiting.run.to_string()]);
    assert_eq!(ledger.ask("SELECT count(*) FROM job").await, ["8"]);
    house.worker(1).await.count_all().await;
    house.wait_for(RunId::new(waiting.run).unwrap(), |run| run.state == RunState::Done).await;

    // The same request begins again.
    let again = client.submit(large(1)).await.unwrap().into_inner().run.unwrap().progress.unwrap();
    assert_eq!((again.run, again.state()), (id, v1::RunState::Planning));
    house.close().await;
    let house = House::open(&ledger.path, Policy::default()).await;
    let mut client = operator(&house).await;
    assert_eq!(get(&mut client, id).await.unwrap_err().code(), Code::NotFound, "a restart drops it");
    assert_eq!(ledger.ask("SELECT count(*) FROM job").await, ["8"]);
    house.close().await;
    ledger.audit().await;
}

#[tokio::test]
async fn runs_that_wait_to_be_planned_are_few_and_can_be_cancelled() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy::default()).await;
    let mut client = operator(&house).await;
    let mut runs = Vec::new();
    for request in 1..=16 {
        runs.push(
            client.submit(large(request)).await.unwrap().into_inner().run.unwrap().progress.unwrap().run,
        );
    }
    let refusal = client.submit(large(17)).await.unwrap_err();
    assert_eq!(refusal.code(), Code::ResourceExhausted);
    assert!(refusal.message().starts_with("16 runs are being planned or wait for it"), "{refusal}");
    // The last ones first: those have not begun.
    for run in runs.iter().rev() {
        client.set_run_state(change(*run, v1::RunState::Cancelled)).await.unwrap();
    }
    assert_eq!(client.list_runs(v1::ListRunsRequest {}).await.unwrap().into_inner().runs, []);
    let run = submitted(&mut client, 18).await.run;
    house.wait_for(RunId::new(run).unwrap(), |run| run.state == RunState::Active).await;
    assert_eq!(ledger.ask("SELECT count(*) FROM run").await, ["1"]);
    house.close().await;
    ledger.audit().await;
}

/// A coordinator that takes plans of so many jobs.
async fn limited(ledger: &Ledger, jobs_max: u32) -> House {
    let pace = Timing { jobs_max, ..Timing::default() };
    House::on(Coordinator::open(&ledger.path, pace, "test 1.0").await.unwrap()).await
}

#[tokio::test]
async fn a_plan_of_too_many_jobs_is_refused() {
    let ledger = Ledger::new();
    let plan = Plan::with_states_per_job(board(13), PlanKind::Border, 1_000);
    let (jobs, size) = (u32::try_from(plan.jobs().count()).unwrap(), plan.size());
    let submission = |request| v1::SubmitRequest {
        n: 13,
        plan: "border".to_owned(),
        states_per_job: 1_000,
        ..submission(request)
    };
    // Before it is planned, by arithmetic; and where that can't tell, at the first job too many.
    assert!(size.at_least > 2 && size.at_least < u128::from(jobs));
    let few = u32::try_from(size.at_least).unwrap() - 1;
    for (request, jobs_max) in [(1, 1), (2, few), (3, few + 1), (4, jobs - 1)] {
        let house = limited(&ledger, jobs_max).await;
        let refusal = operator(&house).await.submit(submission(request)).await.unwrap_err();
        assert_eq!(refusal.code(), Code::InvalidArgument);
        let said = format!(
            "the plan has about {} jobs, more than --jobs-max {jobs_max} allows; give a larger --job-states, such as ",
            size.about.max(jobs.into())
        );
        let advice = refusal.message().strip_prefix(&said).unwrap_or_else(|| panic!("{refusal}"));
        if jobs_max > 100 {
            let better =
                v1::SubmitRequest { states_per_job: advice.parse().unwrap(), ..submission(request + 10) };
            operator(&house).await.submit(better).await.expect("good advice");
        }
        house.close().await;
    }
    let house = limited(&ledger, jobs).await;
    let run = operator(&house).await.submit(submission(5)).await.unwrap().into_inner().run.unwrap();
    assert_eq!(run.progress.unwrap().jobs, jobs);
    house.close().await;
    // Endless ones, with the limit that is there unless somebody sets another.
    let house = House::open(&ledger.path, Policy::default()).await;
    for (request, plan) in (20..).zip(["rows", "border", "colours"]) {
        let endless =
            v1::SubmitRequest { n: 31, plan: plan.to_owned(), states_per_job: 1, ..submission(request) };
        let refusal = operator(&house).await.submit(endless).await.unwrap_err();
        assert_eq!(refusal.code(), Code::InvalidArgument, "{plan}: {refusal}");
    }
    house.close().await;
    ledger.audit().await;
}

/// A number of pages of the database's file.
async fn pages(ledger: &Ledger, which: &str) -> u32 {
    ledger.ask(&format!("SELECT {which} FROM pragma_{which}")).await[0].parse().unwrap()
}

#[tokio::test]
async fn planning_ends_where_the_disk_gets_short_and_leaves_nothing() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy::default()).await;
    let mut client = operator(&house).await;
    for request in 1..=2 {
        let run =
            client.submit(large(request)).await.unwrap().into_inner().run.unwrap().progress.unwrap().run;
        while get(&mut client, run).await.unwrap().progress.unwrap().planned < Some(50_000) {}
        let gone = loop {
            // As seen by who watches a disk. Nobody here does, and says so every second.
            let room = Some(Room { free: 1, reserve: 2, is_short: true });
            house.coordinator.operator().ask(Expire { room }).await.unwrap();
            if let Err(gone) = get(&mut client, run).await {
                break gone;
            }
        };
        assert_eq!(gone.code(), Code::Unavailable);
        assert!(gone.message().contains("less free space than its --disk-reserve"), "{gone}");
        house.coordinator.operator().ask(Expire { room: None }).await.unwrap();
        // Its turn comes after all of the other one is gone.
        let next = submitted(&mut client, request + 10).await.run;
        house.wait_for(RunId::new(next).unwrap(), |run| run.state == RunState::Active).await;
        let planned = u32::from(request);
        assert_eq!(ledger.ask("SELECT count(*) FROM run").await, [planned.to_string()]);
        assert_eq!(ledger.ask("SELECT count(*) FROM job").await, [(8 * planned).to_string()]);
        let free = pages(&ledger, "freelist_count").await;
        assert!(
            free > 1_000 && pages(&ledger, "page_count").await - free < 200,
            "nothing stays of it: {free} pages are free"
        );
    }
    // What was free is used again.
    let before = pages(&ledger, "page_count").await;
    let smaller = v1::SubmitRequest { n: 15, states_per_job: 1_000, ..submission(20) };
    let run = client.submit(smaller).await.unwrap().into_inner().run.unwrap().progress.unwrap().run;
    let run = house.wait_for(RunId::new(run).unwrap(), |run| run.state == RunState::Active).await;
    assert!(run.jobs > 20_000 && pages(&ledger, "page_count").await == before, "{run:?}");
    house.close().await;
    ledger.audit().await;
}
