//! Single rules of leases. Random histories of everything together are the crate `nqueens-simulation`.

mod cluster;
mod credentials;
mod shares;
mod world;

use nqueens_model::message::{HeldLease, JobResult, Verdict, Wanted};

use self::world::{JOBS, World, result, run_id, settings, truth};
use super::*;

/// A worker on a machine, whose program says nothing of its engine.
pub(super) fn registration(machine: &str, kernel: &str, threads: u32) -> Registration {
    Registration {
        instance: [0; 16],
        name: machine.to_owned(),
        build: String::new(),
        kernels: vec![kernel.parse().expect("a name")],
        capability: None,
        threads,
    }
}

/// A job whose holder is silent is leased a second time to a worker that has nothing to do; the first result counts, and
/// the other lease is gone.
#[test]
fn stragglers_are_leased_twice_and_counted_once() {
    let mut world = World::new(0);
    // Of another credential: what the first may never finish does not go to its next name.
    let [slow, idle] = [1, 3].map(|worker| WorkerId::new(worker).unwrap());
    let first = world.dispatch.grant(0, slow, Wanted::new(u64::MAX, JOBS as usize));
    assert_eq!(first.len(), JOBS as usize, "alone, it gets everything");
    assert!(world.dispatch.grant(50, idle, Wanted::new(1, 1)).is_empty(), "two heartbeats are not missing");
    let [second] = world.dispatch.grant(51, idle, Wanted::new(u64::MAX, 5))[..] else {
        panic!("one job, the oldest")
    };
    assert!(
        world.dispatch.grant(51, idle, Wanted::new(u64::MAX, 5)).is_empty(),
        "it has something to do now"
    );
    let judged = world.dispatch.report(51, idle, &result(second, truth(second.job.number)), None, true);
    assert_eq!(judged.verdict, Verdict::Accepted);
    let held = first.iter().map(|token| HeldLease { token: *token, states: 0 }).collect::<Vec<_>>();
    let revoked = world.dispatch.heartbeat(60, slow, &held).revoked;
    assert_eq!(revoked.iter().map(|token| token.job).collect::<Vec<_>>(), [second.job]);
}

/// Whoever can tell a second count from a first lies where there is none.
#[test]
fn the_number_of_a_lease_does_not_tell_whether_it_is_the_first() {
    let mut world = World::new(1_000_000);
    let [one, two] = [1, 3].map(|worker| WorkerId::new(worker).unwrap());
    let first = world.dispatch.grant(0, one, Wanted::new(u64::MAX, JOBS as usize));
    let mut accepted = BTreeMap::new();
    for token in &first {
        let counted = result(*token, truth(token.job.number));
        world.dispatch.report(0, one, &counted, None, true);
        accepted.insert(token.job, Accepted::new(one, &counted));
    }
    let mut second = Vec::new();
    while let [token, ..] = world.dispatch.grant(0, two, Wanted::new(1, 1))[..] {
        let counted = result(token, truth(token.job.number));
        world.dispatch.report(0, two, &counted, accepted.get(&token.job), true);
        second.push(token);
    }
    assert_eq!((first.len(), second.len()), (JOBS as usize, JOBS as usize));
    let epochs = |tokens: &[LeaseToken]| tokens.iter().map(|token| token.epoch).collect::<BTreeSet<_>>();
    let (first, second) = (epochs(&first), epochs(&second));
    // A bound between both kinds would tell them apart.
    assert!(first.last() > second.first() && second.last() > first.first(), "{first:?} {second:?}");
}

