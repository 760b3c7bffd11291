//! Who has seen everything, and holds the coordinator to it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use nqueens_kernel::counts::{Counts, Totals};
use nqueens_model::id::{JobId, LeaseToken};
use nqueens_model::operator::RunState;

use super::life::{Answer, Request};
use super::store::Store;
use super::worker::{Worker, truth};
use crate::dispatch::{Dispatch, JobState};

#[derive(Debug, Default)]
pub(super) struct Witness {
    /// What somebody was told is safe.
    safe: BTreeMap<JobId, Counts>,
    /// Every lease that ever went out, and the process that got it.
    issued: HashMap<LeaseToken, u64>,
}

impl Witness {
    /// A transaction has reached the disk: operators' doubts take back what was safe.
    pub(super) fn stored(&mut self, store: &Store, voided: &BTreeSet<JobId>) {
        for job in voided {
            if store.job(*job).is_none_or(|row| row.accepted.is_none()) {
                self.safe.remove(job);
            }
        }
    }

    /// The database was replaced by an older copy: what is not in that is not safe any more, and no fault of anybody.
    pub(super) fn restored(&mut self, store: &Store) {
        self.safe.retain(|job, counts| {
            store.job(*job).and_then(|row| row.accepted).is_some_and(|one| one.counts == *counts)
        });
    }

    /// A process is told something.
    pub(super) fn told(
        &mut self,
        store: &Store,
        instance: u64,
        answer: &Answer,
        voided: &BTreeSet<JobId>,
        request: &Request,
    ) {
        let (Answer::Synced { acks, leases, .. }, Request::Sync { sync, .. }) = (answer, request) else {
            return;
        };
        for (ack, result) in acks.iter().zip(&sync.results) {
            let job = ack.token.job;
            if !Worker::is_safe(ack.verdict) || voided.contains(&job) {
                continue;
            }
            let stored = store.job(job).and_then(|row| row.accepted);
            assert_eq!(stored.map(|one| one.counts), Some(result.counts), "job {job} is acknowledged");
            self.safe.insert(job, result.counts);
        }
        for lease in leases {
            let holder = *self.issued.entry(lease.token).or_insert(instance);
            assert_eq!(holder, instance, "a lease of job {} goes to two processes", lease.token.job);
        }
    }

    /// Looks at everything, between two transactions.
    pub(super) fn look(&self, store: &Store, dispatch: &Dispatch) {
        for (job, counts) in &self.safe {
            let stored = store.job(*job).and_then(|row| row.accepted);
            assert_eq!(stored.map(|one| one.counts), Some(*counts), "job {job} was acknowledged");
        }
        let (mut found, mut done, mut leased) = (BTreeMap::new(), BTreeMap::new(), 0);
        for (job, row) in store.jobs() {
            let slot = dispatch.run(job.run).expect("every run is known").slot(job.number);
            assert_eq!(slot, row.slot, "job {job} is stored as it is");
            let stands = row.accepted.filter(|_| slot.state == JobState::Done);
            assert_eq!(stands.is_some(), slot.state == JobState::Done, "job {job} and its result");
            assert!(
                row.accepted.is_none() || matches!(slot.state, JobState::Done | JobState::Quarantined),
                "job {job}"
            );
            if let Some(one) = stands {
                let sum: &mut Totals = found.entry(job.run).or_default();
                *sum = sum.checked_add(one.counts).expect("small");
                *done.entry(job.run).or_insert(0) += 1;
            }
            let leases = dispatch.leases.get(&job).map_or(&[][..], Vec::as_slice);
            assert_eq!(
                !leases.is_empty(),
                slot.state == JobState::Leased,
                "job {job} is {slot:?} with {leases:?}"
            );
            assert!(leases.len() <= 2, "job {job} has {} leases", leases.len());
            assert!(leases.len() < 2 || leases[0].worker != leases[1].worker, "job {job}");
            for lease in leases {
                let holder = dispatch.worker(lease.worker).expect("holders are known");
                assert!(holder.jobs.contains(&job), "job {job} is its holder's");
                assert!(lease.epoch.get() <= slot.epoch, "job {job}");
            }
            leased += leases.len();
        }
        let held: usize = dispatch.workers().map(|(_, worker)| worker.leases()).sum();
        assert_eq!(held, leased, "every lease is somebody's");
        for run in dispatch.runs() {
            let sums = run.sums();
            let expected = found.get(&run.id()).copied().unwrap_or_default();
            assert_eq!(
                (sums.accepted.found, sums.done),
                (expected, done.get(&run.id()).copied().unwrap_or(0))
            );
        }
    }

    /// When all is over: every job of a run that is done has its one result, the right one.
    pub(super) fn conclude(store: &Store) {
        for run in store.runs().filter(|run| run.state == RunState::Done) {
            for number in 0..run.jobs {
                let job = JobId { run: run.settings.id, number };
                let one =
                    store.job(job).and_then(|row| row.accepted).expect("a done run has all its results");
                assert_eq!(one.counts, truth(job), "job {job}");
            }
        }
    }

    /// What is not done, for people.
    pub(super) fn open(store: &Store) -> String {
        let runs: Vec<_> = store.runs().map(|run| (run.settings.id, run.state, run.jobs)).collect();
        let jobs: Vec<_> = store.jobs().filter(|(_, row)| row.slot.state != JobState::Done).collect();
        format!("runs {runs:?}, jobs {:?}, {} of them", jobs.first(), jobs.len())
    }
}
