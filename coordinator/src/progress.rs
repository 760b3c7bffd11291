//! The progress of runs: a snapshot for operators.

use nqueens_kernel::counts::to_f64;
use nqueens_kernel::plan::Plan;
use nqueens_ledger::RunRow;
use nqueens_model::id::RunId;
use nqueens_model::operator::{DiskRoom, Interval, Progress, RunState, RunStatus};
use nqueens_scheduler::{AcceptedSums, Millis, Run, Scheduler, Sums};

pub use crate::speed::Measured;
use crate::speed::{DOUBT_MAX, Speeds};

/// All runs at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Each run, by id.
    pub runs: Vec<RunProgress>,
    /// Workers that are present and hold a lease.
    pub busy_workers: usize,
    /// The room on the disk with the database, if somebody watches it.
    pub room: Option<DiskRoom>,
    /// Whether some run has a job that can be leased.
    pub(crate) has_ready: bool,
    /// Open checks that nobody counts.
    pub(crate) checks_waiting: usize,
}

impl Snapshot {
    /// `unplanned` are the runs that are being planned.
    pub(crate) fn of(
        scheduler: &Scheduler,
        now: Millis,
        speeds: &Speeds,
        unplanned: Vec<RunProgress>,
    ) -> Self {
        let (dispatch, room) = (scheduler.dispatch(), scheduler.room());
        let planned = dispatch.runs().map(|run| RunProgress {
            measured: speeds.of(run),
            threads: speeds.threads(run),
            workers: speeds.workers(run),
            is_over: run.state().is_open() && dispatch.is_over(now, run),
            ..RunProgress::of(run)
        });
        // One may just have been planned to its end.
        let unplanned = unplanned.into_iter().filter(|run| dispatch.run(run.id).is_none());
        let mut runs: Vec<_> = planned.chain(unplanned).collect();
        runs.sort_by_key(|run| run.id);
        Self {
            runs,
            busy_workers: speeds.busy_workers(),
            room,
            has_ready: room.is_none_or(|room| !room.is_short)
                && dispatch.runs().any(|run| run.estimate_ready() > 0),
            checks_waiting: dispatch.checks_waiting(),
        }
    }

    /// The runs that have come to their end, and have no total yet.
    pub(crate) fn complete(&self) -> Vec<RunId> {
        self.runs.iter().filter(|run| run.is_over).map(|run| run.id).collect()
    }

    /// One run.
    pub fn run(&self, id: RunId) -> Option<&RunProgress> {
        self.runs.iter().find(|run| run.id == id)
    }
}

/// One run at one moment.
#[derive(Clone, Debug)]
pub struct RunProgress {
    /// Its name.
    pub id: RunId,
    /// What it counts, and how that is cut into jobs.
    pub plan: Plan,
    /// What it is doing.
    pub state: RunState,
    /// Number of jobs; while it is being planned, the number that is expected.
    pub jobs: u32,
    /// Jobs stored so far, while it is being planned.
    pub planned: Option<u32>,
    /// What they come to.
    pub sums: Sums,
    /// How fast it goes; `None` while nobody counts, or too little is known.
    pub measured: Option<Measured>,
    /// Threads that may be counting it; `None` while nobody does.
    pub threads: Option<f64>,
    /// Workers that are present and hold leases of it.
    pub workers: usize,
    /// Nothing is left to be counted of it, and it has no total yet.
    pub(crate) is_over: bool,
}

impl RunProgress {
    /// From its sums alone nobody can tell how fast it goes.
    pub(crate) fn of(run: &Run) -> Self {
        let (id, plan, state, jobs) = (run.id(), *run.plan(), run.state(), run.jobs());
        let (sums, measured, threads, workers) = (*run.sums(), None, None, 0);
        let is_over = false;
        Self { id, plan, state, jobs, planned: None, sums, measured, threads, workers, is_over }
    }

    /// The run in full; its state is the row's.
    pub fn status(&self, row: RunRow) -> RunStatus {
        RunStatus {
            progress: Progress { state: row.state, ..self.into() },
            fingerprint: Some(row.fingerprint),
            priority: row.priority,
            replicate_ppm: row.replicate_ppm,
            reason: row.reason,
            created_at: row.created_at,
            started_at: row.started_at,
            finished_at: row.finished_at,
            recounts: row.recounts,
            outcome: row.outcome,
        }
    }

    /// Share of the estimated work that is done, `0.0..=1.0`.
    pub fn share_done(&self) -> f64 {
        if self.planned.is_some() {
            return 0.0;
        }
        if self.jobs == self.sums.done {
            return 1.0;
        }
        to_f64(self.sums.estimate_done) / to_f64(self.sums.estimate)
    }

