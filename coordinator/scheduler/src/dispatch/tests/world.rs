//! A run of a few jobs, and workers of three credentials.

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::Counts;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_model::message::JobResult;

use super::super::*;
use super::registration;

pub(super) const JOBS: u32 = 12;

pub(super) fn run_id() -> RunId {
    RunId::from_random(7)
}

pub(super) fn settings(replicate_ppm: u32) -> RunSettings {
    let plan = Plan::new(BoardSize::new(8).unwrap(), PlanKind::Rows);
    RunSettings { id: run_id(), plan, seed: 42, priority: 0, replicate_ppm }
}

/// What job `number` counts, by an honest worker.
pub(super) fn truth(number: u32) -> Counts {
    Counts { count4: u64::from(number % 3), count8: u64::from(number) + 1, ..Counts::ZERO }
}

pub(super) fn result(token: LeaseToken, counts: Counts) -> JobResult {
    let kernel = "reference".parse().expect("a name");
    JobResult { token, counts, parts: Vec::new(), kernel, states: 10, elapsed_us: 5, cpu_us: None }
}

pub(super) struct World {
    pub(super) dispatch: Dispatch,
    pub(super) slots: Vec<JobStatus>,
}

impl World {
    pub(super) fn new(replicate_ppm: u32) -> Self {
        let policy = Policy {
            beat_ms: 25,
            lease_ms: 100,
            stall_ms: 300,
            second_lease_ms: 50,
            grace_ms: 200,
            failures_max: 3,
            lapses_max: 4,
            ..Policy::default()
        };
        let slots: Vec<_> = (0..JOBS).map(|number| JobStatus::planned(1_000 + u64::from(number))).collect();
        let mut dispatch = Dispatch::new(policy, &[7; 32]);
        for (number, credential) in ["lab", "lab", "club"].into_iter().enumerate() {
            let worker = WorkerId::new(number as u64 + 1).unwrap();
            let credential = Credential::stored(credential).unwrap();
            dispatch.add_worker(worker, &registration(&format!("m{number}"), "reference", 2), credential);
        }
        dispatch.add_run(Run::new(
            &settings(replicate_ppm),
            RunState::Active,
            slots.clone(),
            Sums::default(),
        ));
        Self { dispatch, slots }
    }
}
