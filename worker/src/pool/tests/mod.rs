//! Threads that count, fail, panic and are told to stop.

use std::collections::HashMap;
use std::iter;
use std::num::NonZeroU32;
use std::slice;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::Counts;
use nqueens_kernel::engine::{Control, Engine, Tally, cpu};
use nqueens_kernel::job::Job;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_kernel::subproblem::Subproblem;
use nqueens_kernel::unit::UnitTally;
use nqueens_model::id::{Incarnation, JobId, RunId};
use nqueens_model::message::EncodedJob;

use super::*;

const TWO: NonZeroUsize = NonZeroUsize::new(2).expect("not zero");

fn lease(n: u32, number: u32) -> Lease {
    let n = BoardSize::new(n).expect("a board");
    let (job, weight) = Plan::new(n, PlanKind::Border).weighed_jobs().next().expect("a job");
    Lease { states: weight.states, ..lease_of(&job, number) }
}

fn lease_of(job: &Job, number: u32) -> Lease {
    let job_id = JobId { run: RunId::from_random(1), number };
    let incarnation = Incarnation::from_random(1);
    Lease {
        token: LeaseToken { job: job_id, epoch: NonZeroU32::MIN, incarnation },
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
    Pool::start(Arc::new(factory), Kernel::best(), threads, 0)
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

/// The next so many jobs to finish.
async fn all_finished(pool: &Pool, jobs: usize) -> HashMap<LeaseToken, Result<Counts, Option<String>>> {
    let mut all = HashMap::new();
    while all.len() < jobs {
        for one in finished(pool).await {
            let (token, outcome) = match one {
                Ok(result) => (result.token, Ok(result.counts)),
                Err(returned) => (returned.token, Err(returned.failure)),
            };
            assert_eq!(all.insert(token, outcome), None, "each job finishes once");
        }
    }
    all
}

fn given_up(tokens: &[LeaseToken]) -> Vec<Result<JobResult, ReturnedLease>> {
    tokens.iter().map(|token| Err(ReturnedLease { token: *token, failure: None })).collect()
}

fn failed(token: LeaseToken, reason: &str) -> Result<JobResult, ReturnedLease> {
    Err(ReturnedLease { token, failure: Some(reason.to_owned()) })
}

#[tokio::test]
async fn a_job_that_is_finished_is_not_given_up() {
    let pool = Pool::start(Arc::new(cpu), Kernel::best(), NonZeroUsize::MIN, 0);
    let quick = lease(8, 0);
    pool.add(vec![quick.clone()]);
    pool.idle().await;
    pool.give_up(true);
    let Look { finished, begun } = pool.look();
    let [Ok(result)] = &finished[..] else { panic!("{finished:?}") };
    assert_eq!((result.token, begun), (quick.token, Vec::new()));
    assert_eq!(pool.look(), Look::default());
    pool.close();
}

#[tokio::test]
async fn what_has_not_begun_can_be_given_up_alone() {
    let pool = Pool::start(Arc::new(cpu), Kernel::best(), NonZeroUsize::MIN, 0);
    let [first, second, third] = [0, 1, 2].map(|number| lease(31, number));
    pool.add(vec![first.clone()]);
    // The last one that waited has begun.
    pool.progressed().await;
    pool.add(vec![second.clone(), third.clone()]);
    pool.give_up(false);
    assert_eq!(finished(&pool).await, given_up(&[second.token, third.token]));
    assert_eq!(begun(&pool), [first.token]);
    pool.give_up(true);
    assert_eq!(pool.look(), Look { finished: given_up(&[first.token]), begun: Vec::new() });
    pool.close();
}

#[test]
fn a_job_that_is_revoked_while_it_is_split_leaves_nothing_behind() {
    let shared = Arc::new(PoolState::new(Arc::new(cpu), Kernel::best(), 2, 0));
    let pool = Pool { shared: Arc::clone(&shared), threads: Vec::new() };
    let (heavy, next) = (lease(24, 0), lease(8, 1));
    pool.add(vec![heavy.clone(), next.clone()]);
    let Some(Task::Split { lease, waiting: 1 }) = shared.next_task(1) else { panic!("a job to split") };
    assert_eq!((lease.token, begun(&pool)), (heavy.token, vec![heavy.token]));
    let (pieces, parts) = shared.pieces(&lease, 1, &shared.solver()).expect("a good job");
    assert!(pieces.len() > 2, "it is spread");
    pool.revoke(&[heavy.token]);
    // The thread is done with splitting, and knows nothing of that.
    shared.begin(lease.token, pieces, parts);
    assert_eq!(pool.look(), Look::default());
    let Some(Task::Split { lease, waiting: 0 }) = shared.next_task(1) else { panic!("the next job") };
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
        let all = all_finished(&pool, 3).await;
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
    let pool = Pool::start(Arc::new(cpu), Kernel::best(), NonZeroUsize::MIN, 0);
    let good = lease(8, 0);
    let lease = Lease { job: EncodedJob { prefixes: Vec::new(), ..good.job }, ..good };
    pool.add(vec![lease.clone()]);
    assert_eq!(finished(&pool).await, [failed(lease.token, "a job has at least one prefix, not none")]);
    pool.close();
}

/// Jobs of all kinds, some of them by their mirror images, have what each has alone; and they do share batches.
#[tokio::test]
async fn batches_of_many_jobs_give_each_what_it_has_alone() {
    const BATCH_MAX: usize = 64;
    let n = BoardSize::new(10).unwrap();
    let jobs = PlanKind::ALL.map(|kind| Plan::with_states_per_job(n, kind, 40).jobs());
    let leases: Vec<_> = jobs
        .into_iter()
        .flatten()
        .zip(0..)
        .map(|(job, number)| Lease { mirrored: number % 5 == 0, ..lease_of(&job, number) })
        .collect();
    let boards = |lease: &Lease| {
        lease.job.decode().unwrap().units(false).iter().filter(|unit| unit.board().is_some()).count()
    };
    let (boards_all, boards_max) =
        leases.iter().map(boards).fold((0, 0), |(all, max), boards| (all + boards, boards.max(max)));
    assert!(boards_max > 0 && boards_max < BATCH_MAX && boards_all > 4 * BATCH_MAX, "{boards_all}");
    for threads in [NonZeroUsize::MIN, TWO] {
        let (counted, largest) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let seen = [&counted, &largest].map(Arc::clone);
        let pool = pool(threads, BATCH_MAX, move |boards, engine, control| {
            seen[1].fetch_max(boards.len(), Ordering::SeqCst);
            if boards.len() > 1 {
                seen[0].fetch_add(boards.len(), Ordering::SeqCst);
            }
            one_by_one(boards, engine, control)
        });
        pool.add(leases.clone());
        let all = all_finished(&pool, leases.len()).await;
        for lease in &leases {
            assert_eq!(all[&lease.token], Ok(expected(lease)), "{lease:?}");
        }
        assert!(largest.load(Ordering::SeqCst) > 2 * boards_max, "batches are of several jobs");
        assert!(counted.load(Ordering::SeqCst) <= boards_all, "no board is counted twice");
        assert_eq!(pool.look(), Look::default());
        pool.close();
    }
}

#[tokio::test]
async fn a_job_of_a_batch_can_be_revoked_alone_and_all_stop_it() {
    let [begun, go_on] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let [at_work, may_go_on] = [&begun, &go_on].map(Arc::clone);
    let pool = pool(NonZeroUsize::MIN, 64, move |boards, engine, control| {
        if boards.iter().any(|board| board.n().get() == 9) {
            return Err(until_stopped(control));
        }
        control.advance(100 * boards.len() as u64)?;
        at_work.store(true, Ordering::SeqCst);
        wait_for(&may_go_on);
        one_by_one(boards, engine, control)
    });
    let [kept, revoked, other] = [0, 1, 2].map(|number| lease(8, number));
    let pieces = kept.job.decode().unwrap().units(false).len() as u64;
    pool.add(vec![kept.clone(), revoked.clone(), other.clone()]);
    wait_for(&begun);
    let progress = pool.look().begun;
    assert!(progress.iter().all(|job| job.lease.states == 100 * pieces), "{progress:?}");
    assert_eq!(progress.len(), 3);
    pool.revoke(&[revoked.token]);
    go_on.store(true, Ordering::SeqCst);
    let all = all_finished(&pool, 2).await;
    assert!([&kept, &other].iter().all(|lease| all[&lease.token] == Ok(expected(lease))), "{all:?}");
    assert_eq!(pool.look(), Look::default());

    // Of N = 9, one in a batch counts until it is stopped.
    let [one, two, last] = [(9, 3), (8, 4), (8, 5)].map(|(n, number)| lease(n, number));
    pool.add(vec![one.clone(), two.clone()]);
    while pool.shared.lock().batches.is_empty() {
        tokio::task::yield_now().await;
    }
    pool.revoke(&[one.token]);
    assert!(!pool.shared.lock().batches[0].control.is_stopped(), "somebody wants the rest of it");
    pool.revoke(&[two.token]);
    pool.add(vec![last.clone()]);
    assert_eq!(all_finished(&pool, 1).await, HashMap::from([(last.token, Ok(expected(&last)))]));
    pool.close();
}

#[tokio::test]
async fn a_batch_that_panics_costs_the_job_that_panics_alone() {
    let panics = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&panics);
    let pool = pool(NonZeroUsize::MIN, 64, move |boards, engine, control| {
        if boards.iter().any(|board| board.n().get() == 9) {
            seen.fetch_add(1, Ordering::SeqCst);
            panic!("an odd board");
        }
        one_by_one(boards, engine, control)
    });
    let leases = [(8, 0), (9, 1), (8, 2)].map(|(n, number)| lease(n, number));
    pool.add(leases.to_vec());
    let all = all_finished(&pool, 3).await;
    for lease in &leases {
        let odd = lease.job.n.get() == 9;
        let outcome = if odd { Err(Some("panicked: an odd board".to_owned())) } else { Ok(expected(lease)) };
        assert_eq!(all[&lease.token], outcome);
    }
    assert_eq!(panics.load(Ordering::SeqCst), 2, "once with the others, once alone");
    pool.close();
}

/// A large job of each plan, or one that is taken for large, with what is found in its parts.
fn jobs_of_parts() -> Vec<(Lease, Vec<Counts>)> {
    let n = BoardSize::new(13).expect("a board");
    let lease = |(kind, number): (PlanKind, u32)| {
        let job = Plan::with_states_per_job(n, kind, 3_000_000).jobs().next().expect("a job");
        let lease = Lease { states: 9_000_000_000, ..lease_of(&job, number) };
        let parts = job.parts(lease.states);
        assert!((2..=9).contains(&parts.len()), "{} parts", parts.len());
        let counts = parts.iter().map(|part| expected(&lease_of(part, 0))).collect();
        (lease, counts)
    };
    PlanKind::ALL.into_iter().zip(0..).map(lease).collect()
}

/// The next so many results, by lease.
async fn results(pool: &Pool, jobs: usize) -> HashMap<LeaseToken, JobResult> {
    let mut all = HashMap::new();
    while all.len() < jobs {
        let results = finished(pool).await.into_iter().map(|result| result.expect("a good job"));
        all.extend(results.map(|result| (result.token, result)));
    }
    all
}

#[tokio::test]
async fn a_result_tells_what_each_part_has_however_it_is_counted() {
    let jobs = jobs_of_parts();
    for (threads, mirrored) in [(1, false), (1, true), (3, false)] {
        let threads = NonZeroUsize::new(threads).expect("not zero");
        let pool = pool(threads, 16, one_by_one);
        // All together, and each alone: then the threads share its pieces.
        for jobs in iter::once(&jobs[..]).chain(jobs.chunks(1)) {
            pool.add(jobs.iter().map(|(lease, _)| Lease { mirrored, ..lease.clone() }).collect());
            let results = results(&pool, jobs.len()).await;
            for (lease, parts) in jobs {
                let result = &results[&lease.token];
                assert_eq!(result.parts, *parts, "{} {threads}", lease.job.class);
                let sum = parts.iter().try_fold(Counts::ZERO, |sum, part| sum.checked_add(*part));
                assert_eq!(Ok(result.counts), sum);
            }
        }
        pool.close();
    }
}

#[tokio::test]
async fn parts_that_are_counted_once_more_count_once() {
    let jobs = jobs_of_parts();
    let panicked = AtomicBool::new(false);
    let pool = pool(NonZeroUsize::MIN, 1_000, move |boards, engine, control| {
        assert!(panicked.swap(true, Ordering::SeqCst), "the first batch comes to nothing");
        one_by_one(boards, engine, control)
    });
    pool.add(jobs.iter().map(|(lease, _)| lease.clone()).collect());
    let results = results(&pool, jobs.len()).await;
    assert!(jobs.iter().all(|(lease, parts)| results[&lease.token].parts == *parts));
    pool.close();
}

#[tokio::test]
async fn a_small_job_is_one_part() {
    let pool = Pool::start(Arc::new(cpu), Kernel::best(), NonZeroUsize::MIN, 0);
    let small = lease(8, 0);
    pool.add(vec![small.clone()]);
    let result = &results(&pool, 1).await[&small.token];
    assert_eq!((result.counts, &result.parts[..]), (expected(&small), &[][..]));
    pool.close();
}

#[test]
fn the_range_of_a_result_ends_at_63_bits() {
    let tally = |count8, states| {
        let tally = UnitTally { counts: Counts::only8(count8), states };
        PieceTally { tally, parts: Vec::new() }
    };
    let mut job = ActiveJob { open: 9, ..ActiveJob::new(&lease(8, 0)) };
    assert_eq!(job.add(&tally(NUMBER_MAX, NUMBER_MAX), Duration::ZERO), Some(()));
    for beyond in [tally(1, 0), tally(0, 1), tally(u64::MAX, 0), tally(0, u64::MAX)] {
        assert_eq!(job.add(&beyond, Duration::ZERO), None);
    }
    assert_eq!((job.counts.count8, job.states, job.open), (NUMBER_MAX, NUMBER_MAX, 8), "as it was");
}
