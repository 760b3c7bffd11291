//! Who is there to count, as of a moment ago: to look at ten thousand workers for every lease would cost more than all else.

use std::collections::{BTreeMap, BTreeSet};

use nqueens_model::credential::Credential;
use nqueens_model::id::WorkerId;

use super::{Dispatch, Millis, Worker};

/// A look holds for so long, unless a worker comes or goes at somebody's word, or its speed gets known.
const FRESH_MS: Millis = 1_000;

/// Credentials remembered: one of them at least is another than that of a result.
const CREDENTIALS: usize = 2;

/// A credential is remembered for this many times the duration of a lease: else who can slow its workers down for a moment could
/// check results of its own credential in that moment. What nobody checks meanwhile is the coordinator's.
const REMEMBERED_LEASES: Millis = 10;

#[derive(Debug)]
pub(super) struct WorkerSummary {
    looked: Millis,
    /// The speed of each that was heard of in the time of a lease, and the sum.
    speeds: BTreeMap<WorkerId, u64>,
    speed: u128,
    /// What is taken for the speed of a thread where nothing is known of it: the mean of the others.
    pub(super) speed_of_thread: u64,
    /// Some credentials of those and of others that could count lately.
    credentials: BTreeSet<Credential>,
}

impl Dispatch {
    /// The summary, looked at again if the last look is too old.
    pub(super) fn worker_summary(&mut self, now: Millis) -> &WorkerSummary {
        let is_fresh = |worker_summary: &WorkerSummary| now.saturating_sub(worker_summary.looked) < FRESH_MS;
        let worker_summary =
            self.worker_summary.take().filter(is_fresh).unwrap_or_else(|| self.look_around(now));
        self.worker_summary.insert(worker_summary)
    }

    fn look_around(&self, now: Millis) -> WorkerSummary {
        let heard = || self.workers.iter().filter(|(_, worker)| self.is_heard(now, worker));
        let known = heard().filter_map(|(_, worker)| Some((worker.speed()?, worker.threads)));
        let (speed, threads) = known.fold((0_u128, 0_u128), |(speeds, threads), (speed, of)| {
            (speeds + u128::from(speed), threads + u128::from(of))
        });
        let mean = u64::try_from(speed / threads.max(1)).unwrap_or(u64::MAX).max(1);
        let speeds: BTreeMap<_, _> = heard().map(|(id, worker)| (*id, worker.speed_or(mean))).collect();
        let speed = speeds.values().copied().map(u128::from).sum();
        let mut credentials = BTreeSet::new();
        let lately = self.policy.lease_ms.saturating_mul(REMEMBERED_LEASES);
        for worker in self.workers.values() {
            let credential = &worker.machine.credential;
            if credentials.len() == CREDENTIALS {
                break;
            }
            if !credentials.contains(credential) && self.may_count_within(now, worker, lately) {
                credentials.insert(credential.clone());
            }
        }
        WorkerSummary { looked: now, speeds, speed, speed_of_thread: mean, credentials }
    }

    /// A worker's part of the speed of all that were heard of in the time of a lease; `None` if it is alone.
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    pub(super) fn part_of_speed(&mut self, now: Millis, id: WorkerId) -> Option<f64> {
        let worker_summary = self.worker_summary(now);
        let others = worker_summary.speed - u128::from(worker_summary.speeds.get(&id).copied().unwrap_or(0));
        let mean = worker_summary.speed_of_thread;
        let own = self.workers[&id].speed_or(mean) as f64;
        (others > 0).then(|| own / (own + others as f64))
    }

    fn is_heard(&self, now: Millis, worker: &Worker) -> bool {
        !worker.left && worker.seen.is_some_and(|seen| now.saturating_sub(seen) <= self.policy.lease_ms)
    }
}

impl WorkerSummary {
    pub(super) fn has_other_credential(&self, credential: &Credential) -> bool {
        self.credentials.iter().any(|other| other != credential)
    }
}