/// It counts its queue at the speed that it has shown: nobody takes a job from there before that is late.
#[test]
fn a_busy_holder_is_left_alone_with_its_queue() {
    let mut world = World::new(0);
    let [busy, idle] = [1, 3].map(|worker| WorkerId::new(worker).unwrap());
    let tokens = world.dispatch.grant(0, busy, Wanted::new(u64::MAX, JOBS as usize));
    // Two threads count a job each in a second: the last ones end after six.
    let mut held: Vec<_> = tokens.iter().map(|token| HeldLease { token: *token, states: 0 }).collect();
    for now in (25..=14_000).step_by(25) {
        if now % 1_000 == 0 && now < 6_000 {
            for HeldLease { token, .. } in held.drain(..2) {
                let result = JobResult { elapsed_us: 1_000_000, ..result(token, truth(token.job.number)) };
                let verdict = world.dispatch.report(now, busy, &result, None, true).verdict;
                assert_eq!(verdict, Verdict::Accepted);
            }
        }
        world.dispatch.heartbeat(now, busy, &held);
        world.dispatch.heartbeat(now, idle, &[]);
        // The last two stay out.
        let helps = world.dispatch.grant(now, idle, Wanted::new(u64::MAX, 1));
        if now > 1_000
            && let [token] = helps[..]
        {
            assert!(
                (11_000..13_000).contains(&now) && held.iter().any(|held| held.token.job == token.job),
                "{now}"
            );
            return;
        }
        assert!(helps.is_empty(), "at {now}");
    }
    panic!("nobody helps with what is late");
}

/// Leases that wait behind those of another run at the only worker are not counted yet.
#[test]
fn a_run_is_counted_when_its_turn_at_a_worker_comes() {
    let mut world = World::new(0);
    let worker = WorkerId::new(1).unwrap();
    let first = world.dispatch.grant(0, worker, Wanted::new(u64::MAX, JOBS as usize));
    assert_eq!(first.len(), JOBS as usize, "alone, it gets everything");
    let next = RunSettings { id: RunId::new(run_id().get() + 1).unwrap(), ..settings(0) };
    world.dispatch.add_run(Run::planned(&next, &[1; 3]));
    assert!(!world.dispatch.is_counted(next.id), "it has no lease");
    assert_eq!(world.dispatch.grant(1, worker, Wanted::new(u64::MAX, 3)).len(), 3);
    assert!(world.dispatch.is_counted(run_id()) && !world.dispatch.is_counted(next.id));
    // One of its two threads has nothing else left.
    for token in &first[1..] {
        world.dispatch.report(2, worker, &result(*token, truth(token.job.number)), None, true);
    }
    assert!(world.dispatch.is_counted(run_id()) && world.dispatch.is_counted(next.id));
}

/// Runs share the workers evenly: until one ends a larger one gets no more than it, and a smaller one is done.
#[test]
fn what_a_run_leaves_at_its_end_comes_to_the_others() {
    let mut dispatch = Dispatch::new(Policy::default(), &[0; 32]);
    let run = |id, priority| RunSettings { id: RunId::new(id).unwrap(), priority, ..settings(0) };
    for (id, estimates) in [(1, [40, 50]), (2, [10, 20]), (3, [5, 10])] {
        dispatch.add_run(Run::planned(&run(id, 0), &estimates));
    }
    dispatch.add_run(Run::planned(&run(4, 1), &[70]));
    let left = |dispatch: &Dispatch, id| dispatch.work_left(dispatch.run(RunId::new(id).unwrap()).unwrap());
    let all = |dispatch: &Dispatch| [1, 2, 3, 4].map(|id| left(dispatch, id).to_string());
    assert_eq!(all(&dispatch), ["45", "25", "15", "70"]);
    dispatch.set_run_state(RunId::new(1).unwrap(), RunState::Paused);
    assert_eq!(all(&dispatch)[1..], ["22.5", "15", "70"], "one that is paused takes nothing");
    // A run that waits changes nothing for those of a higher priority.
    let before = dispatch.busy(0).crew;
    dispatch.add_run(Run::planned(&run(5, 0), &[1]));
    assert_eq!(dispatch.busy(0).crew, before);
    dispatch.add_run(Run::planned(&run(6, 1), &[1]));
    assert_ne!(dispatch.busy(0).crew, before);
}

