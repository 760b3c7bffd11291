//! What the coordinator counts itself, where it counts, and what follows: its count is final.
//!
//! | what | why | limit |
//! |---|---|---|
//! | disputes | a second count differs, and nobody is distrusted by a vote | none |
//! | jobs that are drawn | to find wrong results, whoever colludes | 2 % of the run |
//! | second counts that are open a lease after the last job | the run waits for nothing else | 2 % of the run |
//! | jobs that failed [`failures_max`](super::Policy::failures_max) times on workers, or whose leases ran out [`lapses_max`](super::Policy::lapses_max) times | it may be the job or the workers | none |
//!
//! Which jobs are drawn follows from the key of the database: the same share of all jobs of a run, whenever they are counted. Nobody
//! but the coordinator changes that: a drawn job whose result comes late, or that can't be recounted, keeps its place. Until all
//! are recounted that a total needs, others make it no surer.

use nqueens_kernel::counts::Counts;
use nqueens_kernel::job::Job;
use nqueens_model::id::{JobId, WorkerId};
use nqueens_model::operator::recounts_wanted;

use super::checks::CheckOutcome;
use super::job::{OWN, WHOLE};
use super::review::LEASES_LATE;
use super::ticket::Lot;
use super::{Accepted, Dispatch, JobState, Millis, Run, Sums};

/// Recounts take up to one part in so many of the time that a run was counted, ...
const SHARE: u128 = 50;

/// ... or this, in microseconds, if that is more, ...
const TIME_MIN_US: u128 = 10_000_000;

/// ... and those that a run needs that has no other total to compare with take up to this: without them it proves little.
const TIME_WANTED_US: u128 = 600_000_000;

/// The run of a board whose count is published waits no longer for recounts, in milliseconds: its total is compared anyway.
const WAIT_PUBLISHED_MS: Millis = 10_000;

/// Parts of a job that are recounted, at most.
const ROUNDS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    pub job: JobId,
    pub why: Why,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    Dispute,
    /// It was drawn: a part, if it has several, by this number.
    Drawn(u64),
    Left,
    Failing,
}

/// What the coordinator found of a job that has a result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finding<'a> {
    pub(crate) whole: bool,
    pub(crate) drawn: bool,
    pub(crate) counts: Counts,
    /// What the accepted result says of the same.
    pub(crate) said: Counts,
    /// And second counts of it, whether they differ or agree.
    pub(crate) seconds: &'a [(WorkerId, Counts)],
}

impl Dispatch {
    pub fn task(&self, now: Millis) -> Option<Task> {
        if !self.policy.arbiter {
            return None;
        }
        let task = |why| move |job| Task { job, why };
        let mut disputed = self.checks.disputed().map(|(job, _)| job);
        let mut failing = self.failing.iter().copied();
        let of_run = |counted| {
            let is_open = |run: &&Run| run.state().is_open() && run.is_counted() == counted;
            let mut runs: Vec<_> = self.runs.values().filter(is_open).collect();
            // In turn.
            runs.sort_by_key(|run| run.sums().recounts_us);
            runs.into_iter().find_map(|run| self.task_of(now, run))
        };
        let dispute = disputed.find(|job| self.is_open(job)).map(task(Why::Dispute));
        let failing = || failing.find(|job| self.is_open(job)).map(task(Why::Failing));
        // A run waits for nothing else at its end, or for these jobs. Of others there is always something to recount.
        dispute.or_else(|| of_run(true)).or_else(failing).or_else(|| of_run(false))
    }

    /// Whether a second count differs that came after the coordinator began to count: perhaps in another part.
    pub(crate) fn has_new_dispute(&self, job: JobId, seconds: &[(WorkerId, Counts)]) -> bool {
        let differing = self.checks.get(job).and_then(|check| check.differing.as_ref());
        differing.is_some_and(|differing| seconds.iter().all(|(worker, _)| *worker != differing.worker))
    }

    fn is_open(&self, job: &JobId) -> bool {
        !self.given_up.contains(job) && self.runs.get(&job.run).is_some_and(|run| run.state().is_open())
    }

