//! Who gets how much, among workers of very different speed.

use std::collections::VecDeque;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::Counts;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_model::kernel::Capability;
use nqueens_model::message::{HeldLease, JobResult, Verdict, Wanted};

use super::super::*;
use super::registration;

const JOBS: usize = 20_000;
/// States of a job.
const JOB: u64 = 250_000;
/// States that the fast worker counts in a second; the other one counts a hundredth.
const FAST: u64 = 100_000_000;
/// Time between two heartbeats.
const BEAT_MS: Millis = 1_000;
/// Time between two looks.
const STEP_MS: Millis = 10;
/// Most jobs that a worker asks for at once, before its first result and later.
const WANTED: [usize; 2] = [32, 1_000];

/// One worker, which counts its jobs one after the other at its speed.
struct CountingWorker {
    id: WorkerId,
    states_per_s: u64,
    threads: u32,
    jobs: VecDeque<LeaseToken>,
    /// Of the first of its jobs.
    states: u64,
    /// When it last had something to count.
    busy: Millis,
    done: usize,
}

impl CountingWorker {
    fn new(dispatch: &mut Dispatch, number: u64, states_per_s: u64, threads: u32, says: bool) -> Self {
        let id = WorkerId::new(number).expect("a name");
        let (family, device) = ("block-search".parse().expect("a name"), String::new());
        let capability = says.then_some(Capability { family, device, states_per_s });
        let machine = format!("machine {number}");
        let worker = Registration { capability, ..registration(&machine, "avx2", threads) };
        dispatch.add_worker(id, &worker, Credential::shared());
        Self { id, states_per_s, threads, jobs: VecDeque::new(), states: 0, busy: 0, done: 0 }
    }

    /// Counts until `now`, reports what it has done, and asks for more when it has nothing left.
    fn step(&mut self, now: Millis, dispatch: &mut Dispatch) {
        self.states += self.states_per_s * STEP_MS / 1_000;
        while self.states >= JOB
            && let Some(token) = self.jobs.pop_front()
        {
            self.states -= JOB;
            self.done += 1;
            // Thread time, of all its threads.
            let elapsed_us = JOB * 1_000_000 / self.states_per_s * u64::from(self.threads);
            let (counts, kernel) = (Counts::ZERO, "avx2".parse().expect("a name"));
            let result =
                JobResult { token, counts, parts: Vec::new(), kernel, states: JOB, elapsed_us, cpu_us: None };
            assert_eq!(dispatch.report(now, self.id, &result, None, true).verdict, Verdict::Accepted);
        }
        if now % BEAT_MS == STEP_MS {
            let held = self.jobs.iter().map(|token| HeldLease { token: *token, states: 0 });
            dispatch.heartbeat(now, self.id, &held.collect::<Vec<_>>());
        }
        if self.jobs.is_empty() {
            self.states = 0;
            let wanted = WANTED[usize::from(self.done > 0)];
            self.jobs.extend(dispatch.grant(now, self.id, Wanted::new(u64::MAX, wanted)));
        }
        if !self.jobs.is_empty() {
            self.busy = now;
        }
    }
}

/// Counts a run by a fast and a slow worker of so many threads; how long before the end each had nothing left to do, and
/// how much each has done.
fn finish(threads: [u32; 2], says: bool) -> [(Millis, usize); 2] {
    // No job is leased twice.
    let policy = Policy { second_lease_ms: Millis::MAX, ..Policy::default() };
    let mut dispatch = Dispatch::new(policy, &[0; 32]);
    let plan = Plan::new(BoardSize::new(20).expect("a board"), PlanKind::Border);
    let settings = RunSettings { id: RunId::from_random(7), plan, seed: 1, priority: 0, replicate_ppm: 0 };
    dispatch.add_run(Run::planned(&settings, &vec![JOB; JOBS]));
    let mut workers = [
        CountingWorker::new(&mut dispatch, 1, FAST, threads[0], says),
        CountingWorker::new(&mut dispatch, 2, FAST / 100, threads[1], says),
    ];
    let mut now = 0;
    while !dispatch.run(settings.id).expect("added").is_counted() {
        now += STEP_MS;
        for worker in &mut workers {
            worker.step(now, &mut dispatch);
        }
    }
    workers.map(|worker| (now - worker.busy, worker.done))
}

#[test]
fn a_worker_a_hundred_times_as_fast_as_another_is_busy_to_the_end_like_that() {
    // However many threads each has: the slow one may be the one that has more of them.
    for threads in [[1, 1], [1, 64], [64, 1]] {
        for says in [true, false] {
            let [(fast_idle, fast), (slow_idle, slow)] = finish(threads, says);
            // Of 50 seconds; a job takes the slow one a quarter of a second.
            assert!(
                fast_idle <= 500 && slow_idle <= 500,
                "threads {threads:?}, {says}: idle for {fast_idle} ms and {slow_idle} ms before the end"
            );
            assert_eq!(fast + slow, JOBS);
            assert!(
                (150..250).contains(&slow),
                "threads {threads:?}, {says}: the slow one has counted {slow}"
            );
        }
    }
}
