//! Requests that affect each other in one transaction, and one that the ledger can't bear.

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::Counts;
use nqueens_kernel::engine::Kernel;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_model::credential::Credential;
use nqueens_model::message::{JobResult, Registration, Session, SyncRequest, Verdict, Wanted};
use nqueens_model::operator::Submission;
use nqueens_scheduler::request::{Sync, Synced, register, retry_quarantined};
use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection, Executor};

use super::*;

/// A worker that has registered.
async fn worker(writer: &Handle, number: u8) -> Session {
    let registration = Registration {
        instance: [number; 16],
        name: format!("worker {number}"),
        build: "test".to_owned(),
        kernels: vec![Kernel::Reference.into()],
        capability: None,
        threads: 1,
    };
    let register = register(registration, Credential::shared(), [number; 16]);
    writer.ask(register).await.expect("a session")
}

fn sync(session: Session, results: Vec<JobResult>, wanted_jobs: usize) -> Sync {
    let (held, returned) = (Vec::new(), Vec::new());
    let wanted = Wanted::new(wanted_jobs as u64, wanted_jobs);
    let faults = Vec::new();
    let sync = SyncRequest { session, results, held, returned, wanted, leaving: false, faults };
    Sync { sync, credential: Credential::shared() }
}

fn verdict(answer: Result<Option<Synced>, Arc<Error>>) -> Verdict {
    answer.expect("a commit").expect("a worker that has registered").acks[0].verdict
}

/// A second count that differs, the word to open the job again, and a result of that: all in one transaction.
#[tokio::test]
async fn a_result_disputed_and_voided_at_once_stands_for_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ledger.db");
    let coordinator = Coordinator::open(&path, Timing::default(), "test").await.expect("a new database");
    let plan = Plan::new(BoardSize::new(8).expect("a board"), PlanKind::Rows);
    let twice = Submission { request: [7; 16], plan, priority: 0, replicate_ppm: 1_000_000 };
    let run = coordinator.operator().submit_once(twice).await.expect("a run").id;
    let writer = coordinator.operator().writer.clone();
    let [one, two] = [worker(&writer, 1).await, worker(&writer, 2).await];
    let result = |token, count8| JobResult {
        token,
        counts: Counts::only8(count8),
        parts: Vec::new(),
        kernel: Kernel::Reference.into(),
        states: 1,
        elapsed_us: 1,
        cpu_us: None,
    };
    let take = async |session| {
        let answer = writer.ask(sync(session, vec![], 1)).await.expect("a commit");
        answer.expect("it has registered").granted[0].token
    };
    let first = take(one).await;
    let accepted = writer.ask(sync(one, vec![result(first, 0)], 0)).await;
    assert_eq!(verdict(accepted), Verdict::Accepted);
    let second = take(two).await;
    assert_eq!(second.job, first.job);
    // None of them waits before all have asked, so that the writer takes them together.
    let (differing, _, again) = tokio::join!(
        writer.ask(sync(two, vec![result(second, 1)], 0)),
        writer.ask(retry_quarantined(run)),
        writer.ask(sync(two, vec![result(second, 1)], 0)),
    );
    assert_eq!(
        [verdict(differing), verdict(again)],
        [Verdict::Conflict, Verdict::Accepted],
        "it was open again"
    );
    coordinator.close().await;
    Coordinator::open(&path, Timing::default(), "test").await.expect("a sound database").close().await;
}

/// Rather no coordinator than one that does not know its own ledger.
#[tokio::test]
async fn a_writer_that_breaks_off_is_a_fault() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ledger.db");
    let coordinator = Coordinator::open(&path, Timing::default(), "test").await.expect("a new database");
    let plan = Plan::new(BoardSize::new(8).expect("a board"), PlanKind::Rows);
    coordinator.operator().submit(plan, 0).await.expect("a run");
    let writer = coordinator.operator().writer.clone();
    let worker = worker(&writer, 1).await;
    let mut other = SqliteConnection::connect(path.to_str().expect("text")).await.expect("a database");
    other.execute("PRAGMA foreign_keys = OFF; DELETE FROM job").await.expect("a job");
    other.close().await.expect("closed");
    let answer = writer.ask(sync(worker, vec![], 8)).await;
    assert!(matches!(*answer.expect_err("the jobs are gone"), Error::WriterFailed(_)));
    let mut faults = coordinator.faults();
    let broken = |fault: &Option<Arc<Error>>| matches!(fault.as_deref(), Some(Error::WriterFailed(_)));
    faults.wait_for(broken).await.expect("the coordinator is there");
    let answer = writer.ask(sync(worker, vec![], 8)).await;
    assert!(matches!(*answer.expect_err("nobody keeps the ledger"), Error::ShuttingDown));
    coordinator.close().await;
}
