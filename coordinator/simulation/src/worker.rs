//! A worker's machine and the processes on it, one after the other: carries out what the conversation that ships wants, with
//! threads, a spool and a clock that are simulated. In place of `worker/src/runtime.rs`.

mod pool;

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use nqueens_kernel::engine::Kernel;
use nqueens_kernel::random::Random;
use nqueens_model::credential::Credential;
use nqueens_model::id::{LeaseToken, WorkerId};
use nqueens_model::message::{JobResult, Registration, SyncRequest};
use nqueens_scheduler::{Machine, Millis};
use nqueens_worker_protocol::{
    Action, CallError, Conversation, Look, ProtocolEvent, Setup, SpoolContents, Write,
};

use self::pool::Pool;
use crate::luck::Luck;
use crate::scenario::Fault;

/// A call without an answer after this time has failed.
const CALL_TIMEOUT: Millis = 30_000;

/// Shortest time between two looks at what the threads have finished, while they have more to do.
const BREATH: Millis = 10;

/// What a worker asks its coordinator.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Register(Registration),
    Sync(SyncRequest),
}

/// Who waits for an answer: a worker's place, its process, and the number of its call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    pub(crate) place: usize,
    pub(crate) instance: [u8; 16],
    pub(crate) call: u64,
}

/// How a machine counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Engine {
    /// Estimated states a thread and millisecond.
    pub(crate) rate: u64,
    pub(crate) threads: u32,
    pub(crate) kernel: Kernel,
    /// Number of the machine; several workers may run on one.
    pub(crate) machine: usize,
    /// Number of its owner, whose machines all show the same credential; `None` where all owners do.
    pub(crate) owner: Option<usize>,
    /// Tells the same lies as the others that do.
    pub(crate) conspires: bool,
    /// It lies about one job of this many, if it lies.
    pub(crate) lies_in: Option<u64>,
}

impl Engine {
    /// Where it counts.
    pub(crate) fn machine(&self) -> Machine {
        let owner = |owner| Credential::named(&format!("owner {owner}")).expect("a name");
        Machine::new(self.owner.map_or_else(Credential::shared, owner), &format!("m{}", self.machine))
    }
}

#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) engine: Engine,
    /// Outlives the processes; `None` for a worker that keeps nothing.
    spool: Option<Vec<JobResult>>,
    pub(crate) process: Option<Process>,
    /// Each of its processes ends after this time, as an allocation does.
    pub(crate) time_limit: Option<Duration>,
    /// Until when the network is cut.
    pub(crate) cut_off: Millis,
    /// When it acts next; earlier alarms are void.
    pub(crate) alarm: Option<Millis>,
}

pub(crate) struct Process {
    pub(crate) instance: [u8; 16],
    /// As it last registered.
    pub(crate) id: Option<WorkerId>,
    born: Millis,
    conversation: Conversation,
    pool: Pool,
    /// The latest call, and when it is given up.
    call: Option<(u64, Millis)>,
    calls: u64,
    looked: Millis,
    pub(crate) frozen: bool,
    /// What arrived while it was frozen.
    mail: Vec<(u64, ProtocolEvent)>,
    /// Whether the spool did not take the latest results.
    spool_fails: bool,
    /// Leases whose results are not acknowledged.
    unacknowledged: BTreeSet<LeaseToken>,
    /// All that was counted is acknowledged.
    pub(crate) has_reported: bool,
    /// When it made its latest call, if that asked for work and nothing else.
    asked: Option<Millis>,
    /// It got no work: it may not ask for work alone before.
    patient_until: Millis,
}

impl std::fmt::Debug for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Process").field("id", &self.id).field("born", &self.born).finish_non_exhaustive()
    }
}

impl Worker {
    /// A worker on one of so many machines.
    pub(crate) fn new(random: &mut Random, machines: usize) -> Self {
        let engine = Engine {
            // Some are ten times slower than the others.
            rate: random.number(10..=199) / if random.permille(50) { 10 } else { 1 },
            threads: 1 + u32::from(random.permille(300)) * 3,
            kernel: Kernel::ALL[random.index(3)],
            machine: random.index(machines),
            owner: None,
            conspires: false,
            lies_in: None,
        };
        let spool = random.permille(800).then(Vec::new);
        Self { engine, spool, process: None, time_limit: None, cut_off: 0, alarm: None }
    }

    pub(crate) fn speed(&self) -> u64 {
        self.engine.rate * u64::from(self.engine.threads)
    }

