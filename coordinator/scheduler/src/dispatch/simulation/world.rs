//! The world: its clock, its network, its faults, and what is checked in it.

mod fate;

use std::collections::BTreeMap;

use super::life::{Answer, Caller, Group, Life, Request};
use super::scenario::{Fault, Random, Scenario};
use super::store::{RunRow, Store};
use super::witness::Witness;
use super::worker::{Mishaps, Worker};
use crate::dispatch::{Millis, Policy};

/// When faults have ceased, everything is done within so long: leases run out, and slow workers get slow jobs.
const CALM_MAX: Millis = 24 * 3_600_000;

/// What all workers take together for all jobs, at most.
const WORK_MAX: Millis = 1_200_000;

/// Transactions between two looks at everything.
const LOOK_EVERY: u64 = 64;

/// What a simulation came to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Figures {
    pub(super) steps: u64,
    pub(super) commits: u64,
    pub(super) results: u64,
    pub(super) done: u64,
    pub(super) simulated_ms: u64,
    /// In the order of [`Fault::ALL`].
    pub(super) faults: [u64; Fault::ALL.len()],
}

#[derive(Debug)]
enum Event {
    /// A message reaches the coordinator.
    Arrive(Caller, Request),
    /// One reaches a worker.
    Answer(Caller, Answer),
    /// A transaction has reached the disk.
    Commit { life: u64 },
    /// Leases are looked through.
    Tick { life: u64 },
    /// A worker acts.
    Alarm(usize),
    /// A fault may strike.
    Strike,
    /// A worker's process begins.
    Birth(usize),
    /// A worker goes on, after so long.
    Thaw(usize, Millis),
    /// The coordinator's process begins.
    Start,
    /// An operator does what is to be done so that all runs end.
    Tidy,
}

/// How often each fault strikes, in times of 100,000 messages, seconds or jobs.
type Rates = BTreeMap<Fault, u64>;

pub(super) struct World {
    scenario: Scenario,
    policy: Policy,
    sync_ms: Millis,
    estimate: u64,
    random: Random,
    now: Millis,
    events: BTreeMap<(Millis, u64), Event>,
    scheduled: u64,
    store: Store,
    life: Option<Life>,
    lives: u64,
    workers: Vec<Worker>,
    /// Until when each of them is cut off.
    cut_off: Vec<Millis>,
    rates: Rates,
    figures: Figures,
    witness: Witness,
    /// Runs that were asked for and may not be stored yet.
    submitted: Vec<(RunRow, Vec<(u64, nqueens_kernel::counts::Counts)>)>,
}

