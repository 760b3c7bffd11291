//! Threads that count, fail, panic and are told to stop.

mod batches;
mod crews;
mod parts;

use std::collections::HashMap;
use std::iter;
use std::num::{NonZeroU32, NonZeroUsize};
use std::slice;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::Counts;
use nqueens_kernel::engine::{Control, Engine, Kernel, Stopped, Tally, cpu};
use nqueens_kernel::job::Job;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_kernel::subproblem::Subproblem;
use nqueens_kernel::unit::UnitTally;
use nqueens_model::id::{JobId, RunId};
use nqueens_model::message::EncodedJob;

use super::*;
use crate::selftest::Proof;

const PLENTY: MemoryMax = MemoryMax { tables: 0, all: u64::MAX };
const TWO: NonZeroUsize = NonZeroUsize::new(2).expect("not zero");

fn lease(n: u32, number: u32) -> Lease {
    let n = BoardSize::new(n).expect("a board");
    let (job, weight) = Plan::new(n, PlanKind::Border).weighed_jobs().next().expect("a job");
    Lease { states: weight.states, ..lease_of(&job, number) }
}

fn lease_of(job: &Job, number: u32) -> Lease {
    let job_id = JobId { run: RunId::from_random(1), number };
    Lease {
        token: LeaseToken { job: job_id, epoch: NonZeroU32::MIN, ticket: 1 },
        job: EncodedJob { n: job.n(), class: job.class(), bound1: job.bound1(), prefixes: job.encode() },
        states: 1,
        mirrored: false,
    }
}

/// What a fake engine does with some boards, given a real one.
trait Count: Fn(&[Subproblem], &mut dyn Engine, &Control) -> Result<Vec<Tally>, Stopped> {}

impl<F: Fn(&[Subproblem], &mut dyn Engine, &Control) -> Result<Vec<Tally>, Stopped>> Count for F {}

struct Fake<F> {
    real: Box<dyn Engine>,
    batch_max: usize,
    count: Arc<F>,
}

impl<F: Count + Send + Sync> Engine for Fake<F> {
    fn count(&mut self, problem: &Subproblem, control: &Control) -> Result<Tally, Stopped> {
        let mut tally = Tally::default();
        self.count_batch(slice::from_ref(problem), slice::from_mut(&mut tally), control)?;
        Ok(tally)
    }

    fn isa(&self) -> Option<Kernel> {
        self.real.isa()
    }

    fn batch_max(&self) -> usize {
        self.batch_max
    }

    fn count_batch(
        &mut self,
        problems: &[Subproblem],
        tallies: &mut [Tally],
        control: &Control,
    ) -> Result<(), Stopped> {
        assert!((1..=self.batch_max).contains(&problems.len()));
        tallies.copy_from_slice(&(self.count)(problems, &mut *self.real, control)?);
        Ok(())
    }
}

/// Starts threads whose engines count so many boards at once, in this way.
fn pool(threads: NonZeroUsize, batch_max: usize, count: impl Count + Send + Sync + 'static) -> Pool {
    let count = Arc::new(count);
    let factory = move |name: &str| -> Option<Box<dyn Engine>> {
        Some(Box::new(Fake { real: cpu(name)?, batch_max, count: Arc::clone(&count) }))
    };
    Pool::start(Arc::new(factory), crews(threads), PLENTY)
}

/// One crew on the processor.
fn crews(threads: NonZeroUsize) -> Vec<Crew> {
    vec![Crew::of_cpu(Proof { kernel: Kernel::best(), states_per_s: 1e12 }, threads)]
}

fn one_by_one(
    boards: &[Subproblem],
    engine: &mut dyn Engine,
    control: &Control,
) -> Result<Vec<Tally>, Stopped> {
    boards.iter().map(|board| engine.count(board, control)).collect()
}

fn until_stopped(control: &Control) -> Stopped {
    while !control.is_stopped() {
        std::thread::yield_now();
    }
    Stopped
}

