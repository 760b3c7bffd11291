//! What befalls the world: faults, operators, and the calm after them.

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_model::id::{JobId, RunId};
use nqueens_model::operator::RunState;

use super::super::life::Request;
use super::super::scenario::Fault;
use super::super::store::RunRow;
use super::super::worker::counts_max;
use super::{Event, World};
use crate::dispatch::RunSettings;

impl World {
    /// Once a second: what may strike as a whole.
    pub(super) fn strike_all(&mut self) {
        if self.rates.is_empty() {
            return;
        }
        self.schedule(1_000, Event::Strike);
        if self.strikes(Fault::Crash) {
            self.stop();
            let down = self.random.between(1, 20_000);
            self.schedule(down, Event::Start);
        }
        if self.strikes(Fault::Restore) {
            self.restore();
        }
        if self.strikes(Fault::Leap) {
            let leap = 1 << self.random.below(24);
            self.life.iter_mut().for_each(|life| life.leapt += leap);
        }
        if self.strikes(Fault::Operator) {
            self.operate();
        }
        for place in 0..self.workers.len() {
            self.strike(place);
        }
    }

    /// What may strike one worker.
    fn strike(&mut self, place: usize) {
        if self.strikes(Fault::Partition) {
            self.cut_off[place] = self.now + self.random.between(100, 120_000);
        }
        if self.workers[place].alive && self.strikes(Fault::Death) {
            self.workers[place].die();
            let dead = self.random.between(1, 90_000);
            self.schedule(dead, Event::Birth(place));
        }
        if self.workers[place].alive && !self.workers[place].frozen && self.strikes(Fault::Freeze) {
            self.workers[place].frozen = true;
            let asleep = self.random.between(100, 180_000);
            self.schedule(asleep, Event::Thaw(place, asleep));
        }
        if let Some(worker) = self.workers[place].id
            && self.strikes(Fault::Drain)
        {
            self.arrive_once(Request::Drain(worker));
        }
    }

    /// Copies the database, or takes the copy in its place.
    fn restore(&mut self) {
        self.stop();
        if self.random.chance(500) {
            self.store.back_up();
        } else if self.store.restore() {
            self.witness.restored(&self.store);
        }
        let down = self.random.between(1, 20_000);
        self.schedule(down, Event::Start);
    }

    fn operate(&mut self) {
        let runs: Vec<_> = self.store.runs().map(|run| run.settings.id).collect();
        if runs.is_empty() {
            return;
        }
        let run = runs[self.random.place(runs.len())];
        let request = match self.random.below(20) {
            0..6 => Request::SetRunState(run, RunState::Paused),
            6..13 => Request::SetRunState(run, RunState::Active),
            13..18 => Request::Retry(run),
            18 => Request::SetRunState(run, RunState::Cancelled),
            _ => return self.submit(),
        };
        self.arrive_once(request);
    }

    pub(super) fn submit(&mut self) {
        let settings = RunSettings {
            id: RunId::from_random(self.random.bits()),
            plan: Plan::new(BoardSize::new(8).expect("a board"), PlanKind::Rows),
            seed: self.random.bits(),
            priority: i32::from(self.random.chance(300)),
            replicate_ppm: 0,
        };
        let row = RunRow { settings, jobs: self.scenario.jobs, state: RunState::Active };
        let job = |number| {
            let counts_max = counts_max(JobId { run: settings.id, number });
            (self.random.between(self.estimate / 2 + 1, 2 * self.estimate), counts_max)
        };
        let jobs: Vec<_> = (0..self.scenario.jobs).map(job).collect();
        self.submitted.push((row, jobs.clone()));
        self.arrive_once(Request::Submit { row, jobs });
    }

    /// No more faults; whoever is dead comes back, and whatever hangs goes on.
    pub(super) fn calm_down(&mut self) {
        self.rates.clear();
        self.cut_off.fill(0);
        self.schedule(0, Event::Start);
        (0..self.workers.len()).for_each(|place| self.schedule(1, Event::Birth(place)));
        self.schedule(1_000, Event::Tidy);
    }

    pub(super) fn tidy(&mut self) {
        let runs: Vec<_> = self.store.runs().map(|run| (run.settings.id, run.state)).collect();
        for (run, state) in runs {
            if state == RunState::Paused {
                self.arrive_once(Request::SetRunState(run, RunState::Active));
            }
            if state == RunState::Active {
                self.arrive_once(Request::Retry(run));
            }
        }
        for (row, jobs) in self.submitted.clone() {
            if !self.store.runs().any(|run| run.settings.id == row.settings.id) {
                self.arrive_once(Request::Submit { row, jobs });
            }
        }
        self.schedule(10_000, Event::Tidy);
    }

    /// Whether every run has ended, and every worker knows what became of its results.
    pub(super) fn is_settled(&self) -> bool {
        let over = |run: &RunRow| matches!(run.state, RunState::Done | RunState::Cancelled);
        self.life.as_ref().is_some_and(|life| life.committing.is_none())
            && self.store.runs().count() == self.submitted.len()
            && self.store.runs().all(over)
            && self.workers.iter().all(|worker| worker.alive && worker.is_square())
    }
}