impl World {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let mut random = Random::new(scenario.seed ^ 0x5eed);
        let policy = Policy {
            lease_ms: random.between(5_000, 60_000),
            stall_ms: random.between(20_000, 600_000),
            second_lease_ms: random.between(500, 10_000),
            grace_ms: random.between(5_000, 120_000),
            failures_max: 3,
            lapses_max: 20,
        };
        // A job takes an average worker some time between a tenth of a second and a minute.
        let workers: Vec<_> = (0..scenario.workers).map(|_| Worker::new(&mut random)).collect();
        // And all of them together take some minutes for everything.
        let enough = WORK_MAX * workers.iter().map(Worker::rate).sum::<u64>();
        let estimate =
            (10_000 << random.below(10)).min(enough / u64::from(scenario.runs * scenario.jobs)).max(10);
        let rates = scenario.faults.iter().map(|fault| (*fault, 30 << random.below(8))).collect();
        let mut world = Self {
            scenario: scenario.clone(),
            policy,
            sync_ms: random.between(500, 5_000).min(policy.lease_ms / 4),
            estimate,
            random,
            now: 0,
            events: BTreeMap::new(),
            scheduled: 0,
            store: Store::default(),
            life: None,
            lives: 0,
            cut_off: vec![0; workers.len()],
            workers,
            rates,
            figures: Figures::default(),
            witness: Witness::default(),
            submitted: Vec::new(),
        };
        world.schedule(0, Event::Start);
        (0..world.workers.len()).for_each(|place| world.schedule(1, Event::Alarm(place)));
        (0..scenario.runs).for_each(|_| world.submit());
        world.schedule(1_000, Event::Strike);
        world
    }

    /// Lets it all happen: first with faults, then without, until every run that was not cancelled is done.
    pub(super) fn run(mut self) -> Figures {
        let faulty = self.scenario.seconds * 1_000;
        while self.now < faulty {
            self.step();
        }
        self.calm_down();
        let limit = self.now + CALM_MAX;
        while !self.is_settled() {
            assert!(self.now < limit, "not everything is done: {}", Witness::open(&self.store));
            self.step();
        }
        self.look();
        Witness::conclude(&self.store);
        self.figures.results = self.store.results();
        self.figures.done = self.store.jobs().filter(|(_, row)| row.accepted.is_some()).count() as u64;
        self.figures.simulated_ms = self.now;
        self.figures
    }

    fn schedule(&mut self, after: Millis, event: Event) {
        self.scheduled += 1;
        self.events.insert((self.now + after, self.scheduled), event);
    }

    fn step(&mut self) {
        let ((now, _), event) = self.events.pop_first().expect("something always happens");
        self.now = now;
        self.figures.steps += 1;
        match event {
            Event::Arrive(caller, request) => self.arrive(request, Some(caller)),
            Event::Answer(caller, answer) => self.answer(caller, answer),
            Event::Commit { life } => self.commit(life),
            Event::Tick { life } => {
                if self.life.as_ref().is_some_and(|current| current.number == life) {
                    self.arrive(Request::Expire, None);
                    self.schedule(1_000, Event::Tick { life });
                }
            }
            Event::Alarm(place) => self.alarm(place),
            Event::Strike => self.strike_all(),
            Event::Birth(place) => {
                if !self.workers[place].alive {
                    self.workers[place].be_born(now, self.random.bits());
                    self.schedule(0, Event::Alarm(place));
                }
            }
            Event::Thaw(place, slept) => {
                self.workers[place].thaw(slept);
                self.schedule(0, Event::Alarm(place));
            }
            Event::Start => self.start(),
            Event::Tidy => self.tidy(),
        }
    }

    /// True as often as the fault's rate says, while there are faults.
    fn strikes(&mut self, fault: Fault) -> bool {
        let Some(rate) = self.rates.get(&fault).copied() else { return false };
        let strikes = self.random.below(100_000) < rate;
        if strikes {
            self.count(fault, 1);
        }
        strikes
    }

    fn count(&mut self, fault: Fault, times: u64) {
        let place = Fault::ALL.iter().position(|one| *one == fault).expect("all are listed");
        self.figures.faults[place] += times;
    }

    /// Sends a message on its way: how long it takes, and how many of it arrive.
    fn deliver(&mut self, place: usize, make: impl Fn() -> Event) {
        if self.cut_off[place] > self.now || self.strikes(Fault::Loss) {
            return;
        }
        let copies = 1 + u64::from(self.strikes(Fault::Duplicate));
        for _ in 0..copies {
            let slow = if self.strikes(Fault::Delay) { 1 << self.random.below(18) } else { 0 };
            let delay = self.random.between(1, 30) + slow;
            self.schedule(delay, make());
        }
    }

    fn alarm(&mut self, place: usize) {
        let mishap = |fault| self.rates.get(&fault).copied().unwrap_or(0);
        let rates = Mishaps { failures: mishap(Fault::Failure) };
        let worker = &mut self.workers[place];
        if !worker.alive || worker.frozen || worker.alarm > self.now {
            return;
        }
        let mut mishaps = Mishaps::default();
        let said = worker.act(self.now, self.sync_ms, rates, &mut mishaps, &mut self.random);
        let instance = worker.instance;
        self.count(Fault::Failure, mishaps.failures);
        let worker = &self.workers[place];
        if !worker.alive {
            let gone = self.random.between(1, 60_000);
            self.schedule(gone, Event::Birth(place));
            return;
        }
        let after = worker.alarm - self.now;
        self.schedule(after, Event::Alarm(place));
        if let Some((call, request)) = said {
            let caller = Caller { place, instance, call };
            self.deliver(place, || Event::Arrive(caller, request.clone()));
        }
    }

    fn answer(&mut self, caller: Caller, answer: Answer) {
        let worker = &mut self.workers[caller.place];
        if worker.alive && worker.instance == caller.instance {
            worker.hear(self.now, caller.call, answer);
            if !worker.frozen {
                self.schedule(0, Event::Alarm(caller.place));
            }
        }
    }

    fn arrive(&mut self, request: Request, caller: Option<Caller>) {
        // Without a coordinator the connection is refused, which to a worker is a call without an answer.
        let Some(life) = &mut self.life else { return };
        life.queue.push_back((request, caller));
        if life.committing.is_none() {
            self.transact();
        }
    }

    fn transact(&mut self) {
        let life = self.life.as_mut().expect("who asks has asked somebody");
        life.transact(self.now, &mut self.store);
        let life = life.number;
        let takes = if self.random.chance(20) { 2_000 } else { 10 };
        let takes = self.random.between(1, takes);
        self.schedule(takes, Event::Commit { life });
    }

    fn commit(&mut self, number: u64) {
        if self.life.as_ref().is_none_or(|life| life.number != number) {
            return;
        }
        let refused = self.strikes(Fault::Refusal);
        let stored = !refused || self.random.chance(500);
        if stored {
            self.store.commit();
        } else {
            self.store.roll_back();
        }
        let life = self.life.as_mut().expect("looked at");
        let group = if refused {
            life.recover(self.now, &self.store)
        } else {
            life.committing.take().expect("it was on its way")
        };
        if stored {
            self.witness.stored(&self.store, &group.voided);
        }
        self.figures.commits += 1;
        self.tell(group);
        if refused || self.figures.commits.is_multiple_of(LOOK_EVERY) {
            self.look();
        }
        let life = self.life.as_mut().expect("looked at");
        life.queue.extend(life.complete().into_iter().map(|run| (Request::Finish(run), None)));
        if !life.queue.is_empty() {
            self.transact();
        }
    }

    /// Answers those who asked. A worker that is idle, and for which there is nothing, is asked for again later in its
    /// own name.
    fn tell(&mut self, group: Group) {
        for (request, caller, answer) in group.answers {
            let Some(caller) = caller else { continue };
            self.witness.told(&self.store, caller.instance, &answer, &group.voided, &request);
            let idle = matches!(&request, Request::Sync { sync, .. }
                if sync.results.is_empty() && sync.held.is_empty() && sync.returned.is_empty() && sync.wanted_jobs > 0);
            let nothing = matches!(&answer, Answer::Synced { leases, drain: false, .. } if leases.is_empty());
            if idle && nothing && self.random.chance(500) {
                self.schedule(self.sync_ms, Event::Arrive(caller, request));
            } else {
                self.deliver(caller.place, || Event::Answer(caller, answer.clone()));
            }
        }
    }

    fn look(&self) {
        if let Some(life) = self.life.as_ref().filter(|life| life.committing.is_none()) {
            self.witness.look(&self.store, &life.dispatch);
        }
    }

    fn start(&mut self) {
        if self.life.is_some() {
            return;
        }
        self.lives += 1;
        let life = Life::begin(self.lives, self.random.bits(), self.policy, self.now, &self.store);
        self.life = Some(life);
        self.look();
        self.schedule(1, Event::Tick { life: self.lives });
        // Those whose submit may have got lost send it again.
        for (row, jobs) in self.submitted.clone() {
            if !self.store.runs().any(|run| run.settings.id == row.settings.id) {
                self.arrive_once(Request::Submit { row, jobs });
            }
        }
    }

    /// A request of an operator, whose word gets through.
    fn arrive_once(&mut self, request: Request) {
        self.arrive(request, None);
    }

    fn stop(&mut self) {
        let Some(life) = self.life.take() else { return };
        if let Some(group) = life.committing {
            if self.random.chance(500) {
                self.store.commit();
                self.witness.stored(&self.store, &group.voided);
            } else {
                self.store.roll_back();
            }
        }
    }
}
