//! What befalls the world: faults, operators, and the calm after them.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use nqueens_kernel::counts::Counts;
use nqueens_kernel::engine::Kernel;
use nqueens_kernel::random::Random;
use nqueens_model::id::{JobId, LeaseToken, RunId};
use nqueens_model::message::{JobResult, Session, SyncRequest, Wanted};
use nqueens_model::operator::{Blamed, MachineName, RunState};
use nqueens_scheduler::request::{Recounted, Requeue, Sync};
use nqueens_scheduler::{JobState, Machine, Task, Why};
use nqueens_worker_protocol::ProtocolEvent;

use super::{Event, World};
use crate::ask::{Ask, Asker, secret};
use crate::job::{lie, truth};
use crate::scenario::Fault;
use crate::worker::{Engine, Process};

/// Time between two looks of an operator, once faults have ceased; every so many looks disputes are ended by force.
const TIDY_MS: u64 = 10_000;
const PATIENCE: u64 = 60;

impl World {
    /// Once a second: what may strike as a whole.
    pub(super) fn strike_all(&mut self) {
        if self.luck.is_calm() {
            return;
        }
        self.schedule(1_000, Event::Strike);
        if self.luck.strikes(Fault::Crash) {
            self.stop();
            self.start_soon();
        }
        if self.luck.strikes(Fault::Restore) {
            self.restore();
        }
        if self.luck.strikes(Fault::Leap) {
            let leap = 1 << self.luck.random.below(24);
            self.coordinator.iter_mut().for_each(|coordinator| coordinator.leapt += leap);
        }
        if self.luck.strikes(Fault::Disk) {
            self.short_until = self.now + self.luck.random.number(1_000..=59_999);
        }
        if self.luck.strikes(Fault::Operator) {
            self.operate();
        }
        for place in 0..self.workers.len() {
            self.strike(place);
        }
    }

    fn start_soon(&mut self) {
        let down = self.luck.random.number(1..=19_999);
        self.schedule(down, Event::Start);
    }

    /// What may strike one worker.
    fn strike(&mut self, place: usize) {
        let (now, luck) = (self.now, &mut self.luck);
        let worker = &mut self.workers[place];
        if luck.strikes(Fault::Partition) {
            worker.cut_off = now + luck.random.number(100..=119_999);
        }
        if worker.process.is_some() && luck.strikes(Fault::Forge) {
            self.forge(place);
            return;
        }
        if worker.process.is_some() && luck.strikes(Fault::Death) {
            worker.process = None;
            let dead = luck.random.number(1..=89_999);
            self.schedule(dead, Event::Birth(place));
            return;
        }
        let Some(process) = &mut worker.process else { return };
        let id = process.id;
        if !process.frozen && luck.strikes(Fault::Freeze) {
            process.frozen = true;
            let asleep = luck.random.number(100..=179_999);
            self.schedule(asleep, Event::Thaw(place, asleep));
            return;
        }
        if !process.frozen && luck.strikes(Fault::Drain) {
            if let Some(worker) = id.filter(|_| luck.random.permille(500)) {
                self.ask(Ask::Drain(worker), Asker::Nobody);
            } else {
                let calls = worker.on(now, ProtocolEvent::Stop, luck);
                self.acted(place, calls);
            }
        }
    }

    /// Copies the ledger, or takes the copy in its place.
    fn restore(&mut self) {
        self.stop();
        if self.luck.random.permille(500) {
            self.ledger.back_up();
        } else if self.ledger.take_backup() {
            self.invariants.restored(&self.ledger);
        }
        self.start_soon();
    }

