//! Results that tell what each part of a job has.

use super::*;

/// A large job of each plan, and two of colours, or such that are taken for large, with what is found in their parts.
fn jobs_of_parts() -> Vec<(Lease, Vec<Counts>)> {
    let n = BoardSize::new(13).expect("a board");
    let lease = |((kind, nth), number): ((PlanKind, usize), u32)| {
        let states = if kind == PlanKind::Colours { 100_000 } else { 3_000_000 };
        let job = Plan::with_states_per_job(n, kind, states).jobs().nth(nth).expect("a job");
        let lease = Lease { states: 9_000_000_000, ..lease_of(&job, number) };
        let parts = job.parts(lease.states);
        assert!((2..=9).contains(&parts.len()), "{} parts", parts.len());
        let counts = parts.iter().map(|part| expected(&lease_of(part, 0))).collect();
        (lease, counts)
    };
    let first = PlanKind::ALL.map(|kind| (kind, 0)).into_iter();
    first.chain([(PlanKind::Colours, 1)]).zip(0..).map(lease).collect()
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

#[test]
fn a_job_of_colours_is_split_only_for_threads_that_have_no_other() {
    let jobs = jobs_of_parts();
    let (lease, _) = jobs.iter().find(|(lease, _)| lease.job.class == Class::Colours).expect("one");
    let crew = &crews(NonZeroUsize::new(8).expect("not zero"))[0];
    let pieces_of = |waiting| pieces(crew, lease, waiting, false).expect("a good job").0.len();
    assert_eq!([7, 100].map(pieces_of), [1, 1], "the others have one each");
    let [shared, alone] = [6, 0].map(pieces_of);
    assert!(shared >= 2 && alone >= 8, "{shared} {alone}");
    let of_states =
        |states| pieces(crew, &Lease { states, ..lease.clone() }, 0, false).expect("a good job").0;
    assert_eq!(of_states(10_000_000).len(), 1, "it takes 10 ms");
    assert_eq!(of_states(10_000_001).len(), alone);
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
    let pool = Pool::start(Arc::new(cpu), crews(NonZeroUsize::MIN), PLENTY);
    let small = lease(8, 0);
    pool.add(vec![small.clone()]);
    let result = &results(&pool, 1).await[&small.token];
    assert_eq!((result.counts, &result.parts[..]), (expected(&small), &[][..]));
    pool.close();
}
