//! What holders of credentials can do to each other, and to a run.

use nqueens_kernel::random::Random;
use nqueens_model::message::Verdict;

use super::super::*;
use super::cluster::{Cluster, JOBS, counted};
use super::world::truth;

/// As long may recounts take that a total needs, of a short run.
const TIME_FOR_ALL_US: u128 = 600_000_000;

/// Of some results nothing can be recounted: it would take too long. That keeps no dispute open.
#[test]
fn what_can_not_be_drawn_is_decided_all_the_same() {
    let mut cluster = Cluster::new(1_000_000, true);
    let [honest, liar] = ["honest", "liar"].map(|credential| cluster.worker(credential));
    for token in cluster.take(honest, 2) {
        cluster.report(honest, token, truth(token.job.number));
    }
    let Some(Task { job, why: why @ Why::Drawn(_) }) = cluster.dispatch.task(0) else {
        panic!("one is drawn")
    };
    cluster.dispatch.give_up(job, why);
    let Some(Task { job: other, why: Why::Drawn(_) }) = cluster.dispatch.task(0) else { panic!("the other") };
    assert_ne!(job, other);
    cluster.dispatch.give_up(other, Why::Left);
    assert_eq!(
        cluster.dispatch.task(0).map(|task| task.job),
        Some(other),
        "a second count is another matter"
    );
    cluster.dispatch.give_up(other, why);
    assert_eq!(cluster.dispatch.task(0), None);
    for token in cluster.take(liar, 2) {
        assert_eq!(cluster.report(liar, token, counted(token.job, true)), Verdict::Conflict);
    }
    while cluster.recount() {}
    assert!(cluster.is_out(liar) && !cluster.is_out(honest));
    assert_eq!((cluster.sums().done, cluster.sums().quarantined, cluster.wrong()), (2, 0, 0));
}

/// Whoever knows what can't be recounted would lie there.
#[test]
fn no_others_are_drawn_in_place_of_what_can_not_be_recounted() {
    let mut cluster = Cluster::new(0, true);
    let alone = cluster.worker("alone");
    for token in cluster.take(alone, JOBS - 1) {
        cluster.report(alone, token, truth(token.job.number));
    }
    let Task { job, why } = cluster.dispatch.task(cluster.now).expect("one is drawn");
    cluster.dispatch.give_up(job, why);
    while cluster.recount() {}
    assert_eq!(cluster.sums().checks.recounted as usize, JOBS - 2, "more, as long as the run goes on");
    cluster.count(alone, false);
    while cluster.recount() {}
    let run = cluster.dispatch.run(cluster.run).expect("added");
    assert!(cluster.dispatch.is_over(cluster.now, run));
    assert_eq!(cluster.dispatch.recounts_left(run), 1, "the total lacks it");
    assert_eq!(cluster.dispatch.recounts_wanted(run), run.sums().checks.recounted + 1);
}

/// As many recounts as are wanted were made of what came early, and their time is over: lies that come late were missed.
#[test]
fn what_is_drawn_is_recounted_however_late_it_comes() {
    for (us, left) in [(TIME_FOR_ALL_US - 1, false), (TIME_FOR_ALL_US, true)] {
        let mut cluster = Cluster::new(0, true);
        let alone = cluster.worker("alone");
        for token in cluster.take(alone, JOBS / 2) {
            cluster.report(alone, token, truth(token.job.number));
        }
        while cluster.recount() {}
        let early = cluster.sums().checks.recounted;
        assert!(early >= 30, "{early}");
        cluster.dispatch.runs.get_mut(&cluster.run).expect("added").sums.recounts_us = us;
        cluster.count(alone, false);
        while cluster.recount() {}
        let run = cluster.dispatch.run(cluster.run).expect("added");
        assert_eq!(cluster.dispatch.recounts_left(run) > 0, left);
        assert_eq!(run.sums().checks.recounted == early, left);
        let is_enough = run.sums().checks.recounted >= cluster.dispatch.recounts_wanted(run);
        assert_eq!(is_enough, !left, "as many as are wanted, and none of them");
    }
}

#[test]
fn a_credential_that_was_wrong_under_two_names_is_out_and_its_confirmations_are_void() {
    let mut cluster = Cluster::new(1_000_000, true);
    let liars = [(); 3].map(|()| cluster.worker("liars"));
    let others = cluster.worker("conspirators");
    cluster.count(others, true);
    cluster.count(liars[0], true);
    cluster.count(others, true);
    assert!(cluster.wrong() > 0 && cluster.sums().checks.confirmed > 0, "they confirm each other");
    while cluster.recount() {}
    assert!(cluster.is_out(others) && cluster.is_out(liars[0]));
    assert_eq!(cluster.wrong(), 0, "nothing stands of who is out");
    assert!(!cluster.is_out(liars[1]), "one name may be an accident");
    cluster.count(liars[1], true);
    while cluster.recount() {}
    assert!(cluster.is_out(liars[2]), "two are none");
    assert_eq!(cluster.wrong(), 0);
}

