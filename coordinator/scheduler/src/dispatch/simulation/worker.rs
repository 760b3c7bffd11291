//! A worker's process, as far as the coordinator can tell: what it holds, what it has counted, and what it says when.

use std::collections::VecDeque;

use nqueens_kernel::counts::Counts;
use nqueens_kernel::engine::Kernel;
use nqueens_model::id::{JobId, LeaseToken, WorkerId};
use nqueens_model::message::{
    BATCH_MAX, HeldLease, JobResult, ResultAck, ReturnedLease, SyncRequest, Verdict,
};

use super::life::{Answer, Leased, Request};
use super::scenario::Random;
use crate::dispatch::Millis;

/// A call without an answer for so long has failed.
const CALL_TIMEOUT: Millis = 30_000;

/// Results wait so long for company.
const FLUSH: Millis = 250;

/// What counting a job gives.
pub(super) fn truth(job: JobId) -> Counts {
    Counts { count4: u64::from(job.number % 3), count8: u64::from(job.number) + 1, ..Counts::ZERO }
}

/// The most that it can give.
pub(super) fn counts_max(job: JobId) -> Counts {
    Counts { count2: 0, count4: 9, count8: truth(job).count8 + 5, solutions: 0 }
}

/// What goes wrong in a worker by itself: how often, in times of 100,000 jobs, or how often it has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mishaps {
    pub(super) failures: u64,
}

/// A job that it has to count.
#[derive(Clone, Copy, Debug)]
struct Task {
    token: LeaseToken,
    estimate: u64,
}

/// A call on its way, with how much of what it says is to be dropped when it is answered.
#[derive(Clone, Copy, Debug)]
struct Call {
    number: u64,
    give_up: Millis,
    returned: usize,
}

#[derive(Debug)]
pub(super) struct Worker {
    /// Drawn at the start of the process.
    pub(super) instance: u64,
    pub(super) alive: bool,
    pub(super) frozen: bool,
    pub(super) id: Option<WorkerId>,
    threads: u32,
    /// Estimated states a millisecond.
    rate: u64,
    tasks: VecDeque<Task>,
    /// When the first task is counted.
    ready_at: Millis,
    outbox: VecDeque<JobResult>,
    /// So many of them, from the front, are in the spool.
    stored: usize,
    /// What would survive the process; `None` for one that keeps nothing.
    spool: Option<Vec<JobResult>>,
    returned: Vec<ReturnedLease>,
    leaving: bool,
    call: Option<Call>,
    calls: u64,
    next_sync: Millis,
    /// When it acts next; earlier alarms are void.
    pub(super) alarm: Millis,
}

impl Worker {
    pub(super) fn new(random: &mut Random) -> Self {
        let spool = random.chance(800).then(Vec::new);
        let mut worker = Self {
            instance: 0,
            alive: false,
            frozen: false,
            id: None,
            threads: 1 + u32::from(random.chance(300)) * 3,
            // Some are a hundred times slower than others.
            rate: random.between(10, 200) / if random.chance(50) { 10 } else { 1 },
            tasks: VecDeque::new(),
            ready_at: 0,
            outbox: VecDeque::new(),
            stored: 0,
            spool,
            returned: Vec::new(),
            leaving: false,
            call: None,
            calls: 0,
            next_sync: 0,
            alarm: 0,
        };
        worker.be_born(0, random.bits());
        worker
    }

    pub(super) fn rate(&self) -> u64 {
        self.rate
    }

    /// A process begins, with what is in the spool.
    pub(super) fn be_born(&mut self, now: Millis, instance: u64) {
        (self.alive, self.frozen, self.leaving, self.id) = (true, false, false, None);
        self.instance = instance;
        self.outbox = self.spool.iter().flatten().copied().collect();
        self.stored = self.outbox.len();
        (self.next_sync, self.alarm) = (now, now);
    }

    pub(super) fn die(&mut self) {
        (self.alive, self.call) = (false, None);
        self.tasks.clear();
        self.returned.clear();
    }

    /// Goes on after so long as if nothing had been.
    pub(super) fn thaw(&mut self, slept: Millis) {
        self.frozen = false;
        self.ready_at += slept;
    }

    /// Whether it has nothing left to report.
    pub(super) fn is_square(&self) -> bool {
        self.outbox.is_empty()
    }

    /// Counts what is due, and says what is to be said, if it is time: a call's number and what it asks.
    pub(super) fn act(
        &mut self,
        now: Millis,
        sync_ms: Millis,
        rates: Mishaps,
        mishaps: &mut Mishaps,
        random: &mut Random,
    ) -> Option<(u64, Request)> {
        while let Some(task) = self.tasks.front().copied().filter(|_| self.ready_at <= now) {
            self.tasks.pop_front();
            self.count(task, rates, mishaps, random);
            self.ready_at += self.tasks.front().map_or(0, |next| self.duration(next));
            self.next_sync = self.next_sync.min(now + FLUSH);
        }
        if self.call.is_some_and(|call| call.give_up <= now) {
            self.call = None;
            self.next_sync = now + random.between(10, 5_000);
        }
        if self.leaving && self.tasks.is_empty() && self.outbox.is_empty() && self.returned.is_empty() {
            self.die();
            return None;
        }
        let said = (self.call.is_none() && self.next_sync <= now).then(|| self.speak(now, sync_ms));
        let sync = self.call.map_or(self.next_sync, |call| call.give_up);
        self.alarm = if self.tasks.is_empty() { sync } else { sync.min(self.ready_at) }.max(now + 1);
        said
    }

