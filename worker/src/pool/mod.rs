//! OS threads that count: each takes a job apart, or counts pieces of those that are. Where the engine counts many boards
//! at once, these come from as many jobs as it takes.

mod queue;
#[cfg(test)]
mod tests;

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nqueens_kernel::engine::{Factory, Kernel, Stopped};
use nqueens_kernel::halves::SharedTables;
use nqueens_kernel::job::{Class, InvalidJob, Job};
use nqueens_kernel::solver::Solver;
use nqueens_model::id::LeaseToken;
use nqueens_model::message::{FAILURE_BYTES_MAX, JobResult, Lease, ReturnedLease};
use nqueens_model::name::is_printable;
use nqueens_worker_protocol::Look;
use tokio::sync::Notify;

use self::queue::{ActiveJob, NUMBER_MAX, PartCounts, Piece, PieceBatch, PieceTally, Queue};

/// A job of more states than this is spread over the threads.
const SPREAD_STATES: u64 = 200_000_000;

/// Pieces for each thread of a job that is spread: enough that all threads end together.
const PIECES_PER_THREAD: usize = 8;

/// The same for jobs of colours, whose pieces each make tables that a whole job makes once.
const ROW_SETS_PER_THREAD: usize = 1;

/// The counting threads of a worker.
pub(crate) struct Pool {
    shared: Arc<PoolState>,
    threads: Vec<JoinHandle<()>>,
}

struct PoolState {
    factory: Arc<Factory>,
    kernel: Kernel,
    tables: Arc<SharedTables>,
    threads: usize,
    queue: Mutex<Queue>,
    /// Wakes threads: there is something to count, or the pool closes.
    work: Condvar,
    /// Wakes the runtime: a job is finished, or the last one that waited has begun.
    progressed: Notify,
    /// Wakes the runtime: nothing is left to count.
    idle: Notify,
}

/// What a thread does next.
enum Task {
    /// Take a job apart; `waiting` is the number of jobs behind it.
    Split { lease: Lease, waiting: usize },
    /// Count pieces.
    Count(Arc<PieceBatch>),
}

impl Pool {
    /// Starts the threads. The `factory` must have their `kernel`; joins of half boards and multiplied colours take about
    /// `memory_max` bytes.
    pub(crate) fn start(
        factory: Arc<Factory>,
        kernel: Kernel,
        threads: NonZeroUsize,
        memory_max: u64,
    ) -> Self {
        let shared = Arc::new(PoolState::new(factory, kernel, threads.get(), memory_max));
        let spawn = |number: usize| {
            let shared = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name(format!("count-{number}"));
            thread.spawn(move || shared.count()).expect("the system has room for a thread")
        };
        let threads = (0..threads.get()).map(spawn).collect();
        Self { shared, threads }
    }

