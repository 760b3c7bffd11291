//! Tests of the gauge: made-up runs, and replays of recorded ones.

use nqueens_scheduler::AcceptedSums;

use super::*;

mod replay;

fn busy(threads: u64) -> Busy {
    Busy { workers: 1, threads, ..Busy::default() }
}

/// So many threads that each take so long for a job, one after the other, until `end_s`; a look every second.
fn gauge(threads: u32, job_s: f64, end_s: u32) -> Gauge {
    let mut gauge = Gauge::at(0, &Sums { leased: threads, ..Sums::default() });
    for second in 1..=end_s {
        // The threads began one after the other.
        let ended = |thread: u32| {
            (f64::from(second) / job_s - f64::from(thread) / f64::from(threads)).floor().max(0.0)
        };
        let done: f64 = (0..threads).map(ended).sum();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
        let sums = Sums {
            done: done as u32,
            leased: threads,
            estimate_done: (done * job_s * 1e9) as u128,
            accepted: AcceptedSums {
                elapsed_us: (done * job_s * 1e6) as u128,
                states: (done * job_s * 1e9) as u128,
                ..AcceptedSums::default()
            },
            ..Sums::default()
        };
        gauge.note(u64::from(second) * 1_000, &sums, &busy(threads.into()), || true);
    }
    gauge
}

#[test]
fn short_and_long_jobs_are_measured_alike() {
    for (threads, job_s, end_s) in [(1, 0.1, 60), (64, 0.3, 600), (4, 40.0, 4_000), (64, 3_600.0, 100_000)] {
        let Measured { speed, doubt, .. } = gauge(threads, job_s, end_s).read().expect("measured");
        let (error, doubt) = (speed.threads / f64::from(threads) - 1.0, Z * doubt.sqrt());
        assert!(error.abs() < doubt, "{threads} threads seem {} (doubt {doubt})", speed.threads);
        assert!(doubt < 0.25, "{doubt}");
        assert!((speed.states_per_s / speed.threads / 1e9 - 1.0).abs() < 1e-6);
    }
}

#[test]
fn no_speed_is_told_while_it_is_in_doubt() {
    for end_s in [9, 40, 70, 79] {
        assert_eq!(gauge(4, 40.0, end_s).read(), None, "after {end_s} s: two jobs take 80 s");
    }
    let early = gauge(4, 40.0, 90).read().expect("measured");
    assert!((2.0..=4.0).contains(&early.speed.threads), "{early:?}");
    // Results that took no time tell no speed either.
    let mut gauge = Gauge::at(0, &Sums::default());
    let sums = Sums { done: 1, leased: 1, ..Sums::default() };
    gauge.note(2_000, &sums, &busy(1), || true);
    gauge.note(4_000, &Sums { done: 2, ..sums }, &busy(1), || true);
    assert_eq!(gauge.read(), None);
}

#[test]
fn when_half_of_the_workers_go_the_time_left_doubles_at_once() {
    let mut gauge = gauge(4, 0.1, 100);
    let sums = gauge.sums;
    let mut left = |second: u64, key, pace| {
        gauge.note(1_000 * second, &sums, &Busy { crew: Crew { key, pace }, ..busy(4) }, || true);
        gauge.read().expect("measured").time_left_s(1e12).value
    };
    let (all, half) = (left(101, 1, 4.0), left(102, 2, 2.0));
    assert!((half / all - 2.0).abs() < 1e-6, "{all} {half}");
}

#[test]
fn nobodys_time_is_not_counted() {
    let mut gauge = gauge(2, 1.0, 100);
    let before = gauge.read();
    let idle = Sums { leased: 0, ..gauge.sums };
    gauge.note(3_600_000, &idle, &busy(0), || false);
    assert_eq!(gauge.read(), before);
    let mut job = Sums { done: idle.done + 2, leased: 2, ..idle };
    job.accepted.elapsed_us += 2_000_000;
    job.estimate_done += 2_000_000_000;
    gauge.note(3_601_000, &job, &busy(2), || true);
    let after = gauge.read().expect("measured").speed.threads;
    assert!((after - 2.0).abs() < 0.05, "{after}");
}

#[test]
fn leases_behind_those_of_another_run_are_not_counted_yet() {
    let mut gauge = Gauge::at(0, &Sums::default());
    let mut sums = Sums { leased: 200, ..Sums::default() };
    for second in 1..=600 {
        gauge.note(1_000 * second, &sums, &busy(4), || false);
    }
    assert_eq!(gauge.read(), None);
    // From here on its holder counts it, and tells so every 5 seconds.
    for sync in 1..=4 {
        sums.done += 400;
        sums.accepted.elapsed_us += 20_000_000;
        sums.accepted.states += 20_000_000_000;
        sums.estimate_done += 20_000_000_000;
        gauge.note(600_000 + 5_000 * sync, &sums, &busy(4), || true);
        let Speed { threads, states_per_s } = gauge.read().expect("measured").speed;
        assert!((threads - 4.0).abs() < 0.05, "{threads} after {sync}");
        assert!((states_per_s / 4e9 - 1.0).abs() < 0.02, "{states_per_s}");
    }
}

#[test]
fn results_that_are_taken_out_do_not_hold_the_speed() {
    let mut gauge = Gauge::at(0, &Sums { leased: 1, ..Sums::default() });
    let mut look = |second: u32, done: u32, job_us: u128| {
        let states = u128::from(done) * 1_000;
        let accepted =
            AcceptedSums { elapsed_us: u128::from(done) * job_us, states, ..AcceptedSums::default() };
        let sums = Sums { done, leased: 1, estimate_done: states, accepted, ..Sums::default() };
        gauge.note(u64::from(second) * 1_000, &sums, &busy(1), || true);
        gauge.read().map(|measured| measured.speed.states_per_s)
    };
    for second in 1..=600 {
        look(second, second, 1_000_000);
    }
    // Nearly all are void; what follows takes twice as long.
    for second in 601..=1_800 {
        look(second, (second - 600) / 2, 2_000_000);
    }
    let speed = look(1_801, 600, 2_000_000).expect("measured");
    assert!((450.0..=550.0).contains(&speed), "{speed}");
}
