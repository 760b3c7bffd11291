//! Messages arrive as sent, and what no honest peer sends is refused.

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::Totals;
use nqueens_kernel::plan::{Fingerprint, Plan, PlanKind};
use nqueens_kernel::variant::{Cell, Cells, Variant};
use nqueens_model::credential::Credential;
use nqueens_model::id::{RunId, WorkerId};
use nqueens_model::operator::{
    Blamed, CheckCounts, Checked, Event, EventKind, Grounds, Interval, Moment, Outcome, Progress, Recounts,
    RunDetail, RunState, RunStatus, Speed, Submission, TotalEstimate, WorkerStatus,
};

use super::variant;
use crate::v1;

fn board(n: u32) -> BoardSize {
    BoardSize::new(n).expect("in range")
}

/// Of a board with as many cells as there can be.
fn cells() -> Plan {
    let queen = Cell { row: 30, column: 7 };
    let cells = Cells::open(board(31)).with_queen(queen).expect("alone");
    Plan::of_variant_with(Variant::Cells(cells), 1_000)
}

fn done() -> RunStatus {
    let n = board(27);
    RunStatus {
        progress: Progress {
            run: RunId::from_random(0xabc),
            n,
            state: RunState::Done,
            jobs: 7,
            planned: None,
            done: 4,
            leased: 2,
            quarantined: 1,
            share_done: 0.5,
            states: u128::MAX,
            estimated_states: u128::MAX - 2,
            estimated_total: Some(Interval { value: 5.0, low: 0.0, high: 1e40 }),
            speed: Some(Speed { threads: 1.5, states_per_s: 1e9 }),
            time_left_s: Some(Interval { value: 0.25, low: 0.25, high: 0.25 }),
            checks: CheckCounts { open: 1, agreed: 2, settled: 3, unmade: 4, confirmed: 5, recounted: 6 },
            workers: Some(3),
        },
        plan: Plan::with_states_per_job(n, PlanKind::Border, 1_000),
        fingerprint: Some(Fingerprint([7; 32])),
        priority: -3,
        replicate_ppm: 10_000,
        reason: None,
        created_at: 1,
        started_at: Some(2),
        finished_at: Some(3),
        recounts: Recounts { agreed: 5, differing: 1, elapsed_us: 1 << 40 },
        outcome: Some(Outcome {
            totals: Totals { count2: 1, count4: 2, count8: u128::MAX, solutions: 0 },
            total: u128::MAX - 1,
            checked: Checked::Symmetric,
            grounds: Some(Grounds {
                estimate: TotalEstimate { seed: u64::MAX, strata: 10_000, value: u128::MAX, reach: 1 << 100 },
                checks_wanted: 300,
                recounts_wanted: 60,
            }),
        }),
    }
}

#[test]
fn what_is_sent_arrives() {
    assert_eq!(RunStatus::try_from(v1::Run::from(done())), Ok(done()));
    let progress = Progress { state: RunState::Planning, planned: Some(7), ..done().progress };
    let planning = RunStatus {
        progress,
        fingerprint: None,
        started_at: None,
        finished_at: None,
        outcome: None,
        ..done()
    };
    assert_eq!(RunStatus::try_from(v1::Run::from(planning.clone())), Ok(planning));
    for state in RunState::ALL {
        assert_eq!(variant("state", v1::RunState::from(*state)), Ok(*state));
    }
    let submission =
        Submission { request: *b"12345678abcdefgh", plan: done().plan, priority: 7, replicate_ppm: 9 };
    for plan in [done().plan, cells(), Plan::new(board(31), PlanKind::Torus)] {
        let submission = Submission { plan, ..submission };
        assert_eq!(Submission::try_from(v1::SubmitRequest::from(submission)), Ok(submission));
    }
    assert_eq!(submission.seed(), u64::from_be_bytes(*b"abcdefgh"));
    let worker = WorkerStatus {
        id: WorkerId::new(7).expect("in range"),
        name: "west".to_owned(),
        credential: Credential::named("lab").expect("a name"),
        build: "1".to_owned(),
        kernels: vec!["scalar".to_owned()],
        device: "abacus".to_owned(),
        threads: 2,
        present: true,
        registered_at: 3,
        silent_ms: 4,
        leases: 5,
        states_per_s: Some(6.5),
        accepted: 8,
        draining: true,
        checks_passed: 9,
        checks_failed: 10,
        distrusted: Some("wrong".to_owned()),
    };
    for blamed in [Blamed::Job(0), Blamed::Worker(worker.id)] {
        let run = done().progress.run;
        assert_eq!(v1::RequeueRequest::from((run, blamed)).subject(), Ok((run, blamed)));
    }
    assert_eq!(WorkerStatus::try_from(v1::WorkerStatus::from(worker.clone())), Ok(worker));
}

