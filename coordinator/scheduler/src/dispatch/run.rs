//! One run's jobs: their states, the order in which they leave, and the sums of done jobs.

use std::collections::{BTreeSet, VecDeque};
use std::num::NonZeroU32;

use nqueens_kernel::counts::Totals;
use nqueens_kernel::plan::Plan;
use nqueens_model::id::RunId;
use nqueens_model::operator::{CheckCounts, RunState};

use super::job::{JobState, JobStatus};
use super::lease::LeaseEnd;
use super::order::shuffled;
use super::sums::Sums;
use super::{Accepted, CheckOutcome, Policy};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunSettings {
    pub id: RunId,
    pub plan: Plan,
    /// Fixes the order of the jobs.
    pub seed: u64,
    /// Among active runs, higher goes first.
    pub priority: i32,
    /// This share of its results is counted twice, in millionths; 0 for none.
    pub replicate_ppm: u32,
}

/// Jobs too large for whoever asks that are passed over in one search for the next.
const PASSED_MAX: usize = 64;

#[derive(Debug)]
pub struct Run {
    pub(super) settings: RunSettings,
    pub(crate) state: RunState,
    slots: Vec<JobStatus>,
    /// All job numbers, in the order in which they leave.
    order: Vec<u32>,
    /// How much of the order has left.
    next: usize,
    /// Jobs that came back: they leave again first.
    returned: VecDeque<u32>,
    pub(crate) sums: Sums,
    /// Jobs whose latest second count stayed unmade.
    unmade: BTreeSet<u32>,
    /// When it was submitted, by the clock of this life of the coordinator; negative if that was before.
    pub(super) begun: i64,
    /// The order in which its jobs are recounted; empty if none are.
    pub(super) recounts: Vec<u32>,
    /// Places in that order, round after round, up to the last that was recounted.
    pub(super) recounts_begun: usize,
    /// Accepted results that were withdrawn since all was last read from the database, ...
    withdrawn: u64,
    /// ... which was so often.
    pub(super) rereads: u64,
}

/// The results that a run has accepted, told apart from those at another time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Basis {
    found: Totals,
    withdrawn: u64,
    rereads: u64,
}

impl Run {
    /// A run from the database, with its jobs' slots; `stored` has the sums that these do not tell: of the accepted results of
    /// done jobs, of processor time, and of second counts.
    pub fn new(settings: &RunSettings, state: RunState, slots: Vec<JobStatus>, stored: Sums) -> Self {
        let jobs = u32::try_from(slots.len()).expect("a plan stays under a few million jobs");
        let Sums { accepted, cpu_us, checks, recounts_us, differing, .. } = stored;
        let checks = CheckCounts { confirmed: 0, recounted: 0, ..checks };
        let mut sums = Sums { accepted, cpu_us, checks, recounts_us, differing, ..Sums::default() };
        for slot in &slots {
            sums.estimate += u128::from(slot.estimate);
            sums.enter(slot);
        }
        let (order, returned) = (shuffled(jobs, settings.seed), VecDeque::new());
        Self {
            settings: *settings,
            state,
            slots,
            order,
            next: 0,
            returned,
            sums,
            unmade: BTreeSet::new(),
            begun: 0,
            recounts: Vec::new(),
            recounts_begun: 0,
            withdrawn: 0,
            rereads: 0,
        }
    }

    /// A run that was just planned: all its jobs, of this much estimated work, are ready.
    pub fn planned(settings: &RunSettings, estimates: &[u64]) -> Self {
        let slots = estimates.iter().copied().map(JobStatus::planned).collect();
        Self::new(settings, RunState::Active, slots, Sums::default())
    }

    /// The same, which was submitted at this time by the clock of this life of the coordinator.
    #[must_use]
    pub fn begun_at(self, begun: i64) -> Self {
        Self { begun, ..self }
    }

    /// The same, with the jobs whose latest second count stayed unmade.
    #[must_use]
    pub fn with_unmade(self, unmade: BTreeSet<u32>) -> Self {
        Self { unmade, ..self }
    }

    pub(crate) fn is_unmade(&self, number: u32) -> bool {
        self.unmade.contains(&number)
    }

    pub(super) fn set_order_of_recounts(&mut self, order: Vec<u32>) {
        let is_recounted = |number: &u32| self.slot(*number).recounts() > 0;
        self.recounts_begun = order.iter().rposition(is_recounted).map_or(0, |place| place + 1);
        self.recounts = order;
    }