#[test]
fn a_run_waits_for_its_recounts_and_is_over_without_second_counts_that_nobody_makes() {
    let mut cluster = Cluster::new(10_000, true);
    let alone = cluster.worker("alone");
    cluster.count(alone, false);
    let is_over = |cluster: &mut Cluster| {
        cluster.dispatch.note_counted(cluster.now);
        cluster.dispatch.is_over(cluster.now, cluster.dispatch.run(cluster.run).expect("added"))
    };
    assert!(!is_over(&mut cluster));
    while cluster.recount() {}
    assert!(cluster.sums().checks.recounted >= 30, "{:?}", cluster.sums());
    assert!(is_over(&mut cluster));

    // Of a board whose count is published it is over after a while.
    let mut cluster = Cluster::of_board(20, 1, true, 1);
    let alone = cluster.worker("alone");
    cluster.count(alone, false);
    assert!(!is_over(&mut cluster), "recounts come first");
    assert_eq!(cluster.recounts_wait_ms(), 0, "nobody knows how long one takes");
    assert!(cluster.recount());
    cluster.dispatch.runs.get_mut(&cluster.run).expect("added").sums.recounts_us = 300_000;
    assert_eq!(cluster.recounts_wait_ms(), 29 * 300);
    cluster.now += 10_001;
    assert!(is_over(&mut cluster));

    // A coordinator that does not count: they stay unmade.
    let mut cluster = Cluster::new(1_000_000, false);
    let alone = cluster.worker("alone");
    cluster.count(alone, false);
    assert!(is_over(&mut cluster));
    cluster.dispatch.end_checks(cluster.run, CheckOutcome::Unmade);
    assert_eq!((cluster.sums().checks.unmade as usize, cluster.sums().checks.open), (JOBS, 0));
}

/// Who could not be heard is there all the same.
#[test]
fn second_counts_are_waited_for_when_the_coordinator_is_back() {
    let mut cluster = Cluster::new(1_000_000, true);
    let [one, _other] = ["one", "other"].map(|credential| cluster.worker(credential));
    cluster.count(one, false);
    cluster.dispatch.note_counted(cluster.now);
    cluster.dispatch.note_absence(cluster.now);
    while cluster.recount() {}
    cluster.now += 8 * 3_600_000;
    cluster.dispatch.note_absence(cluster.now);
    assert_eq!(cluster.dispatch.task(cluster.now), None, "others make them");
    assert!(!cluster.dispatch.is_over(cluster.now, &cluster.dispatch.runs[&cluster.run]));
}

/// Of a run of many machines under one credential, and a slow one under another.
#[test]
fn second_counts_of_an_unpublished_board_are_waited_for_as_long_as_somebody_makes_them() {
    let mut cluster = Cluster::new(1_000_000, true);
    let [one, two] = [(); 2].map(|()| cluster.worker("many"));
    cluster.count(one, false);
    let slow = cluster.worker("slow");
    assert_eq!(cluster.take(two, 1), [], "another credential is there");
    let lease_ms = cluster.dispatch.policy.lease_ms;
    cluster.dispatch.note_counted(cluster.now);
    let is_over =
        |cluster: &Cluster| cluster.dispatch.is_over(cluster.now, &cluster.dispatch.runs[&cluster.run]);
    let is_left = |task: &Option<Task>| matches!(task, Some(Task { why: Why::Left, .. }));
    while cluster.dispatch.task(cluster.now).is_some_and(|task| matches!(task.why, Why::Drawn(_))) {
        cluster.recount();
    }
    assert_eq!(cluster.dispatch.task(cluster.now), None, "somebody is there who can make them");

    let look = |cluster: &mut Cluster, leases| {
        cluster.now = leases * lease_ms + 1;
        for worker in [one, two, slow] {
            cluster.dispatch.heartbeat(cluster.now, worker, &[]);
        }
    };
    look(&mut cluster, 1);
    let taken = cluster.take(slow, 1)[0];
    let last = cluster.dispatch.task(cluster.now);
    assert!(
        is_left(&last) && last.is_some_and(|task| task.job > taken.job),
        "the coordinator helps: {last:?}"
    );
    assert_eq!(cluster.take(two, 1), []);
    cluster.report(slow, taken, truth(taken.job.number));

    look(&mut cluster, 60);
    let taken = cluster.take(two, 1)[0];
    cluster.report(two, taken, truth(taken.job.number));
    let checks = cluster.sums().checks;
    assert_eq!((checks.agreed, checks.recounted, checks.confirmed), (32, 30, 1), "made, and worth less");
    assert!(!is_over(&cluster));

    cluster.dispatch.set_run_state(cluster.run, RunState::Paused);
    cluster.dispatch.note_counted(cluster.now);
    cluster.dispatch.set_run_state(cluster.run, RunState::Active);
    cluster.dispatch.note_counted(cluster.now);
    look(&mut cluster, 180);
    assert!(!is_over(&cluster), "no time passed while it was paused");
    look(&mut cluster, 181);
    let checks = cluster.sums().checks;
    assert!(is_over(&cluster) && checks.open > 0 && checks.confirmed == 1, "{checks:?}");
}

