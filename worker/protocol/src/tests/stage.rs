//! A worker whose threads, disk, network and clock belong to a test.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::time::Duration;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::Counts;
use nqueens_kernel::engine::Kernel;
use nqueens_kernel::job::Class;
use nqueens_model::id::{JobId, LeaseToken, RunId, WorkerId};
use nqueens_model::message::{
    EncodedJob, JobResult, Lease, Registration, ResultAck, ReturnedLease, Session, SyncRequest, SyncResponse,
    Verdict,
};

use crate::{
    Action, CallError, Conversation, Look, Moment, ProtocolEvent, Setup, SpoolContents, Summary, Write,
};

/// The coordinator's beat.
pub(super) const BEAT: Duration = Duration::from_secs(1);

/// Estimated states of every job; a second's work.
pub(super) const STATES: u64 = 1_000_000;

pub(super) struct Stage {
    pub(super) now: Moment,
    conversation: Conversation,
    /// What the threads have, in this order.
    pub(super) jobs: Vec<LeaseToken>,
    /// So many of them, from the front, have begun.
    pub(super) begun: usize,
    finished: Vec<Result<JobResult, ReturnedLease>>,
    faults: Vec<String>,
    /// The call that waits for an answer.
    pub(super) call: Option<Action>,
    /// All syncs so far.
    pub(super) syncs: Vec<(Moment, SyncRequest)>,
    /// What is on disk.
    pub(super) spool: Vec<JobResult>,
    pub(super) rejected: Vec<JobResult>,
    pub(super) disk_is_full: bool,
    pub(super) end: Option<Result<Summary, CallError>>,
}

pub(super) fn token(number: u32) -> LeaseToken {
    let job = JobId { run: RunId::from_random(7), number };
    LeaseToken { job, epoch: NonZeroU32::MIN, ticket: 7 }
}

pub(super) fn result(number: u32) -> JobResult {
    let counts = Counts::only8(number.into());
    JobResult {
        token: token(number),
        counts,
        parts: Vec::new(),
        kernel: Kernel::ALL[0].into(),
        states: STATES,
        elapsed_us: 1_000_000,
        cpu_us: None,
    }
}

/// When a conversation begins: any moment will do.
const START: Moment = Duration::from_hours(1);

/// Leases on these jobs.
pub(super) fn leases(numbers: std::ops::Range<u32>) -> Vec<Lease> {
    let n = BoardSize::new(8).expect("a board");
    let job = EncodedJob { n, class: Class::Border, bound1: 0, prefixes: Vec::new() };
    let lease = |number| Lease { token: token(number), job: job.clone(), states: STATES, mirrored: false };
    numbers.map(lease).collect()
}

/// An answer with this verdict on all results.
pub(super) fn judged(sync: &SyncRequest, verdict: Verdict) -> SyncResponse {
    let ack = |result: &JobResult| ResultAck { token: result.token, verdict, reason: String::new() };
    SyncResponse {
        acks: sync.results.iter().map(ack).collect(),
        next_sync_ms: u32::try_from(BEAT.as_millis()).expect("short"),
        ..SyncResponse::default()
    }
}

pub(super) fn accepted(sync: &SyncRequest) -> SyncResponse {
    judged(sync, Verdict::Accepted)
}

/// The numbers of the jobs of a report's results.
pub(super) fn told(sync: &SyncRequest) -> Vec<u32> {
    sync.results.iter().map(|result| result.token.job.number).collect()
}

pub(super) fn held(sync: &SyncRequest) -> Vec<u32> {
    sync.held.iter().map(|held| held.token.job.number).collect()
}

pub(super) fn returned(sync: &SyncRequest) -> Vec<u32> {
    sync.returned.iter().map(|returned| returned.token.job.number).collect()
}

impl Stage {
    /// A worker of one thread that does a job a second, at its first sync.
    pub(super) fn new(spool: Option<Vec<JobResult>>) -> Self {
        let mut stage = Self::unregistered(spool);
        stage.next_call();
        stage.register();
        stage
    }

    /// The same, which has to be gone after a time, or when it was idle for a time.
    pub(super) fn limited(time_max: Option<Duration>, idle_max: Option<Duration>) -> Self {
        let deadline = time_max.map(|time| START + time);
        let mut stage = Self::with_limits(None, deadline, idle_max);
        stage.next_call();
        stage.register();
        stage
    }

    pub(super) fn unregistered(spool: Option<Vec<JobResult>>) -> Self {
        Self::with_limits(spool, None, None)
    }

    pub(super) fn with_limits(
        spool: Option<Vec<JobResult>>,
        deadline: Option<Moment>,
        idle_max: Option<Duration>,
    ) -> Self {
        let registration = Registration {
            instance: [7; 16],
            name: "test".to_owned(),
            build: "test".to_owned(),
            kernels: vec![Kernel::ALL[0].into()],
            capability: None,
            threads: 1,
        };
        #[expect(clippy::cast_precision_loss, reason = "a speed")]
        let conversation = Conversation::new(Setup {
            registration,
            states_per_s: STATES as f64,
            drain: Duration::from_secs(10),
            deadline,
            idle_max,
            coordinator: "nowhere".to_owned(),
            spool: spool.clone().map(|results| SpoolContents { name: "spool".to_owned(), results }),
        });
        Self {
            now: START,
            conversation,
            jobs: Vec::new(),
            begun: 0,
            finished: Vec::new(),
            faults: Vec::new(),
            call: None,
            syncs: Vec::new(),
            spool: spool.unwrap_or_default(),
            rejected: Vec::new(),
            disk_is_full: false,
            end: None,
        }
    }

