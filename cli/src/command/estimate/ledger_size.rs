//! From a plan to the size of its ledger.

use nqueens_kernel::job::Job;
use nqueens_kernel::plan::Plan;

pub(super) struct LedgerSize {
    pub(super) jobs: u64,
    /// Size of the database when all is counted.
    pub(super) bytes: u64,
}

impl LedgerSize {
    /// A database without a job.
    const EMPTY_BYTES: u64 = 45_000;
    /// What a job and its result take, less the job's own encoding: 133 to 141 bytes in databases of 12,000 to 54,000
    /// jobs of the plans `rows`, `border` and one with the encoding of `colours`.
    const JOB_BYTES: u64 = 140;
    /// The counts of a part of a large job, as text.
    const PART_BYTES: u64 = 20;

    /// Of a plan; makes its jobs, some seconds' work for the largest boards.
    pub(super) fn of(plan: &Plan) -> Self {
        let empty = Self { jobs: 0, bytes: Self::EMPTY_BYTES };
        let wanted = Job::parts_wanted(plan.states_per_job());
        plan.jobs().fold(empty, |Self { jobs, bytes }, job| {
            let parts = job.row_sets().map_or(wanted, |range| wanted.min(range.end - range.start));
            let parts_bytes = if parts > 1 { parts * Self::PART_BYTES } else { 0 };
            Self { jobs: jobs + 1, bytes: bytes + Self::JOB_BYTES + job.encode().len() as u64 + parts_bytes }
        })
    }
}
