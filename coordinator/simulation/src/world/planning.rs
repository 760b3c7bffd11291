//! How runs are submitted: in steps, each a transaction of its own, one run at a time.

use nqueens_kernel::job::Weight;
use nqueens_kernel::plan::Fingerprint;
use nqueens_model::id::{JobId, RunId};
use nqueens_scheduler::RunSettings;

use super::{Event, World};
use crate::ask::{Ask, Asker};
use crate::job::{counts_max, plan, template};

/// Batches that the jobs of a run are stored in, at most.
const BATCHES: usize = 3;

/// What an operator wants to be counted.
#[derive(Debug)]
pub(super) struct Submission {
    settings: RunSettings,
    /// Of each job.
    estimates: Vec<u64>,
}

impl World {
    /// An operator wants another run.
    pub(super) fn submit(&mut self) {
        let random = &mut self.luck.random;
        let settings = RunSettings {
            id: RunId::from_random(random.bits()),
            plan: plan(),
            seed: random.bits(),
            priority: i32::from(random.permille(300)),
            replicate_ppm: self.scenario.replicate_ppm,
        };
        let estimate = |_| random.number(self.estimate / 2 + 1..=2 * self.estimate - 1);
        let estimates = (0..self.scenario.jobs).map(estimate).collect();
        self.submitted.push(Submission { settings, estimates });
        self.plan_next();
    }

    /// Begins to store what was submitted and is not stored, unless something is being stored.
    pub(super) fn plan_next(&mut self) {
        let Some(coordinator) = self.coordinator.as_ref().filter(|_| self.planning.is_none()) else { return };
        if coordinator.committing.is_some() {
            // What is removed below is a transaction of its own.
            return self.schedule(100, Event::Plan);
        }
        let is_missing = |submission: &Submission| self.ledger.run(submission.settings.id).is_none();
        self.planning = self.submitted.iter().position(is_missing);
        if let Some(submission) = self.planning {
            self.ledger.discard();
            self.ask(self.step_of(submission, 0), Asker::Planner { submission, step: 0 });
        }
    }

    /// A step is done, or has failed.
    pub(super) fn planned(&mut self, submission: usize, step: usize, is_done: bool) {
        let is_last = step == 1 + self.batches(submission);
        // Who submits may go away half-way.
        if is_done && !is_last && (self.luck.is_calm() || !self.luck.random.permille(20)) {
            let step = step + 1;
            let ask = self.step_of(submission, step);
            self.ask(ask, Asker::Planner { submission, step });
        } else {
            self.planning = None;
            self.schedule(if is_last { 0 } else { 2_000 }, Event::Plan);
        }
    }

    fn batches(&self, submission: usize) -> usize {
        let jobs = self.submitted[submission].estimates.len();
        jobs.div_ceil(jobs.div_ceil(BATCHES))
    }

    fn step_of(&self, submission: usize, step: usize) -> Ask {
        let Submission { settings, estimates } = &self.submitted[submission];
        let run = settings.id;
        let size = estimates.len().div_ceil(BATCHES);
        if step == 0 {
            return Ask::PlanRun(*settings);
        }
        let Some(batch) = estimates.chunks(size).nth(step - 1) else {
            let (settings, estimates) = (*settings, estimates.clone());
            let fingerprint = Fingerprint([0; 32]);
            return Ask::ActivateRun { settings, fingerprint, estimates };
        };
        let first = u32::try_from((step - 1) * size).expect("small");
        let (job, _) = template();
        let weigh = |(number, states): (u32, &u64)| {
            (job.clone(), Weight { states: *states, counts_max: counts_max(JobId { run, number }) })
        };
        Ask::PlanJobs { run, first, jobs: (first..).zip(batch).map(weigh).collect() }
    }
}
