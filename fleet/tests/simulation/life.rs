//! A fleet's lives on a simulated cluster, and what has to hold.

use std::cell::RefCell;
use std::io;

use nqueens_fleet::backend::Backend;
use nqueens_fleet::decide::is_due;
use nqueens_fleet::look::{StateStore, look};
use nqueens_fleet::process::CommandError;
use nqueens_fleet::state::{AllocationId, AllocationState, FleetState, Queue};
use strum::VariantArray;

use crate::cluster::{SimCluster, Troubles};

/// What happens.
#[derive(Clone, Copy, Debug, VariantArray)]
pub(crate) enum Happening {
    Submitted,
    Refused,
    Limited,
    Uncertain,
    Preempted,
    Requeued,
    NodeLost,
    Held,
    Lingered,
    Failed,
    Restarted,
    StateLost,
    Away,
    Stopped,
    Unlisted,
    KilledInSubmit,
    /// An allocation has left the queue.
    Started,
    /// The batch system was called.
    Called,
}

/// How often each has happened.
pub(crate) type Tally = [u64; Happening::VARIANTS.len()];

/// The state on disk. After a kill nothing is written any more.
struct SimDisk<'a> {
    state: RefCell<FleetState>,
    is_killed: &'a RefCell<bool>,
}

impl StateStore for SimDisk<'_> {
    fn change<T>(&self, change: impl FnOnce(&mut FleetState) -> T) -> io::Result<T> {
        if *self.is_killed.borrow() {
            return Err(io::Error::other("killed"));
        }
        Ok(change(&mut self.state.borrow_mut()))
    }
}

/// The fleet's way to the cluster.
struct Way<'a> {
    cluster: &'a RefCell<SimCluster>,
    is_killed: &'a RefCell<bool>,
    kill_in_submit: bool,
    may_submit: bool,
    may_end: bool,
}

impl Backend for Way<'_> {
    fn submit(&mut self, count: u32) -> Result<Vec<AllocationId>, CommandError> {
        let mut cluster = self.cluster.borrow_mut();
        cluster.tally[Happening::Called as usize] += 1;
        assert!(self.may_submit, "a submit without a coordinator, in a pause or while it stops");
        let count_u64 = u64::from(count);
        let alive = cluster.count(|job| job.state.is_alive()) + cluster.on_their_way() + count_u64;
        let (limits, surprises) = (cluster.limits, cluster.surprises);
        assert!(alive <= limits.workers_max + surprises, "{alive} alive, {limits:?}");
        let queued =
            cluster.count(|job| job.state == AllocationState::Queued) + cluster.on_their_way() + count_u64;
        // At first as many as the backlog; twice as many as before only if half of these have left the queue.
        let started = cluster.tally[Happening::Started as usize];
        assert!(queued <= limits.backlog.max(4 * started) + surprises, "{queued} queued, {limits:?}");
        let weather = cluster.weather.clone();
        let present = cluster.count(|job| !job.state.has_ended());
        if present + cluster.on_their_way() + count_u64 > cluster.submit_max {
            cluster.tally[Happening::Limited as usize] += 1;
            return Err(CommandError::Failed("AssocMaxSubmitJobLimit".to_owned()));
        }
        if cluster.random.permille(weather.refusal) {
            cluster.tally[Happening::Refused as usize] += 1;
            return Err(CommandError::Failed("no such partition".to_owned()));
        }
        let is_silent = cluster.random.permille(weather.silence);
        let arrives = !is_silent || cluster.random.permille(500);
        let ids = if arrives { cluster.submit(count, is_silent || self.kill_in_submit) } else { Vec::new() };
        if self.kill_in_submit {
            cluster.tally[Happening::KilledInSubmit as usize] += 1;
            *self.is_killed.borrow_mut() = true;
        }
        if is_silent {
            cluster.tally[Happening::Uncertain as usize] += 1;
            let pause = cluster.random.below(40);
            cluster.pass(pause);
            return Err(CommandError::Unclear("timed out".to_owned()));
        }
        Ok(ids)
    }

    fn list(&mut self, _known: &[AllocationId]) -> Result<Queue, CommandError> {
        let mut cluster = self.cluster.borrow_mut();
        cluster.tally[Happening::Called as usize] += 1;
        let weather = cluster.weather.clone();
        if cluster.random.permille(weather.no_list) {
            cluster.tally[Happening::Unlisted as usize] += 1;
            cluster.pass(40);
            return Err(CommandError::Unclear("no answer".to_owned()));
        }
        let pause = if cluster.random.permille(weather.slow_list) { cluster.random.below(40) } else { 0 };
        // What is shown may be as old as the question.
        let before = cluster.random.permille(500).then(|| cluster.list());
        cluster.pass(pause);
        Ok(before.unwrap_or_else(|| cluster.list()))
    }

    fn end(&mut self, ids: &[AllocationId]) -> Result<(), CommandError> {
        for id in ids {
            let mut cluster = self.cluster.borrow_mut();
            assert!(self.may_end || cluster.waiting_then.contains(id), "{id} was at work");
            cluster.end(id);
        }
        Ok(())
    }
}

struct Life<'a> {
    cluster: &'a RefCell<SimCluster>,
    disk: SimDisk<'a>,
}

