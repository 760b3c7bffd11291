//! OS threads that count: each takes a job, or helps with one that another has begun.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nqueens_kernel::counts::Counts;
use nqueens_kernel::engine::{Control, Kernel};
use nqueens_kernel::halves::SharedTables;
use nqueens_kernel::job::{Class, InvalidJob};
use nqueens_kernel::solver::Solver;
use nqueens_kernel::unit::Unit;
use nqueens_model::id::LeaseToken;
use nqueens_model::message::{HeldLease, JobResult, Lease, ReturnedLease};
use tokio::sync::Notify;

/// A job of more states than this is spread over the threads.
const SPREAD_STATES: u64 = 200_000_000;

/// Pieces for each thread of a job that is spread: enough that all threads end together.
const PIECES_PER_THREAD: usize = 8;

/// The same for jobs of colours, whose pieces each make tables that a whole job makes once.
const ROW_SETS_PER_THREAD: usize = 1;

/// The counting threads of a worker.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    kernel: Kernel,
    tables: Arc<SharedTables>,
    threads: usize,
    queue: Mutex<Queue>,
    /// Wakes threads: there is something to count, or the pool closes.
    work: Condvar,
    /// Wakes the conversation: a job is finished, or the last one that waited has begun.
    stirred: Notify,
    /// Wakes the conversation: nothing is left to count.
    ran_dry: Notify,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Lease>,
    begun: Vec<Begun>,
    finished: Vec<Finished>,
    closing: bool,
}

/// A job that threads are at work on.
struct Begun {
    token: LeaseToken,
    states_estimate: u64,
    mirrored: bool,
    control: Arc<Control>,
    /// Pieces that nobody has taken yet.
    units: Vec<Unit>,
    units_total: usize,
    /// Pieces not finished yet, taken or not.
    open: usize,
    counts: Counts,
    states: u64,
    elapsed: Duration,
}

/// A piece of a job for one thread.
struct Piece {
    token: LeaseToken,
    mirrored: bool,
    control: Arc<Control>,
    unit: Unit,
}

/// A job that left the pool.
pub(crate) enum Finished {
    Counted { result: JobResult, states_estimate: u64 },
    Failed(ReturnedLease),
}

/// How busy the pool is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    /// Jobs waiting or begun.
    pub(crate) jobs: usize,
    /// Estimated work that nobody has taken yet, in states.
    pub(crate) states: u64,
}

impl Pool {
    /// Starts the threads. Their `kernel` must be available; joins of half boards and multiplied colours take about
    /// `memory_max` bytes.
    pub(crate) fn start(kernel: Kernel, threads: NonZeroUsize, memory_max: u64) -> Self {
        let shared = Arc::new(Shared {
            kernel,
            tables: Arc::new(SharedTables::new(memory_max, threads.get())),
            threads: threads.get(),
            queue: Mutex::default(),
            work: Condvar::new(),
            stirred: Notify::new(),
            ran_dry: Notify::new(),
        });
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
        if !leases.is_empty() {
            self.shared.lock().waiting.extend(leases);
            self.shared.work.notify_all();
        }
    }

    /// Waits until a job has finished or the last one that waited has begun, since the last call.
    pub(crate) async fn stirred(&self) {
        self.shared.stirred.notified().await;
    }

    /// Waits until nothing is left to count, since the last call.
    pub(crate) async fn ran_dry(&self) {
        self.shared.ran_dry.notified().await;
    }

    /// The jobs that have finished since the last call.
    pub(crate) fn take_finished(&self) -> Vec<Finished> {
        std::mem::take(&mut self.shared.lock().finished)
    }

    /// How busy it is.
    pub(crate) fn load(&self) -> Load {
        let queue = self.shared.lock();
        let waiting = queue.waiting.iter().map(|lease| lease.states);
        let begun = queue.begun.iter().map(|job| {
            let (left, all) = (job.units.len() as u64, job.units_total.max(1) as u64);
            job.states_estimate / all * left
        });
        Load {
            jobs: queue.waiting.len() + queue.begun.len(),
            states: waiting.chain(begun).fold(0, u64::saturating_add),
        }
    }

    /// Everything that it has: waiting, begun, or finished and not yet taken.
    ///
    /// A lease that its holder does not name is given to it again, so not one may fall between two lists.
    pub(crate) fn held(&self) -> Vec<HeldLease> {
        let queue = self.shared.lock();
        let waiting = queue.waiting.iter().map(|lease| HeldLease { token: lease.token, states: 0 });
        let begun =
            queue.begun.iter().map(|job| HeldLease { token: job.token, states: job.control.states() });
        let finished = queue.finished.iter().map(|finished| match finished {
            Finished::Counted { result, .. } => HeldLease { token: result.token, states: result.states },
            Finished::Failed(returned) => HeldLease { token: returned.token, states: 0 },
        });
        waiting.chain(begun).chain(finished).collect()
    }