    fn duration(&self, task: &Task) -> Millis {
        task.estimate / self.rate + 1
    }

    fn count(&mut self, task: Task, rates: Mishaps, mishaps: &mut Mishaps, random: &mut Random) {
        let Task { token, estimate } = task;
        if random.below(100_000) < rates.failures {
            mishaps.failures += 1;
            let failure = Some("told to".to_owned());
            self.returned.push(ReturnedLease { token, failure });
            return;
        }
        let counts = truth(token.job);
        let elapsed_us = self.duration(&task) * 1_000;
        self.outbox.push_back(JobResult {
            token,
            counts,
            kernel: Kernel::Reference.into(),
            states: estimate,
            elapsed_us,
        });
    }

    fn speak(&mut self, now: Millis, sync_ms: Millis) -> (u64, Request) {
        self.calls += 1;
        self.next_sync = now + sync_ms;
        let returned = self.returned.len().min(BATCH_MAX);
        self.call = Some(Call { number: self.calls, give_up: now + CALL_TIMEOUT, returned });
        let Some(worker) = self.id else {
            return (self.calls, Request::Register { instance: self.instance, threads: self.threads });
        };
        if let Some(spool) = &mut self.spool {
            spool.extend(self.outbox.range(self.stored..));
            self.stored = self.outbox.len();
        }
        let begun = |place: usize, task: &Task| {
            let left = self.ready_at.saturating_sub(now) * self.rate;
            if place == 0 { task.estimate.saturating_sub(left) } else { 0 }
        };
        let tasks = self.tasks.iter().enumerate();
        let held = tasks.map(|(place, task)| HeldLease { token: task.token, states: begun(place, task) });
        let later = self.outbox.iter().skip(BATCH_MAX).map(|result| result.token);
        let later = later.chain(self.returned.iter().skip(BATCH_MAX).map(|returned| returned.token));
        let held = held.chain(later.map(|token| HeldLease { token, states: 0 })).collect();
        let at_hand: u64 = self.tasks.iter().map(|task| task.estimate).sum();
        let wanted = if self.leaving { 0 } else { (2 * sync_ms * self.rate).max(1) };
        let wanted_states = wanted.saturating_sub(at_hand);
        let sync = SyncRequest {
            worker,
            instance: None,
            results: self.outbox.iter().take(BATCH_MAX).copied().collect(),
            held,
            returned: self.returned[..returned].to_vec(),
            wanted_states,
            wanted_jobs: if wanted_states > 0 { 100 } else { 0 },
        };
        (self.calls, Request::Sync { instance: self.instance, sync })
    }

    /// Takes an answer, unless it is to a call that was given up.
    pub(super) fn hear(&mut self, now: Millis, number: u64, answer: Answer) {
        let Some(call) = self.call.filter(|call| call.number == number) else { return };
        self.call = None;
        match answer {
            Answer::Registered(id) => (self.id, self.next_sync) = (Some(id), now),
            Answer::Unregistered => (self.id, self.next_sync) = (None, now),
            Answer::Unavailable => self.next_sync = now + 1_000,
            Answer::Done => unreachable!("no answer to a worker"),
            Answer::Synced { acks, leases, revoked, drain } => {
                self.acknowledge(&acks);
                self.returned.drain(..call.returned);
                self.revoke(&revoked);
                self.take(now, &leases);
                if drain {
                    self.leave();
                }
            }
        }
        self.alarm = now;
    }

    fn acknowledge(&mut self, acks: &[ResultAck]) {
        let sent = self.outbox.iter().take(acks.len()).map(|result| result.token);
        assert!(sent.eq(acks.iter().map(|ack| ack.token)), "one answer to each result, in their order");
        self.outbox.drain(..acks.len());
        self.stored = self.stored.saturating_sub(acks.len());
        if let Some(spool) = self.spool.as_mut().filter(|_| self.outbox.is_empty()) {
            spool.clear();
        }
    }

    fn revoke(&mut self, tokens: &[LeaseToken]) {
        let first = self.tasks.front().map(|task| task.token);
        self.tasks.retain(|task| !tokens.contains(&task.token));
        if self.tasks.front().map(|task| task.token) != first {
            self.ready_at = self.alarm + self.tasks.front().map_or(0, |next| self.duration(next));
        }
    }

    fn take(&mut self, now: Millis, leases: &[Leased]) {
        if self.leaving {
            self.returned
                .extend(leases.iter().map(|lease| ReturnedLease { token: lease.token, failure: None }));
            return;
        }
        for lease in leases {
            let task = Task { token: lease.token, estimate: lease.estimate };
            if self.tasks.is_empty() {
                self.ready_at = now + self.duration(&task);
            }
            self.tasks.push_back(task);
        }
    }

    /// Takes no more work, gives back what has not begun, and goes once the rest is said.
    fn leave(&mut self) {
        self.leaving = true;
        let waiting = self.tasks.drain(1.min(self.tasks.len())..);
        self.returned.extend(waiting.map(|task| ReturnedLease { token: task.token, failure: None }));
    }

    /// Whether a verdict says that the result is safe.
    pub(super) fn is_safe(verdict: Verdict) -> bool {
        matches!(verdict, Verdict::Accepted | Verdict::Duplicate)
    }
}