fn wait_for(flag: &AtomicBool) {
    while !flag.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
}

/// What a lease's job has, counted alone.
fn expected(lease: &Lease) -> Counts {
    let mut solver = Solver::recounting(cpu("scalar").expect("it runs everywhere"));
    let job = lease.job.decode().expect("a good job");
    solver.count_job(&job, &Control::default()).expect("nobody stops it").expect("a small job").counts
}

fn begun(pool: &Pool) -> Vec<LeaseToken> {
    pool.look().begun.into_iter().map(|progress| progress.lease.token).collect()
}

/// The next jobs to finish.
async fn finished(pool: &Pool) -> Vec<Result<JobResult, ReturnedLease>> {
    loop {
        let finished = pool.look().finished;
        if !finished.is_empty() {
            return finished;
        }
        pool.progressed().await;
    }
}

/// The next so many jobs to finish: the result of each, or why it comes back.
async fn all_finished(pool: &Pool, jobs: usize) -> HashMap<LeaseToken, Result<JobResult, Option<String>>> {
    let mut all = HashMap::new();
    while all.len() < jobs {
        for one in finished(pool).await {
            let (token, outcome) = match one {
                Ok(result) => (result.token, Ok(result)),
                Err(returned) => (returned.token, Err(returned.failure)),
            };
            assert_eq!(all.insert(token, outcome), None, "each job finishes once");
        }
    }
    all
}

/// The same, with the counts alone.
async fn all_counts(pool: &Pool, jobs: usize) -> HashMap<LeaseToken, Result<Counts, Option<String>>> {
    let all = all_finished(pool, jobs).await.into_iter();
    all.map(|(token, result)| (token, result.map(|result| result.counts))).collect()
}

/// The same of jobs that are all counted.
async fn results(pool: &Pool, jobs: usize) -> HashMap<LeaseToken, JobResult> {
    let all = all_finished(pool, jobs).await.into_iter();
    all.map(|(token, result)| (token, result.expect("a good job"))).collect()
}

fn given_up(tokens: &[LeaseToken]) -> Vec<Result<JobResult, ReturnedLease>> {
    tokens.iter().map(|token| Err(ReturnedLease { token: *token, failure: None })).collect()
}

fn failed(token: LeaseToken, reason: &str) -> Result<JobResult, ReturnedLease> {
    Err(ReturnedLease { token, failure: Some(reason.to_owned()) })
}

#[tokio::test]
async fn a_job_that_is_finished_is_not_given_up() {
    let pool = Pool::start(Arc::new(cpu), crews(NonZeroUsize::MIN), PLENTY);
    let quick = lease(8, 0);
    pool.add(vec![quick.clone()]);
    pool.idle().await;
    pool.give_up(true);
    let Look { finished, begun, .. } = pool.look();
    let [Ok(result)] = &finished[..] else { panic!("{finished:?}") };
    assert_eq!((result.token, begun), (quick.token, Vec::new()));
    assert_eq!(pool.look(), Look::default());
    pool.close();
}

#[tokio::test]
async fn what_has_not_begun_can_be_given_up_alone() {
    let pool = Pool::start(Arc::new(cpu), crews(NonZeroUsize::MIN), PLENTY);
    let [first, second, third] = [0, 1, 2].map(|number| lease(31, number));
    pool.add(vec![first.clone()]);
    // The last one that waited has begun.
    pool.progressed().await;
    pool.add(vec![second.clone(), third.clone()]);
    pool.give_up(false);
    assert_eq!(finished(&pool).await, given_up(&[second.token, third.token]));
    assert_eq!(begun(&pool), [first.token]);
    pool.give_up(true);
    assert_eq!(pool.look(), Look { finished: given_up(&[first.token]), ..Look::default() });
    pool.close();
}

