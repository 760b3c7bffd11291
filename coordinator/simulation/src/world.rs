//! The world: its clock, its network, and who acts when.

mod calls;
mod campaign;
mod planning;
mod strikes;

use std::collections::{BTreeMap, BTreeSet};

use nqueens_kernel::random::Random;
use nqueens_model::id::RunId;
use nqueens_model::message::EncodedJob;
use nqueens_model::operator::{DiskRoom, RunState};
use nqueens_scheduler::{Basis, CheckOutcome, Millis, Policy};
use nqueens_worker_protocol::ProtocolEvent;

pub use self::campaign::Campaign;
use self::planning::Submission;
use crate::ask::{Ask, Asker};
use crate::coordinator::Coordinator;
use crate::invariants::Invariants;
use crate::job::{template, truth};
use crate::ledger::{Ledger, RunRow};
use crate::luck::Luck;
use crate::scenario::{Fault, Scenario};
use crate::worker::{Call, Caller, Engine, Worker};

/// Once faults have ceased, everything is done within this time. It is long: of two machines, one may be 800 times as fast as the
/// other, which still has to count every job a second time, alone.
const CALM_MAX: Millis = 30 * 24 * 3_600_000;

/// What all workers take together for all jobs, at most.
const WORK_MAX: Millis = 1_200_000;

/// Transactions between two looks at everything.
const LOOK_EVERY: u64 = 128;

/// What a simulation came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// Messages, alarms, commits and faults.
    pub steps: u64,
    pub transactions: u64,
    /// Results in the ledger at the end.
    pub results: u64,
    /// Those that were not true.
    pub lies: u64,
    /// Jobs with an accepted result at the end.
    pub done: u64,
    /// Checks in the ledger at the end that ended so: agreed, settled, unmade, dropped.
    pub checks: [u64; 4],
    /// Machines that were distrusted at the end.
    pub distrusted: u64,
    /// Simulated time, in milliseconds.
    pub simulated_ms: u64,
    /// How often each fault struck, in the order of [`Fault::ALL`].
    pub struck: [u64; Fault::ALL.len()],
}

#[derive(Debug)]
enum Event {
    /// A call reaches the coordinator.
    Arrive(Caller, Box<Call>),
    /// An answer reaches a worker.
    Tell(Caller, Box<ProtocolEvent>),
    Commit {
        life: u64,
    },
    /// Leases are looked through.
    Tick {
        life: u64,
    },
    /// A complete run is added up, from what the ledger has now.
    Conclude {
        life: u64,
        run: RunId,
        basis: Basis,
    },
    /// What took its time is done: a run is added up, or a job counted.
    Ask {
        life: u64,
        ask: Box<Ask>,
        asker: Asker,
    },
    /// A worker has waited long enough for work.
    Unpark {
        life: u64,
        caller: Caller,
    },
    /// The coordinator counts a job itself.
    Recount {
        life: u64,
    },
    /// An operator submits what is not stored.
    Plan,
    Alarm(usize),
    Strike,
    Birth(usize),
    /// A worker goes on, after this time.
    Thaw(usize, Millis),
    Start,
    /// An operator does what is to be done so that all runs end.
    Tidy,
    /// Some seconds of a campaign are over.
    Beat,
}

pub(crate) struct World {
    scenario: Scenario,
    policy: Policy,
    /// Most commits take less.
    commit_ms: Millis,
    /// Estimated work of a job, about.
    estimate: u64,
    has_canaries: bool,
    /// Transactions between two looks at everything.
    look_every: u64,
    campaign: Option<campaign::Progress>,
    /// Nobody is honest, until faults cease.
    all_lie: bool,
    luck: Luck,
    now: Millis,
    events: BTreeMap<(Millis, u64), Event>,
    scheduled: u64,
    ledger: Ledger,
    coordinator: Option<Coordinator>,
    lives: u64,
    short_until: Millis,
    workers: Vec<Worker>,
    /// What was submitted; it may not be stored yet.
    submitted: Vec<Submission>,
    /// Which of them is being stored.
    planning: Option<usize>,
    /// Runs of which an operator takes a result back while they are added up, which takes long then.
    doubted: BTreeSet<RunId>,
    job: EncodedJob,
    figures: Figures,
    invariants: Invariants,
}