    /// What a run waits for, or gains by.
    fn task_of(&self, now: Millis, run: &Run) -> Option<Task> {
        let Sums { accepted, recounts_us, .. } = run.sums();
        let time_us = (accepted.cpu_us / SHARE).max(TIME_MIN_US);
        let has_time = *recounts_us < time_us;
        // Others leave the time to those that a total needs, or late results would not be recounted.
        let are_missing = !self.is_published(run) && self.recounts_left(run) > 0;
        let more_us = if are_missing { TIME_WANTED_US - TIME_MIN_US } else { 0 };
        if *recounts_us >= time_us + more_us {
            return None;
        }
        let wanted = self.recounts_drawn(run);
        let max = if has_time && !run.is_counted() { 2 * wanted.max(run.recounts_begun) } else { wanted };
        self.drawn(run, max).or_else(|| {
            let is_late = self.has_waited(now, run.id(), LEASES_LATE) || self.is_deserted(now, run.id());
            if !is_late || self.has_given_up(now, run) {
                return None;
            }
            let is_modest = |job: &JobId| self.is_open(job) && !self.unhelped.contains(job);
            let left = || self.checks.of(run.id()).map(|(job, _)| job).filter(is_modest);
            // Workers take the first, and the coordinator the last.
            let job = left().rfind(|job| !self.leases.contains_key(job)).or_else(|| left().next_back())?;
            Some(Task { job, why: Why::Left })
        })
    }

    /// Each job of a run once a round, in the order in which they are drawn. What the coordinator counted for another reason is
    /// right, and not drawn any more: others come in its place.
    fn places(run: &Run) -> impl Iterator<Item = (usize, u32)> {
        let order = &run.recounts;
        let places = (0..order.len() * ROUNDS).map(|place| (place / order.len(), order[place % order.len()]));
        places.filter(|(round, number)| match run.slot(*number).recounted {
            OWN => false,
            WHOLE => *round == 0,
            _ => true,
        })
    }

    /// The next job that is drawn and has its result, of so many.
    fn drawn(&self, run: &Run, max: usize) -> Option<Task> {
        let job_of = |number| JobId { run: run.id(), number };
        let mut due = Self::places(run).take(max).filter(|(round, number)| {
            let (slot, job) = (run.slot(*number), job_of(*number));
            let is_due = slot.state == JobState::Done && usize::from(slot.recounted) == *round;
            is_due && self.is_open(&job) && !self.undrawn.contains(&job)
        });
        let (round, number) = due.next()?;
        let job = job_of(number);
        let part = self.key.lot(Lot::Recounts, job).wrapping_add(round as u64);
        Some(Task { job, why: Why::Drawn(part) })
    }

    fn recounts_drawn(&self, run: &Run) -> usize {
        recounts_wanted(self.policy.recounts_min, run.sums().differing) as usize
    }

    /// Recounts that a total needs and that are not made: of those that are drawn first, whenever their results come. A job needs no
    /// more of them than it has parts.
    pub(crate) fn recounts_left(&self, run: &Run) -> u32 {
        let left = Self::places(run).take(self.recounts_drawn(run)).filter(|(round, number)| {
            let slot = run.slot(*number);
            usize::from(slot.recounted) <= *round && (*round as u64) < Job::parts_wanted(slot.estimate)
        });
        u32::try_from(left.count()).expect("as many as are wanted at most")
    }

    /// Recounts of a run that there are to be before it has a total, as far as its parts go round.
    pub fn recounts_wanted(&self, run: &Run) -> u32 {
        let Sums { differing, checks, .. } = *run.sums();
        let wanted = recounts_wanted(self.policy.recounts_min, differing);
        if self.policy.arbiter { wanted.max(checks.recounted + self.recounts_left(run)) } else { 0 }
    }

    /// Time that a run may wait for its recounts once all jobs are done, as far as those that are made can tell.
    pub fn recounts_wait_ms(&self, run: &Run) -> Millis {
        let Sums { checks, recounts_us, .. } = run.sums();
        let wanted = if run.recounts.is_empty() { 0 } else { self.recounts_wanted(run) };
        let left = wanted.saturating_sub(checks.recounted);
        let wait_us = recounts_us / u128::from(checks.recounted.max(1)) * u128::from(left);
        let wait_ms = Millis::try_from(wait_us.min(TIME_WANTED_US) / 1_000).expect("ten minutes at most");
        if self.is_published(run) { wait_ms.min(WAIT_PUBLISHED_MS) } else { wait_ms }
    }

