//! Workers: their leases and their speed.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Bound;

use nqueens_kernel::counts::to_f64;
use nqueens_model::credential::Credential;
use nqueens_model::id::{JobId, RunId, WorkerId};
use nqueens_model::kernel::Capability;
use nqueens_model::message::Registration;

use super::{Dispatch, Machine, Millis, Run, RunState};

/// A worker's process, as far as leases go.
#[derive(Clone, Debug)]
pub struct Worker {
    pub machine: Machine,
    pub capability: Option<Capability>,
    pub threads: u32,
    /// Time of its last heartbeat, or of its registration.
    pub seen: Option<Millis>,
    /// Results accepted from it since the coordinator started.
    pub accepted: u64,
    pub draining: bool,
    pub(super) faults_told: usize,
    /// It has said that it ends, and has not registered since.
    pub(super) left: bool,
    pace: Pace,
    pub(super) jobs: BTreeSet<JobId>,
    /// Estimated work of its jobs, in states.
    pub(super) estimate: u128,
}

#[derive(Clone, Debug, Default)]
pub struct Busy {
    pub workers: usize,
    pub threads: u64,
    /// How many of them hold leases of each run.
    pub of_run: BTreeMap<RunId, usize>,
    /// All that are present, whether they hold leases at the moment or not.
    pub crew: Crew,
}

/// Who counts for a run: the speed of runs is measured anew when that changes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Crew {
    /// Another number for other workers, or another number of runs that share them.
    pub key: u64,
    /// Estimated states that they count in a second for each of these runs; 0 if nothing is known.
    pub pace: f64,
}

impl Crew {
    /// The workers in the order of their ids, with their threads, and the estimated states that one of these counts in a second:
    /// of a worker without results it is the mean of the others.
    pub fn of(workers: impl Iterator<Item = (WorkerId, u32, Option<f64>)>, runs: usize) -> Self {
        let mut key = DefaultHasher::new();
        let (mut all, mut known, mut pace) = (0.0, 0.0, 0.0);
        for (worker, threads, of_thread) in workers {
            worker.hash(&mut key);
            all += f64::from(threads);
            if let Some(of_thread) = of_thread {
                known += f64::from(threads);
                pace += f64::from(threads) * of_thread;
            }
        }
        runs.hash(&mut key);
        #[expect(clippy::cast_precision_loss, reason = "a speed")]
        let share = 1.0 / runs.max(1) as f64;
        Self { key: key.finish(), pace: if known > 0.0 { share * pace * all / known } else { 0.0 } }
    }
}

/// Work until the end of a run at its present speed. Others, of which so much is left, share its workers evenly: until it ends, a
/// larger one gets no more than it, and what a smaller one leaves at its end comes to it.
pub fn shared_work(work: f64, others: impl Iterator<Item = f64>) -> f64 {
    let (all, runs) = others.fold((work, 1.0), |(all, runs), other| (all + other.min(work), runs + 1.0));
    all / runs
}

impl Dispatch {
    /// The present workers that hold leases. Looks at every worker.
    pub fn busy(&self, now: Millis) -> Busy {
        let mut busy = Busy::default();
        let holders = self.workers.values().filter(|worker| worker.leases() > 0);
        for worker in holders.filter(|worker| self.is_present(now, worker)) {
            busy.workers += 1;
            busy.threads += u64::from(worker.threads);
            for run in worker.runs() {
                *busy.of_run.entry(run).or_default() += 1;
            }
        }
        let present = self.workers.iter().filter(|(_, worker)| self.is_present(now, worker));
        let present =
            present.map(|(id, worker)| (*id, worker.threads, worker.estimated_states_per_thread_second()));
        let highest = self.open().map(|run| run.settings.priority).max();
        busy.crew = Crew::of(present, highest.map_or(0, |highest| self.sharing(highest).count()));
        busy
    }

    /// The runs that are not counted to their ends.
    fn open(&self) -> impl Iterator<Item = &Run> {
        self.runs.values().filter(|run| run.state() == RunState::Active && !run.is_counted())
    }

    /// Those of a priority, which share the workers.
    fn sharing(&self, priority: i32) -> impl Iterator<Item = &Run> {
        self.open().filter(move |run| run.settings.priority == priority)
    }

    /// Estimated states until the end of a run at its present speed: see [`shared_work`].
    pub fn work_left(&self, run: &Run) -> f64 {
        let left = |run: &Run| to_f64(run.sums().estimate - run.sums().estimate_done);
        let others = self.sharing(run.settings.priority).filter(|other| other.id() != run.id());
        shared_work(left(run), others.map(left))
    }
}

/// Threads of a worker without results that are believed.
const THREADS_UNSEEN: u32 = 64;

/// What short results of so many seconds ago told of a worker's speed has faded, ...
const RECENT_S: f64 = 60.0;

/// ... and of long ones what was told some ten results ago.
const KEPT_MIN: f64 = 0.9;

/// Sums over some ten latest results, or where these are short over those of about a minute, the older the less of each. Speeds
/// are ratios of them: a mean of the results' own speeds would count the shortest as much as the longest.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    estimated_states: f64,
    visited_states: f64,
    thread_seconds: f64,
}

