//! What travels between workers and coordinator, and what the coordinator makes of it.

use nqueens_kernel::random::Random;
use nqueens_model::id::RunId;
use nqueens_model::message::{Lease, SyncResponse};
use nqueens_scheduler::request::{Sync, Synced};
use nqueens_scheduler::{Basis, Machine};
use nqueens_worker_protocol::{CallError, ProtocolEvent};

use super::{Event, World};
use crate::ask::{Answer, Ask, Asker, Failure, secret};
use crate::coordinator::Group;
use crate::scenario::Fault;
use crate::worker::{Call, Caller, failure};

impl World {
    /// Sends a message on its way: how long it takes, and how many of it arrive.
    pub(super) fn deliver(&mut self, place: usize, make: impl Fn() -> Event) {
        if self.workers[place].cut_off > self.now || self.luck.strikes(Fault::Loss) {
            return;
        }
        let copies = 1 + u64::from(self.luck.strikes(Fault::Duplicate));
        for _ in 0..copies {
            let slow = if self.luck.strikes(Fault::Delay) { 1 << self.luck.random.below(18) } else { 0 };
            let delay = self.luck.random.number(1..=29) + slow;
            self.schedule(delay, make());
        }
    }

    /// A worker has acted: its calls leave, and it acts again when it has to.
    pub(super) fn acted(&mut self, place: usize, calls: Vec<(u64, Call)>) {
        let worker = &self.workers[place];
        let Some(process) = &worker.process else {
            let gone = self.luck.random.number(1..=59_999);
            self.schedule(gone, Event::Birth(place));
            return;
        };
        let instance = process.instance;
        let wake = worker.wake_at(self.now);
        if let Some(at) = wake.filter(|_| wake != worker.alarm) {
            self.workers[place].alarm = wake;
            self.schedule(at - self.now, Event::Alarm(place));
        }
        for (call, asked) in calls {
            let caller = Caller { place, instance, call };
            self.deliver(place, || Event::Arrive(caller, Box::new(asked.clone())));
        }
    }

    pub(super) fn tell_worker(&mut self, caller: Caller, told: ProtocolEvent) {
        let worker = &mut self.workers[caller.place];
        if worker.process.as_ref().is_some_and(|process| process.instance == caller.instance) {
            let calls = worker.hear(self.now, caller.call, told, &mut self.luck);
            self.acted(caller.place, calls);
        }
    }

    pub(super) fn arrive(&mut self, caller: Caller, call: Call) {
        if self.coordinator.is_none() {
            self.refuse(caller, CallError::Unavailable("connection refused".to_owned()));
            return;
        }
        let Machine { credential, .. } = self.workers[caller.place].engine.machine();
        let ask = match call {
            Call::Register(worker) => {
                let secret = secret(worker.instance);
                Ask::Register { worker, credential, secret }
            }
            Call::Sync(sync) => Ask::Sync(Sync { sync, credential }),
        };
        self.ask(ask, Asker::Worker(caller));
    }

    /// Somebody's word reaches the coordinator, if there is one.
    pub(super) fn ask(&mut self, ask: Ask, asker: Asker) {
        let Some(coordinator) = &mut self.coordinator else { return };
        coordinator.queue.push_back((ask, asker));
        if !coordinator.is_busy {
            self.transact();
        }
    }

    pub(super) fn transact(&mut self) {
        let coordinator = self.coordinator.as_mut().expect("who asks has asked somebody");
        coordinator.transact(self.now, &mut self.ledger, &mut self.invariants);
        let life = coordinator.life;
        let takes = if self.luck.random.permille(20) { 2_000 } else { self.commit_ms };
        let takes = self.luck.random.number(1..=takes - 1);
        self.schedule(takes, Event::Commit { life });
    }

    pub(super) fn commit(&mut self) {
        let fails = self.luck.strikes(Fault::Refusal);
        let is_stored = !fails || self.luck.random.permille(500);
        if is_stored {
            self.ledger.commit();
        } else {
            self.ledger.roll_back();
        }
        let coordinator = self.coordinator.as_mut().expect("it waits for this");
        let group = if fails {
            coordinator.recover(self.now, &self.ledger, &mut self.invariants)
        } else {
            coordinator.committing.take().expect("it was on its way")
        };
        if is_stored {
            self.invariants.stored(&self.ledger, &group.voided);
        }
        self.figures.transactions += 1;
        self.answer(group);
        if fails || self.figures.transactions.is_multiple_of(self.look_every) {
            self.look();
        }
        let coordinator = self.coordinator.as_mut().expect("it answers");
        let life = coordinator.life;
        let (complete, unparked) = (coordinator.conclude(self.now), coordinator.unpark());
        for (sync, caller) in unparked {
            coordinator.queue.push_back((Ask::Sync(sync), Asker::Parked(caller)));
        }
        for (run, basis) in complete {
            self.doubt(run);
            let takes = self.luck.random.number(1..=2_999);
            self.schedule(takes, Event::Conclude { life, run, basis });
        }
        let coordinator = self.coordinator.as_mut().expect("it answers");
        coordinator.is_busy = false;
        if !coordinator.queue.is_empty() {
            self.transact();
        }
    }

