//! One life of the coordinator: requests wait while a transaction is on its way to the disk, the next takes them all,
//! and each is answered after its commit. Step by step what `writer` does, with the simulated [`Store`].

use std::collections::{BTreeSet, HashMap, VecDeque};

use nqueens_kernel::counts::Counts;
use nqueens_model::id::{Incarnation, JobId, LeaseToken, RunId, WorkerId};
use nqueens_model::message::{JobResult, ResultAck, ReturnedLease, SyncRequest, Verdict};
use nqueens_model::operator::RunState;

use super::store::{RunRow, Store, accepted, machine};
use crate::dispatch::tests::registration;
use crate::dispatch::{Accepted, Dispatch, JobState, Judgement, Millis, Policy, Run};

/// Requests in one transaction.
const GROUP_MAX: usize = 256;

/// What the coordinator can be asked, by workers, by operators, and by its own chores.
#[derive(Clone, Debug)]
pub(super) enum Request {
    Register { instance: u64, threads: u32 },
    Sync { instance: u64, sync: SyncRequest },
    Submit { row: RunRow, jobs: Vec<(u64, Counts)> },
    SetRunState(RunId, RunState),
    Retry(RunId),
    Drain(WorkerId),
    Finish(RunId),
    Expire,
}

/// A lease as it goes out: what a worker learns of its job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leased {
    pub(super) token: LeaseToken,
    pub(super) estimate: u64,
}

#[derive(Clone, Debug)]
pub(super) enum Answer {
    Registered(WorkerId),
    Synced {
        acks: Vec<ResultAck>,
        leases: Vec<Leased>,
        revoked: Vec<LeaseToken>,
        drain: bool,
    },
    Unregistered,
    /// The transaction failed.
    Unavailable,
    /// To a request that is no call.
    Done,
}

/// Who waits for an answer: a worker's place, its process, and the number of its call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller {
    pub(super) place: usize,
    pub(super) instance: u64,
    pub(super) call: u64,
}

/// A transaction on its way to the disk, with the answers that wait for it.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) answers: Vec<(Request, Option<Caller>, Answer)>,
    /// Jobs whose results were voided in it.
    pub(super) voided: BTreeSet<JobId>,
}

#[derive(Debug)]
pub(super) struct Life {
    pub(super) number: u64,
    pub(super) dispatch: Dispatch,
    policy: Policy,
    incarnation: Incarnation,
    started: Millis,
    /// How far its clock has leapt ahead of the world's.
    pub(super) leapt: Millis,
    pub(super) queue: VecDeque<(Request, Option<Caller>)>,
    pub(super) committing: Option<Group>,
}

impl Life {
    pub(super) fn begin(number: u64, bits: u64, policy: Policy, now: Millis, store: &Store) -> Self {
        let incarnation = Incarnation::from_random(bits);
        let dispatch = store.load(policy, incarnation, 0);
        let (queue, committing) = (VecDeque::new(), None);
        Self { number, dispatch, policy, incarnation, started: now, leapt: 0, queue, committing }
    }

    fn clock(&self, now: Millis) -> Millis {
        now - self.started + self.leapt
    }

    /// Begins a transaction with all that waits.
    pub(super) fn transact(&mut self, now: Millis, store: &mut Store) {
        assert!(self.committing.is_none(), "one transaction at a time");
        let clock = self.clock(now);
        let (results, accepted) = (Vec::new(), HashMap::new());
        let dispatch = &mut self.dispatch;
        let voided = BTreeSet::new();
        let mut writing = Writing { store, dispatch, now: clock, results, accepted, voided };
        let mut answers = Vec::new();
        let waiting = self.queue.len().min(GROUP_MAX);
        for (request, caller) in self.queue.drain(..waiting) {
            let answer = writing.handle(&request);
            answers.push((request, caller, answer));
        }
        writing.store();
        let voided = writing.voided;
        self.committing = Some(Group { answers, voided });
    }

