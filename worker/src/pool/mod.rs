//! OS threads that count: each takes a job apart, or counts pieces of those that are. Where the engine counts many boards
//! at once, these come from as many jobs as it takes. A job is counted by one [`Crew`]; threads of several take jobs from the
//! same queue. A device that fails is tried once more, and again after each batch that it counts, but not if it counts wrong a
//! second time; then its crew ends, and others count its jobs.

mod faults;
mod memory;
mod queue;
mod spent;
mod split;
#[cfg(test)]
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nqueens_kernel::engine::{COUNTS_WRONG, Factory};
use nqueens_kernel::job::Class;
use nqueens_kernel::solver::Solver;
use nqueens_kernel::unit::Unit;
use nqueens_model::id::LeaseToken;
use nqueens_model::message::{JobResult, Lease, ReturnedLease};
use nqueens_worker_protocol::Look;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tracing::warn;

use self::faults::line;
use self::memory::MemoryGate;
use self::queue::{ActiveJob, NUMBER_MAX, PartCounts, Piece, PieceBatch, PieceTally, Queue, ROW_SETS_MAX};
use self::spent::{Spent, ThreadClock};
use self::split::pieces;
use crate::crew::Crew;
use crate::panics;

/// Who counts large batches takes jobs for so many seconds, and leaves the others to other crews.
const BACKLOG_S: f64 = 2.0;

/// So many jobs may fail one after the other before a thread that panics pauses.
const FAILURES_FREE: u32 = 3;

/// The counting threads of a worker.
pub(crate) struct Pool {
    shared: Arc<PoolState>,
    threads: Vec<JoinHandle<()>>,
}

struct PoolState {
    factory: Arc<Factory>,
    /// At least one.
    crews: Vec<Crew>,
    /// Bytes for the tables of each thread.
    tables_max: u64,
    memory: MemoryGate,
    queue: Mutex<Queue>,
    /// Wakes threads: there is something to count, or the pool closes.
    work: Condvar,
    /// Wakes the runtime: a job is finished, or the last one that waited has begun.
    progressed: Notify,
    /// Wakes the runtime: nothing is left to count.
    idle: Notify,
    /// Wakes the runtime: nobody is left for jobs that were counted until now.
    abandoned: Notify,
}

/// Bytes that multiplied colours may take, all threads together.
#[derive(Clone, Copy, Debug)]
pub struct MemoryMax {
    /// For tables: with fewer the same counts take longer.
    pub tables: u64,
    /// For these and what the largest boards need beside them, before the system ends the process.
    pub all: u64,
}

enum Task {
    /// Take a job apart; `waiting` is the number of jobs behind it.
    Split {
        lease: Lease,
        waiting: usize,
    },
    Count(Arc<PieceBatch>),
}

impl Pool {
    /// Starts the threads of some crews, whose engines the `factory` makes; multiplied colours take as much as `memory` says,
    /// if that is possible.
    pub(crate) fn start(factory: Arc<Factory>, crews: Vec<Crew>, memory: MemoryMax) -> Self {
        let shared = Arc::new(PoolState::new(factory, crews, memory));
        let crew_of = |(at, crew): (usize, &Crew)| std::iter::repeat_n(at, crew.threads.get());
        let spawn = |(number, at): (usize, usize)| {
            let shared = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name(format!("count-{number}"));
            let life = move || shared.count(&shared.crews[at]);
            thread.spawn(life).expect("the system has room for a thread")
        };
        let threads = shared.crews.iter().enumerate().flat_map(crew_of).enumerate().map(spawn).collect();
        Self { shared, threads }
    }

    /// Takes up leases, to be counted in this order.
    pub(crate) fn add(&self, leases: Vec<Lease>) {
        let mut queue = self.shared.lock();
        queue.waiting.extend(leases);
        self.shared.refuse_uncountable(&mut queue);
        self.shared.work.notify_all();
    }

    /// Waits until a job has finished or the last one that waited has begun, since the last call.
    pub(crate) async fn progressed(&self) {
        self.shared.progressed.notified().await;
    }

    /// Waits until nothing is left to count, since the last call.
    pub(crate) async fn idle(&self) {
        self.shared.idle.notified().await;
    }

    /// Waits until nobody is left for jobs that were counted until now.
    pub(crate) async fn abandoned(&self) {
        self.shared.abandoned.notified().await;
    }

