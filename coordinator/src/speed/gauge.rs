//! One run's window of results, and what it says of the speed and the time left.

use std::collections::VecDeque;
use std::ops::{AddAssign, Mul};

use nqueens_kernel::counts::to_f64;
use nqueens_model::operator::{Interval, Speed};
use nqueens_scheduler::{Busy, Crew, Millis, Sums};

/// Minimum time over which results are collected, so that no single result determines a speed.
pub(super) const GATHER_MS: Millis = 1_000;

/// A window is as long as this, ...
const WINDOW_S: f64 = 200.0;

/// ... or, where jobs take long, as so many of them one after the other.
const WINDOW_JOBS: f64 = 10.0;

/// Parts of a full window: how they differ tells how steady the speed is.
const SPANS: f64 = 40.0;

/// When all workers have changed, what was known before counts as so many seconds of the new window; when one of ten has, ten times
/// as many.
const CARRIED_S: f64 = 15.0;

/// Before the spans tell, 10 seconds, or a result if these take longer, are taken to scatter so much.
const SCATTER: f64 = 0.3;

/// Standard error of what is carried over a change.
const CARRIED_ERROR: f64 = 0.25;

/// Standard error of a steady speed in the long run.
const LONG_ERROR: f64 = 0.05;

/// Standard errors on either side of the interval.
const Z: f64 = 2.0;

/// A speed that was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    pub speed: Speed,
    /// Estimated states that come in each second.
    work_per_s: f64,
    /// Relative variance of that over a second: over t seconds it is a t-th of it.
    scatter: f64,
    /// Relative variance of what is left in doubt of the speed, whatever the time left.
    doubt: f64,
    /// Time that a job takes.
    job_s: f64,
}

impl Measured {
    /// A speed so many times smaller, with the same doubt.
    pub(super) fn slower(self, times: f64) -> Self {
        let Speed { threads, states_per_s } = self.speed;
        let speed = Speed { threads: threads / times, states_per_s: states_per_s / times };
        Self { speed, work_per_s: self.work_per_s / times, ..self }
    }

    /// Until so much more work has come in, in seconds.
    pub(crate) fn time_left_s(&self, work: f64) -> Interval {
        let value = work / self.work_per_s;
        // The future scatters as the past does.
        let error = Z * (self.doubt + self.scatter / value.max(self.job_s).max(1.0)).sqrt();
        let (low, high) = (value / (1.0 + error) - self.job_s, value * (1.0 + error) + self.job_s);
        Interval { value, low: low.max(0.0), high }
    }
}

/// What came in over a time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Span {
    seconds: f64,
    work: f64,
    states: f64,
    thread_seconds: f64,
    results: f64,
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        self.seconds += other.seconds;
        self.work += other.work;
        self.states += other.states;
        self.thread_seconds += other.thread_seconds;
        self.results += other.results;
    }
}

impl Mul<f64> for Span {
    type Output = Self;

    fn mul(self, by: f64) -> Self {
        Self {
            seconds: by * self.seconds,
            work: by * self.work,
            states: by * self.states,
            thread_seconds: by * self.thread_seconds,
            results: by * self.results,
        }
    }
}

impl Span {
    fn sum<'a>(spans: impl IntoIterator<Item = &'a Self>) -> Self {
        spans.into_iter().fold(Self::default(), |mut sum, span| {
            sum += *span;
            sum
        })
    }

    /// Time that a job takes.
    fn job_s(&self) -> f64 {
        self.thread_seconds / self.results.max(f64::MIN_POSITIVE)
    }
}

/// One run's window.
#[derive(Debug)]
pub(super) struct Gauge {
    /// What has come in later is not in the window yet.
    since: Millis,
    /// Nobody counts it yet, or again: it has no leases, or they wait behind those of another run.
    waits: bool,
    /// The run's sums at that time.
    sums: Sums,
    crew: Option<Crew>,
    /// What is kept from before the window, at the speed of the present crew.
    carried: Span,
    spans: VecDeque<Span>,
}

impl Gauge {
    pub(super) fn at(now: Millis, sums: &Sums) -> Self {
        Self {
            since: now,
            waits: true,
            sums: *sums,
            crew: None,
            carried: Span::default(),
            spans: VecDeque::new(),
        }
    }