    /// The total of the whole board, estimated from the jobs that are done; `None` while they are too few to say, and
    /// once all are done.
    pub fn estimated_total(&self) -> Option<Interval> {
        let AcceptedSums { found, moments, .. } = &self.sums.accepted;
        let solutions = to_f64(self.plan.total(*found).ok()?);
        let sample = self.sample(JOBS_MIN)?;
        Some(sample.total(solutions, moments.xy, moments.yy))
    }

    /// Until all jobs are done, in seconds, if as many threads go on counting; `None` while that can't be said. As long as
    /// too few results have come in to measure a speed, all threads are taken to count that may.
    pub fn time_left_s(&self) -> Option<Interval> {
        let measured = self.measured.map(|found| (found.speed.threads, found.doubt));
        let (threads, doubt) = measured.or_else(|| Some((self.threads?, DOUBT_MAX)))?;
        let work = self.estimated_work_left_s()?;
        let spread = Interval { high: work.high / (1.0 - doubt), low: work.low / (1.0 + doubt), ..work };
        Some(spread.map(|thread_s| thread_s / threads))
    }

    /// Thread time that the open jobs will take, in seconds, estimated from those that are done.
    fn estimated_work_left_s(&self) -> Option<Interval> {
        let sample = self.sample(1)?;
        let AcceptedSums { elapsed_us, moments, .. } = self.sums.accepted;
        let ratio = to_f64(elapsed_us) / sample.x;
        let variance = sample.residual_variance(ratio, moments.xt, moments.tt);
        let (all, open) = (sample.jobs, sample.jobs - sample.done);
        let value = ratio * (sample.x_all - sample.x) / 1e6;
        if self.sums.done < JOBS_MIN {
            return Some(Interval { value, low: value / ROUGHLY, high: value * ROUGHLY });
        }
        // Both the ratio and the open jobs themselves scatter.
        let error = (open * all / sample.done * variance).sqrt();
        Some(around(value, error / 1e6))
    }

    /// The done jobs, if they are not all, and at least so many.
    fn sample(&self, jobs_min: u32) -> Option<JobSample> {
        let Sums { done, estimate, estimate_done, accepted, .. } = self.sums;
        (done >= jobs_min && done < self.jobs).then(|| JobSample {
            jobs: f64::from(self.jobs),
            done: f64::from(done),
            x_all: to_f64(estimate),
            x: to_f64(estimate_done),
            xx: accepted.moments.xx,
        })
    }
}

impl From<&RunProgress> for Progress {
    fn from(run: &RunProgress) -> Self {
        Self {
            run: run.id,
            plan: run.plan,
            state: run.state,
            jobs: run.jobs,
            planned: run.planned,
            done: run.sums.done,
            leased: run.sums.leased,
            quarantined: run.sums.quarantined,
            share_done: run.share_done(),
            states: run.sums.accepted.states,
            estimated_states: run.sums.estimate,
            estimated_total: run.estimated_total(),
            speed: run.measured.map(|measured| measured.speed),
            time_left_s: run.time_left_s(),
            checks: run.sums.checks,
            workers: (run.workers > 0).then(|| u32::try_from(run.workers).unwrap_or(u32::MAX)),
        }
    }
}

/// Done jobs from which on it can be said how far an estimate may be off.
pub(crate) const JOBS_MIN: u32 = 20;

/// The time left that fewer jobs suggest is off by less than this factor, as a rule.
const ROUGHLY: f64 = 2.0;

/// Standard errors on either side of an interval: it holds the truth 95 times of 100.
const Z: f64 = 1.96;

/// The done jobs as a sample of all, with the estimated work x of each.
pub(crate) struct JobSample {
    pub(crate) jobs: f64,
    pub(crate) done: f64,
    pub(crate) x_all: f64,
    pub(crate) x: f64,
    pub(crate) xx: f64,
}

impl JobSample {
    /// All solutions, from those that the done jobs found and the sums of x y and y^2.
    ///
    /// Jobs leave in random order, so the done ones are a fair sample: this is the ratio estimator of survey sampling
    /// (Cochran 1977, chapter 6) with the estimated work as the auxiliary variable.
    pub(crate) fn total(&self, found: f64, xy: f64, yy: f64) -> Interval {
        let ratio = found / self.x;
        let variance = self.residual_variance(ratio, xy, yy);
        let (all, done) = (self.jobs, self.done);
        let error = (all * (all - done) / done * variance).sqrt();
        let value = (ratio * self.x_all).max(found);
        Interval { low: (value - Z * error).max(found), ..around(value, error) }
    }