impl Life<'_> {
    /// One look of a process that may be killed halfway through a submit.
    fn look(&mut self, kill_in_submit: bool) {
        let (demand, limits) = (self.cluster.borrow().demand(), self.cluster.borrow().limits);
        let is_stopping = self.disk.state.borrow().is_stopping;
        let mut way = Way {
            cluster: self.cluster,
            is_killed: self.disk.is_killed,
            kill_in_submit,
            may_submit: demand.is_some() && !is_stopping,
            may_end: is_stopping,
        };
        let clock = || self.cluster.borrow().now;
        if !is_due(clock(), &self.disk.state.borrow(), &limits, demand) {
            self.cluster.borrow_mut().pass(5);
            return;
        }
        let trace = std::env::var_os("FLEET_SEED").is_some();
        let log = |line| {
            if trace {
                println!("{} {line}", clock());
            }
        };
        let looked = look(clock, &self.disk, &mut way, &limits, demand, log);
        assert!(looked.is_ok() || *self.disk.is_killed.borrow());
        *self.disk.is_killed.borrow_mut() = false;
        self.disk.state.borrow_mut().forget();
        self.cluster.borrow_mut().pass(5);
    }

    /// Another process goes on, with what the last one knew or without.
    fn restart(&mut self, is_lost: bool) {
        let mut cluster = self.cluster.borrow_mut();
        cluster.tally[Happening::Restarted as usize] += 1;
        // A lost state and a lost answer at once are too much.
        if is_lost && cluster.landing.is_empty() {
            cluster.tally[Happening::StateLost as usize] += 1;
            self.disk.state = RefCell::default();
        } else {
            let text = serde_json::to_string(&*self.disk.state.borrow()).expect("JSON");
            self.disk.state = RefCell::new(serde_json::from_str(&text).expect("JSON"));
        }
        let pause =
            if cluster.random.permille(200) { cluster.random.below(2_000) } else { cluster.random.below(5) };
        cluster.pass(pause);
    }

    /// Stops the fleet, perhaps just after a process was killed in a submit. Nothing of its own is left.
    fn stop(&mut self) {
        let is_killed = self.cluster.borrow_mut().random.permille(500);
        self.look(is_killed);
        self.cluster.borrow_mut().tally[Happening::Stopped as usize] += 1;
        self.disk.change(FleetState::stop).expect("alive");
        for _ in 0..20_000 {
            self.look(false);
            if self.disk.state.borrow().has_stopped {
                let cluster = self.cluster.borrow();
                assert_eq!(
                    cluster.count(|job| !job.state.has_ended()) + cluster.on_their_way(),
                    0,
                    "left behind"
                );
                return;
            }
        }
        panic!("it does not stop: {:#?}", self.disk.state);
    }
}

/// The life of a seed. Panics where a promise is broken.
pub(crate) fn live(seed: u64) -> Tally {
    let (cluster, is_killed) = (RefCell::new(SimCluster::new(seed)), RefCell::new(false));
    let mut life =
        Life { cluster: &cluster, disk: SimDisk { state: RefCell::default(), is_killed: &is_killed } };
    let chance = |share: u64| cluster.borrow_mut().random.permille(share);
    let troubled = cluster.borrow_mut().random.number(50..=500);
    for _ in 0..troubled {
        if chance(20) {
            let mut cluster = cluster.borrow_mut();
            cluster.coordinator_up = !cluster.coordinator_up;
            cluster.tally[Happening::Away as usize] += u64::from(!cluster.coordinator_up);
        }
        let is_killed = chance(30);
        life.look(is_killed);
        if is_killed || chance(20) {
            let is_lost = chance(300);
            life.restart(is_lost);
        }
        if chance(5) {
            life.disk.change(FleetState::begin).expect("alive");
        }
        if chance(2) {
            cluster.borrow_mut().open += 50;
        }
    }
    if chance(300) {
        life.stop();
        return cluster.into_inner().tally;
    }
    // Somebody has mended everything. The work is done within two hours and the longest wait.
    cluster.borrow_mut().coordinator_up = true;
    cluster.borrow_mut().weather = Troubles::default();
    cluster.borrow_mut().submit_max = u64::MAX;
    life.disk.change(FleetState::begin).expect("alive");
    for _ in 0..40_000 {
        life.look(false);
        let is_idle = cluster.borrow().open == 0 && cluster.borrow().count(|job| job.state.is_alive()) == 0;
        if is_idle {
            life.stop();
            return cluster.into_inner().tally;
        }
    }
    panic!("the work is not done: {} open, {:#?}", cluster.borrow().open, life.disk.state);
}

/// A fleet of ten thousand on a cluster that starts them all. Seconds until they run, and calls of the batch system in each
/// minute after that.
pub(crate) fn grow_large() -> (u64, Vec<u64>) {
    const ALL: u64 = 10_000;
    let mut cluster = SimCluster::new(7);
    cluster.weather = Troubles::default();
    (cluster.limits.workers_max, cluster.limits.backlog) = (ALL, 2);
    (cluster.room, cluster.open, cluster.time_limit_s) = (ALL, u64::MAX / 2, u64::MAX);
    let begun = cluster.now;
    let (cluster, is_killed) = (RefCell::new(cluster), RefCell::new(false));
    let mut life =
        Life { cluster: &cluster, disk: SimDisk { state: RefCell::default(), is_killed: &is_killed } };
    let running = || cluster.borrow().count(|job| job.state == AllocationState::Running);
    while running() < ALL {
        assert!(cluster.borrow().now < begun + 3_600, "{} run after an hour", running());
        life.look(false);
    }
    let ramp = cluster.borrow().now - begun;
    let mut calls = Vec::new();
    // Until the fleet has seen them all, too.
    for minute in 0..6 {
        let (from, before) = (cluster.borrow().now, cluster.borrow().tally[Happening::Called as usize]);
        while cluster.borrow().now < from + 60 {
            life.look(false);
        }
        if minute > 1 {
            calls.push(cluster.borrow().tally[Happening::Called as usize] - before);
        }
    }
    assert_eq!(running(), ALL);
    (ramp, calls)
}
