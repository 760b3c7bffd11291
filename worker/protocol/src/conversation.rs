//! The worker's side of the conversation: register, then sync until stopped.

mod calls;

use std::collections::BTreeMap;
use std::time::Duration;

use nqueens_model::PROGRESS;
use nqueens_model::id::LeaseToken;
use nqueens_model::message::{Registration, ReturnedLease, Session};
use nqueens_model::numbers::{counted, thousands};
use tracing::{info, warn};

use self::calls::PendingCall;
use crate::outage::Outage;
use crate::outbox::Outbox;
use crate::pace::Pace;
use crate::{Action, CallError, EndReason, Look, Moment, ProtocolEvent, Setup, Summary, Write};

/// Time to hand over everything at the end.
const FAREWELL: Duration = Duration::from_secs(5);

/// A worker with a deadline says its farewell this long before it: the process needs some time to end.
const END_BEFORE: Duration = Duration::from_secs(10);

/// A worker without work waits so long at least for a coordinator that does not answer: it may only be restarted.
const AWAY: Duration = Duration::from_mins(5);

/// While a call is on its way, new results wait this long for its answer before they go to disk: the answer may empty
/// the spool, but only if nothing new is in it.
const ANSWER: Duration = Duration::from_secs(1);

/// Between two lines in the log that say what was counted.
const TELL_EVERY: Duration = Duration::from_mins(10);

/// A worker's side of the conversation, from its first word to its last.
pub struct Conversation {
    registration: Registration,
    coordinator: String,
    /// Time for running jobs to finish after a stop.
    drain: Duration,
    /// When to stop counting.
    count_until: Option<Moment>,
    idle_max: Option<Duration>,
    /// Since when there is nothing to count.
    idle_since: Option<Moment>,
    session: Option<Session>,
    phase: LifePhase,
    call: Option<PendingCall>,
    outage: Option<Outage>,
    pace: Pace,
    /// Everything that the threads have: waiting, begun, or finished and not told yet. A lease that its holder does not
    /// name is given to it again, so not one may be missing here.
    leases: BTreeMap<LeaseToken, PoolJob>,
    /// Counted, not acknowledged.
    outbox: Outbox,
    /// To be given back.
    returned: Vec<ReturnedLease>,
    /// Engines that have failed since the start, and how many of them the coordinator knows.
    faults: Vec<String>,
    faults_told: usize,
    /// Jobs were given up, and the look that has them is still to come.
    giving_up: bool,
    /// The spool has what the next call is to report.
    flushed: bool,
    /// The worker asked for leases and has not heard since: some may be its own without its knowing.
    in_doubt: bool,
    /// When the log had its latest line of what was counted, and the results that it told of.
    told_at: Moment,
    told: u64,
    summary: Summary,
    actions: Vec<Action>,
}

enum LifePhase {
    Working,
    /// Told to go: takes no more work, and counts until this moment.
    Leaving(Moment),
    /// Counts no more; hands over what it has until this moment. After an error that does not pass it says nothing more.
    Farewell(Moment, Option<CallError>),
    Gone,
}

/// A job that the threads have.
struct PoolJob {
    /// Estimated states.
    estimate: u64,
    /// States visited.
    states: u64,
    /// Estimated states of what no thread has taken yet.
    left: u64,
}

impl Conversation {
    /// Begins a conversation. The first event may be a [`Look`] at idle threads; it leads to the first call.
    pub fn new(setup: Setup) -> Self {
        let pace = Pace::new(setup.states_per_s, setup.registration.threads);
        Self {
            registration: setup.registration,
            coordinator: setup.coordinator,
            drain: setup.drain,
            count_until: setup.deadline.map(|deadline| deadline.saturating_sub(END_BEFORE)),
            idle_max: setup.idle_max,
            idle_since: None,
            session: None,
            phase: LifePhase::Working,
            call: None,
            outage: None,
            pace,
            leases: BTreeMap::new(),
            outbox: Outbox::new(setup.spool),
            returned: Vec::new(),
            faults: Vec::new(),
            faults_told: 0,
            giving_up: false,
            flushed: false,
            in_doubt: false,
            told_at: Moment::ZERO,
            told: 0,
            summary: Summary::default(),
            actions: Vec::new(),
        }
    }

