//! Who gets which job.

use nqueens_model::credential::Credential;
use nqueens_model::id::{JobId, LeaseToken, RunId, WorkerId};
use nqueens_model::message::Wanted;

use super::lease::ActiveLease;
use super::review::LEASES_RESERVED;
use super::ticket::{Lot, Purpose};
use super::{Dispatch, JobState, Machine, Millis, Run, RunState, Worker};

const LEASES_OF_A_JOB: usize = 8;

/// Checks of one machine's results in one run that are looked at for one lease: most suit whoever asks.
const LOOKED_AT_MAX: usize = 64;

impl Dispatch {
    /// Leases jobs of the active runs to a worker, in their runs' random order, until they come to the work that it wants.
    /// Jobs that are to be counted a second time go first.
    ///
    /// Runs of higher priority come first; among equals the one with the least work out. A worker never has more than
    /// half of its share of what is left, so that all end together; and when nothing is ready, a worker without a job
    /// helps with the oldest job that is out.
    pub fn grant(&mut self, now: Millis, worker: WorkerId, wanted: Wanted) -> Vec<LeaseToken> {
        let mut granted = Vec::new();
        // A call of one that has left was given up, and came late: nobody would get its answer.
        let is_there = |worker: &Worker| !worker.draining && !worker.left;
        let may = |worker: &&Worker| is_there(worker) && self.distrusts(&worker.machine).is_none();
        let Some(Worker { machine, .. }) = self.workers.get(&worker).filter(may) else { return granted };
        let jobs_max = wanted.jobs.min(self.leases_left(machine));
        let size_max = wanted.job_states_max;
        let mut open = wanted.states.min(self.fair_share(now, worker));
        let mut has_checks = true;
        while open > 0 && granted.len() < jobs_max {
            let check = has_checks.then(|| self.lease_check(now, worker, size_max)).flatten();
            // Those that did not suit are not all looked at again, until nothing else is left.
            has_checks = check.is_some();
            let token = check.or_else(|| self.lease_ready(now, worker, size_max));
            let Some(token) = token.or_else(|| self.lease_check(now, worker, size_max)) else { break };
            open = open.saturating_sub(self.estimate(token.job));
            granted.push(token);
        }
        if granted.is_empty() && wanted.states > 0 && jobs_max > 0 && self.workers[&worker].jobs.is_empty() {
            granted.extend(self.lease_straggler(now, worker, size_max));
        }
        granted
    }

