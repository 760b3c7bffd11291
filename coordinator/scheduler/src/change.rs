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
    pub job: JobId,
    /// Number of the part; `None` if all of the job was counted.
    pub part: Option<u8>,
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
        run: RunId,
        first: u32,
        jobs: Vec<(Job, Weight)>,
    },
    RunActivated {
        run: RunId,
        jobs: u32,
        fingerprint: Fingerprint,
    },
    /// A run does something else. If it had a total, that is withdrawn.
    RunState {
        run: RunId,
        /// Any state but done.
        state: RunState,
        reason: Option<String>,
    },
    RunDone(RunId, Outcome),
    Results(Vec<JudgedResult>),
    Voided(Vec<JobId>),
    /// Jobs stand elsewhere than before.
    Jobs(Vec<ChangedJob>),
    /// Second counts were opened (`None`) or ended so, in this order.
    Checks(Vec<(JobId, Option<CheckOutcome>)>),
    Recounted(Recount),
    /// The coordinator has spent so many microseconds of processor time on a run.
    RecountTime(RunId, u64),
    Reputations(Vec<(Machine, MachineReputation)>),
}
