//! Recorded runs, replayed: how often the interval held the time that was really left.
//!
//! A recording has the results of a run: when each was reported, by which worker, its estimated work, and its time in microseconds.
//! `+` is a worker that comes, with its threads, `-` one that is missed. `=` is another run that shares them, with its work; of that
//! `~` is done, until it ends.

use std::collections::BTreeMap;

use nqueens_model::id::WorkerId;
use nqueens_scheduler::{Pace, shared_work};

use super::*;

/// Between two samples.
const EVERY_MS: u64 = 5_000;

/// The first minute is not sampled.
const FROM_MS: u64 = 60_000;

struct Sample {
    left_s: f64,
    said: Interval,
}

impl Sample {
    fn is_held(&self) -> bool {
        (self.said.low..=self.said.high).contains(&self.left_s)
    }

    fn error(&self) -> f64 {
        (self.said.value / self.left_s - 1.0).abs()
    }
}

fn replay(recording: &str) -> Vec<Sample> {
    let lines = || recording.lines().skip(1).map(|line| line.split(' ').collect::<Vec<_>>());
    let number = |text: &str| text.parse::<u64>().expect("a number");
    let worker = |text: &str| WorkerId::new(number(text)).expect("a worker");
    let all = number(recording.split(' ').nth(1).expect("all work"));
    let end = lines().last().map(|last| number(last[0])).expect("a result");
    let mut workers = BTreeMap::<WorkerId, (u32, Pace)>::new();
    let (mut sums, mut other, mut samples) = (Sums { leased: 1, ..Sums::default() }, 0, Vec::new());
    let (mut gauge, mut sample_at) = (Gauge::at(0, &sums), FROM_MS);
    for line in lines() {
        let at = number(line[0]);
        while sample_at < at {
            let work = to_f64(u128::from(all) - sums.estimate_done);
            let work = shared_work(work, (other > 0).then(|| to_f64(other)).into_iter());
            #[expect(clippy::cast_precision_loss, reason = "seconds")]
            let left_s = (end - sample_at) as f64 / 1e3;
            samples.extend(gauge.read().map(|found| Sample { left_s, said: found.time_left_s(work) }));
            sample_at += EVERY_MS;
        }
        match line[1] {
            "+" => {
                let threads = u32::try_from(number(line[3])).expect("few");
                workers.insert(worker(line[2]), (threads, Pace::default()));
            }
            "-" => drop(workers.remove(&worker(line[2]))),
            "=" => other = number(line[2]),
            "~" => other -= number(line[2]),
            name => {
                let (estimate, elapsed_us) = (number(line[2]), number(line[3]));
                if let Some((threads, pace)) = workers.get_mut(&worker(name)) {
                    pace.measure(*threads, estimate, estimate, elapsed_us);
                }
                sums.done += 1;
                sums.estimate_done += u128::from(estimate);
                sums.accepted.elapsed_us += u128::from(elapsed_us);
                sums.accepted.states += u128::from(estimate);
            }
        }
        let members = workers.iter().map(|(id, (threads, pace))| (*id, *threads, pace.of_thread()));
        let crew = Crew::of(members, if other > 0 { 2 } else { 1 });
        let threads = workers.values().map(|(threads, _)| u64::from(*threads)).sum();
        gauge.note(at, &sums, &Busy { threads, crew, ..Busy::default() }, || true);
    }
    samples
}

#[test]
fn the_interval_holds_the_time_left_of_recorded_runs() {
    let recordings = [
        ("steady", include_str!("recorded/steady.txt")),
        ("killed", include_str!("recorded/killed.txt")),
        ("joined", include_str!("recorded/joined.txt")),
        ("slowed", include_str!("recorded/slowed.txt")),
        ("shared", include_str!("recorded/shared.txt")),
    ];
    let (mut held, mut errors) = (0.0, Vec::new());
    for (name, recording) in recordings {
        let samples = replay(recording);
        let of_run = samples.iter().filter(|sample| sample.is_held()).map(|_| 1.0).sum::<f64>();
        let mut of_errors: Vec<_> = samples.iter().map(Sample::error).collect();
        of_errors.sort_by(f64::total_cmp);
        let (count, median) = (of_errors.len(), of_errors[of_errors.len() / 2]);
        println!("{name}: held {of_run} of {count}, median error {median:.3}");
        held += of_run;
        errors.extend(of_errors);
    }
    errors.sort_by(f64::total_cmp);
    let (share, median) = (held / errors.iter().map(|_| 1.0).sum::<f64>(), errors[errors.len() / 2]);
    println!("all: held {share:.3}, median error {median:.3}");
    assert!((0.85..=0.99).contains(&share), "{share:.3}");
    assert!(median < 0.1, "{median:.3}");
}