    /// Variance of `y - ratio x` over the sample, where `ratio` is sum y / sum x.
    fn residual_variance(&self, ratio: f64, xy: f64, yy: f64) -> f64 {
        ((yy - 2.0 * ratio * xy + ratio * ratio * self.xx) / (self.done - 1.0)).max(0.0)
    }
}

/// The interval around a value of this standard error.
fn around(value: f64, error: f64) -> Interval {
    Interval { value, low: (value - Z * error).max(0.0), high: value + Z * error }
}

#[cfg(test)]
mod tests {
    use nqueens_kernel::board::BoardSize;
    use nqueens_kernel::counts::Counts;
    use nqueens_kernel::plan::PlanKind;
    use nqueens_model::operator::Speed;

    use super::*;

    /// A run of 400 jobs of uneven work whose solutions and times follow the work loosely, a pseudo-random 60 of them
    /// done.
    fn half_way(seed: u64) -> (RunProgress, f64, f64) {
        let mut state = seed;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 40
        };
        let mut sums = Sums::default();
        let (mut total, mut time_left) = (0.0, 0.0);
        for _ in 0..400 {
            let estimate = 1_000 + random() % 9_000;
            let counts = Counts::only8(estimate * (500 + random() % 1_000) / 700);
            let elapsed_us = estimate * (800 + random() % 400);
            sums.estimate += u128::from(estimate);
            total += to_f64(counts.total());
            // 60 of 400 on average; the exact number does not matter.
            if random() % 400 < 60 {
                sums.done += 1;
                sums.estimate_done += u128::from(estimate);
                sums.accepted.add(estimate, counts, 0, elapsed_us, elapsed_us).unwrap();
            } else {
                time_left += to_f64(elapsed_us) / 1e6;
            }
        }
        let plan = Plan::with_states_per_job(BoardSize::MAX, PlanKind::Border, 1);
        let id = RunId::from_random(1);
        (
            RunProgress {
                id,
                plan,
                state: RunState::Active,
                jobs: 400,
                planned: None,
                sums,
                measured: None,
                threads: None,
                workers: 0,
                is_over: false,
            },
            total,
            time_left,
        )
    }

    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        let mut held = [0; 2];
        for seed in 0..1_000 {
            let (run, total, time_left) = half_way(seed);
            let within = |interval: Interval, truth| interval.low <= truth && truth <= interval.high;
            held[0] += i32::from(within(run.estimated_total().unwrap(), total));
            held[1] += i32::from(within(run.estimated_work_left_s().unwrap(), time_left));
        }
        for held in held {
            assert!((925..=975).contains(&held), "{held} of 1,000 instead of 950");
        }
    }

    #[test]
    fn time_left_is_work_left_over_threads_and_as_doubtful() {
        let (mut run, ..) = half_way(1);
        assert_eq!(run.time_left_s(), None);
        let work = run.estimated_work_left_s().unwrap();
        let measured = |threads, doubt| Some(Measured { speed: Speed { threads, states_per_s: 1e9 }, doubt });
        run.measured = measured(4.0, 0.0);
        assert_eq!(run.time_left_s(), Some(work.map(|thread_s| thread_s / 4.0)));
        run.measured = measured(4.0, 0.25);
        let spread = Interval { value: work.value / 4.0, low: work.low / 5.0, high: work.high / 3.0 };
        assert_eq!(run.time_left_s(), Some(spread));
    }

    #[test]
    fn what_is_done_needs_no_estimate() {
        let (mut run, ..) = half_way(1);
        (run.sums.done, run.sums.estimate_done) = (run.jobs, run.sums.estimate);
        assert_eq!((run.estimated_total(), run.estimated_work_left_s()), (None, None));
    }

    #[test]
    fn a_few_jobs_make_a_rough_estimate_of_the_time_left_alone() {
        let (mut run, ..) = half_way(1);
        run.sums.done = JOBS_MIN - 1;
        assert_eq!(run.estimated_total(), None);
        let Interval { value, low, high } = run.estimated_work_left_s().unwrap();
        assert_eq!((low, high), (value / 2.0, value * 2.0));
        run.sums.done = 0;
        assert_eq!(run.estimated_work_left_s(), None);
    }

    #[test]
    fn before_a_speed_is_measured_all_threads_are_taken_to_count() {
        let (mut run, ..) = half_way(1);
        run.threads = Some(8.0);
        let work = run.estimated_work_left_s().unwrap();
        let rough = Interval { value: work.value / 8.0, low: work.low / 12.0, high: work.high / 4.0 };
        let said = run.time_left_s().unwrap();
        for (said, rough) in [(said.value, rough.value), (said.low, rough.low), (said.high, rough.high)] {
            assert!((said / rough - 1.0).abs() < 1e-9, "{said} {rough}");
        }
    }
}