    /// A process begins, with what is in the spool.
    pub(crate) fn begin(&mut self, now: Millis, luck: &mut Luck) {
        let (is_calm, random) = (luck.is_calm(), &mut luck.random);
        let instance = (u128::from(random.bits()) << 64 | u128::from(random.bits())).to_be_bytes();
        let Engine { kernel, threads, .. } = self.engine;
        let registration = Registration {
            instance,
            name: self.engine.machine().name.to_string(),
            build: "simulated".to_owned(),
            kernels: vec![kernel.into()],
            capability: None,
            threads,
        };
        let results = self.spool.clone();
        let unacknowledged: BTreeSet<_> = results.iter().flatten().map(|result| result.token).collect();
        let has_reported = unacknowledged.is_empty();
        // Some have a time limit or an idle timeout. The instance is as random as anything.
        let [odds, share] = [instance[0], instance[1]].map(u64::from);
        let deadline = (!is_calm && odds < 50).then(|| Duration::from_secs(12 + share));
        let idle_max = (!is_calm && odds % 5 == 0).then(|| Duration::from_millis(1 + 100 * share));
        #[expect(clippy::cast_precision_loss, reason = "a speed")]
        let conversation = Conversation::new(Setup {
            registration,
            // Engines are far faster on larger boards than in their test.
            states_per_s: self.speed() as f64 * 10.0,
            drain: Duration::from_millis(random.number(0..=19_999)),
            deadline: self.time_limit.or(deadline),
            idle_max,
            coordinator: "simulated".to_owned(),
            spool: results.map(|results| SpoolContents { name: "simulated".to_owned(), results }),
        });
        self.process = Some(Process {
            instance,
            id: None,
            born: now,
            conversation,
            pool: Pool::new(self.engine),
            call: None,
            calls: 0,
            looked: now,
            frozen: false,
            mail: Vec::new(),
            spool_fails: false,
            unacknowledged,
            has_reported,
            asked: None,
            patient_until: 0,
        });
    }

    /// Does what is due: what it calls the coordinator with.
    pub(crate) fn act(&mut self, now: Millis, luck: &mut Luck) -> Vec<(u64, Call)> {
        let Some(process) = self.process.as_mut().filter(|process| !process.frozen) else {
            return Vec::new();
        };
        process.pool.advance(now, luck);
        if process.call.is_some_and(|(_, give_up)| give_up <= now) {
            process.call = None;
            let event = failure(CallError::Unavailable("no answer in time".to_owned()), luck);
            return self.on(now, event, luck);
        }
        if process.look_at(now).is_some_and(|at| at <= now) {
            let look = process.look(now);
            return self.on(now, ProtocolEvent::Looked(look), luck);
        }
        Vec::new()
    }

    /// When it acts next, if nothing comes before.
    pub(crate) fn wake_at(&self, now: Millis) -> Option<Millis> {
        let process = self.process.as_ref().filter(|process| !process.frozen)?;
        let give_up = process.call.map(|(_, give_up)| give_up);
        let pool = process.pool.next_end();
        [process.look_at(now), give_up, pool].into_iter().flatten().min().map(|at| at.max(now + 1))
    }

    /// Takes an answer to a call, unless that was given up.
    pub(crate) fn hear(
        &mut self,
        now: Millis,
        call: u64,
        event: ProtocolEvent,
        luck: &mut Luck,
    ) -> Vec<(u64, Call)> {
        let Some(process) = &mut self.process else { return Vec::new() };
        if process.frozen {
            process.mail.push((call, event));
            return Vec::new();
        }
        if process.call.is_none_or(|(number, _)| number != call) {
            return Vec::new();
        }
        process.call = None;
        if let ProtocolEvent::Answered(answer) = &event {
            for ack in &answer.acks {
                process.unacknowledged.remove(&ack.token);
            }
        }
        match &event {
            ProtocolEvent::Registered(session) => process.id = Some(session.worker),
            ProtocolEvent::Answered(answer) if answer.leases.is_empty() => {
                let asked = process.asked.take();
                process.patient_until = asked.map_or(0, |at| at + Millis::from(answer.next_sync_ms));
            }
            _ => {}
        }
        self.on(now, event, luck)
    }

    /// Goes on after it was stopped for this time.
    pub(crate) fn thaw(&mut self, now: Millis, slept: Millis, luck: &mut Luck) -> Vec<(u64, Call)> {
        let Some(process) = self.process.as_mut().filter(|process| process.frozen) else { return Vec::new() };
        process.frozen = false;
        process.pool.postpone(slept);
        let mail = std::mem::take(&mut process.mail);
        mail.into_iter().flat_map(|(call, event)| self.hear(now, call, event, luck)).collect()
    }