/// Heartbeats alone do not keep a lease for ever: the counting has to move.
#[test]
fn a_worker_that_only_beats_loses_its_leases() {
    let mut world = World::new(0);
    let worker = WorkerId::new(1).unwrap();
    let [token] = world.dispatch.grant(0, worker, Wanted::new(1, 1))[..] else { panic!("one job") };
    let beat = |world: &mut World, now, states| {
        world.dispatch.heartbeat(now, worker, &[HeldLease { token, states }])
    };
    for now in (0..300).step_by(50) {
        assert!(beat(&mut world, now, 7).revoked.is_empty());
        assert!(world.dispatch.expire(now).is_empty());
    }
    assert!(beat(&mut world, 299, 8).revoked.is_empty(), "it moved");
    assert!(beat(&mut world, 390, 8).revoked.is_empty());
    assert!(world.dispatch.expire(400).is_empty());
    for now in (400..600).step_by(50) {
        beat(&mut world, now, 8);
    }
    assert_eq!(world.dispatch.expire(599), [(worker, token)]);
}

/// A worker that dies costs only those jobs a lapse that it may have begun, or the last ones of long queues would come to
/// quarantine where workers die often.
#[test]
fn a_job_that_was_never_begun_is_not_blamed() {
    let mut world = World::new(0);
    let [one, two] = [1, 2].map(|worker| WorkerId::new(worker).unwrap());
    let lapses = |world: &World, tokens: &[LeaseToken]| {
        let run = world.dispatch.run(run_id()).unwrap();
        tokens.iter().map(|token| run.slot(token.job.number).lapses).collect::<Vec<_>>()
    };
    // It has two threads. Nothing was heard of what it counts.
    let first = world.dispatch.grant(0, one, Wanted::new(u64::MAX, 5));
    assert_eq!(world.dispatch.expire(100).len(), 5);
    assert_eq!(lapses(&world, &first), [1, 1, 0, 0, 0]);
    // It was heard counting the third, fourth and fifth.
    let second = world.dispatch.grant(100, one, Wanted::new(u64::MAX, 6));
    let states = [0, 0, 1, 1, 1, 0];
    let held = second.iter().zip(states).map(|(token, states)| HeldLease { token: *token, states });
    world.dispatch.heartbeat(150, one, &held.collect::<Vec<_>>());
    let before = lapses(&world, &second);
    assert_eq!(world.dispatch.expire(250).len(), 6);
    let after = lapses(&world, &second);
    let blamed = before.iter().zip(after).map(|(before, after)| after - before);
    assert_eq!(blamed.collect::<Vec<_>>(), [0, 0, 1, 1, 1, 0]);
    // What nobody ever finishes is found out all the same.
    for now in (300..).step_by(100).take(100) {
        world.dispatch.grant(now, two, Wanted::new(u64::MAX, JOBS as usize));
        world.dispatch.expire(now + 100);
    }
    assert_eq!(world.dispatch.run(run_id()).unwrap().sums().quarantined, JOBS);
}

#[test]
fn runs_of_higher_priority_come_first() {
    let mut world = World::new(0);
    let urgent = RunSettings { id: RunId::from_random(9), priority: 5, ..settings(0) };
    let estimates: Vec<_> = world.slots.iter().map(|slot| slot.estimate).collect();
    world.dispatch.add_run(Run::planned(&urgent, &estimates));
    let worker = WorkerId::new(1).unwrap();
    let granted = world.dispatch.grant(0, worker, Wanted::new(u64::MAX, 2 * JOBS as usize));
    let runs: Vec<_> = granted.iter().map(|token| token.job.run == urgent.id).collect();
    assert_eq!(runs, [[true; JOBS as usize], [false; JOBS as usize]].concat());
}

#[test]
fn jobs_leave_in_an_order_that_the_seed_fixes() {
    let order = |seed| super::order::shuffled(1_000, seed);
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
    let mut sorted = order(3);
    sorted.sort_unstable();
    assert_eq!(sorted, (0..1_000).collect::<Vec<_>>());
    assert_eq!(
        order(4)[..8],
        [941, 323, 659, 687, 944, 273, 137, 13],
        "pinned: an order must never change between versions"
    );
}