    /// Drops jobs that no longer are ours.
    pub(crate) fn revoke(&self, tokens: &[LeaseToken]) {
        if tokens.is_empty() {
            return;
        }
        let mut queue = self.shared.lock();
        queue.waiting.retain(|lease| !tokens.contains(&lease.token));
        queue.begun.retain(|job| {
            let revoked = tokens.contains(&job.token);
            if revoked {
                job.control.stop();
            }
            !revoked
        });
    }

    /// Gives up what has not begun; returns it.
    pub(crate) fn take_waiting(&self) -> Vec<LeaseToken> {
        self.shared.lock().waiting.drain(..).map(|lease| lease.token).collect()
    }

    /// Stops all counting and gives up what is not finished; returns it.
    pub(crate) fn abandon(&self) -> Vec<LeaseToken> {
        let mut tokens = self.take_waiting();
        for job in self.shared.lock().begun.drain(..) {
            job.control.stop();
            tokens.push(job.token);
        }
        tokens
    }

    /// Ends the threads; what they are at is given up.
    pub(crate) fn close(self) {
        self.abandon();
        self.shared.lock().closing = true;
        self.shared.work.notify_all();
        for thread in self.threads {
            thread.join().expect("counting threads catch their panics");
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // No code that can panic runs under the lock and leaves the queue half changed.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread's life.
    fn count(&self) {
        let mut solver = self.solver();
        while let Some(Piece { token, mirrored, control, unit }) = self.next_unit(&solver) {
            solver.mirror(mirrored);
            let begun = Instant::now();
            let outcome = catch_unwind(AssertUnwindSafe(|| unit.solve(&mut solver, &control)));
            match outcome {
                Ok(Ok(tally)) => self.finish_unit(token, tally.counts, tally.states, begun.elapsed()),
                // Revoked or abandoned: nobody waits for it.
                Ok(Err(_stopped)) => {}
                Err(panic) => {
                    self.fail(token, &panic_text(&*panic));
                    // Its buffers may be in any state.
                    solver = self.solver();
                }
            }
        }
    }

    fn solver(&self) -> Solver {
        Solver::new(self.kernel, &self.tables).expect("an available engine")
    }

    /// The next piece to count; waits for one, `None` when the pool closes.
    fn next_unit(&self, solver: &Solver) -> Option<Piece> {
        let mut queue = self.lock();
        loop {
            if queue.closing {
                return None;
            }
            let helpable = queue.begun.iter_mut().find(|job| !job.units.is_empty());
            if let Some(job) = helpable {
                let unit = job.units.pop().expect("not empty");
                let (token, mirrored, control) = (job.token, job.mirrored, Arc::clone(&job.control));
                return Some(Piece { token, mirrored, control, unit });
            }
            let Some(lease) = queue.waiting.pop_front() else {
                queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            if queue.waiting.is_empty() {
                self.stirred.notify_one();
            }
            // Entered before it is taken apart, so that heartbeats never miss it.
            queue.begun.push(Begun {
                token: lease.token,
                states_estimate: lease.states,
                mirrored: lease.mirrored,
                control: Arc::default(),
                units: Vec::new(),
                units_total: 0,
                open: 0,
                counts: Counts::ZERO,
                states: 0,
                elapsed: Duration::ZERO,
            });
            let next = queue.waiting.len();
            drop(queue);
            match self.pieces(&lease, next, solver) {
                Ok(units) => self.begin(lease.token, units),
                Err(invalid) => self.fail(lease.token, &invalid.to_string()),
            }
            queue = self.lock();
        }
    }

    /// A job's independent pieces: many enough for all threads if it is heavy. A job of colours stays whole while the
    /// `next` ones suffice for the other threads.
    fn pieces(&self, lease: &Lease, next: usize, solver: &Solver) -> Result<Vec<Unit>, InvalidJob> {
        let mut units = lease.job.decode()?.units(solver.leaf_test());
        let multiplied = lease.job.class == Class::Colours;
        let per_thread = if multiplied { ROW_SETS_PER_THREAD } else { PIECES_PER_THREAD };
        let spread = lease.states > SPREAD_STATES && !(multiplied && next + 1 >= self.threads);
        if self.threads > 1 && spread {
            // Twice is enough: each splitting makes about N pieces of one.
            for _ in 0..2 {
                if units.len() < self.threads * per_thread {
                    units = units.into_iter().flat_map(Unit::split).collect();
                }
            }
        }
        Ok(units)
    }

    fn begin(&self, token: LeaseToken, units: Vec<Unit>) {
        let mut queue = self.lock();
        // Not there: revoked meanwhile.
        let Some(at) = queue.begun.iter().position(|job| job.token == token) else { return };
        let job = &mut queue.begun[at];
        (job.units_total, job.open, job.units) = (units.len(), units.len(), units);
        if job.units.len() > 1 {
            self.work.notify_all();
        }
        if job.units.is_empty() {
            self.finish(&mut queue, at);
        }
    }

    fn finish_unit(&self, token: LeaseToken, counts: Counts, states: u64, elapsed: Duration) {
        let mut queue = self.lock();
        let Some(at) = queue.begun.iter().position(|job| job.token == token) else { return };
        let job = &mut queue.begun[at];
        let sums = (job.counts.checked_add(counts), job.states.checked_add(states));
        let (Ok(counts), Some(states)) = sums else {
            drop(queue);
            return self.fail(token, "its counts overflowed 64 bits");
        };
        (job.counts, job.states, job.elapsed) = (counts, states, job.elapsed + elapsed);
        job.open -= 1;
        if job.open == 0 {
            self.finish(&mut queue, at);
        }
    }

    fn finish(&self, queue: &mut Queue, at: usize) {
        let job = queue.begun.swap_remove(at);
        let result = JobResult {
            token: job.token,
            counts: job.counts,
            kernel: self.kernel,
            states: job.states,
            elapsed_us: u64::try_from(job.elapsed.as_micros()).unwrap_or(u64::MAX),
        };
        self.leave(queue, Finished::Counted { result, states_estimate: job.states_estimate });
    }

    fn fail(&self, token: LeaseToken, reason: &str) {
        let mut queue = self.lock();
        let Some(at) = queue.begun.iter().position(|job| job.token == token) else { return };
        queue.begun.swap_remove(at).control.stop();
        let line: String = reason.chars().map(|c| if c.is_control() { ' ' } else { c }).take(60).collect();
        self.leave(&mut queue, Finished::Failed(ReturnedLease { token, failure: Some(line) }));
    }

    /// A job leaves the pool.
    fn leave(&self, queue: &mut Queue, finished: Finished) {
        queue.finished.push(finished);
        self.stirred.notify_one();
        if queue.waiting.is_empty() && queue.begun.is_empty() {
            self.ran_dry.notify_one();
        }
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("(no message)"))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use nqueens_kernel::board::BoardSize;
    use nqueens_kernel::plan::{Plan, PlanKind};
    use nqueens_model::id::{Incarnation, JobId, RunId};
    use nqueens_model::message::EncodedJob;

    use super::*;

    fn lease(n: u32, number: u32) -> Lease {
        let n = BoardSize::new(n).expect("a board");
        let (job, weight) = Plan::new(n, PlanKind::Border).weighed_jobs().next().expect("a job");
        let job_id = JobId { run: RunId::from_random(1), number };
        let incarnation = Incarnation::from_random(1);
        Lease {
            token: LeaseToken { job: job_id, epoch: NonZeroU32::MIN, incarnation },
            job: EncodedJob { n, class: job.class(), bound1: job.bound1(), prefixes: job.encode() },
            states: weight.states,
            mirrored: false,
        }
    }

    fn held(pool: &Pool) -> Vec<LeaseToken> {
        pool.held().into_iter().map(|held| held.token).collect()
    }

    #[tokio::test]
    async fn a_job_is_held_until_its_result_is_taken() {
        let pool = Pool::start(Kernel::best(), NonZeroUsize::MIN, 0);
        let quick = lease(8, 0);
        pool.add(vec![quick.clone()]);
        while pool.load().jobs > 0 {
            pool.stirred().await;
        }
        assert_eq!(held(&pool), [quick.token]);
        assert_eq!(pool.abandon(), [], "what is finished is not given up");
        assert_eq!(pool.take_finished().len(), 1);
        assert_eq!(held(&pool), []);
        pool.close();
    }

    #[tokio::test]
    async fn what_has_not_begun_can_be_given_up_alone() {
        let pool = Pool::start(Kernel::best(), NonZeroUsize::MIN, 0);
        let [first, second, third] = [0, 1, 2].map(|number| lease(31, number));
        pool.add(vec![first.clone()]);
        // The last one that waited has begun.
        pool.stirred().await;
        pool.add(vec![second.clone(), third.clone()]);
        assert_eq!(pool.take_waiting(), [second.token, third.token]);
        assert_eq!(pool.abandon(), [first.token]);
        assert_eq!(held(&pool), []);
        pool.close();
    }
}
