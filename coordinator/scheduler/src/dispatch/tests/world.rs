//! The database's side of random histories, and what must hold after every event of them.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU32;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::{Counts, Totals};
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_model::credential::Credential;
use nqueens_model::message::{HeldLease, JobResult, ReturnedLease, Verdict, Wanted};
use nqueens_model::operator::CheckCounts;
use proptest::prelude::*;

use super::super::*;
use super::registration;

pub(super) const JOBS: u32 = 12;
/// The last one runs on the first one's machine.
pub(super) const WORKERS: u64 = 5;
const SECRET: [u8; 32] = [7; 32];

pub(super) fn machine(worker: WorkerId) -> Machine {
    if worker.get() > WORKERS {
        return Machine::new(Credential::own(), Credential::OWN);
    }
    let number = worker.get() % (WORKERS - 1);
    let credential = ["lab", "lab", "club", Credential::SHARED][usize::try_from(number).unwrap()];
    Machine::new(Credential::stored(credential).unwrap(), &format!("m{number}"))
}

pub(super) fn run_id() -> RunId {
    RunId::from_random(7)
}

fn policy(arbiter: bool) -> Policy {
    Policy {
        arbiter,
        lease_ms: 100,
        stall_ms: 300,
        second_lease_ms: 50,
        grace_ms: 200,
        failures_max: 3,
        lapses_max: 4,
        ..Policy::default()
    }
}

pub(super) fn settings(replicate_ppm: u32) -> RunSettings {
    RunSettings {
        id: run_id(),
        plan: Plan::new(BoardSize::new(8).unwrap(), PlanKind::Rows),
        seed: 42,
        priority: 0,
        replicate_ppm,
    }
}

/// What job `number` counts, by an honest worker.
pub(super) fn truth(number: u32) -> Counts {
    Counts { count4: u64::from(number % 3), count8: u64::from(number) + 1, ..Counts::ZERO }
}

pub(super) fn result(token: LeaseToken, counts: Counts) -> JobResult {
    let kernel = "reference".parse().expect("a name");
    JobResult { token, counts, parts: Vec::new(), kernel, states: 10, elapsed_us: 5, cpu_us: None }
}

#[derive(Clone, Debug)]
pub(super) enum ClusterEvent {
    Grant {
        worker: u64,
        states: u64,
        jobs_max: usize,
    },
    /// A report of a token that was once given out, by its holder or by another worker; `wrong` counts are those of no
    /// other machine.
    Report {
        worker: Option<u64>,
        pick: usize,
        wrong: bool,
        implausible: bool,
    },
    GiveBack {
        worker: u64,
        pick: usize,
        failed: bool,
    },
    Heartbeat {
        worker: u64,
        forgets: bool,
    },
    Wait(u64),
    Restart,
    SetState(RunState),
    /// An operator opens what is in quarantine again.
    Retry,
    /// An operator takes the results of a job back.
    TakeBack(u32),
    /// An operator lets all machines in again.
    Readmit,
    /// The coordinator counts what it has to.
    Decide,
}

pub(super) fn events() -> impl Strategy<Value = Vec<ClusterEvent>> {
    let worker = 1..=WORKERS;
    let state = prop_oneof![Just(RunState::Active), Just(RunState::Paused)];
    let event = prop_oneof![
        4 => (worker.clone(), 0..4_000u64, 0..5usize).prop_map(|(worker, states, jobs_max)| ClusterEvent::Grant { worker, states, jobs_max }),
        6 => (prop::option::weighted(0.3, worker.clone()), any::<usize>(), prop::bool::weighted(0.05), prop::bool::weighted(0.05))
            .prop_map(|(worker, pick, wrong, implausible)| ClusterEvent::Report { worker, pick, wrong, implausible }),
        1 => (worker.clone(), any::<usize>(), any::<bool>()).prop_map(|(worker, pick, failed)| ClusterEvent::GiveBack { worker, pick, failed }),
        2 => (worker, prop::bool::weighted(0.2)).prop_map(|(worker, forgets)| ClusterEvent::Heartbeat { worker, forgets }),
        2 => (0..150u64).prop_map(ClusterEvent::Wait),
        1 => Just(ClusterEvent::Restart),
        1 => Just(ClusterEvent::Retry),
        1 => (0..JOBS).prop_map(ClusterEvent::TakeBack),
        1 => Just(ClusterEvent::Readmit),
        2 => Just(ClusterEvent::Decide),
        1 => state.prop_map(ClusterEvent::SetState),
    ];
    prop::collection::vec(event, 1..120)
}