    /// Takes up leases, to be counted in this order.
    pub(crate) fn add(&self, leases: Vec<Lease>) {
        self.shared.lock().waiting.extend(leases);
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

    /// What has finished since the last look, and how far the rest is.
    pub(crate) fn look(&self) -> Look {
        let mut queue = self.shared.lock();
        let finished = std::mem::take(&mut queue.finished);
        let begun = queue.active.iter().map(|job| job.progress(&queue.batches)).collect();
        Look { finished, begun }
    }

    /// Drops jobs that no longer are the worker's.
    pub(crate) fn revoke(&self, tokens: &[LeaseToken]) {
        let mut queue = self.shared.lock();
        queue.waiting.retain(|lease| !tokens.contains(&lease.token));
        queue.active.retain(|job| !tokens.contains(&job.token));
        queue.stop_unwanted();
    }

    /// Gives up what waits, and with `begun` all other counting too: the next look has it among what is finished.
    pub(crate) fn give_up(&self, begun: bool) {
        let mut queue = self.shared.lock();
        let mut tokens: Vec<_> = queue.waiting.drain(..).map(|lease| lease.token).collect();
        if begun {
            tokens.extend(queue.active.drain(..).map(|job| job.token));
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
}

impl PoolState {
    fn new(factory: Arc<Factory>, kernel: Kernel, threads: usize, memory_max: u64) -> Self {
        Self {
            factory,
            kernel,
            tables: Arc::new(SharedTables::new(memory_max, threads)),
            threads,
            queue: Mutex::default(),
            work: Condvar::new(),
            progressed: Notify::new(),
            idle: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // No code that can panic runs under the lock and leaves the queue half changed.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread's life.
    fn count(&self) {
        let mut solver = self.solver();
        while let Some(task) = self.next_task(solver.batch_max()) {
            let outcome = catch_unwind(AssertUnwindSafe(|| self.perform(&task, &mut solver)));
            if let Err(panic) = outcome {
                let reason = panic_text(&*panic);
                match task {
                    Task::Split { lease, .. } => self.fail(lease.token, &reason),
                    Task::Count(batch) => self.come_to_nothing(&batch, &reason),
                }
                // Its buffers may be in any state.
                solver = self.solver();
            }
        }
    }

    fn solver(&self) -> Solver {
        let engine = (self.factory)(self.kernel.name()).expect("an available engine");
        Solver::new(engine, &self.tables)
    }

    /// What to do next; waits for something, `None` when the pool closes. Jobs are taken apart until their pieces fill a
    /// batch.
    fn next_task(&self, batch_max: usize) -> Option<Task> {
        let mut queue = self.lock();
        loop {
            if queue.closing {
                return None;
            }
            let ready: usize = queue.active.iter().map(|job| job.units.len()).sum();
            if ready < batch_max
                && let Some(lease) = queue.waiting.pop_front()
            {
                // Entered before it is taken apart, so that it can be revoked meanwhile.
                queue.active.push(ActiveJob::new(&lease));
                let waiting = queue.waiting.len();
                if waiting == 0 {
                    self.progressed.notify_one();
                }
                return Some(Task::Split { lease, waiting });
            }
            if let Some(batch) = PieceBatch::gather(&mut queue.active, batch_max) {
                let batch = Arc::new(batch);
                queue.batches.push(Arc::clone(&batch));
                return Some(Task::Count(batch));
            }
            queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn perform(&self, task: &Task, solver: &mut Solver) {
        match task {
            Task::Split { lease, waiting } => match self.pieces(lease, *waiting, solver) {
                Ok((pieces, parts)) => self.begin(lease.token, pieces, parts),
                Err(invalid) => self.fail(lease.token, &invalid.to_string()),
            },
            Task::Count(batch) => {
                let begun = Instant::now();
                match batch.count(solver) {
                    Ok(tallies) => self.finish_batch(batch, &tallies, begun.elapsed()),
                    // As a rule nobody waits for it: all its jobs were revoked or given up.
                    Err(Stopped) => self.come_to_nothing(batch, "its engine stopped"),
                }
            }
        }
    }

    /// A job's independent pieces: many enough for all threads if it is heavy. A job of colours stays whole while those
    /// `waiting` suffice for the other threads. And what will be found in its parts: prefixes are counted part by part; of
    /// orbits, whose neighbours share work, each tells its own.
    fn pieces(
        &self,
        lease: &Lease,
        waiting: usize,
        solver: &Solver,
    ) -> Result<(Vec<Piece>, PartCounts), InvalidJob> {
        let job = lease.job.decode()?;
        let parts = job.parts(lease.states);
        let found = PartCounts::new(&parts);
        let whole = if job.orbits().is_some() { vec![job] } else { parts };
        let units = |(part, job): (usize, Job)| {
            job.units(solver.leaf_test()).into_iter().map(move |unit| Piece { unit, part })
        };
        let mut pieces: Vec<_> = whole.into_iter().enumerate().flat_map(units).collect();
        let multiplied = lease.job.class == Class::Colours;
        let per_thread = if multiplied { ROW_SETS_PER_THREAD } else { PIECES_PER_THREAD };
        let spread = lease.states > SPREAD_STATES && !(multiplied && waiting + 1 >= self.threads);
        if self.threads > 1 && spread {
            // Twice is enough: each splitting makes about N pieces of one.
            for _ in 0..2 {
                if pieces.len() < self.threads * per_thread {
                    pieces = pieces.into_iter().flat_map(Piece::split).collect();
                }
            }
        }
        Ok((pieces, found))
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
    fn finish_batch(&self, batch: &Arc<PieceBatch>, tallies: &[PieceTally], elapsed: Duration) {
        let mut queue = self.lock();
        queue.end(batch);
        let all = tallies.iter().map(|piece| u128::from(piece.tally.states)).sum::<u128>().max(1);
        for (token, tallies) in batch.parts(tallies) {
            // Not there: revoked or given up meanwhile.
            let Some(at) = queue.find(token) else { continue };
            let job = &mut queue.active[at];
            let time = |piece: &PieceTally| {
                Duration::from_nanos_u128(elapsed.as_nanos() * u128::from(piece.tally.states) / all)
            };
            if tallies.iter().try_for_each(|piece| job.add(piece, time(piece))).is_none() {
                self.fail_at(&mut queue, at, "its counts overflowed 63 bits");
            } else if job.open == 0 {
                self.finish(&mut queue, at);
            }
        }
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
        let job = queue.active.swap_remove(at);
        let result = JobResult {
            token: job.token,
            counts: job.counts,
            parts: job.parts.into_counts(),
            kernel: self.kernel.into(),
            states: job.states,
            elapsed_us: u64::try_from(job.elapsed.as_micros()).unwrap_or(NUMBER_MAX),
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
        let token = queue.active.swap_remove(at).token;
        queue.stop_unwanted();
        // A character takes 4 bytes at most.
        let characters = reason.chars().take(FAILURE_BYTES_MAX / 4);
        let line = characters.map(|c| if is_printable(c) { c } else { ' ' }).collect();
        self.leave(queue, Err(ReturnedLease { token, failure: Some(line) }));
    }

    /// A job leaves the pool.
    fn leave(&self, queue: &mut Queue, finished: Result<JobResult, ReturnedLease>) {
        queue.finished.push(finished);
        self.progressed.notify_one();
        if queue.waiting.is_empty() && queue.active.is_empty() {
            self.idle.notify_one();
        }
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("(no message)"))
}
