//! How a worker stops.

use std::time::Duration;

use nqueens_model::message::{HeldLease, JobResult, SyncResponse};

use super::stage::{BEAT, STATES, Stage, accepted, held, leases, result, returned, token, told};
use crate::{Action, CallError, EndReason, JobProgress, Look, ProtocolEvent, Summary};

#[test]
fn told_to_go_it_hands_back_what_has_not_begun_and_finishes_the_rest() {
    let mut stage = Stage::new(None);
    stage.serve(0..4);
    stage.begun = 2;
    stage.tell(ProtocolEvent::Stop);
    let sync = stage.serve(0..0);
    assert_eq!((returned(&sync), held(&sync), sync.wanted.jobs), (vec![2, 3], vec![0, 1], 0));
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
    assert_eq!(stage.end, Some(Ok(Summary { reason: EndReason::Dismissed, ..Summary::default() })));
}

#[test]
fn who_asked_for_leases_and_heard_nothing_asks_again_before_it_goes() {
    let mut stage = Stage::new(None);
    let lost = stage.next_sync();
    assert!(lost.wanted.jobs > 0);
    stage.tell(ProtocolEvent::Stop);
    let sync = stage.next_sync();
    assert_eq!(sync.wanted.jobs, 0);
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
fn a_coordinator_that_is_restarted_at_the_farewell_hears_it_within_five_seconds() {
    for back in [true, false] {
        let mut stage = Stage::limited(Some(Duration::from_secs(20)), None);
        let ends_at = stage.now + Duration::from_secs(10);
        stage.serve(0..2);
        stage.begun = 1;
        while stage.now < ends_at {
            assert_eq!(stage.end, None);
            if stage.next_sync().leaving {
                break;
            }
            stage.serve(0..0);
        }
        for after in [0, 100, 300, 700, 1500] {
            assert_eq!(returned(&stage.next_sync()), [0, 1]);
            assert_eq!(stage.now, ends_at + Duration::from_millis(after));
            stage.fail(CallError::Unavailable("no route".to_owned()), 0.0);
        }
        let summary = Summary { reason: EndReason::TimeUp, ..Summary::default() };
        stage.next_call();
        if back {
            stage.serve(0..0);
            assert_eq!(stage.end, Some(Ok(summary)));
        } else {
            stage.fail(CallError::Unavailable("no route".to_owned()), 0.0);
            stage.pass(ends_at + Duration::from_millis(4999) - stage.now);
            assert_eq!((stage.call.take(), stage.end.take()), (None, None));
            stage.pass(Duration::from_millis(1));
            assert_eq!(stage.end, Some(Ok(Summary { unreturned: 2, ..summary })));
        }
    }
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

#[test]
fn a_worker_without_work_whose_time_is_too_short_for_a_job_leaves() {
    let mut stage = Stage::limited(Some(Duration::from_secs(110)), None);
    let begun = stage.now;
    stage.serve(0..1);
    stage.pass(Duration::from_secs(35));
    let finished = vec![Ok(JobResult { elapsed_us: 35_000_000, ..result(0) })];
    stage.tell(ProtocolEvent::Looked(Look { finished, ..Look::default() }));
    while stage.end.is_none() {
        stage.serve(0..0);
    }
    // A job takes seven tenths of what is left.
    let left = Duration::from_secs(100).checked_sub(stage.now - begun).expect("it left early");
    assert!((Duration::from_secs(48)..=Duration::from_secs(50)).contains(&left), "{left:?}");
    let reason = EndReason::TimeUp;
    assert_eq!(stage.end, Some(Ok(Summary { accepted: 1, reason, ..Summary::default() })));
}

#[test]
fn with_a_time_limit_it_wants_only_jobs_that_it_expects_to_finish() {
    let mut stage = Stage::limited(Some(Duration::from_secs(110)), None);
    let begun = stage.now;
    let sync = stage.serve(0..1);
    let (size, in_100_s) = (sync.wanted.job_states_max, 100 * STATES);
    assert!((9 * in_100_s..10 * in_100_s + 1).contains(&size), "its speed is a guess: {size}");
    stage.count(0);
    let sync = stage.serve(1..2);
    let left = Duration::from_secs(100).saturating_sub(stage.now - begun).as_millis();
    let expected = u64::try_from(7 * u128::from(STATES) * left / 10_000).unwrap();
    assert!(sync.wanted.job_states_max.abs_diff(expected) <= STATES / 10, "{:?}", sync.wanted);
    stage.begun = 1;
    while stage.now - begun < Duration::from_secs(90) {
        let sync = stage.serve(0..0);
        assert_eq!((held(&sync), sync.leaving), (vec![1], false));
    }
    let mut last = stage.serve(0..0);
    while stage.end.is_none() {
        last = stage.serve(0..0);
    }
    assert_eq!((returned(&last), last.leaving, last.wanted.jobs), (vec![1], true, 0), "unfinished");
    assert_eq!(stage.now - begun, Duration::from_secs(100), "some time before its process must be gone");
    let reason = EndReason::TimeUp;
    assert_eq!(stage.end, Some(Ok(Summary { accepted: 1, reason, ..Summary::default() })));
}

#[test]
fn a_time_limit_that_has_come_leaves_no_time_to_register() {
    let mut stage = Stage::with_limits(None, Some(Duration::ZERO), None);
    stage.tell(ProtocolEvent::Looked(Look::default()));
    assert_eq!(stage.call, None);
    assert_eq!(stage.end, Some(Ok(Summary { reason: EndReason::TimeUp, ..Summary::default() })));
}

#[test]
fn without_work_for_the_idle_timeout_it_goes() {
    let mut stage = Stage::limited(None, Some(Duration::from_mins(1)));
    let begun = stage.now;
    stage.serve(0..0);
    stage.pass(Duration::from_secs(30));
    stage.serve(0..1);
    stage.pass(Duration::from_mins(5));
    assert_eq!(stage.end, None, "it counts");
    stage.count(0);
    let idle_since = stage.now;
    while stage.end.is_none() {
        let sync = stage.serve(0..0);
        assert_eq!(sync.leaving, stage.end.is_some(), "it says so, and ends");
    }
    assert!(idle_since - begun > Duration::from_mins(5));
    assert_eq!(stage.now - idle_since, Duration::from_mins(1));
    assert_eq!(stage.end, Some(Ok(Summary { accepted: 1, reason: EndReason::Idle, ..Summary::default() })));
}

#[test]
fn without_work_it_waits_for_a_coordinator_that_is_restarted() {
    let mut stage = Stage::limited(None, Some(Duration::from_secs(10)));
    stage.serve(0..0);
    for _ in 0..5 {
        stage.next_sync();
        stage.fail(CallError::Unavailable("no route".to_owned()), 0.0);
        stage.pass(Duration::from_secs(10));
    }
    assert_eq!(stage.end, None, "for longer than it waits for work");
    stage.serve(0..0);
    assert_eq!(stage.end, None, "it has only just come back");
    let back = stage.now;
    while stage.end.is_none() {
        stage.serve(0..0);
    }
    assert_eq!(stage.now - back, Duration::from_secs(10));
}

#[test]
fn nothing_keeps_it_from_ending_when_a_coordinator_has_forgotten_it() {
    let mut stage = Stage::new(None);
    stage.serve(0..0);
    stage.tell(ProtocolEvent::Stop);
    assert!(stage.next_sync().leaving);
    stage.fail(CallError::Unregistered, 0.0);
    assert_eq!((stage.call.take(), stage.end), (None, Some(Ok(Summary::default()))));
}