/// The database's side of the story, and the workers'.
pub(super) struct World {
    pub(super) dispatch: Dispatch,
    pub(super) now: Millis,
    lives: u64,
    pub(super) slots: Vec<JobStatus>,
    holders: HashMap<u32, (WorkerId, Incarnation)>,
    pub(super) accepted: HashMap<u32, Accepted>,
    /// Every token ever given out, and to whom.
    pub(super) issued: Vec<(WorkerId, LeaseToken)>,
    state: RunState,
    replicate_ppm: u32,
    arbiter: bool,
    /// Open checks, and the first result of their jobs that differs.
    open: HashSet<u32>,
    conflicts: HashMap<u32, CheckVote>,
    reputations: HashMap<Machine, MachineReputation>,
    /// Machines that have reported a wrong result.
    liars: HashSet<Machine>,
}

impl World {
    pub(super) fn new(replicate_ppm: u32) -> Self {
        Self::with_arbiter(replicate_ppm, false)
    }

    /// One whose coordinator counts itself.
    pub(super) fn with_arbiter(replicate_ppm: u32, arbiter: bool) -> Self {
        let slot = |number: u32| JobStatus::planned(1_000 + u64::from(number));
        let mut world = Self {
            dispatch: Dispatch::new(policy(arbiter), Incarnation::from_random(1), SECRET),
            now: 0,
            lives: 0,
            slots: (0..JOBS).map(slot).collect(),
            holders: HashMap::new(),
            accepted: HashMap::new(),
            issued: Vec::new(),
            state: RunState::Active,
            replicate_ppm,
            arbiter,
            open: HashSet::new(),
            conflicts: HashMap::new(),
            reputations: HashMap::new(),
            liars: HashSet::new(),
        };
        world.restart();
        world
    }

    /// A new life of the coordinator on what the database has.
    fn restart(&mut self) {
        self.lives += 1;
        self.dispatch = Dispatch::new(policy(self.arbiter), Incarnation::from_random(self.lives), SECRET);
        for worker in (1..=WORKERS + 1).map(|worker| WorkerId::new(worker).unwrap()) {
            let kernel = if worker.get() == 2 { "scalar" } else { "reference" };
            let Machine { credential, name } = machine(worker);
            self.dispatch.add_worker(worker, &registration(&name, kernel, 2), credential);
        }
        for (machine, reputation) in &self.reputations {
            self.dispatch.add_reputation(machine.clone(), reputation.clone());
        }
        let done = |number: &u32| self.slots[*number as usize].state == JobState::Done;
        let mut accepted = AcceptedSums::default();
        let checks = CheckCounts { open: u32::try_from(self.open.len()).unwrap(), ..CheckCounts::default() };
        for (number, one) in self.accepted.iter().filter(|(number, _)| done(number)) {
            let estimate = self.slots[*number as usize].estimate;
            accepted.add(estimate, one.counts, one.states, one.elapsed_us, one.cpu_us).unwrap();
        }
        let (settings, slots) = (settings(self.replicate_ppm), self.slots.clone());
        let sums = Sums { accepted, checks, ..Sums::default() };
        self.dispatch.add_run(Run::new(&settings, self.state, slots, sums));
        for (number, (worker, incarnation)) in &self.holders {
            let epoch = NonZeroU32::new(self.slots[*number as usize].epoch).unwrap();
            let token = LeaseToken {
                job: JobId { run: run_id(), number: *number },
                epoch,
                incarnation: *incarnation,
            };
            self.dispatch.add_lease(self.now, *worker, token);
        }
        for number in &self.open {
            let accepted = &self.accepted[number];
            let first = CheckVote::accepted(accepted, machine(accepted.worker));
            let votes = std::iter::once(first).chain(self.conflicts.get(number).cloned()).collect();
            self.dispatch.add_check(JobId { run: run_id(), number: *number }, votes);
        }
    }