    /// A transaction failed: the state is read again, and everyone in it gets the error.
    pub(super) fn recover(&mut self, now: Millis, store: &Store) -> Group {
        self.dispatch = store.load(self.policy, self.incarnation, self.clock(now));
        let group = self.committing.take().expect("it was on its way");
        let answers = group.answers.into_iter();
        let answers = answers.map(|(request, caller, _)| (request, caller, Answer::Unavailable)).collect();
        Group { answers, ..group }
    }

    /// Runs whose jobs are all done, and that have no total yet.
    pub(super) fn complete(&self) -> Vec<RunId> {
        let waits =
            |run: &&Run| matches!(run.state(), RunState::Active | RunState::Paused) && run.is_complete();
        self.dispatch.runs().filter(waits).map(Run::id).collect()
    }
}

/// Everything that one transaction does.
struct Writing<'a> {
    store: &'a mut Store,
    dispatch: &'a mut Dispatch,
    now: Millis,
    results: Vec<(WorkerId, JobResult, Verdict)>,
    accepted: HashMap<JobId, Accepted>,
    voided: BTreeSet<JobId>,
}

impl Writing<'_> {
    fn handle(&mut self, request: &Request) -> Answer {
        match request {
            Request::Sync { instance, sync } => return self.sync(*instance, sync),
            Request::Register { instance, threads } => {
                let id = self.store.upsert_worker(*instance, *threads);
                self.dispatch.add_worker(id, &registration(&machine(id), "scalar", *threads));
                return Answer::Registered(id);
            }
            Request::Submit { row, jobs } => {
                self.store.insert_run(row, jobs);
                let estimates: Vec<_> = jobs.iter().map(|(estimate, _)| *estimate).collect();
                self.dispatch.add_run(Run::planned(&row.settings, &estimates));
            }
            Request::SetRunState(id, state) => {
                let from = self.dispatch.run(*id).map(Run::state);
                let open = matches!(from, Some(RunState::Active | RunState::Paused));
                if open && from != Some(*state) {
                    self.store.update_run_state(*id, *state);
                    self.dispatch.set_run_state(*id, *state);
                }
            }
            Request::Retry(id) => {
                let jobs = self.dispatch.retry_quarantined(*id);
                self.store_results();
                self.store.void_results(&jobs);
                self.accepted.retain(|job, _| !jobs.contains(job));
                self.voided.extend(jobs);
            }
            Request::Drain(worker) => drop(self.dispatch.set_draining(*worker)),
            Request::Finish(id) => {
                let Some(run) = self.dispatch.run_mut(*id) else { return Answer::Done };
                if run.is_complete() && matches!(run.state(), RunState::Active | RunState::Paused) {
                    run.set_state(RunState::Done);
                    self.store.update_run_state(*id, RunState::Done);
                }
            }
            Request::Expire => drop(self.dispatch.expire(self.now)),
        }
        Answer::Done
    }

    fn sync(&mut self, instance: u64, sync: &SyncRequest) -> Answer {
        // Its name may be another's by now, where the database was restored from a backup.
        let own = self.store.instance(sync.worker) == Some(instance);
        let known = self.dispatch.worker(sync.worker).filter(|_| own);
        let Some(drain) = known.map(|worker| worker.draining) else { return Answer::Unregistered };
        let acks = sync.results.iter().map(|result| self.report(sync.worker, result)).collect();
        for returned in &sync.returned {
            self.give_back(sync.worker, returned);
        }
        let held = self.dispatch.heartbeat(self.now, sync.worker, &sync.held);
        let mut tokens = held.lost;
        let lost = tokens.iter().map(|token| self.dispatch.estimate(token.job)).sum();
        let states = sync.wanted_states.saturating_sub(lost);
        let jobs = sync.wanted_jobs.saturating_sub(tokens.len());
        let granted = self.dispatch.grant(self.now, sync.worker, states, jobs);
        assert!(granted.len() <= jobs, "no more than it asked for");
        for token in &granted {
            self.check_grant(sync, token);
        }
        tokens.extend(granted);
        let leased = |token: LeaseToken| Leased { token, estimate: self.dispatch.estimate(token.job) };
        Answer::Synced {
            acks,
            leases: tokens.into_iter().map(leased).collect(),
            revoked: held.revoked,
            drain,
        }
    }

    /// A lease is given out for an open job alone, to a worker that has none on it, under a number of its own.
    fn check_grant(&self, sync: &SyncRequest, token: &LeaseToken) {
        let job = token.job;
        let done = self.store.job(job).is_none_or(|row| row.accepted.is_some());
        assert!(!done && !self.accepted.contains_key(&job), "job {job} is done and leased");
        let (_, slot, lease) = self.dispatch.changed(job);
        assert_eq!((slot.state, slot.epoch), (JobState::Leased, token.epoch.get()), "job {job}");
        assert_eq!(lease, Some((sync.worker, token.incarnation)), "job {job}");
        let held = sync.held.iter().any(|held| held.token.job == job);
        let renewed =
            || self.dispatch.leases[&job].iter().filter(|lease| lease.worker == sync.worker).count();
        assert!(!held || renewed() == 1, "job {job} is leased to a worker twice");
        assert_eq!(self.dispatch.run(job.run).map(Run::state), Some(RunState::Active), "job {job}");
    }

    fn give_back(&mut self, worker: WorkerId, returned: &ReturnedLease) {
        let job = returned.token.job;
        let known = self.dispatch.run(job.run).is_some_and(|run| run.contains(job.number));
        let before = known.then(|| self.dispatch.changed(job));
        self.dispatch.give_back(worker, returned);
        // Another's word, or one on another lease, changes nothing about the latest.
        if let Some((_, slot, Some(holder))) = before
            && (slot.epoch, holder) != (returned.token.epoch.get(), (worker, returned.token.incarnation))
            && self.dispatch.leases.get(&job).is_none_or(Vec::is_empty)
        {
            panic!("a token of an earlier lease ended the latest of job {job}");
        }
    }

    fn report(&mut self, worker: WorkerId, result: &JobResult) -> ResultAck {
        let LeaseToken { job, .. } = result.token;
        let row = self.store.job(job);
        let accepted_before = self.accepted.get(&job).copied().or_else(|| row.and_then(|row| row.accepted));
        let plausible = row.is_some_and(|row| result.counts.within(row.counts_max));
        let run = job.run;
        let had_total = self.has_total(run);
        let Judgement { verdict, keep, supersedes, reason } =
            self.dispatch.report(worker, result, accepted_before.as_ref(), plausible);
        assert!(!supersedes, "nothing is counted a second time here");
        if had_total && !self.has_total(run) {
            self.store.update_run_state(run, RunState::Active);
        }
        match (accepted_before, verdict) {
            (None, Verdict::Accepted) => {
                assert!(keep && plausible, "what stands for a job is kept");
                self.accepted.insert(job, accepted(worker, result));
            }
            (Some(before), Verdict::Accepted) => assert!(!keep && before.counts == result.counts),
            (Some(before), Verdict::Duplicate) => assert_eq!(before.counts, result.counts),
            (None, Verdict::Implausible) => assert!(!plausible),
            (None, Verdict::SetAside | Verdict::Unknown) | (Some(_), Verdict::Unknown) => {}
            (before, verdict) => panic!("{verdict:?} of job {job} with {before:?} before"),
        }
        if keep {
            self.results.push((worker, *result, verdict));
        }
        ResultAck { token: result.token, verdict, reason }
    }

    fn has_total(&self, run: RunId) -> bool {
        self.dispatch.run(run).is_some_and(|run| run.state() == RunState::Done)
    }

    fn store_results(&mut self) {
        self.store.insert_results(&std::mem::take(&mut self.results));
    }

    fn store(&mut self) {
        let dispatch = &mut *self.dispatch;
        let changed: Vec<_> = dispatch.take_dirty().into_iter().map(|job| dispatch.changed(job)).collect();
        self.store.update_jobs(&changed);
        self.store_results();
    }
}
