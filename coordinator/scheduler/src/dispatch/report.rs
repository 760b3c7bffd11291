//! Results of workers: accepted, compared or refused. None of them takes anything back that was accepted.

use std::num::NonZeroU32;

use nqueens_kernel::counts::Counts;
use nqueens_model::id::{LeaseToken, WorkerId};
use nqueens_model::kernel::KernelName;
use nqueens_model::message::{JobResult, Verdict};
use nqueens_model::operator::RunState;

use super::checks::Differing;
use super::lease::LeaseEnd;
use super::ticket::Purpose;
use super::{Dispatch, Machine, Millis};

/// More states than any device visits in a microsecond.
const STATES_PER_US_MAX: u64 = 1_000_000;

/// What clocks of a worker and of its coordinator may differ by, in microseconds.
const CLOCKS_DIFFER_US: u64 = 60_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    pub worker: WorkerId,
    pub epoch: NonZeroU32,
    pub kernel: KernelName,
    pub counts: Counts,
    pub states: u64,
    /// Thread time, in microseconds.
    pub elapsed_us: u64,
    /// Processor time; thread time where it was not measured.
    pub cpu_us: u64,
}

impl Accepted {
    pub fn new(worker: WorkerId, result: &JobResult) -> Self {
        let JobResult { token, kernel, counts, states, elapsed_us, .. } = *result;
        let cpu_us = result.processor_us();
        Self { worker, epoch: token.epoch, kernel, counts, states, elapsed_us, cpu_us }
    }
}

/// What [`Dispatch::report`] made of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    pub verdict: Verdict,
    /// Whether it belongs into the ledger: it was accepted, or it is a second count that was asked for.
    pub keep: bool,
    /// Why it was not accepted; empty if it was.
    pub reason: String,
}

impl Judgement {
    fn kept(verdict: Verdict, reason: impl Into<String>) -> Self {
        Self { verdict, keep: true, reason: reason.into() }
    }

    fn passing(verdict: Verdict, reason: impl Into<String>) -> Self {
        Self { verdict, keep: false, reason: reason.into() }
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
        let job = result.token.job;
        let machine = self.machine(worker);
        let purpose = self.key.purpose(&result.token, &machine.credential);
        let run = self.runs.get(&job.run).filter(|run| run.contains(job.number));
        let (Some(purpose), Some(run)) = (purpose, run) else {
            self.note_refusal(&machine);
            return Judgement::passing(Verdict::Unknown, "this lease was not given to this credential here");
        };
        if accepted.is_none_or(|accepted| !accepted.is(worker, &result.token))
            && run.state() == RunState::Cancelled
        {
            return Judgement::passing(Verdict::Duplicate, "the run is cancelled");
        }
        match accepted {
            Some(accepted) if accepted.is(worker, &result.token) => Judgement::passing(Verdict::Accepted, ""),
            Some(_) if purpose == Purpose::First || !self.is_wanted(now, &machine, &result.token) => {
                self.end_lease(worker, &result.token, LeaseEnd::Unneeded);
                Judgement::passing(Verdict::Duplicate, "the job has its result")
            }
            _ => match self.implausible(now, worker, result, plausible) {
                Some(reason) => self.refuse(worker, result, plausible, reason),
                None => match accepted {
                    None => self.accept(worker, result),
                    Some(accepted) => self.compare(worker, result, accepted),
                },
            },
        }
    }

    /// Whether a second count of a job by a machine is waited for.
    fn is_wanted(&mut self, now: Millis, machine: &Machine, token: &LeaseToken) -> bool {
        self.worker_summary(now);
        self.checks.get(token.job).is_some_and(|check| {
            check.differing.is_none()
                && check.machine != *machine
                && !self.is_reserved(now, token.job.run, &check.machine.credential, machine)
        })
    }