    pub(super) fn store(&mut self) {
        for event in self.dispatch.take_trust_events() {
            let (suspect, all) = match event {
                TrustEvent::Distrusted { machine, .. } => (machine, false),
                TrustEvent::WrongAgain { machine } => (machine, true),
                TrustEvent::Rests { .. } => continue,
                TrustEvent::Waived { .. } => panic!("waived by nobody"),
            };
            assert!(self.liars.contains(&suspect), "{suspect} never reported anything wrong");
            let own = self.accepted.iter().filter(|(_, accepted)| machine(accepted.worker) == suspect);
            let results = own.map(|(number, accepted)| {
                (JobId { run: run_id(), number: *number }, CheckVote::accepted(accepted, suspect.clone()))
            });
            self.dispatch.suspect(&suspect, results.collect(), all);
        }
        self.reputations.extend(self.dispatch.take_standings());
        for (JobId { number, .. }, outcome) in self.dispatch.take_checks() {
            match outcome {
                None => assert!(self.open.insert(number), "opened once"),
                Some(outcome) => {
                    assert!(self.open.remove(&number), "ended once");
                    if matches!(outcome, CheckOutcome::Agreed | CheckOutcome::Settled) {
                        assert_eq!(
                            self.accepted[&number].counts,
                            truth(number),
                            "two machines agree on the truth"
                        );
                    }
                }
            }
        }
        for job in self.dispatch.take_dirty() {
            let (job, slot, lease) = self.dispatch.changed(job);
            assert!(slot.epoch >= self.slots[job.number as usize].epoch, "an epoch never goes back");
            self.slots[job.number as usize] = slot;
            match lease {
                Some(lease) => self.holders.insert(job.number, lease),
                None => self.holders.remove(&job.number),
            };
        }
    }

    fn pick(&self, pick: usize) -> Option<(WorkerId, LeaseToken)> {
        (!self.issued.is_empty()).then(|| self.issued[pick % self.issued.len()])
    }

