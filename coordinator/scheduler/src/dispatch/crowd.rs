//! Who is there to count, as of a moment ago: to look at ten thousand workers for every lease would cost more than all else.

use std::collections::BTreeMap;

use nqueens_kernel::engine::Kernel;
use nqueens_model::id::WorkerId;

use super::checks::Check;
use super::{Dispatch, Machine, Millis, Worker};

/// A look holds for so long, unless a worker comes or goes at somebody's word.
const FRESH_MS: Millis = 1_000;

/// Machines remembered of each engine: one that has not counted a job is among them, for one at most has.
const MACHINES: usize = 2;

/// What a look at all workers found.
#[derive(Debug)]
pub(super) struct Crowd {
    looked: Millis,
    /// Counting threads of those that were heard of in the time of a lease.
    threads: u128,
    /// Of those that may count: some machines of each engine.
    machines: BTreeMap<Kernel, Vec<Machine>>,
}

impl Dispatch {
    /// The crowd, looked at again if the last look is too old.
    pub(super) fn crowd(&mut self, now: Millis) -> &Crowd {
        let is_fresh = |crowd: &Crowd| now.saturating_sub(crowd.looked) < FRESH_MS;
        let crowd = self.crowd.take().filter(is_fresh).unwrap_or_else(|| self.look_around(now));
        self.crowd.insert(crowd)
    }

    fn look_around(&self, now: Millis) -> Crowd {
        let mut crowd = Crowd { looked: now, threads: 0, machines: BTreeMap::new() };
        for worker in self.workers.values() {
            if self.is_heard(now, worker) {
                crowd.threads += u128::from(worker.threads);
            }
            let known = crowd.machines.entry(worker.kernel).or_default();
            if known.len() < MACHINES && !known.contains(&worker.machine) && self.may_count(now, worker) {
                known.push(Machine::clone(&worker.machine));
            }
        }
        crowd
    }

    /// Counting threads of a worker and of all others that were heard of in the time of a lease.
    pub(super) fn threads_with(&mut self, now: Millis, worker: WorkerId) -> u128 {
        let worker = &self.workers[&worker];
        let own = if self.is_heard(now, worker) { 0 } else { u128::from(worker.threads) };
        self.crowd(now).threads + own
    }

    fn is_heard(&self, now: Millis, worker: &Worker) -> bool {
        worker.seen.is_some_and(|seen| now.saturating_sub(seen) <= self.policy.lease_ms)
    }
}

impl Crowd {
    /// Whether somebody could make a check by another engine than the first count's.
    pub(super) fn has_other_engine(&self, check: &Check) -> bool {
        let first = check.opinions[0].kernel;
        let others = self.machines.iter().filter(|(kernel, _)| **kernel != first);
        others.flat_map(|(_, machines)| machines).any(|machine| check.is_new_to(machine))
    }
}