    /// Answers those who asked.
    pub(super) fn answer(&mut self, group: Group) {
        for (ask, asker, answer) in group.answers {
            match asker {
                Asker::Worker(caller) | Asker::Parked(caller) => match (answer, ask) {
                    (Ok(Answer::Registered(session)), _) => {
                        self.deliver(caller.place, || {
                            Event::Tell(caller, Box::new(ProtocolEvent::Registered(session)))
                        });
                    }
                    (Ok(Answer::Synced(Some(synced))), Ask::Sync(sync)) => {
                        self.invariants.told(
                            &self.ledger,
                            caller.instance,
                            &sync.sync,
                            &synced,
                            &group.voided,
                        );
                        self.answer_sync(caller, matches!(asker, Asker::Parked(_)), sync, synced);
                    }
                    (Ok(_), _) => self.refuse(caller, CallError::Unregistered),
                    (Err(Failure::Refused(refusal)), _) => {
                        self.refuse(caller, CallError::Refused(refusal.to_string()));
                    }
                    (Err(Failure::Unavailable), _) => {
                        self.refuse(caller, CallError::Unavailable("not stored".to_owned()));
                    }
                },
                Asker::Planner { submission, step } => self.planned(submission, step, answer.is_ok()),
                Asker::Concluder(run) => {
                    if matches!(answer, Ok(Answer::Finished(true))) {
                        self.ask_again(run);
                    } else {
                        self.coordinator.as_mut().expect("it answers").conclude_again(run);
                    }
                }
                Asker::Nobody => {}
            }
        }
    }

    /// As the coordinator's service does: a worker with nothing to do and nothing to say is kept waiting, once, and leases
    /// that an answer has no room for are taken back.
    pub(super) fn answer_sync(&mut self, caller: Caller, has_waited: bool, request: Sync, synced: Synced) {
        let sync = &request.sync;
        let Synced { acks, granted, revoked, drain } = synced;
        let coordinator = self.coordinator.as_mut().expect("it answers");
        let is_idle = sync.results.is_empty() && sync.held.is_empty() && sync.returned.is_empty();
        if is_idle && sync.wanted.jobs > 0 && granted.is_empty() && !drain && !has_waited {
            let checks = coordinator.scheduler.dispatch().checks_waiting();
            let life = coordinator.life;
            coordinator.parked.push((request, caller, checks));
            self.schedule(self.policy.beat_ms.into(), Event::Unpark { life, caller });
            return;
        }
        let mut tokens = granted.iter().map(|granted| granted.token);
        let mut room = granted.len();
        if room > 1 && self.luck.random.permille(5) {
            room = 1 + self.luck.random.index(room - 1);
            let tokens = tokens.by_ref().skip(room).collect();
            self.ask(Ask::GiveBack { worker: sync.session.worker, tokens }, Asker::Nobody);
        }
        let lease = |granted: &nqueens_scheduler::request::Granted| Lease {
            token: granted.token,
            job: self.job.clone(),
            states: granted.states,
            mirrored: granted.mirrored,
        };
        let leases = granted.iter().take(room).map(lease).collect();
        let response = SyncResponse { acks, leases, revoked, next_sync_ms: self.policy.beat_ms, drain };
        self.deliver(caller.place, || {
            Event::Tell(caller, Box::new(ProtocolEvent::Answered(response.clone())))
        });
    }

    pub(super) fn refuse(&mut self, caller: Caller, error: CallError) {
        let told = failure(error, &mut self.luck);
        self.deliver(caller.place, || Event::Tell(caller, Box::new(told.clone())));
    }

    pub(super) fn unpark(&mut self, caller: Caller) {
        let coordinator = self.coordinator.as_mut().expect("it is alive");
        let same = |other: &Caller| (other.instance, other.call) == (caller.instance, caller.call);
        let parked = coordinator.parked.iter().position(|(_, other, _)| same(other));
        if let Some(at) = parked {
            let (sync, caller, _) = coordinator.parked.remove(at);
            self.ask(Ask::Sync(sync), Asker::Parked(caller));
        }
    }

    pub(super) fn conclude(&mut self, run: RunId, basis: Basis) {
        let coordinator = self.coordinator.as_ref().expect("it is alive");
        // Readers see what is committed.
        if coordinator.committing.is_some() {
            let life = coordinator.life;
            self.schedule(self.commit_ms / 10, Event::Conclude { life, run, basis });
            return;
        }
        let life = coordinator.life;
        let ask = Box::new(Ask::FinishRun { run, basis, outcome: self.ledger.total(run) });
        let takes_max = if self.doubted.remove(&run) { 6_000 } else { 2 * self.commit_ms };
        let takes = Random::new(run.get() ^ self.now).below(takes_max);
        self.schedule(takes, Event::Ask { life, ask, asker: Asker::Concluder(run) });
    }
}