impl World {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let mut random = Random::new(scenario.seed ^ 0x5eed);
        let policy = Policy {
            lease_ms: random.number(5_000..=59_999),
            stall_ms: random.number(20_000..=599_999),
            second_lease_ms: random.number(500..=9_999),
            grace_ms: random.number(5_000..=119_999),
            ..Policy::default()
        };
        let machines = if random.permille(300) { scenario.workers.div_ceil(3) } else { 4 * scenario.workers };
        let mut workers: Vec<_> = (0..scenario.workers).map(|_| Worker::new(&mut random, machines)).collect();
        Self::lie(scenario, &mut workers, &mut random);
        // A job takes an average worker some time between a tenth of a second and a minute, and all of them together take
        // some minutes for everything.
        let enough = WORK_MAX * workers.iter().map(Worker::speed).sum::<u64>();
        let estimate = (10_000 << random.below(10))
            .min(enough / u64::from(scenario.runs.max(1) * scenario.jobs))
            .max(10);
        let sync_ms = random.number(500..=4_999).min(policy.lease_ms / 4);
        let conspire = Self::own(&mut workers, scenario);
        let has_canaries = random.permille(300) || conspire;
        let policy = Policy {
            beat_ms: u32::try_from(sync_ms).expect("small"),
            arbiter: has_canaries,
            recounts_min: u32::try_from(random.number(1..=16)).expect("small"),
            ..policy
        };
        let engines = workers.iter().map(|worker| &worker.engine);
        let lying: BTreeSet<_> =
            engines.clone().filter(|engine| engine.lies_in.is_some()).map(Engine::machine).collect();
        let all_lie = engines.clone().all(|engine| engine.lies_in.is_some());
        let mut world = Self {
            scenario: scenario.clone(),
            policy,
            // Some disks are slow: then many requests come together in a transaction.
            commit_ms: if scenario.seed % 8 == 5 { 3_000 } else { 10 },
            estimate,
            has_canaries,
            look_every: LOOK_EVERY,
            campaign: None,
            luck: Luck::new(random, &scenario.faults),
            now: 0,
            events: BTreeMap::new(),
            scheduled: 0,
            ledger: Ledger::default(),
            coordinator: None,
            lives: 0,
            short_until: 0,
            workers,
            submitted: Vec::new(),
            planning: None,
            doubted: BTreeSet::new(),
            job: template().1,
            figures: Figures::default(),
            invariants: Invariants::new(lying, conspire, policy),
            all_lie,
        };
        (0..scenario.runs).for_each(|_| world.submit());
        world.schedule(0, Event::Start);
        (0..scenario.workers).for_each(|place| world.schedule(1, Event::Birth(place)));
        world.schedule(1_000, Event::Strike);
        world
    }

    /// Half of all clusters have a few owners, each with a credential. In a quarter of those where machines lie two owners
    /// conspire, in a quarter all machines do: they tell the same lies. Returns whether some do.
    fn own(workers: &mut [Worker], scenario: &Scenario) -> bool {
        let mut random = Random::new(scenario.seed ^ 0x0bea);
        let conspiracy = if scenario.faults.contains(&Fault::Lie) { random.below(4) } else { 0 };
        if conspiracy > 1 || random.permille(500) {
            let owners = if conspiracy == 2 { 3 } else { 1 } + random.index(4);
            for Worker { engine, .. } in &mut *workers {
                engine.owner = Some(engine.machine % owners);
            }
        }
        let lies_in = [1, 3, 10, 100][random.index(4)];
        for Worker { engine, .. } in workers.iter_mut().filter(|_| conspiracy > 1) {
            engine.conspires = conspiracy == 3 || engine.owner.is_some_and(|owner| owner < 2);
            engine.lies_in = engine.conspires.then_some(lies_in);
        }
        conspiracy > 1
    }

    /// Has a minority of the machines lie, if machines lie at all.
    fn lie(scenario: &Scenario, workers: &mut [Worker], random: &mut Random) {
        let machines: BTreeSet<_> = workers.iter().map(|worker| worker.engine.machine).collect();
        let most =
            if scenario.faults.contains(&Fault::Lie) { machines.len().saturating_sub(1) / 2 } else { 0 };
        let liars = 1 + random.index(most.max(1));
        let liars: BTreeSet<_> = machines.into_iter().take(liars.min(most)).collect();
        let lies_in = [1, 3, 10, 100][random.index(4)];
        for worker in workers.iter_mut().filter(|worker| liars.contains(&worker.engine.machine)) {
            worker.engine.lies_in = Some(lies_in);
        }
    }

    /// Lets it all happen: first with faults, then without, until every run that was not cancelled is done.
    pub(crate) fn run(mut self) -> Figures {
        let faulty = self.scenario.seconds * 1_000;
        while self.now < faulty {
            self.step();
        }
        self.calm_down();
        let limit = self.now + CALM_MAX;
        while !self.is_settled() {
            assert!(self.now < limit, "not everything is done: {}", Invariants::open(&self.ledger));
            self.step();
        }
        self.look();
        self.invariants.conclude(&self.ledger);
        self.figures()
    }

    /// The ledger after this many lives and transactions, with all that was stored in it; after fewer if faults cease before.
    pub(crate) fn record(mut self, records: usize) -> Ledger {
        self.ledger = Ledger::recording();
        while self.ledger.records().len() < records && self.now < self.scenario.seconds * 1_000 {
            self.step();
        }
        self.ledger.roll_back();
        self.ledger
    }

    fn figures(mut self) -> Figures {
        let figures = &mut self.figures;
        (figures.simulated_ms, figures.struck) = (self.now, self.luck.struck);
        let distrusted = self.ledger.reputations().filter(|(_, reputation)| reputation.distrusted.is_some());
        figures.distrusted = distrusted.count() as u64;
        for (job, row) in self.ledger.jobs() {
            let lies = row.results.iter().filter(|row| row.result.counts != truth(job));
            figures.results += row.results.len() as u64;
            figures.lies += lies.count() as u64;
            figures.done += u64::from(row.accepted().is_some());
            for outcome in row.checks.iter().flatten() {
                figures.checks[match outcome {
                    CheckOutcome::Agreed => 0,
                    CheckOutcome::Settled => 1,
                    CheckOutcome::Unmade => 2,
                    CheckOutcome::Dropped => 3,
                }] += 1;
            }
        }
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
            Event::Arrive(caller, call) => self.arrive(caller, *call),
            Event::Tell(caller, told) => self.tell_worker(caller, *told),
            Event::Commit { life } if self.is_alive(life) => self.commit(),
            Event::Tick { life } if self.is_alive(life) => {
                let is_short = self.short_until > now;
                let room = DiskRoom { free_bytes: u64::from(!is_short), reserve_bytes: 1, is_short };
                self.ask(Ask::Expire { room: Some(room) }, Asker::Nobody);
                self.schedule(1_000, Event::Tick { life });
            }
            Event::Conclude { life, run, basis } if self.is_alive(life) => self.conclude(run, basis),
            Event::Ask { life, ask, asker } if self.is_alive(life) => self.ask(*ask, asker),
            Event::Unpark { life, caller } if self.is_alive(life) => self.unpark(caller),
            Event::Recount { life } if self.is_alive(life) => self.recount(),
            Event::Commit { .. }
            | Event::Tick { .. }
            | Event::Conclude { .. }
            | Event::Ask { .. }
            | Event::Unpark { .. }
            | Event::Recount { .. } => {}
            Event::Plan => self.plan_next(),
            Event::Alarm(place) => {
                if self.workers[place].alarm == Some(now) {
                    self.workers[place].alarm = None;
                    let calls = self.workers[place].act(now, &mut self.luck);
                    self.acted(place, calls);
                }
            }
            Event::Strike => self.strike_all(),
            Event::Birth(place) => {
                if self.workers[place].process.is_none() {
                    self.workers[place].begin(now, &mut self.luck);
                    self.acted(place, Vec::new());
                }
            }
            Event::Thaw(place, slept) => {
                let calls = self.workers[place].thaw(now, slept, &mut self.luck);
                self.acted(place, calls);
            }
            Event::Start => self.start(),
            Event::Tidy => self.tidy(),
            Event::Beat => self.beat(),
        }
    }

    fn is_alive(&self, life: u64) -> bool {
        self.coordinator.as_ref().is_some_and(|coordinator| coordinator.life == life)
    }

    fn look(&self) {
        let idle = self.coordinator.as_ref().filter(|coordinator| coordinator.committing.is_none());
        if let Some(coordinator) = idle {
            self.invariants.look(&self.ledger, coordinator.scheduler.dispatch());
        }
    }

    fn start(&mut self) {
        if self.coordinator.is_some() {
            return;
        }
        self.lives += 1;
        let (random, ledger) = (&mut self.luck.random, &mut self.ledger);
        let life = self.lives;
        self.coordinator = Some(Coordinator::begin(life, random, self.policy, self.now, ledger));
        self.invariants.begin_life();
        self.look();
        self.schedule(1, Event::Tick { life });
        if self.has_canaries {
            self.schedule(1_000, Event::Recount { life });
        }
        self.plan_next();
    }

    fn stop(&mut self) {
        self.planning = None;
        let Some(coordinator) = self.coordinator.take() else { return };
        if let Some(group) = coordinator.committing {
            if self.luck.random.permille(500) {
                self.ledger.commit();
                self.invariants.stored(&self.ledger, &group.voided);
            } else {
                self.ledger.roll_back();
            }
        }
    }

    /// Whether every run has ended, and every worker that is trusted knows what became of its results.
    fn is_settled(&self) -> bool {
        let over = |run: &RunRow| matches!(run.state, Some(RunState::Done | RunState::Cancelled));
        let Some(coordinator) = &self.coordinator else { return false };
        let dispatch = coordinator.scheduler.dispatch();
        coordinator.committing.is_none()
            && self.ledger.runs().count() == self.submitted.len()
            && self.ledger.runs().all(over)
            && self.workers.iter().all(|worker| {
                worker.process.as_ref().is_some_and(|process| process.has_reported)
                    || dispatch.distrusts(&worker.engine.machine()).is_some()
            })
    }
}