#[test]
fn recounts_take_minutes_only_where_no_total_is_published() {
    let has_more = |n, recounts_us| {
        let mut cluster = Cluster::of_board(n, 1, true, 1);
        let alone = cluster.worker("alone");
        cluster.count(alone, false);
        cluster.dispatch.runs.get_mut(&cluster.run).expect("added").sums.recounts_us = recounts_us;
        cluster.dispatch.task(cluster.now).is_some()
    };
    let (seconds, minutes) = (10_000_000, TIME_FOR_ALL_US);
    assert_eq!([has_more(20, seconds - 1), has_more(20, seconds)], [true, false]);
    assert_eq!([has_more(30, minutes - 1), has_more(30, minutes)], [true, false]);
}

#[test]
fn a_run_that_waits_for_recounts_has_them_first() {
    let mut cluster = Cluster::new(0, true);
    let alone = cluster.worker("alone");
    let plan = *cluster.dispatch.run(cluster.run).expect("added").plan();
    let first = RunId::from_random(1);
    let settings = RunSettings { id: first, plan, seed: 1, priority: 0, replicate_ppm: 0 };
    assert!(first < cluster.run);
    cluster.count(alone, false);
    cluster.dispatch.add_run(Run::planned(&settings, &[1; JOBS]));
    for token in cluster.take(alone, JOBS - 1) {
        cluster.report(alone, token, truth(token.job.number));
    }
    let mut order = Vec::new();
    while let Some(Task { job, .. }) = cluster.dispatch.task(cluster.now) {
        order.push(job.run);
        cluster.recount();
    }
    assert!(order.contains(&first) && order.is_sorted_by(|one, other| one >= other), "{order:?}");
}

#[test]
fn what_fails_on_workers_is_tried_before_more_is_recounted_of_a_run_that_goes_on() {
    let mut cluster = Cluster::new(0, true);
    let [failing, honest] = ["failing", "honest"].map(|credential| cluster.worker(credential));
    for token in cluster.take(honest, JOBS / 2) {
        cluster.report(honest, token, truth(token.job.number));
    }
    assert!(matches!(cluster.dispatch.task(0), Some(Task { why: Why::Drawn(_), .. })));
    cluster.fail(failing, 5);
    assert_eq!(cluster.dispatch.task(0).map(|task| task.why), Some(Why::Failing));
}

#[test]
fn a_part_decides_nothing_about_a_dispute_that_came_meanwhile() {
    let mut cluster = Cluster::new(1_000_000, true);
    let [honest, liar] = ["honest", "liar"].map(|credential| cluster.worker(credential));
    let token = cluster.take(honest, 1)[0];
    cluster.report(honest, token, truth(token.job.number));
    assert!(!cluster.dispatch.has_new_dispute(token.job, &[]), "nobody differs");
    for token in cluster.take(liar, JOBS) {
        cluster.report(liar, token, counted(token.job, true));
    }
    assert!(cluster.dispatch.has_new_dispute(token.job, &[]));
    assert!(
        !cluster.dispatch.has_new_dispute(token.job, &[(liar, counted(token.job, true))]),
        "known before"
    );
}

#[test]
fn a_cancelled_run_waits_for_no_second_counts_and_its_results_that_differ_still_do() {
    let mut cluster = Cluster::new(1_000_000, true);
    let [honest, liar] = ["honest", "liar"].map(|credential| cluster.worker(credential));
    for token in cluster.take(honest, 2) {
        cluster.report(honest, token, truth(token.job.number));
    }
    let token = cluster.take(liar, 1)[0];
    cluster.report(liar, token, counted(token.job, true));
    assert_eq!(cluster.sums().checks.open, 2);
    assert!(cluster.dispatch.set_run_state(cluster.run, RunState::Cancelled));
    assert_eq!(cluster.sums().checks.open, 1);
    assert!(cluster.dispatch.checks.get(token.job).is_some());
}