    /// Tells the conversation what has happened, and does what it wants.
    pub(crate) fn on(&mut self, now: Millis, event: ProtocolEvent, luck: &mut Luck) -> Vec<(u64, Call)> {
        let mut calls = Vec::new();
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let Some(process) = &mut self.process else { break };
            let local = Duration::from_millis(now - process.born);
            for action in process.conversation.on(local, event) {
                match action {
                    Action::Register(registration) => {
                        process.asked = None;
                        calls.push((process.call(now), Call::Register(registration)));
                    }
                    Action::Sync(sync) => {
                        process.check(now, &sync, self.spool.as_deref());
                        calls.push((process.call(now), Call::Sync(sync)));
                    }
                    Action::Count(leases) => process.pool.add(now, leases, luck),
                    Action::Revoke(tokens) => process.pool.revoke(now, &tokens, luck),
                    Action::GiveUp { begun } => {
                        process.pool.give_up(begun);
                        events.push_back(ProtocolEvent::Looked(process.look(now)));
                    }
                    Action::Write(change) => {
                        let spool = self.spool.as_mut().expect("only who has a spool is asked to write");
                        let outcome = write(spool, &change, luck);
                        if matches!(change, Write::Append(_)) {
                            process.spool_fails = outcome.is_err();
                        }
                        events.push_back(ProtocolEvent::Written(change, outcome));
                    }
                    Action::End(outcome) => {
                        if let (Ok(summary), Some(spool)) = (outcome, &self.spool) {
                            let is_kept = summary.unreported <= spool.len() || process.spool_fails;
                            assert!(is_kept, "what a worker could not report is in its spool");
                        }
                        self.process = None;
                        break;
                    }
                }
            }
        }
        calls
    }
}

/// A call that failed.
pub(crate) fn failure(error: CallError, luck: &mut Luck) -> ProtocolEvent {
    ProtocolEvent::Failed { error, jitter: luck.random.fraction() }
}

fn write(spool: &mut Vec<JobResult>, change: &Write, luck: &mut Luck) -> Result<(), String> {
    if luck.strikes(Fault::Spool) {
        return Err("no space left on device".to_owned());
    }
    match change {
        Write::Append(results) => spool.extend_from_slice(results),
        Write::Clear => spool.clear(),
        Write::Rewrite(results) => spool.clone_from(results),
        Write::Reject(_) => {}
    }
    Ok(())
}

impl Process {
    fn call(&mut self, now: Millis) -> u64 {
        self.calls += 1;
        self.call = Some((self.calls, now + CALL_TIMEOUT));
        self.calls
    }

    /// From now on it counts as it should.
    pub(crate) fn reform(&mut self) {
        self.pool.engine.lies_in = None;
    }

    fn look(&mut self, now: Millis) -> Look {
        self.looked = now;
        let look = self.pool.look(now);
        self.has_reported &= look.finished.is_empty();
        self.unacknowledged.extend(look.finished.iter().flatten().map(|result| result.token));
        look
    }

    /// When to look at the threads, as things stand.
    fn look_at(&self, now: Millis) -> Option<Millis> {
        let wanted = self.conversation.wake_at();
        let wanted =
            wanted.map(|at| self.born + Millis::try_from(at.as_micros().div_ceil(1_000)).expect("soon"));
        let progressed =
            self.pool.progressed.then(|| if self.pool.is_idle() { now } else { self.looked + BREATH });
        wanted.into_iter().chain(progressed).min()
    }

    /// What has to hold of everything that a worker says.
    fn check(&mut self, now: Millis, sync: &SyncRequest, spool: Option<&[JobResult]>) {
        let held: BTreeSet<_> = sync.held.iter().map(|held| held.token).collect();
        let own = self.pool.tokens();
        assert!(own.iter().all(|token| held.contains(token)), "a worker names all that it has");
        assert!(!sync.leaving || own.is_empty(), "who leaves holds nothing");
        if let Some(spool) = spool.filter(|_| !self.spool_fails) {
            let ends = sync.results.first().into_iter().chain(sync.results.last());
            let mut ends = ends.map(|result| result.token);
            let is_kept = |token| spool.iter().any(|kept| kept.token == token);
            assert!(ends.all(is_kept), "what is reported is in the spool");
        }
        let reported: BTreeSet<_> = sync.results.iter().map(|result| result.token).collect();
        let mut open = self.unacknowledged.iter();
        let is_named = |token| reported.contains(token) || held.contains(token);
        assert!(open.all(is_named), "a result is kept until it is acknowledged");
        let is_quiet = sync.results.is_empty() && sync.returned.is_empty();
        self.has_reported = is_quiet && held.len() == own.len();
        let asks = is_quiet && held.is_empty() && sync.wanted.jobs > 0;
        assert!(!asks || now >= self.patient_until, "a worker that got nothing waits");
        (self.asked, self.patient_until) = (asks.then_some(now), 0);
    }
}