    pub(super) fn apply(&mut self, event: &ClusterEvent) {
        let id = |worker: u64| WorkerId::new(worker).unwrap();
        match *event {
            ClusterEvent::Grant { worker, states, jobs_max } => {
                let granted = self.dispatch.grant(self.now, id(worker), Wanted::new(states, jobs_max));
                assert!(granted.is_empty() || self.dispatch.distrusts(&machine(id(worker))).is_none());
                assert!(granted.len() <= jobs_max);
                for token in &granted {
                    let leased = self.dispatch.run(run_id()).unwrap().slot(token.job.number);
                    let checked = self.accepted.get(&token.job.number);
                    assert_eq!(leased.state == JobState::Leased, checked.is_none());
                    assert!(checked.is_none_or(|first| machine(first.worker) != machine(id(worker))));
                    assert_eq!(leased.epoch, token.epoch.get());
                }
                assert!(self.state == RunState::Active || granted.is_empty());
                for token in granted {
                    assert!(
                        !self.issued.iter().any(|(_, earlier)| *earlier == token),
                        "no token is given twice"
                    );
                    self.issued.push((id(worker), token));
                }
            }
            ClusterEvent::Report { worker, pick, wrong, implausible } => {
                self.report(worker.map(id), pick, wrong, implausible);
            }
            ClusterEvent::GiveBack { worker, pick, failed } => {
                let Some((_, token)) = self.pick(pick) else { return };
                let failure = failed.then(|| "told to".to_owned());
                self.dispatch.give_back(self.now, id(worker), &ReturnedLease { token, failure });
            }
            ClusterEvent::Heartbeat { worker, forgets } => {
                let all = self.issued.iter().filter(|(holder, _)| *holder == id(worker));
                let held: Vec<_> =
                    all.map(|(_, token)| HeldLease { token: *token, states: self.now }).collect();
                let held = if forgets { Vec::new() } else { held };
                let answer = self.dispatch.heartbeat(self.now, id(worker), &held);
                let named: HashSet<_> = held.iter().map(|held| held.token).collect();
                assert!(answer.lost.iter().all(|token| !named.contains(token)));
                assert!(answer.revoked.iter().all(|token| named.contains(token)));
                assert!(forgets || answer.lost.is_empty(), "it named every token that it ever had");
                for token in answer.lost {
                    // A lease from before a restart is given again under a number of its own.
                    if !self.issued.contains(&(id(worker), token)) {
                        self.issued.push((id(worker), token));
                    }
                }
            }
            ClusterEvent::Wait(time) => {
                self.now += time;
                self.dispatch.expire(self.now);
            }
            ClusterEvent::Restart => self.restart(),
            ClusterEvent::SetState(state) => {
                self.state = state;
                assert!(self.dispatch.set_run_state(run_id(), state));
            }
            ClusterEvent::Retry => {
                for job in self.dispatch.retry_quarantined(run_id()) {
                    self.accepted.remove(&job.number);
                    self.conflicts.remove(&job.number);
                }
            }
            ClusterEvent::TakeBack(number) => {
                let job = JobId { run: run_id(), number };
                let accepted = self.accepted.get(&number).map(|accepted| (job, *accepted));
                let taken = self.dispatch.take_back(accepted.as_slice());
                assert_eq!(taken.len(), accepted.iter().len());
                self.accepted.remove(&number);
                self.conflicts.remove(&number);
            }
            ClusterEvent::Readmit => {
                for worker in 1..=WORKERS {
                    self.dispatch.readmit(&machine(id(worker)));
                }
            }
            ClusterEvent::Decide => self.decide(),
        }
    }

    /// The coordinator counts all that it has to, and everything that it says stands.
    fn decide(&mut self) {
        while let Some((token, has_result)) =
            self.dispatch.undecided(self.now, &HashSet::new()).filter(|_| self.arbiter)
        {
            let number = token.job.number;
            assert_eq!(has_result, self.accepted.contains_key(&number));
            self.judge(WorkerId::new(WORKERS + 1).unwrap(), token, truth(number), true);
            assert_eq!(self.accepted[&number].counts, truth(number));
            let slot = self.dispatch.run(run_id()).unwrap().slot(number);
            assert!(slot.state == JobState::Done && slot.confirmed);
            self.store();
        }
    }

    fn report(&mut self, worker: Option<WorkerId>, pick: usize, wrong: bool, implausible: bool) {
        let Some((holder, token)) = self.pick(pick) else { return };
        let worker = worker.unwrap_or(holder);
        if self.dispatch.distrusts(&machine(worker)).is_some() {
            return;
        }
        let number = token.job.number;
        let mut counts = truth(number);
        if wrong || implausible {
            self.liars.insert(machine(worker));
        }
        if wrong {
            counts.count8 += 1 + worker.get() % (WORKERS - 1);
        }
        self.judge(worker, token, counts, !implausible);
    }

