//! The speed of runs, measured by their results.

use std::collections::HashMap;

use nqueens_model::id::RunId;
use nqueens_model::operator::{RunState, Speed};
use nqueens_scheduler::{AcceptedSums, Busy, Dispatch, Millis, Run, Sums};

/// What is older than so many seconds fades, ...
const FADE_S: f64 = 300.0;

/// ... or, where jobs take long, what is older than so many of them.
const FADE_JOBS: f64 = 10.0;

/// Minimum time over which results are collected, so that no single result determines a speed.
const GATHER_MS: Millis = 1_000;

/// A speed that is in greater doubt is not told.
pub(crate) const DOUBT_MAX: f64 = 0.5;

/// The speed of each run, with how far it can be trusted.
#[derive(Debug, Default)]
pub(crate) struct Speeds {
    gauges: HashMap<RunId, Gauge>,
    /// Who holds leases, ...
    busy: Busy,
    /// ... as of this time: there may be ten thousand workers to look at.
    looked: Option<Millis>,
}

/// A speed that was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// What it is.
    pub speed: Speed,
    /// So large a share of it may be missing or too much, half of it at most: the time that a job takes over the time that was
    /// measured, for jobs count when they end, whenever they began.
    pub doubt: f64,
}

impl Speeds {
    /// Looks at what has come in.
    pub(crate) fn note(&mut self, now: Millis, dispatch: &Dispatch) {
        let looks = self.looked.is_none_or(|looked| now.saturating_sub(looked) >= GATHER_MS);
        if looks {
            (self.busy, self.looked) = (dispatch.busy(now), Some(now));
        }
        for run in dispatch.runs() {
            let gauge = self.gauges.entry(run.id()).or_insert_with(|| Gauge::at(now, run.sums()));
            gauge.note(now, run.sums(), self.busy.threads, || looks && dispatch.is_counted(run.id()));
        }
    }

    /// Workers that are present and hold a lease, as of a second ago.
    pub(crate) fn busy_workers(&self) -> usize {
        self.busy.workers
    }

    /// The same of one run: none of a run that waits, or that is over.
    pub(crate) fn workers(&self, run: &Run) -> usize {
        let holders = self.busy.of_run.get(&run.id()).copied();
        holders.filter(|_| run.state().is_open()).unwrap_or(0)
    }

    /// Threads of the present workers that hold leases, if some of these are of a run: so many may be counting it.
    #[expect(clippy::cast_precision_loss, reason = "a speed")]
    pub(crate) fn threads(&self, run: &Run) -> Option<f64> {
        let at_work = run.state() == RunState::Active && run.sums().leased > 0 && self.busy.threads > 0;
        at_work.then_some(self.busy.threads as f64)
    }

    /// How fast a run goes; `None` while nobody counts, or too little is known.
    pub(crate) fn of(&self, run: &Run) -> Option<Measured> {
        let busy = self.threads(run)?;
        let measured = self.gauges.get(&run.id())?.read()?;
        // Results that waited for the coordinator come in faster than anybody counts.
        let too_fast = (measured.speed.threads / busy).max(1.0);
        let Speed { threads, states_per_s } = measured.speed;
        let speed = Speed { threads: threads / too_fast, states_per_s: states_per_s / too_fast };
        Some(Measured { speed, ..measured })
    }
}

/// One run's: sums over what came in, the older the less of it.
#[derive(Debug)]
struct Gauge {
    /// What has come in later is not in the sums yet.
    since: Millis,
    /// Nobody counts it yet, or again: it has no leases, or they wait behind those of another run.
    waits: bool,
    /// The run's sums at that time.
    done: u32,
    elapsed_us: u128,
    states: u128,
    /// Wall time.
    seconds: f64,
    thread_seconds: f64,
    states_visited: f64,
    results: f64,
}

impl Gauge {
    fn at(now: Millis, sums: &Sums) -> Self {
        let AcceptedSums { elapsed_us, states, .. } = sums.accepted;
        let (seconds, thread_seconds, states_visited, results) = (0.0, 0.0, 0.0, 0.0);
        Self {
            since: now,
            waits: true,
            done: sums.done,
            elapsed_us,
            states,
            seconds,
            thread_seconds,
            states_visited,
            results,
        }
    }

