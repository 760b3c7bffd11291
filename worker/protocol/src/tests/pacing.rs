//! When a worker syncs, and how much it asks for.

use std::time::Duration;

use nqueens_model::message::{BATCH_MAX, HeldLease, JobResult, ReturnedLease, SyncResponse};

use super::stage::{BEAT, STATES, Stage, accepted, held, leases, result, returned, token, told};
use crate::pace::Pace;
use crate::{Action, CallError, JobProgress, Look, ProtocolEvent};

#[test]
fn a_coordinator_without_work_is_asked_once_a_beat() {
    let mut stage = Stage::new(None);
    let begun = stage.now;
    while stage.now < begun + 60 * BEAT {
        stage.serve(0..0);
    }
    let asked = stage.syncs.len();
    assert!((60..=62).contains(&asked), "{asked} times in 60 beats");
}

#[test]
fn a_coordinator_that_keeps_it_waiting_for_work_is_asked_again_at_once() {
    let mut stage = Stage::new(None);
    for _ in 0..10 {
        let sync = stage.next_sync();
        stage.pass(BEAT);
        let answered = stage.now;
        stage.answer(accepted(&sync));
        stage.next_sync();
        assert!(stage.now - answered <= Duration::from_millis(10));
    }
}

#[test]
fn it_asks_for_work_once_more_when_it_has_reported_its_last_result() {
    let mut stage = Stage::new(None);
    stage.serve(0..1);
    stage.count(0);
    let (reported, counted) = (stage.serve(0..0), stage.now);
    assert_eq!((told(&reported), stage.now), (vec![0], counted), "at once");
    // A question with nothing else in it is one that the coordinator may keep until there is work.
    let asked = stage.serve(0..0);
    assert!(asked.results.is_empty() && asked.wanted.jobs > 0);
    assert!(stage.now - counted <= Duration::from_millis(10));
    stage.next_sync();
    assert!(stage.now - counted >= BEAT);
}

#[test]
fn a_beat_of_nothing_is_no_reason_to_hurry() {
    let mut stage = Stage::new(None);
    let begun = stage.now;
    for _ in 0..100 {
        let sync = stage.next_sync();
        stage.answer(SyncResponse { next_sync_ms: 0, ..accepted(&sync) });
    }
    assert!(stage.now - begun >= Duration::from_millis(10) * 98);
}

#[test]
fn results_wait_for_company_while_there_is_other_work() {
    let mut stage = Stage::new(None);
    stage.serve(0..8);
    let served = stage.now;
    for number in 0..3 {
        stage.count(number);
        stage.pass(Duration::from_millis(50));
    }
    let sync = stage.next_sync();
    assert_eq!((told(&sync), held(&sync)), (vec![0, 1, 2], vec![3, 4, 5, 6, 7]));
    assert_eq!(stage.now - served, Duration::from_millis(250));
}

#[test]
fn a_busy_worker_syncs_at_each_beat_and_says_how_far_it_is() {
    let mut stage = Stage::new(None);
    let sync = stage.next_sync();
    assert_eq!(
        (sync.wanted.states, sync.wanted.jobs),
        (2 * STATES / 5, BATCH_MAX),
        "0.4 s of work, at the speed that it is said to have"
    );
    stage.answer(SyncResponse { leases: leases(0..1000), ..accepted(&sync) });
    let mut lease = HeldLease { token: token(0), states: 0 };
    for beat in 1..10 {
        lease.states = beat * STATES;
        let begun = vec![JobProgress { lease, left: 0 }];
        stage.tell(ProtocolEvent::Looked(Look { begun, ..Look::default() }));
        let before = stage.now;
        let sync = stage.serve(0..0);
        assert_eq!((stage.now - before, sync.held[0], sync.held.len()), (BEAT, lease, 1000));
        assert_eq!((sync.wanted.states, sync.wanted.jobs), (0, 0), "it has enough");
    }
}

#[test]
fn it_asks_for_more_when_half_of_what_it_got_is_used_up() {
    let mut stage = Stage::new(None);
    stage.serve(0..1);
    stage.count(0);
    // From its own speed it knows now that two jobs are two beats' work.
    let sync = stage.serve(1..3);
    assert_eq!((sync.wanted.states, sync.wanted.jobs), (2 * STATES, BATCH_MAX));
    let served = stage.now;
    let mut begin = |number, left| {
        let begun = vec![JobProgress { lease: HeldLease { token: token(number), states: 0 }, left }];
        stage.tell(ProtocolEvent::Looked(Look { begun, ..Look::default() }));
        stage.pass(Duration::from_millis(20));
        stage.call.clone()
    };
    assert_eq!(begin(1, 0), None, "a beat's work is left");
    let Some(Action::Sync(sync)) = begin(2, STATES - 1) else { panic!("less is left") };
    assert_eq!(sync.wanted.states, STATES + 1);
    assert_eq!(stage.now - served, Duration::from_millis(40));
}

