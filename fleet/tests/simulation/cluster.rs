//! A batch system and a coordinator, second by second.

use std::collections::{BTreeMap, BTreeSet};

use nqueens_fleet::UnixSeconds;
use nqueens_fleet::decide::FleetLimits;
use nqueens_fleet::state::{Allocation, AllocationId, AllocationState, Demand, Queue};
use nqueens_kernel::random::Random;

use crate::life::{Happening, Tally};

/// Ended jobs are listed for so many seconds, as with `MinJobAge` of Slurm.
const LISTED_S: u64 = 300;

/// A worker without work ends after so many seconds.
const IDLE_S: u64 = 60;

/// A submit without an answer lands within so many seconds, or never.
const LATEST_S: u64 = 50;

/// One job of the batch system.
pub(crate) struct SimJob {
    pub(crate) state: AllocationState,
    pub(crate) ours: bool,
    since: UnixSeconds,
    restarts: u32,
    idle_s: u64,
    /// What it becomes when it has left.
    then: AllocationState,
    leaves_at: UnixSeconds,
    suspended_until: UnixSeconds,
}

/// How often what happens, in thousandths of all chances; by default nothing does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Troubles {
    pub(crate) refusal: u64,
    /// The submit limit changes: in thousandths of seconds.
    pub(crate) limit: u64,
    pub(crate) silence: u64,
    pub(crate) slow_list: u64,
    pub(crate) no_list: u64,
    /// A script that fails at once.
    pub(crate) failure: u64,
    /// A job that can't be started, and is held.
    pub(crate) no_launch: u64,
    /// In a second, in a million.
    pub(crate) preemption: u64,
    pub(crate) node_failure: u64,
    pub(crate) linger: u64,
    pub(crate) deaf: u64,
}

impl Troubles {
    pub(crate) fn draw(random: &mut Random) -> Self {
        // Each trouble is absent in most clusters: together they would hide each other.
        let mut some = |most: u64| if random.permille(400) { random.below(most + 1) } else { 0 };
        Self {
            refusal: some(900),
            limit: some(20),
            silence: some(500),
            slow_list: some(500),
            no_list: some(500),
            failure: some(600),
            no_launch: some(300),
            preemption: some(10_000),
            node_failure: some(5_000),
            linger: some(500),
            deaf: some(500),
        }
    }
}

/// A batch system with other people's jobs, and a coordinator with a run.
pub(crate) struct SimCluster {
    pub(crate) now: UnixSeconds,
    pub(crate) random: Random,
    pub(crate) weather: Troubles,
    pub(crate) limits: FleetLimits,
    pub(crate) jobs: BTreeMap<AllocationId, SimJob>,
    /// Submits on their way: when they arrive, and how many allocations they are.
    pub(crate) landing: Vec<(UnixSeconds, u32)>,
    pub(crate) open: u64,
    /// Threads of an allocation, whatever the operator believes.
    pub(crate) threads: u64,
    /// Most jobs of the fleet at once.
    pub(crate) submit_max: u64,
    done: u64,
    pub(crate) coordinator_up: bool,
    /// Jobs queued again since the last list: no fleet can know of them.
    pub(crate) surprises: u64,
    /// Jobs that were queued or held in the last list.
    pub(crate) waiting_then: BTreeSet<AllocationId>,
    pub(crate) tally: Tally,
    next: u64,
    running: u64,
    pub(crate) room: u64,
    pub(crate) time_limit_s: u64,
}