    /// Whether a job is open and has failed so often that it may be the job.
    pub(super) fn is_failing(&self, number: u32, policy: &Policy) -> bool {
        let slot = &self.slots[number as usize];
        matches!(slot.state, JobState::Ready | JobState::Leased) && slot.is_failing(policy)
    }

    pub fn id(&self) -> RunId {
        self.settings.id
    }

    pub fn plan(&self) -> &Plan {
        &self.settings.plan
    }

    pub fn state(&self) -> RunState {
        self.state
    }

    /// The jobs in plan order, in at most this many groups of equal size (the last may be smaller): for each group,
    /// the number of jobs in each [`JobState`].
    pub fn job_state_histogram(&self, groups_max: usize) -> Vec<[u32; 4]> {
        let size = self.slots.len().div_ceil(groups_max.max(1)).max(1);
        let count = |group: &[JobStatus]| {
            let mut states = [0; 4];
            for slot in group {
                states[slot.state as usize] += 1;
            }
            states
        };
        self.slots.chunks(size).map(count).collect()
    }

    /// Estimated work that can be leased now, in states.
    pub fn estimate_ready(&self) -> u128 {
        let Sums { estimate, estimate_done, estimate_leased, estimate_quarantined, .. } = self.sums;
        if self.state == RunState::Active {
            estimate - estimate_done - estimate_leased - estimate_quarantined
        } else {
            0
        }
    }

    pub fn sums(&self) -> &Sums {
        &self.sums
    }

    /// What a total of the run is made of at present. Of a complete run another one means that a result was withdrawn.
    pub fn basis(&self) -> Basis {
        Basis { found: self.sums.accepted.found, withdrawn: self.withdrawn, rereads: self.rereads }
    }

    pub fn jobs(&self) -> u32 {
        u32::try_from(self.slots.len()).expect("checked when it was made")
    }

    /// Whether every job has its accepted result, and no two differ.
    pub fn is_counted(&self) -> bool {
        self.sums.done == self.jobs()
    }

    /// Whether jobs are counted twice: then leases give away neither that nor which of both they are.
    pub(super) fn is_replicated(&self) -> bool {
        self.settings.replicate_ppm > 0
    }

    /// A second count of a job was opened, or ended so.
    pub(super) fn note_check(&mut self, number: u32, outcome: Option<CheckOutcome>) {
        let checks = &mut self.sums.checks;
        if let Some(outcome) = outcome {
            checks.open -= 1;
            outcome.add_to(checks, 1);
            if outcome == CheckOutcome::Unmade {
                self.unmade.insert(number);
            }
        } else {
            checks.open += 1;
            checks.unmade -= u32::from(self.unmade.remove(&number));
        }
    }

    pub fn contains(&self, number: u32) -> bool {
        number < self.jobs()
    }

    pub fn slot(&self, number: u32) -> JobStatus {
        self.slots[number as usize]
    }

    pub fn estimate(&self, number: u32) -> u64 {
        self.slot(number).estimate
    }

    fn has_ready(&mut self) -> bool {
        if self.state != RunState::Active {
            return false;
        }
        // Jobs may have been done, late, while they waited here.
        while self.returned.front().is_some_and(|number| self.slot(*number).state != JobState::Ready) {
            self.returned.pop_front();
        }
        while self.order.get(self.next).is_some_and(|number| self.slot(*number).state != JobState::Ready) {
            self.next += 1;
        }
        !self.returned.is_empty() || self.next < self.order.len()
    }

    /// Leases the next ready job of at most `size_max` estimated states: its number. Larger ones keep their places; not
    /// more than [`PASSED_MAX`] are passed over.
    pub(super) fn lease_next(&mut self, size_max: u64) -> Option<u32> {
        if !self.has_ready() {
            return None;
        }
        let fits = |number: &u32| {
            let slot = self.slot(*number);
            slot.state == JobState::Ready && slot.estimate <= size_max
        };
        let number = if let Some(at) = self.returned.iter().take(PASSED_MAX).position(fits) {
            self.returned.remove(at).expect("just found")
        } else {
            let at = self.next + self.order[self.next..].iter().take(PASSED_MAX).position(fits)?;
            self.order[self.next..=at].rotate_right(1);
            self.order[self.next]
        };
        self.enter(number, JobState::Leased);
        Some(number)
    }

    /// The number of a job's next lease: above all before it, and above `least`.
    pub(super) fn next_epoch(&mut self, number: u32, least: u32) -> NonZeroU32 {
        let slot = &mut self.slots[number as usize];
        slot.epoch = slot.epoch.max(least).checked_add(1).expect("a job is not leased so often");
        NonZeroU32::new(slot.epoch).expect("counted up")
    }

