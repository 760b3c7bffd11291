//! How much work to ask for, and when.

use std::time::Duration;

use nqueens_model::message::{BATCH_MAX, JobResult, SyncResponse};

use crate::Moment;

/// Longest wait of a result for more results, while threads have work.
const FLUSH: Duration = Duration::from_millis(250);

/// Shortest time between two syncs, unless threads have run out of work.
const BREATH: Duration = Duration::from_millis(10);

/// Work to have at hand, by the speed that the engine showed in its test, until the first job of the run is counted.
const FIRST: Duration = Duration::from_millis(400);

/// Share of the time left that a job may be expected to take: some take longer than their estimates say.
const FIT: f64 = 0.7;

/// The same, before the first job of the run is counted: by the speed that the engine showed in its test, which can be a
/// fraction of the true one.
const FIT_UNMEASURED: f64 = 10.0;

/// The speed is that of about this time, or of ten jobs if they take longer. By jobs alone it would be a device's speed for each
/// thread beside it: nearly all jobs are the device's.
const RECENT: Duration = Duration::from_secs(20);

/// The worker's speed and the coordinator's rhythm.
pub(crate) struct Pace {
    threads: usize,
    /// Speed in estimated states, all threads together.
    states_per_s: f64,
    /// Estimated states counted of late, and what that took all threads together.
    states: f64,
    seconds: f64,
    /// Estimated states of a usual job; 0 until the first one is counted, and the speed is a guess from the engine's test.
    job_states: f64,
    /// Time between two heartbeats.
    ahead: Duration,
    /// Whether the coordinator had all the work that was asked for.
    more_work: bool,
    /// Work at hand after its last answer, in estimated states.
    stocked: u64,
    /// When it last answered.
    synced: Option<Moment>,
    /// When to ask again with nothing to do and nothing to say.
    idle_until: Moment,
}

impl Pace {
    pub(crate) fn new(states_per_s: f64, threads: u32) -> Self {
        Self {
            threads: threads as usize,
            states_per_s,
            states: 0.0,
            seconds: 0.0,
            job_states: 0.0,
            ahead: Duration::from_millis(200),
            more_work: true,
            stocked: 0,
            synced: None,
            idle_until: Moment::ZERO,
        }
    }

    /// Learns from a job that was counted, of `estimate` states.
    #[expect(clippy::cast_precision_loss, reason = "a speed")]
    pub(crate) fn measure(&mut self, result: &JobResult, estimate: u64) {
        if result.elapsed_us == 0 {
            return;
        }
        let (states, time) = (estimate as f64, result.elapsed_us as f64 / 1e6);
        let (threads, weight) = (self.threads as f64, if self.is_measured() { 0.1 } else { 1.0 });
        self.job_states += weight * (states - self.job_states);
        let kept = 1.0 - (time / (RECENT.as_secs_f64() * threads)).min(0.1);
        (self.states, self.seconds) = (kept * self.states + states, kept * self.seconds + time);
        self.states_per_s = self.states / self.seconds * threads;
    }

    fn is_measured(&self) -> bool {
        self.job_states > 0.0
    }

    /// The work to have at hand, in estimated states: for two beats, so that one is left when the worker asks; and two jobs for
    /// each thread, so that these need not share one, which takes longer.
    pub(crate) fn wanted(&self) -> u64 {
        let time = if self.is_measured() { 2 * self.ahead } else { FIRST };
        #[expect(clippy::cast_precision_loss, reason = "few threads")]
        let jobs = 2.0 * self.job_states * self.threads as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let states = (self.states_per_s * time.as_secs_f64()).max(jobs) as u64;
        states.max(1)
    }

    /// The largest job, in estimated states, that one thread should finish in this time after the `states` at hand; 0 if
    /// there is not time enough for any.
    pub(crate) fn job_in(&self, time: Duration, states: u64) -> u64 {
        let share = if self.is_measured() { FIT } else { FIT_UNMEASURED };
        #[expect(clippy::cast_precision_loss, reason = "a guess")]
        let left = time.as_secs_f64() - states as f64 / self.states_per_s;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "saturates"
        )]
        let largest = (share * left * self.states_per_s / self.threads as f64) as u64;
        largest
    }

    /// Whether a usual job would not be finished in this time, and the coordinator had no smaller one.
    pub(crate) fn is_short(&self, time: Duration) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "a guess")]
        let largest = self.job_in(time, 0) as f64;
        !self.more_work && largest < self.job_states
    }

    /// Learns the coordinator's rhythm from its answer. When it was asked, at `asked_at`, the worker had `enough` work or
    /// not, and asked for `nothing_but_work` or had something to say.
    pub(crate) fn answered(
        &mut self,
        now: Moment,
        asked_at: Moment,
        answer: &SyncResponse,
        enough: bool,
        nothing_but_work: bool,
    ) {
        let in_vain = nothing_but_work && answer.leases.is_empty();
        self.ahead = Duration::from_millis(answer.next_sync_ms.into()).max(BREATH);
        self.more_work = enough || !answer.leases.is_empty();
        self.synced = Some(now);
        // Counted from the question: a coordinator may keep the worker waiting for work instead of sending it away.
        self.idle_until = if in_vain { asked_at + self.ahead } else { now };
    }

    /// Sets the work at hand after the answer, in estimated states.
    pub(crate) fn stock(&mut self, states: u64) {
        self.stocked = states;
    }

    /// When to sync: at once if threads are about to idle, soon if there are results, and at the coordinator's rhythm
    /// in any case. No thread has taken `states` of the `wanted` work in the `jobs` at hand yet; `results` are not
    /// acknowledged; `to_say` tells whether there is anything to report or to hand back.
    pub(crate) fn next_sync(
        &self,
        jobs: usize,
        states: u64,
        wanted: u64,
        results: usize,
        to_say: bool,
    ) -> Moment {
        let Some(synced) = self.synced else { return Moment::ZERO };
        if jobs == 0 && !to_say {
            return self.idle_until.max(synced + BREATH);
        }
        // It may have got less than it wanted, for there are others: then it asks again when half of that is used up.
        let hungry = self.more_work && states < wanted / 2 && states <= self.stocked / 2;
        let pause = if jobs == 0 {
            Duration::ZERO
        } else if hungry || results >= BATCH_MAX / 2 {
            BREATH
        } else if to_say {
            FLUSH
        } else {
            self.ahead
        };
        synced + pause.min(self.ahead)
    }
}