    /// Looks at a run of these sums, while so many threads are busy; `is_counted` says whether somebody counts it.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a speed"
    )]
    fn note(&mut self, now: Millis, sums: &Sums, busy_threads: u64, is_counted: impl FnOnce() -> bool) {
        // A disputed result is taken out again: then the sums go back.
        let results = f64::from(sums.done.saturating_sub(self.done));
        let thread_seconds = sums.accepted.elapsed_us.saturating_sub(self.elapsed_us) as f64 / 1e6;
        if results > 0.0 && self.waits {
            // Its first results: all that is known of their beginning is how long they took.
            let took_ms = (1e3 * thread_seconds / busy_threads.max(1) as f64) as Millis;
            self.since = self.since.max(now.saturating_sub(took_ms));
            self.waits = false;
        } else if results == 0.0 {
            self.waits = sums.leased == 0 || self.waits && !is_counted();
            if self.waits {
                self.since = now;
            }
        }
        let time = now.saturating_sub(self.since);
        if results == 0.0 || time < GATHER_MS {
            return;
        }
        let seconds = time as f64 / 1e3;
        let states = sums.accepted.states.saturating_sub(self.states) as f64;
        let kept = (-seconds / FADE_S.max(FADE_JOBS * thread_seconds / results)).exp();
        *self = Self {
            seconds: kept * self.seconds + seconds,
            thread_seconds: kept * self.thread_seconds + thread_seconds,
            states_visited: kept * self.states_visited + states,
            results: kept * self.results + results,
            waits: false,
            ..Self::at(now, sums)
        };
    }

    fn read(&self) -> Option<Measured> {
        let measured = (self.seconds > 0.0).then(|| Measured {
            speed: Speed {
                threads: self.thread_seconds / self.seconds,
                states_per_s: self.states_visited / self.seconds,
            },
            doubt: self.thread_seconds / self.results / self.seconds,
        });
        measured.filter(|found| found.doubt <= DOUBT_MAX && found.speed.threads > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
                accepted: AcceptedSums {
                    elapsed_us: (done * job_s * 1e6) as u128,
                    states: (done * job_s * 1e9) as u128,
                    ..AcceptedSums::default()
                },
                ..Sums::default()
            };
            gauge.note(u64::from(second) * 1_000, &sums, threads.into(), || true);
        }
        gauge
    }

    #[test]
    fn short_and_long_jobs_are_measured_alike() {
        for (threads, job_s, end_s) in
            [(1, 0.1, 10), (64, 0.3, 600), (4, 40.0, 4_000), (64, 3_600.0, 100_000)]
        {
            let Measured { speed, doubt } = gauge(threads, job_s, end_s).read().expect("measured");
            let error = speed.threads / f64::from(threads) - 1.0;
            assert!(
                error.abs() < doubt.max(0.01),
                "{threads} threads seem {} (doubt {doubt})",
                speed.threads
            );
            assert!(doubt < 0.14, "{doubt}");
            assert!((speed.states_per_s / speed.threads / 1e9 - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn no_speed_is_told_while_it_is_in_doubt() {
        for end_s in [9, 40, 70, 79] {
            assert_eq!(gauge(4, 40.0, end_s).read(), None, "after {end_s} s: two jobs take 80 s");
        }
        let early = gauge(4, 40.0, 90).read().expect("measured");
        assert!((2.0..=4.0).contains(&early.speed.threads) && early.doubt <= DOUBT_MAX, "{early:?}");
        // Results that took no time tell no speed either.
        let mut gauge = Gauge::at(0, &Sums::default());
        let sums = Sums { done: 1, leased: 1, ..Sums::default() };
        gauge.note(2_000, &sums, 1, || true);
        gauge.note(4_000, &Sums { done: 2, ..sums }, 1, || true);
        assert_eq!(gauge.read(), None);
    }

    #[test]
    fn nobodys_time_is_not_counted() {
        let mut gauge = gauge(2, 1.0, 100);
        let before = gauge.read();
        let idle = Sums { leased: 0, ..at(&gauge) };
        gauge.note(3_600_000, &idle, 0, || false);
        assert_eq!(gauge.read(), before);
        let mut job = Sums { done: idle.done + 2, leased: 2, ..idle };
        job.accepted.elapsed_us += 2_000_000;
        gauge.note(3_601_000, &job, 2, || true);
        let after = gauge.read().expect("measured").speed.threads;
        assert!((after - 2.0).abs() < 0.05, "{after}");
    }

    #[test]
    fn leases_behind_those_of_another_run_are_not_counted_yet() {
        let mut gauge = Gauge::at(0, &Sums::default());
        let mut sums = Sums { leased: 200, ..Sums::default() };
        for second in 1..=600 {
            gauge.note(1_000 * second, &sums, 4, || false);
        }
        assert_eq!(gauge.read(), None);
        // From here on its holder counts it, and tells so every 5 seconds.
        for sync in 1..=4 {
            sums.done += 400;
            sums.accepted.elapsed_us += 20_000_000;
            sums.accepted.states += 20_000_000_000;
            gauge.note(600_000 + 5_000 * sync, &sums, 4, || true);
            let Speed { threads, states_per_s } = gauge.read().expect("measured").speed;
            assert!((threads - 4.0).abs() < 0.05, "{threads} after {sync}");
            assert!((states_per_s / 4e9 - 1.0).abs() < 0.02, "{states_per_s}");
        }
    }

    fn at(gauge: &Gauge) -> Sums {
        let Gauge { done, elapsed_us, states, .. } = *gauge;
        let accepted = AcceptedSums { states, elapsed_us, ..AcceptedSums::default() };
        Sums { done, accepted, ..Sums::default() }
    }
}