    /// Takes an event that happened by `now`, which never goes back, and returns the actions.
    pub fn on(&mut self, now: Moment, event: ProtocolEvent) -> Vec<Action> {
        match event {
            ProtocolEvent::Looked(look) => self.look(now, look),
            ProtocolEvent::Stop => self.leave(now, EndReason::Stopped),
            ProtocolEvent::Registered(session) => self.registered(now, session),
            ProtocolEvent::Answered(answer) => self.answered(now, answer),
            ProtocolEvent::Failed { error, jitter } => self.failed(now, error, jitter),
            ProtocolEvent::Written(change, outcome) => self.outbox.written(now, change, outcome),
        }
        self.idle_since = self.leases.is_empty().then(|| self.idle_since.unwrap_or(now));
        self.proceed(now);
        std::mem::take(&mut self.actions)
    }

    /// When to look at the threads and tell [`ProtocolEvent::Looked`], if nothing happens before; `None` while only an
    /// answer is waited for.
    pub fn wake_at(&self) -> Option<Moment> {
        if self.giving_up || self.outbox.is_writing() || matches!(self.phase, LifePhase::Gone) {
            return None;
        }
        let end = match self.phase {
            LifePhase::Leaving(until) | LifePhase::Farewell(until, _) => Some(until),
            LifePhase::Working => self.count_until.into_iter().chain(self.idle_until()).min(),
            LifePhase::Gone => None,
        };
        let write = self.outbox.store_at().map(|at| at.max(self.write_from()));
        [end, write, self.call_at()].into_iter().flatten().min()
    }

    /// Takes over what the threads have finished.
    fn look(&mut self, now: Moment, look: Look) {
        for finished in look.finished {
            match finished {
                Ok(result) => {
                    if let Some(job) = self.leases.remove(&result.token) {
                        self.pace.measure(&result, job.estimate);
                    }
                    self.outbox.push(now, result);
                }
                Err(returned) => {
                    self.leases.remove(&returned.token);
                    if returned.failure.is_some() {
                        warn!(job = %returned.token.job, failure = returned.failure, "failed to count a job");
                    }
                    self.returned.push(returned);
                }
            }
        }
        for progress in look.begun {
            if let Some(job) = self.leases.get_mut(&progress.lease.token) {
                (job.states, job.left) = (progress.lease.states, progress.left);
            }
        }
        self.faults = look.faults;
        if std::mem::take(&mut self.giving_up) && matches!(self.phase, LifePhase::Leaving(_)) {
            let (begun, returned, drain_s) = (self.leases.len(), self.returned.len(), self.drain.as_secs());
            info!(begun, returned, drain_s, "stopping: running jobs get {drain_s} s to finish");
        }
    }

    /// Until the worker counts no more, if it has a deadline.
    fn time_left(&self, now: Moment) -> Option<Duration> {
        Some(self.count_until?.saturating_sub(now))
    }

    /// Whether it has nothing to do, nothing to report, and no time for a job.
    fn is_short_of_time(&self, now: Moment) -> bool {
        let is_idle = self.leases.is_empty() && !self.has_to_say() && self.outage.is_none();
        is_idle && self.time_left(now).is_some_and(|time| self.pace.is_short(time))
    }

    /// When the worker goes unless it gets work.
    fn idle_until(&self) -> Option<Moment> {
        let away = if self.outage.is_some() { AWAY } else { Duration::ZERO };
        Some(self.idle_since? + self.idle_max?.max(away))
    }

    /// Takes no more work, and returns what has not started.
    fn leave(&mut self, now: Moment, reason: EndReason) {
        if !matches!(self.phase, LifePhase::Working) {
            return;
        }
        self.summary.reason = reason;
        let drained = now + self.drain;
        self.phase = LifePhase::Leaving(self.count_until.map_or(drained, |until| until.min(drained)));
        self.give_up(false);
        if let Some(outage) = &mut self.outage {
            outage.again_at = now;
        }
    }

    /// Stops counting, and reports the results; nothing after a permanent error.
    fn part(&mut self, now: Moment, error: Option<CallError>) {
        self.phase = LifePhase::Farewell(now + FAREWELL, error);
        self.give_up(true);
    }

    fn give_up(&mut self, begun: bool) {
        // Giving a call up half-way is harmless: it is the same call next time.
        self.call = None;
        (self.giving_up, self.flushed) = (true, false);
        self.actions.push(Action::GiveUp { begun });
    }

    fn end(&mut self, reason: &str) {
        let (unreported, unreturned) = (self.outbox.len(), self.returned.len());
        (self.summary.unreported, self.summary.unreturned) = (unreported, unreturned);
        if unreported > 0 || unreturned > 0 {
            let kept = self.outbox.is_kept();
            warn!(
                reason,
                unreported, kept, unreturned, "could not report everything; the leases will expire"
            );
        }
        self.call = None;
        let outcome = match std::mem::replace(&mut self.phase, LifePhase::Gone) {
            LifePhase::Farewell(_, Some(error)) => Err(error),
            _ => Ok(self.summary),
        };
        self.actions.push(Action::End(outcome));
    }

