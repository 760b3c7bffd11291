//! How a worker stops.

use std::time::Duration;

use nqueens_model::message::{HeldLease, SyncResponse};

use super::stage::{BEAT, Stage, accepted, held, leases, returned, token, told};
use crate::{Action, CallError, JobProgress, Look, ProtocolEvent, Summary};

#[test]
fn told_to_go_it_hands_back_what_has_not_begun_and_finishes_the_rest() {
    let mut stage = Stage::new(None);
    stage.serve(0..4);
    stage.begun = 2;
    stage.tell(ProtocolEvent::Stop);
    let sync = stage.serve(0..0);
    assert_eq!((returned(&sync), held(&sync), sync.wanted_jobs), (vec![2, 3], vec![0, 1], 0));
    stage.count(0);
    assert_eq!(told(&stage.serve(0..0)), [0]);
    stage.count(1);
    assert_eq!(told(&stage.serve(0..0)), [1]);
    assert_eq!(stage.end, Some(Ok(Summary { accepted: 2, ..Summary::default() })));
}

#[test]
fn what_is_not_finished_at_the_deadline_is_handed_back() {
    let mut stage = Stage::new(None);
    stage.serve(0..1);
    stage.begun = 1;
    let told_at = stage.now;
    stage.tell(ProtocolEvent::Stop);
    while stage.now + BEAT < told_at + Duration::from_secs(10) {
        assert_eq!(held(&stage.serve(0..0)), [0]);
    }
    assert_eq!(returned(&stage.serve(0..0)), [0]);
    assert_eq!((stage.now - told_at, stage.jobs.len()), (Duration::from_secs(10), 0));
    assert_eq!(stage.end, Some(Ok(Summary::default())));
}

#[test]
fn an_operator_s_word_counts_as_much() {
    let mut stage = Stage::new(None);
    let sync = stage.next_sync();
    stage.answer(SyncResponse { leases: leases(0..3), drain: true, ..accepted(&sync) });
    assert_eq!(returned(&stage.serve(0..0)), [0, 1, 2]);
    assert_eq!(stage.end, Some(Ok(Summary { dismissed: true, ..Summary::default() })));
}

#[test]
fn who_asked_for_leases_and_heard_nothing_asks_again_before_it_goes() {
    let mut stage = Stage::new(None);
    let lost = stage.next_sync();
    assert!(lost.wanted_jobs > 0);
    stage.tell(ProtocolEvent::Stop);
    let sync = stage.next_sync();
    assert_eq!(sync.wanted_jobs, 0);
    stage.answer(SyncResponse { leases: leases(0..2), ..accepted(&sync) });
    assert_eq!((returned(&stage.serve(0..0)), stage.jobs.len()), (vec![0, 1], 0));
    assert_eq!(stage.end, Some(Ok(Summary::default())));
}

#[test]
fn an_answer_to_a_call_that_was_given_up_changes_nothing() {
    let mut stage = Stage::new(None);
    stage.serve(0..1);
    stage.begun = 1;
    let lease = HeldLease { token: token(0), states: 0 };
    stage
        .tell(ProtocolEvent::Looked(Look { begun: vec![JobProgress { lease, left: 0 }], ..Look::default() }));
    let sync = stage.next_sync();
    stage.tell(ProtocolEvent::Stop);
    assert_eq!(stage.call.take(), Some(Action::Sync(sync.clone())), "no other yet");
    stage.tell(ProtocolEvent::Answered(SyncResponse { leases: leases(1..9), ..accepted(&sync) }));
    assert_eq!(stage.jobs.len(), 1);
}

#[test]
fn without_a_coordinator_it_goes_all_the_same() {
    let mut stage = Stage::new(Some(Vec::new()));
    stage.serve(0..3);
    stage.begun = 1;
    stage.count(0);
    stage.next_sync();
    stage.fail(CallError::Unavailable("gone".to_owned()), 0.0);
    stage.tell(ProtocolEvent::Stop);
    let told_at = stage.now;
    while stage.end.is_none() {
        stage.next_call();
        stage.fail(CallError::Unavailable("gone".to_owned()), 0.0);
    }
    assert_eq!(stage.now - told_at, Duration::from_secs(10));
    assert_eq!(stage.end, Some(Ok(Summary { unreported: 1, unreturned: 2, ..Summary::default() })));
    assert_eq!(stage.spool.len(), 1, "for the next worker");
}

#[test]
fn a_coordinator_that_keeps_silent_has_five_seconds_for_the_farewell() {
    let mut stage = Stage::new(None);
    stage.serve(0..1);
    stage.begun = 1;
    stage.tell(ProtocolEvent::Stop);
    let told_at = stage.now;
    stage.pass(Duration::from_mins(1));
    assert!(stage.end.is_some());
    assert_eq!(stage.syncs.last().expect("a farewell").0 - told_at, Duration::from_secs(10));
    assert_eq!(stage.end, Some(Ok(Summary { unreturned: 1, ..Summary::default() })));
}
