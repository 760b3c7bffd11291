//! Results: accepted, compared or refused.

use std::num::NonZeroU32;

use nqueens_kernel::counts::Counts;
use nqueens_model::id::{Incarnation, LeaseToken, WorkerId};
use nqueens_model::kernel::KernelName;
use nqueens_model::message::{JobResult, Verdict};

use super::checks::{CheckOutcome, CheckVote};
use super::lease::LeaseEnd;
use super::{Dispatch, JobState, Millis, RunState};

/// The accepted result of a job, from the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Who counted.
    pub worker: WorkerId,
    /// Under which lease.
    pub epoch: NonZeroU32,
    /// And whose.
    pub incarnation: Incarnation,
    /// By which engine.
    pub kernel: KernelName,
    /// What came out.
    pub counts: Counts,
    /// States visited.
    pub states: u64,
    /// Thread time, in microseconds.
    pub elapsed_us: u64,
    /// Processor time; thread time where it was not measured.
    pub cpu_us: u64,
}
/// What [`Dispatch::report`] made of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// What became of it.
    pub verdict: Verdict,
    /// Whether it is news that belongs into the ledger.
    pub keep: bool,
    /// Whether the result that stood for the job before stands no longer.
    pub supersedes: bool,
    /// Why it was not accepted; empty if it was.
    pub reason: String,
}

impl Judgement {
    fn kept(verdict: Verdict, reason: impl Into<String>) -> Self {
        Self { verdict, keep: true, supersedes: false, reason: reason.into() }
    }

    fn passing(verdict: Verdict, reason: impl Into<String>) -> Self {
        Self { verdict, keep: false, supersedes: false, reason: reason.into() }
    }
}

impl Dispatch {
    /// Judges a result. `accepted` is the result that stands for the job already, if one does; `plausible` says
    /// whether the counts can be right for the job.
    pub fn report(
        &mut self,
        now: Millis,
        worker: WorkerId,
        result: &JobResult,
        accepted: Option<&Accepted>,
        plausible: bool,
    ) -> Judgement {
        let LeaseToken { job, epoch, incarnation } = result.token;
        let Some(run) = self.runs.get_mut(&job.run).filter(|run| run.contains(job.number)) else {
            return Judgement::passing(Verdict::Unknown, "no such run or job here");
        };
        let slot = run.slot(job.number);
        assert_eq!(slot.state == JobState::Done, accepted.is_some() && slot.state != JobState::Quarantined);
        if incarnation == self.incarnation && epoch.get() > slot.epoch {
            return Judgement::passing(Verdict::Unknown, "this lease was never given out");
        }
        if let Some(accepted) = accepted {
            return self.compare(worker, result, accepted);
        }
        if slot.state == JobState::Quarantined || run.state() == RunState::Cancelled {
            return Judgement::kept(Verdict::SetAside, "the job is quarantined or its run is cancelled");
        }
        if !plausible {
            if self.holds(worker, &result.token) {
                self.note_failure(now, worker, job);
            }
            self.end_lease(worker, &result.token, LeaseEnd::Failed);
            self.fail_implausible(worker, result);
            return Judgement::kept(Verdict::Implausible, "these counts can't be right for the job");
        }
        let run = self.runs.get_mut(&job.run).expect("looked up before");
        run.accept(job.number, result);
        self.failed_by.remove(&job);
        if let Some(worker) = self.workers.get_mut(&worker) {
            worker.measure(slot.estimate, result.states, result.elapsed_us);
            if worker.accepted == 1 {
                // Until now its speed was a guess.
                self.worker_summary = None;
            }
        }
        self.remove_leases(job);
        self.dirty.insert(job);
        let vote = CheckVote::reported(worker, result, self.machine(worker));
        if vote.machine.is_own() {
            self.confirm(job);
        } else {
            self.trust.recover(&vote.machine);
            self.maybe_check(job, vote);
        }
        Judgement::kept(Verdict::Accepted, "")
    }