    /// Gives a ready job back to the holder of its latest lease; false if it is no longer ready.
    pub(super) fn revive(&mut self, number: u32) -> bool {
        let ready = self.slot(number).state == JobState::Ready;
        if ready {
            self.enter(number, JobState::Leased);
        }
        ready
    }

    pub(super) fn blame(&mut self, number: u32, outcome: LeaseEnd) {
        let slot = &mut self.slots[number as usize];
        match outcome {
            LeaseEnd::Unneeded => {}
            LeaseEnd::Failed => slot.failures = slot.failures.saturating_add(1),
            LeaseEnd::Lapsed => slot.lapses = slot.lapses.saturating_add(1),
            LeaseEnd::Aged => slot.lapses = u16::MAX,
        }
    }

    /// The last lease of a job ended without a result. Where the coordinator can try the job, failures of workers prove
    /// nothing against it. Returns whether it should.
    pub(super) fn reopen(&mut self, number: u32, outcome: LeaseEnd, policy: &Policy) -> bool {
        self.blame(number, outcome);
        let is_failing = self.slot(number).is_failing(policy);
        if is_failing && !policy.arbiter {
            self.enter(number, JobState::Quarantined);
        } else {
            self.enter(number, JobState::Ready);
            self.returned.push_back(number);
        }
        is_failing && policy.arbiter
    }

    /// The result of a done job was counted alike under another credential, or that counts no more.
    pub(super) fn confirm(&mut self, number: u32, confirmed: bool) {
        self.change(number, |slot| slot.confirmed = confirmed);
    }

    /// The coordinator has recounted so many parts of a job, or all of it, to the same, or has counted it itself.
    pub(super) fn note_recount(&mut self, number: u32, recounted: u8) {
        self.change(number, |slot| slot.recounted = recounted);
        if let Some(place) = self.recounts.iter().position(|other| *other == number) {
            // None for a job that was not drawn.
            let rounds = self.slot(number).recounts() as usize;
            let begun = rounds.checked_sub(1).map_or(0, |round| self.recounts.len() * round + place + 1);
            self.recounts_begun = self.recounts_begun.max(begun);
        }
    }

    fn change(&mut self, number: u32, change: impl FnOnce(&mut JobStatus)) {
        let slot = &mut self.slots[number as usize];
        assert_eq!(slot.state, JobState::Done, "only what stands is confirmed");
        self.sums.leave(slot);
        change(slot);
        self.sums.enter(slot);
    }

    pub(super) fn accept(&mut self, number: u32, accepted: &Accepted) {
        self.enter(number, JobState::Done);
        let Accepted { counts, states, elapsed_us, cpu_us, .. } = *accepted;
        let added = self.sums.accepted.add(self.estimate(number), counts, states, elapsed_us, cpu_us);
        added.expect("128 bits hold any board's solutions");
    }

    /// Takes a done job's result out again: it is disputed.
    pub(super) fn withdraw(&mut self, number: u32, accepted: &Accepted) {
        self.enter(number, JobState::Quarantined);
        self.subtract(number, accepted);
    }

    /// Opens a done or disputed job again: its result counts for nothing.
    pub(super) fn take_back(&mut self, number: u32, accepted: &Accepted) {
        let counted = self.slot(number).state == JobState::Done;
        self.enter(number, JobState::Ready);
        self.returned.push_back(number);
        if counted {
            self.subtract(number, accepted);
        }
    }

    fn subtract(&mut self, number: u32, accepted: &Accepted) {
        let estimate = self.estimate(number);
        self.sums.accepted.subtract(estimate, accepted);
        self.withdrawn += 1;
    }

    /// Opens the quarantined jobs again, their failures forgotten; returns their numbers.
    pub(super) fn retry_quarantined(&mut self) -> Vec<u32> {
        let quarantined = |number: &u32| self.slot(*number).state == JobState::Quarantined;
        let numbers: Vec<_> = (0..self.jobs()).filter(quarantined).collect();
        for number in &numbers {
            self.enter(*number, JobState::Ready);
            let slot = &mut self.slots[*number as usize];
            (slot.failures, slot.lapses) = (0, 0);
            self.returned.push_back(*number);
        }
        numbers
    }

    /// Moves a job from one state to the next, and the sums with it.
    pub(super) fn enter(&mut self, number: u32, state: JobState) {
        let slot = &mut self.slots[number as usize];
        assert_ne!(slot.state, state, "job {number} changes its state");
        self.sums.leave(slot);
        (slot.state, slot.confirmed, slot.recounted) = (state, false, 0);
        self.sums.enter(slot);
    }
}