    fn operate(&mut self) {
        let runs: Vec<_> = self.ledger.runs().map(|run| run.settings.id).collect();
        if runs.is_empty() {
            return;
        }
        let random = &mut self.luck.random;
        let run = runs[random.index(runs.len())];
        let place = random.index(self.workers.len());
        let worker = &self.workers[place];
        let ask = match random.below(30) {
            0..6 => Ask::SetRunState { run, state: RunState::Paused },
            6..13 => Ask::SetRunState { run, state: RunState::Active },
            13..17 => Ask::RetryQuarantined(run),
            17..21 => {
                let job = u32::try_from(random.below(self.scenario.jobs.into())).expect("small");
                let id = worker.process.as_ref().and_then(|process| process.id);
                let of = id.filter(|_| random.permille(300)).map_or(Blamed::Job(job), Blamed::Worker);
                let of = if random.permille(200) { Blamed::Unmade } else { of };
                // Where many requests come together, it may be about a result that comes in the same transaction.
                let waiting = self.coordinator.iter().flat_map(|coordinator| &coordinator.queue);
                let mut reported = waiting.filter_map(|(ask, _)| match ask {
                    Ask::Sync(sync) => Some(sync.sync.results.last()?.token.job),
                    _ => None,
                });
                let reported = reported.next().filter(|_| self.commit_ms > 10);
                let (run, of) = reported.map_or((run, of), |job| (job.run, Blamed::Job(job.number)));
                Ask::Requeue(Requeue { run, of })
            }
            21..28 => {
                let machines = named(&worker.engine.machine());
                Ask::SetTrust { machines, trusted: random.permille(600) }
            }
            28 => Ask::SetRunState { run, state: RunState::Cancelled },
            _ => return self.submit(),
        };
        self.ask(ask, Asker::Nobody);
    }

    /// An operator may take a result back just as its run is being added up.
    pub(super) fn doubt(&mut self, run: RunId) {
        let mut random = Random::new(run.get() ^ self.now);
        if !self.luck.is_calm() && self.scenario.faults.contains(&Fault::Operator) && random.permille(200) {
            let job = u32::try_from(random.below(self.scenario.jobs.into())).expect("small");
            self.doubted.insert(run);
            self.ask(Ask::Requeue(Requeue { run, of: Blamed::Job(job) }), Asker::Nobody);
        }
    }

    /// An operator may ask for more when a run has its total: for second counts that nobody made, or for one job anew.
    pub(super) fn ask_again(&mut self, run: RunId) {
        let mut random = Random::new(run.get() ^ self.now);
        if self.scenario.faults.contains(&Fault::Operator) && random.permille(300) {
            let job = u32::try_from(random.below(self.scenario.jobs.into())).expect("small");
            let of = if random.permille(700) { Blamed::Unmade } else { Blamed::Job(job) };
            self.ask(Ask::Requeue(Requeue { run, of }), Asker::Nobody);
        }
    }

    /// The coordinator counts what it has to.
    pub(super) fn recount(&mut self) {
        let Some(coordinator) = &self.coordinator else { return };
        let (life, is_idle) = (coordinator.life, coordinator.committing.is_none());
        let random = &mut self.luck.random;
        let later = random.number(500..=19_999);
        let Some(Task { job, why }) = coordinator.task(self.now).filter(|_| is_idle) else {
            return self.schedule(if is_idle { later } else { 1 + later / 100 }, Event::Recount { life });
        };
        let Some(row) = self.ledger.job(job) else { return self.schedule(later, Event::Recount { life }) };
        let accepted = row.accepted().map(|(_, row)| row);
        let (of, said) = (
            accepted.map(|row| (row.worker, row.result.token.epoch)),
            accepted.map_or(Counts::ZERO, |row| row.result.counts),
        );
        let seconds = row.seconds().map(|row| (row.worker, row.result.counts)).collect();
        // Some are large: a part of them is counted, whose lie shows in it. Some of these do not tell their parts.
        let is_large = match why {
            Why::Drawn(_) => job.number.is_multiple_of(4) && job.number % 32 != 8,
            Why::Dispute => job.number.is_multiple_of(4),
            Why::Left | Why::Failing => false,
        };
        let recounted = Recounted {
            build: "simulated".to_owned(),
            secret: [0; 16],
            job,
            of,
            part: is_large.then_some(0),
            drawn: matches!(why, Why::Drawn(_)),
            counts: truth(job),
            said,
            seconds,
            kernel: Kernel::Scalar.into(),
            states: 0,
            elapsed_us: random.number(1..=200_000),
        };
        let ask = match why {
            Why::Failing if random.permille(300) => Ask::GiveUp { job, why },
            // Some are too large.
            Why::Drawn(_) if job.number % 32 == 17 => Ask::GiveUp { job, why },
            _ => Ask::Recounted(recounted),
        };
        let takes = random.below(4_000);
        self.schedule(takes, Event::Ask { life, ask: Box::new(ask), asker: Asker::Nobody });
        self.schedule(takes + later / 10, Event::Recount { life });
    }