#[test]
fn a_lease_ends_at_its_greatest_age_whatever_its_holder_says() {
    let mut cluster = Cluster::new(0, true);
    let holder = cluster.worker("holder");
    let token = cluster.take(holder, 1)[0];
    let age = cluster.dispatch.policy.lease_age_ms;
    while cluster.now < age {
        let held = [nqueens_model::message::HeldLease { token, states: cluster.now }];
        assert_eq!(cluster.dispatch.heartbeat(cluster.now, holder, &held).revoked, []);
        assert_eq!(cluster.dispatch.expire(cluster.now), []);
        cluster.now += 30_000;
    }
    assert_eq!(cluster.dispatch.expire(cluster.now), [(holder, token)]);
    assert_eq!(cluster.dispatch.task(cluster.now), Some(Task { job: token.job, why: Why::Failing }));
}

#[test]
fn jobs_that_workers_fail_are_no_recounts_and_take_no_place_of_one() {
    let mut cluster = Cluster::new(0, true);
    let [failing, honest] = ["failing", "honest"].map(|credential| cluster.worker(credential));
    cluster.fail(failing, JOBS / 5);
    while cluster.recount() {}
    cluster.count(honest, false);
    while cluster.recount() {}
    let own = cluster.accepted.values().filter(|accepted| accepted.worker != honest).count();
    assert!(own > 0, "the coordinator has counted some");
    assert_eq!(cluster.sums().checks.recounted, 30, "of the others");
    let run = cluster.dispatch.run(cluster.run).expect("added");
    let is_own = |number: &u32| run.slot(*number).recounted == 254;
    assert_eq!((0..run.jobs()).filter(is_own).count(), own);
}

#[test]
fn each_wrong_result_that_is_found_asks_for_more_recounts() {
    let mut found = 0;
    for key in 0..20 {
        let mut cluster = Cluster::of_board(30, 0, true, key);
        let [liar, honest] = ["liar", "honest"].map(|credential| cluster.worker(credential));
        for (at, token) in cluster.take(liar, 10).into_iter().enumerate() {
            cluster.report(liar, token, counted(token.job, at == 0));
        }
        loop {
            cluster.count(honest, false);
            if !cluster.recount() {
                break;
            }
        }
        let Sums { differing, checks, .. } = cluster.sums();
        assert!(differing <= 1 && checks.recounted >= 30 * (1 + differing), "{differing} {checks:?}");
        assert!(differing == 1 || cluster.wrong() == 1, "it was not drawn");
        found += differing;
    }
    assert!((1..20).contains(&found), "{found}");
}

/// All results are of one credential, which lies in a share of them, and fails the jobs that it likes. Runs without a
/// difference, but with a lie, are as rare as [`docs/trust.md`] says, to four standard errors.
#[test]
fn lies_are_missed_as_rarely_as_promised() {
    const RUNS: u32 = 200;
    for (share, lies) in [(0.03_f64, 3), (0.05, 5), (0.1, 10)] {
        let mut missed = 0_u32;
        for key in 0..RUNS {
            let mut cluster = Cluster::of_board(30, 0, true, key.into());
            let all = cluster.worker("all");
            let mut random = Random::new(key.into());
            // What the coordinator counts of true results is no recount: that hides nothing.
            cluster.fail(all, 10);
            while cluster.recount() {}
            let mut numbers: Vec<_> = (0..JOBS).collect();
            for at in 0..lies {
                numbers.swap(at, at + random.index(JOBS - at));
            }
            loop {
                let tokens = cluster.take(all, 10);
                if tokens.is_empty() {
                    break;
                }
                for token in tokens {
                    let lies = numbers[..lies].contains(&(token.job.number as usize));
                    cluster.report(all, token, counted(token.job, lies));
                }
            }
            let lied = cluster.wrong();
            while cluster.sums().differing == 0 && cluster.recount() {}
            missed += u32::from(lied == lies && cluster.sums().differing == 0);
        }
        let promised = f64::from(RUNS) * (1.0 - share).powi(30);
        assert!(f64::from(missed) <= promised + 4.0 * promised.sqrt(), "{missed} of {RUNS} at {share}");
        assert!(lies > 5 || missed > 0, "a sample does not find everything: {share}");
    }
}
