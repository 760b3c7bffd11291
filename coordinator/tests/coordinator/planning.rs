//! Runs that are planned, over real sockets: seen, cancelled, refused where they are too large, and dropped where the disk
//! gets short.

use crate::common::{House, Ledger, Operators, board, operator, refusal, submission};
use nqueens_coordinator::request::expire;
use nqueens_coordinator::{Access, Policy, Reader, Timing};
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_model::operator::{DiskRoom, Progress, RunState, Submission};

/// Plan `rows` with jobs of 1,000 states.
fn fine(request: u8, n: u32) -> Submission {
    let plan = Plan::with_states_per_job(board(n), PlanKind::Rows, 1_000);
    Submission { plan, ..submission(request) }
}

/// Far more jobs than can be planned while a test looks on.
fn large(request: u8) -> Submission {
    fine(request, 18)
}

async fn submit(client: &Operators, submission: Submission) -> Progress {
    client.submit(submission).await.unwrap().progress
}

#[tokio::test]
async fn a_run_is_seen_while_it_is_planned_and_cancelled() {
    let (ledger, house) = House::fresh().await;
    let client = operator(&house).await;
    let run = client.submit(large(1)).await.unwrap();
    let seen = &run.progress;
    assert_eq!((seen.state, seen.done), (RunState::Planning, 0));
    assert!(seen.planned.unwrap() >= 5_000 && seen.jobs > 15_000_000, "{seen:?}");
    assert_eq!((run.fingerprint, seen.plan.kind()), (None, PlanKind::Rows));
    let id = seen.run;

    // It goes on, and everybody sees it.
    let later = loop {
        let now = client.run(id).await.unwrap().progress;
        if now.planned > seen.planned {
            break now;
        }
    };
    let listed = client.runs().await;
    assert!(listed.len() == 1 && listed[0].progress.planned >= later.planned, "{listed:?}");
    let reader = Reader::open(&ledger.path).await.unwrap();
    let stored = reader.unplanned_runs().await.unwrap()[0].status();
    assert_eq!((stored.progress.run, stored.progress.jobs), (id, seen.jobs));
    assert!(stored.progress.planned >= later.planned, "{stored:?}");
    assert!(house.worker(1).await.take(8).await.is_empty(), "no job leaves before all are stored");

    // The same request finds it, another one waits for it, and neither can be paused.
    assert_eq!(submit(&client, large(1)).await.run, id);
    assert_eq!(refusal(client.submit(fine(1, 17)).await.unwrap_err()).0, 409);
    let waiting = submit(&client, submission(2)).await;
    assert_eq!((waiting.state, waiting.planned), (RunState::Planning, Some(0)));
    for run in [id, waiting.run] {
        let (status, words) = refusal(client.set(run, RunState::Paused).await.unwrap_err());
        assert_eq!(status, 409);
        assert!(words.ends_with("is being planned; wait for its end, or cancel it"), "{words}");
    }

    let cancelled = client.set(id, RunState::Cancelled).await.unwrap();
    assert_eq!(cancelled.fingerprint, None);
    assert_eq!((cancelled.progress.state, cancelled.progress.planned), (RunState::Cancelled, None));
    let (status, words) = refusal(client.run(id).await.unwrap_err());
    assert_eq!(status, 410);
    assert!(words.ends_with("was cancelled while it was being planned; nothing of it is kept"), "{words}");
    // The next one's turn comes when all of it is removed.
    house.wait_for(waiting.run, |run| run.state == RunState::Active).await;
    assert_eq!(ledger.ask("SELECT id FROM run").await, [waiting.run.get().to_string()]);
    assert_eq!(ledger.ask("SELECT count(*) FROM job").await, ["8"]);
    house.worker(1).await.count_all().await;
    house.wait_for(waiting.run, |run| run.state == RunState::Done).await;

    // The same request begins again.
    let again = submit(&client, large(1)).await;
    assert_eq!((again.run, again.state), (id, RunState::Planning));
    house.close().await;
    let house = House::open(&ledger.path, Policy::default()).await;
    let client = operator(&house).await;
    assert_eq!(refusal(client.run(id).await.unwrap_err()).0, 404, "a restart drops it");
    assert_eq!(ledger.ask("SELECT count(*) FROM job").await, ["8"]);
    house.end(&ledger).await;
}

