//! How soon a liar among honest machines is found out, and how many of its lies: the real state machine, simulated workers.
//!
//! `cargo run --release -p nqueens-scheduler --example liars [-- SEEDS]` prints the table of `docs/trust.md`.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::ops::ControlFlow;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::Counts;
use nqueens_kernel::engine::Kernel;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_kernel::random::Random;
use nqueens_model::credential::Credential;
use nqueens_model::id::{Incarnation, LeaseToken, RunId, WorkerId};
use nqueens_model::message::{HeldLease, JobResult, Registration, Verdict, Wanted};
use nqueens_scheduler::{Accepted, CheckVote, Dispatch, Machine, Policy, Run, RunSettings, TrustEvent};

/// Machines, all equally fast; the first one lies.
const MACHINES: u64 = 10;

/// Jobs that a worker takes at a time.
const BATCH: usize = 20;

/// What became of one run.
#[derive(Default)]
struct Outcome {
    /// Jobs that the liar had reported when it was distrusted, if it was.
    found_after: Option<u64>,
    /// Results of its that were accepted though wrong, and those that stand at the end.
    lies: u64,
    reputation: u64,
    /// Jobs counted, by whomever.
    counted: u64,
}

fn main() {
    let seeds: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(50);
    println!("{MACHINES} machines, one of which lies; {seeds} runs each\n");
    println!(
        "| jobs | lies in | replicated | found out | after jobs (median) | lies put right | left | extra work |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (jobs, one_in) in [(100_000, 1), (100_000, 100), (100_000, 1_000)] {
        for percent in [1.0, 5.0, 20.0] {
            let outcomes: Vec<_> = (0..seeds).map(|seed| simulate(jobs, one_in, percent, seed)).collect();
            print_row(jobs, one_in, percent, &outcomes);
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "shares for people")]
fn print_row(jobs: u32, one_in: u64, percent: f64, outcomes: &[Outcome]) {
    let runs = outcomes.len() as f64;
    let mut after: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.found_after).collect();
    after.sort_unstable();
    let found = 100.0 * after.len() as f64 / runs;
    // Who is never found out takes longest.
    let median = after.get((outcomes.len() - 1) / 2).map_or_else(|| "-".to_owned(), u64::to_string);
    let sum = |of: fn(&Outcome) -> u64| outcomes.iter().map(of).sum::<u64>() as f64;
    let (lies, reputation) = (sum(|outcome| outcome.lies), sum(|outcome| outcome.reputation));
    let caught = 100.0 * (1.0 - reputation / lies.max(1.0));
    let extra = 100.0 * (sum(|outcome| outcome.counted) / runs / f64::from(jobs) - 1.0);
    println!(
        "| {jobs} | 1 of {one_in} | {percent} % | {found:.0} % | {median} | {caught:.0} % | {:.1} | {extra:.1} % |",
        reputation / runs
    );
}

/// A coordinator's ledger, as far as it matters here, and the workers.
struct World {
    dispatch: Dispatch,
    random: Random,
    one_in: u64,
    now: u64,
    accepted: HashMap<u32, Accepted>,
    held: HashMap<WorkerId, Vec<LeaseToken>>,
    reported: u64,
    outcome: Outcome,
}

fn machine(worker: WorkerId) -> Machine {
    Machine::new(Credential::shared(), &format!("machine {worker}"))
}

fn truth(number: u32) -> Counts {
    Counts::only8(u64::from(number))
}

