//! What is spooled, and what is dropped.

use std::time::Duration;

use nqueens_model::message::{BATCH_MAX, JobResult, Verdict};

use super::stage::{Stage, accepted, held, judged, result, told};
use crate::outbox::REWRITE_FROM;
use crate::{Look, ProtocolEvent};

fn finish(stage: &mut Stage, numbers: std::ops::Range<u32>) {
    let finished = numbers.map(|number| Ok(result(number))).collect();
    stage.tell(ProtocolEvent::Looked(Look { finished, ..Look::default() }));
}

#[test]
fn what_an_earlier_process_counted_is_told_first() {
    let mut stage = Stage::new(Some(vec![result(1), result(2)]));
    assert_eq!(told(&stage.serve(0..0)), [1, 2]);
    assert_eq!(stage.spool, []);
}

#[test]
fn results_gather_on_their_way_to_the_disk() {
    let mut stage = Stage::new(Some(Vec::new()));
    stage.serve(0..9);
    stage.pass(Duration::from_millis(1));
    for number in 0..3 {
        stage.count(number);
        stage.pass(Duration::from_millis(33));
    }
    assert_eq!(stage.spool.len(), 0);
    stage.pass(Duration::from_millis(1));
    assert_eq!(stage.spool.len(), 3);
}

#[test]
fn a_full_disk_is_tried_each_minute_and_the_results_are_told_from_memory() {
    let mut stage = Stage::new(Some(Vec::new()));
    stage.serve(0..9);
    stage.disk_is_full = true;
    stage.count(0);
    let sync = stage.next_sync();
    assert_eq!(told(&sync), [0]);
    stage.disk_is_full = false;
    stage.pass(Duration::from_secs(59));
    assert_eq!(stage.spool.len(), 0, "the next try is to come");
    stage.pass(Duration::from_secs(1));
    assert_eq!(stage.spool, [result(0)]);
    // Told from memory, and on disk by the time it is acknowledged.
    stage.answer(accepted(&sync));
    assert_eq!(stage.spool, []);
}

#[test]
fn what_the_coordinator_does_not_know_is_set_aside() {
    let mut stage = Stage::new(Some(vec![result(1), result(2)]));
    let sync = stage.next_sync();
    let mut answer = accepted(&sync);
    answer.acks[1].verdict = Verdict::Unknown;
    stage.answer(answer);
    assert_eq!((&stage.rejected[..], &stage.spool[..]), (&[result(2)][..], &[][..]));

    let mut stage = Stage::new(None);
    stage.serve(0..1);
    stage.count(0);
    let sync = stage.next_sync();
    stage.answer(judged(&sync, Verdict::Unknown));
    assert_eq!((stage.rejected.len(), told(&stage.serve(0..0))), (0, vec![]), "dropped without a spool");
}

#[test]
fn what_can_t_be_set_aside_stays_in_the_spool_until_it_can() {
    let mut stage = Stage::new(Some(vec![result(1), result(2)]));
    let sync = stage.next_sync();
    let mut answer = accepted(&sync);
    answer.acks[1].verdict = Verdict::Unknown;
    stage.disk_is_full = true;
    stage.answer(answer);
    let failed = stage.now;
    stage.disk_is_full = false;
    stage.serve(3..5);
    stage.count(3);
    stage.serve(0..0);
    stage.count(4);
    stage.pass(failed + Duration::from_millis(59_999) - stage.now);
    assert_eq!((stage.rejected.len(), &stage.spool[..]), (0, &[1, 2, 3, 4].map(result)[..]));
    let sync = stage.next_sync();
    stage.pass(Duration::from_millis(1));
    assert_eq!((&stage.rejected[..], stage.spool.len()), (&[result(2)][..], 4));
    stage.answer(accepted(&sync));
    assert_eq!((stage.rejected.len(), stage.spool.len()), (1, 0));

    // Without room until the end.
    let mut stage = Stage::new(Some(vec![result(1)]));
    stage.disk_is_full = true;
    let sync = stage.next_sync();
    stage.answer(judged(&sync, Verdict::Unknown));
    stage.disk_is_full = false;
    stage.tell(ProtocolEvent::Stop);
    stage.serve(0..0);
    assert!(stage.end.is_some());
    assert_eq!(stage.spool, [result(1)], "for the next worker");
}

#[test]
fn a_spool_that_is_never_empty_does_not_grow_for_ever() {
    let mut stage = Stage::new(Some(Vec::new()));
    stage.serve(1_000_000..1_000_001);
    let batch = u32::try_from(BATCH_MAX).expect("small");
    finish(&mut stage, 0..1);
    for round in 0..40 {
        finish(&mut stage, round * batch + 1..(round + 1) * batch + 1);
        let sync = stage.next_sync();
        assert_eq!((sync.results.len(), held(&sync).len()), (BATCH_MAX, 2), "one always waits");
        stage.answer(accepted(&sync));
        assert!(stage.spool.len() <= REWRITE_FROM + BATCH_MAX, "{} in round {round}", stage.spool.len());
    }
    assert_eq!(stage.spool.last(), Some(&result(40 * batch)), "what waited is there");
}

#[test]
fn a_spool_that_can_t_be_changed_is_no_reason_to_stop() {
    let mut stage = Stage::new(Some((0..20_000).map(result).collect()));
    stage.disk_is_full = true;
    let mut numbers = Vec::new();
    while numbers.len() < 20_000 {
        numbers.extend(told(&stage.serve(0..0)));
    }
    assert_eq!(numbers, (0..20_000).collect::<Vec<_>>(), "each once");
    assert_eq!(stage.spool.len(), 20_000, "neither rewritten nor emptied");
    stage.disk_is_full = false;
    stage.serve(0..1);
    stage.count(0);
    stage.serve(0..0);
    let nothing: [JobResult; 0] = [];
    assert_eq!(stage.spool, nothing, "the next acknowledgement empties it");
}

#[test]
fn an_answer_empties_the_spool_whatever_was_counted_meanwhile() {
    let mut stage = Stage::new(Some(Vec::new()));
    stage.serve(0..9);
    stage.count(0);
    let sync = stage.next_sync();
    stage.count(1);
    stage.pass(Duration::from_millis(900));
    stage.answer(accepted(&sync));
    assert_eq!(stage.spool, [result(1)], "and nothing that is acknowledged");
}