    /// A result of a job that has one already. Only somebody who was asked can end a check.
    fn compare(&mut self, worker: WorkerId, result: &JobResult, accepted: &Accepted) -> Judgement {
        let LeaseToken { job, epoch, incarnation } = result.token;
        let own = (accepted.worker, accepted.epoch, accepted.incarnation) == (worker, epoch, incarnation);
        if own && accepted.counts == result.counts {
            return Judgement::passing(Verdict::Accepted, "");
        }
        let vote = CheckVote::reported(worker, result, self.machine(worker));
        if vote.machine.is_own() {
            return self.decide(result, accepted, vote);
        }
        if self.machine(accepted.worker).is_own() {
            self.end_lease(worker, &result.token, LeaseEnd::Unneeded);
            return self.overrule(result, accepted, &vote);
        }
        let asked = incarnation == self.incarnation
            && self.checks.get(job).is_some_and(|check| {
                check.was_asked(worker, &result.token) && check.is_new_to(&vote.machine)
            });
        self.end_lease(worker, &result.token, LeaseEnd::Unneeded);
        let is_done = self.runs[&job.run].slot(job.number).state == JobState::Done;
        let votes = self.checks.get(job).map_or(&[][..], |check| &check.votes);
        let mut alike = votes.iter().filter(|other| other.counts == result.counts);
        let decides = alike.any(|other| self.has_weight(&other.machine.credential, &vote.machine.credential));
        if asked && !is_done && decides {
            return self.settle(result, vote);
        }
        if accepted.counts != result.counts {
            return self.dispute(result, accepted, vote, asked);
        }
        if asked && is_done {
            self.conclude_check(job, CheckOutcome::Agreed, vote);
        } else if asked && let Some(check) = self.checks.get_mut(job) {
            check.votes.push(vote);
        }
        Judgement::kept(Verdict::Duplicate, "the job was done already, with the same counts")
    }

    /// The coordinator has counted a job that has a result: its count is final.
    fn decide(&mut self, result: &JobResult, accepted: &Accepted, vote: CheckVote) -> Judgement {
        let job = result.token.job;
        let run = self.runs.get_mut(&job.run).expect("looked up before");
        let is_done = run.slot(job.number).state == JobState::Done;
        if is_done && accepted.counts == result.counts {
            // A check may not have been asked for: then this is one.
            self.open_check(job, CheckVote::accepted(accepted, self.machine(accepted.worker)));
            self.conclude_check(job, CheckOutcome::Agreed, vote);
            return Judgement::kept(Verdict::Duplicate, "the job was done already, with the same counts");
        }
        if is_done {
            run.withdraw(job.number, accepted);
            self.open_check(job, CheckVote::accepted(accepted, self.machine(accepted.worker)));
        }
        self.settle(result, vote)
    }

    /// A job that the coordinator has counted: whoever counts otherwise is wrong.
    fn overrule(&mut self, result: &JobResult, accepted: &Accepted, vote: &CheckVote) -> Judgement {
        if accepted.counts == result.counts {
            return Judgement::kept(Verdict::Duplicate, "the job was done already, with the same counts");
        }
        self.fail_against(result.token.job, vote, accepted.counts, "the coordinator");
        Judgement::kept(Verdict::Conflict, "the coordinator counted this job itself, and its count stands")
    }

    /// Two machines agree on a disputed job, or the coordinator has counted it: what they counted stands, and what stood before is void.
    fn settle(&mut self, result: &JobResult, vote: CheckVote) -> Judgement {
        let job = result.token.job;
        self.runs.get_mut(&job.run).expect("looked up before").accept(job.number, result);
        self.dirty.insert(job);
        self.conclude_check(job, CheckOutcome::Settled, vote);
        Judgement { supersedes: true, ..Judgement::kept(Verdict::Accepted, "") }
    }

    /// A second result differs from the accepted one: nobody knows which is right, so the job counts for nothing
    /// until two machines agree, or somebody has looked.
    fn dispute(
        &mut self,
        result: &JobResult,
        accepted: &Accepted,
        vote: CheckVote,
        asked: bool,
    ) -> Judgement {
        let job = result.token.job;
        let reason = format!(
            "worker {} counted {:?} for job {job}, worker {} with {} counted {:?}",
            accepted.worker, accepted.counts, vote.worker, vote.kernel, result.counts
        );
        let run = self.runs.get_mut(&job.run).expect("looked up before");
        let is_news = run.slot(job.number).state == JobState::Done;
        if is_news {
            run.withdraw(job.number, accepted);
            self.dirty.insert(job);
            self.open_check(job, CheckVote::accepted(accepted, self.machine(accepted.worker)));
        }
        if (is_news || asked)
            && let Some(check) = self.checks.get_mut(job)
        {
            check.votes.push(vote);
        }
        Judgement::kept(Verdict::Conflict, reason)
    }
}