    /// What a worker may take so that all end together: half of the work that is ready or out, times its part of the speed
    /// of all, less what it has. At least one job as long as it has fewer jobs than threads; everything if it is alone.
    fn fair_share(&mut self, now: Millis, id: WorkerId) -> u64 {
        let Some(part) = self.part_of_speed(now, id) else { return u64::MAX };
        let worker = &self.workers[&id];
        let active = self.runs.values().filter(|run| run.state() == RunState::Active);
        let open: u128 = active.map(|run| run.estimate_ready() + run.sums().estimate_leased).sum();
        let open = open + self.checks.waiting_work().1;
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a guess"
        )]
        let share = (open as f64 * part / 2.0) as u128;
        let share = share.saturating_sub(worker.estimate);
        let at_least = u64::from(worker.jobs.len() < worker.threads_believed() as usize);
        u64::try_from(share).unwrap_or(u64::MAX).max(at_least)
    }

    /// Leases a job that another machine has counted and this one has not.
    fn lease_check(&mut self, now: Millis, worker: WorkerId, size_max: u64) -> Option<LeaseToken> {
        let job = self.check_for(now, worker, size_max)?;
        Some(self.lease(now, worker, job, Purpose::Second))
    }

    /// A second count that suits a worker, of the first of each machine's in each active run that waits for them.
    fn check_for(&self, now: Millis, worker: WorkerId, size_max: u64) -> Option<JobId> {
        let machine = &self.workers[&worker].machine;
        let active = |run: &&Run| run.state() == RunState::Active && !self.has_given_up(now, run);
        let active: Vec<_> = self.runs.values().filter(active).collect();
        let owners = self.checks.waiting.iter().filter(|(owner, _)| *owner != machine);
        let mut jobs = owners.flat_map(|(owner, jobs)| {
            let is_free = |run: &&&Run| !self.is_reserved(now, run.id(), &owner.credential, machine);
            active.iter().filter(is_free).flat_map(|run| {
                let job = |number| JobId { run: run.id(), number };
                jobs.range(job(0)..job(run.jobs())).take(LOOKED_AT_MAX)
            })
        });
        jobs.find(|job| self.estimate(**job) <= size_max).copied()
    }

    /// Whether second counts of results of a credential are kept from a machine: they are for another credential, as long as
    /// one is there and [`LEASES_RESERVED`] have not passed. Somebody who lies under one name would confirm it under the next.
    pub(super) fn is_reserved(
        &self,
        now: Millis,
        run: RunId,
        credential: &Credential,
        machine: &Machine,
    ) -> bool {
        let summary = self.worker_summary.as_ref();
        machine.credential == *credential
            && summary.is_some_and(|summary| summary.has_other_credential(credential))
            && !self.has_waited(now, run, LEASES_RESERVED)
    }

    /// Whether a worker is trusted, and was heard of in the time of a lease; whoever may be there still since an earlier
    /// life of the coordinator has that time from its start.
    pub(super) fn may_count(&self, now: Millis, worker: &Worker) -> bool {
        self.may_count_within(now, worker, self.policy.lease_ms)
    }

    /// The same, of a worker that was heard of in another time.
    pub(super) fn may_count_within(&self, now: Millis, worker: &Worker, time: Millis) -> bool {
        let seen = worker.seen.or(self.earlier_seen);
        let heard = seen.is_some_and(|seen| now.saturating_sub(seen) <= time);
        let is_free = !worker.draining && !worker.machine.credential.is_own();
        heard && is_free && self.distrusts(&worker.machine).is_none()
    }

    fn lease_ready(&mut self, now: Millis, worker: WorkerId, size_max: u64) -> Option<LeaseToken> {
        let ready = self.runs.values_mut().filter(|run| run.estimate_ready() > 0);
        let mut runs: Vec<_> = ready.collect();
        runs.sort_by_key(|run| (std::cmp::Reverse(run.settings.priority), run.sums().estimate_leased));
        let next = |run: &mut Run| Some(JobId { run: run.id(), number: run.lease_next(size_max)? });
        let job = runs.into_iter().find_map(next)?;
        Some(self.lease(now, worker, job, Purpose::First))
    }

    /// Leases a job once more that has been out for too long: the holder may never finish it. So may others under the same
    /// credential, if there is another.
    fn lease_straggler(&mut self, now: Millis, worker: WorkerId, size_max: u64) -> Option<LeaseToken> {
        let of_thread = self.worker_summary(now).speed_of_thread;
        let machine = &self.workers[&worker].machine;
        let active = |job: &JobId| {
            let run = &self.runs[&job.run];
            let slot = run.slot(job.number);
            run.state() == RunState::Active && slot.state == JobState::Leased && slot.estimate <= size_max
        };
        let has_others = self
            .worker_summary
            .as_ref()
            .is_some_and(|summary| summary.has_other_credential(&machine.credential));
        let is_own = |lease: &ActiveLease| {
            let holder = &self.workers[&lease.worker].machine;
            lease.worker == worker || has_others && holder.credential == machine.credential
        };
        let late = self.leases.iter().filter_map(|(job, leases)| {
            let free = leases.len() < LEASES_OF_A_JOB && !leases.iter().any(is_own) && active(job);
            let latest = leases.iter().map(|lease| lease.granted).max().filter(|_| free)?;
            let least = self.policy.second_lease_ms.saturating_mul(leases.len() as u64);
            let due = |lease: &ActiveLease| {
                lease.granted.saturating_add(self.patience(now, *job, lease, of_thread))
            };
            let is_late = latest.saturating_add(least) <= now && leases.iter().all(|lease| due(lease) <= now);
            is_late.then_some((leases.len(), latest, *job))
        });
        let (.., job) = late.min()?;
        Some(self.lease(now, worker, job, Purpose::First))
    }

    /// How long a holder that is there is waited for: twice the time that it needs for the job and for all that it got before.
    /// Without results of its own it is taken to be as fast as others are.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates"
    )]
    fn patience(&self, now: Millis, job: JobId, lease: &ActiveLease, of_thread: u64) -> Millis {
        let holder = &self.workers[&lease.worker];
        let silence = now.saturating_sub(holder.seen.unwrap_or(lease.granted));
        if holder.left || silence > self.silence_max() {
            return 0;
        }
        let speed = holder.estimated_states_per_thread_second().unwrap_or(of_thread as f64);
        let states = lease.ahead as f64 / f64::from(holder.threads) + self.estimate(job) as f64;
        (2e3 * states / speed) as Millis
    }

    fn lease(&mut self, now: Millis, worker: WorkerId, job: JobId, purpose: Purpose) -> LeaseToken {
        // The first lease would be told by its number, and a second count by any other.
        let least = u32::try_from(self.key.lot(Lot::Epoch, job) >> 48).expect("16 bits");
        let run = self.runs.get_mut(&job.run).expect("its job is leased");
        let epoch = run.next_epoch(job.number, least);
        let token = self.key.token(purpose, job, epoch, &self.workers[&worker].machine.credential);
        let (expires, stalls, ends) = self.deadlines(now, worker);
        let (granted, ahead, states, inherited) = (now, 0, 0, false);
        let ticket = token.ticket;
        let lease =
            ActiveLease { epoch, ticket, worker, granted, ahead, expires, stalls, ends, states, inherited };
        self.insert_lease(job, lease);
        self.dirty.insert(job);
        token
    }
}