    fn proceed(&mut self, now: Moment) {
        if self.giving_up {
            return;
        }
        let over = match &self.phase {
            LifePhase::Gone => return,
            LifePhase::Working if self.time_left(now).is_some_and(|left| left.is_zero()) => {
                let (begun, results) = (self.leases.len(), self.outbox.len());
                info!(begun, results, "the time limit is near: the worker returns what it has not finished");
                self.summary.reason = EndReason::TimeUp;
                return self.part(now, None);
            }
            LifePhase::Working if self.is_short_of_time(now) => {
                info!("the time that is left is too short for a job");
                return self.leave(now, EndReason::TimeUp);
            }
            LifePhase::Working if self.idle_until().is_some_and(|until| until <= now) => {
                info!("there was no work for the idle timeout");
                return self.leave(now, EndReason::Idle);
            }
            LifePhase::Working => None,
            LifePhase::Leaving(until) => {
                if *until <= now || (self.leases.is_empty() && !self.has_to_say()) {
                    self.part(now, None);
                    return;
                }
                None
            }
            LifePhase::Farewell(_, Some(_)) => Some("refused"),
            LifePhase::Farewell(until, None) if *until <= now => Some("deadline has elapsed"),
            LifePhase::Farewell(..) => {
                let knows = self.session.is_none() || self.outage.is_some();
                (knows && !self.has_to_say()).then_some("nothing is left")
            }
        };
        let call = self.call_at().is_some_and(|at| at <= now);
        if (over.is_some() || (self.write_from() <= now && !(call && self.flushed)))
            && let Some(write) = self.outbox.next_write(now, call || over.is_some())
        {
            self.flushed = call && matches!(write, Write::Append(_));
            self.actions.push(Action::Write(write));
        }
        if self.outbox.is_writing() {
            return;
        }
        if let Some(reason) = over {
            self.end(reason);
        } else if call {
            self.flushed = false;
            self.call(now, false);
        }
    }

    /// When the spool may be written to.
    fn write_from(&self) -> Moment {
        self.call.as_ref().map_or(Moment::ZERO, |call| call.began + ANSWER)
    }

    /// When to call next; `None` while there is no answer to the last call.
    fn call_at(&self) -> Option<Moment> {
        match (&self.call, &self.phase, &self.outage) {
            (Some(_), ..) | (_, LifePhase::Gone, _) => None,
            (_, LifePhase::Farewell(until, _), outage) => {
                let outage = outage.as_ref().filter(|outage| self.is_of_farewell(outage));
                Some(outage.map_or(Moment::ZERO, |outage| outage.again_at.min(*until)))
            }
            (.., Some(outage)) => Some(outage.again_at),
            (.., None) => {
                let (jobs, results) = (self.leases.len(), self.outbox.len());
                let (states, wanted) = (self.states_left(), self.wanted());
                Some(self.pace.next_sync(jobs, states, wanted, results, self.has_to_say()))
            }
        }
    }

    /// Whether an outage began with the farewell or in it: the coordinator may be restarted. One that lasts since before has
    /// had its time.
    fn is_of_farewell(&self, outage: &Outage) -> bool {
        matches!(self.phase, LifePhase::Farewell(until, _) if outage.began + FAREWELL >= until)
    }

    /// Estimated work that no thread has taken yet, in states.
    fn states_left(&self) -> u64 {
        self.leases.values().map(|job| job.left).fold(0, u64::saturating_add)
    }

    /// Work to have at hand, in estimated states.
    fn wanted(&self) -> u64 {
        if matches!(self.phase, LifePhase::Working) { self.pace.wanted() } else { 0 }
    }

    /// Whether there is anything to report or to hand back.
    fn has_to_say(&self) -> bool {
        let leaving = !matches!(self.phase, LifePhase::Working);
        let is_fault_new = self.faults.len() > self.faults_told;
        !self.outbox.is_empty() || !self.returned.is_empty() || is_fault_new || (leaving && self.in_doubt)
    }

    /// A line in the log every ten minutes.
    fn tell(&mut self, now: Moment) {
        let results = self.summary.accepted;
        if now.saturating_sub(self.told_at) < TELL_EVERY {
            return;
        }
        let (lately, leases) = (counted(results - self.told, "job"), self.leases.len());
        (self.told_at, self.told) = (now, results);
        let what = format!("{lately} counted in 10 minutes, {} in all", thousands(results));
        info!(target: PROGRESS, results, leases, "{what}; {} here", counted(leases, "job"));
    }
}
