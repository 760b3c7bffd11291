//! Who gets which job.

use nqueens_kernel::plan::PlanKind;
use nqueens_model::credential::Credential;
use nqueens_model::id::{JobId, LeaseToken, RunId, WorkerId};
use nqueens_model::kernel::{Family, KernelName};
use nqueens_model::message::Wanted;

use super::checks::OpenCheck;
use super::lease::ActiveLease;
use super::{Dispatch, JobState, Lot, Millis, Run, RunState, Worker};

/// In runs whose jobs are counted twice epochs leap, for an epoch of 2 would give a second lease away: the first by up to
/// this, the others by up to [`LEAP_MAX`], so that none can be told from a first one.
const FIRST_LEAP_MAX: u64 = 1 << 24;

/// Leaves room for millions of leases of a job.
const LEAP_MAX: u64 = 1 << 8;

/// Checks of one machine's results in one run that are looked at for one lease: most suit whoever asks.
const LOOKED_AT_MAX: usize = 64;

impl Dispatch {
    /// Leases jobs of the active runs to a worker, in their runs' random order, until they come to the work that it wants.
    /// Jobs that are to be counted a second time go first, in places that don't tell.
    ///
    /// Runs of higher priority come first; among equals the one with the least work out. A worker never has more than
    /// half of its share of what is left, so that all end together; and when nothing is ready, a worker without a job
    /// helps with the oldest job that is out.
    pub fn grant(&mut self, now: Millis, worker: WorkerId, wanted: Wanted) -> Vec<LeaseToken> {
        let mut granted = Vec::new();
        let may = |worker: &&Worker| !worker.draining && self.distrusts(&worker.machine).is_none();
        let Some(Worker { machine, .. }) = self.workers.get(&worker).filter(may) else { return granted };
        let jobs_max = self.trust.jobs_max(now, machine, wanted.jobs);
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
        granted.sort_by_cached_key(|token| {
            let replicated = self.runs[&token.job.run].is_replicated();
            replicated.then(|| self.draw(Lot::Order, token.job, token.epoch.get()))
        });
        if granted.is_empty() && wanted.states > 0 && jobs_max > 0 && self.workers[&worker].jobs.is_empty() {
            granted.extend(self.lease_straggler(now, worker, size_max));
        }
        for (turn, token) in granted.iter().enumerate() {
            let leases = self.leases.get_mut(&token.job).expect("just leased");
            leases.last_mut().expect("just leased").turn = turn;
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
        let at_least = u64::from(worker.jobs.len() < worker.threads as usize);
        u64::try_from(share).unwrap_or(u64::MAX).max(at_least)
    }

    /// Leases a job that another machine has counted and this one has not.
    fn lease_check(&mut self, now: Millis, worker: WorkerId, size_max: u64) -> Option<LeaseToken> {
        let job = self.check_for(now, worker, size_max)?;
        let first = self.checks.get(job)?.votes[0].epoch.get();
        let mut leap = self.leap(job);
        // The other image than the first time.
        if self.runs[&job.run].is_replicated()
            && (self.runs[&job.run].slot(job.number).epoch + leap) % 2 == first % 2
        {
            leap += 1;
        }
        let token = self.lease(now, worker, job, leap);
        self.checks.get_mut(job)?.ask(worker, token.epoch);
        Some(token)
    }

    /// A check that suits a worker, of the first of each machine's in each active run.
    fn check_for(&self, now: Millis, worker: WorkerId, size_max: u64) -> Option<JobId> {
        let machine = &self.workers[&worker].machine;
        let active: Vec<_> = self.runs.values().filter(|run| run.state() == RunState::Active).collect();
        let owners = self.checks.waiting().iter().filter(|(owner, _)| *owner != machine);
        let mut jobs = owners.flat_map(|(owner, jobs)| {
            let is_reserved = self.is_reserved(&owner.credential, worker);
            // What others leave undone is the coordinator's, where it counts: somebody who waits for it confirms nothing.
            let is_left = move |run: RunId| !self.policy.arbiter && self.is_late(now, run);
            // Somebody of another credential has voted on a dispute already.
            let is_dispute = |job: &JobId| self.checks.get(*job).is_some_and(OpenCheck::is_dispute);
            let all = active.iter().flat_map(|run| {
                let job = |number| JobId { run: run.id(), number };
                jobs.range(job(0)..job(run.jobs())).take(LOOKED_AT_MAX)
            });
            all.filter(move |job| !is_reserved || is_left(job.run) || is_dispute(job))
        });
        jobs.find(|job| self.estimate(**job) <= size_max && self.suits(**job, worker)).copied()
    }

    /// Whether checks of results of a credential are kept for others than this worker: for those of another credential, if
    /// there are any. Somebody who lies under one name would confirm it under the next.
    fn is_reserved(&self, credential: &Credential, worker: WorkerId) -> bool {
        let summary = self.worker_summary.as_ref();
        self.workers[&worker].machine.credential == *credential
            && summary.is_some_and(|summary| summary.has_other_credential(credential))
    }

    /// Whether a run has waited for nothing but its checks for longer than a lease: who could make them does not.
    pub(super) fn is_late(&self, now: Millis, run: RunId) -> bool {
        let since = self.counted_since.get(&run);
        since.is_some_and(|since| now.saturating_sub(*since) > self.policy.lease_ms)
    }

    /// Whether a worker can check a job. As long as there is other work, checks are kept for machines that count by an
    /// independent engine, if there is one that could. Disputes are for those whose vote can decide them.
    fn suits(&self, job: JobId, worker: WorkerId) -> bool {
        let (Some(check), run) = (self.checks.get(job), &self.runs[&job.run]) else { return false };
        let Worker { machine, engines, .. } = &self.workers[&worker];
        if !check.is_new_to(machine) {
            return false;
        }
        if check.is_dispute() {
            let credential = &machine.credential;
            let has_weight = check.is_new_under(credential) && self.trust.has_standing(credential);
            return !self.policy.arbiter || has_weight;
        }
        let first = &check.votes[0];
        let family = self.family(first.worker, first.kernel, run.plan().kind());
        let is_independent = || engines.are_independent_of(family, run.plan().kind());
        let has_independent = || {
            self.worker_summary.as_ref().is_some_and(|worker_summary| {
                worker_summary.has_independent_engine(check, family, run.plan().kind())
            })
        };
        run.estimate_ready() == 0 || is_independent() || !has_independent()
    }

    /// The family of what a worker has counted by an engine, in runs of a plan.
    fn family(&self, worker: WorkerId, kernel: KernelName, plan: PlanKind) -> Family {
        let worker = self.workers.get(&worker);
        worker.map_or_else(|| kernel.family(None, plan), |worker| worker.engines.family(kernel, plan))
    }

    /// Whether a worker is trusted, and was heard of in the time of a lease; whoever may be there still since an earlier
    /// life of the coordinator has that time from its start.
    pub(super) fn may_count(&self, now: Millis, worker: &Worker) -> bool {
        self.may_count_within(now, worker, self.policy.lease_ms)
    }

    /// The same, of a worker that was heard of in another time.
    pub(super) fn may_count_within(&self, now: Millis, worker: &Worker, time: Millis) -> bool {
        let seen = worker.seen.or(self.expects_earlier.then_some(0));
        let heard = seen.is_some_and(|seen| now.saturating_sub(seen) <= time);
        let is_free = !worker.draining && !worker.machine.is_own();
        heard && is_free && self.distrusts(&worker.machine).is_none()
    }

    /// How far a job's next epoch is from its latest.
    pub(super) fn leap(&self, job: JobId) -> u32 {
        let run = &self.runs[&job.run];
        if !run.is_replicated() {
            return 1;
        }
        let latest = run.slot(job.number).epoch;
        let leap_max = if latest == 0 { FIRST_LEAP_MAX } else { LEAP_MAX };
        let drawn = self.draw(Lot::Leap, job, latest) % leap_max;
        1 + u32::try_from(drawn).expect("less than 2^24")
    }

    fn lease_ready(&mut self, now: Millis, worker: WorkerId, size_max: u64) -> Option<LeaseToken> {
        let ready = self.runs.values_mut().filter(|run| run.estimate_ready() > 0);
        let mut runs: Vec<_> = ready.collect();
        runs.sort_by_key(|run| (std::cmp::Reverse(run.priority()), run.sums().estimate_leased));
        let next = |run: &mut Run| Some(JobId { run: run.id(), number: run.lease_next(size_max)? });
        let job = runs.into_iter().find_map(next)?;
        Some(self.lease(now, worker, job, self.leap(job)))
    }

    fn lease_straggler(&mut self, now: Millis, worker: WorkerId, size_max: u64) -> Option<LeaseToken> {
        let active = |job: &JobId| {
            let run = &self.runs[&job.run];
            let slot = run.slot(job.number);
            run.state() == RunState::Active && slot.state == JobState::Leased && slot.estimate <= size_max
        };
        let old = self.leases.iter().filter_map(|(job, leases)| match leases[..] {
            [only] if only.worker != worker && active(job) => Some((only.granted, *job)),
            _ => None,
        });
        let (granted, job) = old.min()?;
        if now.saturating_sub(granted) < self.policy.second_lease_ms {
            return None;
        }
        Some(self.lease(now, worker, job, self.leap(job)))
    }

    fn lease(&mut self, now: Millis, worker: WorkerId, job: JobId, leap: u32) -> LeaseToken {
        let incarnation = self.incarnation;
        let run = self.runs.get_mut(&job.run).expect("its job is leased");
        let epoch = run.next_epoch(job.number, leap);
        let (expires, stalls) = self.deadlines(now, worker);
        let (granted, turn, states, inherited) = (now, 0, 0, false);
        let lease =
            ActiveLease { epoch, incarnation, worker, granted, turn, expires, stalls, states, inherited };
        self.insert_lease(job, lease);
        self.dirty.insert(job);
        lease.token(job)
    }
}