impl Pace {
    /// Adds a result of one of so many threads.
    #[expect(clippy::cast_precision_loss, reason = "a speed")]
    pub fn measure(&mut self, threads: u32, estimate: u64, states: u64, elapsed_us: u64) {
        let Self { estimated_states, visited_states, thread_seconds } = *self;
        let seconds = elapsed_us.max(1) as f64 / 1e6;
        let kept = (-seconds / (RECENT_S * f64::from(threads.max(1)))).exp().max(KEPT_MIN);
        *self = Self {
            estimated_states: kept * estimated_states + estimate as f64,
            visited_states: kept * visited_states + states as f64,
            thread_seconds: kept * thread_seconds + seconds,
        };
    }

    /// Estimated states that one thread counts in a second; `None` before the first result.
    pub fn of_thread(&self) -> Option<f64> {
        (self.thread_seconds > 0.0).then(|| self.estimated_states / self.thread_seconds)
    }
}

impl Worker {
    pub(super) fn new(worker: &Registration, credential: Credential) -> Self {
        Self {
            machine: Machine::new(credential, &worker.name),
            capability: worker.capability.clone(),
            threads: worker.threads,
            seen: None,
            accepted: 0,
            draining: false,
            faults_told: 0,
            left: false,
            pace: Pace::default(),
            jobs: BTreeSet::new(),
            estimate: 0,
        }
    }

    pub fn leases(&self) -> usize {
        self.jobs.len()
    }

    pub(super) fn runs(&self) -> impl Iterator<Item = RunId> {
        // It may hold thousands of jobs, but of few runs.
        let beyond = |last: &JobId| {
            let last = JobId { run: last.run, number: u32::MAX };
            self.jobs.range((Bound::Excluded(last), Bound::Unbounded)).next().copied()
        };
        std::iter::successors(self.jobs.first().copied(), beyond).map(|job| job.run)
    }

    pub(super) fn measure(&mut self, estimate: u64, states: u64, elapsed_us: u64) {
        self.accepted += 1;
        self.pace.measure(self.threads, estimate, states, elapsed_us);
    }

    /// Estimated states that one of its threads counts in a second.
    pub(super) fn estimated_states_per_thread_second(&self) -> Option<f64> {
        self.pace.of_thread()
    }

    /// Estimated states that it counts in a second, at least 1, as its results show; `None` before the first of them.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    pub(super) fn speed(&self) -> Option<u64> {
        let measured = self.estimated_states_per_thread_second();
        measured.map(|of_a_thread| ((f64::from(self.threads) * of_a_thread) as u64).max(1))
    }

    /// Its speed, or where nothing is known of that what its threads come to at `of_thread` each.
    pub(super) fn speed_or(&self, of_thread: u64) -> u64 {
        self.speed().unwrap_or_else(|| of_thread.saturating_mul(self.threads_believed().into()))
    }

    /// Its threads, as far as they are believed before its first result.
    pub(super) fn threads_believed(&self) -> u32 {
        if self.accepted > 0 { self.threads } else { self.threads.min(THREADS_UNSEEN) }
    }

    /// Its pace while it counts: states that all its threads visit in a second of thread time each. `None` while it counts nothing
    /// or has reported nothing.
    pub fn states_per_s(&self) -> Option<f64> {
        let of_a_thread = self.pace.visited_states / self.pace.thread_seconds;
        (self.leases() > 0 && self.accepted > 0).then(|| f64::from(self.threads) * of_a_thread)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::registration;
    use super::*;

    #[test]
    fn a_speed_is_of_visited_states_and_of_whoever_counts() {
        let mut worker = Worker::new(&registration("host", "scalar", 4), Credential::shared());
        let job = JobId { run: RunId::new(1).expect("a name"), number: 0 };
        worker.jobs.insert(job);
        assert_eq!(worker.states_per_s(), None, "nothing is known of it");
        for _ in 0..100 {
            // A thousandth of the time, at ten times the speed.
            worker.measure(50_000, 10_000, 1_000);
            worker.measure(5_000_000, 1_000_000, 1_000_000);
        }
        let speed = worker.states_per_s().expect("measured");
        assert!((speed / 4e6 - 1.01).abs() < 0.01, "{speed}");
        worker.jobs.clear();
        assert_eq!(worker.states_per_s(), None, "it counts nothing");
    }

    #[test]
    fn its_runs_are_those_of_its_jobs() {
        let mut worker = Worker::new(&registration("host", "scalar", 4), Credential::shared());
        assert_eq!(worker.runs().count(), 0);
        let runs = [3, 5, 9].map(|id| RunId::new(id).expect("a name"));
        for run in runs {
            worker.jobs.extend([0, 7, u32::MAX].map(|number| JobId { run, number }));
        }
        assert_eq!(worker.runs().collect::<Vec<_>>(), runs);
    }

    #[test]
    fn one_short_result_does_not_make_a_speed() {
        let mut worker = Worker::new(&registration("host", "scalar", 2), Credential::shared());
        worker.jobs.insert(JobId { run: RunId::new(1).expect("a name"), number: 0 });
        for number in 0..10_000 {
            // Its processor is taken away from it now and then.
            worker.measure(1, 10_000, if number % 10 == 0 { 100_000 } else { 10_000 });
            let speed = worker.states_per_s().expect("measured");
            assert!(number < 500 || (speed / 1.053e6 - 1.0).abs() < 0.03, "{speed} after {number}");
        }
        // A new pace is known within some minutes.
        for _ in 0..36_000 {
            worker.measure(1, 5_000, 10_000);
        }
        let speed = worker.states_per_s().expect("measured");
        assert!((speed / 1e6 - 1.0).abs() < 0.03, "{speed}");
    }
}