    fn judge(&mut self, worker: WorkerId, token: LeaseToken, counts: Counts, plausible: bool) {
        let number = token.job.number;
        let result = result(token, counts);
        let before = self.accepted.get(&number).copied();
        let judged = self.dispatch.report(self.now, worker, &result, before.as_ref(), plausible);
        match (before, judged.verdict) {
            (before, Verdict::Accepted) if before.is_none() || judged.supersedes => {
                let LeaseToken { epoch, incarnation, .. } = token;
                let JobResult { kernel, states, elapsed_us, .. } = result;
                let cpu_us = elapsed_us;
                let accepted =
                    Accepted { worker, epoch, incarnation, kernel, counts, states, elapsed_us, cpu_us };
                self.accepted.insert(number, accepted);
                self.conflicts.remove(&number);
            }
            (Some(before), Verdict::Accepted) => assert!(!judged.keep && before.counts == counts),
            (Some(before), Verdict::Duplicate) => assert_eq!(before.counts, counts),
            (Some(before), Verdict::Conflict) => {
                assert_ne!(before.counts, counts);
                let vote = CheckVote::reported(worker, &result, machine(worker));
                self.conflicts.entry(number).or_insert(vote);
            }
            (None, Verdict::Implausible) => assert!(!plausible),
            (None, Verdict::SetAside) => {
                assert_eq!(self.slots[number as usize].state, JobState::Quarantined);
            }
            (before, verdict) => panic!("{verdict:?} with {before:?} before"),
        }
    }

    pub(super) fn check(&self) {
        let run = self.dispatch.run(run_id()).unwrap();
        let sums = run.sums();
        let count = |state| (0..JOBS).filter(|number| run.slot(*number).state == state).count();
        assert_eq!(sums.done as usize, count(JobState::Done));
        assert_eq!(sums.leased as usize, count(JobState::Leased));
        assert_eq!(sums.quarantined as usize, count(JobState::Quarantined));
        assert_eq!(sums.leased as usize, self.holders.len());
        let confirmed = |number: &u32| run.slot(*number).confirmed;
        assert_eq!(sums.checks.confirmed as usize, (0..JOBS).filter(confirmed).count());
        for number in (0..JOBS).filter(confirmed) {
            assert_eq!(self.accepted[&number].counts, truth(number), "only the truth is confirmed");
        }
        let mut orbits = Totals::default();
        let mut estimate_done = 0;
        for number in 0..JOBS {
            let slot = run.slot(number);
            assert_eq!(slot, self.slots[number as usize], "job {number} is stored as it is");
            if slot.state == JobState::Done {
                orbits = orbits.checked_add(self.accepted[&number].counts).unwrap();
                estimate_done += u128::from(slot.estimate);
            } else {
                assert!(slot.state == JobState::Quarantined || !self.accepted.contains_key(&number));
            }
        }
        assert_eq!((sums.accepted.found, sums.estimate_done), (orbits, estimate_done));
        let estimate = |state| {
            (0..JOBS)
                .map(|number| run.slot(number))
                .filter(move |slot| slot.state == state)
                .map(|slot| u128::from(slot.estimate))
                .sum::<u128>()
        };
        assert_eq!(sums.estimate_leased, estimate(JobState::Leased));
        assert_eq!(sums.estimate_quarantined, estimate(JobState::Quarantined));
        let ready = if run.state() == RunState::Active { estimate(JobState::Ready) } else { 0 };
        assert_eq!(run.estimate_ready(), ready);
        let leases: usize = self.dispatch.workers().map(|(_, worker)| worker.leases()).sum();
        let checked = self.open.len() - self.dispatch.checks_waiting();
        let leases = leases.checked_sub(checked).expect("one lease a check that somebody makes");
        assert!(
            (sums.leased as usize..=2 * sums.leased as usize).contains(&leases),
            "one lease a leased job, or two"
        );
        assert_eq!(sums.checks.open as usize, self.open.len());
        for number in &self.open {
            assert!(self.accepted.contains_key(number), "what is checked has a result");
        }
        let disputed = |number: &u32| {
            run.slot(*number).state == JobState::Quarantined && self.accepted.contains_key(number)
        };
        assert!(
            (0..JOBS).filter(disputed).all(|number| self.open.contains(&number)),
            "a dispute is to be settled"
        );
    }
}