fn simulate(jobs: u32, one_in: u64, percent: f64, seed: u64) -> Outcome {
    let mut random = Random::new(seed);
    let secret = std::array::from_fn(|_| random.bits().to_le_bytes()[0]);
    let mut dispatch = Dispatch::new(Policy::default(), Incarnation::from_random(random.bits()), secret);
    let workers: Vec<_> = (1..=MACHINES).filter_map(WorkerId::new).collect();
    for worker in &workers {
        let Machine { name, credential } = machine(*worker);
        let name = name.to_string();
        let (kernels, build) = (vec![Kernel::Reference.into()], String::new());
        let worker_of =
            Registration { instance: [0; 16], name, build, kernels, capability: None, threads: 1 };
        dispatch.add_worker(*worker, &worker_of, credential);
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1,000,000")]
    let replicate_ppm = (1e4 * percent) as u32;
    dispatch.add_run(Run::planned(&settings(random.bits(), replicate_ppm), &vec![1_000; jobs as usize]));
    let mut world = World {
        dispatch,
        random,
        one_in,
        now: 0,
        accepted: HashMap::new(),
        held: HashMap::new(),
        reported: 0,
        outcome: Outcome::default(),
    };
    while world.step(&workers).is_continue() {}
    let wrong = world.accepted.iter().filter(|(number, accepted)| accepted.counts != truth(**number));
    Outcome { reputation: wrong.count() as u64, ..world.outcome }
}

fn settings(seed: u64, replicate_ppm: u32) -> RunSettings {
    let plan = Plan::new(BoardSize::MIN, PlanKind::Rows);
    RunSettings { id: RunId::from_random(seed), plan, seed, priority: 0, replicate_ppm }
}

impl World {
    /// Every worker reports what it has and takes more; until all is counted and checked.
    fn step(&mut self, workers: &[WorkerId]) -> ControlFlow<()> {
        self.now += 1_000;
        for worker in workers {
            for token in self.held.remove(worker).unwrap_or_default() {
                if self.dispatch.distrusts(&machine(*worker)).is_none() {
                    self.report(*worker, token);
                }
            }
            self.dispatch.heartbeat(self.now, *worker, &[] as &[HeldLease]);
            let granted = self.dispatch.grant(self.now, *worker, Wanted::new(u64::MAX, BATCH));
            self.held.insert(*worker, granted);
        }
        self.dispatch.waive(self.now);
        // As the ledger would: whatever goes there is of no more interest.
        drop((self.dispatch.take_dirty(), self.dispatch.take_checks(), self.dispatch.take_standings()));
        match self.dispatch.runs().next() {
            Some(run) if run.is_complete() => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }

    fn report(&mut self, worker: WorkerId, token: LeaseToken) {
        let number = token.job.number;
        let mut counts = truth(number);
        if worker.get() == 1 {
            self.reported += 1;
            counts.count8 += u64::from(self.random.bits().is_multiple_of(self.one_in));
        }
        let kernel = Kernel::Reference.into();
        let result = JobResult {
            token,
            counts,
            parts: Vec::new(),
            kernel,
            states: 1_000,
            elapsed_us: 1,
            cpu_us: None,
        };
        let before = self.accepted.get(&number).copied();
        let judged = self.dispatch.report(self.now, worker, &result, before.as_ref(), true);
        self.outcome.counted += 1;
        if judged.verdict == Verdict::Accepted && judged.keep {
            self.outcome.lies += u64::from(counts != truth(number));
            let LeaseToken { epoch, incarnation, .. } = token;
            let (states, elapsed_us, cpu_us) = (1_000, 1, 1);
            let accepted =
                Accepted { worker, epoch, incarnation, kernel, counts, states, elapsed_us, cpu_us };
            self.accepted.insert(number, accepted);
        }
        for event in self.dispatch.take_trust_events() {
            let (suspect, all) = match event {
                TrustEvent::Distrusted { machine, .. } => (machine, false),
                TrustEvent::WrongAgain { machine } => (machine, true),
                TrustEvent::Waived { .. } | TrustEvent::Rests { .. } => continue,
            };
            self.outcome.found_after.get_or_insert(self.reported);
            self.suspect(&suspect, all, token);
        }
    }

    /// Has what a machine counted counted again.
    fn suspect(&mut self, suspect: &Machine, all: bool, token: LeaseToken) {
        let own = self.accepted.iter().filter(|(_, accepted)| machine(accepted.worker) == *suspect);
        let results = own.map(|(number, accepted)| {
            let Accepted { worker, kernel, counts, .. } = *accepted;
            let (epoch, machine): (NonZeroU32, _) = (accepted.epoch, suspect.clone());
            let job = nqueens_model::id::JobId { number: *number, ..token.job };
            (job, CheckVote { worker, machine, kernel, epoch, counts })
        });
        self.dispatch.suspect(suspect, results.collect(), all);
    }
}