#[test]
fn events_of_every_kind_arrive() {
    let run = RunId::new(7);
    for (kind, worker) in EventKind::ALL.iter().zip([None, WorkerId::new(3)].into_iter().cycle()) {
        let event = Event { number: 5, at: 1_000, kind: *kind, run, worker, text: "It rained.".to_owned() };
        assert_eq!(Event::try_from(v1::Event::from(event.clone())), Ok(event));
    }
    let unknown = v1::Event { kind: 99, ..v1::Event::default() };
    assert_eq!(Event::try_from(unknown).unwrap_err().field, "kind");
}

#[test]
fn moments_arrive() {
    let known = Some(Interval { value: 2.0, low: 1.0, high: 3.0 });
    let moment = Moment { at: 5, share_done: 0.25, states_per_s: 1e9, total: known };
    let wire = v1::Moment::from(moment);
    assert_eq!(Moment::try_from(wire), Ok(moment));
    let detail = RunDetail { moments: vec![moment], being_counted: Some(3), cpu_us: Some(u64::MAX) };
    assert_eq!(RunDetail::try_from(v1::GetHistoryResponse::from(detail.clone())), Ok(detail));
    let refused = |wire: v1::Moment| Moment::try_from(wire).unwrap_err().field;
    assert_eq!(refused(v1::Moment { share_done: 1.5, ..wire }), "share_done");
    assert_eq!(refused(v1::Moment { states_per_s: f64::NAN, ..wire }), "states_per_s");
    let upside_down = v1::Estimate { value: 2.0, low: 3.0, high: 1.0 };
    assert_eq!(refused(v1::Moment { estimated_total: Some(upside_down), ..wire }), "estimated_total");
}

#[test]
fn boards_that_are_none_are_refused() {
    let submission = Submission { request: [7; 16], plan: cells(), priority: 0, replicate_ppm: 0 };
    let wire = || v1::SubmitRequest::from(submission);
    let wrong = [
        v1::SubmitRequest { cells: String::new(), ..wire() },
        v1::SubmitRequest { plan: "border".to_owned(), ..wire() },
        v1::SubmitRequest { plan: "torus".to_owned(), ..wire() },
        v1::SubmitRequest { n: 30, ..wire() },
        v1::SubmitRequest { cells: "Q.\n.Q".to_owned(), n: 2, ..wire() },
        v1::SubmitRequest { cells: " ".repeat(1_025), ..wire() },
        v1::SubmitRequest { cells: "é".to_owned(), n: 1, ..wire() },
    ];
    for wire in wrong {
        assert_eq!(Submission::try_from(wire.clone()).expect_err("no board").field, "cells", "{wire:?}");
    }
}

#[test]
fn what_no_honest_peer_sends_is_refused() {
    let run = || v1::Run::from(done());
    let progress = || v1::RunProgress::from(done().progress);
    let with = |progress| v1::Run { progress: Some(progress), ..run() };
    let estimate = |value, low, high| Some(v1::Estimate { value, low, high });
    let result = || run().result.expect("done");
    let wrong = [
        ("progress", v1::Run { progress: None, ..run() }),
        ("run", with(v1::RunProgress { run: 1 << 48, ..progress() })),
        ("n", with(v1::RunProgress { n: 32, ..progress() })),
        ("state", with(v1::RunProgress { state: 99, ..progress() })),
        ("jobs", with(v1::RunProgress { jobs: 6, ..progress() })),
        ("planned", with(v1::RunProgress { planned: Some(7), ..progress() })),
        ("planned", with(v1::RunProgress { state: v1::RunState::Planning.into(), ..progress() })),
        (
            "planned",
            with(v1::RunProgress { state: v1::RunState::Planning.into(), planned: Some(8), ..progress() }),
        ),
        ("share_done", with(v1::RunProgress { share_done: f64::NAN, ..progress() })),
        ("workers", with(v1::RunProgress { workers: Some(0), ..progress() })),
        ("states", with(v1::RunProgress { states: "+1".to_owned(), ..progress() })),
        ("estimated_states", with(v1::RunProgress { estimated_states: String::new(), ..progress() })),
        ("estimated_total", with(v1::RunProgress { estimated_total: estimate(5.0, 6.0, 7.0), ..progress() })),
        ("time_left_s", with(v1::RunProgress { time_left_s: estimate(f64::NAN, 0.0, 1.0), ..progress() })),
        (
            "time_left_s",
            with(v1::RunProgress { time_left_s: estimate(1.0, 0.0, f64::INFINITY), ..progress() }),
        ),
        (
            "speed",
            with(v1::RunProgress {
                speed: Some(v1::Speed { threads: -1.0, states_per_s: 0.0 }),
                ..progress()
            }),
        ),
        ("plan", v1::Run { plan: "luck".to_owned(), ..run() }),
        ("states_per_job", v1::Run { states_per_job: 0, ..run() }),
        ("fingerprint", v1::Run { fingerprint: vec![0; 31], ..run() }),
        ("result", v1::Run { result: None, ..run() }),
        ("check", v1::Run { result: Some(v1::RunResult { check: 0, ..result() }), ..run() }),
        ("total", v1::Run { result: Some(v1::RunResult { total: String::new(), ..result() }), ..run() }),
    ];
    for (field, wire) in wrong {
        assert_eq!(RunStatus::try_from(wire).expect_err(field).field, field);
    }
}
