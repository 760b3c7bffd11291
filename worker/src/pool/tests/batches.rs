//! Boards of several jobs, counted together.

use super::*;

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
        let all = all_counts(&pool, leases.len()).await;
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
    let all = all_counts(&pool, 2).await;
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
    assert_eq!(all_counts(&pool, 1).await, HashMap::from([(last.token, Ok(expected(&last)))]));
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
    let all = all_counts(&pool, 3).await;
    for lease in &leases {
        let odd = lease.job.n.get() == 9;
        let outcome = if odd { Err(Some("panicked: an odd board".to_owned())) } else { Ok(expected(lease)) };
        assert_eq!(all[&lease.token], outcome);
    }
    assert_eq!(panics.load(Ordering::SeqCst), 2, "once with the others, once alone");
    pool.close();
}
