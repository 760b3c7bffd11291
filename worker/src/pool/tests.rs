//! Threads that count, fail, panic and are told to stop.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_model::id::{Incarnation, JobId, RunId};
use nqueens_model::message::EncodedJob;

use super::*;

const TWO: NonZeroUsize = NonZeroUsize::new(2).expect("not zero");

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

fn given_up(tokens: &[LeaseToken]) -> Vec<Result<JobResult, ReturnedLease>> {
    tokens.iter().map(|token| Err(ReturnedLease { token: *token, failure: None })).collect()
}

fn failed(token: LeaseToken, reason: &str) -> Result<JobResult, ReturnedLease> {
    Err(ReturnedLease { token, failure: Some(reason.to_owned()) })
}

#[tokio::test]
async fn a_job_that_is_finished_is_not_given_up() {
    let pool = Pool::start(Kernel::best(), NonZeroUsize::MIN, 0);
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
    let pool = Pool::start(Kernel::best(), NonZeroUsize::MIN, 0);
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
    let shared = Arc::new(Shared::new(Unit::solve, Kernel::best(), 2, 0));
    let pool = Pool { shared: Arc::clone(&shared), threads: Vec::new() };
    let (heavy, next) = (lease(24, 0), lease(8, 1));
    pool.add(vec![heavy.clone(), next.clone()]);
    let Some(Task::Split { lease, waiting: 1 }) = shared.next_task() else { panic!("a job to split") };
    assert_eq!((lease.token, begun(&pool)), (heavy.token, vec![heavy.token]));
    let units = shared.pieces(&lease, 1, &shared.solver()).expect("a good job");
    assert!(units.len() > 2, "it is spread");
    pool.revoke(&[heavy.token]);
    // The thread is done with splitting, and knows nothing of that.
    shared.begin(lease.token, units);
    assert_eq!(pool.look(), Look::default());
    let Some(Task::Split { lease, waiting: 0 }) = shared.next_task() else { panic!("the next job") };
    assert_eq!(lease.token, next.token);
    pool.close();
}

#[tokio::test]
async fn a_job_that_is_revoked_is_stopped_in_all_its_pieces() {
    /// Counts until it is stopped, if it is heavy.
    fn stubborn(unit: &Unit, solver: &mut Solver, control: &Control) -> Result<UnitTally, Stopped> {
        if unit.states_estimate() < 1_000_000 {
            return unit.solve(solver, control);
        }
        while !control.is_stopped() {
            std::thread::yield_now();
        }
        Err(Stopped)
    }
    let pool = Pool::solving(stubborn, Kernel::best(), TWO, 0);
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
    static SOUND: AtomicBool = AtomicBool::new(false);
    fn explosive(unit: &Unit, solver: &mut Solver, control: &Control) -> Result<UnitTally, Stopped> {
        assert!(SOUND.load(Ordering::Relaxed), "no\nengine");
        unit.solve(solver, control)
    }
    // One thread: the one that panicked is the one that counts on.
    let pool = Pool::solving(explosive, Kernel::best(), NonZeroUsize::MIN, 0);
    for number in 0..2 {
        let lease = lease(8, number);
        pool.add(vec![lease.clone()]);
        assert_eq!(finished(&pool).await, [failed(lease.token, "panicked: no engine")]);
    }
    SOUND.store(true, Ordering::Relaxed);
    let lease = lease(8, 2);
    pool.add(vec![lease.clone()]);
    let finished = finished(&pool).await;
    assert!(matches!(&finished[..], [Ok(result)] if result.token == lease.token), "{finished:?}");
    pool.close();
}

#[tokio::test]
async fn counts_beyond_63_bits_are_a_failure() {
    /// Each piece alone is within the range of a result.
    fn boundless(_: &Unit, _: &mut Solver, control: &Control) -> Result<UnitTally, Stopped> {
        let tally = UnitTally { counts: Counts::only8(NUMBER_MAX), states: 1 };
        if control.is_stopped() { Err(Stopped) } else { Ok(tally) }
    }
    let pool = Pool::solving(boundless, Kernel::best(), TWO, 0);
    let heavy = lease(24, 0);
    pool.add(vec![heavy.clone()]);
    assert_eq!(finished(&pool).await, [failed(heavy.token, "its counts overflowed 63 bits")]);
    pool.close();
}

#[test]
fn the_range_of_a_result_ends_at_63_bits() {
    let tally = |count8, states| UnitTally { counts: Counts::only8(count8), states };
    let mut job = ActiveJob { open: 9, ..ActiveJob::new(&lease(8, 0)) };
    assert_eq!(job.add(tally(NUMBER_MAX, NUMBER_MAX), Duration::ZERO), Some(()));
    for beyond in [tally(1, 0), tally(0, 1), tally(u64::MAX, 0), tally(0, u64::MAX)] {
        assert_eq!(job.add(beyond, Duration::ZERO), None);
    }
    assert_eq!((job.counts.count8, job.states, job.open), (NUMBER_MAX, NUMBER_MAX, 8), "as it was");
}
