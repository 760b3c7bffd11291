//! The progress of runs: a snapshot for operators.

use nqueens_kernel::counts::to_f64;
use nqueens_kernel::plan::Plan;
use nqueens_ledger::RunRow;
use nqueens_model::id::RunId;
use nqueens_model::numbers::thousands;
use nqueens_model::operator::{DiskRoom, Interval, Progress, Recounts, RunState, RunStatus};
use nqueens_scheduler::{AcceptedSums, Millis, Run, Scheduler, Sums};

pub use crate::speed::Measured;
use crate::speed::Speeds;

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
        let planned = dispatch.runs().map(|run| {
            let measured = speeds.of(run);
            RunProgress {
                measured,
                threads: speeds.threads(run),
                workers: speeds.workers(run),
                // Looks at all runs, for few of them.
                work_left: measured.map_or(0.0, |_| dispatch.work_left(run)),
                recounts_wanted: Some(dispatch.recounts_wanted(run)),
                recounts_wait_s: to_f64(u128::from(dispatch.recounts_wait_ms(run))) / 1e3,
                is_over: run.state().is_open() && dispatch.is_over(now, run),
                ..RunProgress::of(run)
            }
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
    /// Of a run that is measured: estimated states until its end at its present speed. Runs that share its workers may end before.
    pub(crate) work_left: f64,
    /// Jobs, or parts of them, that the coordinator is to recount before there is a total; `None` where a ledger alone is known.
    pub(crate) recounts_wanted: Option<u32>,
    /// How long it may wait for them once its jobs are done.
    pub(crate) recounts_wait_s: f64,
    /// Nothing is left to be counted of it, and it has no total yet.
    pub(crate) is_over: bool,
}

impl RunProgress {
    /// One that nobody counts.
    pub(crate) fn new(id: RunId, plan: Plan, state: RunState, jobs: u32, sums: &Sums) -> Self {
        Self {
            id,
            plan,
            state,
            jobs,
            planned: None,
            sums: *sums,
            measured: None,
            threads: None,
            workers: 0,
            work_left: 0.0,
            recounts_wanted: None,
            recounts_wait_s: 0.0,
            is_over: false,
        }
    }

    /// From its sums alone nobody can tell how fast it goes.
    pub(crate) fn of(run: &Run) -> Self {
        Self::new(run.id(), *run.plan(), run.state(), run.jobs(), run.sums())
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
            // The row has their number once there is a total.
            recounts: Recounts {
                agreed: row.recounts.agreed.max(self.sums.checks.recounted),
                ..row.recounts
            },
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

    /// Until all jobs are done, in seconds, if those who count go on as they do, with room for the recounts that may follow; `None`
    /// while that can't be said. Before a speed is measured, all threads are taken to count that may.
    pub fn time_left_s(&self) -> Option<Interval> {
        let sample = self.sample(1)?;
        let work = sample.x_all - sample.x;
        let left = if let Some(measured) = self.measured {
            measured.time_left_s(self.work_left)
        } else {
            let value = to_f64(self.sums.accepted.elapsed_us) / 1e6 / sample.x * work / self.threads?;
            Interval { value, low: value / ROUGHLY, high: value * ROUGHLY }
        };
        Some(Interval { high: left.high + self.recounts_wait_s, ..left })
    }

    /// What an active run waits for that can't tell its time left, for people.
    fn waits_for(&self) -> Option<String> {
        let Sums { done, quarantined, checks, .. } = self.sums;
        let recounts_wanted = self.recounts_wanted?;
        if self.state != RunState::Active || self.time_left_s().is_some() {
            return None;
        }
        if done < self.jobs {
            let what = match (self.workers, done + quarantined == self.jobs) {
                (_, true) => "somebody to look at the jobs in quarantine",
                (0, _) => "workers",
                _ => "the first results",
            };
            return Some(format!("waiting for {what}"));
        }
        let parts =
            |what, made, all| format!("waiting for {what}: {} of {}", thousands(made), thousands(all));
        Some(if checks.open > 0 {
            let made = checks.agreed + checks.settled;
            parts("second counts", made, made + checks.open)
        } else if checks.recounted < recounts_wanted && !self.is_over {
            parts("recounts", checks.recounted, recounts_wanted)
        } else {
            "adding up".to_owned()
        })
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
            waits_for: run.waits_for(),
            checks: run.sums.checks,
            workers: (run.workers > 0).then(|| u32::try_from(run.workers).unwrap_or(u32::MAX)),
        }
    }
}

/// Done jobs from which on it can be said how far an estimate may be off.
pub(crate) const JOBS_MIN: u32 = 20;

/// The time left is off by less than this factor, as a rule, where no speed is measured.
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
        Interval { value, low: (value - Z * error).max(found), high: value + Z * error }
    }

    /// Variance of `y - ratio x` over the sample, where `ratio` is sum y / sum x.
    fn residual_variance(&self, ratio: f64, xy: f64, yy: f64) -> f64 {
        ((yy - 2.0 * ratio * xy + ratio * ratio * self.xx) / (self.done - 1.0)).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use nqueens_kernel::board::BoardSize;
    use nqueens_kernel::counts::Counts;
    use nqueens_kernel::plan::PlanKind;

    use super::*;

    /// A run of 400 jobs of uneven work whose solutions follow the work loosely, a pseudo-random 60 of them done; and its total.
    fn half_way(seed: u64) -> (RunProgress, f64) {
        let mut state = seed;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 40
        };
        let mut sums = Sums::default();
        let mut total = 0.0;
        for _ in 0..400 {
            let estimate = 1_000 + random() % 9_000;
            let counts = Counts::only8(estimate * (500 + random() % 1_000) / 700);
            let elapsed_us = 1_000 * estimate;
            sums.estimate += u128::from(estimate);
            total += to_f64(counts.total());
            // 60 of 400 on average; the exact number does not matter.
            if random() % 400 < 60 {
                sums.done += 1;
                sums.estimate_done += u128::from(estimate);
                sums.accepted.add(estimate, counts, 0, elapsed_us, elapsed_us).unwrap();
            }
        }
        let plan = Plan::with_states_per_job(BoardSize::MAX, PlanKind::Border, 1);
        let run = RunProgress::new(RunId::from_random(1), plan, RunState::Active, 400, &sums);
        (RunProgress { recounts_wanted: Some(60), ..run }, total)
    }

    #[test]
    fn an_interval_holds_the_total_as_often_as_it_says() {
        let held = (0..1_000).filter(|seed| {
            let (run, total) = half_way(*seed);
            let interval = run.estimated_total().unwrap();
            interval.low <= total && total <= interval.high
        });
        let held = held.count();
        assert!((925..=975).contains(&held), "{held} of 1,000 instead of 950");
    }

    #[test]
    fn what_is_done_needs_no_estimate() {
        let (mut run, _) = half_way(1);
        run.threads = Some(8.0);
        assert!(run.estimated_total().is_some() && run.time_left_s().is_some());
        (run.sums.done, run.sums.estimate_done) = (run.jobs, run.sums.estimate);
        assert_eq!((run.estimated_total(), run.time_left_s()), (None, None));
    }

    #[test]
    fn before_a_speed_is_measured_all_threads_are_taken_to_count() {
        let (mut run, _) = half_way(1);
        assert_eq!(run.time_left_s(), None, "nobody counts");
        run.threads = Some(8.0);
        let left = run.time_left_s().unwrap();
        let work = to_f64(run.sums.estimate - run.sums.estimate_done);
        // Each thousandth of a second counts a state.
        assert!((left.value / (work / 1e3 / 8.0) - 1.0).abs() < 1e-9, "{left:?}");
        assert_eq!((left.low, left.high), (left.value / 2.0, left.value * 2.0));
        run.recounts_wait_s = 7.0;
        assert_eq!(run.time_left_s(), Some(Interval { high: left.high + 7.0, ..left }));
        run.sums.done = JOBS_MIN - 1;
        assert!(run.estimated_total().is_none() && run.time_left_s().is_some());
        run.sums.done = 0;
        assert_eq!(run.time_left_s(), None);
    }

    #[test]
    fn a_run_without_a_time_left_says_what_it_waits_for() {
        let (mut run, _) = half_way(1);
        let mut says = |change: fn(&mut RunProgress)| {
            change(&mut run);
            run.waits_for().unwrap_or_default()
        };
        assert_eq!(says(|_| ()), "waiting for workers");
        assert_eq!(says(|run| run.workers = 1), "waiting for the first results");
        assert_eq!(says(|run| run.threads = Some(1.0)), "");
        assert_eq!(
            says(|run| (run.sums.done, run.sums.checks.open, run.sums.checks.agreed) = (400, 409, 3)),
            "waiting for second counts: 3 of 412"
        );
        assert_eq!(
            says(|run| (run.sums.checks.open, run.sums.checks.recounted) = (0, 12)),
            "waiting for recounts: 12 of 60"
        );
        assert_eq!(says(|run| run.is_over = true), "adding up");
        assert_eq!(says(|run| run.state = RunState::Paused), "");
    }
}
