//! A coordinator that is unreachable for a while, or for good.

use std::time::Duration;

use nqueens_model::message::SyncResponse;

use super::stage::{Stage, accepted, held, leases, told};
use crate::CallError;
use crate::outage::Outage;

fn gone() -> CallError {
    CallError::Unavailable("connection refused".to_owned())
}

#[test]
fn it_waits_longer_after_each_failure_but_never_gives_up() {
    for (jitter, stretch) in [(0.0, 1), (1.0, 2)] {
        let mut stage = Stage::unregistered(None);
        let mut pauses = Vec::new();
        for _ in 0..1000 {
            stage.next_call();
            let failed = stage.now;
            stage.fail(gone(), jitter);
            stage.next_call();
            pauses.push((stage.now - failed) / stretch);
        }
        let first = [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000].map(Duration::from_millis);
        assert_eq!(pauses[..9], first);
        assert_eq!(pauses.last(), Some(&Duration::from_secs(10)));
        stage.register();
        stage.serve(0..1);
        assert_eq!(stage.jobs.len(), 1);
    }
}

#[test]
fn each_reason_is_logged_at_once_and_some_again_after_1_3_7_and_15_minutes() {
    let mut outage = Outage::begin(Duration::ZERO);
    let mut warned = |minute, reason: u64| {
        outage.is_to_be_warned_of(Duration::from_mins(minute), &CallError::Unavailable(reason.to_string()))
    };
    assert_eq!([0, 1, 0, 1, 2, 3].map(|reason| warned(0, reason)), [true, true, false, false, true, true]);
    assert!(!warned(0, 4), "without an end it could fill the log");
    let later: Vec<u64> = (1..=16).filter(|&minute| warned(minute, minute % 2)).collect();
    assert_eq!(later, [1, 3, 7, 15]);
}

#[test]
fn results_are_kept_through_an_outage_and_told_until_somebody_has_heard_them() {
    let mut stage = Stage::new(Some(Vec::new()));
    stage.serve(0..20);
    for number in 0..10 {
        stage.count(number);
        let sync = stage.next_sync();
        assert_eq!(told(&sync), (0..=number).collect::<Vec<_>>(), "all of them, in their order");
        assert_eq!(held(&sync), (number + 1..20).collect::<Vec<_>>());
        assert_eq!(stage.spool, sync.results, "safe before they are told");
        stage.fail(gone(), 0.5);
    }
    let sync = stage.serve(0..0);
    assert_eq!(told(&sync).len(), 10);
    assert_eq!(stage.spool, [], "acknowledged");
    for _ in 0..10 {
        assert_eq!(told(&stage.serve(0..0)), [], "told once");
    }
}

#[test]
fn after_an_outage_it_is_at_its_old_pace() {
    let mut stage = Stage::new(None);
    stage.serve(0..20);
    for _ in 0..20 {
        stage.next_sync();
        stage.fail(gone(), 0.9);
    }
    stage.serve(0..0);
    let answered = stage.now;
    stage.count(0);
    assert_eq!(told(&stage.next_sync()), [0]);
    assert_eq!(stage.now - answered, Duration::from_millis(250));
    stage.fail(gone(), 0.0);
    stage.next_sync();
    assert_eq!(stage.now - answered, Duration::from_millis(350), "the next outage begins anew");
}

#[test]
fn counting_and_spooling_go_on_while_a_call_hangs() {
    let mut stage = Stage::new(Some(Vec::new()));
    stage.serve(0..2);
    let sync = stage.next_sync();
    stage.count(0);
    stage.pass(Duration::from_secs(20));
    assert_eq!(stage.spool.len(), 1);
    // The answer is one to what was said, not to what has come since.
    stage.answer(accepted(&sync));
    assert_eq!(told(&stage.serve(0..0)), [0]);
}

#[test]
fn a_refusal_ends_it_and_its_results_stay() {
    let mut stage = Stage::new(Some(Vec::new()));
    stage.serve(0..3);
    stage.count(0);
    stage.next_sync();
    stage.count(1);
    let refused = CallError::Refused("this machine was wrong too often".to_owned());
    stage.fail(refused.clone(), 0.0);
    assert_eq!((stage.end, stage.spool.len(), stage.jobs.len()), (Some(Err(refused)), 2, 0));
}

#[test]
fn an_answer_to_something_else_ends_it() {
    let mut stage = Stage::new(None);
    stage.serve(0..2);
    stage.count(0);
    stage.next_sync();
    stage.answer(SyncResponse { leases: leases(5..6), next_sync_ms: 100, ..SyncResponse::default() });
    assert!(matches!(&stage.end, Some(Err(CallError::Answer(why))) if why.contains("acks")));
}
