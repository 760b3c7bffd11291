//! One life of the coordinator: requests wait while a transaction is on its way to the disk, the next takes them all, and
//! each is answered after its commit. The scheduler is the one that ships; the order of steps is that of the coordinator's
//! `writer`, with the [`Ledger`] in memory.

use std::collections::{BTreeSet, VecDeque};

use nqueens_kernel::random::Random;
use nqueens_model::id::{Incarnation, JobId, RunId};
use nqueens_scheduler::request::Sync;
use nqueens_scheduler::{Basis, Change, Dispatch, Millis, Needs, Policy, Run, Scheduler, Task};

use crate::ask::{Answer, Ask, Asker, Failure};
use crate::invariants::{Before, Invariants};
use crate::ledger::Ledger;
use crate::worker::Caller;

const GROUP_MAX: usize = 256;

/// A transaction on its way to the disk, with the answers that wait for it.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) answers: Vec<(Ask, Asker, Result<Answer, Failure>)>,
    /// Jobs whose results were voided in it.
    pub(crate) voided: BTreeSet<JobId>,
}

#[derive(Debug)]
pub(crate) struct Coordinator {
    pub(crate) life: u64,
    pub(crate) scheduler: Scheduler,
    policy: Policy,
    started: Millis,
    /// How far its clock has leapt ahead of the world's.
    pub(crate) leapt: Millis,
    pub(crate) queue: VecDeque<(Ask, Asker)>,
    pub(crate) committing: Option<Group>,
    /// From the beginning of a transaction until all in it are answered.
    pub(crate) is_busy: bool,
    concluding: BTreeSet<RunId>,
    /// Syncs of workers with nothing to do, which wait for work; each with the checks that waited before.
    pub(crate) parked: Vec<(Sync, Caller, usize)>,
}

impl Coordinator {
    pub(crate) fn begin(
        life: u64,
        random: &mut Random,
        policy: Policy,
        now: Millis,
        ledger: &mut Ledger,
    ) -> Self {
        ledger.begin(Incarnation::from_random(random.bits()), random);
        let scheduler = ledger.restore(Dispatch::new(policy, ledger.key()), None, 0);
        let (queue, committing) = (VecDeque::new(), None);
        let (concluding, parked) = (BTreeSet::new(), Vec::new());
        Self {
            life,
            scheduler,
            policy,
            started: now,
            leapt: 0,
            queue,
            committing,
            is_busy: false,
            concluding,
            parked,
        }
    }

    pub(crate) fn task(&self, now: Millis) -> Option<Task> {
        self.scheduler.dispatch().task(self.clock(now))
    }

    fn clock(&self, now: Millis) -> Millis {
        now - self.started + self.leapt
    }

    /// Loads, applies and persists all that waits; the commit is on its way.
    pub(crate) fn transact(&mut self, now: Millis, ledger: &mut Ledger, invariants: &mut Invariants) {
        assert!(!self.is_busy, "one transaction at a time");
        self.is_busy = true;
        let now = self.clock(now);
        let waiting = self.queue.len().min(GROUP_MAX);
        let group: Vec<_> = self.queue.drain(..waiting).collect();
        let mut needs = Needs::default();
        for (ask, _) in &group {
            ask.needs(&mut needs);
        }
        let mut transaction = self.scheduler.begin(now, ledger.load(&needs));
        invariants.begin(now, self.life);
        let mut answers = Vec::with_capacity(group.len());
        for (ask, asker) in group {
            let before = Before::of(transaction.dispatch(), &ask);
            let answer = ask.clone().apply(&mut transaction).map_err(Failure::Refused);
            invariants.after(ledger, transaction.dispatch(), &ask, before, &answer);
            answers.push((ask, asker, answer));
        }
        let mut changes = transaction.settle();
        ledger.persist(&changes);
        let outcasts = transaction.take_outcasts();
        for outcast in &outcasts {
            let in_doubt = ledger.in_doubt(&outcast.machine);
            transaction.doubt(outcast, in_doubt);
        }
        let more = transaction.take_changes();
        ledger.persist(&more);
        changes.extend(more);
        invariants.persisted(ledger, self.scheduler.dispatch(), &changes, &outcasts);
        let voided = changes.iter().filter_map(|change| match change {
            Change::Voided(jobs) => Some(jobs),
            _ => None,
        });
        let voided = voided.flatten().copied().collect();
        self.committing = Some(Group { answers, voided });
    }

    /// A transaction failed: the state is read again, and everyone in it gets the error.
    pub(crate) fn recover(&mut self, now: Millis, ledger: &Ledger, invariants: &mut Invariants) -> Group {
        invariants.reread(self.clock(now));
        let dispatch = Dispatch::new(self.policy, ledger.key());
        let dispatch = dispatch.in_place_of(self.clock(now), self.scheduler.dispatch());
        self.scheduler = ledger.restore(dispatch, self.scheduler.room(), self.clock(now));
        let mut group = self.committing.take().expect("it was on its way");
        group.answers.iter_mut().for_each(|(.., answer)| *answer = Err(Failure::Unavailable));
        group
    }

    /// Runs to be added up now, each with what its total is made of.
    pub(crate) fn conclude(&mut self, now: Millis) -> Vec<(RunId, Basis)> {
        let (now, dispatch) = (self.clock(now), self.scheduler.dispatch());
        let complete = dispatch.runs().filter(|run| run.state().is_open() && dispatch.is_over(now, run));
        let complete: Vec<_> = complete.map(|run| (run.id(), run.basis())).collect();
        self.concluding.retain(|run| complete.iter().any(|(complete, _)| complete == run));
        let new = complete.into_iter().filter(|(run, _)| self.concluding.insert(*run));
        new.collect()
    }

    /// Adding up a run was in vain: it is tried again.
    pub(crate) fn conclude_again(&mut self, run: RunId) {
        self.concluding.remove(&run);
    }

    /// Workers that were kept waiting for work, and for which there may be some now.
    pub(crate) fn unpark(&mut self) -> Vec<(Sync, Caller)> {
        let dispatch = self.scheduler.dispatch();
        let is_short = self.scheduler.room().is_some_and(|room| room.is_short);
        let has_ready = !is_short && dispatch.runs().any(|run: &Run| run.estimate_ready() > 0);
        let checks = dispatch.checks_waiting();
        let ready = self.parked.extract_if(.., |(.., before)| has_ready || checks > *before);
        ready.map(|(sync, caller, _)| (sync, caller)).collect()
    }
}