#[tokio::test]
async fn runs_that_wait_to_be_planned_are_few_and_can_be_cancelled() {
    let (ledger, house) = House::fresh().await;
    let client = operator(&house).await;
    let mut runs = Vec::new();
    for request in 1..=16 {
        runs.push(submit(&client, large(request)).await.run);
    }
    let (status, words) = refusal(client.submit(large(17)).await.unwrap_err());
    assert_eq!(status, 429);
    assert!(words.starts_with("16 runs are being planned or wait for it"), "{words}");
    // The last ones first: those have not begun.
    for run in runs.iter().rev() {
        client.set(*run, RunState::Cancelled).await.unwrap();
    }
    assert_eq!(client.runs().await, []);
    let run = submit(&client, submission(18)).await.run;
    house.wait_for(run, |run| run.state == RunState::Active).await;
    assert_eq!(ledger.ask("SELECT count(*) FROM run").await, ["1"]);
    house.end(&ledger).await;
}

/// A coordinator that takes plans of so many jobs.
async fn limited(ledger: &Ledger, jobs_max: u32) -> House {
    let pace = Timing { jobs_max, ..Timing::default() };
    House::timed(&ledger.path, pace, &Access::default()).await
}

#[tokio::test]
async fn a_plan_of_too_many_jobs_is_refused() {
    let ledger = Ledger::new();
    let plan = Plan::with_states_per_job(board(13), PlanKind::Border, 1_000);
    let (jobs, size) = (u32::try_from(plan.jobs().count()).unwrap(), plan.size());
    let submission = |request| Submission { plan, ..submission(request) };
    // Before it is planned, by arithmetic; and where that can't tell, at the first job too many.
    assert!(size.at_least > 2 && size.at_least < u128::from(jobs));
    let few = u32::try_from(size.at_least).unwrap() - 1;
    for (request, jobs_max) in [(1, 1), (2, few), (3, few + 1), (4, jobs - 1)] {
        let house = limited(&ledger, jobs_max).await;
        let (status, words) = refusal(operator(&house).await.submit(submission(request)).await.unwrap_err());
        assert_eq!(status, 422);
        let said = format!(
            "the plan has about {} jobs, more than --jobs-max {jobs_max} allows; give a larger --job-states, such as ",
            size.about.max(jobs.into())
        );
        let advice = words.strip_prefix(&said).unwrap_or_else(|| panic!("{words}"));
        if jobs_max > 100 {
            let plan = Plan::with_states_per_job(plan.n(), plan.kind(), advice.parse().unwrap());
            let better = Submission { plan, ..submission(request + 10) };
            operator(&house).await.submit(better).await.expect("good advice");
        }
        house.close().await;
    }
    let house = limited(&ledger, jobs).await;
    assert_eq!(submit(&operator(&house).await, submission(5)).await.jobs, jobs);
    house.close().await;
    // Endless ones, with the limit that is there unless somebody sets another.
    let house = House::open(&ledger.path, Policy::default()).await;
    for (request, plan) in (20..).zip(PlanKind::ALL) {
        let endless = Plan::with_states_per_job(board(31), plan, 1);
        let endless = Submission { plan: endless, ..submission(request) };
        let (status, words) = refusal(operator(&house).await.submit(endless).await.unwrap_err());
        assert_eq!(status, 422, "{plan}: {words}");
    }
    house.end(&ledger).await;
}

/// A number of pages of the database's file.
async fn pages(ledger: &Ledger, which: &str) -> u32 {
    ledger.ask(&format!("SELECT {which} FROM pragma_{which}")).await[0].parse().unwrap()
}

#[tokio::test]
async fn planning_ends_where_the_disk_gets_short_and_leaves_nothing() {
    let (ledger, house) = House::fresh().await;
    let client = operator(&house).await;
    for request in 1..=2 {
        let run = submit(&client, large(request)).await.run;
        while client.run(run).await.unwrap().progress.planned < Some(50_000) {}
        let gone = loop {
            // As seen by who watches a disk. Nobody here does, and says so every second.
            let room = Some(DiskRoom { free_bytes: 1, reserve_bytes: 2, is_short: true });
            house.coordinator.operator().ask(expire(room)).await.unwrap();
            if let Err(gone) = client.run(run).await {
                break gone;
            }
        };
        let (status, words) = refusal(gone);
        assert_eq!(status, 503);
        assert!(words.contains("less free space than its --disk-reserve"), "{words}");
        house.coordinator.operator().ask(expire(None)).await.unwrap();
        // Its turn comes after all of the other one is gone.
        let next = submit(&client, submission(request + 10)).await.run;
        house.wait_for(next, |run| run.state == RunState::Active).await;
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
    let run = submit(&client, fine(20, 15)).await.run;
    let run = house.wait_for(run, |run| run.state == RunState::Active).await;
    assert!(run.jobs > 20_000 && pages(&ledger, "page_count").await == before, "{run:?}");
    house.end(&ledger).await;
}