impl SimCluster {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let limits = FleetLimits {
            workers_max: random.number(1..=12),
            backlog: random.number(1..=4),
            threads: None,
            interval: 5,
        };
        let mut cluster = Self {
            now: 1_000_000,
            weather: Troubles::draw(&mut random),
            limits,
            jobs: BTreeMap::new(),
            landing: Vec::new(),
            open: random.number(1..=400),
            threads: random.number(1..=8),
            submit_max: u64::MAX,
            done: 0,
            coordinator_up: true,
            surprises: 0,
            waiting_then: BTreeSet::new(),
            tally: Tally::default(),
            next: 1,
            running: 0,
            room: random.number(1..=10),
            // Some have none.
            time_limit_s: if random.permille(300) { u64::MAX } else { random.number(100..=1_000) },
            random,
        };
        // Other people's jobs, which nobody may touch.
        for _ in 0..3 {
            let id = cluster.add(false);
            cluster.jobs.get_mut(&id).expect("new").state = AllocationState::Running;
        }
        cluster
    }

    fn add(&mut self, ours: bool) -> AllocationId {
        let id = format!("{}_0", self.next);
        self.next += 1;
        let job = SimJob {
            state: AllocationState::Queued,
            ours,
            since: self.now,
            restarts: 0,
            idle_s: 0,
            then: AllocationState::Queued,
            leaves_at: 0,
            suspended_until: 0,
        };
        self.jobs.insert(id.clone(), job);
        id
    }

    /// Allocations of the fleet in such a state.
    pub(crate) fn count(&self, is_meant: impl Fn(&SimJob) -> bool) -> u64 {
        self.jobs.values().filter(|job| job.ours && is_meant(job)).count() as u64
    }

    pub(crate) fn on_their_way(&self) -> u64 {
        self.landing.iter().map(|(_, count)| u64::from(*count)).sum()
    }

    pub(crate) fn demand(&self) -> Option<Demand> {
        let running = self.count(|job| job.state == AllocationState::Running);
        let threads = running * self.threads;
        self.coordinator_up.then_some(Demand { open: self.open, done: self.done, workers: running, threads })
    }

    /// Takes a submit; it arrives now, or later.
    pub(crate) fn submit(&mut self, count: u32, late: bool) -> Vec<AllocationId> {
        self.tally[Happening::Submitted as usize] += u64::from(count);
        if late {
            let at = self.now + self.random.below(LATEST_S);
            self.landing.push((at, count));
            return Vec::new();
        }
        (0..count).map(|_| self.add(true)).collect()
    }

    pub(crate) fn list(&mut self) -> Queue {
        self.surprises = 0;
        let is_waiting = |state| matches!(state, AllocationState::Queued | AllocationState::Held);
        let waiting = self.jobs.iter().filter(|(_, job)| is_waiting(job.state));
        self.waiting_then = waiting.map(|(id, _)| id.clone()).collect();
        let listed = self.jobs.iter().filter(|(_, job)| job.ours);
        let seen = |job: &SimJob| {
            let is_suspended = job.state == AllocationState::Running && job.suspended_until > self.now;
            if is_suspended { AllocationState::Suspended } else { job.state }
        };
        listed
            .map(|(id, job)| (id.clone(), Allocation { state: seen(job), ..Allocation::default() }))
            .collect()
    }

    pub(crate) fn end(&mut self, id: &str) {
        if self.random.permille(self.weather.deaf) {
            return;
        }
        let Some(job) = self.jobs.get_mut(id) else { return };
        assert!(job.ours, "somebody else's job was ended");
        match job.state {
            AllocationState::Queued | AllocationState::Held => {
                self.tally[Happening::Started as usize] += 1;
                (job.state, job.since) = (AllocationState::Cancelled, self.now);
            }
            AllocationState::Running => self.leave(id, AllocationState::Cancelled),
            _ => {}
        }
    }

    /// A job ends, or is queued again: at once, or after a while among those that leave.
    fn leave(&mut self, id: &str, then: AllocationState) {
        let lingers = self.random.permille(self.weather.linger);
        self.tally[Happening::Lingered as usize] += u64::from(lingers);
        let pause = if lingers { self.random.number(60..=900) } else { self.random.below(10) };
        let job = self.jobs.get_mut(id).expect("it is there");
        (job.state, job.then, job.leaves_at) = (AllocationState::Leaving, then, self.now + pause);
    }

    /// So many seconds go by.
    pub(crate) fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now += 1;
            self.second();
        }
    }

    fn second(&mut self) {
        let (landed, landing) =
            std::mem::take(&mut self.landing).into_iter().partition(|(at, _)| *at <= self.now);
        self.landing = landing;
        for (_, count) in landed {
            for _ in 0..count {
                self.add(true);
            }
        }
        if self.random.permille(self.weather.limit) {
            self.submit_max = if self.random.permille(300) { u64::MAX } else { self.random.below(9) };
        }
        self.running = self.count(|job| job.state == AllocationState::Running);
        let is_moving = |job: &SimJob| job.ours && !job.state.has_ended();
        let moving = self.jobs.iter().filter(|(_, job)| is_moving(job));
        let ids: Vec<_> = moving.map(|(id, _)| id.clone()).collect();
        for id in ids {
            match self.jobs[&id].state {
                AllocationState::Queued => self.start(&id),
                AllocationState::Running => self.run(&id),
                AllocationState::Leaving => self.left(&id),
                _ => {}
            }
        }
        let now = self.now;
        self.jobs.retain(|_, job| !job.state.has_ended() || now < job.since + LISTED_S);
    }

    fn start(&mut self, id: &str) {
        if self.running < self.room && self.random.permille(200) {
            let launched = !self.random.permille(self.weather.no_launch);
            self.running += u64::from(launched);
            self.tally[Happening::Started as usize] += 1;
            self.tally[Happening::Held as usize] += u64::from(!launched);
            let job = self.jobs.get_mut(id).expect("it is there");
            job.state = if launched { AllocationState::Running } else { AllocationState::Held };
            (job.since, job.idle_s) = (self.now, 0);
        }
    }

    fn left(&mut self, id: &str) {
        let job = self.jobs.get_mut(id).expect("it is there");
        if job.leaves_at <= self.now {
            (job.state, job.since) = (job.then, self.now);
            if job.state == AllocationState::Queued {
                job.restarts += 1;
                self.surprises += 1;
                self.tally[Happening::Requeued as usize] += 1;
            }
        }
    }

    fn run(&mut self, id: &str) {
        let per_million = |random: &mut Random, share: u64| random.below(1_000_000) < share;
        if per_million(&mut self.random, self.weather.preemption) {
            self.tally[Happening::Preempted as usize] += 1;
            let again = self.random.permille(700);
            let then = if again { AllocationState::Queued } else { AllocationState::Cancelled };
            return self.leave(id, then);
        }
        if per_million(&mut self.random, self.weather.node_failure) {
            self.tally[Happening::NodeLost as usize] += 1;
            let again = self.random.permille(500);
            let then = if again { AllocationState::Queued } else { AllocationState::Lost };
            return self.leave(id, then);
        }
        if per_million(&mut self.random, self.weather.preemption) {
            let until = self.now + self.random.below(300);
            self.jobs.get_mut(id).expect("it is there").suspended_until = until;
        }
        let job = &self.jobs[id];
        if job.suspended_until > self.now {
            return;
        }
        let ran = self.now - job.since;
        if ran == 1 && self.random.permille(self.weather.failure) {
            self.tally[Happening::Failed as usize] += 1;
            return self.leave(id, AllocationState::Failed);
        }
        if ran >= self.time_limit_s {
            return self.leave(id, AllocationState::TimeLimit);
        }
        let works = self.coordinator_up && self.open > 0;
        if works && self.random.permille(100) {
            let done = self.open.min(self.threads);
            (self.open, self.done) = (self.open - done, self.done + done);
        }
        let job = self.jobs.get_mut(id).expect("it is there");
        // Without a coordinator a worker waits.
        job.idle_s = if works || !self.coordinator_up { 0 } else { job.idle_s + 1 };
        if job.idle_s >= IDLE_S {
            self.leave(id, AllocationState::Completed);
        }
    }
}
