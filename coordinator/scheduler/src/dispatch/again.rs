//! Results that are to be counted again, whatever the lot says.

use nqueens_model::id::JobId;

use super::checks::CheckVote;
use super::{Accepted, Dispatch, JobState, Run};

impl Dispatch {
    /// Asks for a second count of the accepted result of a job, unless its run has ended or one is asked for.
    pub(crate) fn check_again(&mut self, job: JobId, accepted: &Accepted) {
        let is_open = |run: &Run| run.state().is_open() && run.slot(job.number).state == JobState::Done;
        if self.runs.get(&job.run).is_some_and(is_open) {
            self.open_check(job, CheckVote::accepted(accepted, self.machine(accepted.worker)));
        }
    }

    /// The accepted result of a job is wrong in part: whoever counted it has failed a check, and the job is open again.
    pub(crate) fn refute(&mut self, job: JobId, accepted: &Accepted, reason: &str) {
        let Accepted { worker, kernel, .. } = *accepted;
        let reason = format!("its worker {worker} counted job {job} with {kernel}: {reason}");
        self.take_back(&[(job, *accepted)]);
        self.fail(&self.machine(worker), reason);
    }
}
