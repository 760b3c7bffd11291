//! The jobs of a simulated board: nobody searches them, so what they count is made up.

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::Counts;
use nqueens_kernel::job::Job;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_model::id::JobId;
use nqueens_model::message::EncodedJob;

/// The plan that all runs go by: of a board whose total nobody has published.
pub(crate) fn plan() -> Plan {
    Plan::with_states_per_job(BoardSize::MAX, PlanKind::Rows, 1 << 50)
}

/// A job of a small board, in place of all.
pub(crate) fn template() -> (Job, EncodedJob) {
    let plan = Plan::new(BoardSize::new(8).expect("a board"), PlanKind::Rows);
    let (job, _) = plan.weighed_jobs().next().expect("a plan has jobs");
    let encoded =
        EncodedJob { n: plan.n(), class: job.class(), bound1: job.bound1(), prefixes: job.encode() };
    (job, encoded)
}

/// What counting a job gives.
pub(crate) fn truth(job: JobId) -> Counts {
    Counts { count4: u64::from(job.number % 3), count8: u64::from(job.number) + 1, ..Counts::ZERO }
}

/// The most that it can give: leaves room for plausible lies.
pub(crate) fn counts_max(job: JobId) -> Counts {
    let truth = truth(job);
    Counts { count8: truth.count8 + LIES, ..truth }
}

/// What a liar counts: no two tell the same lie about a job, and each tells it again.
pub(crate) fn lie(job: JobId, liar: usize, is_plausible: bool) -> Counts {
    let truth = truth(job);
    let by = 1 + liar as u64 + if is_plausible { 0 } else { LIES };
    Counts { count8: truth.count8 + by, ..truth }
}

/// More than there are machines.
const LIES: u64 = 1_000;