    /// Somebody reports results of what he was not given: with tickets that he draws, or that others got.
    fn forge(&mut self, place: usize) {
        let engine = &self.workers[place].engine;
        let Some(process) = self.workers[place].process.as_ref().filter(|_| engine.lies_in.is_some()) else {
            return;
        };
        let Some(worker) = process.id else { return };
        let (session, Machine { credential, .. }) =
            (Session { worker, secret: secret(process.instance) }, engine.machine());
        let random = &mut self.luck.random;
        let runs: Vec<_> = self.ledger.runs().map(|run| (run.settings.id, run.jobs)).collect();
        let mut results = Vec::new();
        for (run, jobs) in runs {
            let job = JobId { run, number: u32::try_from(random.below(jobs.into())).expect("small") };
            let epoch = NonZeroU32::new(1 + u32::from(random.permille(300))).expect("not 0");
            let token = LeaseToken { job, epoch, ticket: random.bits() };
            let token = self.invariants.ticket_of_others(&credential, random).unwrap_or(token);
            let counts = lie(token.job, place, true);
            let (parts, kernel) = (Vec::new(), Kernel::Scalar.into());
            results.push(JobResult { token, counts, parts, kernel, states: 1, elapsed_us: 1, cpu_us: None });
        }
        let (held, returned, faults) = (Vec::new(), Vec::new(), Vec::new());
        let sync =
            SyncRequest { session, results, held, returned, wanted: Wanted::NONE, leaving: false, faults };
        self.ask(Ask::Sync(Sync { sync, credential }), Asker::Nobody);
    }

    /// No more faults; whoever is dead comes back, and whatever hangs goes on.
    pub(super) fn calm_down(&mut self) {
        self.luck.calm();
        self.short_until = 0;
        if self.all_lie {
            // Or nobody would count what is left.
            self.workers.iter_mut().for_each(|worker| worker.engine.lies_in = None);
            self.workers.iter_mut().filter_map(|worker| worker.process.as_mut()).for_each(Process::reform);
        }
        self.workers.iter_mut().for_each(|worker| worker.cut_off = 0);
        self.schedule(0, Event::Start);
        (0..self.workers.len()).for_each(|place| self.schedule(1, Event::Birth(place)));
        self.schedule(1_000, Event::Tidy);
    }

    /// An operator has runs go on, lets honest machines in again, and opens what is in quarantine, but leaves disputes to
    /// the machines for a while.
    pub(super) fn tidy(&mut self) {
        let by_force = (self.now / TIDY_MS).is_multiple_of(PATIENCE);
        let runs: Vec<_> = self.ledger.runs().map(|run| (run.settings.id, run.state)).collect();
        for (run, state) in runs {
            if state == Some(RunState::Paused) {
                self.ask(Ask::SetRunState { run, state: RunState::Active }, Asker::Nobody);
            }
            let is_stuck = self.ledger.jobs_of(run).any(|(_, row)| {
                row.slot.state == JobState::Quarantined && (by_force || !row.is_checked_now())
            });
            if is_stuck {
                self.ask(Ask::RetryQuarantined(run), Asker::Nobody);
            }
        }
        let distrusted = self.ledger.reputations().filter(|(_, reputation)| reputation.distrusted.is_some());
        let lying =
            self.workers.iter().map(|worker| &worker.engine).filter(|engine| engine.lies_in.is_some());
        let lying: BTreeSet<_> = lying.map(Engine::machine).collect();
        // With the liars of a credential the honest ones may have been distrusted.
        let honest: Vec<_> =
            distrusted.map(|(machine, _)| machine).filter(|machine| !lying.contains(machine)).collect();
        let honest: Vec<_> = honest.into_iter().map(named).collect();
        // Where the coordinator decides nothing, somebody has to who sees the same jobs disputed again and again.
        if by_force && !self.has_canaries {
            for machine in &lying {
                self.ask(Ask::SetTrust { machines: named(machine), trusted: false }, Asker::Nobody);
            }
        }
        for machines in honest {
            self.ask(Ask::SetTrust { machines, trusted: true }, Asker::Nobody);
        }
        self.plan_next();
        self.schedule(TIDY_MS, Event::Tidy);
    }
}

/// As an operator names a machine, or all of a credential.
fn named(machine: &Machine) -> MachineName {
    let (name, credential) = (machine.name.to_string(), machine.credential.clone());
    if name.is_empty() {
        MachineName::All { credential }
    } else {
        MachineName::One { name, credential: Some(credential) }
    }
}