#[test]
fn a_job_that_is_revoked_while_it_is_split_leaves_nothing_behind() {
    let shared = Arc::new(PoolState::new(Arc::new(cpu), crews(TWO), PLENTY));
    let pool = Pool { shared: Arc::clone(&shared), threads: Vec::new() };
    let (heavy, next) = (lease(24, 0), lease(8, 1));
    pool.add(vec![heavy.clone(), next.clone()]);
    let Some(Task::Split { lease, waiting: 1 }) = shared.next_task(&shared.crews[0], 1) else {
        panic!("a job to split")
    };
    assert_eq!((lease.token, begun(&pool)), (heavy.token, vec![heavy.token]));
    let (pieces, parts) = pieces(&shared.crews[0], &lease, 1, false).expect("a good job");
    assert!(pieces.len() > 2, "it is spread");
    pool.revoke(&[heavy.token]);
    // The thread is done with splitting, and knows nothing of that.
    shared.begin(lease.token, pieces, parts);
    assert_eq!(pool.look(), Look::default());
    let Some(Task::Split { lease, waiting: 0 }) = shared.next_task(&shared.crews[0], 1) else {
        panic!("the next job")
    };
    assert_eq!(lease.token, next.token);
    pool.close();
}

#[tokio::test]
async fn a_job_that_is_revoked_is_stopped_in_all_its_pieces() {
    let pool = pool(TWO, 1, |boards, engine, control| {
        if boards[0].n().get() == 24 {
            Err(until_stopped(control))
        } else {
            one_by_one(boards, engine, control)
        }
    });
    let (heavy, quick) = (lease(24, 0), lease(8, 1));
    pool.add(vec![heavy.clone()]);
    pool.progressed().await;
    pool.revoke(&[heavy.token]);
    pool.add(vec![quick.clone()]);
    let finished = finished(&pool).await;
    assert!(matches!(&finished[..], [Ok(result)] if result.token == quick.token), "{finished:?}");
    pool.close();
}

#[tokio::test]
async fn a_panic_costs_its_job_and_no_other() {
    let sound = Arc::new(AtomicBool::new(false));
    let is_sound = Arc::clone(&sound);
    // One thread: the one that panicked is the one that counts on.
    let pool = pool(NonZeroUsize::MIN, 1, move |boards, engine, control| {
        assert!(is_sound.load(Ordering::SeqCst), "no\nengine");
        one_by_one(boards, engine, control)
    });
    for number in 0..2 {
        let lease = lease(8, number);
        pool.add(vec![lease.clone()]);
        assert_eq!(finished(&pool).await, [failed(lease.token, "panicked: no engine")]);
    }
    sound.store(true, Ordering::SeqCst);
    let lease = lease(8, 2);
    pool.add(vec![lease.clone()]);
    let finished = finished(&pool).await;
    assert!(matches!(&finished[..], [Ok(result)] if result.token == lease.token), "{finished:?}");
    pool.close();
}

/// The coordinator may give it to the same worker again and again.
#[tokio::test]
async fn a_thread_that_only_fails_takes_its_time_unless_the_pool_closes() {
    let pauses: Vec<_> = (0..=20).map(|failures| pause_after(failures).as_millis()).collect();
    assert_eq!(pauses[..7], [0, 0, 0, 0, 100, 200, 400]);
    assert_eq!(pauses[14..], [102_400; 7]);
    let pool = pool(NonZeroUsize::MIN, 1, |boards, engine, control| {
        assert!(boards[0].n().get() == 8, "no engine");
        one_by_one(boards, engine, control)
    });
    let [bad, good] = [lease(9, 0), lease(8, 1)];
    for failures in 1..=2 {
        pool.add(vec![bad.clone()]);
        assert_eq!(finished(&pool).await, [failed(bad.token, "panicked: no engine")]);
        assert_eq!(pool.shared.lock().failures, failures);
    }
    pool.add(vec![good.clone()]);
    assert!(finished(&pool).await[0].is_ok());
    assert_eq!(pool.shared.lock().failures, 0, "it can count");
    pool.shared.lock().failures = u32::MAX;
    pool.add(vec![bad.clone(), good.clone()]);
    assert_eq!(finished(&pool).await, [failed(bad.token, "panicked: no engine")]);
    for _ in 0..1000 {
        std::thread::yield_now();
        assert_eq!(pool.look(), Look::default(), "it pauses");
    }
    pool.close();
}

