//! A worker's threads, simulated: they count as long as the clock says. In place of `worker/src/pool`.

use std::collections::VecDeque;

use nqueens_kernel::counts::Counts;
use nqueens_kernel::random::Random;
use nqueens_model::id::{JobId, LeaseToken};
use nqueens_model::message::{HeldLease, JobResult, Lease, ReturnedLease};
use nqueens_scheduler::Millis;
use nqueens_worker_protocol::{JobProgress, Look};

use super::Engine;
use crate::job::{lie, truth};
use crate::luck::Luck;
use crate::scenario::Fault;

/// Threads that count, as long as the clock says.
pub(super) struct Pool {
    pub(super) engine: Engine,
    waiting: VecDeque<Lease>,
    active: Vec<Active>,
    /// Pieces of active jobs that no thread has begun, each with the time that it takes.
    pieces: VecDeque<(LeaseToken, Millis)>,
    /// What threads are at, and when each is done; never with one that hangs.
    threads: Vec<(LeaseToken, Option<Millis>)>,
    finished: Vec<Result<JobResult, ReturnedLease>>,
    /// A job is finished, or the last one that waited has begun, since the last look.
    pub(super) progressed: bool,
}

/// A job that threads are at.
struct Active {
    token: LeaseToken,
    estimate: u64,
    began: Millis,
    /// Pieces that are not finished.
    open: u64,
    hangs: bool,
}

impl Pool {
    pub(super) fn new(engine: Engine) -> Self {
        Self {
            engine,
            waiting: VecDeque::new(),
            active: Vec::new(),
            pieces: VecDeque::new(),
            threads: Vec::new(),
            finished: Vec::new(),
            progressed: false,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.active.is_empty()
    }

    pub(super) fn next_end(&self) -> Option<Millis> {
        self.threads.iter().filter_map(|(_, end)| *end).min()
    }

    /// What it has not finished.
    pub(super) fn tokens(&self) -> Vec<LeaseToken> {
        let waiting = self.waiting.iter().map(|lease| lease.token);
        waiting.chain(self.active.iter().map(|job| job.token)).collect()
    }

    pub(super) fn add(&mut self, now: Millis, leases: Vec<Lease>, luck: &mut Luck) {
        self.waiting.extend(leases);
        self.start(now, luck);
    }

    /// Has idle threads begin with what waits. Jobs that are too few for all threads are counted in pieces.
    fn start(&mut self, now: Millis, luck: &mut Luck) {
        let all = self.engine.threads as usize;
        while self.threads.len() < all {
            if let Some((token, took)) = self.pieces.pop_front() {
                let hangs = self.active.iter().any(|job| job.token == token && job.hangs);
                self.threads.push((token, (!hangs).then_some(now + took)));
                continue;
            }
            let Some(lease) = self.waiting.pop_front() else { return };
            self.progressed |= self.waiting.is_empty();
            let open = all.div_ceil(self.waiting.len() + 1) as u64;
            let took = lease.states / self.engine.rate / open + 1;
            self.pieces.extend((0..open).map(|_| (lease.token, took)));
            let (token, estimate, hangs) = (lease.token, lease.states, luck.strikes(Fault::Hang));
            self.active.push(Active { token, estimate, began: now, open, hangs });
        }
    }

    /// Counts until now.
    pub(super) fn advance(&mut self, now: Millis, luck: &mut Luck) {
        while let Some(end) = self.next_end().filter(|end| *end <= now) {
            let at = self.threads.iter().position(|(_, other)| *other == Some(end)).expect("it is there");
            let (token, _) = self.threads.swap_remove(at);
            let at = self.active.iter().position(|job| job.token == token).expect("it is active");
            self.active[at].open -= 1;
            if self.active[at].open == 0 {
                let job = self.active.remove(at);
                self.finished.push(self.engine.count(&job, luck));
                self.progressed = true;
            }
            self.start(end, luck);
        }
    }

    /// It was stopped for this time.
    pub(super) fn postpone(&mut self, slept: Millis) {
        self.active.iter_mut().for_each(|job| job.began += slept);
        self.threads.iter_mut().for_each(|(_, end)| *end = end.map(|end| end + slept));
    }

    pub(super) fn look(&mut self, now: Millis) -> Look {
        self.progressed = false;
        let progress = |job: &Active| {
            let states = (now.saturating_sub(job.began) * self.engine.rate).min(job.estimate);
            let states = if job.hangs { states.min(1) } else { states };
            JobProgress { lease: HeldLease { token: job.token, states }, left: 0 }
        };
        let begun = self.active.iter().map(progress).collect();
        Look { finished: std::mem::take(&mut self.finished), begun, ..Look::default() }
    }

    pub(super) fn revoke(&mut self, now: Millis, tokens: &[LeaseToken], luck: &mut Luck) {
        self.waiting.retain(|lease| !tokens.contains(&lease.token));
        self.leave(tokens);
        self.start(now, luck);
    }

    /// No thread counts these any more.
    fn leave(&mut self, tokens: &[LeaseToken]) {
        self.active.retain(|job| !tokens.contains(&job.token));
        self.pieces.retain(|(token, _)| !tokens.contains(token));
        self.threads.retain(|(token, _)| !tokens.contains(token));
    }

    pub(super) fn give_up(&mut self, begun: bool) {
        let mut tokens: Vec<_> = self.waiting.drain(..).map(|lease| lease.token).collect();
        if begun {
            tokens.extend(self.active.iter().map(|job| job.token));
            self.leave(&tokens);
        }
        self.finished.extend(tokens.into_iter().map(|token| Err(ReturnedLease { token, failure: None })));
    }
}

impl Engine {
    /// What it says of a job instead of the truth, if it lies about that.
    fn lie(&self, job: JobId, liar: usize) -> Option<Counts> {
        let mut draw = Random::new(job.run.get() ^ u64::from(job.number) << 48 ^ liar as u64);
        let lies = self.lies_in.is_some_and(|jobs| draw.below(jobs) == 0);
        // Conspirators know better than to tell what can't be.
        lies.then(|| lie(job, liar, self.conspires || !draw.permille(100)))
    }

    /// What comes of counting a job.
    fn count(&self, job: &Active, luck: &mut Luck) -> Result<JobResult, ReturnedLease> {
        let Active { token, estimate, .. } = *job;
        if luck.strikes(Fault::Failure) {
            return Err(ReturnedLease { token, failure: Some("told to".to_owned()) });
        }
        let mut counts = truth(token.job);
        // Whether it lies about a job depends on both alone: it makes the same mistake again.
        let liar = if self.conspires { 0 } else { self.machine };
        if let Some(told) = self.lie(token.job, liar) {
            counts = told;
        }
        Ok(JobResult {
            token,
            counts,
            parts: Vec::new(),
            kernel: self.kernel.into(),
            states: estimate,
            elapsed_us: (estimate / self.rate + 1) * 1_000,
            cpu_us: None,
        })
    }
}