    /// What has finished since the last look, and how far the rest is.
    pub(crate) fn look(&self) -> Look {
        let mut queue = self.shared.lock();
        let finished = std::mem::take(&mut queue.finished);
        let begun = queue.active.iter().map(|job| job.progress(&queue.batches)).collect();
        Look { finished, begun, faults: queue.faults.lines() }
    }

    /// Drops jobs that no longer are the worker's.
    pub(crate) fn revoke(&self, tokens: &[LeaseToken]) {
        let mut queue = self.shared.lock();
        queue.waiting.retain(|lease| !tokens.contains(&lease.token));
        queue.active.retain(|job| !tokens.contains(&job.lease.token));
        queue.stop_unwanted();
    }

    /// Gives up what waits, and with `begun` all other counting too: the next look has it among what is finished.
    pub(crate) fn give_up(&self, begun: bool) {
        let mut queue = self.shared.lock();
        let mut tokens: Vec<_> = queue.waiting.drain(..).map(|lease| lease.token).collect();
        if begun {
            tokens.extend(queue.active.drain(..).map(|job| job.lease.token));
            queue.stop_unwanted();
        }
        let returned = tokens.into_iter().map(|token| Err(ReturnedLease { token, failure: None }));
        queue.finished.extend(returned);
    }

    /// Ends the threads; what they are at is given up.
    pub(crate) fn close(self) {
        self.give_up(true);
        self.shared.lock().closing = true;
        self.shared.work.notify_all();
        for thread in self.threads {
            thread.join().expect("counting threads catch their panics");
        }
    }

    /// The same, but after this time a thread that is lost in a driver is left behind.
    pub(crate) async fn close_within(self, time: Duration) {
        if let Ok(closed) = timeout(time, spawn_blocking(move || self.close())).await {
            closed.expect("closing the pool does not panic");
        } else {
            warn!("a counting thread does not end, perhaps in a driver: nobody waits for it any more");
        }
    }
}