    /// Why a result can't be right. Nobody counts for longer than its threads were there, or faster than any engine.
    fn implausible(
        &self,
        now: Millis,
        worker: WorkerId,
        result: &JobResult,
        plausible: bool,
    ) -> Option<&'static str> {
        let LeaseToken { job, epoch, .. } = result.token;
        let leases = self.leases.get(&job).into_iter().flatten();
        let mut own =
            leases.filter(|lease| lease.worker == worker && lease.epoch == epoch && !lease.inherited);
        let begun =
            own.next().map_or(self.runs[&job.run].begun, |lease| i64::try_from(lease.granted).unwrap_or(0));
        let wall_ms = i64::try_from(now).unwrap_or(i64::MAX).saturating_sub(begun);
        let wall_us =
            u64::try_from(wall_ms).unwrap_or(0).saturating_mul(1_000).saturating_add(CLOCKS_DIFFER_US);
        let time_max = wall_us.saturating_mul(self.workers[&worker].threads.into());
        let time = result.elapsed_us.max(result.cpu_us.unwrap_or(0));
        if !plausible {
            Some("these counts can't be right for the job")
        } else if time > time_max {
            Some("it claims more time than has passed since it was leased")
        } else if result.states / STATES_PER_US_MAX > time.saturating_add(1_000) {
            Some("no engine visits so many states in that time")
        } else {
            None
        }
    }

    /// The attempt has failed. Counts that can't be right are a proof by themselves.
    fn refuse(
        &mut self,
        worker: WorkerId,
        result: &JobResult,
        plausible: bool,
        reason: &'static str,
    ) -> Judgement {
        let JobResult { token, counts, kernel, .. } = result;
        let machine = self.machine(worker);
        self.note_refusal(&machine);
        self.end_lease(worker, token, LeaseEnd::Failed);
        if !plausible {
            let job = token.job;
            let reason = format!(
                "its worker {worker} counted {counts} for job {job} with {kernel}, which is more than there can be"
            );
            self.fail(&machine, reason);
        }
        Judgement::passing(Verdict::Implausible, reason)
    }

    fn accept(&mut self, worker: WorkerId, result: &JobResult) -> Judgement {
        let job = result.token.job;
        let accepted = Accepted::new(worker, result);
        let run = self.runs.get_mut(&job.run).expect("looked up before");
        let estimate = run.slot(job.number).estimate;
        run.accept(job.number, &accepted);
        self.failing.remove(&job);
        let machine = self.machine(worker);
        self.share(&machine).accepted += 1;
        if let Some(worker) = self.workers.get_mut(&worker) {
            worker.measure(estimate, result.states, result.elapsed_us);
            if worker.accepted == 1 {
                // Until now its speed was a guess.
                self.worker_summary = None;
            }
        }
        self.remove_leases(job);
        self.dirty.insert(job);
        self.maybe_check(job, accepted, machine);
        Judgement::kept(Verdict::Accepted, "")
    }

    /// A second count that was asked for. If it differs nobody knows which is right: the job counts for nothing until the
    /// coordinator has counted it.
    fn compare(&mut self, worker: WorkerId, result: &JobResult, accepted: &Accepted) -> Judgement {
        let job = result.token.job;
        let machine = self.machine(worker);
        self.end_lease(worker, &result.token, LeaseEnd::Unneeded);
        if accepted.counts == result.counts {
            self.agree(job, &machine);
            return Judgement::kept(Verdict::Duplicate, "the job has its result, with the same counts");
        }
        let reason = format!(
            "worker {} counted {} for job {job}, worker {worker} with {} counted {}",
            accepted.worker, accepted.counts, result.kernel, result.counts
        );
        let run = self.runs.get_mut(&job.run).expect("looked up before");
        run.withdraw(job.number, accepted);
        self.remove_leases(job);
        self.dirty.insert(job);
        self.checks.set_differing(job, Some(Differing { worker, machine, counts: result.counts }));
        Judgement::kept(Verdict::Conflict, reason)
    }
}

impl Accepted {
    fn is(&self, worker: WorkerId, token: &LeaseToken) -> bool {
        (self.worker, self.epoch) == (worker, token.epoch)
    }
}
