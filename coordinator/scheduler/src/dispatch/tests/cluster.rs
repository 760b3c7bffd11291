//! Workers under several credentials, and a coordinator that recounts.

use std::num::NonZeroU32;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::Counts;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_model::message::{ReturnedLease, Verdict, Wanted};

use super::super::*;
use super::registration;
use super::world::{result, truth};

pub(super) const JOBS: usize = 100;

/// A run of a board whose count nobody has published, and a coordinator that counts itself.
pub(super) struct Cluster {
    pub(super) dispatch: Dispatch,
    pub(super) run: RunId,
    pub(super) accepted: BTreeMap<JobId, Accepted>,
    /// Second counts that were kept, of the results that stand.
    seconds: BTreeMap<JobId, Vec<(WorkerId, Counts)>>,
    workers: u64,
    pub(super) now: Millis,
}

impl Cluster {
    pub(super) fn new(replicate_ppm: u32, arbiter: bool) -> Self {
        Self::of_board(30, replicate_ppm, arbiter, 1)
    }

    pub(super) fn of_board(n: u32, replicate_ppm: u32, arbiter: bool, key: u64) -> Self {
        let policy = Policy { arbiter, recounts_min: 30, ..Policy::default() };
        let mut dispatch =
            Dispatch::new(policy, &[key.to_le_bytes(); 4].concat().try_into().expect("32 bytes"));
        let plan = Plan::with_states_per_job(BoardSize::new(n).expect("a board"), PlanKind::Border, 1);
        let run = RunId::from_random(7);
        let settings = RunSettings { id: run, plan, seed: 1, priority: 0, replicate_ppm };
        dispatch.add_run(Run::planned(&settings, &[1; JOBS]));
        let (accepted, seconds) = (BTreeMap::new(), BTreeMap::new());
        Self { dispatch, run, accepted, seconds, workers: 0, now: 0 }
    }

    /// Another worker, under a new name.
    pub(super) fn worker(&mut self, credential: &str) -> WorkerId {
        self.workers += 1;
        let id = WorkerId::new(self.workers).expect("a name");
        let credential = Credential::stored(credential).expect("a name");
        self.dispatch.add_worker(id, &registration(&format!("m{id}"), "reference", 1), credential);
        self.dispatch.heartbeat(self.now, id, &[]);
        id
    }

    pub(super) fn take(&mut self, worker: WorkerId, jobs: usize) -> Vec<LeaseToken> {
        self.dispatch.grant(self.now, worker, Wanted::new(u64::MAX, jobs))
    }

    pub(super) fn report(&mut self, worker: WorkerId, token: LeaseToken, counts: Counts) -> Verdict {
        let result = result(token, counts);
        let before = self.accepted.get(&token.job).copied();
        let judged = self.dispatch.report(self.now, worker, &result, before.as_ref(), true);
        if judged.keep {
            match judged.verdict {
                Verdict::Accepted => drop(self.accepted.insert(token.job, Accepted::new(worker, &result))),
                _ => self.seconds.entry(token.job).or_default().push((worker, counts)),
            }
        }
        judged.verdict
    }

    pub(super) fn recounts_wait_ms(&self) -> Millis {
        self.dispatch.recounts_wait_ms(&self.dispatch.runs[&self.run])
    }

    /// Fails so many jobs as often as workers may.
    pub(super) fn fail(&mut self, worker: WorkerId, jobs: usize) {
        for _ in 0..self.dispatch.policy.failures_max {
            for token in self.take(worker, jobs) {
                let failure = Some("no".to_owned());
                self.dispatch.give_back(worker, &ReturnedLease { token, failure });
            }
        }
    }

    /// Counts what it can get, right or not.
    pub(super) fn count(&mut self, worker: WorkerId, lies: bool) {
        loop {
            let tokens = self.take(worker, 10);
            if tokens.is_empty() {
                return;
            }
            for token in tokens {
                self.report(worker, token, counted(token.job, lies));
            }
        }
    }

    /// The coordinator counts one thing that it has to; false if there is none.
    pub(super) fn recount(&mut self) -> bool {
        let Some(Task { job, why }) = self.dispatch.task(self.now) else { return false };
        let Some(accepted) = self.accepted.get(&job).copied() else {
            assert_eq!(why, Why::Failing);
            let token = LeaseToken { job, epoch: NonZeroU32::MIN, ticket: 0 };
            let own = Accepted::new(self.worker(Credential::OWN), &result(token, truth(job.number)));
            self.dispatch.accept_own(job, &own);
            self.accepted.insert(job, own);
            return true;
        };
        let seconds = self.seconds.remove(&job).unwrap_or_default();
        let (counts, said) = (truth(job.number), accepted.counts);
        let drawn = matches!(why, Why::Drawn(_));
        let finding = Finding { whole: true, drawn, counts, said, seconds: &seconds };
        if self.dispatch.decide(job, &accepted, &finding) {
            let worker = self.worker(Credential::OWN);
            let own = Accepted { worker, counts, ..accepted };
            self.dispatch.replace(job, &own);
            self.accepted.insert(job, own);
        }
        for Outcast { machine, .. } in std::mem::take(&mut self.dispatch.outcasts) {
            let covered = |dispatch: &Dispatch, worker| machine.covers(&dispatch.machine(worker));
            let slot = |job: &JobId| self.dispatch.run(self.run).expect("added").slot(job.number);
            let counted = self.accepted.iter().filter(|(job, accepted)| {
                covered(&self.dispatch, accepted.worker) && !slot(job).confirmed && !slot(job).is_recounted()
            });
            let confirmed = self.seconds.iter().filter(|(job, seconds)| {
                slot(job).confirmed && seconds.iter().any(|(by, _)| covered(&self.dispatch, *by))
            });
            let in_doubt = InDoubt {
                counted: counted.map(|(job, accepted)| (*job, *accepted)).collect(),
                confirmed: confirmed.map(|(job, _)| (*job, self.accepted[job])).collect(),
            };
            for job in self.dispatch.doubt(&machine, in_doubt) {
                self.accepted.remove(&job);
                self.seconds.remove(&job);
            }
        }
        true
    }

    pub(super) fn is_out(&self, worker: WorkerId) -> bool {
        self.dispatch.distrusts(&self.dispatch.machine(worker)).is_some()
    }

    pub(super) fn sums(&self) -> Sums {
        *self.dispatch.run(self.run).expect("added").sums()
    }

    pub(super) fn wrong(&self) -> usize {
        self.accepted.iter().filter(|(job, accepted)| accepted.counts != truth(job.number)).count()
    }
}

pub(super) fn counted(job: JobId, lies: bool) -> Counts {
    let truth = truth(job.number);
    Counts { count8: truth.count8 + u64::from(lies), ..truth }
}