    /// Looks at a run of these sums, while these workers are busy; `is_counted` says whether somebody counts it.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a speed"
    )]
    pub(super) fn note(&mut self, now: Millis, sums: &Sums, busy: &Busy, is_counted: impl FnOnce() -> bool) {
        // Results are taken out again, and what comes next is new.
        if sums.done < self.sums.done {
            (self.since, self.sums) = (now, *sums);
        }
        let results = f64::from(sums.done.saturating_sub(self.sums.done));
        let (new, old) = (&sums.accepted, &self.sums.accepted);
        let thread_seconds = new.elapsed_us.saturating_sub(old.elapsed_us) as f64 / 1e6;
        if results > 0.0 && self.waits {
            // Its first results: all that is known of their beginning is how long they took.
            let took_ms = (1e3 * thread_seconds / busy.threads.max(1) as f64) as Millis;
            self.since = self.since.max(now.saturating_sub(took_ms));
            self.waits = false;
        } else if results == 0.0 {
            self.waits = sums.leased == 0 || self.waits && !is_counted();
            if self.waits {
                self.since = now;
            }
        }
        let time = now.saturating_sub(self.since);
        if results > 0.0 && time >= GATHER_MS {
            let work = to_f64(sums.estimate_done.saturating_sub(self.sums.estimate_done));
            let states = to_f64(new.states.saturating_sub(old.states));
            self.add(Span { seconds: time as f64 / 1e3, work, states, thread_seconds, results });
            (self.since, self.sums) = (now, *sums);
        }
        self.change_crew(busy.crew);
    }

    fn add(&mut self, span: Span) {
        let window_s = WINDOW_S.max(WINDOW_JOBS * span.job_s());
        match self.spans.back_mut() {
            Some(last) if last.seconds < window_s / SPANS => *last += span,
            _ => self.spans.push_back(span),
        }
        let mut seconds = Span::sum(&self.spans).seconds;
        while seconds > window_s && self.spans.len() > 1 {
            seconds -= self.spans.pop_front().map_or(0.0, |span| span.seconds);
            self.carried = Span::default();
        }
    }

    /// Starts a window anew if others count than before.
    fn change_crew(&mut self, crew: Crew) {
        let before = self.crew.replace(crew);
        let Some(before) = before.filter(|before| before.key != crew.key) else { return };
        let mut known = self.carried;
        known += Span::sum(&self.spans);
        if known.seconds == 0.0 || before.pace <= 0.0 || crew.pace <= 0.0 {
            return;
        }
        let times = crew.pace / before.pace;
        let change = 1.0 - times.min(1.0 / times);
        let kept = (CARRIED_S / change.max(1e-3) / known.seconds).min(1.0);
        // As many seconds in which more, or less, came in.
        self.carried = Span { seconds: kept * known.seconds, ..known * (kept * times) };
        self.spans.clear();
    }

    /// `None` while too little is known.
    pub(super) fn read(&self) -> Option<Measured> {
        let mut all = self.carried;
        all += Span::sum(&self.spans);
        // Jobs count when they end, whenever they began.
        let edge = all.job_s() / all.seconds;
        if all.thread_seconds <= 0.0 || all.work <= 0.0 || edge.is_nan() || edge > 0.5 {
            return None;
        }
        let scatter = scatter(&self.spans, &all);
        let carried = CARRIED_ERROR * self.carried.seconds / all.seconds;
        let doubt = scatter / all.seconds + carried.powi(2) + LONG_ERROR.powi(2) + (edge / 2.0).powi(2);
        Some(Measured {
            speed: Speed {
                threads: all.thread_seconds / all.seconds,
                states_per_s: all.states / all.seconds,
            },
            work_per_s: all.work / all.seconds,
            scatter,
            doubt,
            job_s: all.job_s(),
        })
    }
}

/// Relative variance of the work that comes in, over a second. A machine that is slower for a minute shows only in spans of minutes:
/// so it is taken from spans, pairs of them, fours and so on, as long as there are four, and the largest is it.
fn scatter(spans: &VecDeque<Span>, all: &Span) -> f64 {
    let mut spans: Vec<_> = spans.iter().copied().collect();
    if spans.len() < 4 {
        return SCATTER.powi(2) * (all.seconds / all.results).max(10.0);
    }
    let mut largest = 0.0_f64;
    while spans.len() >= 4 {
        let sum = Span::sum(&spans);
        let mean = sum.work / sum.seconds;
        let off = |span: &Span| (span.work - mean * span.seconds).powi(2) / span.seconds;
        #[expect(clippy::cast_precision_loss, reason = "some dozens")]
        let degrees = (spans.len() - 1) as f64;
        largest = largest.max(spans.iter().map(off).sum::<f64>() / degrees / mean.powi(2));
        // Of an odd number the oldest is left out.
        spans = spans.rchunks_exact(2).rev().map(Span::sum).collect();
    }
    largest
}

#[cfg(test)]
mod tests;
