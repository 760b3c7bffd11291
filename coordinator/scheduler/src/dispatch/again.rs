//! Results that are to be counted by another machine, whatever the lot says.

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
}