#[tokio::test]
async fn a_thread_that_does_not_stop_is_left_behind() {
    let [begun, released] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let [at_work, may_end] = [&begun, &released].map(Arc::clone);
    let pool = pool(NonZeroUsize::MIN, 1, move |_, _, _| {
        at_work.store(true, Ordering::SeqCst);
        wait_for(&may_end);
        Err(Stopped)
    });
    pool.add(vec![lease(8, 0)]);
    wait_for(&begun);
    pool.close_within(Duration::ZERO).await;
    released.store(true, Ordering::SeqCst);
}

#[tokio::test]
async fn counts_beyond_63_bits_are_a_failure_of_their_job_alone() {
    let small = [lease(8, 1), lease(8, 2)];
    let heavy = lease(24, 0);
    assert!(heavy.job.decode().unwrap().units(false).len() > 1, "each of its pieces is within the range");
    for (threads, batch_max) in [(TWO, 1), (NonZeroUsize::MIN, 5000)] {
        let pool = pool(threads, batch_max, |boards, engine, control| {
            let (small, heavy) =
                boards.split_at(boards.iter().take_while(|board| board.n().get() == 8).count());
            assert!(heavy.iter().all(|board| board.n().get() == 24));
            let mut tallies = one_by_one(small, engine, control)?;
            tallies.extend(heavy.iter().map(|_| Tally { completions: NUMBER_MAX, states: u64::MAX / 2 }));
            if control.is_stopped() { Err(Stopped) } else { Ok(tallies) }
        });
        pool.add(vec![small[0].clone(), heavy.clone(), small[1].clone()]);
        let all = all_counts(&pool, 3).await;
        assert_eq!(all[&heavy.token], Err(Some("its counts overflowed 63 bits".to_owned())));
        assert!(small.iter().all(|lease| all[&lease.token] == Ok(expected(lease))), "{all:?}");
        pool.close();
    }
}

#[tokio::test]
async fn an_engine_that_stops_unasked_fails_its_job() {
    let pool = pool(NonZeroUsize::MIN, 1, |_, _, _| Err(Stopped));
    let lease = lease(8, 0);
    pool.add(vec![lease.clone()]);
    assert_eq!(finished(&pool).await, [failed(lease.token, "its engine stopped")]);
    pool.close();
}

#[tokio::test]
async fn what_is_no_job_is_returned() {
    let pool = Pool::start(Arc::new(cpu), crews(NonZeroUsize::MIN), PLENTY);
    let good = lease(8, 0);
    let lease = Lease { job: EncodedJob { prefixes: Vec::new(), ..good.job }, ..good };
    pool.add(vec![lease.clone()]);
    assert_eq!(finished(&pool).await, [failed(lease.token, "a job has at least one prefix, not none")]);
    pool.close();
}

#[test]
fn the_range_of_a_result_ends_at_63_bits() {
    let tally = |count8, states| {
        let tally = UnitTally { counts: Counts::only8(count8), states };
        PieceTally { tally, parts: Vec::new() }
    };
    let mut job = ActiveJob { open: 9, ..ActiveJob::new(&lease(8, 0), Kernel::best().into()) };
    assert_eq!(job.add(&tally(NUMBER_MAX, NUMBER_MAX), Spent::default()), Some(()));
    for beyond in [tally(1, 0), tally(0, 1), tally(u64::MAX, 0), tally(0, u64::MAX)] {
        assert_eq!(job.add(&beyond, Spent::default()), None);
    }
    assert_eq!((job.counts.count8, job.states, job.open), (NUMBER_MAX, NUMBER_MAX, 8), "as it was");
}