impl PoolState {
    fn new(factory: Arc<Factory>, crews: Vec<Crew>, memory: MemoryMax) -> Self {
        let threads: usize = crews.iter().map(|crew| crew.threads.get()).sum();
        let living = crews.iter().flat_map(|crew| std::iter::repeat_n(crew.kernel, crew.threads.get()));
        Self {
            factory,
            tables_max: memory.tables / threads as u64,
            memory: MemoryGate::new(memory.all),
            queue: Mutex::new(Queue { living: living.collect(), ..Queue::default() }),
            crews,
            work: Condvar::new(),
            progressed: Notify::new(),
            idle: Notify::new(),
            abandoned: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // No code that can panic runs under the lock and leaves the queue half changed.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, crew: &Crew) {
        let mut clock = ThreadClock::start();
        let Some(mut solver) = self.solver(crew) else { return self.lose(crew, "its engine can't be made") };
        // Also after each batch that was counted. Who has counted wrong may do so again unseen: once is forgiven, not more.
        let (mut may_fail, mut has_miscounted) = (true, false);
        while let Some(task) = self.next_task(crew, solver.batch_max()) {
            let outcome =
                catch_unwind(AssertUnwindSafe(|| self.perform(crew, &task, &mut solver, &mut clock)));
            match outcome {
                Ok(Ok(())) => {
                    may_fail |= matches!(task, Task::Count(_));
                    continue;
                }
                Ok(Err(EngineFault(fault)))
                    if may_fail && !(has_miscounted && fault.starts_with(COUNTS_WRONG)) =>
                {
                    has_miscounted |= fault.starts_with(COUNTS_WRONG);
                    self.lock().faults.note(crew, "failed and is tried once more", &fault);
                    self.progressed.notify_one();
                    may_fail = false;
                }
                Ok(Err(EngineFault(fault))) => return self.lose(crew, &fault),
                Err(panic) => {
                    let reason = panics::text(&*panic);
                    match task {
                        Task::Split { lease, .. } => self.fail(lease.token, &reason),
                        Task::Count(batch) => self.come_to_nothing(&batch, &reason),
                    }
                    // The coordinator may give the job to this worker again at once.
                    let queue = self.lock();
                    let pause = pause_after(queue.failures);
                    drop(self.work.wait_timeout_while(queue, pause, |queue| !queue.closing));
                }
            }
            // Its buffers may be in any state.
            solver = match self.solver(crew) {
                Some(solver) => solver,
                None => return self.lose(crew, "its engine can't be made again"),
            };
        }
    }

    fn solver(&self, crew: &Crew) -> Option<Solver> {
        Some(Solver::new((self.factory)(&crew.engine)?, self.tables_max))
    }

    /// A thread ends because its engine does not count any more. Jobs that no other thread has the kernel for begin anew.
    fn lose(&self, crew: &Crew, fault: &str) {
        let mut queue = self.lock();
        queue.faults.note(crew, "is left alone from now on", fault);
        self.progressed.notify_one();
        let at = queue.living.iter().position(|kernel| *kernel == crew.kernel).expect("this thread");
        queue.living.swap_remove(at);
        if !queue.living.contains(&crew.kernel) {
            let (orphans, active) =
                std::mem::take(&mut queue.active).into_iter().partition(|job| job.kernel == crew.kernel);
            queue.active = active;
            let orphans: Vec<ActiveJob> = orphans;
            for job in orphans {
                queue.waiting.push_front(job.lease);
            }
        }
        self.refuse_uncountable(&mut queue);
        if queue.living.is_empty() {
            self.abandoned.notify_one();
        }
        self.work.notify_all();
    }

    /// Returns all jobs once no engine is left.
    fn refuse_uncountable(&self, queue: &mut Queue) {
        if queue.living.is_empty() {
            for lease in std::mem::take(&mut queue.waiting) {
                // It is no failure of the job.
                self.leave(queue, Err(ReturnedLease { token: lease.token, failure: None }));
            }
        }
    }

    /// What to do next; waits for something, `None` when the pool closes. Jobs are taken apart until their pieces fill a
    /// batch, or take long enough.
    fn next_task(&self, crew: &Crew, batch_max: usize) -> Option<Task> {
        let mut queue = self.lock();
        loop {
            if queue.closing {
                return None;
            }
            let ours = queue.active.iter().filter(|job| job.kernel == crew.kernel);
            let (ready, left) = ours.fold((0, 0_u64), |(ready, left), job| {
                (ready + job.units.len(), left.saturating_add(job.left()))
            });
            #[expect(clippy::cast_precision_loss, reason = "a guess")]
            let is_short = batch_max == 1 || left as f64 / crew.speed() < BACKLOG_S;
            let has_room = |lease: &Lease| {
                if lease.job.class == Class::Colours {
                    ready < batch_max.min(ROW_SETS_MAX)
                } else {
                    is_short && ready < batch_max
                }
            };
            if let Some(at) = queue.waiting.iter().position(has_room)
                && let Some(lease) = queue.waiting.remove(at)
            {
                // Entered before it is taken apart, so that it can be revoked meanwhile.
                queue.active.push(ActiveJob::new(&lease, crew.kernel));
                let waiting = queue.waiting.len();
                if waiting == 0 {
                    self.progressed.notify_one();
                }
                return Some(Task::Split { lease, waiting });
            }
            if let Some(batch) = PieceBatch::gather(&mut queue.active, crew.kernel, batch_max) {
                let batch = Arc::new(batch);
                queue.batches.push(Arc::clone(&batch));
                return Some(Task::Count(batch));
            }
            queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn perform(
        &self,
        crew: &Crew,
        task: &Task,
        solver: &mut Solver,
        clock: &mut ThreadClock,
    ) -> Result<(), EngineFault> {
        match task {
            Task::Split { lease, waiting } => match pieces(crew, lease, *waiting, solver.leaf_test()) {
                Ok((pieces, parts)) => self.begin(lease.token, pieces, parts),
                Err(invalid) => self.fail(lease.token, &invalid.to_string()),
            },
            Task::Count(batch) => self.count_batch(batch, solver, clock)?,
        }
        Ok(())
    }

    fn count_batch(
        &self,
        batch: &Arc<PieceBatch>,
        solver: &mut Solver,
        clock: &mut ThreadClock,
    ) -> Result<(), EngineFault> {
        let least = batch.units.iter().filter_map(Unit::memory_least).max();
        let _held = least.map(|least| self.memory.hold(self.tables_max + least));
        let begun = Instant::now();
        if let Ok(tallies) = batch.count(solver) {
            let spent = Spent { wall: begun.elapsed(), cpu: clock.lap() };
            self.finish_batch(batch, &tallies, spent);
            return Ok(());
        }
        if let Some(fault) = solver.fault() {
            self.give_back(batch);
            return Err(EngineFault(fault.to_owned()));
        }
        // As a rule nobody waits for it: all its jobs were revoked or given up.
        self.come_to_nothing(batch, "its engine stopped");
        Ok(())
    }

    fn begin(&self, token: LeaseToken, pieces: Vec<Piece>, parts: PartCounts) {
        let mut queue = self.lock();
        // Not there: revoked meanwhile.
        let Some(at) = queue.find(token) else { return };
        let job = &mut queue.active[at];
        job.begin(pieces, parts);
        if job.units.len() > 1 {
            self.work.notify_all();
        }
        if job.units.is_empty() {
            self.finish(&mut queue, at);
        }
    }

    /// Gives each job its part of what a batch came to; of the time, by its states.
    fn finish_batch(&self, batch: &Arc<PieceBatch>, tallies: &[PieceTally], spent: Spent) {
        let mut queue = self.lock();
        queue.end(batch);
        let all = tallies.iter().map(|piece| u128::from(piece.tally.states)).sum::<u128>().max(1);
        for (token, tallies) in batch.parts(tallies) {
            // Not there: revoked or given up meanwhile.
            let Some(at) = queue.find(token) else { continue };
            let job = &mut queue.active[at];
            let share = |piece: &PieceTally| spent.share(piece.tally.states, all);
            if tallies.iter().try_for_each(|piece| job.add(piece, share(piece))).is_none() {
                self.fail_at(&mut queue, at, "its counts overflowed 63 bits");
            } else if job.open == 0 {
                self.finish(&mut queue, at);
            }
        }
    }

    /// A batch was not counted, through no fault of its jobs: its pieces are counted another time.
    fn give_back(&self, batch: &Arc<PieceBatch>) {
        let mut queue = self.lock();
        queue.end(batch);
        for (token, pieces) in batch.parts(&batch.pieces()) {
            if let Some(at) = queue.find(token) {
                queue.active[at].units.extend_from_slice(pieces);
            }
        }
        self.work.notify_all();
    }

    /// A batch came to nothing, and nobody knows by which of its jobs: each is counted once more, without the others. If
    /// it was one job it fails.
    fn come_to_nothing(&self, batch: &Arc<PieceBatch>, reason: &str) {
        let mut queue = self.lock();
        queue.end(batch);
        for (token, pieces) in batch.parts(&batch.pieces()) {
            let Some(at) = queue.find(token) else { continue };
            if batch.shares.len() == 1 {
                self.fail_at(&mut queue, at, reason);
            } else {
                let job = &mut queue.active[at];
                job.units.extend_from_slice(pieces);
                job.alone = true;
            }
        }
        self.work.notify_all();
    }

    fn finish(&self, queue: &mut Queue, at: usize) {
        queue.failures = 0;
        let job = queue.active.swap_remove(at);
        let result = JobResult {
            token: job.lease.token,
            counts: job.counts,
            parts: job.parts.into_counts(),
            kernel: job.kernel,
            states: job.states,
            elapsed_us: micros(job.spent.wall),
            cpu_us: Some(micros(job.spent.cpu)),
        };
        self.leave(queue, Ok(result));
    }

    fn fail(&self, token: LeaseToken, reason: &str) {
        let mut queue = self.lock();
        if let Some(at) = queue.find(token) {
            self.fail_at(&mut queue, at, reason);
        }
    }

    fn fail_at(&self, queue: &mut Queue, at: usize, reason: &str) {
        let token = queue.active.swap_remove(at).lease.token;
        queue.failures = queue.failures.saturating_add(1);
        queue.stop_unwanted();
        self.leave(queue, Err(ReturnedLease { token, failure: Some(line(reason)) }));
    }

    fn leave(&self, queue: &mut Queue, finished: Result<JobResult, ReturnedLease>) {
        queue.finished.push(finished);
        self.progressed.notify_one();
        if queue.waiting.is_empty() && queue.active.is_empty() {
            self.idle.notify_one();
        }
    }
}

/// How long a thread pauses when it has panicked and so many jobs have failed: 102 seconds at most.
fn pause_after(failures: u32) -> Duration {
    let beyond = failures.saturating_sub(FAILURES_FREE);
    Duration::from_millis(if beyond == 0 { 0 } else { 50 << beyond.min(11) })
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(NUMBER_MAX)
}

struct EngineFault(String);