    /// Whether a run can come to its end: all jobs are done, the coordinator has nothing left to count of it, and nobody makes
    /// its second counts.
    pub fn is_over(&self, now: Millis, run: &Run) -> bool {
        let is_made = |job| self.leases.contains_key(&job);
        let since = self.counted_since.get(&run.id()).copied().unwrap_or(now);
        let is_impatient = self.is_published(run) && now.saturating_sub(since) > WAIT_PUBLISHED_MS;
        run.is_counted()
            && (!self.policy.arbiter || is_impatient || self.task_of(now, run).is_none())
            && (run.sums().checks.open == 0
                || (self.has_given_up(now, run) || self.is_deserted(now, run.id()))
                    && !self.checks.of(run.id()).any(|(job, _)| is_made(job)))
    }

    /// The coordinator has counted a job that failed on workers.
    pub(crate) fn accept_own(&mut self, job: JobId, own: &Accepted) {
        let run = self.runs.get_mut(&job.run).expect("looked up before");
        run.accept(job.number, own);
        run.note_recount(job.number, OWN);
        self.remove_leases(job);
        self.failing.remove(&job);
        self.dirty.insert(job);
    }

    /// The coordinator has counted a job that has a result, or a part of it. Whoever says otherwise is out, those who have
    /// confirmed a wrong result included. Returns whether the accepted result is wrong.
    pub(crate) fn decide(&mut self, job: JobId, accepted: &Accepted, finding: &Finding<'_>) -> bool {
        let Finding { whole, drawn, counts, said, seconds } = *finding;
        let differing = self.checks.get(job).and_then(|check| check.differing.clone());
        let is_wrong = said != counts;
        if is_wrong {
            let run = self.runs.get_mut(&job.run).expect("looked up before");
            run.sums.differing += 1;
            if run.slot(job.number).state == JobState::Done {
                run.withdraw(job.number, accepted);
            }
        } else {
            if differing.is_some() {
                self.uphold(job, accepted);
            }
            let run = self.runs.get_mut(&job.run).expect("looked up before");
            let recounted = match (whole, run.slot(job.number).recounted) {
                (true, _) if drawn => WHOLE,
                (true, before) => before.max(OWN),
                (false, before) if drawn && before < OWN => before + 1,
                (false, before) => before,
            };
            run.note_recount(job.number, recounted);
            self.trust.change(&self.workers[&accepted.worker].machine.clone()).passed += 1;
            if whole {
                let was_disputed = differing.is_some();
                let outcome = if was_disputed { CheckOutcome::Settled } else { CheckOutcome::Agreed };
                self.close_check(job, outcome);
            }
        }
        self.dirty.insert(job);
        if is_wrong {
            self.fail_against(job, accepted.worker, said, counts);
        }
        // One may have come while the coordinator counted.
        let differing = differing
            .filter(|differing| whole && !seconds.iter().any(|(worker, _)| *worker == differing.worker));
        let differing = differing.map(|differing| (differing.worker, differing.counts));
        for (worker, second) in seconds.iter().copied().chain(differing) {
            if second != counts {
                self.fail_against(job, worker, second, counts);
            }
        }
        is_wrong
    }

    /// The coordinator's own result takes the place of a wrong one.
    pub(crate) fn replace(&mut self, job: JobId, own: &Accepted) {
        self.close_check(job, CheckOutcome::Settled);
        self.accept_own(job, own);
    }

    fn fail_against(&mut self, job: JobId, worker: WorkerId, said: Counts, right: Counts) {
        let reason = format!("its worker {worker} counted {said} for job {job}, and the coordinator {right}");
        self.fail(&self.machine(worker), reason);
    }

    /// The coordinator can't count a job. One that has failed elsewhere, too, is quarantined. One that was drawn, or whose second
    /// count nobody makes, is counted all the same if something has to be decided.
    pub fn give_up(&mut self, job: JobId, why: Why) {
        if matches!(why, Why::Drawn(_) | Why::Left) {
            let of_kind = if why == Why::Left { &mut self.unhelped } else { &mut self.undrawn };
            of_kind.insert(job);
            return;
        }
        self.given_up.insert(job);
        let is_failing = self.failing.remove(&job);
        let Some(run) = self.runs.get_mut(&job.run).filter(|run| run.contains(job.number)) else { return };
        if is_failing && matches!(run.slot(job.number).state, JobState::Ready | JobState::Leased) {
            run.enter(job.number, JobState::Quarantined);
            self.remove_leases(job);
            self.dirty.insert(job);
        }
    }
}