#[test]
fn a_worker_with_little_time_gets_the_jobs_that_it_can_finish() {
    let mut world = World::new(0);
    let [brief, patient] = [1, 2].map(|id| WorkerId::new(id).unwrap());
    let mut sizes: Vec<_> = world.slots.iter().map(|slot| slot.estimate).collect();
    sizes.sort_unstable();
    let median = sizes[sizes.len() / 2];
    let small = sizes.iter().filter(|size| **size <= median).count();
    let wanted = Wanted { job_states_max: median, ..Wanted::new(u64::MAX, JOBS as usize) };
    world.dispatch.heartbeat(0, patient, &[]);
    let mut granted = Vec::new();
    loop {
        let more = world.dispatch.grant(0, brief, wanted);
        granted.extend(more.iter().map(|token| token.job.number));
        if more.is_empty() {
            break;
        }
    }
    assert!(granted.iter().all(|job| world.slots[*job as usize].estimate <= median));
    assert!(!granted.is_empty() && granted.len() <= small, "{granted:?}");
    let rest = world.dispatch.grant(0, patient, Wanted::new(u64::MAX, JOBS as usize));
    assert!(rest.iter().all(|token| !granted.contains(&token.job.number)));
    // All of it leaves, in whatever order.
    let mut all = granted.len() + rest.len();
    loop {
        let more = world.dispatch.grant(0, patient, Wanted::new(u64::MAX, JOBS as usize)).len()
            + world.dispatch.grant(0, brief, Wanted::new(u64::MAX, JOBS as usize)).len();
        all += more;
        if more == 0 {
            break;
        }
    }
    assert_eq!(all, JOBS as usize);
}

#[test]
fn a_worker_is_present_until_it_says_goodbye_or_misses_two_heartbeats() {
    let mut world = World::new(0);
    let worker = WorkerId::new(1).unwrap();
    world.dispatch.heartbeat(0, worker, &[]);
    let [token] = world.dispatch.grant(0, worker, Wanted::new(1, 1))[..] else { panic!("one job") };
    let beat = Millis::from(world.dispatch.policy.beat_ms);
    let is_present = |dispatch: &Dispatch, now| {
        let is_present = dispatch.is_present(now, dispatch.worker(worker).unwrap());
        assert_eq!(dispatch.busy(now).workers, usize::from(is_present), "it holds a job");
        is_present
    };
    assert!(is_present(&world.dispatch, 2 * beat) && !is_present(&world.dispatch, 2 * beat + 1));
    world.dispatch.heartbeat(3 * beat, worker, &[HeldLease { token, states: 0 }]);
    assert!(is_present(&world.dispatch, 3 * beat));
    world.dispatch.part(worker);
    assert!(!is_present(&world.dispatch, 3 * beat));
    world.dispatch.heartbeat(3 * beat + 1, worker, &[HeldLease { token, states: 0 }]);
    assert!(!is_present(&world.dispatch, 3 * beat + 1), "that was said before it left");
    assert_eq!(world.dispatch.grant(3 * beat + 1, worker, Wanted::new(1, 1)), [], "and asked");
    world.dispatch.greet(3 * beat + 2, worker);
    assert!(is_present(&world.dispatch, 3 * beat + 2), "it is back");
    assert_eq!(world.dispatch.grant(3 * beat + 2, worker, Wanted::new(1, 1)).len(), 1);
}

#[test]
fn workers_are_there_and_asked_to_go_as_before_after_all_was_read_again() {
    let mut earlier = World::new(0).dispatch;
    let [asked, free] = [1, 3].map(|id| WorkerId::new(id).unwrap());
    assert!(earlier.set_draining(asked));
    let (lease, now) = (earlier.policy.lease_ms, 10_000);
    let mut dispatch = Dispatch::new(earlier.policy, &[7; 32]).in_place_of(now, &earlier);
    for worker in [asked, free] {
        dispatch.add_worker(worker, &registration("m", "reference", 2), Credential::shared());
    }
    let may_count = |at, worker| dispatch.may_count(at, dispatch.worker(worker).unwrap());
    assert_eq!([now, now + lease, now + lease + 1].map(|at| may_count(at, free)), [true, true, false]);
    assert!(!may_count(now, asked));
}