    /// Tells the worker something and does what it wants.
    pub(super) fn tell(&mut self, event: ProtocolEvent) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            for action in self.conversation.on(self.now, event) {
                assert_eq!(self.end, None, "the last word is the last");
                match action {
                    Action::Register(_) => self.call = Some(action),
                    Action::Sync(ref sync) => {
                        self.syncs.push((self.now, sync.clone()));
                        self.call = Some(action);
                    }
                    Action::Count(leases) => self.jobs.extend(leases.iter().map(|lease| lease.token)),
                    Action::Revoke(tokens) => self.jobs.retain(|token| !tokens.contains(token)),
                    Action::GiveUp { begun } => {
                        let kept = if begun { 0 } else { self.begun.min(self.jobs.len()) };
                        let back = self.jobs.drain(kept..);
                        self.finished.extend(back.map(|token| Err(ReturnedLease { token, failure: None })));
                        events.push_back(self.look());
                    }
                    Action::Write(write) => {
                        let outcome = self.write(write.clone());
                        events.push_back(ProtocolEvent::Written(write, outcome));
                    }
                    Action::End(outcome) => self.end = Some(outcome),
                }
            }
        }
    }

    fn look(&mut self) -> ProtocolEvent {
        ProtocolEvent::Looked(Look {
            finished: std::mem::take(&mut self.finished),
            begun: Vec::new(),
            faults: self.faults.clone(),
        })
    }

    fn write(&mut self, write: Write) -> Result<(), String> {
        if self.disk_is_full {
            return Err("no room".to_owned());
        }
        match write {
            Write::Append(results) => self.spool.extend(results),
            Write::Clear => self.spool.clear(),
            Write::Rewrite(results) => self.spool = results,
            Write::Reject(results) => self.rejected.extend(results),
        }
        Ok(())
    }

    /// Lets time pass.
    pub(super) fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while self.step(until) {}
        self.now = until;
    }

    /// Lets time pass until the worker calls, for a day at most.
    pub(super) fn next_call(&mut self) {
        let until = self.now + Duration::from_hours(24);
        while self.call.is_none() {
            assert!(self.step(until), "it never calls");
        }
    }

    /// Lets time pass until the worker syncs; what it says.
    pub(super) fn next_sync(&mut self) -> SyncRequest {
        self.next_call();
        let Some(Action::Sync(sync)) = self.call.clone() else { panic!("{:?}", self.call) };
        sync
    }

    /// Goes on to the next moment at which the worker wants to look at its threads, if there is one by `until`.
    fn step(&mut self, until: Moment) -> bool {
        let Some(at) = self.conversation.wake_at().filter(|at| *at <= until) else { return false };
        self.now = self.now.max(at);
        let event = self.look();
        self.tell(event);
        let next = self.conversation.wake_at();
        assert!(next.is_none_or(|next| next > self.now), "it wants to look again and again");
        true
    }

    /// A thread counts a job.
    pub(super) fn count(&mut self, number: u32) {
        self.leave(number, Ok(result(number)));
    }

    /// A thread fails to count a job.
    pub(super) fn break_down(&mut self, number: u32) {
        let failure = Some("panicked: no engine".to_owned());
        self.leave(number, Err(ReturnedLease { token: token(number), failure }));
    }

    /// An engine fails.
    pub(super) fn lose_engine(&mut self, fault: &str) {
        self.faults.push(fault.to_owned());
        let event = self.look();
        self.tell(event);
    }

    fn leave(&mut self, number: u32, finished: Result<JobResult, ReturnedLease>) {
        self.jobs.retain(|job| *job != token(number));
        self.finished.push(finished);
        let event = self.look();
        self.tell(event);
    }

    pub(super) fn register(&mut self) {
        assert!(matches!(self.call.take(), Some(Action::Register(_))));
        let worker = WorkerId::new(1).expect("an id");
        self.tell(ProtocolEvent::Registered(Session { worker, secret: [9; 16] }));
    }

    /// The coordinator answers a sync.
    pub(super) fn answer(&mut self, answer: SyncResponse) {
        assert!(matches!(self.call.take(), Some(Action::Sync(_))));
        self.tell(ProtocolEvent::Answered(answer));
    }

    /// The next sync is answered: everything is accepted, and there is this work.
    pub(super) fn serve(&mut self, work: std::ops::Range<u32>) -> SyncRequest {
        let sync = self.next_sync();
        self.answer(SyncResponse { leases: leases(work), ..accepted(&sync) });
        sync
    }

    /// The call fails.
    pub(super) fn fail(&mut self, error: CallError, jitter: f64) {
        self.call = None;
        self.tell(ProtocolEvent::Failed { error, jitter });
    }
}