#[test]
fn of_long_jobs_it_wants_two_for_each_thread() {
    let mut stage = Stage::new(None);
    stage.serve(0..1);
    let finished = vec![Ok(JobResult { elapsed_us: 10_000_000, ..result(0) })];
    stage.tell(ProtocolEvent::Looked(Look { finished, ..Look::default() }));
    assert_eq!(stage.next_sync().wanted.states, 2 * STATES);
}

#[test]
fn a_device_s_many_jobs_do_not_make_the_threads_beside_it_as_fast() {
    let mut pace = Pace::new(1.0, 16);
    let mut jobs_in_160_s = |jobs, elapsed_us| {
        for number in 0..jobs {
            pace.measure(&JobResult { elapsed_us, ..result(number) }, STATES);
        }
        pace.job_in(Duration::from_secs(160), 0) / STATES
    };
    // In each second a device counts 100 jobs and 15 threads count one each: together 115.
    for second in 0..10 {
        let jobs = [jobs_in_160_s(100, 10_000), jobs_in_160_s(15, 1_000_000)];
        let expected = 7 * 100..7 * 170;
        assert!(second < 2 || jobs.iter().all(|jobs| expected.contains(jobs)), "{jobs:?} in second {second}");
    }
}

#[test]
fn more_than_a_batch_is_told_bit_by_bit_and_held_meanwhile() {
    let all = u32::try_from(2 * BATCH_MAX + 5).expect("small");
    let mut stage = Stage::new(None);
    stage.serve(0..all);
    let finished = (0..all).map(|number| match number % 2 {
        0 => Ok(result(number)),
        _ => Err(ReturnedLease { token: token(number), failure: None }),
    });
    stage.tell(ProtocolEvent::Looked(Look { finished: finished.collect(), ..Look::default() }));
    let first = stage.serve(0..0);
    assert_eq!((first.results.len(), first.returned.len()), (BATCH_MAX, BATCH_MAX));
    let mut waits = held(&first);
    waits.sort_unstable();
    assert_eq!(waits, (all - 5..all).collect::<Vec<_>>());
    let second = stage.serve(0..0);
    assert_eq!([told(&second), returned(&second)].concat().len(), 5);
    assert_eq!(held(&second), []);
}

#[test]
fn what_is_revoked_is_dropped_and_what_was_counted_by_then_is_told() {
    let mut stage = Stage::new(None);
    stage.serve(0..3);
    let sync = stage.next_sync();
    // A thread finishes one of the two while the answer is on its way, and nobody has looked.
    stage.answer(SyncResponse { revoked: vec![token(0), token(1)], ..accepted(&sync) });
    assert_eq!(stage.jobs, [token(2)]);
    stage.count(0);
    let sync = stage.serve(0..0);
    assert_eq!((told(&sync), held(&sync), returned(&sync)), (vec![0], vec![2], vec![]));
}

#[test]
fn a_job_that_fails_is_handed_back_with_the_reason() {
    let mut stage = Stage::new(None);
    stage.serve(0..2);
    stage.break_down(0);
    let sync = stage.serve(2..3);
    assert_eq!((returned(&sync), held(&sync)), (vec![0], vec![1]));
    assert_eq!(sync.returned[0].failure.as_deref(), Some("panicked: no engine"));
    stage.count(1);
    stage.count(2);
    let sync = stage.serve(0..0);
    assert_eq!((told(&sync), returned(&sync)), (vec![1, 2], vec![]), "it lives on, and says it once");
}

#[test]
fn a_forgetful_coordinator_gets_to_know_it_again() {
    let mut stage = Stage::new(None);
    stage.serve(0..1);
    stage.count(0);
    let before = stage.next_sync();
    stage.fail(crate::CallError::Unregistered, 0.0);
    assert!(matches!(stage.call, Some(Action::Register(_))), "at once");
    stage.register();
    assert_eq!(stage.next_sync(), before, "the same once more");
    // But only once: a coordinator that never remembers is one that does not answer.
    let now = stage.now;
    stage.fail(crate::CallError::Unregistered, 0.0);
    stage.next_call();
    assert_eq!(stage.now - now, Duration::from_millis(100));
    stage.register();
    assert_eq!(told(&stage.serve(0..0)), [0]);
}

#[test]
fn an_engine_that_failed_is_told_at_once_until_the_coordinator_knows() {
    let mut stage = Stage::new(None);
    stage.serve(0..0);
    stage.pass(BEAT / 2);
    let failed = stage.now;
    stage.lose_engine("the abacus fell");
    let sync = stage.next_sync();
    assert_eq!((&*sync.faults, stage.now), (&["the abacus fell".to_owned()][..], failed));
    stage.fail(CallError::Unavailable("gone".to_owned()), 0.0);
    assert_eq!(stage.serve(0..0).faults, sync.faults, "nobody has heard it");
    let told = stage.now;
    assert_eq!(stage.next_sync().faults, sync.faults, "all of them every time");
    assert!(stage.now >= told + BEAT, "without haste");
}
