//! The changes that a transaction makes to the ledger.

use nqueens_kernel::job::{Job, Weight};
use nqueens_kernel::plan::Fingerprint;
use nqueens_model::credential::Credential;
use nqueens_model::id::{JobId, RunId, WorkerId};
use nqueens_model::kernel::KernelName;
use nqueens_model::message::{JobResult, Registration, Session, Verdict};
use nqueens_model::operator::{Outcome, RunState};

use crate::dispatch::{ChangedJob, CheckOutcome, Machine, MachineReputation, RunSettings};

/// A result with what became of it.
pub type JudgedResult = (WorkerId, JobResult, Verdict);

/// The coordinator has counted a job, or a part of one, that has a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recount {
    /// The job.
    pub job: JobId,
    /// Number of the part; `None` if all of the job was counted.
    pub part: Option<u8>,
    /// The engine that counted.
    pub kernel: KernelName,
    /// Whether the accepted result has the same counts.
    pub agrees: bool,
    /// Processor time, in microseconds.
    pub elapsed_us: u64,
}

/// One change of the ledger. Those of a transaction are persisted in their order, all or none.
#[derive(Clone, Debug)]
pub enum Change {
    /// A worker's process has registered, under this credential; its id is one that the ledger does not have.
    Worker(Session, Registration, Credential),
    /// A run is being planned: its jobs follow.
    RunPlanned(RunSettings),
    /// Jobs of a run that is being planned, from number `first` on.
    JobsPlanned {
        /// The run.
        run: RunId,
        /// Number of the first of them.
        first: u32,
        /// What they are, and what they weigh.
        jobs: Vec<(Job, Weight)>,
    },
    /// All jobs of a run are planned.
    RunActivated {
        /// The run.
        run: RunId,
        /// How many they are.
        jobs: u32,
        /// Of the plan.
        fingerprint: Fingerprint,
    },
    /// A run does something else. If it had a total, that is withdrawn.
    RunState {
        /// The run.
        run: RunId,
        /// Any state but done.
        state: RunState,
        /// Why it failed, if it did.
        reason: Option<String>,
    },
    /// A run is done.
    RunDone(RunId, Outcome),
    /// Results to keep.
    Results(Vec<JudgedResult>),
    /// The accepted results of these jobs stand no longer.
    Voided(Vec<JobId>),
    /// Jobs stand elsewhere than before.
    Jobs(Vec<ChangedJob>),
    /// Second counts were opened (`None`) or ended so, in this order.
    Checks(Vec<(JobId, Option<CheckOutcome>)>),
    /// The coordinator has counted something itself.
    Recounted(Recount),
    /// The coordinator has spent so many microseconds of processor time on a run.
    RecountTime(RunId, u64),
    /// What machines have shown.
    Reputations(Vec<(Machine, MachineReputation)>),
}
